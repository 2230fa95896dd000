#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when an #include points the wrong way through the house (HACKING.md, "The map"), or out of its public face:
a header is public, and installed, when fungi/fungi.h reaches it; all others say in their first comment that they are
internal. Public headers include the standard library and each other."""
import pathlib
import re
import sys

ALLOWED = {  # room -> the rooms it may include, besides itself
    "base": "",
    "comm": "base",
    "kernel": "base",
    "checkpoint": "base",
    "token": "base checkpoint",
    "hub": "base checkpoint",
    "input": "base checkpoint",
    "view": "base token input",
    "backbone": "base kernel checkpoint",
    "search": "base comm kernel checkpoint",
    "objective": "base kernel search",
    "projection": "base kernel checkpoint",
    "pca": "base comm kernel checkpoint",
    "store": "base checkpoint",
    "feature": "base comm kernel checkpoint token input view backbone objective projection pca store",
    "retrieve": "base comm kernel checkpoint projection store feature search",
    "evaluate": "base comm kernel checkpoint input pca store feature search retrieve",
    "prompt": "base input store feature search evaluate",
    "segment": "base kernel checkpoint input view backbone search objective projection pca store feature retrieve evaluate",
    "report": "base input store feature search evaluate segment",
    "service": "base checkpoint input pca store feature search retrieve evaluate report",
}


def public_headers(root: pathlib.Path) -> set[str]:
    found, following = set(), ["fungi/fungi.h"]
    while following:
        header = following.pop()
        if header not in found:
            found.add(header)
            following += re.findall(r'^#include "(fungi/[^"]+)"', (root / header).read_text(), re.MULTILINE)
    return found


def says_internal(text: str) -> bool:
    first = re.match(r"(//.*\n)+", text)[0]
    return "Internal to " in first.replace("\n// ", " ")


def check_face(root: pathlib.Path) -> list[str]:
    wrong, public = [], public_headers(root)
    for file in sorted((root / "fungi").rglob("*.h")):
        name, text = file.relative_to(root).as_posix(), file.read_text()
        if name in public and says_internal(text):
            wrong.append(f"{file}: is internal, but fungi/fungi.h reaches it: do not include it from a public header")
        if name not in public and not says_internal(text):
            wrong.append(f"{file}: fungi/fungi.h does not reach it: include it there, or say 'Internal to this room.' "
                         "(or 'to the library.') in its first comment")
        if name in public:
            wrong += [f"{file}: a public header must not include {other}"
                      for other in re.findall(r"^#include (<[^>]*[./][^>]*>)", text, re.MULTILINE)]
    return wrong


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    wrong = check_face(root)
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
