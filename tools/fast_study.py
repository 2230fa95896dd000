# SPDX-License-Identifier: Apache-2.0
"""The stores and figures behind docs/fast.md: views that are fewer or smaller, and what they keep of the gain."""
import hashlib
import zipfile

from results_study import LABELS, SETS, Fungi, Study, mean

PRECISION = "int8"
STRIDES = {49: 6, 36: 5, 25: 4, 16: 3, 9: 2}  # so many patches of a quarter of the picture each
FULL = 224
# Pictures of each class in the sample, as many of either split: each is the other's training set once.
PER_CLASS = {"flowers102": 3, "pets": 4, "eurosat": 15, "dtd10": 15}
NEGATIVES = 64
KEEP = 0.95  # of the gain: the rule by which the preset is chosen asks for so much on the sample


class Variant:
    """One objective with so many views, of which the local ones (SimCLR's: all) have this side."""

    def __init__(self, objective, views, side):
        self.objective, self.views, self.side = objective, views, side

    def name(self, label=""):
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
    "whole": variants("simclr", (49,), FULL) + variants("dino", (12,), FULL),
    "smaller": variants("simclr", (49, 25), 96) + variants("dino", (12,), 112),
    "fewer": variants("simclr", (25, 9), FULL) + variants("dino", (6, 4), FULL),
    "some": variants("simclr", (36, 16), FULL) + variants("dino", (8,), FULL),
}
REFERENCE = (Variant("dino", 12, FULL), Variant("simclr", 49, FULL))


class FastStudy:
    def __init__(self, args):
        self.data, self.work, self.baseline = args.data, args.work, args.baseline
        self.model = args.data / "weights" / "deit_tiny_patch16_224.safetensors"
        self.fungi = Fungi(args.fungi, args.work)
        self.sets = [s for s in SETS if s in args.sets]

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

    def extract_curves(self, groups):
        for group in groups:
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

    def groups(self):
        """Those that are finished on all sets."""
        return [g for g in GROUPS if self.finished(g) == self.sets]

    # Figures ---------------------------------------------------------------------------------------

    def accuracy(self, group, name, blocks):
        """The mean of both directions: each split is what the other is compared with."""
        train, test = self.store(group, name) / "train", self.store(group, name) / "test"
        return mean([self.fungi.figures("knn", a, b, "--features", blocks)[0]["accuracy"] for a, b in ((train, test), (test, train))])

    def over_sets(self, group, blocks_of):
        """One value per draw: the mean over the sets."""
        return [mean([self.accuracy(group, s, blocks_of(label)) for s in self.sets]) for label in LABELS]

    def embedding(self, group):
        return mean([self.accuracy(group, s, "embedding") for s in self.sets])

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
        """The rule: the cheapest pair that keeps KEEP of the reference's gain on the mean of the sets; without one, the best."""
        wanted = KEEP * mean(self.reference())
        rows = self.pairs()
        enough = [row for row in rows if mean(row[3]) >= wanted]
        return enough[0] if enough else max(rows, key=lambda row: mean(row[3]))
