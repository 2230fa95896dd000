#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the scenes of docs/segment-page.png, shapes of cloth on cloth, into FOLDER/{train,test}/{images,masks}: make_segment_scenes.py FOLDER.
Photographs of data sets may not be given away; these may. Needs numpy and Pillow."""
import pathlib
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT, SHAPES = 320, 240, ("disc", "box", "star", "ring")


def cloth(rng, colour):
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    turn, pitch = rng.uniform(0, np.pi), rng.uniform(6, 14)
    stripes = np.sin((x * np.cos(turn) + y * np.sin(turn)) * 2 * np.pi / pitch)
    shade = 1 + 0.25 * (x - WIDTH / 2) / WIDTH * rng.uniform(-1, 1) + 0.25 * (y - HEIGHT / 2) / HEIGHT
    return (np.array(colour)[None, None] + 18 * stripes[..., None]) * shade[..., None] + rng.normal(0, 7, (HEIGHT, WIDTH, 1))


def outline(rng, shape):
    image = Image.new("L", (WIDTH, HEIGHT))
    draw, r = ImageDraw.Draw(image), rng.uniform(35, 75)
    cx, cy, turn = rng.uniform(60, WIDTH - 60), rng.uniform(55, HEIGHT - 55), rng.uniform(0, np.pi)
    if shape in ("disc", "ring"):
        draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=255)
        if shape == "ring":
            draw.ellipse((cx - r / 2, cy - r / 2, cx + r / 2, cy + r / 2), fill=0)
    else:
        points = 4 if shape == "box" else 10
        radii = [r if shape == "box" or i % 2 else r * 0.45 for i in range(points)]
        draw.polygon([(cx + d * np.cos(turn + 2 * np.pi * i / points), cy + d * np.sin(turn + 2 * np.pi * i / points)) for i, d in enumerate(radii)], fill=255)
    return np.asarray(image) > 0


def main():
    for split, count, seed in (("train", 24, 1), ("test", 8, 2)):
        rng = np.random.default_rng(seed)
        for folder in ("images", "masks"):
            (pathlib.Path(sys.argv[1]) / split / folder).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            picture, mask = cloth(rng, rng.uniform(70, 170, 3)), np.zeros((HEIGHT, WIDTH), np.uint8)
            for number in rng.permutation(len(SHAPES))[:2]:
                inside = outline(rng, SHAPES[number])
                picture[inside] = cloth(rng, rng.uniform(50, 220, 3))[inside]
                mask[inside] = number + 1
            image = Image.fromarray(picture.clip(0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.6))
            image.save(pathlib.Path(sys.argv[1]) / split / "images" / f"scene{i}.jpg", quality=92)
            Image.fromarray(mask).save(pathlib.Path(sys.argv[1]) / split / "masks" / f"scene{i}.png")
    (pathlib.Path(sys.argv[1]) / "names.txt").write_text("background\n" + "\n".join(SHAPES) + "\n")


if __name__ == "__main__":
    main()
