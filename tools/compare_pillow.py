#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes every file of a folder with Pillow and with us and names each where the verdict (readable or refused) or a byte of RGB
differs; exit status 1 when there is one. A developer's tool; needs Pillow (10 or later to make files) and build/input_bench.

    compare_pillow.py FOLDER [--lenient]          any folder, for example Tests/images of Pillow's source distribution
    compare_pillow.py FOLDER --mutate N [--only SUFFIX] [--seed S] [--keep DIR]
        N broken files made of pictures of FOLDER, as JPEG (baseline, progressive, grey, CMYK, restart markers), PNG (all
        colour types, interlaced), WebP (lossy, lossless, animated), TIFF (every kind of pixel and of compression that
        Pillow writes), GIF, BMP and AVIF: bytes flipped, cut, removed, inserted, copied

--lenient compares LOAD_TRUNCATED_IMAGES with DecodeOptions::allow_truncated. Files of other formats are counted and left
out; so is AVIF where the program was built without it.
"""
import argparse
import collections
import io
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

from PIL import Image, ImageFile

FORMATS = ["JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF", "AVIF"]
MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"II*\0", b"MM\0*", b"II+\0", b"BM", b"GIF87a", b"GIF89a")
SUFFIXES = {"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "webp": "WEBP", "tif": "TIFF", "tiff": "TIFF", "bmp": "BMP",
            "gif": "GIF", "avif": "AVIF"}


def is_picture(data):
    return data.startswith(MAGIC) or data[4:12] in (b"ftypavif", b"ftypavis")


def pillow(data):
    """(width, height, rgb), or the reason why there is none."""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            rgb = image.convert("RGB")
            return rgb.width, rgb.height, rgb.tobytes()
    except Exception as error:  # whatever Pillow throws, it refuses
        return f"{type(error).__name__}: {error}"


class Ours:
    def __init__(self, program, lenient):
        self.process = subprocess.Popen([program, "--pixels"] + ["--allow-truncated"] * lenient,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, path):
        self.process.stdin.write(str(path).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode(errors="replace").strip()
        if not line:
            sys.exit(f"{path}: the program ended")
        if line.startswith("refused "):
            return line[8:]
        width, height = map(int, line.split())
        return width, height, self.process.stdout.read(3 * width * height)


def encodings(image, choice, only):
    """One encoding of the picture: (suffix, bytes)."""
    jpeg = dict(format="JPEG", quality=choice.choice([30, 75, 92]))
    kinds = [
        ("jpg", "RGB", jpeg), ("jpg", "RGB", jpeg), ("jpg", "RGB", {**jpeg, "subsampling": 0}),
        ("jpg", "RGB", {**jpeg, "progressive": True}), ("jpg", "L", jpeg), ("jpg", "CMYK", jpeg),
        ("jpg", "RGB", {**jpeg, "restart_marker_rows": 1}), ("jpg", "RGB", {**jpeg, "optimize": True}),
        ("png", "RGB", {}), ("png", "RGBA", {}), ("png", "L", {}), ("png", "LA", {}), ("png", "P", {}), ("png", "1", {}),
        ("png", "I;16", {}), ("webp", "RGB", {}), ("webp", "RGBA", {}), ("webp", "RGB", {"lossless": True}),
        ("webp", "RGB", {"save_all": True}),
    ]
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        kinds += [("bmp", mode, {})] + [("tif", mode, {"compression": c}) for c in
                                        (None, None, "tiff_lzw", "tiff_adobe_deflate", "packbits")]
    kinds += [("tif", mode, {"compression": choice.choice([None, "tiff_lzw"])}) for mode in
              ("LA", "CMYK", "YCbCr", "I;16", "I", "F")]
    kinds += [("tif", "1", {"compression": c}) for c in ("group3", "group4", "tiff_ccitt")]
    kinds += [("tif", m, {"compression": "jpeg"}) for m in ("L", "RGB", "YCbCr")]
    kinds += [("gif", mode, {"interlace": i}) for mode in ("1", "L", "P", "RGB", "RGBA") for i in (0, 1)]
    kinds += [("avif", m, {"subsampling": c, "speed": 10}) for m in ("L", "RGB", "RGBA") for c in ("4:2:0", "4:4:4")]
    kinds += [("gif", "P", {"save_all": True}), ("gif", "P", {"transparency": 3})]
    suffix, mode, options = choice.choice([k for k in kinds if only in (None, k[0])])
    kind = SUFFIXES[suffix]
    shown = image.convert("L").convert("I;16") if mode == "I;16" else image.convert(mode)
    if options.get("save_all"):
        options = {**options, "append_images": [shown.rotate(90), shown.rotate(180)]}
    file = io.BytesIO()
    shown.save(file, **{"format": kind, **options})
    return suffix, file.getvalue()


def edits(data, choice):
    """A name and what it stands for: (where, bytes taken away, bytes put there), one after the other."""
    # a third of all changes near the front, a third near the end: there the decisions are
    def place():
        near = choice.randrange(3)
        low = max(0, len(data) - 40) if near == 1 else 0
        high = min(len(data), 700) if near == 2 else len(data)
        return choice.randrange(low, max(high, low + 1))

    kind = choice.choice(["flip", "flip", "bit", "cut", "remove", "insert", "copy", "zero"])
    at = place()
    if kind == "flip":
        return kind, [(place(), 1, bytes([choice.randrange(256)])) for _ in range(choice.choice([1, 1, 3, 10]))]
    if kind == "bit":
        return kind, [(at, 1, bytes([data[at] ^ 1 << choice.randrange(8)]))]
    if kind == "cut":
        return kind, [(at, len(data) - at, b"")]
    if kind == "remove":
        return kind, [(at, choice.choice([1, 2, 4, 100]), b"")]
    if kind == "insert":
        return kind, [(at, 0, choice.randbytes(choice.choice([1, 2, 4, 100])))]
    if kind == "copy":
        start = place()
        return kind, [(at, 0, data[start : start + choice.choice([2, 12, 100])])]
    size = min(choice.choice([1, 4, 64]), len(data) - at)
    return kind, [(at, size, bytes(size))]


def edited(data, changes):
    for at, taken, put in changes:
        data = data[:at] + put + data[at + taken :]
    return data


def readable(path):
    return path.is_file() and not isinstance(pillow(path.read_bytes()), str)


def mutations(folder, count, seed, only):
    """(name, bytes) of broken files; the same for the same pictures, seed and version of Pillow."""
    choice = random.Random(seed)
    kinds = [s for s, kind in SUFFIXES.items() if only is None or kind == SUFFIXES[only]]
    sources = sorted(p for p in folder.rglob("*") if p.suffix.lower()[1:] in SUFFIXES and readable(p))
    originals = [p for p in sources if p.suffix.lower()[1:] in kinds and p.stat().st_size < 300_000]
    made = 0
    while made < count:
        source = choice.choice(sources)
        if choice.randrange(4) == 0 and originals:  # a file itself, as its camera or program wrote it
            source = choice.choice(originals)
            suffix, data = source.suffix[1:].lower(), source.read_bytes()
        else:
            with Image.open(source) as image:
                image = image.convert("RGB")
                image.info = {}  # what another format said means nothing here
                if choice.randrange(8):  # small ones are quick; the others are more than one block of 64 KiB
                    image.thumbnail((choice.randrange(1, 120), choice.randrange(1, 120)))
                elif choice.randrange(2):
                    image = image.resize((900, 700))
                suffix, data = encodings(image, choice, only)
        kind, changes = edits(data, choice)
        data = edited(data, changes)
        if is_picture(data):  # otherwise it is no picture to either
            yield f"{made:05}_{kind}.{suffix}", data
            made += 1


def compare(files, ours, out):
    counts = collections.Counter()
    for name, path in files:
        data = path.read_bytes()
        theirs, mine = pillow(data), ours(path)
        if isinstance(theirs, str) and not is_picture(data):
            counts["of other formats"] += 1
            continue
        if isinstance(mine, str) and "this build of fungi" in mine:
            counts["of formats that were left out"] += 1
            continue
        if isinstance(theirs, str) and isinstance(mine, str):
            counts["refused by both"] += 1
        elif isinstance(theirs, str):
            out.append(f"{name}: only Pillow refuses it: {theirs}")
        elif isinstance(mine, str):
            out.append(f"{name}: only we refuse it: {mine}")
        elif theirs != mine:
            out.append(f"{name}: other pixels ({theirs[0]}x{theirs[1]}, {mine[0]}x{mine[1]})")
        else:
            counts["the same pixels"] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mutate", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(SUFFIXES), help="break files of this format alone")
    parser.add_argument("--lenient", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="where the mutated files go (default: a temporary folder)")
    parser.add_argument("--program", default="build/input_bench")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    with tempfile.TemporaryDirectory() as temporary:
        if options.mutate:
            folder = options.keep or pathlib.Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            files = []
            for name, data in mutations(options.folder, options.mutate, options.seed, options.only):
                (folder / name).write_bytes(data)
                files.append((name, folder / name))
        else:
            files = [(str(p.relative_to(options.folder)), p) for p in sorted(options.folder.rglob("*")) if p.is_file()]
        ImageFile.LOAD_TRUNCATED_IMAGES = options.lenient
        differences = []
        counts = compare(files, Ours(options.program, options.lenient), differences)
    print("\n".join(differences + [f"{len(files)} files: {len(differences)} differ"]
                    + [f"  {count} {what}" for what, count in counts.items()]))
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
