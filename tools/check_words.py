#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a text of the library speaks as the command line does: options and verbs are named by words (fungi/base/words.h), which
each face shows under its own names. Every word has to stand in app/words.cpp, and what stands there has to be used and to exist."""
import pathlib
import re
import sys

STRING = r'"(?:[^"\\\n]|\\.)*"'
TOKENS = re.compile(rf'R"\((.*?)\)"|({STRING})|//[^\n]*|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)\'', re.S)
WORD = re.compile(r"`([a-z_]+)(?:\[[^\]`]*\])?(?:`|=)")


def literals(text: str) -> list[tuple[int, str]]:
    """String literals with their line; those side by side are one."""
    found, end = [], 0
    for token in TOKENS.finditer(text):
        if token[2] is None:
            continue
        body = token[2][1:-1]
        if found and text[end:token.start()].strip() == "":
            found[-1] = (found[-1][0], found[-1][1] + body)
        else:
            found.append((text.count("\n", 0, token.start()) + 1, body))
        end = token.end()
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    app = "".join(file.read_text() for file in sorted((root / "app").glob("*.cpp")) if file.name != "words.cpp")
    options = set(re.findall(r'"(?:-\w,)?(--?[\w-]+)[",]', app)) | set(re.findall(r'"(-\w)[",]', app))
    verbs = set(re.findall(r'add_subcommand\(\s*"(\w+)"', app))
    table = dict(re.findall(r'\{"(\w+)",\s*"([^"]+)"\}', (root / "app/words.cpp").read_text()))
    wrong = [f"app/words.cpp: '{word}' is '{said}', which there is not" for word, said in table.items()
             if said not in options and said not in {f"'fungi {verb}'" for verb in verbs}]
    names = "|".join(sorted((re.escape(o) for o in options), key=len, reverse=True))
    spoken = re.compile(rf"(?<![\w-])(?<!var\()({names})(?![\w-]|:[^ ])|[`']fungi ({'|'.join(sorted(verbs))})\b")
    used = set()
    for file in sorted(path for path in (root / "fungi").glob("*/*") if path.suffix in (".h", ".cpp")):
        for line, text in literals(file.read_text()):
            for found in spoken.finditer(text):
                wrong.append(f"{file}:{line}: '{found[0]}' is the command line's word; see fungi/base/words.h")
            for word in WORD.findall(text):
                used.add(word)
                if word not in table:
                    wrong.append(f"{file}:{line}: `{word}` is no word that app/words.cpp knows")
    wrong += [f"app/words.cpp: '{word}' is used nowhere" for word in table if word not in used]
    print("\n".join(wrong) or "words hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
