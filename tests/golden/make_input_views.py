#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/input/views.json and views.f32: whole chains from a picture to model-ready views, made by torchvision
(0.14 or later), Pillow and torch. A developer's tool; the tests read its files.

Environment for Debian's torch on new CPUs: OPENBLAS_CORETYPE, DNNL_MAX_CPU_ISA (docs of those libraries).
"""
import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torchvision import transforms as T
from torchvision.transforms import functional as TF
from torchvision.transforms.functional import InterpolationMode as Mode

from make_input import fnv1a64, pattern

OUT = pathlib.Path(__file__).parent / "input"
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
CLIP = ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])
HALF = ([0.5] * 3, [0.5] * 3)
MODES = {"bilinear": Mode.BILINEAR, "bicubic": Mode.BICUBIC}


def picture(width, height, seed):
    return Image.fromarray(pattern(width, height, seed))


def finish(image, stats):
    """8-bit picture -> (checksum of its bytes, checksum of the normalised float32 planes)."""
    tensor = T.Normalize(*stats)(T.ToTensor()(image))
    return {"pixels": fnv1a64(image.tobytes()), "floats": fnv1a64(tensor.contiguous().numpy().astype("<f4").tobytes())}


def evaluation_cases():
    cases = []
    for seed, (size, resize, to, filter_name, crop, stats) in enumerate([
        ((500, 375), "short_side", 256, "bicubic", 224, IMAGENET),
        ((333, 500), "short_side", 256, "bicubic", 224, IMAGENET),
        ((500, 375), "short_side", 256, "bilinear", 224, IMAGENET),
        ((341, 257), "short_side", 248, "bicubic", 224, CLIP),
        ((32, 32), "short_side", 248, "bicubic", 224, HALF),
        ((400, 300), "squash", 256, "bilinear", 224, IMAGENET),
        ((70, 90), "squash", 40, "bilinear", 57, IMAGENET),
        ((50, 70), "short_side", 20, "bicubic", 33, IMAGENET),
        ((97, 33), "short_side", 33, "bicubic", 32, IMAGENET),
        ((61, 44), "none", 0, "bicubic", 48, IMAGENET),
        ((61, 43), "none", 0, "bicubic", 32, IMAGENET),
        ((1, 1), "short_side", 36, "bicubic", 32, IMAGENET),
    ]):
        image = picture(*size, 100 + seed)
        if resize == "short_side":
            image = T.Resize(to, MODES[filter_name])(image)
        elif resize == "squash":
            image = T.Resize((to, to), MODES[filter_name])(image)
        image = T.CenterCrop(crop)(image)
        cases.append({"size": size, "seed": 100 + seed, "resize": resize, "to": to, "filter": filter_name, "crop": crop,
                      "mean": stats[0], "std": stats[1], **finish(image, stats)})
    return cases


def box_cases():
    """Consecutive crop boxes (top, left, height, width) of one seed."""
    cases = []
    for size, seed in [((500, 375), 0), ((224, 224), 7), ((64, 64), 1), ((1000, 100), 2), ((30, 400), 3), ((3, 3), 4), ((1, 1), 5), ((4000, 3000), 4294967295)]:
        for area in [(0.25, 1.0), (0.05, 0.25), (0.14, 1.0)]:
            torch.manual_seed(seed)
            image = Image.new("RGB", size)
            boxes = [T.RandomResizedCrop.get_params(image, list(area), [3 / 4, 4 / 3]) for _ in range(6)]
            cases.append({"size": size, "seed": seed, "area": area, "boxes": boxes})
    return cases


def crop_cases():
    cases = []
    for size, picture_seed, seed, side, counts, areas, filter_name, stats, *local in [
        ((500, 375), 200, 42, 224, (2, 10), ((0.25, 1.0), (0.05, 0.25)), "bicubic", IMAGENET),
        ((90, 160), 201, 3, 32, (2, 10), ((0.25, 1.0), (0.05, 0.25)), "bicubic", CLIP),
        ((160, 90), 202, 9, 48, (2, 6), ((0.14, 1.0), (0.05, 0.14)), "bilinear", ([0.485, 0.456, 0.406], [0.228, 0.224, 0.225])),
        ((160, 120), 203, 5, 64, (2, 4), ((0.25, 1.0), (0.05, 0.25)), "bicubic", IMAGENET, 32),
    ]:
        image = picture(*size, picture_seed)
        torch.manual_seed(seed)
        views = []
        for count, area, own in zip(counts, areas, (side, *(local or [side]))):
            crop = T.RandomResizedCrop(own, scale=area, interpolation=MODES[filter_name])
            views += [finish(crop(image), stats) for _ in range(count)]
        cases.append({"size": size, "picture_seed": picture_seed, "seed": seed, "side": side, "counts": counts, "areas": areas,
                      "filter": filter_name, "mean": stats[0], "std": stats[1], **({"local_side": local[0]} if local else {}), "views": views})
    return cases


def patch_cases():
    cases, values = [], []
    for size, seed, side, patches, scale, stats, step, *out in [
        ((500, 375), 300, 224, 4, 6, IMAGENET, 1999),
        ((60, 81), 301, 96, 9, 6, CLIP, 211),
        ((64, 64), 302, 64, 4, 4, HALF, 101),
        ((45, 37), 303, 40, 1, 2, IMAGENET, 3),
        ((50, 70), 304, 30, 9, 3, CLIP, 37),
        ((60, 81), 305, 96, 4, 6, IMAGENET, 97, 64),
        ((60, 81), 306, 96, 9, 3, IMAGENET, 61, 32),  # as large as the patch: it is cut out
    ]:
        image = TF.to_tensor(picture(*size, seed).resize((side, side), Image.BICUBIC))
        p = side // math.isqrt(patches)
        stride = p // scale
        tiles = image.unfold(1, p, stride).unfold(2, p, stride)  # [3, rows, columns, p, p]
        tiles = tiles.permute(1, 2, 0, 3, 4).reshape(-1, 3, p, p)
        tiles = F.interpolate(tiles, size=(*out, *out) or (side, side), mode="bicubic", align_corners=False, antialias=True)
        flat = T.Normalize(*stats)(tiles).numpy().ravel()
        kept = flat[::step]
        cases.append({"size": size, "seed": seed, "side": side, "patches": patches, "scale": scale, "mean": stats[0], "std": stats[1],
                      **({"out": out[0]} if out else {}), "views": tiles.shape[0], "step": step, "at": len(values), "count": kept.size})
        values.extend(kept.tolist())
    return cases, np.array(values, dtype="<f4")


def main():
    patches, values = patch_cases()
    groups = {"evaluation": evaluation_cases(), "boxes": box_cases(), "crops": crop_cases(), "patches": patches}
    body = ",\n".join(f'"{name}": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]" for name, cases in groups.items())
    (OUT / "views.json").write_text("{\n" + body + "\n}\n")
    (OUT / "views.f32").write_bytes(values.tobytes())


if __name__ == "__main__":
    main()
