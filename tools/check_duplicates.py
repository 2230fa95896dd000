#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when more than 12 equal lines stand twice in fungi/ and app/, or a file has more than 400.

Lines are equal after their outer spaces are gone; blank ones, comments and includes do not count."""
import collections
import pathlib
import sys

LONGEST_RUN = 12
LONGEST_FILE = 400
SKIPPED = ("//", "#include", "#pragma once")


def sources(root: pathlib.Path, *folders: str) -> list[pathlib.Path]:
    files = (file for folder in folders for file in (root / folder).rglob("*"))
    return sorted(file for file in files if file.suffix in (".h", ".cpp", ".py"))


def lines_of(file: pathlib.Path) -> list[tuple[int, str]]:
    numbered = ((number, line.strip()) for number, line in enumerate(file.read_text().splitlines(), 1))
    return [(number, line) for number, line in numbered if line and not line.startswith(SKIPPED)]


def repeated(files: list[pathlib.Path]) -> list[str]:
    """Each run is named once, where it begins."""
    code = {file: lines_of(file) for file in files}
    places = collections.defaultdict(list)  # of runs that are one line too long
    for file, lines in code.items():
        for i in range(len(lines) - LONGEST_RUN):
            run = tuple(line for _, line in lines[i : i + LONGEST_RUN + 1])
            places[run].append((file, i))
    found = []
    for run, all_places in places.items():
        first, at = all_places[0]
        for second, other in all_places[1:]:
            if at and other and code[first][at - 1][1] == code[second][other - 1][1]:
                continue  # it began before
            found.append(f"{second}:{code[second][other][0]}: stands at {first}:{code[first][at][0]}, too: {run[0]}")
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    wrong = repeated(sources(root, "fungi", "app"))
    for file in sources(root, "fungi", "app", "tests", "examples", "bench", "tools"):
        length = len(file.read_text().splitlines())
        if length > LONGEST_FILE:
            wrong.append(f"{file}: has {length} lines, more than {LONGEST_FILE}")
    print("\n".join(wrong) or "nothing stands twice, no file is too long")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
