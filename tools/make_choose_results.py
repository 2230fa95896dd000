#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results-choose.md: what `fungi choose` is worth, and what the default settings should be by that evidence.

    tools/make_choose_results.py --data FOLDER --work FOLDER [--fungi build/fungi] [--output docs/results-choose.md]

Uses the stores of tools/make_results.py, in the same --work, and extracts what is not there (the long part; it goes on where it was
stopped). Every set of blocks and weights is scored on the test pictures here, by numpy, apart from fungi; choose sees training rows
alone. Sets that are not finished are left out by name. Needs python3 and numpy.
"""
import argparse
import itertools
import pathlib

import numpy as np
from results_study import LABELS, MAIN, SEEDS, SETS, WIDTH, Study, deviation, mean, table

NAMES = ("kl", "dino", "simclr")
WEIGHTS = (0, 0.25, 0.5, 1, 2)
GRID = [np.array((1, *w)) for w in itertools.product(WEIGHTS, repeat=len(NAMES))]
K = 20
ROWS = (WIDTH, 4 * WIDTH, 16 * WIDTH)


def block(store, name):
    rows = np.concatenate([np.load(f) for f in sorted(store.glob(f"{name}-?????.npy"))]).astype(np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


def labels(store):
    import json
    return np.array([json.loads(line)["label"] for f in sorted(store.glob("rows-*.jsonl")) for line in open(f)])


def name_of(weights, names):
    return "+".join(n if w == 1 else f"{w:g}*{n}" for n, w in zip(("embedding", *names), weights) if w)


class Draw:
    """One set, one draw of heads and projection: the accuracy of every combination on the test pictures."""

    def __init__(self, study, name, rows, draw):
        self.names = [n + LABELS[draw] for n in NAMES]
        self.folder = study.projected(name, "sign", rows, SEEDS[draw])
        train, test = self.folder / "train", self.folder / "test"
        products = [block(test, n) @ block(train, n).T for n in ("embedding", *self.names)]
        near, truth = labels(train), labels(test)
        self.test = len(truth)
        self.accuracy = {}
        for weights in GRID:
            scores = sum(w * w * p for w, p in zip(weights, products) if w)
            votes = near[np.argsort(-scores, axis=1, kind="stable")[:, :K]]
            counts = np.stack([(votes == c).sum(1) for c in range(near.max() + 1)], 1)
            self.accuracy[tuple(weights)] = float((counts.argmax(1) == truth).mean())
        self.choice = study.fungi.figures("choose", train, "--features", "+".join(("embedding", *self.names)), "-k", K)

    def of(self, *weights):
        return self.accuracy[(1, *weights)]

    def chosen(self):
        named = {name_of(w, self.names): a for w, a in self.accuracy.items()}
        return named[self.choice["chosen"]["features"]]


def points(values, digits=1):
    text = f"{100 * mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {100 * deviation(values):.{digits}f}"


def available(study, name):
    """How many draws of heads the stores of a set hold."""
    store = study.work / MAIN / name / "train"
    return max((i + 1 for i, label in enumerate(LABELS) if all((store / f"{n}{label}-00000.npy").exists() for n in NAMES)), default=0)


def write(study):
    sets = [s for s in study.finished() if available(study, s)]
    if not sets:
        raise SystemExit("results: no set is finished yet; run this again")
    draws = {s: available(study, s) for s in sets}
    made = {rows: {s: [Draw(study, s, rows, d) for d in range(draws[s])] for s in sets} for rows in ROWS}
    out = [INTRODUCTION.format(k=K, sets=", ".join(f"{s} ({draws[s]})" for s in sets))]
    missing = [s for s in study.sets if s not in sets]
    if missing:
        out.append(f"**Not finished, and left out: {', '.join(missing)}.** The same command goes on with them.\n")
    cases = {"embedding": lambda d: d.of(0, 0, 0), "+K": lambda d: d.of(1, 0, 0), "+D": lambda d: d.of(0, 1, 0),
             "+S": lambda d: d.of(0, 0, 1), "+K+D": lambda d: d.of(1, 1, 0), "+D+S": lambda d: d.of(0, 1, 1),
             "+K+D+S": lambda d: d.of(1, 1, 1), "`choose`, on training rows alone": Draw.chosen,
             "best of all 125 on the test pictures": lambda d: max(d.accuracy.values())}
    for rows in ROWS:
        lines = []
        for case, value in cases.items():
            found = [[value(d) for d in made[rows][s]] for s in sets]
            lines.append([case, *map(points, found), f"**{100 * mean([mean(f) for f in found]):.1f}**"])
        out.append(f"## Accuracy, {rows} rows of projection\n\n" + table(["features", *sets, "mean"], lines))
    lines = []
    for s in sets:
        for d in made[WIDTH][s][:1]:
            gain, error = d.choice["expected_gain"], d.choice["expected_error"]
            lines.append([s, f"`{d.choice['chosen']['features']}`", f"{100 * gain:+.1f} ± {100 * error:.1f}",
                          f"{100 * (d.chosen() - d.of(0, 0, 0)):+.1f}", f"{100 * (d.chosen() - max(d.accuracy.values())):+.1f}"])
    out.append("## What it chose\n\nThe first draw, as many rows as the embedding has columns.\n\n"
               + table(["set", "choice", "gain that it promises", "gain on the test pictures", "beside the best on them"], lines))
    short = mean([mean([max(d.accuracy.values()) - d.chosen() for d in made[WIDTH][s]]) for s in sets])
    out.append(f"In the mean the choice is {100 * short:.2f} points below the best combination on the test pictures, which nobody can know: the best of "
               "125 on the pictures that judge it is flattered by chance.\n")
    return "\n".join(out)


INTRODUCTION = """# Which gradients: evidence

Written by `tools/make_choose_results.py`. DeiT-tiny/16, bf16, the sets of [results.md](results.md); top-1 accuracy in percent of the {k} nearest
training pictures, without PCA. Sets, and how many draws of heads and projection: {sets}. ± is the standard deviation over draws. K, D, S: KL,
DINO, SimCLR, each block of length 1 with weight 1. `choose` picks from the weights 0, 0.25, 0.5, 1 and 2 of each by the training rows alone.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fungi", default=str(root / "build" / "fungi"))
    parser.add_argument("--output", type=pathlib.Path, default=root / "docs" / "results-choose.md")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--figures-only", action="store_true", help="use the stores as they are, extract nothing")
    args = parser.parse_args()
    study = Study(args)
    if not args.figures_only:
        everything = [o + label for o in NAMES for label in LABELS]
        for name in study.sets:
            for split in ("train", "test"):
                study.extract(name, MAIN, split, "--precision", MAIN, "--keep-factors", "--objectives", *everything, "-j", args.threads)
    args.output.write_text(write(study))
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
