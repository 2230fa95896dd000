#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/ablation/: the paper's ablations by torch and Pillow.

heads.json + heads.f32: gradients of the last attn.proj of the tiny ViT of tests/golden/backbone/timm_vit under losses with and
without normalised input, with and without a head, and with one head for student and teacher (torch autograd, float64).
augmented.json: crops as DINO's training augments them (Pillow; numbers from torch's generator in torchvision's order).
reduced_*.npy: rows through random matrices (torch), whose entries are those of the counter-based generator in Python's integers.

Needs torch, timm, Pillow, scipy; run from anywhere.
"""
import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from make_backbone_common import stand_in

stand_in("torchvision")
import timm  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from make_input import fnv1a64, pattern  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parent
OUT = GOLDEN / "ablation"


def draws(seed, *shape):
    torch.manual_seed(seed)
    return (torch.rand(*shape) * 2 - 1).double()


# ---------------------------------------------------------------- heads

VIEWS, GLOBALS, WIDTH = 4, 2, 24


def tiny_vit():
    folder = GOLDEN / "backbone" / "timm_vit"
    args = json.loads((folder / "config.json").read_text())["model_args"]
    model = timm.create_model("vit_base_patch16_224", num_classes=0, **args)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model.double().eval().requires_grad_(False)


def layer(seed):
    torch.manual_seed(seed)
    return torch.nn.Linear(32, WIDTH).double().requires_grad_(False)


def kl(x, student, _, normalise):
    log_q = F.log_softmax(student(normalise(x[:1])) / 15, dim=1)
    return F.kl_div(log_q, torch.full_like(log_q, 1 / log_q.shape[1]), reduction="mean")


def dino(x, student, teacher, normalise):
    unit = normalise(x)
    s = F.log_softmax(student(unit) / 0.1, dim=1)
    t = F.softmax(teacher(unit[:GLOBALS]).detach() / 0.07, dim=1)
    return sum(-(a * b).sum() for a in t for b in s)


def simclr(x, student, _, normalise):
    bank = F.normalize(student(normalise(draws(9, 10, 32))))
    z = F.normalize(student(normalise(x)))
    positive, others = z @ z.T, ~torch.eye(len(z), dtype=torch.bool)
    attraction = (positive * others).sum(1) / (len(z) - 1) / 0.07
    logits = torch.cat([z @ bank.T, positive.masked_fill(~others, -10000.0)], dim=1) / 0.07
    return (logits.logsumexp(1) - attraction).mean()


def heads():
    model = tiny_vit()
    proj = model.blocks[-1].attn.proj
    proj.requires_grad_(True)
    pixels = draws(1, VIEWS, 3, 16, 16)
    cases, values = [], []
    for name, loss_of in (("kl", kl), ("dino", dino), ("simclr", simclr)):
        for normalised in (True, False):
            for head in ("linear", "none", "shared"):
                if head == "shared" and name != "dino":
                    continue
                student = layer(4) if head != "none" else torch.nn.Identity()
                teacher = layer(5) if head == "linear" else student
                model.zero_grad()
                loss = loss_of(model(pixels), student, teacher, F.normalize if normalised else torch.nn.Identity())
                loss.backward()
                gradient = torch.cat([proj.weight.grad, proj.bias.grad[:, None]], dim=1)
                cases.append({"objective": name, "normalise": normalised, "head": head, "loss": loss.item()})
                values.append(gradient.numpy().astype("<f4"))
                print(cases[-1], gradient.norm().item())
    (OUT / "heads.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
    (OUT / "heads.f32").write_bytes(np.stack(values).tobytes())


# ---------------------------------------------------------------- DINO's augmentation


def uniform(low, high):
    """As torch's uniform_, whose last bit depends on whether the processor fuses the product with the sum: here it does not."""
    low, high = np.float32(low), np.float32(high)
    return float(np.float32(torch.rand(1).item()) * (high - low) + low)


def crop_box(width, height, area):
    """RandomResizedCrop's parameters, the way torchvision draws them."""
    for _ in range(10):
        target = width * height * uniform(*area)
        ratio = torch.exp(torch.tensor(uniform(*torch.log(torch.tensor([3 / 4, 4 / 3])).tolist()))).item()
        w, h = round(math.sqrt(target * ratio)), round(math.sqrt(target / ratio))
        if 0 < w <= width and 0 < h <= height:
            top = torch.randint(0, height - h + 1, (1,)).item()
            left = torch.randint(0, width - w + 1, (1,)).item()
            return left, top, left + w, top + h
    raise ValueError("choose another picture: the fallback is tested elsewhere")


def shift_hue(image, amount):
    h, s, v = image.convert("HSV").split()
    turned = (np.array(h).astype(int) + int(amount * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), s, v)).convert("RGB")


def augmented(image, role):
    def chance(limit):
        return torch.rand(1).item() < np.float32(limit)

    done = []
    if chance(0.5):
        image, done = ImageOps.mirror(image), done + ["flip"]
    if torch.rand(1).item() <= np.float32(0.8):
        order = torch.randperm(4).tolist()
        factors = [uniform(0.6, 1.4), uniform(0.6, 1.4), uniform(0.8, 1.2), uniform(-0.1, 0.1)]
        kinds = [ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color]
        for step in order:
            image = shift_hue(image, factors[3]) if step == 3 else kinds[step](image).enhance(factors[step])
        done.append("jitter")
    if chance(0.2):
        image, done = image.convert("L").convert("RGB"), done + ["grey"]
    if torch.rand(1).item() <= np.float32({"first": 1, "other": 0.1, "local": 0.5}[role]):
        image, done = image.filter(ImageFilter.GaussianBlur(uniform(0.1, 2.0))), done + ["blur"]
    if role == "other" and chance(0.2):
        image, done = ImageOps.solarize(image), done + ["solarise"]
    return image, done


def augmentations():
    cases = []
    for size, picture, seed, side, counts in [((120, 90), 400, 42, 32, (2, 10)), ((61, 80), 401, 7, 48, (4, 4)), ((64, 64), 402, 4294967295, 5, (8, 8))]:
        image = Image.fromarray(pattern(*size, picture))
        torch.manual_seed(seed)
        boxes = [crop_box(*size, area) for count, area in zip(counts, ((0.25, 1.0), (0.05, 0.25))) for _ in range(count)]
        torch.manual_seed(seed ^ 0xFFFFFFFF)
        views, done = [], []
        for i, box in enumerate(boxes):
            # Along rows first, as Pillow did before version 13, which begins with the axis that shrinks.
            crop = image.crop(box)
            crop = crop.resize((side, crop.height), Image.BICUBIC).resize((side, side), Image.BICUBIC)
            view, steps = augmented(crop, "first" if i == 0 else "other" if i < counts[0] else "local")
            views.append(fnv1a64(view.tobytes()))
            done.append(steps)
        cases.append({"size": size, "picture": picture, "seed": seed, "side": side, "counts": counts, "views": views, "done": done})
    print({step for c in cases for d in c["done"] for step in d})
    blurs = []
    for width, height, radius in [(40, 30, 0.1), (40, 30, 0.5), (40, 30, 1.3), (40, 30, 2.0), (3, 2, 2.0), (1, 1, 1.0), (2, 9, 5.5)]:
        image = Image.fromarray(pattern(width, height, 500))
        blurs.append({"width": width, "height": height, "radius": radius, "pixels": fnv1a64(image.filter(ImageFilter.GaussianBlur(radius)).tobytes())})
    text = ",\n".join(f'"{name}": [\n' + ",\n".join(json.dumps(c) for c in group) + "\n]" for name, group in (("crops", cases), ("blurs", blurs)))
    (OUT / "augmented.json").write_text("{\n" + text + "\n}\n")


# ---------------------------------------------------------------- reduction by random matrices

MASK = (1 << 64) - 1


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def stream(seed, purpose, sample=0):
    key = mix64((mix64(seed ^ int(fnv1a64(purpose.encode()), 16)) + sample) & MASK)
    return lambda index: mix64(key ^ mix64(index))


def bfloat16(values):
    return torch.tensor(values, dtype=torch.float32).to(torch.bfloat16).to(torch.float64)


def entries(kind, seed, rows, columns):
    """As docs/numerics.md describes the projections."""
    seed = mix64(seed ^ int(fnv1a64(b"reduce"), 16))
    bits = [stream(seed, f"projection/{kind}", r) for r in range(rows)]
    if kind == "sign":
        return torch.tensor([[1.0 if b(j // 64) >> (j % 64) & 1 else -1.0 for j in range(columns)] for b in bits], dtype=torch.float64)
    if kind == "gaussian":
        from scipy.stats import norm
        quantiles = norm.ppf((np.arange(65536) + 0.5) / 65536)
        table = bfloat16(quantiles / math.sqrt((quantiles**2).mean()))
    else:
        sixth = 65536 // 6 + 1
        table = torch.zeros(65536, dtype=torch.float64)
        table[:sixth], table[sixth:2 * sixth] = math.sqrt(3), -math.sqrt(3)
    return torch.stack([torch.stack([table[b(j // 4) >> (16 * (j % 4)) & 0xFFFF] for j in range(columns)]) for b in bits])


def reductions(rows=5, columns=70, kept=9, seed=3):
    x = draws(20, rows, columns)
    for kind in ("sign", "gaussian", "sparse"):
        y = x @ entries(kind, seed, kept, columns).T / math.sqrt(kept)
        np.save(OUT / f"reduced_{kind}.npy", y.numpy().astype("<f4"))


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    heads()
    augmentations()
    reductions()
