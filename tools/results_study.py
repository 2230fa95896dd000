# SPDX-License-Identifier: Apache-2.0
"""The stores and figures behind docs/results.md, made by the command line and kept in a work folder."""
import hashlib
import json
import math
import subprocess
import sys

SETS = ("flowers102", "pets", "eurosat", "dtd10")
LABELS = ("", "_b", "_c")  # three draws of the heads, see fungi/objective/factory.h
SEEDS = (42, 43, 44)       # of their projections
STEPS = ("embedding", "+K", "+K+D", "+K+D+S")
MAIN, OTHERS = "bf16", ("f32", "int8")  # the precision of all tables but one, which sets the others beside it
WIDTH = 192


def features(step, label=""):
    names = {"K": "kl", "D": "dino", "S": "simclr"}
    parts = ["embedding"] if step == "embedding" or step.startswith("+") else []
    return "+".join(parts + [names[c] + label for c in step.replace("embedding", "").split("+") if c])


class Fungi:
    """Runs the command line and keeps what it printed, by arguments."""

    def __init__(self, program, work):
        self.program, self.cache = program, work / "figures"
        self.cache.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments):
        command = [self.program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            sys.exit(f"results: {' '.join(command)}\n{done.stderr}")
        return done.stdout

    def figures(self, *arguments):
        key = hashlib.sha256(json.dumps([str(a) for a in arguments]).encode()).hexdigest()[:24]
        kept = self.cache / f"{key}.json"
        if not kept.exists():
            text = self.run(*arguments, "--json")
            kept.write_text(text)
        return json.loads(kept.read_text())


class Study:
    def __init__(self, args):
        self.data, self.work = args.data, args.work
        self.model = args.data / "weights" / "deit_tiny_patch16_224.safetensors"
        self.fungi = Fungi(args.fungi, args.work)
        self.sets = [s for s in SETS if s in args.sets]

    # Stores ---------------------------------------------------------------------------------------

    def extract(self, name, kind, split, *options):
        """One store below work/<kind>/<set>/; the test split is like the training split."""
        store = self.work / kind / name / split
        like = ["--like", store.parent / "train"] if split == "test" else []
        store.parent.mkdir(parents=True, exist_ok=True)
        self.fungi.run("extract", self.data / "images" / name / split, "-m", self.model, "-o", store, *options, *like)

    def extract_all(self):
        everything = [o + label for o in ("kl", "dino", "simclr") for label in LABELS]
        for precision in (MAIN, *OTHERS):
            for name in self.sets:
                for split in ("train", "test"):
                    self.extract(name, precision, split, "--precision", precision, "--keep-factors", "--objectives", *everything)

    def presets_agree(self):
        """Whether native and paper write the same bytes for this model (a few pictures, all objectives' views)."""
        stores = []
        for preset in ("native", "paper"):
            store = self.work / "presets" / preset
            self.fungi.run("extract", self.data / "images" / self.sets[-1] / "train", "-m", self.model, "-o", store, "--precision", MAIN,
                           "--preset", preset, "--limit", 4, "--objectives", "kl", "dino", "simclr:negatives=2")
            stores.append({p.name: p.read_bytes() for p in store.glob("*.npy")} | {p.name: p.read_bytes() for p in store.glob("*/*.npy")})
        return bool(stores[0]) and stores[0] == stores[1]

    @staticmethod
    def whole(store):
        manifest = store / "manifest.json"
        return manifest.exists() and json.loads(manifest.read_text()).get("complete", False)

    def complete(self, kind, name):
        return all(self.whole(self.work / kind / name / split) for split in ("train", "test"))

    def finished(self, kind=MAIN):
        return [s for s in self.sets if self.complete(kind, s)]

    def projected(self, name, projection, rows, seed, precision=MAIN):
        """The stores of a set with its gradients projected anew from the kept factors."""
        if (projection, rows, seed) == ("sign", WIDTH, 42):
            return self.work / precision / name
        folder = self.work / f"{precision}-{projection}-{rows}-{seed}" / name
        for split in ("train", "test"):
            if not self.whole(folder / split):
                folder.mkdir(parents=True, exist_ok=True)
                self.fungi.run("project", self.work / precision / name / split, "-o", folder / split, "--projection", projection,
                               "--projection-dim", rows, "--seed", seed, "-q")
        return folder

    # Figures --------------------------------------------------------------------------------------

    def knn(self, folder, blocks, *options):
        return self.fungi.figures("knn", folder / "train", folder / "test", "--features", blocks, *options)[0]

    def accuracies(self, name, step, projection="sign", rows=WIDTH, seeds=SEEDS, *options, precision=MAIN):
        values = []
        for seed in seeds:
            folder = self.projected(name, projection, rows, seed, precision)
            values.append(self.knn(folder, features(step, LABELS[SEEDS.index(seed)]), *options)["accuracy"])
        return values


def mean(values):
    return sum(values) / len(values)


def error_of_mean(errors):
    """Of the mean of independent figures with these standard errors."""
    return math.sqrt(sum(e * e for e in errors)) / len(errors)


def deviation(values):
    m = mean(values)
    return math.sqrt(sum((v - m) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else 0.0


def percent(values, digits=1):
    text = f"{100 * mean(values):.{digits}f}"
    return text if len(values) == 1 else f"{text} ± {100 * deviation(values):.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
