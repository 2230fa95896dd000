# SPDX-License-Identifier: Apache-2.0
"""End to end from JPEG files: `fungi extract` with no objective, KL, DINO and SimCLR on ViT-B/16.

Prints samples and views per second, each objective's rate per view as a share of the embedding's,
and the memory with all three. With --peer also the published Python package on the same files and
weights (bench/compare_fungivision.py), in turns with ours. With --presets also all three
objectives at once under the presets paper and fast, each in its own precision.

    bench/compare extract --data FOLDER_OF_JPEGS [--model vit_base_patch16_224] [--peer] [--presets]
"""
import argparse
import json
import pathlib
import resource
import shutil
import subprocess
import sys

import numpy as np

import compare_model

HERE = pathlib.Path(__file__).resolve().parent
VIEWS = {"none": 1, "kl": 1, "dino": 12, "simclr": 49}


ALL = ["kl", "dino", "simclr"]
PATCHES = {"paper": 49, "fast": 16}  # of SimCLR's views, each with 256 negatives


def extract(args, folder, objectives, samples, given=None, preset="native"):
    """One run of the command into a fresh store: its own --json account."""
    store = folder / "store"
    shutil.rmtree(store, ignore_errors=True)
    command = [args.fungi, "extract", args.data, "-m", str(args.weights), "-o", str(store),
               "--precision", args.precision, "--threads", str(args.threads), "--limit",
               str(samples), "--json", "-q", "--preset", preset, "--objectives", *objectives]
    if given:
        command += ["--given", str(given)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compare: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def negatives(folder, patches=49):
    """A bank of 256 x 49 random negatives: its 12544 forwards are no part of the rate."""
    path = folder / f"negatives-{patches}.npz"
    rng = np.random.default_rng(5)
    bank = rng.standard_normal((256 * patches, 96)).astype(np.float32)
    np.savez(path, **{"simclr-negatives": bank / np.linalg.norm(bank, axis=1, keepdims=True)})
    return path


def bring_peer():
    """fungivision and timm without what they depend on: torchvision exists here only in builds of several GB."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in ([*pip, "safetensors", "pillow<13", "pyyaml", "huggingface_hub", "tqdm"],
                    [*pip, "--no-deps", "timm", "fungivision==0.0.2"]):
        subprocess.run(command, check=True)


def peer(args, objective, samples):
    done = subprocess.run([sys.executable, "-B", str(HERE / "compare_fungivision.py"), "--data",
                           args.data, "--weights", str(args.weights), "--model", args.model,
                           "--objective", objective, "--samples", str(samples), "--threads",
                           str(args.threads)], capture_output=True, text=True)
    if done.returncode:
        print(f"  the peer failed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return json.loads(done.stdout)


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def presets(args, folder):
    """All three objectives from JPEG files, in turns with each other and with the package; with --cpu in processor time, as the
    difference of a long and a short run, in which loading cancels."""
    short, long = args.threads, {"paper": 3 * args.threads, "fast": 9 * args.threads}
    rates = {}
    for preset, patches in PATCHES.items():
        bank = negatives(folder, patches)
        if args.cpu:
            used = []
            for samples in (short, long[preset]):
                before = processor_seconds()
                extract(args, folder, ALL, samples, bank, preset)
                used.append(processor_seconds() - before)
            rates[preset] = (long[preset] - short) / (used[1] - used[0])
        else:
            rates[preset] = max(extract(args, folder, ALL, long[preset], bank, preset)["samples_per_second"]
                                for _ in range(args.rounds))
    unit = "samples_per_processor_second" if args.cpu else "samples_per_second"
    other = peer(args, "all", 1) if args.peer else None
    rows = []
    for preset, rate in rates.items():
        note = f"  {rate / rates['paper']:.2f}x paper"
        row = {"preset": preset, unit: rate, "ratio_to_paper": rate / rates["paper"]}
        if other:
            row["peer_" + unit], row["ratio"] = other[unit], rate / other[unit]
            note += f"  {rate / other[unit]:.1f}x fungivision ({other[unit]:.4f})"
        rows.append(row)
        print(f"  {preset + ', all':12s}{rate:11.3f} {'a processor second' if args.cpu else 'a second'}{note}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder of JPEG files")
    parser.add_argument("--model", choices=compare_model.MODELS, default="vit_base_patch16_224")
    parser.add_argument("--fungi", default=str(HERE.parent / "build" / "fungi"))
    parser.add_argument("--precision", choices=["auto", "f32", "bf16", "int8"], default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--views", type=int, default=128,
                        help="forward passes per measurement; more where ten seconds allow it")
    parser.add_argument("--rounds", type=int, default=2, help="the best of so many counts")
    parser.add_argument("--peer", action="store_true", help="also the published package")
    parser.add_argument("--presets", action="store_true", help="also all objectives under paper and fast")
    parser.add_argument("--presets-only", action="store_true", help="nothing but that")
    parser.add_argument("--cpu", action="store_true", help="count the presets' processor time: for a busy machine")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.weights = compare_model.write_weights(args.model, args.cache)
    folder = args.cache / "extract"
    folder.mkdir(parents=True, exist_ok=True)
    bank = negatives(folder)
    if args.peer:
        bring_peer()
    if args.presets_only:
        print(f"{args.model}, {args.threads} threads, all three objectives from {args.data}")
        return presets(args, folder)

    # Ten samples share a projection badly; a fast machine has time for more.
    first = extract(args, folder, ["none"], args.views)
    args.views = max(args.views, int(10 * first["samples_per_second"]))
    best = {}
    for _ in range(args.rounds):  # in turns, so that a slow minute meets all of them
        for name, views in VIEWS.items():
            samples = max(args.threads, args.views // views)
            run = extract(args, folder, [name], samples, bank if name == "simclr" else None)
            if name not in best or run["samples_per_second"] > best[name]["samples_per_second"]:
                best[name] = run
    everything = extract(args, folder, ["kl", "dino", "simclr"], args.threads, bank)

    base = best["none"]["samples_per_second"]
    rows = []
    print(f"{args.model}, {args.precision}, {args.threads} threads, from {args.data}")
    print(f"  {'':12s}{'samples/s':>11s}{'views/s':>10s}{'per view':>10s}{'MB':>8s}")
    for name, views in VIEWS.items():
        rate = best[name]["samples_per_second"]
        row = {"objective": name, "samples_per_second": rate, "views_per_second": rate * views,
               "share_per_view": rate * views / base, "peak_rss_mb": best[name]["peak_rss_mb"]}
        note = ""
        if args.peer and name != "none":
            other = peer(args, name, max(1, min(8, 24 // views)))
            if other:
                other = other["samples_per_second"]
                row["peer_samples_per_second"], row["ratio"] = other, rate / other
                note = f"  {rate / other:.1f}x fungivision ({other:.3f} samples/s)"
        rows.append(row)
        print(f"  {name:12s}{rate:11.2f}{rate * views:10.2f}{rate * views / base:9.2f}x"
              f"{row['peak_rss_mb']:8.0f}{note}", flush=True)
    print(f"  all three objectives, 256 x 49 negatives: {everything['peak_rss_mb']:.0f} MB resident")
    of_presets = presets(args, folder) if args.presets else []
    if args.json:
        json.dump({"rows": rows, "presets": of_presets, "peak_rss_mb_all": everything["peak_rss_mb"]}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
