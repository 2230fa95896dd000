#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results.md: what the features are worth with a real backbone on real data.

    tools/make_results.py --data FOLDER --work FOLDER [--fungi build/fungi] [--output docs/results.md]

FOLDER/images/<set>/{train,test}/<class>/*.jpg and FOLDER/weights/deit_tiny_patch16_224.safetensors
are read. Extraction is the long part (62 forward passes per picture and 12544 for the negatives of
each set; hours on two cores without matrix tiles); the stores in --work are resumed, and every
figure is kept there, so repeating the command costs what is new. Sets that are not finished are
left out by name. Needs nothing but python3.
"""
import argparse
import pathlib

import results_tables
from markdown import wrapped
from results_study import SETS, Study


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fungi", default=str(root / "build" / "fungi"))
    parser.add_argument("--output", type=pathlib.Path, default=root / "docs" / "results.md")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--precisions-only", action="store_true",
                        help="write only the table that sets precisions side by side anew, from the stores that are there")
    parser.add_argument("--figures-only", action="store_true", help="use the stores as they are, extract nothing")
    args = parser.parse_args()
    study = Study(args)
    if not args.figures_only and not args.precisions_only:
        study.extract_all()
    if args.precisions_only:
        args.output.write_text(wrapped(results_tables.rewrite_precisions(study, args.output.read_text())))
    else:
        args.output.write_text(wrapped(results_tables.write(study)))
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
