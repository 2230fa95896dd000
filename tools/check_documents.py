#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every `fungi ...` line of the sh blocks in README.md and docs/*.md, in order, in a scratch folder that holds what the
documents speak of: a model, pictures/train, pictures/test, and folders of data sets and checkpoints of which the paper's tables know none. Each must exit with 0."""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile


def commands(text: str):
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.split(" #")[0].strip()
            if line.startswith("fungi ") or line.startswith("FUNGI_ISA="):
                yield line


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


def main() -> int:
    root, binary = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    count = 0
    for document in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            prepare(place, root)
            for line in commands(document.read_text()):
                shown = line.replace("fungi ", f"{shlex.quote(str(binary))} ", 1)
                result = subprocess.run(shown, shell=True, cwd=place, capture_output=True, text=True, timeout=120)
                count += 1
                if result.returncode:
                    print(f"{document.name}: {line}\nexit {result.returncode}\n{result.stderr}")
                    return 1
    print(f"{count} commands ran as shown")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
