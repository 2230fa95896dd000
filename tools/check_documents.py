#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/*.md against the program: check_documents.py ROOT FUNGI COMPILER

Every `fungi ...` line of their sh blocks is run, and every python block where numpy is installed (those that import fungi are run by
python/tests/test_documents.py), in order, in a scratch folder that
holds what the documents speak of: a model, pictures/train, pictures/test, scenes with masks, and folders of data sets and checkpoints of which the paper's
tables know none. $ENDPOINT is the address of a server on loopback that answers as a language model's; the hub of `fungi pull` is another.
`fungi serve` runs on a free port until the next one, for the `curl` lines behind it. Each command must exit with 0. Their
cpp blocks must compile. The table of docs/numerics.md must name every file with a DEVIATION: mark, and no other."""
import contextlib
import importlib.util
import math
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import wave

NUMPY = importlib.util.find_spec("numpy") is not None


def blocks(text: str, *languages: str):
    return re.findall(rf"```({'|'.join(languages)})\n(.*?)```", text, re.S)


def commands(document: pathlib.Path, binary: pathlib.Path):
    """What is shown, and the command that runs it."""
    for language, block in blocks(document.read_text(), "sh", "python"):
        if language == "python":
            if NUMPY and document.name != "python.md" and "import fungi" not in block:
                yield block, [sys.executable, "-c", block]
            continue
        for line in block.replace("\\\n", " ").splitlines():
            line = line.split(" #")[0].strip()
            if line.startswith("curl "):
                yield line, ["sh", "-c", line.replace("curl ", "curl --fail --max-time 60 ", 1)]
            if line.startswith("fungi ") or line.startswith("FUNGI_ISA="):
                yield line, ["sh", "-c", line.replace("fungi ", f"{shlex.quote(str(binary))} ", 1)]


def prepare(place: pathlib.Path, root: pathlib.Path) -> None:
    (place / "model").mkdir()
    for name in ("model.safetensors", "config.json"):
        shutil.copy(root / "demo" / name, place / "model")
    for split in ("train", "test"):
        for folder in sorted((root / "demo/images" / split).iterdir())[:3]:
            target = place / "pictures" / split / folder.name
            target.mkdir(parents=True)
            for file in sorted(folder.iterdir())[:8]:
                shutil.copy(file, target)
    for name in ("datasets", "checkpoints"):
        (place / name).mkdir()
    shutil.copytree(root / "tests/golden/segment/pairs", place / "scenes")
    prepare_texts(place, root / "tests/golden/backbone/bert_mean")
    prepare_sounds(place, root / "tests/golden/backbone/hf_ast")


def prepare_sounds(place: pathlib.Path, model: pathlib.Path) -> None:
    (place / "sound-model").mkdir()
    for name in ("model.safetensors", "config.json"):
        shutil.copy(model / name, place / "sound-model")
    lines = ["file,label,fold"]
    for name, hertz in (("low", 200), ("high", 3000)):
        (place / "clips" / name).mkdir(parents=True)
        for i in range(12):
            with wave.open(str(place / "clips" / name / f"{i}.wav"), "wb") as clip:
                clip.setnchannels(1), clip.setsampwidth(2), clip.setframerate(16000)
                clip.writeframes(b"".join(int(9000 * math.sin(n * hertz * (1 + i / 50) * 6.2832 / 16000)).to_bytes(2, "little", signed=True)
                                          for n in range(4000)))
            lines.append(f"{name}/{i}.wav,{name},{1 + i % 3}")
    (place / "clips/list.csv").write_text("\n".join(lines) + "\n")


def prepare_texts(place: pathlib.Path, model: pathlib.Path) -> None:
    (place / "sentence-model").mkdir()
    for name in ("model.safetensors", "config.json"):
        shutil.copy(model / name, place / "sentence-model")
    words = "how do i locate my card where is it lost a new one who what when was born in".split()
    (place / "sentence-model/vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "?"]))
    (place / "questions").mkdir()
    for split, count in (("train", 24), ("test", 8)):
        lines = [f"{'card' if i % 2 else 'person'}\t{'where is my' if i % 2 else 'who was'} {words[i % len(words)]} {words[i % 7]} ?"
                 for i in range(count)]
        (place / "questions" / f"{split}.tsv").write_text("\n".join(lines) + "\n")


@contextlib.contextmanager
def language_model(root: pathlib.Path):
    """The address of a server that answers as a language model's."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([sys.executable, root / "tests/app/language_model.py", folder, "good"])
        try:
            port = pathlib.Path(folder) / "port"
            for _ in range(400):
                if port.exists():
                    break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port.read_text()}/v1"
        finally:
            server.kill()
            server.wait()


@contextlib.contextmanager
def model_hub(root: pathlib.Path):
    """The address of a hub that has the demo's model under another name."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "models/facebook/dino-vits16"
        place.mkdir(parents=True)
        for name in ("model.safetensors", "config.json"):
            shutil.copy(root / "demo" / name, place)
        server = subprocess.Popen([sys.executable, root / "tests/hub/hub_server.py", folder])
        try:
            ports = pathlib.Path(folder) / "ports"
            for _ in range(400):
                if ports.exists():
                    break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{ports.read_text().split()[0]}"
        finally:
            server.kill()
            server.wait()


@contextlib.contextmanager
def servers():
    """Starts `fungi serve` for the commands that follow, on a free port: gives a function that says its address, or why there is none."""
    running = []

    def start(command, place, environment):
        while running:
            stop(running.pop())
        command = [*command[:-1], "exec " + re.sub(r" --port \d+", "", command[-1]) + " --port 0"]
        running.append(subprocess.Popen(command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return running[0].stdout.readline().strip()

    def stop(server):
        server.terminate()
        server.wait(60)
        server.stdout.close()

    try:
        yield start
    finally:
        while running:
            stop(running.pop())


def run_commands(documents, root: pathlib.Path, binary: pathlib.Path, endpoint: str, hub: str) -> str:
    count = 0
    for document in documents:
        with tempfile.TemporaryDirectory() as folder, servers() as serve:
            place, address = pathlib.Path(folder), ""
            prepare(place, root)
            environment = {**os.environ, "ENDPOINT": endpoint, "HF_ENDPOINT": hub, "FUNGI_HOME": str(place / "fungi-home")}
            for shown, command in commands(document, binary):
                count += 1
                if shown.startswith("fungi serve "):
                    address = serve(command, place, environment)
                    if "has no server" in address:
                        print(f"left out, and what follows: {address}")
                    elif not address.startswith("http"):
                        return f"{document.name}: {shown}\n{address}"
                    continue
                if shown.startswith("curl "):
                    if not shutil.which("curl") or not address.startswith("http"):
                        continue
                    command = [*command[:-1], command[-1].replace("http://127.0.0.1:8080", address)]
                result = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, env=environment)
                if result.returncode:
                    return f"{document.name}: {shown}\nexit {result.returncode}\n{result.stderr}"
    print(f"{count} commands ran as shown" + ("" if NUMPY else "; numpy is not installed: Python was not run"))
    return "" if count else "found no commands"


def compile_cpp(documents, root: pathlib.Path, compiler: str) -> str:
    """All blocks as bodies of functions of one file; what they include comes first."""
    if not shutil.which(compiler):
        return f"there is no compiler {compiler}: C++ cannot be checked"
    heads, bodies = ["#include <fungi/fungi.h>"], []
    for document in documents:
        for _, block in blocks(document.read_text(), "cpp"):
            lines = block.splitlines()
            heads += [line for line in lines if line.startswith("#include")]
            body = "\n".join("" if line.startswith("#include") else line for line in lines)
            bodies.append(f'void shown_{len(bodies)}() {{\n#line 1 "C++ of {document.name}"\n{body}\n}}')
    command = [compiler, "-std=c++20", "-fsyntax-only", "-I", root, "-x", "c++", "-"]
    result = subprocess.run(command, input="\n".join(heads + bodies), capture_output=True, text=True)
    print(f"{len(bodies)} blocks of C++ read")
    if result.returncode:
        return result.stderr or f"{compiler} ended with {result.returncode}"
    return "" if bodies else "found no C++"


def compare_deviations(root: pathlib.Path) -> str:
    marked = {f.name for room in ("fungi", "app") for f in (root / room).rglob("*.*")
              if f.suffix in (".h", ".cpp") and "DEVIATION:" in f.read_text()}
    rows = [line for line in (root / "docs/numerics.md").read_text().splitlines() if line.startswith("|")]
    named = {name for row in rows for name in re.findall(r"`(\w+\.(?:h|cpp))`", row.split("|")[-2])}
    return "\n".join([f"{name}: DEVIATION: without a row in docs/numerics.md" for name in sorted(marked - named)] +
                     [f"docs/numerics.md names {name}, which has no DEVIATION:" for name in sorted(named - marked)])


def main() -> int:
    root, binary, compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    documents = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    with language_model(root) as endpoint, model_hub(root) as hub:
        wrong = (compare_deviations(root) or compile_cpp(documents, root, compiler) or
                 run_commands(documents, root, binary, endpoint, hub))
    print(wrong or "the documents hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
