#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/input/formats/ (small TIFF, BMP, GIF, AVIF, HEIC and MPO files of every kind) and formats.json: what Pillow
makes of each, of broken copies, of cut ones with LOAD_TRUNCATED_IMAGES, and turned by its orientation. A developer's tool;
the tests read its files. HEIC needs pillow-heif; without it those files and cases stay as they are.

    make_input_formats.py            write (Pillow 13, numpy)
    make_input_formats.py --verify   recompute with this interpreter's Pillow and compare; writes nothing
"""
import io
import json
import pathlib
import random
import struct
import sys
import warnings
import zlib

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/golden")]
import compare_pillow  # noqa: E402
import numpy as np  # noqa: E402
from make_input import pattern, tiff_orientation  # noqa: E402
from make_input_broken import fnv1a64  # noqa: E402
from PIL import Image, ImageFile, ImageOps  # noqa: E402

try:
    import pillow_heif
    pillow_heif.register_heif_opener()
except ImportError:
    pillow_heif = None

OUT = ROOT / "tests/golden/input/formats"
W, H = 23, 17
RGB = pattern(W, H, 1)
GREY = RGB[:, :, 0]


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


# ---------------------------------------------------------------- BMP


def bmp(bits, rows, header=40, palette=b"", compression=0, masks=b"", height=H, colours=0):
    if header == 12:
        head = struct.pack("<IHHHH", 12, W, height, 1, bits)
    else:
        head = struct.pack("<IiiHHIIiiII", header, W, height, 1, bits, compression, 0, 0, 0, colours, 0)
        if header > 40:
            head, masks = (head + masks).ljust(header, b"\0"), b""
    offset = 14 + len(head) + len(masks) + len(palette)
    return struct.pack("<2sIHHI", b"BM", offset + len(rows), 0, 0, offset) + head + masks + palette + rows


def padded(rows):
    return b"".join(row + b"\0" * (-len(row) % 4) for row in rows)


def packed(indices, bits):
    """Rows of small numbers, the first in the highest bits."""
    out = []
    for row in indices:
        digits = "".join(f"{v:0{bits}b}" for v in row)
        digits += "0" * (-len(digits) % 8)
        out.append(int(digits, 2).to_bytes(len(digits) // 8, "big"))
    return out


def bmps():
    files = {f"{m}.bmp".lower().replace("1.", "bits."): saved(Image.fromarray(RGB).convert(m), "BMP") for m in ("1", "L", "P", "RGB", "RGBA")}
    four, eight = (GREY // 16).tolist(), GREY.tolist()
    shades = b"".join(bytes([255 - i, i // 2, i, 0]) for i in range(256))
    files["palette4.bmp"] = bmp(4, padded(packed(four, 4)), palette=shades[:64])
    files["palette1.bmp"] = bmp(1, padded(packed((GREY // 128).tolist(), 1)), palette=shades[400:408])
    files["few_colours.bmp"] = bmp(8, padded(map(bytes, eight)), palette=shades[:400], colours=100)
    files["os2.bmp"] = bmp(8, padded(map(bytes, eight)), header=12, palette=b"".join(shades[i : i + 3] for i in range(0, 1024, 4)))
    words = [struct.pack(f"<{W}H", *(int(r) >> 3 << 10 | int(g) >> 3 << 5 | int(b) >> 3 for r, g, b in row)) for row in RGB]
    files["rgb15.bmp"] = bmp(16, padded(words))
    six = [struct.pack(f"<{W}H", *(int(r) >> 3 << 11 | int(g) >> 2 << 5 | int(b) >> 3 for r, g, b in row)) for row in RGB]
    files["rgb16.bmp"] = bmp(16, padded(six), compression=3, masks=struct.pack("<3I", 0xF800, 0x7E0, 0x1F))
    four_bytes = [np.dstack([RGB, GREY])[y].tobytes() for y in range(H)]
    for name, masks in {"rgba": (0xFF, 0xFF00, 0xFF0000, 0xFF000000), "bgra": (0xFF0000, 0xFF00, 0xFF, 0xFF000000),
                        "xbgr": (0xFF000000, 0xFF0000, 0xFF00, 0), "bgar": (0xFF000000, 0xFF00, 0xFF, 0xFF0000)}.items():
        files[f"fields_{name}.bmp"] = bmp(32, padded(four_bytes), header=124, compression=3, masks=struct.pack("<4I", *masks))
    files["unknown_fields.bmp"] = bmp(32, padded(four_bytes), header=56, compression=3, masks=struct.pack("<4I", 255, 255, 255, 0))
    files["top_down.bmp"] = bmp(24, padded(row.tobytes() for row in RGB), height=-H)
    runs = b"".join(b"\5" + bytes([y * 9]) + b"\0\x03abc\0" + bytes([W - 9, 77]) + b"\0\0" for y in range(H - 4))
    runs += b"\3\x11\0\2\4\2" + b"\4\x99\0\0\0\1"
    files["runs8.bmp"] = bmp(8, runs + b"\0\0" * 8, palette=shades, compression=1)
    full = b"".join(b"\5" + bytes([y * 9]) + b"\0\x03abc\0" + bytes([W - 8, 77]) + b"\0\0" for y in range(H - 3))
    files["runs8_jump.bmp"] = bmp(8, full + b"\3\x11\0\2\4\1" + b"\x1f\x99\0\0\x10\x02\0\0" + b"\0\1", palette=shades, compression=1)
    files["runs4.bmp"] = bmp(4, b"".join(b"\6" + bytes([y * 15]) + b"\0\x05\x12\x34\x50\0" + bytes([W - 11, 0x4C]) + b"\0\0" for y in range(H)), palette=shades[:64], compression=2)
    return files


# ---------------------------------------------------------------- GIF


def gifs():
    image = Image.fromarray(RGB)
    palette = image.quantize(40)
    files = {"grey.gif": saved(image.convert("L"), "GIF"), "palette.gif": saved(palette, "GIF", interlace=0),
             "interlaced.gif": saved(palette, "GIF", interlace=1), "bits.gif": saved(image.convert("1"), "GIF"),
             "transparent.gif": saved(palette, "GIF", transparency=3, comment=b"a comment")}
    frames = [Image.fromarray(pattern(W, H, s)).quantize(16) for s in (2, 3)]
    files["animated.gif"] = saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=40, loop=0, disposal=2)
    # A frame with colours of its own that makes the canvas larger, in front of it an extension nobody knows.
    small = saved(Image.fromarray(RGB[:5, :7]).quantize(8), "GIF", interlace=0)
    colours = 3 << (small[10] & 7) + 1
    start = small.index(b",", 13 + colours)
    frame = b"," + struct.pack("<HHHH", 9, 4, 7, 5) + bytes([0x80 | small[10] & 7]) + small[13 : 13 + colours] + small[start + 10 :]
    files["placed.gif"] = b"GIF89a" + struct.pack("<HHBBB", 12, 6, 0, 0, 0) + b"!\x99\3abc\0" + b"!\xf9\4\1\0\0\2\0" + frame
    return files


# ---------------------------------------------------------------- TIFF


def tiff(tags, strips, order="<", tiled=False, big=False):
    """A TIFF of tags {number: (type, values)} and the bytes of its strips or tiles."""
    word, size = ("Q", 8) if big else ("I", 4)
    out = (b"II" if order == "<" else b"MM") + struct.pack(order + ("HHHQ" if big else "HI"), *((43, 8, 0, 0) if big else (42, 0)))
    offsets = []
    for strip in strips:
        offsets.append(len(out))
        out += strip + b"\0" * (len(strip) % 2)
    tags = {**tags, (324 if tiled else 273): (4, offsets), (325 if tiled else 279): (4, [len(s) for s in strips])}
    entries = []
    for tag, (kind, values) in sorted(tags.items()):
        data = values if isinstance(values, bytes) else struct.pack(f"{order}{len(values)}{ {1: 'B', 3: 'H', 4: 'I', 8: 'h'}[kind] }", *values)
        count = len(values)
        if len(data) > size:
            at = len(out)
            out += data + b"\0" * (len(data) % 2)
            data = struct.pack(order + word, at)
        entries.append(struct.pack(f"{order}HH{word}", tag, kind, count) + data.ljust(size, b"\0"))
    place = 8 if big else 4
    out = out[:place] + struct.pack(order + word, len(out)) + out[place + size :]
    return out + struct.pack(order + ("Q" if big else "H"), len(entries)) + b"".join(entries) + struct.pack(order + word, 0)


def facts(photometric, bits, samples=1, width=W, height=H, **more):
    tags = {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * samples), 259: (3, [1]), 262: (3, [photometric]), 277: (3, [samples])}
    names = {"rows": 278, "planes": 284, "fill": 266, "extra": 338, "format": 339, "orientation": 274}
    for name, value in more.items():
        tags[names[name]] = (3, value if isinstance(value, list) else [value])
    return tags


def tiles(array, w, h):
    rows, columns = array.shape[:2]
    out = []
    for y in range(0, rows, h):
        for x in range(0, columns, w):
            tile = np.zeros((h, w) + array.shape[2:], array.dtype)
            piece = array[y : y + h, x : x + w]
            tile[: piece.shape[0], : piece.shape[1]] = piece
            out.append(tile.tobytes())
    return out


def reverse_bits(data):
    return bytes(int(f"{b:08b}"[::-1], 2) for b in data)


def tiffs():
    image = Image.fromarray(RGB)
    files = {}
    for mode in ("1", "L", "P", "LA", "RGB", "RGBA", "CMYK", "YCbCr", "I", "F"):
        files[f"{mode.lower()}.tif".replace("1.", "bits.")] = saved(image.convert(mode), "TIFF")
    for name in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "lzma", "zstd"):
        files[f"{name.replace('tiff_', '')}.tif"] = saved(image, "TIFF", compression=name)
    for name in ("group3", "group4", "tiff_ccitt"):
        files[f"{name}.tif"] = saved(image.convert("1"), "TIFF", compression=name)
    files["jpeg_ycbcr.tif"] = saved(image.convert("YCbCr"), "TIFF", compression="jpeg")
    files["lzw_ycbcr.tif"] = saved(image.convert("YCbCr"), "TIFF", compression="tiff_lzw")
    files["lzw_rgba.tif"] = saved(image.convert("RGBA"), "TIFF", compression="tiff_lzw")
    files["lzw_float.tif"] = saved(image.convert("F"), "TIFF", compression="tiff_lzw")
    files["deflate_palette.tif"] = saved(image.quantize(50), "TIFF", compression="tiff_adobe_deflate")
    wide = Image.fromarray(GREY.astype(np.uint16) * 3)
    files["grey16.tif"] = saved(wide, "TIFF")
    files["lzw_grey16.tif"] = saved(wide, "TIFF", compression="tiff_lzw")
    files["pages.tif"] = saved(image, "TIFF", save_all=True, append_images=[image.rotate(180)])
    for value in range(1, 9):
        files[f"exif_{value}.tif"] = saved(image.convert("L"), "TIFF", tiffinfo={274: value})
    strips = [RGB[y : y + 5].tobytes() for y in range(0, H, 5)]
    files["strips.tif"] = tiff(facts(2, 8, 3, rows=5), strips)
    files["strips_big_endian.tif"] = tiff(facts(2, 8, 3, rows=5), strips, ">")
    files["strips_bigtiff.tif"] = tiff(facts(2, 8, 3, rows=5), strips, big=True)
    files["strips_missing.tif"] = tiff(facts(5, 8, 4, rows=5), [np.dstack([RGB, GREY])[y : y + 5].tobytes() for y in (0, 5)])
    tile = {**facts(2, 8, 3), 322: (3, [16]), 323: (3, [8])}
    files["tiles.tif"] = tiff(tile, tiles(RGB, 16, 8), tiled=True)
    files["planes.tif"] = tiff(facts(2, 8, 3, planes=2, rows=9), [RGB[y : y + 9, :, c].tobytes() for c in range(3) for y in (0, 9)])
    files["noise_planes.tif"] = tiff(facts(2, 16, 3, planes=2, rows=H), [RGB[:, :, c].astype(np.uint16).tobytes() for c in range(3)])
    for bits, kind in ((32, 3), (32, 2), (16, 2)):
        values = GREY.astype(f">{'f' if kind == 3 else 'i'}{bits // 8}")
        files[f"noise_{bits}_{kind}.tif"] = tiff({**facts(1, bits, format=kind), 259: (3, [8])}, [zlib.compress(values.tobytes())], ">")
    for name, order in {"": "<", "_big_endian": ">"}.items():
        words = (RGB.astype(np.uint16) * 257 + 3).astype(order + "u2")
        files[f"rgb16{name}.tif"] = tiff(facts(2, 16, 3), [words.tobytes()], order)
        files[f"signed16{name}.tif"] = tiff(facts(1, 16, format=2), [(GREY.astype(np.int16) * 4 - 200).astype(order + "i2").tobytes()], order)
        files[f"grey16{name}_stored.tif"] = tiff(facts(1, 16), [(GREY.astype(np.uint16) * 2).astype(order + "u2").tobytes()], order)
        files[f"float{name}.tif"] = tiff(facts(1, 32, format=3), [(GREY.astype(np.float32) * 2.3 - 60).astype(order + "f4").tobytes()], order)
    for bits in (1, 2, 4, 8):
        rows = b"".join(packed((GREY >> 8 - bits).tolist(), bits))
        for fill, data in ((1, rows), (2, reverse_bits(rows))):
            for photometric in (0, 1, 3):
                tags = facts(photometric, bits, fill=fill)
                if photometric == 3:
                    tags[320] = (3, [(i * 7919 + c * 40000) % 65536 for c in range(3) for i in range(1 << bits)])
                files[f"small{bits}_{photometric}_{fill}.tif"] = tiff(tags, [data])
    files["grey12.tif"] = tiff(facts(1, 12), [b"".join(packed((GREY.astype(int) * 3).tolist(), 12))])
    alpha = np.dstack([RGB, GREY])
    for extra in (0, 1, 2, 999):
        files[f"alpha_{extra}.tif"] = tiff(facts(2, 8, 4, extra=extra), [alpha.tobytes()])
        files[f"grey_alpha_{extra}.tif"] = tiff(facts(1, 8, 2, extra=extra), [alpha[:, :, 2:].tobytes()])
    files["more_samples.tif"] = tiff(facts(2, 8, 6, extra=[1, 0, 0]), [np.dstack([alpha, alpha[:, :, :2]]).tobytes()])
    files["cmyk_16.tif"] = tiff(facts(5, 16, 4), [(alpha.astype(np.uint16) * 256).tobytes()])
    files["xmp_orientation.tif"] = tiff({**facts(1, 8), 700: (1, b'<x tiff:Orientation="6"/>')}, [GREY.tobytes()])
    return files


# ---------------------------------------------------------------- AVIF and HEIC


def avifs():
    smooth = Image.fromarray(RGB).resize((40, 26), Image.BICUBIC)
    options = {"quality": 80, "speed": 10}
    files = {f"{s.replace(':', '')}.avif": saved(smooth, "AVIF", subsampling=s, **options) for s in ("4:2:0", "4:2:2", "4:4:4")}
    files["grey.avif"] = saved(smooth.convert("L"), "AVIF", **options)
    files["alpha.avif"] = saved(Image.fromarray(np.dstack([RGB, GREY])), "AVIF", subsampling="4:4:4", **options)
    files["animated.avif"] = saved(smooth, "AVIF", save_all=True, append_images=[smooth.rotate(180)], subsampling="4:4:4", **options)
    for value in (2, 5, 6, 7, 8):
        files[f"exif_{value}.avif"] = saved(smooth, "AVIF", exif=b"Exif\0\0" + tiff_orientation(value, b"II"), subsampling="4:4:4", **options)
    return files


def heics():
    if not pillow_heif:
        return {}
    smooth = Image.fromarray(RGB).resize((40, 26), Image.BICUBIC)
    files = {"420.heic": saved(smooth, "HEIF", quality=80), "444.heic": saved(smooth, "HEIF", quality=80, chroma=444),
             "alpha.heic": saved(smooth.convert("RGBA"), "HEIF", quality=80, chroma=444), "grey.heic": saved(smooth.convert("L"), "HEIF", quality=80)}
    return files


# ---------------------------------------------------------------- what Pillow makes of them


def found(data, lenient=False, exif=False):
    ImageFile.LOAD_TRUNCATED_IMAGES = lenient
    try:
        with Image.open(io.BytesIO(data)) as image:
            image = (ImageOps.exif_transpose(image) if exif else image).convert("RGB")
            return f"{image.width}x{image.height} {fnv1a64(image.tobytes())}"
    except Exception:
        return None
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def verdicts(case):
    data = compare_pillow.edited((OUT / case["file"]).read_bytes(), [(at, taken, bytes.fromhex(put)) for at, taken, put in case["edits"]])
    exif = {"exif": found(data, exif=True)} if case["file"].startswith("exif") and not case["edits"] else {}
    if case["file"].endswith("heic"):  # libheif's versions differ by a shade
        return {"near": Image.open(io.BytesIO(data)).convert("RGB").tobytes().hex()}
    if case["file"].startswith("noise"):  # which is what Pillow makes of these; here they are refused
        return {"strict": None, "lenient": None}
    # Of damaged AVIF the decoders, and their versions, make what they like.
    return {"strict": found(data), **({} if case["file"].endswith("avif") else {"lenient": found(data, True)}), **exif}


def cases(names):
    choice = random.Random(11)
    for name in names:
        data = (OUT / name).read_bytes()
        yield {"file": name, "edits": []}
        kind = name.rpartition(".")[2]
        broken = {"bmp": 6, "gif": 12, "tif": 5}.get(kind, 0)
        if name.startswith(("group3", "tiff_ccitt", "jpeg", "adobe", "deflate", "noise")):  # versions of libtiff differ about these
            broken = 0
        while broken:
            _, changes = compare_pillow.edits(data, choice)
            if compare_pillow.is_picture(compare_pillow.edited(data, changes)):
                broken -= 1
                yield {"file": name, "edits": [(at, taken, put.hex()) for at, taken, put in changes]}


def main():
    warnings.simplefilter("ignore")
    listed = OUT.parent / "formats.json"
    if "--verify" in sys.argv:
        stored = [c for c in json.loads(listed.read_text()) if pillow_heif or not c["file"].endswith("heic")]
        wrong = [(c, v) for c in stored if (v := verdicts(c)) != {k: c[k] for k in v}]
        for case, verdict in wrong:
            print("differs:", json.dumps(case), verdict)
        print("Pillow", Image.__version__, "differences:", len(wrong), "of", len(stored))
        return bool(wrong)
    OUT.mkdir(parents=True, exist_ok=True)
    shown = Image.fromarray(RGB)
    several = {"several.mpo": saved(shown, "MPO", save_all=True, append_images=[shown.rotate(180)])}
    files = {**bmps(), **gifs(), **tiffs(), **avifs(), **heics(), **several}
    for name, data in files.items():
        (OUT / name).write_bytes(data)
    kept = [] if pillow_heif or not listed.exists() else [c for c in json.loads(listed.read_text()) if c["file"].endswith("heic")]
    lines = [json.dumps({**case, **verdicts(case)}) for case in cases(sorted(files))] + [json.dumps(c) for c in kept]
    listed.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
