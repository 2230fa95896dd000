#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `fungi serve` in Chromium: serves stores of pictures, texts and sounds, and lets page_test.mjs use them as people do.
Exit status 77: there is no Chromium, no Node, or no package of npm to drive it with (CTest counts it as skipped).

    page_test.py FUNGI SOURCE_FOLDER BUILD_FOLDER [FOLDER_FOR_SCREENSHOTS]"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from clips import make_clips  # noqa: E402

WORDS = "how do i locate my card where is it lost a new one who what when was born in".split()


def find_browser() -> str | None:
    return os.environ.get("FUNGI_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def install(source: pathlib.Path, build: pathlib.Path) -> tuple[pathlib.Path, str]:
    """The folder with the packages, and why there is none."""
    place = build / "page-test"
    place.mkdir(parents=True, exist_ok=True)
    wanted = (source / "tests/web/package.json").read_text()
    stamp = place / "installed.json"
    if not stamp.exists() or stamp.read_text() != wanted:
        (place / "package.json").write_text(wanted)
        words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(place)]
        try:
            result = subprocess.run(words, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            return place, f"npm does not run: {error}"
        if result.returncode:
            return place, f"npm could not fetch playwright-core and axe-core: {result.stderr[-300:]}"
        stamp.write_text(wanted)
    for file in (source / "tests/web").glob("*.mjs"):  # beside its packages
        shutil.copy(file, place)
    return place, ""


def make_texts(place: pathlib.Path, model: pathlib.Path) -> None:
    (place / "sentence-model").mkdir()
    for name in ("model.safetensors", "config.json"):
        shutil.copy(model / name, place / "sentence-model")
    (place / "sentence-model/vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "?"]))
    lines = [f"{'card' if i % 2 else 'person'}\t{'where is my' if i % 2 else 'who was'} {WORDS[i % len(WORDS)]} {WORDS[i % 7]} ?" for i in range(24)]
    lines.append('card\t<img src=x onerror="document.title=1"> <b>where</b> is my card')
    (place / "questions.tsv").write_text("\n".join(lines) + "\n")


def make_picture(file: pathlib.Path) -> None:
    """A PNG of stripes, which no store has."""
    rows = b"".join(b"\0" + bytes(200 if (x + y) // 5 % 2 else 30 for x in range(40) for _ in range(3)) for y in range(40))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))  # noqa: E731
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 40, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_stores(fungi: str, source: pathlib.Path, place: pathlib.Path) -> list[tuple[str, str]]:
    """Stores with their data sets; sounds are missing where the program was built without them."""
    make_clips(place / "recordings")
    make_texts(place, source / "tests/golden/backbone/bert_mean")
    make_picture(place / "stripes.png")
    (place / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and nothing more")
    pictures = source / "demo/images/test"
    for name, data, model, objectives in (
            ("clothes", pictures, source / "demo", ["kl", "dino:local_crops=1"]),
            ("questions", place / "questions.tsv", place / "sentence-model", ["kl"]),
            ("clips", place / "recordings", source / "tests/golden/backbone/hf_ast", ["kl:width=16"])):
        words = [fungi, "extract", data, "-m", model, "-o", place / name, "-q", "--objectives", *objectives]
        result = subprocess.run(words, capture_output=True, text=True)
        if result.returncode and "was built without" in result.stderr:
            continue
        if result.returncode:
            raise RuntimeError(result.stderr)
        yield name, str(data)


def main() -> int:
    fungi, source, build = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
    browser = find_browser()
    if not browser or not shutil.which("node") or not shutil.which("npm"):
        print("skipped: no Chromium, node or npm; `tools/install_deps.sh browser` installs them, FUNGI_BROWSER names another browser")
        return 77
    if subprocess.run([fungi, "serve", "--help"], capture_output=True).returncode:
        print("skipped: this fungi does not serve")
        return 77
    packages, missing = install(source, build)
    if missing:
        print(f"skipped: {missing}")
        return 77
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = pathlib.Path(folder)
        stores = list(make_stores(fungi, source, place))
        words = [fungi, "serve", *(f"{place / name}" for name, _ in stores), "--data", *(data for _, data in stores), "--port", "0", "--json"]
        log = open(place / "log", "w")
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
        token = "correct horse battery staple"
        (place / "token").write_text(token + "\n")
        guarded = subprocess.Popen([fungi, "serve", f"{place / stores[0][0]}", "--data", stores[0][1], "--port", "0", "--json",
                                    "--token-file", f"{place / 'token'}"], stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            said, asked = server.stdout.readline(), guarded.stdout.readline()  # a line of JSON; none where it has ended
            if not said or not asked:
                log.flush()
                if "was built without" in (place / "log").read_text() or "no cpp-httplib" in (place / "log").read_text():
                    print("skipped: this build has no server")
                    return 77
                print(f"the server did not begin: {(place / 'log').read_text()}")
                return 1
            os.environ["NODE_NO_WARNINGS"] = "1"
            done = subprocess.run(["node", packages / "page_test.mjs", json.dumps({
                "url": json.loads(said)["url"].rstrip("/"), "browser": browser, "stores": [name for name, _ in stores], "server": server.pid,
                "guarded": json.loads(asked)["url"].rstrip("/"), "token": token,
                "picture": str(place / "stripes.png"), "row": str(source / "demo/images/test/coat/00006.png"), "broken": str(place / "broken.png"),
                "sound": str(place / "recordings/low/1.wav"), "axe": str(packages / "node_modules/axe-core/axe.min.js"), "profile": str(place / "profile"),
                "shots": sys.argv[4] if len(sys.argv) > 4 else ""})], timeout=280)
            return done.returncode
        except subprocess.TimeoutExpired:
            print("the browser did not come to an end")
            return 1
        finally:
            for one in (server, guarded):
                one.kill()
                one.wait()
            log.close()


if __name__ == "__main__":
    sys.exit(main())
