#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/sounds.md: what the features are worth with real encoders of sounds on real clips.

    tools/make_sound_results.py --data FOLDER --work FOLDER [--fungi build/fungi] [--output docs/sounds.md]

FOLDER/audio/<set>/<list>.csv (file, label, fold) and FOLDER/weights are read. Every fold is the
test set once, with a store of its own; stores and figures in --work are kept, so repeating the
command costs what is new. What is not finished is left out by name. Needs nothing but python3.
"""
import argparse
import json
import math
import pathlib
import struct

from markdown import wrapped
from results_study import LABELS, Fungi, features, mean, percent, table

STEPS = ("embedding", "+K", "+S", "+K+S")
FOLDS = ("1", "2", "3", "4", "5")
# By set: its list, pairs of (training fold, test fold), shots of the few-shot figures.
SETS = {
    "speechcommands": ("speechcommands-small.csv", [(f"!{f}", f) for f in FOLDS], 5),
    "fsdd": ("fsdd-small.csv", [("train", "test")], 5),
    "esc10-16k": ("esc10.csv", [(f"!{f}", f) for f in FOLDS], 2),
}
KWT = "weights/kwt1_speechcommands.safetensors"
WHISPER = "weights/whisper-tiny.en-encoder"
# By name: the weights, frames of a view by set (none: the model's own), whether SimCLR is run.
MODELS = {
    "kwt1": (KWT, {}, True),
    "whisper-tiny.en": (WHISPER, {"speechcommands": 120, "fsdd": 120, "esc10-16k": 500}, True),
    "whisper-tiny.en-30s": (WHISPER, {}, False),
}
K = 5


class Study:
    def __init__(self, args):
        self.args = args
        self.fungi = Fungi(args.fungi, args.work)

    def folder(self, model, name, fold):
        return self.args.work / model / name / fold

    def extract(self, model, name):
        weights, frames, simclr = MODELS[model]
        file, folds, _ = SETS[name]
        objectives = [o + label for o in (["kl", "simclr"] if simclr else ["kl"])
                      for label in LABELS]
        for train, test in folds:
            folder = self.folder(model, name, test)
            folder.mkdir(parents=True, exist_ok=True)
            for split, fold in (("train", train), ("test", test)):
                store = folder / split
                if self.whole(store):
                    continue
                options = ["--set", f"frames={frames[name]}"] if name in frames else []
                like = ["--like", folder / "train"] if split == "test" else []
                self.fungi.run("extract", self.args.data / "audio" / name / file, "--fold", fold,
                               "-m", self.args.data / weights, "-o", store, "--threads",
                               self.args.threads, "--precision", self.args.precision,
                               *options, "--objectives", *objectives, *like)

    @staticmethod
    def whole(store):
        manifest = store / "manifest.json"
        return manifest.exists() and json.loads(manifest.read_text()).get("complete", False)

    def finished(self, model):
        return [name for name, (_, folds, _) in SETS.items()
                if all(self.whole(self.folder(model, name, test) / split)
                       for _, test in folds for split in ("train", "test"))]

    def accuracy(self, model, name, step, label, shots):
        """Over all test clips of all folds; and their number."""
        right = clips = 0
        for _, test in SETS[name][1]:
            folder = self.folder(model, name, test)
            few = ["--shots", shots] if shots else []
            k = ["-k", 1 if shots else K]
            one = self.fungi.figures("knn", folder / "train", folder / "test", "--features",
                                     features(step, label), *k, *few)[0]
            right += one["accuracy"] * one["test_rows"]
            clips += one["test_rows"]
        return right / clips, clips

    def column(self, model, name, step, few):
        labels = LABELS[:1] if step == "embedding" else LABELS
        shots = SETS[name][2] if few else 0
        return [self.accuracy(model, name, step, label, shots)[0] for label in labels]

    def table(self, model, few):
        sets = self.finished(model)
        steps = STEPS if MODELS[model][2] else STEPS[:2]
        rows = [[step, *[percent(self.column(model, name, step, few)) for name in sets]]
                for step in steps]
        return table(["features", *sets], rows)

    def errors(self, model):
        texts = []
        for name in self.finished(model):
            share, clips = self.accuracy(model, name, "embedding", "", 0)
            texts.append(f"{name} ±{100 * math.sqrt(share * (1 - share) / clips):.1f} ({clips} clips)")
        return ", ".join(texts)

    def gains(self, model):
        lines = []
        for name in self.finished(model):
            plain = self.column(model, name, "embedding", False)[0]
            clips = self.accuracy(model, name, "embedding", "", 0)[1]
            error = math.sqrt(max(plain * (1 - plain), 1 / clips) / clips)
            for step in (STEPS if MODELS[model][2] else STEPS[:2])[1:]:
                gain = mean(self.column(model, name, step, False)) - plain
                word = "within the error" if abs(gain) < 2 * error else \
                    "a gain" if gain > 0 else "a loss"
                lines.append(f"{name} {step} {100 * gain:+.1f} ({word})")
        return "; ".join(lines)

    def head_accuracy(self):
        """KWT's own trained head on the embeddings of all test folds."""
        names = ["_silence_", "_unknown_", "yes", "no", "up", "down", "left", "right", "on", "off",
                 "stop", "go"]
        weight, bias = tensor(self.args.data / KWT, "head.weight"), \
            tensor(self.args.data / KWT, "head.bias")
        width = len(weight) // len(bias)
        right = clips = 0
        for _, test in SETS["speechcommands"][1]:
            store = self.folder("kwt1", "speechcommands", test) / "test"
            manifest = json.loads((store / "manifest.json").read_text())
            classes, rows = manifest["classes"], array(store, "embedding")
            labels = [json.loads(line)["label"] for file in sorted(store.glob("rows-*.jsonl"))
                      for line in file.read_text().splitlines()]
            for i, label in enumerate(labels):
                x = rows[i * width:(i + 1) * width]
                scores = [bias[c] + sum(w * v for w, v in zip(weight[c * width:], x))
                          for c in range(len(bias))]
                right += names[scores.index(max(scores))] == classes[int(label)]
                clips += 1
        return right / clips, clips


def tensor(file, name):
    """A small f32 tensor of a safetensors file."""
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])[name]
    first, last = entry["data_offsets"]
    assert entry["dtype"] == "F32"
    return struct.unpack(f"<{(last - first) // 4}f", data[8 + size + first:8 + size + last])


def array(store, block):
    """The numbers of all shards of a block of f32, in order."""
    values = []
    for file in sorted(store.glob(f"{block}-*.npy")):
        data = file.read_bytes()
        head = struct.unpack("<H", data[8:10])[0]
        assert b"<f4" in data[10:10 + head]
        rest = data[10 + head:]
        values += struct.unpack(f"<{len(rest) // 4}f", rest)
    return values


TITLES = {
    "kwt1": ("KWT-1", "Width 64, after-norm, 98 frames of MFCC; trained on Speech Commands, so the "
             "words of `speechcommands` are those of its training, digits and sounds are not."),
    "whisper-tiny.en": ("Whisper tiny.en, on short views", "Width 384; 120 frames (1.2 s) for "
                        "`speechcommands` and `fsdd`, 500 for `esc10-16k`, in place of the 3000 that "
                        "it was trained on."),
    "whisper-tiny.en-30s": ("Whisper tiny.en, on 30 seconds", "As it was trained, every clip filled "
                            "up with silence; SimCLR, 17 views of 30 seconds each, was not run."),
}


def write(study):
    parts = [f"""# Results: sounds

Written by `tools/make_sound_results.py`; every figure comes from the command line. Sets: `speechcommands` 240 clips of 12 words (five folds
by speaker), `fsdd` 300/100 clips of ten digits at 8 kHz, brought to 16 kHz, `esc10-16k` 50 clips of ten classes (the five official
folds). Of sets with folds each fold is the test set once, with features of its own (SimCLR's negatives are drawn from the training folds);
the accuracy is that over all test clips. Top-1 in percent, k = {K}, `--precision {study.args.precision}`. K, S: KL, SimCLR (16 noisy and
shifted views, 64 x 2 negatives). ± is the standard deviation over three draws of heads and projection; the error
from the number of test clips comes on top, and is the larger one: with so few clips differences of a few points mean nothing.
Few-shot: the nearest one of 5 clips per class (2 of `esc10-16k`, which has 4 for training).
"""]
    for model, (title, about) in TITLES.items():
        if not study.finished(model):
            continue
        missing = [s for s in SETS if s not in study.finished(model)]
        parts.append(f"""## {title}

{about}{' Not finished: ' + ', '.join(missing) + '.' if missing else ''}

All training clips; one binomial standard error at the embedding's accuracy: {study.errors(model)}.

{study.table(model, False)}
Few-shot:

{study.table(model, True)}
Beside the embedding, all training clips: {study.gains(model)}.
""")
        if model == "kwt1" and "speechcommands" in study.finished(model):
            share, clips = study.head_accuracy()
            parts.append(f"Its own trained head on the same embeddings of `speechcommands`: "
                         f"{100 * share:.1f} % of {clips} clips.\n")
    left = [title for model, (title, _) in TITLES.items() if not study.finished(model)]
    if left:
        parts.append(f"Not finished: {', '.join(left)}.\n")
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fungi", default=str(root / "build" / "fungi"))
    parser.add_argument("--output", type=pathlib.Path, default=root / "docs" / "sounds.md")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--figures-only", action="store_true",
                        help="use the stores as they are, extract nothing")
    args = parser.parse_args()
    study = Study(args)
    if not args.figures_only:
        for model in args.models:
            for name in args.sets:
                study.extract(model, name)
    args.output.write_text(wrapped(write(study)))
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
