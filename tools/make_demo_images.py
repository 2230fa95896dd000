#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes demo/images: the first images of every class of Fashion-MNIST as PNG files in class folders.

The input is the folder with the four gzipped IDX files, as the Debian package `dataset-fashion-mnist` installs it
(/usr/share/datasets/fashion-mnist). A developer's tool: needs numpy and Pillow. The result is in the repository.

    python tools/make_demo_images.py --source /usr/share/datasets/fashion-mnist --output demo/images
"""
import argparse
import gzip
import pathlib

import numpy
from PIL import Image

CLASSES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot"]


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    if data[:3] != b"\0\0\x08":
        raise SystemExit(f"{path}: expected an IDX file of unsigned bytes")
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--source", type=pathlib.Path, required=True)
    p.add_argument("--output", type=pathlib.Path, required=True)
    p.add_argument("--train", type=int, default=60, help="training images per class")
    p.add_argument("--test", type=int, default=40, help="test images per class")
    args = p.parse_args()
    for split, prefix, count in (("train", "train", args.train), ("test", "t10k", args.test)):
        images = read_idx(args.source / f"{prefix}-images-idx3-ubyte.gz")
        labels = read_idx(args.source / f"{prefix}-labels-idx1-ubyte.gz")
        for number, name in enumerate(CLASSES):
            folder = args.output / split / name
            folder.mkdir(parents=True, exist_ok=True)
            for i in numpy.flatnonzero(labels == number)[:count]:  # named after their place in the original file
                Image.fromarray(images[i]).save(folder / f"{i:05d}.png", optimize=True)


if __name__ == "__main__":
    main()
