#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/input/masks/: small masks as Pillow stores them, palettes and grey of every depth, and files that are no masks;
masks.json has the numbers that Pillow reads from each, and the palette of Pascal VOC as its development kit computes it (numpy).
A developer's tool; needs Pillow and numpy."""
import json
import pathlib

import numpy as np
from PIL import Image

OUT = pathlib.Path(__file__).parent / "input/masks"


def voc_palette() -> list[int]:
    colours = np.zeros((256, 3), np.uint8)
    for number in range(256):
        rest = number
        for place in range(7, -1, -1):
            for channel in range(3):
                colours[number, channel] |= (rest >> channel & 1) << place
            rest >>= 3
    return colours.ravel().tolist()


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[0:9, 0:13]
    facts = {"palette": voc_palette(), "files": {}}
    for bits in (1, 2, 4, 8):
        numbers = ((x * 7 + y * 3) % 2**bits).astype(np.uint8)
        if bits == 8:
            numbers[2, 3] = 255
        image = Image.fromarray(numbers, "P")
        image.putpalette(voc_palette()[:3 * 2**bits])
        name = f"palette{bits}.png"
        image.save(OUT / name, bits=bits)
        facts["files"][name] = np.asarray(Image.open(OUT / name)).tolist()
    grey = ((x * 5 + y) % 21).astype(np.uint8)
    Image.fromarray(grey).save(OUT / "grey8.png")
    facts["files"]["grey8.png"] = np.asarray(Image.open(OUT / "grey8.png")).tolist()
    Image.fromarray((grey % 2).astype(bool)).save(OUT / "grey1.png")
    facts["files"]["grey1.png"] = np.asarray(Image.open(OUT / "grey1.png")).astype(int).tolist()
    Image.fromarray(grey.astype(np.uint16)).save(OUT / "grey16.png")
    facts["files"]["grey16.png"] = np.asarray(Image.open(OUT / "grey16.png")).tolist()
    many = grey.astype(np.uint16)
    many[4, 6] = 300
    Image.fromarray(many).save(OUT / "many16.png")
    Image.fromarray(np.stack([grey] * 3, 2)).save(OUT / "colours.png")
    Image.fromarray(np.stack([grey] * 2, 2), "LA").save(OUT / "grey_alpha.png")
    Image.fromarray(grey).save(OUT / "mask.jpg")
    text = json.dumps(facts, separators=(",", ":"))
    (OUT / "masks.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
