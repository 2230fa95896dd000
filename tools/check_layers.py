#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when an #include points the wrong way through the house (HACKING.md, "The map")."""
import pathlib
import re
import sys

ALLOWED = {  # room -> the rooms it may include, besides itself
    "base": "",
    "kernel": "base",
    "checkpoint": "base",
    "input": "base",
    "view": "base input",
    "backbone": "base kernel checkpoint",
    "search": "base kernel checkpoint",
    "objective": "base kernel search",
    "projection": "base kernel checkpoint",
    "pca": "base kernel checkpoint",
    "store": "base checkpoint",
    "feature": "base kernel checkpoint input view backbone objective projection pca store",
    "retrieve": "base kernel checkpoint projection store feature search",
    "evaluate": "base kernel checkpoint pca store feature search",
    "report": "base input store feature search evaluate",
}


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    wrong = []
    for file in sorted((root / "fungi").glob("*/*")):
        if file.suffix not in (".h", ".cpp"):
            continue
        room = file.parent.name
        if room not in ALLOWED:
            wrong.append(f"{file}: unknown room '{room}'; add it to {__file__}")
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            target = re.match(r'\s*#include "fungi/(\w+)/', line)
            if target and target[1] != room and target[1] not in ALLOWED[room].split():
                wrong.append(f"{file}:{number}: '{room}' must not include '{target[1]}'")
    print("\n".join(wrong) or "layers hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
