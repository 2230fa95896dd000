# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/results-text.md, from the figures of a text_study.TextStudy."""
import json

from results_study import error_of_mean, mean, percent, table
from text_study import LAYERS, POOLINGS, SHOTS, STEPS, USUAL, WEIGHTS

# The paper's own (full, few shots), top-1 in percent: trec, banking77, sst5, ag_news, tweeteval-emoji.
PAPER = {
    "BERT-base, embedding": ((83.6, 55.4, 40.0, 88.8, 23.8), (20.0, 14.5, 20.4, 45.8, 13.6)),
    "BERT-base, +K": ((85.6, 67.1, 40.7, 91.0, 24.4), (27.6, 22.2, 23.2, 61.4, 13.8)),
    "BERT-base, +K+S": ((86.8, 67.9, 41.8, 89.6, 24.8), (23.0, 23.8, 18.4, 61.9, 14.5)),
    "T5-small, embedding": ((88.6, 29.7, 30.0, 71.8, 23.4), (25.6, 5.2, 25.9, 37.4, 8.4)),
    "T5-small, +K": ((88.6, 33.3, 32.7, 74.3, 24.2), (23.6, 5.6, 24.1, 40.6, 9.5)),
    "T5-small, +K+S": ((88.4, 29.1, 32.0, 74.8, 24.4), (23.6, 6.1, 24.2, 41.0, 9.9)),
}
NAMES = {"first": "first token", "mean_all": "mean of the tokens"}
MAIN = "bf16"


def accuracy_table(study, sets, few):
    rows = []
    for pooling in POOLINGS:
        kind = f"{MAIN}-{pooling}"
        for weight in sorted({USUAL[pooling], 1.0}):
            for step in STEPS:
                if step == "embedding" and weight != USUAL[pooling]:
                    continue
                there = study.finished(kind)
                columns = [study.accuracies(kind, s, step, weight, *(study.few(s) if few else ())) if s in there else None
                           for s in sets]
                together = f"**{percent([mean(d) for d in zip(*columns)])}**" if all(columns) else "-"
                said = "" if step == "embedding" or (weight == 1 and pooling == "first") else f", weight {weight:g}"
                rows.append([f"{NAMES[pooling]}, {step}{said}", *[percent(c) if c else "-" for c in columns], together])
    order = list(SHOTS)
    rows += [[f"*paper: {name}*", *[f"{both[few][order.index(s)]:.1f}" for s in sets],
              f"{mean([both[few][order.index(s)] for s in sets]):.1f}"] for name, both in PAPER.items()]
    return table(["model, features", *sets, "mean"], rows)


def errors(study, sets, few):
    found = {s: study.knn(f"{MAIN}-mean_all", s, "embedding", 1.0, *(study.few(s) if few else ()))["standard_error"] for s in sets}
    return ", ".join(f"{s} ±{100 * e:.1f}" for s, e in found.items()) + f", their mean ±{100 * error_of_mean(found.values()):.1f}"


def weight_section(study, sets):
    rows = []
    plain = study.mean_over_sets(f"{MAIN}-mean_all", sets, "embedding", 1.0)
    for few in (False, True):
        rows.append([f"embedding{', few shots' if few else ''}",
                     *[percent(study.mean_over_sets(f"{MAIN}-mean_all", sets, "embedding", 1.0, few), 2)] * len(WEIGHTS)])
        for step in ("+K", "+S", "+K+S"):
            rows.append([f"{step}{', few shots' if few else ''}",
                         *[percent(study.mean_over_sets(f"{MAIN}-mean_all", sets, step, w, few), 2) for w in WEIGHTS]])
    usual = study.mean_over_sets(f"{MAIN}-mean_all", sets, "+K+S", USUAL["mean_all"])
    gain = 100 * (mean(usual) - plain[0])
    whole = 100 * (mean(study.mean_over_sets(f"{MAIN}-mean_all", sets, "+K", 1.0)) - plain[0])
    few = [mean(study.mean_over_sets(f"{MAIN}-mean_all", sets, step, USUAL["mean_all"], True)) for step in ("embedding", "+K+S")]
    return f"""## Beside the mean of the tokens: how much the gradients should weigh

Mean accuracy over {", ".join(sets)}, mean pooling, by the weight of the gradients (`extract --weight`: their length beside an
embedding of length 1). With the weight that `extract` takes by itself ({USUAL["mean_all"]:g}), +K+S changes the embedding by {gain:+.2f} points
with all training texts and by {100 * (few[1] - few[0]):+.2f} in few shots: set that against the errors above. At weight 1 KL changes it by {whole:+.2f}.

{table(["features", *[f"{w:g}" for w in WEIGHTS]], rows)}"""


def token_section(study):
    file = study.work / "tokens.json"
    if not file.exists():
        return ""
    kept = json.loads(file.read_text())
    found, weights = kept["sets"], [f"{w:g}" for w in kept["weights"]]
    rows = [["embedding", *[f"{100 * found[s]['embedding']:.1f}" for s in found for _ in weights]]]
    for way in next(iter(found.values())):
        if way != "embedding":
            rows.append([f"+K, {way}", *[f"{100 * value:.1f}" for s in found for value in found[s][way]]])
    return f"""## Beside the mean of the tokens: whose gradients

`fungi` sums the gradients of all tokens, as the method does. `tools/text_tokens.py` tries other ways in torch, with KL and one draw: none
of them changes what the weight does.

{table(["features", *[f"{s}, weight {w}" for s in found for w in weights]], rows)}"""


def layer_section(study):
    rows, sets = [], study.finished(f"{MAIN}-mean_all", *[f"layer-{layer}" for layer in LAYERS[1:]])
    if not sets:
        return ""
    for i, layer in enumerate(LAYERS):
        kind = f"layer-{layer}" if i else f"{MAIN}-mean_all"
        for what in ("kl", "embedding+kl"):
            columns = [[study.knn(kind, s, what, USUAL["mean_all"])["accuracy"]] for s in sets]
            rows.append([f"`{layer}`", what, *[percent(c) for c in columns], percent([mean([c[0] for c in columns])])])
    return f"""## Beside the mean of the tokens: which layer

KL alone, one draw, weight {USUAL["mean_all"]:g}, mean pooling.

{table(["layer", "features", *sets, "mean"], rows)}"""


def precision_section(study):
    kinds = [f"{p}-{pooling}" for p in (MAIN, "f32") for pooling in POOLINGS]
    sets = study.finished(*kinds)
    if not sets:
        return "## f32\n\nNo set is finished in f32 yet.\n"
    rows = []
    for pooling in POOLINGS:
        for step in STEPS:
            for precision in (MAIN, "f32"):
                columns = [study.accuracies(f"{precision}-{pooling}", s, step, USUAL[pooling]) for s in sets]
                rows.append([NAMES[pooling], step, precision, *[percent(c, 2) for c in columns]])
    missing = [s for s in study.sets if s not in sets]
    note = f" Not finished in f32, so not shown: {', '.join(missing)}." if missing else ""
    return f"""## {MAIN} beside f32

The same heads, draws and texts; k = 20.{note}

{table(["pooling", "features", "precision", *sets], rows)}"""


def write(study):
    sets = study.finished(f"{MAIN}-mean_all")
    missing = [s for s in study.sets if s not in sets]
    note = f" Not finished, so not counted: {', '.join(missing)}." if missing else ""
    sizes = []
    for s in sets:
        row = study.knn(f"{MAIN}-mean_all", s, "embedding", 1.0)
        sizes.append(f"{s} {row['train_rows']}/{row['test_rows']}")
    return f"""# Results for texts

Written by `tools/text_results.py`; every figure comes from the command line. Backbone: all-MiniLM-L6-v2 (six layers, width 384, trained
for the mean of its tokens), {MAIN} unless said. Training/test texts: {", ".join(sizes)}; where that is not the whole set, they were taken
evenly spread over it.{note} K, S: KL (temperature 15, width 768), SimCLR (12 deletion views, 256 x 2 negatives, width 256). The projection
is the default (`sign`, 384 rows); PCA to 512. {"± is the standard deviation over " + str(len(study.labels)) + " draws of the heads." if len(study.labels) > 1 else "One draw of the heads."}

The paper's rows are of other models, and of the whole sets: they show the size of its gains, not a level to be reached. MiniLM has no head
that guesses words, so `mlm` cannot be measured with it.

## Nearest neighbours, k = 20

Top-1 accuracy in percent. One binomial standard error of the test texts: {errors(study, sets, False)}. Rows of a column are about the same
texts, and their differences are steadier than that.

{accuracy_table(study, sets, False)}
## Few shots, the paper's rule

`knn --shots N --sampling stratified`: N times as many training rows as there are classes, drawn in proportion to the classes
({", ".join(f"{s} {SHOTS[s]}" for s in sets)}). One binomial standard error: {errors(study, sets, True)}; which rows are drawn is not varied.

{accuracy_table(study, sets, True)}
{weight_section(study, sets)}
{token_section(study)}
{layer_section(study)}
{precision_section(study)}"""

