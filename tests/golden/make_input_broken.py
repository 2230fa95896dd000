#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/input/broken.json: changes that break the small images of tests/golden/input/images, and what Pillow
makes of the result, strictly and with LOAD_TRUNCATED_IMAGES: the checksum of its bytes, or null where it refuses.

    make_input_broken.py            write (Pillow)
    make_input_broken.py --verify   recompute with this interpreter's Pillow and compare; writes nothing
"""
import json
import pathlib
import random
import sys
import warnings

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/golden")]
import compare_pillow  # noqa: E402
from PIL import Image, ImageFile  # noqa: E402

OUT = ROOT / "tests/golden/input/broken.json"
IMAGES = ROOT / "tests/golden/input/images"


def fnv1a64(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def verdict(data, lenient):
    ImageFile.LOAD_TRUNCATED_IMAGES = lenient
    found = compare_pillow.pillow(data)
    return None if isinstance(found, str) else f"{found[0]}x{found[1]} {fnv1a64(found[2])}"


def verdicts(case):
    data = (IMAGES / case["file"]).read_bytes()
    data = compare_pillow.edited(data, [(at, taken, bytes.fromhex(put)) for at, taken, put in case["edits"]])
    # How gaps of a progressive picture are smoothed over depends on the version of libjpeg.
    lenient = {} if case["file"] == "progressive.jpg" else {"lenient": verdict(data, True)}
    return {"strict": verdict(data, False), **lenient}


def cases():
    choice = random.Random(21)
    for path in sorted(IMAGES.iterdir()):
        if path.stem.startswith("exif") and path.stem != "exif_6":
            continue
        data, made = path.read_bytes(), 0
        while made < 12:
            _, changes = compare_pillow.edits(data, choice)
            if compare_pillow.edited(data, changes).startswith(compare_pillow.MAGIC):
                made += 1
                yield {"file": path.name, "edits": [(at, taken, put.hex()) for at, taken, put in changes]}


def main():
    warnings.simplefilter("ignore")
    if "--verify" in sys.argv:
        wrong = [c for c in json.loads(OUT.read_text()) for k, v in verdicts(c).items() if c[k] != v]
        for case in wrong:
            print("differs:", json.dumps(case), verdicts(case))
        print("Pillow", Image.__version__, "differences:", len(wrong))
        return bool(wrong)
    OUT.write_text("[\n" + ",\n".join(json.dumps({**case, **verdicts(case)}) for case in cases()) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
