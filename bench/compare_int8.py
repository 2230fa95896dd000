# SPDX-License-Identifier: Apache-2.0
"""How close int8 stays to f32: embeddings of real pictures by DeiT-tiny, ours and NNCF's beside it.

    bench/compare int8 [--pictures 128] [--model deit_tiny_patch16_224.safetensors]

Each side is compared with itself in f32, picture by picture. NNCF is calibrated with other pictures
of the set, ours with none.
"""
import argparse
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


def theirs(args, files, work):
    """In f32 and in int8."""
    shape = argparse.Namespace(model="vit_tiny_patch16_224", weights=str(args.model), batch=1)
    graph = str(work / "deit.onnx")
    compare_peers.build_onnx(shape, graph)
    inputs = [pixels(f) for f in files]
    calibration = [pixels(f) for f in args.others]
    return [np.concatenate(compare_openvino.Openvino(graph, precision, args.threads, calibration)
                           .run_all(inputs)) for precision in ("f32", "int8")]


def report(name, exact, rounded):
    cosines = (exact * rounded).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(rounded, axis=1)
    print(f"  {name:22s}mean {cosines.mean():.5f}  least {cosines.min():.5f}")


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


if __name__ == "__main__":
    main()
