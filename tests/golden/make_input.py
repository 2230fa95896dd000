#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/input/: small images of every kind with the RGB bytes Pillow gives for them, checksums of Pillow's
and torch's resizing, and checksums of Pillow's decoding of real images. A developer's tool; the tests read its files.

    make_input.py [--data DIR]           write (Pillow 9.4+, numpy, torch)
    make_input.py --verify [--data DIR]  recompute with this interpreter's Pillow and compare; writes nothing
"""
import argparse
import io
import json
import pathlib
import random
import struct
import sys
import warnings
import zlib

import numpy as np
from PIL import Image, ImageFile, ImageOps

OUT = pathlib.Path(__file__).parent / "input"
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


def fnv1a64(data: bytes) -> str:
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def pattern(width: int, height: int, seed: int) -> np.ndarray:
    """The test picture, [height, width, 3] uint8: edges, ramps and noise from integers alone (tests/input/pattern.h)."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    y, x, c = (v.astype(np.uint32) for v in (y, x, c))
    h = (x * np.uint32(73856093)) ^ (y * np.uint32(19349663)) ^ (c * np.uint32(83492791))
    h ^= np.uint32(seed * 2654435761 & 0xFFFFFFFF)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0x5BD1E995)
    noise = (h >> np.uint32(15)) & np.uint32(63)
    return (((x * 5 + y * 3 + c * 40) % 192) + noise).astype(np.uint8)


# ---------------------------------------------------------------- images of every kind


def png(width, height, depth, colour, rows, palette=None, transparency=None, exif=None, interlaced=False):
    """A PNG from packed rows (bytes per row), unfiltered; with interlaced=True rows are pixel lists, 8-bit depth."""

    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced)))
    if palette is not None:
        out += chunk(b"PLTE", palette)
    if transparency is not None:
        out += chunk(b"tRNS", transparency)
    if exif is not None:
        out += chunk(b"eXIf", exif)
    if interlaced:
        raw = b""
        for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
            for y in range(y0, height, dy):
                if x0 < width:
                    raw += b"\0" + b"".join(bytes(rows[y][x]) for x in range(x0, width, dx))
    else:
        raw = b"".join(b"\0" + row for row in rows)
    return out + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def pack_bits(values, depth):
    bits = "".join(format(int(v), f"0{depth}b") for v in values)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def jpeg(array, mode, **options):
    file = io.BytesIO()
    Image.fromarray(array, mode).save(file, "JPEG", **options)
    return file.getvalue()


def jpeg_segments(data):
    """(marker, start, end) of every segment before the scan."""
    at = 2
    while data[at + 1] != 0xDA:
        size = struct.unpack(">H", data[at + 2 : at + 4])[0]
        yield data[at + 1], at, at + 2 + size
        at += 2 + size


def jpeg_without(data, marker):
    for found, start, end in jpeg_segments(data):
        if found == marker:
            return data[:start] + data[end:]
    raise ValueError(f"no marker {marker:x}")


def adobe(transform):
    return b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00" + bytes([transform])


def tiff_orientation(value, order):
    pack = "<" if order == b"II" else ">"
    return order + struct.pack(pack + "HIHHHIHHI", 42, 8, 1, 0x0112, 3, 1, value, 0, 0)


def webp(image, **options):
    file = io.BytesIO()
    image.save(file, "WEBP", **options)
    return file.getvalue()


def images():
    """name -> file bytes."""
    w, h = 23, 17
    rgb = pattern(w, h, 1)
    smooth = np.asarray(Image.fromarray(pattern(9, 7, 2)).resize((w, h), Image.BICUBIC))
    grey, alpha = rgb[:, :, 0], rgb[:, :, 2]
    ink = np.concatenate([smooth, rgb[:, :, :1]], axis=2)
    files = {}

    files["grey.jpg"] = jpeg(smooth[:, :, 1].copy(), "L", quality=80)
    for name, sampling in (("444", 0), ("422", 1), ("420", 2)):
        files[f"ycbcr_{name}.jpg"] = jpeg(smooth, "RGB", quality=85, subsampling=sampling)
    files["progressive.jpg"] = jpeg(smooth, "RGB", quality=70, progressive=True)
    files["low_quality.jpg"] = jpeg(rgb, "RGB", quality=5)
    full = jpeg_without(jpeg(smooth, "RGB", quality=90, subsampling=0), 0xE0)
    files["rgb_adobe.jpg"] = full[:2] + adobe(0) + full[2:]
    files["no_jfif.jpg"] = full
    cmyk = jpeg(ink, "CMYK", quality=90)
    files["cmyk_adobe.jpg"] = cmyk
    files["cmyk_plain.jpg"] = jpeg_without(cmyk, 0xEE)
    files["ycck.jpg"] = cmyk[:2] + adobe(2) + jpeg_without(cmyk, 0xEE)[2:]
    exif_source = jpeg(smooth[:8, :12].copy(), "RGB", quality=90)
    for value in range(1, 9):
        block = b"Exif\0\0" + tiff_orientation(value, b"II" if value % 2 else b"MM")
        segment = b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block
        files[f"exif_{value}.jpg"] = exif_source[:2] + segment + exif_source[2:]
    cut = jpeg(smooth, "RGB", quality=90)
    files["cut.jpg"] = cut[: len(cut) - 200]
    files["no_end.jpg"] = cut[:-2]
    files["early_end.jpg"] = cut[: len(cut) - 200] + b"\xff\xd9"

    for depth in (1, 2, 4):
        rows = [pack_bits(row >> (8 - depth), depth) for row in grey]
        files[f"grey{depth}.png"] = png(w, h, depth, 0, rows)
        entries = bytes((37 * i + 11 * j) % 256 for i in range(1 << depth) for j in range(3))
        files[f"palette{depth}.png"] = png(w, h, depth, 3, rows, palette=entries)
    files["grey8.png"] = png(w, h, 8, 0, [r.tobytes() for r in grey])
    files["grey8_trns.png"] = png(w, h, 8, 0, [r.tobytes() for r in grey], transparency=b"\0\x20")
    wide = (grey.astype(np.uint16) * 3).astype(">u2")
    files["grey16.png"] = png(w, h, 16, 0, [r.tobytes() for r in wide])
    entries = bytes((91 * i + 53 * j) % 256 for i in range(256) for j in range(3))
    files["palette8_trns.png"] = png(w, h, 8, 3, [r.tobytes() for r in grey], palette=entries, transparency=bytes(range(200)))
    files["rgb8.png"] = png(w, h, 8, 2, [r.tobytes() for r in rgb])
    deep = (rgb.astype(np.uint16) * 257 - 100).astype(">u2")
    files["rgb16.png"] = png(w, h, 16, 2, [r.tobytes() for r in deep])
    grey_alpha = np.stack([grey, alpha], axis=2)
    files["grey_alpha8.png"] = png(w, h, 8, 4, [r.tobytes() for r in grey_alpha])
    files["grey_alpha16.png"] = png(w, h, 16, 4, [(r.astype(np.uint16) * 200).astype(">u2").tobytes() for r in grey_alpha])
    rgba = np.concatenate([rgb, alpha[:, :, None]], axis=2)
    files["rgba8.png"] = png(w, h, 8, 6, [r.tobytes() for r in rgba])
    files["rgba16.png"] = png(w, h, 16, 6, [(r.astype(np.uint16) * 255).astype(">u2").tobytes() for r in rgba])
    files["interlaced.png"] = png(w, h, 8, 2, rgb.tolist(), interlaced=True)
    files["interlaced_palette.png"] = png(w, h, 8, 3, [[(v,) for v in r] for r in grey.tolist()], palette=entries, interlaced=True)
    file = io.BytesIO()
    Image.fromarray(smooth).save(file, "PNG")  # with row filters
    files["filtered.png"] = file.getvalue()
    files["exif_6.png"] = png(w, h, 8, 2, [r.tobytes() for r in rgb], exif=tiff_orientation(6, b"MM"))
    noisy = png(w, h, 8, 2, [r.tobytes() for r in rgb])
    files["cut.png"] = noisy[: len(noisy) // 2]
    files["no_end.png"] = noisy[:-12]

    files["lossy.webp"] = webp(Image.fromarray(smooth), quality=80)
    files["lossless.webp"] = webp(Image.fromarray(rgb), lossless=True)
    files["lossy_alpha.webp"] = webp(Image.fromarray(rgba), quality=80)
    files["lossless_alpha.webp"] = webp(Image.fromarray(rgba), lossless=True, exact=True)
    frames = [Image.fromarray(pattern(w, h, s)) for s in (5, 6)]
    files["animated.webp"] = webp(frames[0], save_all=True, append_images=frames[1:], lossless=True)
    files["exif_8.webp"] = webp(Image.fromarray(smooth), quality=80, exif=b"Exif\0\0" + tiff_orientation(8, b"II"))
    return files


def decoded(data, exif=False, truncated=False):
    """What Pillow makes of a file: width, height and RGB bytes, or its refusal."""
    ImageFile.LOAD_TRUNCATED_IMAGES = truncated
    try:
        image = Image.open(io.BytesIO(data))
        if exif:
            image = ImageOps.exif_transpose(image)
        image = image.convert("RGB")
        return {"width": image.width, "height": image.height, "rgb": image.tobytes().hex()}
    except (OSError, SyntaxError):
        return {"error": True}
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def decode_cases(files):
    cases = []
    for name, data in sorted(files.items()):
        cases.append({"file": name, **decoded(data)})
        if name.startswith("exif"):
            cases.append({"file": name, "exif": True, **decoded(data, exif=True)})
        if "error" in cases[-1]:
            cases.append({"file": name, "truncated": True, **decoded(data, truncated=True)})
    return cases


# ---------------------------------------------------------------- resizing


def resize_cases():
    rng = random.Random(20240607)
    sizes = [(500, 375, 341, 256), (375, 500, 256, 341), (64, 64, 256, 256), (32, 32, 224, 224), (700, 31, 224, 224),
             (1, 1, 7, 5), (1, 9, 9, 1), (2, 3, 224, 2), (300, 200, 300, 80), (300, 200, 80, 200), (40, 30, 40, 30)]
    while len(sizes) < 200:
        sizes.append(tuple(rng.randint(1, 160) for _ in range(4)))
    cases = []
    for seed, (w, h, ow, oh) in enumerate(sizes):
        source = Image.fromarray(pattern(w, h, seed))
        case = {"from": [w, h], "to": [ow, oh], "seed": seed}
        for name, kind in FILTERS.items():
            data = source.resize((ow, oh), kind).tobytes()
            case[name] = fnv1a64(data)
            if len(data) <= 300:
                case[name + "_rgb"] = data.hex()
        cases.append(case)
    return cases


def float_cases():
    import torch
    import torch.nn.functional as F

    cases, values = [], []
    for seed, (w, h, ow, oh) in enumerate([(112, 112, 224, 224), (37, 23, 64, 80), (74, 74, 224, 224), (61, 50, 20, 33), (5, 4, 3, 9), (128, 96, 100, 224)]):
        plane = torch.from_numpy(pattern(w, h, 50 + seed)[:, :, 0].astype(np.float32) / np.float32(255))[None, None]
        for name in FILTERS:
            out = F.interpolate(plane, size=(oh, ow), mode=name, align_corners=False, antialias=True).numpy().ravel()
            step = max(1, out.size // 1500) | 1  # odd, so that it does not keep to one column
            kept = out[::step]
            cases.append({"from": [w, h], "to": [ow, oh], "seed": 50 + seed, "filter": name, "step": step, "at": len(values), "count": kept.size})
            values.extend(kept.tolist())
    return cases, np.array(values, dtype="<f4")


# ---------------------------------------------------------------- real images


def real_cases(data):
    """Forty real images, evenly spaced through all folders."""
    files = sorted(data.glob("images/*/*/*/*.jpg"))
    cases = []
    for path in [files[i * len(files) // 40] for i in range(40)]:
        image = Image.open(path).convert("RGB")
        cases.append({"file": path.relative_to(data).as_posix(), "width": image.width, "height": image.height, "fnv1a64": fnv1a64(image.tobytes())})
    return cases


def dump(name, cases):
    lines = ",\n".join(json.dumps(case) for case in cases)
    (OUT / name).write_text(f"[\n{lines}\n]\n")


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, help="folder of real data; without it real.json stays as it is")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    if options.verify:
        files = {p.name: p.read_bytes() for p in (OUT / "images").iterdir()}
        same = {"decode.json": decode_cases(files), "resize.json": resize_cases()}
        if options.data:
            same["real.json"] = real_cases(options.data)
        wrong = 0
        for name, cases in same.items():
            for stored, found in zip(json.loads((OUT / name).read_text()), cases):
                if stored != found:
                    wrong += 1
                    print("differs:", name, stored.get("file", stored.get("from")))
        print("Pillow", Image.__version__, "differences:", wrong)
        return 1 if wrong else 0
    (OUT / "images").mkdir(parents=True, exist_ok=True)
    files = images()
    for name, data in files.items():
        (OUT / "images" / name).write_bytes(data)
    dump("decode.json", decode_cases(files))
    dump("resize.json", resize_cases())
    cases, values = float_cases()
    dump("float_resize.json", cases)
    (OUT / "float_resize.f32").write_bytes(values.tobytes())
    if options.data:
        dump("real.json", real_cases(options.data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
