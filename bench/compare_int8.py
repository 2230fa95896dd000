# SPDX-License-Identifier: Apache-2.0
"""How close int8 stays to f32: embeddings of real pictures by DeiT-tiny, ours and NNCF's beside it.

    bench/compare int8 [--pictures 128] [--model deit_tiny_patch16_224.safetensors]
    bench/compare int8 --knn      # also what it does to nearest neighbours on whole sets

Each side is compared with itself in f32, picture by picture. NNCF is calibrated with other pictures
of the set, ours with none.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import compare_openvino
import compare_peers

HERE = pathlib.Path(__file__).resolve().parent
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def pixels(file):
    """timm's evaluation transform of DeiT: shorter side 256 bicubic, centre 224."""
    from PIL import Image
    picture = Image.open(file).convert("RGB")
    scale = 256 / min(picture.size)
    picture = picture.resize([round(side * scale) for side in picture.size], Image.BICUBIC)
    left, top = (round((side - 224) / 2) for side in picture.size)
    picture = np.asarray(picture.crop((left, top, left + 224, top + 224)), np.float32) / 255
    return np.ascontiguousarray(((picture - MEAN) / STD).transpose(2, 0, 1))[None]


def ours(args, pictures, precision, work):
    store = work / precision
    subprocess.run([args.fungi, "extract", str(pictures), "-m", str(args.model), "-o", str(store), "-q",
                    "--precision", precision, "--objectives", "none", "--limit", str(args.pictures)],
                   check=True)
    return np.concatenate([np.load(f) for f in sorted(store.glob("embedding-*.npy"))])


def openvino_models(args, others, work):
    """In f32 and in int8."""
    shape = argparse.Namespace(model="vit_tiny_patch16_224", weights=str(args.model), batch=1)
    graph = str(work / "deit.onnx")
    compare_peers.build_onnx(shape, graph)
    calibration = [pixels(f) for f in others]
    return [compare_openvino.Openvino(graph, precision, args.threads, calibration) for precision in ("f32", "int8")]


def theirs(args, files, work):
    inputs = [pixels(f) for f in files]
    return [np.concatenate(model.run_all(inputs)) for model in openvino_models(args, args.others, work)]


def report(name, exact, rounded):
    cosines = (exact * rounded).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(rounded, axis=1)
    print(f"  {name:22s}mean {cosines.mean():.5f}  least {cosines.min():.5f}")


def accuracy(train, train_labels, test, test_labels, k=20):
    """Of the nearest rows of length 1 each has a vote; of equal counts the class with the nearest of them wins."""
    unit = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)
    nearest = np.argsort(-(unit(test) @ unit(train).T), axis=1, kind="stable")[:, :k]
    right = 0
    for row, label in zip(train_labels[nearest], test_labels):
        counts = {c: int((row == c).sum()) for c in row}
        right += max(counts, key=counts.get) == label  # the first of equal ones, in the order of distance
    return right / len(test_labels)


def neighbours(args, name, work):
    """Accuracy on one set, of the embedding of four engines: the same pictures, the same vote."""
    files = {split: sorted((args.sets / name / split).glob("*/*")) for split in ("train", "test")}
    labels = {split: np.array([f.parent.name for f in files[split]]) for split in files}
    rows = {}
    for precision in ("f32", "int8"):
        for split in files:
            store = work / f"{name}-{split}"
            everything = argparse.Namespace(**{**vars(args), "pictures": 0})
            own = ours(everything, args.sets / name / split, precision, store)
            ids = [json.loads(line)["id"] for part in sorted((store / precision).glob("rows-*.jsonl"))
                   for line in part.read_text().splitlines()]
            place = {key: i for i, key in enumerate(ids)}
            rows["fungi " + precision, split] = own[[place[f"{f.parent.name}/{f.name}"] for f in files[split]]]
    models = dict(zip(("OpenVINO f32", "OpenVINO, NNCF int8"), openvino_models(args, files["train"][::8], work)))
    for engine, model in models.items():
        for split in files:  # a few at a time: all of them as pixels would be gigabytes
            rows[engine, split] = np.concatenate([np.concatenate(model.run_all([pixels(f) for f in files[split][i:i + 64]]))
                                                  for i in range(0, len(files[split]), 64)])
    engines = ("fungi f32", "fungi int8", "OpenVINO f32", "OpenVINO, NNCF int8")
    return {e: accuracy(rows[e, "train"], labels["train"], rows[e, "test"], labels["test"]) for e in engines}


def compare_neighbours(args):
    print("nearest neighbours of the embedding, k = 20, percent")
    found = {}
    for name in args.names:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = neighbours(args, name, pathlib.Path(folder))
    print(f"  {'':22s}" + "".join(f"{name:>12s}" for name in found) + f"{'mean':>10s}")
    for engine in next(iter(found.values())):
        values = [100 * found[name][engine] for name in found]
        print(f"  {engine:22s}" + "".join(f"{v:12.2f}" for v in values) + f"{np.mean(values):10.2f}")


def main():
    parser = argparse.ArgumentParser(prog="bench/compare int8", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    data = pathlib.Path(os.environ.get("FUNGI_DATA", HERE.parent / "../shared/data"))
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    parser.add_argument("--fungi", default=str(HERE.parent / "build/fungi"))
    parser.add_argument("--model", type=pathlib.Path,
                        default=data / "weights/deit_tiny_patch16_224.safetensors")
    parser.add_argument("--data", type=pathlib.Path, default=data / "images/pets")
    parser.add_argument("--pictures", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--knn", action="store_true", help="also nearest neighbours on the sets below --sets")
    parser.add_argument("--sets", type=pathlib.Path, default=data / "images")
    parser.add_argument("--names", nargs="+", default=["flowers102", "pets", "eurosat", "dtd10"])
    args = parser.parse_args()
    files = sorted((args.data / "test").glob("*/*"))
    args.pictures = min(args.pictures, len(files))
    args.others = sorted((args.data / "train").glob("*/*"))[::8]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        chosen = [files[i] for i in range(args.pictures)]
        print(f"{args.model.name}, {args.pictures} pictures: cosine of int8 to f32")
        try:
            exact = ours(args, args.data / "test", "f32", work)
            report("fungi", exact, ours(args, args.data / "test", "int8", work))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"  fungi                 skipped: {error}", file=sys.stderr)
        report("OpenVINO, NNCF int8", *theirs(args, chosen, work))
    if args.knn:
        compare_neighbours(args)


if __name__ == "__main__":
    main()
