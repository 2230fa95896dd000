# SPDX-License-Identifier: Apache-2.0
"""The stores and figures behind docs/fast.md: views that are fewer or smaller, and what they keep of the gain."""
import argparse
import hashlib
import pathlib
import shutil
import zipfile

from results_study import LABELS, SEEDS, SETS, Fungi, Study, mean
from results_tables import RECOMMENDED

PRECISION = "int8"
STRIDES = {49: 6, 36: 5, 25: 4, 16: 3, 9: 2}  # so many patches of a quarter of the picture each
FULL = 224
# Pictures of each class in the sample, as many of either split: each is the other's training set once.
PER_CLASS = {"flowers102": 3, "pets": 4, "eurosat": 15, "dtd10": 15}
NEGATIVES = 64
KEEP = 0.95  # of the gain: the rule by which the preset is chosen asks for so much on the sample


WHOLE = (("dino", 12, FULL), ("simclr", 49, FULL))  # what `native` and `paper` look at


class Variant:
    """One objective with so many views, of which the local ones (SimCLR's: all) have this side."""

    def __init__(self, objective, views, side):
        self.objective, self.views, self.side = objective, views, side

    def name(self, label=""):
        if (self.objective, self.views, self.side) in WHOLE:
            return self.objective + label
        return f"{self.objective}_n{self.views}s{self.side}{label.replace('_', '')}"

    def specification(self, label):
        if self.objective == "dino":
            rest = f"local_crops={self.views - 2}" + (f",local_size={self.side}" if self.side != FULL else "")
        else:
            rest = f"stride_scale={STRIDES[self.views]},negatives={NEGATIVES}"
            rest += f",patch_size={self.side}" if self.side != FULL else ""
        return f"{self.name(label)}:{rest}"

    def cost(self):
        """In forward passes of ViT-B/16 at 224 pixels."""
        whole = 2 if self.objective == "dino" else 0
        return whole + (self.views - whole) * forward(self.side) / forward(FULL)

    def __str__(self):
        what = "local crops" if self.objective == "dino" else "patches"
        return f"{self.views} views" + ("" if self.side == FULL else f", {what} of {self.side} pixels")


def forward(side, width=768, patch=16):
    """Multiply-adds of a block per forward pass, whatever the depth."""
    tokens = 1 + (side // patch) ** 2
    return tokens * (12 * width * width + 2 * tokens * width)


def variants(objective, counts, side):
    return [Variant(objective, n, side) for n in counts]


# Stores in the order they are worth: each adds to the curves by itself.
GROUPS = {
    "small": variants("simclr", (49, 36, 25, 16, 9), 112) + variants("dino", (12, 8, 6, 4), 96),
    "whole": [Variant(*facts) for facts in WHOLE],
    "smaller": variants("simclr", (49, 25), 96) + variants("dino", (12,), 112),
    "fewer": variants("simclr", (25, 16, 9), FULL) + variants("dino", (8,), 96),
    "some": variants("simclr", (36,), FULL) + variants("dino", (8, 6, 4), FULL),
}
REFERENCE = GROUPS["whole"]


def earlier(precision, step):
    """Accuracy of each set as docs/results.md has it, or nothing: an earlier run of tools/make_results.py."""
    lines = (pathlib.Path(__file__).resolve().parent.parent / "docs" / "results.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    heads = [row for row in rows if row[:2] == ["precision", "features"]]
    found = [row for row in rows if row[:2] == [precision, step]]
    if not heads or not found:
        return None
    return {"earlier": True, **{name: [float(cell.split()[0]) / 100] for name, cell in zip(heads[0][2:-1], found[0][2:-1])}}


class FastStudy:
    def __init__(self, args):
        self.data, self.work = args.data, args.work
        self.model = args.data / "weights" / "deit_tiny_patch16_224.safetensors"
        self.fungi = Fungi(args.fungi, args.work)
        self.sets = [s for s in SETS if s in args.sets]
        self.all = Study(argparse.Namespace(data=args.data, work=args.work, fungi=args.fungi, sets=args.sets))
        for precision in ("bf16", "int8", "f32"):  # what is projected anew from its factors comes here
            link = args.work / precision
            if args.baseline and (args.baseline / precision).exists() and not link.exists():
                link.symlink_to((args.baseline / precision).resolve())

    # The sample ------------------------------------------------------------------------------------

    def sample(self, name):
        """A folder of links to a fixed choice of pictures."""
        folder = self.work / "sample" / name
        for split in ("train", "test"):
            for of_class in sorted((self.data / "images" / name / split).iterdir()):
                files = sorted(of_class.iterdir(), key=lambda f: hashlib.sha256(f"{split}/{f.name}".encode()).digest())
                for file in files[:PER_CLASS[name]]:
                    link = folder / split / of_class.name / file.name
                    link.parent.mkdir(parents=True, exist_ok=True)
                    if not link.exists():
                        link.symlink_to(file.resolve())
        return folder

    def heads(self):
        """Those of three draws, the same for every variant: differences are those of the views."""
        store = self.work / "heads"
        if Study.whole(store):
            return store / "state"
        base = [f"{o}{label}" + (":negatives=1" if o == "simclr" else "") for o in ("dino", "simclr") for label in LABELS]
        self.fungi.run("extract", self.sample(self.sets[0]) / "train", "-m", self.model, "-o", store, "--limit", 1, "--objectives", *base)
        return store / "state"

    def given(self, group):
        """The file that says so for the variants of a group; an .npz is a zip of arrays."""
        file = self.work / f"heads-{group}.npz"
        if file.exists():
            return file
        with zipfile.ZipFile(file, "w") as out:
            for variant in GROUPS[group]:
                for label in LABELS:
                    prefix = variant.objective + label + "-"
                    for array in sorted(self.heads().glob(f"{prefix}*.npy")):
                        if array.stem.endswith(("weight", "bias")):
                            out.write(array, f"{variant.name(label)}-{array.name[len(prefix):]}")
        return file

    # Stores ----------------------------------------------------------------------------------------

    def store(self, group, name):
        return self.work / "curves" / group / name

    def extract(self, source, folder, *options):
        for split in ("train", "test"):
            if Study.whole(folder / split):
                continue
            folder.mkdir(parents=True, exist_ok=True)
            like = ["--like", folder / "train"] if split == "test" else []
            self.fungi.run("extract", source / split, "-m", self.model, "-o", folder / split, *options, *like, "-q")

    def extract_whole(self):
        """The views of `native`; rows that the baseline has of these pictures are taken from there."""
        for name in self.sets:
            for split in ("train", "test"):
                store, made = self.store("whole", name) / split, self.work / PRECISION / name / split
                if Study.whole(store):
                    continue
                options = ["--precision", PRECISION, "--keep-factors", "--objectives",
                           *(o + label for o in ("kl", "dino", "simclr") for label in LABELS)]
                if Study.whole(made):
                    shutil.rmtree(store, ignore_errors=True)
                    shutil.copytree(made, store)
                    options.append("--prune")
                elif split == "test":
                    options += ["--like", store.parent / "train"]
                store.parent.mkdir(parents=True, exist_ok=True)
                self.fungi.run("extract", self.sample(name) / split, "-m", self.model, "-o", store, *options, "-q")
            print(f"whole {name}", flush=True)

    def extract_curves(self, groups):
        for group in groups:
            if group == "whole":
                self.extract_whole()
                continue
            specifications = [v.specification(label) for v in GROUPS[group] for label in LABELS]
            for name in self.sets:
                self.extract(self.sample(name), self.store(group, name), "--precision", PRECISION, "--given", self.given(group),
                             "--objectives", *(f"kl{label}" for label in LABELS), *specifications)
                print(f"{group} {name}", flush=True)

    def extract_preset(self):
        """All pictures, with the preset as it is: what the rule chose is tried where it was not chosen."""
        for name in self.sets:
            self.extract(self.data / "images" / name, self.work / "fast" / name, "--preset", "fast", "--keep-factors",
                         "--objectives", *(o + label for o in ("kl", "dino", "simclr") for label in LABELS))
            print(f"fast {name}", flush=True)

    def finished(self, group):
        return [s for s in self.sets if all(Study.whole(self.store(group, s) / split) for split in ("train", "test"))]

    def sampled(self):
        """The sets whose first two groups are finished: the sample is evaluated on these."""
        return [s for s in self.finished("whole") if s in self.finished("small")]

    def groups(self):
        """Those that are finished on all of these sets."""
        return [g for g in GROUPS if set(self.sampled()) <= set(self.finished(g))]

    # Figures ---------------------------------------------------------------------------------------

    def accuracy(self, group, name, blocks):
        """The mean of both directions: each split is what the other is compared with."""
        train, test = self.store(group, name) / "train", self.store(group, name) / "test"
        return mean([self.fungi.figures("knn", a, b, "--features", blocks)[0]["accuracy"] for a, b in ((train, test), (test, train))])

    def over_sets(self, group, blocks_of):
        """One value per draw: the mean over the sets."""
        return [mean([self.accuracy(group, s, blocks_of(label)) for s in self.sampled()]) for label in LABELS]

    def embedding(self, group):
        return mean([self.accuracy(group, s, "embedding") for s in self.sampled()])

    def gain(self, group, *members, kl=False):
        """Of the embedding with these beside it over the embedding, per draw."""
        plain = self.embedding(group)
        blocks = lambda label: "+".join(["embedding"] + (["kl" + label] if kl else []) + [v.name(label) for v in members])
        return [a - plain for a in self.over_sets(group, blocks)]

    def reference(self):
        return self.gain("whole", *REFERENCE, kl=True)

    def pairs(self):
        """(cost, DINO's variant, SimCLR's, gains) of all pairs whose blocks stand in one store, the cheapest first."""
        out = []
        for group in self.groups():
            for d in (v for v in GROUPS[group] if v.objective == "dino"):
                for s in (v for v in GROUPS[group] if v.objective == "simclr"):
                    out.append((1 + d.cost() + s.cost(), d, s, self.gain(group, d, s, kl=True)))
        return sorted(out, key=lambda row: row[0])

    def chosen(self):
        """The rule: the cheapest pair that keeps KEEP of the reference's gain on the mean of the sets, as do all pairs of the
        same sides with at least as many views of either kind, so that no lucky point is taken; without one, the best."""
        wanted = KEEP * mean(self.reference())
        rows = self.pairs()

        def holds(row):
            above = lambda v, other: v.side == other.side and v.views >= other.views
            return all(mean(gains) >= wanted for _, d, s, gains in rows if above(d, row[1]) and above(s, row[2]))
        enough = [row for row in rows if holds(row)]
        return enough[0] if enough else max(rows, key=lambda row: mean(row[3]))

    # All pictures ----------------------------------------------------------------------------------

    def of_all(self, kind, step):
        """Per set one accuracy per draw, with the recommended projection; nothing where a set is not finished."""
        if any(not self.all.complete(kind, name) for name in self.sets):
            return None
        seeds = SEEDS[:1] if step == "embedding" else SEEDS
        return {name: self.all.accuracies(name, step, *RECOMMENDED, seeds, precision=kind) for name in self.sets}

    def of_baseline(self, precision, step):
        return self.of_all(precision, step) or earlier(precision, step)

    def of_preset(self):
        return self.of_all("fast", "+K+D+S")

    def together(self, values):
        return [mean(draw) for draw in zip(*(values[name] for name in self.sets))]

    def rates(self):
        """(features, precision): pictures per second of a core's processor time."""
        out = {}
        for precision in ("f32", "bf16", "int8"):
            common = ("bench", "-m", self.model, "-j", 1, "--seconds", 3, "--precision", precision)
            plain = self.fungi.figures(*common, "--objectives", "none")
            out["embedding", precision] = plain["samples_per_processor_second"]
            kl = self.fungi.figures(*common, "--presets", "paper", "--objectives", "kl")
            out["KL", precision] = kl["presets"][0]["samples_per_processor_second"]
            for row in self.fungi.figures(*common, "--presets", "paper", "fast")["presets"]:
                out[row["preset"], precision] = row["samples_per_processor_second"]
        return out
