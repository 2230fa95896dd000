#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/input/texts.json: lists of texts as Python's csv and json modules write them, and what these
modules read in them. A developer's tool.

Each case: the file's name and content, and per row the line where it begins (counted from 1), label and text. Blank lines
are no rows."""
import csv
import io
import json
import pathlib
import random

OUT = pathlib.Path(__file__).parent / "input/texts.json"

TEXTS = ["plain", "two words", "a, b and c", "semicolon; colon:", 'He said "yes"', '"all quoted"', '"begins" so', "ends \"so\"",
         'a"b', '""', '"', "''", "  blanks around  ", "", "\\backslash\\n", "caf\u00e9 \u4e16\u754c \U0001f468\u200d\U0001f469\u200d\U0001f467",
         "#hash", "{\"json\": 1}", "zero\u00adwidth\ufeffmark", "=1+1", "line separator\u2028inside", "null", "None", "123", "1,5"]
BROKEN = TEXTS + ["two\nlines", "three\n\nlines", "ends with a line\n", "\nbegins with one", 'a "quoted"\nline, with comma',
                  "carriage\rreturn", "dos\r\nline"]
TABBED = BROKEN + ["a\ttab", "\ttab first"]
LABELS = ["spam", "ham", "no answer"]


def rows_of(content, delimiter, header):
    lines = content.removeprefix("\ufeff")
    reader, begun, rows = csv.reader(io.StringIO(lines, newline=""), delimiter=delimiter), 1, []
    for cells in reader:
        if cells and cells != [""] and (begun > 1 or not header):
            rows.append([begun, *cells])
        begun = reader.line_num + 1
    return rows


def table(name, texts, *, header=("text", "label"), delimiter=",", mark=False, **dialect):
    random.seed(name)
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, **dialect)
    if header:
        writer.writerow(header)
    text_first = not header or header[0] == "text"
    for text in random.sample(texts, len(texts)):
        row = [text, random.choice(LABELS)]
        writer.writerow(row if text_first else row[::-1])
    content = ("\ufeff" if mark else "") + out.getvalue()
    found = [[line, *(cells if text_first else cells[::-1])] for line, *cells in rows_of(content, delimiter, header)]
    assert sorted(text for _, text, _ in found) == sorted(texts), name
    return {"name": name, "content": content, "rows": found}


def bare(name):
    """A row in each line, a tab behind each label, and quotes wherever the text has some."""
    content = "".join(f"{LABELS[i % 3]}\t{text}\n" for i, text in enumerate(TEXTS))
    cells = [line.split("\t") for line in content.split("\n")[:-1]]
    return {"name": name, "content": content, "rows": [[i + 1, text, label] for i, (label, text) in enumerate(cells)]}


def written(name, content, delimiter):
    """Not what a writer writes, but what its reader reads."""
    return {"name": name, "content": content, "rows": rows_of(content, delimiter, True)}


def json_lines(name, **options):
    rows = [{"text": text, "label": LABELS[i % 3]} for i, text in enumerate(TABBED)]
    content = "".join(json.dumps(row, **options) + "\n" for row in rows)
    found = [json.loads(line) for line in content.split("\n") if line]
    return {"name": name, "content": content, "rows": [[i + 1, row["text"], row["label"]] for i, row in enumerate(found)]}


def lines(name, content):
    found = list(io.StringIO(content, newline=None))
    return {"name": name, "content": content,
            "rows": [[i + 1, line.removesuffix("\n"), ""] for i, line in enumerate(found) if line.strip(" \t\n")]}


ODD = 'text,label\n"a"b,x\n"a"b"c,x\na"b"c,x\n "a",x\n"a" ,x\n"",x\n"""",x\n"""a""",x\n\n\n"a,b",x\r\nc,x\rd,x\n"e\r\nf",x\n"g\rh",x'


def main():
    cases = [table("minimal.csv", TABBED),
             table("swapped.csv", TABBED, header=("label", "text")),
             table("unix.csv", [t for t in TABBED if t != "carriage\rreturn"], lineterminator="\n"),  # it quotes no other line ends
             table("mac.csv", TEXTS, lineterminator="\r"),
             table("all.csv", TABBED, quoting=csv.QUOTE_ALL),
             table("marked.csv", TABBED, mark=True),
             table("tabs.csv", TEXTS, delimiter="\t"),
             table("minimal.tsv", TEXTS, delimiter="\t", lineterminator="\n"),
             table("dos.tsv", TEXTS, delimiter="\t"),
             table("all.tsv", TABBED, delimiter="\t", quoting=csv.QUOTE_ALL),
             bare("bare.tsv"),
             written("odd.csv", ODD, ","),
             json_lines("ascii.jsonl"), json_lines("raw.ndjson", ensure_ascii=False),
             lines("plain.txt", "one\n two \n\nthree, \"four\"\r\nfive\rsix\n\t\n\tseven\n\u2028eight\u2028\nlabel\ttext")]
    OUT.write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
