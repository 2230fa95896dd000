#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a report in Chromium: its script must run to the end and the console must stay silent. The same page, damaged in ways that a
browser notices, must fail the same check. Exit status 77: there is no browser (CTest counts it as skipped).

    browser_test.py FUNGI SOURCE_FOLDER"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from clips import make_clips  # noqa: E402

QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]

# A picture that cannot be decoded leaves no word in the console by itself.
PROBE = """<script>addEventListener("load", () => {
  for (const image of document.images) if (!image.naturalWidth) console.error("broken picture: " + image.alt);
});</script></body>"""


def problems(browser: str, page: pathlib.Path, text: str) -> list[str]:
    """What is wrong with the page in the browser's eyes; an empty list: nothing."""
    page.write_text(text.replace("</body>", PROBE))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        result = subprocess.run([browser, *QUIET, f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000", "--dump-dom", page.as_uri()],
                                capture_output=True, text=True, errors="replace", timeout=120)
    found = [line.split("CONSOLE", 1)[1] for line in result.stderr.splitlines() if re.search(r":CONSOLE[:(]", line)]
    if result.returncode:
        found.append(f"the browser ended with {result.returncode}: {result.stderr[-500:]}")
    root = re.search(r"<html[^>]*>", result.stdout)
    if not root or 'data-ready="yes"' not in root[0]:
        found.append(f"the script did not run to its end: {root[0] if root else result.stdout[:200]}")
    return found


def make_page(fungi: str, source: pathlib.Path, place: pathlib.Path) -> pathlib.Path:
    data, model = source / "demo/images/test", source / "tests/golden/backbone/timm_vit/model.safetensors"
    extract = [fungi, "extract", data, "-q", "-m", model, "--set", "heads=4", "--objectives", "kl", "dino:width=16"]
    for command in ([*extract, "-o", place / "train"], [*extract, "-o", place / "test", "--limit", "60", "--like", place / "train"],
                    [fungi, "report", place / "train", place / "test", "-k", "3", "-o", place / "page.html", "--train-pictures", data, "--test-pictures", data]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return place / "page.html"


def make_sound_page(fungi: str, source: pathlib.Path, place: pathlib.Path) -> pathlib.Path | None:
    """A page with clips that can be heard; none where the program was built without sounds."""
    make_clips(place / "clips")
    extract = [fungi, "extract", place / "clips", "-q", "-m", source / "tests/golden/backbone/hf_ast", "--objectives", "kl:width=16"]
    result = subprocess.run([*extract, "-o", place / "heard"], capture_output=True, text=True)
    if "was built without" in result.stderr:
        return None
    if result.returncode:
        raise RuntimeError(result.stderr)
    for command in ([*extract, "-o", place / "heard_test", "--like", place / "heard"],
                    [fungi, "report", place / "heard", place / "heard_test", "-k", "3", "-o", place / "sounds.html",
                     "--train-pictures", place / "clips", "--test-pictures", place / "clips"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return place / "sounds.html"


# Every clip must be one that the browser can play.
LISTEN = """<script>addEventListener("load", () => {
  const clips = [...document.querySelectorAll("audio")], buttons = document.querySelectorAll("[data-play]");
  if (!clips.length || !buttons.length) console.error("no clips");
  for (const button of buttons) if (!document.getElementById(button.dataset.play)) console.error("a button without its clip");
  for (const clip of clips) {
    clip.addEventListener("error", () => console.error("broken clip: " + clip.id));
    clip.preload = "auto", clip.load();
  }
});</script></body>"""


def make_segment_page(fungi: str, source: pathlib.Path, place: pathlib.Path) -> pathlib.Path:
    data = source / "tests/golden/segment"
    subprocess.run([fungi, "segment", data / "pairs/train", data / "pairs/test", "-m", data / "model.safetensors", "--set", "heads=4", "--set", "family=vit",
                    "--size", "40x56", "-k", "7", "-o", place / "segment", "-q"], check=True, stdout=subprocess.DEVNULL)
    return place / "segment/index.html"


def make_compared_page(fungi: str, source: pathlib.Path, place: pathlib.Path) -> pathlib.Path:
    for split in ("train", "test"):
        (place / "data/flowers").mkdir(parents=True, exist_ok=True)
        (place / "data/flowers" / split).symlink_to((source / "demo/images" / split).resolve())
    done = subprocess.run([fungi, "reproduce", "classes", "--data", place / "data", "--use", f"deit-b16={source / 'demo/model.safetensors'}", "--limit", "20",
                           "--work", place / "work", "--page", place / "compared.html"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return place / "compared.html"


def judge(browser: str, page: pathlib.Path, damages: dict[str, tuple[str, str]]) -> list[str]:
    """The page must be right, and each damage to it noticed."""
    text = page.read_text()
    wrong = [f"{page.name}: {problem}" for problem in problems(browser, page, text)]
    for name, (old, new) in damages.items():
        if old not in text:
            wrong.append(f"{name}: {page.name} has no {old!r} to damage")
            continue
        if not problems(browser, page, text.replace(old, new, 1)):
            wrong.append(f"{page.name}: {name} went unnoticed")
    return wrong


def main() -> int:
    browser = os.environ.get("FUNGI_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("skipped: no Chromium; `make test-browser` installs it, FUNGI_BROWSER names another one")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        damages = {
            "a script that throws": ("<script>", "<script>throw new Error('on purpose');</script><script>"),
            "a script cut short": ('document.documentElement.dataset.ready = "yes"', "null.missing"),
            "a broken picture": ("data:image/webp;base64,UklGR", "data:image/webp;base64,AAAAA"),
            "something from outside": ("<main>", '<main><img alt="" src="http://example.invalid/x.png">'),
        }
        fungi, source, place = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(folder)
        wrong = judge(browser, make_page(fungi, source, place), damages)
        damages["a broken mask"] = ("data:image/png;base64,iVBOR", "data:image/png;base64,AAAAA")
        del damages["a broken picture"]  # pictures under masks are backgrounds
        wrong += judge(browser, make_segment_page(fungi, source, place), damages)
        del damages["a broken mask"]  # it has no pictures, but figures
        wrong += judge(browser, make_compared_page(fungi, source, place), damages)
        sounds = make_sound_page(fungi, source, place)
        if sounds:
            text = sounds.read_text().replace("</body>", LISTEN)
            wrong += [f"the page of sounds: {problem}" for problem in problems(browser, sounds, text)]
            broken = text.replace("data:audio/wav;base64,UklGR", "data:audio/wav;base64,AAAAA", 1)
            if broken == text or not problems(browser, sounds, broken):
                wrong.append("a broken clip went unnoticed")
    print("\n".join(wrong) or "the page is right, and damaged pages are noticed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
