# SPDX-License-Identifier: Apache-2.0
"""The stores and figures behind docs/results-text.md, made by the command line and kept in a work folder."""
import json
import os
import shutil

from results_study import LABELS, Fungi, mean

SHOTS = {"trec": 5, "banking77": 5, "sst5": 5, "ag_news": 10, "tweeteval-emoji": 5}  # the paper's
POOLINGS = ("first", "mean_all")
WEIGHTS = (0.1, 0.2, 0.5, 1.0)
LAYERS = ("blocks.-1.attn.proj", "blocks.-1.mlp.fc1", "blocks.-1.mlp.fc2", "blocks.3.attn.proj")
STEPS = ("embedding", "+K", "+K+S")
USUAL = {"first": 1.0, "mean_all": 0.2}  # what extract takes when nothing is said


def features(step, label=""):
    names = {"K": "kl", "S": "simclr"}
    return "+".join(["embedding"] + [names[c] + label for c in step.replace("embedding", "").split("+") if c])


class TextStudy:
    def __init__(self, args):
        self.data, self.work, self.rows = args.data, args.work, (args.train, args.test)
        self.model = args.data / "weights" / "all-MiniLM-L6-v2"
        self.fungi = Fungi(args.fungi, args.work)
        self.sets = [s for s in SHOTS if s in args.sets]
        self.labels = LABELS[:args.draws]

    def texts(self, name, split):
        """A list of the texts, so many of them that stand evenly spread, with a header."""
        file = self.work / "data" / name / f"{split}.tsv"
        if not file.exists():
            lines = [line for line in (self.data / "text" / name / f"{split}.tsv").read_text().split("\n") if line]
            count = min(self.rows[split == "test"] or len(lines), len(lines))
            chosen = [lines[i * len(lines) // count] for i in range(count)]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(["label\ttext", *chosen]) + "\n")
        return file

    def extract(self, kind, name, *options):
        """Both splits below work/<kind>/<set>; gradients at full length: weighted() makes the others."""
        for split in ("train", "test"):
            store = self.work / kind / name / split
            like = ["--like", store.parent / "train"] if split == "test" else []
            store.parent.mkdir(parents=True, exist_ok=True)
            self.fungi.run("extract", self.texts(name, split), "-m", self.model, "-o", store, "--weight", 1, *options, *like)

    def extract_all(self):
        everything = [o + label for o in ("kl", "simclr") for label in self.labels]
        for precision in ("bf16", "f32"):
            for pooling in POOLINGS:
                for name in self.sets:
                    self.extract(f"{precision}-{pooling}", name, "--precision", precision, "--set", f"pooling={pooling}",
                                 "--objectives", *everything)
        for layer in LAYERS[1:]:
            for name in self.sets:
                self.extract(f"layer-{layer}", name, "--precision", "bf16", "--set", "pooling=mean_all", "--layer", layer,
                             "--objectives", "kl")

    def finished(self, *kinds):
        def whole(store):
            manifest = store / "manifest.json"
            return manifest.exists() and json.loads(manifest.read_text()).get("complete", False)
        return [s for s in self.sets if all(whole(self.work / k / s / split) for k in kinds for split in ("train", "test"))]

    def weighted(self, kind, name, weight):
        """The same stores with another weight of their gradients: it stands in the manifest alone."""
        folder = self.work / "weighted" / kind / f"{weight:g}" / name
        for split in ("train", "test"):
            source, target = self.work / kind / name / split, folder / split
            if (target / "manifest.json").exists():
                continue
            shutil.copytree(source, target, copy_function=os.link, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("manifest.json"))
            manifest = json.loads((source / "manifest.json").read_text())
            for block in manifest["blocks"]:
                if block["name"] != "embedding":
                    block["weight"] = weight
            (target / "manifest.json").write_text(json.dumps(manifest))
        return folder

    def knn(self, kind, name, blocks, weight, *options):
        folder = self.weighted(kind, name, weight)
        return self.fungi.figures("knn", folder / "train", folder / "test", "--features", blocks, *options)[0]

    def accuracies(self, kind, name, step, weight, *options):
        """One for each draw of the heads; the embedding has none."""
        labels = self.labels[:1] if step == "embedding" else self.labels
        return [self.knn(kind, name, features(step, label), weight, *options)["accuracy"] for label in labels]

    def few(self, name):
        return "--shots", SHOTS[name], "--sampling", "stratified"

    def mean_over_sets(self, kind, sets, step, weight, few=False):
        columns = [self.accuracies(kind, s, step, weight, *(self.few(s) if few else ())) for s in sets]
        return [mean(draw) for draw in zip(*columns)]
