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
import json
import math
import pathlib

import numpy as np
from markdown import wrapped
from results_study import LABELS, MAIN, SEEDS, SETS, WIDTH, Study, deviation, mean, table

NAMES = ("kl", "dino", "simclr")
WEIGHTS = (0, 0.25, 0.5, 1, 2)
GRID = [(1, *w) for w in itertools.product(WEIGHTS, repeat=len(NAMES))]
K = 20
NAMED = {"embedding": (1, 0, 0, 0), "+K": (1, 1, 0, 0), "+D": (1, 0, 1, 0), "+S": (1, 0, 0, 1), "+K+D": (1, 1, 1, 0),
         "+K+S": (1, 1, 0, 1), "+D+S": (1, 0, 1, 1), "+K+D+S": (1, 1, 1, 1)}
CHOICE = "`choose`"


def block(store, name):
    rows = np.concatenate([np.load(f) for f in sorted(store.glob(f"{name}-?????.npy"))]).astype(np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


def labels(store):
    return np.array([json.loads(line)["label"] for f in sorted(store.glob("rows-*.jsonl")) for line in open(f)])


def name_of(weights, names):
    return "+".join(n if w == 1 else f"{w:g}*{n}" for n, w in zip(("embedding", *names), weights) if w)


class Draw:
    """One set, one draw of heads and projection: which test pictures every combination has right, and what choose took."""

    def __init__(self, study, precision, name, rows, draw):
        self.names = [n + LABELS[draw] for n in NAMES]
        folder = study.projected(name, "sign", rows, SEEDS[draw], precision)
        train, test = folder / "train", folder / "test"
        products = [block(test, n) @ block(train, n).T for n in ("embedding", *self.names)]
        near, truth = labels(train), labels(test)
        self.right = {}
        for weights in GRID:
            scores = sum(w * w * p for w, p in zip(weights, products) if w)
            votes = near[np.argpartition(-scores, K, axis=1)[:, :K]]
            counts = np.stack([(votes == c).sum(1) for c in range(near.max() + 1)], 1)
            self.right[weights] = counts.argmax(1) == truth
        self.choice = study.fungi.figures("choose", train, "--features", "+".join(("embedding", *self.names)), "-k", K)
        named = {name_of(w, self.names): w for w in GRID}
        self.chosen = named[self.choice["chosen"]["features"]]

    def of(self, weights):
        return float(self.right[weights].mean())

    def best(self):
        return max(self.of(w) for w in GRID)

    def fair_best(self):
        """The best by half of the test pictures on the other half: without the luck of being judged by what it was chosen by."""
        parts = np.arange(len(self.right[GRID[0]])) % 2
        score = {h: {w: self.right[w][parts == h].mean() for w in GRID} for h in (0, 1)}
        return mean([score[1 - h][max(GRID, key=lambda w: score[h][w])] for h in (0, 1)])

    def gain(self):
        """Of the choice over the embedding on the test pictures, and its standard error, row by row."""
        difference = self.right[self.chosen].astype(float) - self.right[GRID[0]]
        return difference.mean(), difference.std() / math.sqrt(len(difference))


def points(values, digits=1):
    text = f"{100 * mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {100 * deviation(values):.{digits}f}"


def available(study, precision, name):
    """How many draws of heads the stores of a set hold."""
    store = study.work / precision / name / "train"
    return max((i + 1 for i, label in enumerate(LABELS) if all((store / f"{n}{label}-00000.npy").exists() for n in NAMES)), default=0)


def accuracy_section(made, sets, rows):
    of_draws = {s: [d for d in made[rows][s]] for s in sets}
    cases = {case: (lambda d, w=weights: d.of(w)) for case, weights in NAMED.items()}
    cases |= {f"{CHOICE}, by training rows alone": lambda d: d.of(d.chosen), "best of all 125 on half of the test pictures, on the other half": Draw.fair_best,
              "best of all 125 on the test pictures themselves": Draw.best}
    lines = []
    for case, value in cases.items():
        found = [[value(d) for d in of_draws[s]] for s in sets]
        lines.append([case, *map(points, found), f"**{100 * mean([mean(f) for f in found]):.1f}**"])
    return f"## Accuracy, {rows} rows of projection\n\n" + table(["features", *sets, "mean"], lines)


def criterion_section(made, sets, rows):
    every = [(s, d) for s in sets for d in made[rows][s]]
    over = lambda value: mean([mean([value(d) for d in made[rows][s]]) for s in sets])
    chosen, plain = over(lambda d: d.of(d.chosen)), over(lambda d: d.of(GRID[0]))
    fixed = max(GRID, key=lambda w: over(lambda d: d.of(w)))
    compared = {f"the one combination that is best in the mean, `{name_of(fixed, NAMES)}`": over(lambda d: d.of(fixed)),
                "equal weights, `embedding+kl+dino+simclr`": over(lambda d: d.of(NAMED["+K+D+S"])),
                "the best of each set and draw by half of its test pictures, on the other half": over(Draw.fair_best),
                "the best of each set and draw on the test pictures themselves, which chance flatters": over(Draw.best)}
    lines = [[what, f"{100 * value:.2f}", f"{100 * (chosen - value):+.2f}"] for what, value in compared.items()]
    worst, draw = min(every, key=lambda e: e[1].gain()[0] / max(e[1].gain()[1], 1e-9))
    gain, error = draw.gain()
    below = sum(d.gain()[0] < -d.gain()[1] for _, d in every)
    return (f"## {CHOICE} beside the best, {rows} rows\n\nMeans over sets and draws; {CHOICE} has {100 * chosen:.2f}, the embedding {100 * plain:.2f}.\n\n"
            + table(["what is compared", "accuracy", f"{CHOICE} less this"], lines)
            + f"\nOf {len(every)} choices {below} are below the embedding by more than the standard error of that difference; the worst is "
              f"{worst} with {100 * gain:+.1f} ± {100 * error:.1f} points.\n")


def choices_section(made, sets, rows):
    lines = []
    for s in sets:
        for number, d in enumerate(made[rows][s], 1):
            gain, error = d.gain()
            promised = f"{100 * d.choice['expected_gain']:+.1f} ± {100 * d.choice['expected_error']:.1f}"
            lines.append([f"{s}, {number}", f"`{name_of(d.chosen, NAMES)}`", promised, f"{100 * gain:+.1f} ± {100 * error:.1f}",
                          f"{100 * (d.of(d.chosen) - d.fair_best()):+.1f}"])
    return f"## What it chose, {rows} rows\n\n" + table(["set, draw", "choice", "gain promised", "gain on the test pictures", "beside the best by halves"], lines)


def spread_section(made, sets, widths):
    """How much a draw of heads and projection decides, by the rows of the projection."""
    lines = []
    for rows in widths:
        row = [str(rows)]
        for case in ("+K+D+S", "+D+S"):
            of_sets = [[d.of(NAMED[case]) for d in made[rows][s]] for s in sets]
            row += [f"{100 * mean([mean(v) for v in of_sets]):.1f}", f"{100 * mean([deviation(v) for v in of_sets]):.1f}"]
        lines.append(row)
    return ("## How many rows of projection\n\n± is the standard deviation over the draws, within a set, in the mean of the sets.\n\n"
            + table(["rows", "+K+D+S", "±", "+D+S", "±"], lines))


def write(study, precision, widths):
    sets = [s for s in study.sets if study.complete(precision, s) and available(study, precision, s)]
    if not sets:
        raise SystemExit("results: no set is finished yet; run this again")
    made = {rows: {s: [Draw(study, precision, s, rows, d) for d in range(available(study, precision, s))] for s in sets} for rows in widths}
    counts = {s: (len(labels(study.work / precision / s / "train")), len(made[widths[0]][s][0].right[GRID[0]])) for s in sets}
    out = [INTRODUCTION.format(k=K, precision=precision, sets=", ".join(f"{s} {a}/{b}" for s, (a, b) in counts.items()),
                               draws=min(len(made[widths[0]][s]) for s in sets))]
    missing = [s for s in study.sets if s not in sets]
    if missing:
        out.append(f"**Not finished, and left out: {', '.join(missing)}.** The same command goes on with them.\n")
    out += [criterion_section(made, sets, rows) for rows in widths]
    out.append(choices_section(made, sets, widths[0]))
    out += [accuracy_section(made, sets, rows) for rows in widths]
    out.append(spread_section(made, sets, widths))
    return "\n".join(out)


INTRODUCTION = """# Which gradients: evidence

Written by `tools/make_choose_results.py`. DeiT-tiny/16, {precision}, the sets of [results.md](results.md); top-1 accuracy in percent of the {k}
nearest training pictures, without PCA. Training/test pictures: {sets}.
{draws} draws of heads and projection; ± is the standard deviation over them, of a gain its standard error over the test pictures. K, D, S: KL, DINO, SimCLR, each block of length 1 with weight 1. `choose` picks
from the weights 0, 0.25, 0.5, 1 and 2 of each by the training rows alone.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fungi", default=str(root / "build" / "fungi"))
    parser.add_argument("--output", type=pathlib.Path, default=root / "docs" / "results-choose.md")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--precision", default=MAIN, help="of the stores")
    parser.add_argument("--rows", type=int, nargs="+", default=[WIDTH, 4 * WIDTH, 16 * WIDTH], help="of the projection")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--figures-only", action="store_true", help="use the stores as they are, extract nothing")
    args = parser.parse_args()
    study = Study(args)
    if not args.figures_only:
        everything = [o + label for o in NAMES for label in LABELS]
        for name in study.sets:
            for split in ("train", "test"):
                study.extract(name, args.precision, split, "--precision", args.precision, "--keep-factors", "--objectives", *everything, "-j", args.threads)
    args.output.write_text(wrapped(write(study, args.precision, args.rows)))
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
