#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/segment/pairs/ and protocol_*.npy: a whole segmentation by neighbours in plain torch, from PNG files to mIoU,
with the tiny ViT, the losses and the features of make_segment.py (run that first). A developer's tool; needs torch, timm, Pillow."""
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

import make_segment as base
from make_segment import HEIGHT, ACROSS, PATCH, WIDTH, checkpoint_filter_fn, features, gradients, jitter, layer, model
from safetensors.torch import load_file

OUT = base.OUT
GRID = (HEIGHT // PATCH, ACROSS // PATCH)
CLASSES, VOID, SEED, MEMORY, EPOCHS, K, BETA = 4, 255, 3, 90, 2, 7, 0.05
TRAIN, TEST = 5, 3
ALL = (1 << 64) - 1


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & ALL
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & ALL
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & ALL
    return x ^ x >> 31


def fnv(text):
    hashed = 0xCBF29CE484222325
    for byte in text.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 & ALL
    return hashed


class Stream:
    def __init__(self, seed, purpose, sample):
        self.key = mix64((mix64(seed ^ fnv(purpose)) + sample) & ALL)

    def bits(self, index):
        return mix64(self.key ^ mix64(index))


def pictures(name, count, rng):
    """Blobs on a ground, each class with colours of its own."""
    for i in range(count):
        height, width = int(rng.integers(36, 60)), int(rng.integers(40, 72))
        y, x = np.mgrid[0:height, 0:width]
        mask = np.zeros((height, width), np.uint8)
        picture = np.zeros((height, width, 3)) + rng.integers(90, 140, 3)
        for c in rng.permutation(np.arange(1, CLASSES))[:int(rng.integers(1, CLASSES))]:
            cy, cx, r = rng.uniform(0.2, 0.8) * height, rng.uniform(0.2, 0.8) * width, rng.uniform(0.2, 0.4) * height
            inside = (y - cy) ** 2 + (x - cx) ** 2 < r ** 2
            near = ((y - cy) ** 2 + (x - cx) ** 2 < (r + 1.5) ** 2) & ~inside
            mask[inside], mask[near] = c, VOID
            picture[inside] = np.eye(3)[c - 1] * 140 + 60 + 20 * np.sin(x[inside] / (c + 1))[:, None]
        picture = (picture + rng.normal(0, 6, picture.shape)).clip(0, 255).astype(np.uint8)
        for folder, array in (("images", picture), ("masks", mask)):
            path = OUT / "pairs" / name / folder
            path.mkdir(parents=True, exist_ok=True)
            Image.fromarray(array).save(path / f"{i}.png")


def read(name, i):
    folder = OUT / "pairs" / name
    return Image.open(folder / "images" / f"{i}.png"), np.asarray(Image.open(folder / "masks" / f"{i}.png"))


def normalised(picture):
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return ((torch.from_numpy(np.array(picture)).float() / 255 - mean) / std).permute(2, 0, 1)


def nearest(mask, height, width):
    h, w = mask.shape
    return mask[np.arange(height) * h // height][:, np.arange(width) * w // width]


def draw(width, height, seed):
    """Jitter and crop, number by number of torch's generator."""
    torch.manual_seed(seed)
    uniform = lambda low=0.0, high=1.0: float(np.float32(torch.rand(1).item()) * np.float32(np.float32(high) - np.float32(low)) + np.float32(low))

    def colour(middle, far):
        now = torch.rand(1).item() <= 0.5
        value = uniform(np.float32(middle) - np.float32(far), np.float32(middle) + np.float32(far))
        return value if now else middle

    factors = [colour(1, 0.1), colour(1, 0.1), colour(1, 0.1), colour(0, 0.1)]
    low, high = math.log(np.float32(0.75)), math.log(np.float32(4 / 3))
    for _ in range(10):
        target = width * height * uniform(0.5, 2.0)
        ratio = float(np.float32(math.exp(uniform(np.float32(low), np.float32(high)))))
        w, h = round(math.sqrt(target * ratio)), round(math.sqrt(target / ratio))
        if 0 < w <= width and 0 < h <= height:
            top = torch.randint(0, height - h + 1, (1,)).item()
            left = torch.randint(0, width - w + 1, (1,)).item()
            return factors, (top, left, h, w)
    h, w = height, width
    if width / height < 0.75:
        h = round(width / 0.75)
    elif width / height > 4 / 3:
        w = round(height * 4 / 3)
    return factors, ((height - h) // 2, (width - w) // 2, h, w)


def train_view(i, name):
    image, mask = read("train", i)
    stream = Stream(SEED, "segment memory", fnv(name))
    factors, (top, left, h, w) = draw(*image.size, stream.bits(0) & 0xFFFFFFFF)
    part = normalised(jitter(image, *factors))[None, :, top:top + h, left:left + w]
    pixels = F.interpolate(part, (HEIGHT, ACROSS), mode="bilinear", antialias=True)[0]
    uniform = torch.tensor([(stream.bits(1 + p) >> 40) * 2.0**-24 for p in range(GRID[0] * GRID[1])], dtype=torch.float32)
    return pixels.double(), nearest(mask[top:top + h, left:left + w], HEIGHT, ACROSS), uniform


def patch_labels(mask):
    numbers = torch.from_numpy(np.where(mask == VOID, 0, mask).astype(np.int64))
    one_hot = F.one_hot(numbers, CLASSES).float().permute(2, 0, 1)
    return F.avg_pool2d(one_hot, PATCH).flatten(1).T


def sample(labels, uniform, keep):
    there = (labels > 0).float()
    scores = (there * there.sum(0)).sum(1) * uniform
    return torch.topk(scores, keep, largest=False).indices


def main():
    pictures("train", TRAIN, np.random.default_rng(5))
    pictures("test", TEST, np.random.default_rng(6))
    weights = load_file(OUT / "model.safetensors")
    net = model((HEIGHT, ACROSS))
    net.load_state_dict(checkpoint_filter_fn(weights, net))
    net = net.double().eval()
    torch.manual_seed(42)
    signs = torch.where(torch.rand(WIDTH, WIDTH * (WIDTH + 1)) - 0.5 > 0, 1.0, -1.0).double()
    head = layer(7, WIDTH, 12)
    with torch.no_grad():
        plain = [base.run(net, train_view(i, str(i))[0][None])[0][0, 1:] for i in range(TRAIN)]
    support = F.normalize(torch.cat(plain), dim=1)

    def loss(x):
        with torch.no_grad():
            found = support[torch.topk(x @ support.T, 2, dim=1).indices]
        return base.info_nce(head(x), head(torch.cat([found[:, 0], found[:, 1]])), 0.07, 1)

    def both(pixels):
        tokens, a, b = gradients(net, pixels[None], loss)
        return F.normalize(tokens, dim=1), features(tokens, a, b, signs)

    banks, remembered = ([], []), []
    keep = MEMORY // (TRAIN * EPOCHS)
    for epoch in range(EPOCHS):
        for i in range(TRAIN):
            pixels, mask, uniform = train_view(i, f"{i}#{epoch}" if epoch else str(i))
            labels = patch_labels(mask)
            kept = sample(labels, uniform, keep)
            for bank, rows in zip(banks, both(pixels)):
                bank.append(rows[kept])
            remembered.append(labels[kept])
    banks, remembered = [torch.cat(b) for b in banks], torch.cat(remembered).double()
    base.save("protocol_labels", remembered.float().numpy())
    for name, bank in zip(("embedding", "fungi"), banks):
        base.save(f"protocol_{name}_bank", bank.float().numpy())
    found = {name: {"index": [], "value": [], "shares": [], "confusion": np.zeros((CLASSES, CLASSES), np.int64)} for name in ("embedding", "fungi")}
    for i in range(TEST):
        image, mask = read("test", i)
        across = image.resize((ACROSS, image.height), Image.BILINEAR)  # Pillow 13 may begin with the other side
        rows = both(normalised(across.resize((ACROSS, HEIGHT), Image.BILINEAR)).double())
        truth = nearest(mask, HEIGHT, ACROSS)
        for (name, f), bank, queries in zip(found.items(), banks, rows):
            value, index = torch.topk(queries @ bank.T, K + 1, dim=1)
            share = torch.einsum("qk,qkc->qc", torch.softmax(value[:, :K] / BETA, 1), remembered[index[:, :K]])
            grid = share.T.reshape(1, CLASSES, *GRID)
            predicted = F.interpolate(grid, (HEIGHT, ACROSS), mode="bilinear", align_corners=False)[0].argmax(0).numpy()
            counted = truth != VOID
            np.add.at(f["confusion"], (truth[counted], predicted[counted]), 1)
            for key, array in (("index", index), ("value", value), ("shares", share)):
                f[key].append(array.numpy())
    for name, f in found.items():
        base.save(f"protocol_{name}_index", np.concatenate(f["index"]).astype(np.int32))
        base.save(f"protocol_{name}_value", np.concatenate(f["value"]).astype(np.float32))
        base.save(f"protocol_{name}_shares", np.concatenate(f["shares"]).astype(np.float32))
        base.save(f"protocol_{name}_confusion", f["confusion"].astype(np.int32))
        c = f["confusion"]
        print(name, "mIoU", np.mean(np.diag(c) / (c.sum(0) + c.sum(1) - np.diag(c))))


if __name__ == "__main__":
    main()
