#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/segmentation.md: what gradients are worth in in-context segmentation, with a real backbone on real pictures.

    tools/make_segmentation_results.py --data FOLDER --work FOLDER [--fungi build/fungi] [--seeds 8] [--figures-only]

FOLDER/segmentation/voc2012-200/{train,val}/{images,masks} and FOLDER/weights/deit_tiny_patch16_224.safetensors are read. Every seed is
a draw of heads, projection, crops and sampling; a run takes a minute or two of one core and is kept in --work, so repeating the command
costs what is new, and a table shows the draws that there are. Needs nothing but python3."""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

from markdown import wrapped
from results_study import deviation, mean, table

NAMES = """background aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep sofa
train tvmonitor""".split()
# name in the table, options; the first is what the others are compared with
CASES = {
    "temperature 1": ["--precision", "bf16"],
    "temperature 0.07": ["--precision", "bf16", "--objectives", "patch_simclr:denominator_temperature=0.07"],
    "temperature 1, 4 heads": ["--precision", "bf16", "--objectives", "patch_simclr:heads=4"],
    "temperature 0.07, 4 heads": ["--precision", "bf16", "--objectives", "patch_simclr:heads=4,denominator_temperature=0.07"],
    "temperature 1, projection sign": ["--precision", "bf16", "--projection", "sign"],
    "temperature 0.07, projection sign": ["--precision", "bf16", "--projection", "sign", "--objectives",
                                          "patch_simclr:denominator_temperature=0.07"],
    "temperature 1, f32": ["--precision", "f32"],
    "temperature 0.07, f32": ["--precision", "f32", "--objectives", "patch_simclr:denominator_temperature=0.07"],
    "kl": ["--precision", "bf16", "--objectives", "kl"],
    "dino": ["--precision", "bf16", "--objectives", "dino"],
}
MEASURES = {"mIoU": "miou", "present": "miou_present", "matched": "miou_hungarian", "pixels": "pixel_accuracy"}


class Runs:
    def __init__(self, args):
        self.args = args
        self.kept = args.work / "figures"
        self.kept.mkdir(parents=True, exist_ok=True)
        self.names = args.work / "names.txt"
        self.names.write_text("\n".join(NAMES) + "\n")

    def file(self, case, seed):
        return self.kept / f"{case.replace(' ', '_').replace(',', '')}-{seed}.json"

    def run(self, case, seed):
        if self.file(case, seed).exists():
            return
        data, out = self.args.data / "segmentation/voc2012-200", self.args.work / "run"
        shutil.rmtree(out, ignore_errors=True)
        command = [self.args.fungi, "segment", data / "train", data / "val", "-m", self.args.data / "weights/deit_tiny_patch16_224.safetensors",
                   "-o", out, "--class-names", self.names, "--seed", seed, "--no-page", "--no-masks", "--json", "-j", self.args.threads, *CASES[case]]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"results: {command}\n{done.stderr}")
        kept = self.file(case, seed)
        kept.with_suffix(".tmp").write_text(done.stdout)
        kept.with_suffix(".tmp").rename(kept)
        shutil.rmtree(out)
        print(f"{case}, seed {seed}", flush=True)

    def figures(self, case):
        """{features: {measure: [a value per draw]}}"""
        found = {}
        for seed in range(self.args.seeds):
            if self.file(case, seed).exists():
                for one in json.loads(self.file(case, seed).read_text())["results"]:
                    for name, key in MEASURES.items():
                        found.setdefault(one["features"], {}).setdefault(name, []).append(100 * one[key])
        return found

    def classes(self, case):
        """{class: {features: [IoU per draw]}} of the classes of the test masks"""
        found = {}
        for seed in range(self.args.seeds):
            if self.file(case, seed).exists():
                for one in json.loads(self.file(case, seed).read_text())["results"]:
                    for name, value in one["classes"].items():
                        if value["pixels"]:
                            found.setdefault(name, {}).setdefault(one["features"], []).append(100 * value["iou"])
        return found


def spread(values):
    return f"{mean(values):.2f}" + (f" ± {deviation(values):.2f}" if len(values) > 1 else "")


def main_table(runs):
    rows = []
    for case in CASES:
        figures = runs.figures(case)
        if not figures:
            continue
        for features in ("embedding", "fungi"):
            if features == "embedding" and case not in ("temperature 1", "temperature 1, f32"):
                continue
            values = figures[features]
            label = "embedding" + (", f32" if "f32" in case else "") if features == "embedding" else case
            gain = [f - e for f, e in zip(figures["fungi"]["mIoU"], figures["embedding"]["mIoU"])]
            rows.append([label, str(len(values["mIoU"])), *[spread(values[m]) for m in MEASURES],
                         "" if features == "embedding" else spread(gain)])
    return table(["features", "draws", "mIoU", "present classes", "classes matched", "pixels right", "gain in mIoU"], rows)


def class_table(runs, case):
    rows = [[name, spread(v["embedding"]), spread(v["fungi"]), f"{mean(v['fungi']) - mean(v['embedding']):+.1f}"]
            for name, v in runs.classes(case).items()]
    return table(["class", "embedding", case, "change"], sorted(rows, key=lambda r: -float(r[3])))


def write(runs):
    return f"""# Segmentation by neighbours: results

DeiT-tiny (supervised, ImageNet) at 512 x 512, with 200 pictures of Pascal VOC 2012 remembered (102 400 patches) and 107 tested; 21 classes,
k = 30, temperature of the vote 0.02, exact search. Percent, mean ± standard deviation over draws; a draw is one seed of heads, projection, crops and
sampling, and the gain is taken draw by draw against the embedding of the same crops. "Temperature" is that of the denominator of
patch-SimCLR (`denominator_temperature`). Where nothing else is said: factored projection, one head, bf16. Written by
`tools/make_segmentation_results.py`; the reference numbers of the paper, which are of other backbones, stand beside ours in
`fungi reproduce segmentation`.

{main_table(runs)}
Present classes: those of the test masks. Matched: predicted classes renamed by the Hungarian method.

## Classes, with the default settings

{class_table(runs, "temperature 1")}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fungi", default=str(root / "build" / "fungi"))
    parser.add_argument("--output", type=pathlib.Path, default=root / "docs" / "segmentation.md")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--figures-only", action="store_true", help="write what there is, run nothing")
    args = parser.parse_args()
    runs = Runs(args)
    if not args.figures_only:
        for seed in range(args.seeds):
            for case in CASES:
                runs.run(case, seed)
    args.output.write_text(wrapped(write(runs)))
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
