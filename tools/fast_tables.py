# SPDX-License-Identifier: Apache-2.0
"""docs/fast.md and its pictures, from the figures of a fast_study.FastStudy."""
from fast_study import FULL, GROUPS, KEEP, NEGATIVES, PER_CLASS, REFERENCE, forward
from markdown import wrapped
from results_study import STEPS, deviation, mean, percent, table
from results_tables import RECOMMENDED
from svg_chart import chart

PRECISIONS = ("f32", "bf16", "int8")
COLOURS = {"f32": "#666666", "bf16": "#1f6fb2", "int8": "#c2410c"}
STEP_OF = {"embedding": "embedding", "KL": "+K", "paper": "+K+D+S"}


INTRO = """# Fast features

Written by `tools/make_fast_results.py`; every figure comes from the command line.

```sh
fungi extract pictures/train -m model -o quick --preset fast
fungi extract pictures/test -o quick-test --like quick
```

`--preset fast` is `native` with fewer and smaller views, in int8 unless `--precision` says otherwise. Nothing else of it
differs: heads, losses, projection and evaluation are those of `native`. Rows of such a store cannot be mixed with those of another
preset; its manifest says what was done. Each of these can be chosen by itself, too: `dino:local_crops=6,local_size=96`,
`simclr:stride_scale=3`, `--precision int8`. A view may have any side that is a multiple of the model's patch and at most
its input; the preset's 96 are for models that read 224 pixels, of others it is the same share in whole patches. Positions are brought to its grid as the family does it for whole pictures (`--set size=`), by the same packed weights.
"""
OTHERS = """## Texts and sounds

The views of texts are short already, and those of sounds have the length of the model: there `fast` is int8, and the views are
those of `native`. What int8 does to MiniLM's and BERT's numbers stands in [numerics.md](numerics.md).

## From JPEG files

ViT-B/16, all three objectives, projection and store included (`bench/compare extract --data FOLDER --presets-only --cpu`): `fast` takes
5.7 times as many pictures per second of processor time as `paper` in bf16. In memory, one picture at a time, which does not share
the pass over the projection's matrix (`fungi bench -m vit_base_patch16_224 --presets paper fast`): 3.8 times.
"""


FAST = ((8, 96), (16, FULL))  # (views, side) of DINO and of SimCLR: fungi/objective/presets.cpp
WHY = """The number of patches matters little at 112 pixels, while patches of that size lose too much beside the others: so the preset
keeps their size and takes fewer. Local crops of 96 pixels cost nothing that this sample could show. What the preset keeps on
all pictures stands above."""


def points(values, digits=2):
    return f"{100 * mean(values):+.{digits}f} ± {100 * deviation(values):.{digits}f}"


def curve_rows(study, objective):
    rows, seen = [], set()
    for group in study.groups():
        for v in (v for v in GROUPS[group] if v.objective == objective and str(v) not in seen):
            seen.add(str(v))  # some stand in two groups, to be paired with others there
            rows.append((v, study.gain(group, v)))
    return sorted(rows, key=lambda row: (-row[0].side, -row[0].views))


def preset_is(study):
    """What `fast` has, as fungi/objective/presets.cpp says it."""
    dino = next(v for g in GROUPS.values() for v in g if v.objective == "dino" and (v.views, v.side) == FAST[0])
    simclr = next(v for g in GROUPS.values() for v in g if v.objective == "simclr" and (v.views, v.side) == FAST[1])
    return dino, simclr


def curves(study, objective):
    rows = curve_rows(study, objective)
    return table(["views", "forward passes of 224 pixels", "gain over the embedding, points"],
                 [[str(v), f"{v.cost():.1f}", points(g)] for v, g in rows])


def curve_chart(study):
    lines = []
    for objective, name in (("simclr", "SimCLR"), ("dino", "DINO")):
        rows = curve_rows(study, objective)
        for side in sorted({v.side for v, _ in rows}, reverse=True):
            of_side = [(v.cost(), 100 * mean(g), str(v.views)) for v, g in rows if v.side == side]
            lines.append((f"{name}, {side} pixels", of_side))
    return chart(f"Gain of one objective over the embedding, k = 20, mean of {len(study.sampled())} sets", "forward passes of 224 pixels (log)",
                 "points", lines, log=True)


def pair_table(study):
    reference = mean(study.reference())
    rows = []
    for cost, d, s, gains in study.pairs():
        rows.append([str(d), str(s), f"{cost:.1f}", points(gains), f"{100 * mean(gains) / reference:.0f} %"])
    return table(["DINO", "SimCLR", "forward passes", "gain of +K+D+S", "of the gain kept"], rows)


def sample_section(study):
    if not study.sampled():
        return "## Curves\n\nThe curves are not finished.\n"
    missing = [s for s in study.sets if s not in study.sampled()]
    unfinished = [g for g in GROUPS if g not in study.groups()]
    note = f" Not finished, so not counted: {', '.join(missing)}." if missing else ""
    if unfinished:
        left = [f"{v.objective} {v}" for g in unfinished for v in GROUPS[g]]
        note += f" Not finished, so not shown: {'; '.join(left)}."
    chosen = study.chosen()
    counts = ", ".join(f"{name} {n}" for name, n in PER_CLASS.items() if name in study.sampled())
    return f"""## How it was chosen

Curves of accuracy against cost, DeiT-tiny/16 in int8, on a sample of the four sets of [results.md](results.md): so many pictures
of each class out of either split ({counts}), each split once the training set of the other; k = 20, three draws of heads,
the same for every variant; SimCLR has {NEGATIVES} x views negatives here, and 256 x views where all are whole. Cost is counted in forward passes of ViT-B/16 at {FULL} pixels:
at 112 pixels one costs {forward_share(112):.2f} of that, at 96 pixels {forward_share(96):.2f}. ± is over the draws.{note}

![Gain against cost](fast-curves.svg)

SimCLR beside the embedding, by the number of patches and their size:

{curves(study, "simclr")}
DINO beside the embedding, by the number of crops; the two global ones keep {FULL} pixels:

{curves(study, "dino")}
All three objectives, the pairs in the order of their cost. The whole of the views ({REFERENCE[0]}; {REFERENCE[1]}: {1 + sum(v.cost() for v in REFERENCE):.0f} forward
passes) gains {points(study.reference())} points on this sample.

{pair_table(study)}
The rule: the cheapest pair that keeps {100 * KEEP:.0f} % of that gain, as do all pairs of the same sizes with at least as many views of
either kind: the sample is small, and a lucky point is not to be taken. It gives
DINO with {chosen[1]} and SimCLR with {chosen[2]}: {chosen[0]:.1f} forward passes instead of {1 + sum(v.cost() for v in REFERENCE):.0f}.

The preset has DINO with {preset_is(study)[0]} and SimCLR with {preset_is(study)[1]}:
{1 + sum(v.cost() for v in preset_is(study)):.1f} forward passes. {WHY}{preset_line(study)}
"""


def preset_line(study):
    """Beside the whole views, where the preset was run on the sample."""
    sets, fast, whole = study.preset_on_sample()
    if not sets:
        return ""
    return (f" On the sample of {', '.join(sets)} it gains {points(fast)} points, where all views gain {points(whole)}: "
            f"{100 * mean(fast) / mean(whole):.0f} %.")


def forward_share(side):
    return forward(side) / forward(FULL)


def accuracy_rows(study):
    """(what, precision, accuracy per set, draws) of all that can be had; the last tells an earlier run's."""
    rows = []
    for name, step in STEP_OF.items():
        for precision in PRECISIONS:
            values = study.of_baseline(precision, step)
            if values:
                rows.append((name, precision, values))
    values = study.of_preset()
    if values:
        rows.append(("fast", "int8", values))
    return rows


def kept_section(study):
    rows = accuracy_rows(study)
    if not any(r[0] == "fast" for r in rows):
        return "## What it keeps\n\nThe stores of the preset are not finished.\n"
    by = {(what, precision): values for what, precision, values in rows}
    body = []
    for what, precision, values in rows:
        cells = [percent(values[s]) for s in study.measured()]
        body.append([what, precision + ("*" if values.get("earlier") else ""), *cells, f"**{percent(study.together(values))}**"])
    fast = mean(study.together(by["fast", "int8"]))
    lines = []
    for precision in PRECISIONS:
        if ("paper", precision) in by:
            plain, full = (mean(study.together(by[what, precision])) for what in ("embedding", "paper"))
            lines.append(f"{100 * (fast - plain) / (full - plain):.0f} % of the {100 * (full - plain):+.1f} points of `paper` in {precision}")
    missing = [s for s in study.sets if s not in study.measured()]
    left = f" Not finished with the preset, so not counted: {', '.join(missing)}." if missing else ""
    note = "\\* from [results.md](results.md), an earlier run of the same script.\n" if any(v.get("earlier") for _, _, v in rows) else ""
    return f"""## What it keeps

All pictures of these sets, DeiT-tiny/16, k = 20, three draws of heads and projection (`--projection {RECOMMENDED[0]} --projection-dim {RECOMMENDED[1]}`),
+K+D+S for `paper` and `fast`. Percent; ± is over the draws.{left}

{table(["features", "precision", *study.measured(), "mean"], body)}
{note}
The gain of `fast` over the embedding is {"; ".join(lines)}.
"""


def speed_section(study):
    rates = study.rates()
    accuracy = {(what, precision): 100 * mean(study.together(values)) for what, precision, values in accuracy_rows(study)}
    rows = []
    for (what, precision), rate in rates.items():
        cell = f"{accuracy[what, precision]:.1f}" if (what, precision) in accuracy else "not measured"
        rows.append([what, precision, f"{rate:.2f}", f"{rate / rates['paper', 'bf16']:.1f}x", cell])
    lines = []
    for precision in PRECISIONS:
        found = [(rates[key], accuracy[key], key[0]) for key in rates if key[1] == precision and key in accuracy]
        lines.append((precision, sorted(found)))
    picture = chart(f"DeiT-tiny/16: accuracy against speed (k = 20, {', '.join(study.measured() or study.sets)})", "pictures per second of one core (log)",
                    "accuracy in percent", lines, log=True, colours=COLOURS)
    return f"""## Accuracy against speed

![Accuracy against pictures per second](fast.svg)

DeiT-tiny/16, pictures per second of one core's processor time (`fungi bench`, pictures in memory; projection and losses included); accuracy is that of the
next section:

{table(["features", "precision", "pictures/s", "of paper in bf16", "accuracy"], rows)}""", picture


def write(study, output):
    speed, picture = speed_section(study)
    output.write_text(wrapped("\n".join([INTRO, speed, kept_section(study), sample_section(study), OTHERS])))
    if picture:
        (output.parent / "fast.svg").write_text(picture)
    if study.groups():
        (output.parent / "fast-curves.svg").write_text(curve_chart(study))
