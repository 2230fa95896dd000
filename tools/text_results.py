#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results-text.md: what the features are worth for texts, with the real MiniLM.

    tools/text_results.py --data FOLDER --work FOLDER [--fungi build/fungi] [--output docs/results-text.md]

FOLDER/text/<set>/{train,test}.tsv (label, tab, text) and the model folder FOLDER/weights/all-MiniLM-L6-v2 are read.
--train and --test take so many texts of each split, evenly spread (0: all); the page says how many. The stores in
--work are resumed, and every figure is kept there. What is not finished is left out by name. Needs nothing but python3.
"""
import argparse
import pathlib

import text_tables
from markdown import wrapped
from text_study import SHOTS, TextStudy


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fungi", default=str(root / "build" / "fungi"))
    parser.add_argument("--output", type=pathlib.Path, default=root / "docs" / "results-text.md")
    parser.add_argument("--sets", nargs="+", default=list(SHOTS))
    parser.add_argument("--train", type=int, default=0, help="texts of each training split; 0: all")
    parser.add_argument("--test", type=int, default=0, help="the same of each test split")
    parser.add_argument("--draws", type=int, default=3, choices=(1, 2, 3), help="of the heads")
    parser.add_argument("--figures-only", action="store_true", help="use the stores as they are, extract nothing")
    args = parser.parse_args()
    study = TextStudy(args)
    if not args.figures_only:
        study.extract_all()
    args.output.write_text(wrapped(text_tables.write(study)))
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
