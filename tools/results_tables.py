# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/results.md, from the figures of a results_study.Study."""
from results_study import LABELS, MAIN, OTHERS, SEEDS, STEPS, WIDTH, deviation, error_of_mean, features, mean, percent, table

PROJECTIONS = [("sign", WIDTH), ("sign_reference", WIDTH), ("gaussian", WIDTH), ("sparse", WIDTH), ("factored", WIDTH),
               ("sign", 4 * WIDTH), ("factored", 4 * WIDTH), ("sign", 16 * WIDTH), ("factored", 16 * WIDTH)]
RECOMMENDED = ("factored", 16 * WIDTH)


def per_set(study, head, figure, steps=STEPS):
    """Rows: steps; columns: the sets and their mean. figure(set, step) gives one value per draw."""
    sets = study.finished()
    rows = []
    for step in steps:
        columns = [figure(name, step) for name in sets]
        together = [mean(draw) for draw in zip(*columns)] if columns else [0]
        rows.append([step, *[percent(c) for c in columns], f"**{percent(together)}**"])
    return table([head, *sets, "mean"], rows)


def embedding_once(step, seeds):
    return seeds[:1] if step == "embedding" else seeds


def test_errors(study, figure):
    """One binomial standard error for each set and for their mean; figure(set) is what the command line said of the embedding."""
    errors = {s: figure(s)["standard_error"] for s in study.finished()}
    return ", ".join(f"{s} ±{100 * e:.1f}" for s, e in errors.items()) + f", mean of the sets ±{100 * error_of_mean(errors.values()):.1f}"


def knn_errors(study, *options):
    return test_errors(study, lambda name: study.knn(study.work / MAIN / name, "embedding", *options))


def knn_table(study, projection, rows, *options):
    figure = lambda name, step: study.accuracies(name, step, projection, rows, embedding_once(step, SEEDS), *options)
    return per_set(study, "features", figure)


def gains(study, projection, rows):
    """Full feature minus embedding, mean over the sets, one value per draw."""
    sets = study.finished()
    plain = mean([study.accuracies(s, "embedding", seeds=SEEDS[:1])[0] for s in sets])
    full = [mean(d) for d in zip(*[study.accuracies(s, "+K+D+S", projection, rows) for s in sets])]
    return [f - plain for f in full]


def main_section(study):
    better = gains(study, *RECOMMENDED)
    verdict = f"{100 * mean(better):+.2f} ± {100 * deviation(better):.2f} points"
    return f"""## Nearest neighbours, k = 20

Top-1 accuracy in percent. ± in the tables is the standard deviation over three draws of heads and projection, also in the
column of the mean; the crops, and the training pictures drawn as support, stay the same. The error from the number of test
pictures comes on top, one binomial standard error at the embedding's accuracy: {knn_errors(study)}. Differences between rows of
a column are on the same pictures and are steadier than that.

With the projection we recommend (`--projection {RECOMMENDED[0]} --projection-dim {RECOMMENDED[1]}`, sixteen times the width; then PCA to 512):

{knn_table(study, *RECOMMENDED)}
The full feature gains {verdict} over the embedding on the mean of the sets (± over the draws alone).

With the paper's projection (`sign`, as many rows as the embedding has columns; the default):

{knn_table(study, "sign", WIDTH)}"""


def projection_section(study):
    sets = study.finished()
    rows = []
    for kind, width in PROJECTIONS:
        cells = [[mean(d) for d in zip(*[study.accuracies(s, step, kind, width) for s in sets])] for step in STEPS[1:]]
        rows.append([kind, str(width), *[percent(c, 2) for c in cells]])
    exact = []
    for step in STEPS[1:]:
        columns = [[study.knn(study.work / MAIN / s, features(step, label), "--exact-gradients", "--pca", "0")["accuracy"] for label in LABELS]
                   for s in sets]
        exact.append([mean(d) for d in zip(*columns)])
    rows.append(["none: exact inner products", "-", *[percent(c, 2) for c in exact]])
    return f"""## What the projection costs

Mean accuracy over the sets (k = 20, PCA to 512 where it applies) by kind and number of rows. The last line uses the gradients
themselves (`knn --exact-gradients`), the limit of infinitely many rows. ± is over the draws; the test pictures add the error of
the mean given above, the same pictures in every line.

{table(["projection", "rows", *STEPS[1:]], rows)}"""


PRECISION_HEADING = f"## {MAIN} beside {' and '.join(OTHERS)}"


def earlier_rows(text, precision):
    """Those of a page that was written before."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith(f"| {precision} | ")]


def precision_section(study, before=""):
    """Every precision whose stores are there, on the sets that all of them have; of others the rows that stood there before."""
    there = [k for k in (MAIN, *OTHERS) if any(study.complete(k, s) for s in study.sets)]
    both = [s for s in study.sets if there and all(study.complete(k, s) for k in there)]
    rows, kept = [], []
    for kind in (MAIN, *OTHERS):
        if kind not in there or not both:
            old = [row for row in earlier_rows(before, kind) if len(row) == len(both) + 3]  # of the same sets
            rows += old
            kept += [kind] if old else []
            continue
        for step in STEPS:
            columns = [study.accuracies(s, step, *RECOMMENDED, embedding_once(step, SEEDS), precision=kind) for s in both]
            rows.append([kind, step, *[percent(c, 2) for c in columns], percent([mean(d) for d in zip(*columns)], 2)])
    if not both:
        return f"{PRECISION_HEADING}\n\nNo set is finished in several precisions yet.\n"
    missing = [s for s in study.sets if s not in both]
    note = f" Not finished in all of them, so not shown: {', '.join(missing)}." if missing else ""
    note += f" The rows of {' and '.join(kept)} are those of an earlier run of this script." if kept else ""
    return f"""{PRECISION_HEADING}

The recommended projection, the same heads, crops and test pictures, whose error is the one given above.{note}

{table(["precision", "features", *both, "mean"], rows)}"""


def rewrite_precisions(study, page):
    """The page with this section written anew."""
    first = next(i for i, line in enumerate(page.splitlines()) if line.startswith(f"## {MAIN} beside"))
    lines = page.splitlines()
    last = next(i for i in range(first + 1, len(lines)) if lines[i].startswith("## "))
    return "\n".join(lines[:first]) + "\n" + precision_section(study, page) + "\n" + "\n".join(lines[last:]) + "\n"


def uses_section(study):
    recommended = lambda name, seed: study.projected(name, *RECOMMENDED, seed)

    def probe(name, step="embedding"):
        folder = recommended(name, SEEDS[0])
        return study.fungi.figures("linear", folder / "train", folder / "test", "--features", features(step))[0]

    linear = lambda name, step: [probe(name, step)["accuracy"]]

    def clusters(name, step):
        out = []
        for seed in embedding_once(step, SEEDS):
            blocks = features(step, LABELS[SEEDS.index(seed)])
            out.append(study.fungi.figures("kmeans", recommended(name, seed) / "train", "--features", blocks)[0]["overlap"])
        return out

    def retrieval(name, step):
        out = []
        for seed in embedding_once(step, SEEDS):
            folder = recommended(name, seed)
            blocks = features(step, LABELS[SEEDS.index(seed)])
            out.append(study.fungi.figures("retrieve", folder / "train", folder / "test", "--features", blocks)[0]["map"])
        return out

    few = lambda shots: lambda name, step: study.accuracies(name, step, *RECOMMENDED, embedding_once(step, SEEDS), "--shots", shots,
                                                            "-k", min(shots, 20))
    parts = [f"""## Other uses

All with the recommended projection; ± is over the draws.

Linear probe (softmax regression, penalty chosen on a fifth of the training rows), top-1 in percent, one draw. Test pictures,
one binomial standard error at the embedding's accuracy: {test_errors(study, probe)}.

{per_set(study, "features", linear)}
k-means on the training rows, as many clusters as classes, best matching of clusters and classes, percent. No sampling error is
given: the clusters are found on the very pictures that are counted.

{per_set(study, "features", clusters)}
Retrieval: every test picture is a query, the training pictures of its class are what should be found; mean average
precision in percent. No sampling error is given: a query's average precision is no binomial figure, and the command gives only
their mean.

{per_set(study, "features", retrieval)}"""]
    for shots in (1, 5):
        parts.append(f"""Few shots: the first {shots} training picture{"s" if shots > 1 else ""} of each class, k = {shots}. Test pictures, one binomial standard error at the
embedding's accuracy: {knn_errors(study, "--shots", shots, "-k", min(shots, 20))}; which training pictures are taken is not varied.

{per_set(study, "features", few(shots))}""")
    return "\n".join(parts)


def write(study):
    sets = study.finished()
    missing = [s for s in study.sets if s not in sets]
    note = f"\nNot finished, so not counted: {', '.join(missing)}.\n" if missing else ""
    sizes = []
    for s in sets:
        row = study.knn(study.work / MAIN / s, "embedding")
        sizes.append(f"{s} {row['train_rows']}/{row['test_rows']}")
    presets = ("Presets `native` and `paper` give the same bytes with this model, as the script has just checked: its own statistics are "
               "ImageNet's and its evaluation transform is the paper's." if study.presets_agree() else
               "Presets `native` and `paper` differ here; the figures are those of `native`.")
    return f"""# Results

Written by `tools/make_results.py`; every figure comes from the command line. Backbone: DeiT-tiny/16 at 224 pixels, ImageNet-1k
supervised, width {WIDTH}; {MAIN} unless said. Training/test pictures: {", ".join(sizes)}. K, D, S: KL, DINO (12 crops), SimCLR (49
patches, 256 x 49 negatives). {presets}
{note}
{main_section(study)}
{projection_section(study)}
{precision_section(study)}
{uses_section(study)}"""
