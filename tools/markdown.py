#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long lines of prose in Markdown, made shorter in place: tools/markdown.py FILE... Tables, code and headings stay as they are."""
import pathlib
import re
import sys
import textwrap

WIDTH, LONGEST = 140, 150
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.) ")


def prose(text):
    """Numbered lines that may be broken."""
    code = False
    for number, line in enumerate(text.split("\n")):
        if line.startswith("```"):
            code = not code
        elif not code and not line.startswith(("|", "#", "!")):
            yield number, line


def wrapped(text):
    lines = text.split("\n")
    for number, line in prose(text):
        if len(line) <= LONGEST:
            continue
        item = ITEM.match(line)
        indent = " " * (len(item[0]) if item else len(line) - len(line.lstrip()))
        for width in range(WIDTH, WIDTH - 30, -1):
            parts = textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
            if not any(ITEM.match(part) for part in parts[1:]):  # a line that begins with a dash would be a list
                lines[number] = "\n".join(parts)
                break
    return "\n".join(lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = pathlib.Path(name)
        file.write_text(wrapped(file.read_text()))
