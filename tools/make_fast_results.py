#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/fast.md and docs/fast.svg: accuracy against cost of fewer and smaller views, and what `--preset fast` is.

    tools/make_fast_results.py --data FOLDER --work FOLDER [--fungi build/fungi] [--baseline FOLDER]

FOLDER/images/<set>/{train,test}/<class>/*.jpg and FOLDER/weights/deit_tiny_patch16_224.safetensors are read. Stores and
figures stay in --work: a second run costs what is new. --baseline is the --work of tools/make_results.py, whose stores in
bf16, int8 and f32 have what the preset is measured against; without it those parts are left out by name. Needs nothing but
python3.
"""
import argparse
import pathlib

import fast_tables
from fast_study import GROUPS, FastStudy
from results_study import SETS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--baseline", type=pathlib.Path)
    parser.add_argument("--fungi", default=str(root / "build" / "fungi"))
    parser.add_argument("--output", type=pathlib.Path, default=root / "docs" / "fast.md")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--only", choices=[*GROUPS, "preset"], nargs="+",
                        help="extract these stores and write no page: some of the curves, or the preset on all pictures")
    parser.add_argument("--figures-only", action="store_true", help="use the stores as they are, extract nothing")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    study = FastStudy(args)
    if not args.figures_only:
        study.extract_curves([g for g in GROUPS if not args.only or g in args.only])
        if not args.only or "preset" in args.only:
            study.extract_preset_sample()
            study.extract_preset()
    if not args.only:
        fast_tables.write(study, args.output)
        print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
