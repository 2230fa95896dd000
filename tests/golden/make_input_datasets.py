#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/input/folder.json (the order and numbers torchvision's ImageFolder gives to a tree of awkward names)
and tests/golden/input/shards/ (tar shards written by Python's tarfile, one compressed by zstd). A developer's tool.
"""
import io
import json
import pathlib
import subprocess
import tarfile
import tempfile

from torchvision.datasets import ImageFolder

OUT = pathlib.Path(__file__).parent / "input"

TREE = ["b/2.jpg", "b/10.jpg", "b/1.JPG", "a/z.png", "a/sub/a.png", "a/sub b/b.png", "a/sub/deep/c.webp", "a b/x.jpeg",
        "a b/\u00e9.jpg", "a b/Z.jpg", "a b/a.jpg", "B/readme.txt", "B/one.jpg", "\u00fcmlaut/p.png", "a-1/q.jpg", "a-1/q.txt"]


def folder():
    with tempfile.TemporaryDirectory() as root:
        for name in TREE:
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
        found = ImageFolder(root)
        samples = [[pathlib.Path(p).relative_to(root).as_posix(), label] for p, label in found.samples]
        return {"tree": TREE, "classes": found.classes, "samples": samples}


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def shards():
    """Three shards with the same images under different keys, labels by .cls, by .json, and by name."""
    target = OUT / "shards"
    target.mkdir(exist_ok=True)
    image = {n: (OUT / "images" / n).read_bytes() for n in ("rgb8.png", "grey.jpg", "lossy.webp", "ycbcr_420.jpg")}
    long = "folder/" * 20 + "n" * 120
    with tarfile.open(target / "plain.tar", "w", format=tarfile.GNU_FORMAT) as tar:
        add(tar, "000.png", image["rgb8.png"])
        add(tar, "000.cls", b"3\n")
        add(tar, "sub/001.cls", b"0")
        add(tar, "sub/001.jpg", image["grey.jpg"])
        add(tar, "sub/001.seg.png", image["rgb8.png"])
        add(tar, long + ".webp", image["lossy.webp"])
        add(tar, "._000.png", b"resource fork")
        add(tar, "last.JPG", image["ycbcr_420.jpg"])
    with tarfile.open(target / "packed.tar.gz", "w:gz", format=tarfile.PAX_FORMAT, compresslevel=9) as tar:
        for i in range(12):
            name = list(image)[i % 4]
            add(tar, f"p{i:03}.json", json.dumps({"label": "dog" if i % 3 else "cat", "i": i}).encode())
            add(tar, f"p{i:03}.txt", b"a caption")
            add(tar, f"p{i:03}{pathlib.Path(name).suffix}", image[name])
        add(tar, "other/" + long + ".png", image["rgb8.png"])
    with tempfile.TemporaryDirectory() as folder_name:
        plain = pathlib.Path(folder_name, "z.tar")
        with tarfile.open(plain, "w", format=tarfile.USTAR_FORMAT) as tar:
            add(tar, "./z1.png", image["rgb8.png"])
            add(tar, "./z1.cls", b"7")
        subprocess.run(["zstd", "-q", "-f", "-19", plain, "-o", target / "packed.tar.zst"], check=True)


if __name__ == "__main__":
    (OUT / "folder.json").write_text(json.dumps(folder(), indent=1) + "\n")
    shards()
