#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the small ViT of the demonstration (demo/model.safetensors). A developer's tool: needs torch 2.x, numpy,
Pillow and safetensors; the product never runs it.

The student is a plain timm-named pre-norm ViT (48 px, patch 8, width 128, depth 6, 2 heads, CLS pooling). It learns
from three signals on small labelled images: the labels, the class probabilities of a bigger teacher ViT and the
teacher's embedding. The teacher sees each whole image once (and its answers are cached); the student sees random crops.

    python tools/train_demo_model.py --images IMAGES.zip --teacher TEACHER.safetensors --output demo/model.safetensors

IMAGES.zip holds <anything>/<class>/<file>.jpg; TEACHER is a timm ViT with its `head`. demo/README.md says what was used.
"""
import argparse
import copy
import io
import json
import math
import pathlib
import time
import zipfile

import numpy
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(q, k, v)
        return self.proj(context.transpose(1, 2).reshape(n, t, d))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, patch, width):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Vit(nn.Module):
    """timm's names, so that any reader of timm checkpoints can run the result."""

    def __init__(self, size, patch, width, depth, heads):
        super().__init__()
        tokens = (size // patch) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens + 1, width))
        self.patch_embed = PatchEmbed(patch, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        for p in (self.cls_token, self.pos_embed):
            nn.init.trunc_normal_(p, std=0.02)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                nn.init.zeros_(m.bias)

    def forward(self, x, kept_tokens=None):
        x = self.patch_embed(x) + self.pos_embed[:, 1:]
        if kept_tokens is not None:  # token dropping: a regulariser that also halves the cost of a step
            order = torch.rand(x.shape[:2]).argsort(1)[:, :kept_tokens]
            x = x.gather(1, order.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        first = (self.cls_token + self.pos_embed[:, :1]).expand(x.shape[0], -1, -1)
        x = torch.cat([first, x], 1)
        for block in self.blocks:
            x = block(x)
        return self.norm(x[:, 0])


def read_images(path):
    """uint8 images [n,3,h,w] (all of one size) and class numbers [n] from a zip of <...>/<class>/<file>."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(n for n in archive.namelist() if n.lower().endswith((".jpg", ".jpeg", ".png")))
        classes = {c: i for i, c in enumerate(sorted({n.split("/")[-2] for n in names}))}
        pixels = [numpy.asarray(Image.open(io.BytesIO(archive.read(n))).convert("RGB")) for n in names]
    labels = torch.tensor([classes[n.split("/")[-2]] for n in names])
    return torch.from_numpy(numpy.stack(pixels)).permute(0, 3, 1, 2).contiguous(), labels


def load_teacher(path, size):
    """A timm ViT checkpoint (head dimension 64) as a Vit for `size` px inputs, and its classifier."""
    state = load_file(path)
    width, _, patch, _ = state["patch_embed.proj.weight"].shape
    depth = 1 + max(int(k.split(".")[1]) for k in state if k.startswith("blocks."))
    head = nn.Linear(width, state["head.weight"].shape[0])
    head.load_state_dict({"weight": state.pop("head.weight"), "bias": state.pop("head.bias")})
    model = Vit(size, patch, width, depth, width // 64)
    position = state["pos_embed"]
    grid, native = size // patch, math.isqrt(position.shape[1] - 1)
    if grid != native:
        table = position[:, 1:].reshape(1, native, native, width).permute(0, 3, 1, 2)
        table = F.interpolate(table, size=(grid, grid), mode="bicubic", antialias=True, align_corners=False)
        state["pos_embed"] = torch.cat([position[:, :1], table.flatten(2).transpose(1, 2)], 1)
    model.load_state_dict(state)
    return model.eval().requires_grad_(False), head.requires_grad_(False)


def enlarge(images, size):
    x = F.interpolate(images.float() / 255, size=(size, size), mode="bicubic", align_corners=False)
    return (x.clamp(0, 1) - MEAN) / STD


@torch.no_grad()
def embed(model, images, size, batch, progress=False):
    parts, start = [], time.time()
    for i in range(0, len(images), batch):
        parts.append(model(enlarge(images[i:i + batch], size)))
        if progress and (i // batch) % 40 == 0:
            print(f"teacher {i}/{len(images)} {time.time() - start:.0f} s", flush=True)
    return torch.cat(parts)


def augment(images, size, smallest_area):
    """Random resized crop, flip, brightness, contrast, saturation, sometimes grey; normalised."""
    n = len(images)
    x = images.float() / 255
    area = torch.empty(n).uniform_(smallest_area, 1)
    ratio = torch.exp(torch.empty(n).uniform_(math.log(3 / 4), math.log(4 / 3)))
    w, h = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    flip = torch.where(torch.rand(n) < 0.5, -1.0, 1.0)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = w * flip, h
    theta[:, 0, 2] = (2 * torch.rand(n) - 1) * (1 - w)
    theta[:, 1, 2] = (2 * torch.rand(n) - 1) * (1 - h)
    grid = F.affine_grid(theta, (n, 3, size, size), align_corners=False)
    x = F.grid_sample(x, grid, mode="bicubic", padding_mode="reflection", align_corners=False).clamp(0, 1)

    def factor():
        return torch.empty(n, 1, 1, 1).uniform_(0.6, 1.4)

    x = x * factor()
    grey = (x * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)
    mean = grey.mean((2, 3), keepdim=True)
    saturation = torch.where(torch.rand(n, 1, 1, 1) < 0.1, torch.zeros(1), factor())
    x = grey + (x - grey) * saturation
    x = mean + (x - mean) * factor()
    return (x.clamp(0, 1) - MEAN) / STD


def knn_accuracy(train, train_labels, test, test_labels, k=20):
    similar = F.normalize(test) @ F.normalize(train).T
    votes = F.one_hot(train_labels[similar.topk(k, 1).indices], int(train_labels.max()) + 1).sum(1)
    return (votes.argmax(1) == test_labels).float().mean().item()


def teacher_embeddings(args, images):
    if args.cache and args.cache.exists():
        return torch.load(args.cache)
    teacher, _ = load_teacher(args.teacher, args.teacher_size)
    result = embed(teacher, images, args.teacher_size, 50, progress=True)
    if args.cache:
        torch.save(result, args.cache)
    return result


def save(model, path, facts):
    tensors = {k: v.detach().to(torch.float16).contiguous() for k, v in model.state_dict().items()}
    save_file(tensors, path, metadata={"format": "pt", **{k: str(v) for k, v in facts.items()}})


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--images", type=pathlib.Path, required=True, help="zip of <...>/<class>/<file>.jpg, equal sizes")
    p.add_argument("--teacher", type=pathlib.Path, required=True, help="timm ViT safetensors with its head")
    p.add_argument("--output", type=pathlib.Path, required=True, help="the student, half precision safetensors")
    p.add_argument("--cache", type=pathlib.Path, help="file that keeps the teacher's embeddings between runs")
    p.add_argument("--start", type=pathlib.Path, help="an earlier student of the same shape to go on from")
    p.add_argument("--teacher-size", type=int, default=160, help="teacher input in pixels")
    p.add_argument("--size", type=int, default=48)
    p.add_argument("--patch", type=int, default=8)
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--depth", type=int, default=6)
    p.add_argument("--heads", type=int, default=2)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--batch", type=int, default=100)
    p.add_argument("--rate", type=float, default=1e-3)
    p.add_argument("--decay", type=float, default=0.05)
    p.add_argument("--smallest-area", type=float, default=0.35, help="smallest crop, as a share of the image")
    p.add_argument("--dropped", type=float, default=0.6, help="share of patch tokens dropped ...")
    p.add_argument("--dropping-until", type=float, default=0.8, help="... during this first part of the training")
    p.add_argument("--held-out", type=int, default=10, help="images per class kept for choosing the checkpoint")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=2)
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    images, labels = read_images(args.images)
    targets = teacher_embeddings(args, images)
    _, teacher_head = load_teacher(args.teacher, args.teacher_size)

    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(args.seed))
    rank = torch.zeros(len(images), dtype=torch.long)  # rank of an image within its class in the random order
    for c in labels.unique():
        members = order[labels[order] == c]
        rank[members] = torch.arange(len(members))
    held = rank < args.held_out
    train, test = (~held).nonzero().squeeze(1), held.nonzero().squeeze(1)
    teacher_knn = knn_accuracy(targets[train], labels[train], targets[test], labels[test])
    print(f"{len(train)} training and {len(test)} held-out images; teacher kNN {100 * teacher_knn:.1f} %", flush=True)

    model = Vit(args.size, args.patch, args.width, args.depth, args.heads)
    if args.start:
        model.load_state_dict({k: v.float() for k, v in load_file(args.start).items()})
    averaged = copy.deepcopy(model).requires_grad_(False)
    classes = int(labels.max()) + 1
    classifier, regressor = nn.Linear(args.width, classes), nn.Linear(args.width, targets.shape[1])
    parts = nn.ModuleList([model, classifier, regressor])
    decayed = [p for p in parts.parameters() if p.ndim > 1]
    plain = [p for p in parts.parameters() if p.ndim <= 1]
    optimiser = torch.optim.AdamW([{"params": decayed, "weight_decay": args.decay},
                                   {"params": plain, "weight_decay": 0.0}], lr=args.rate, betas=(0.9, 0.98))
    steps = args.epochs * (len(train) // args.batch)
    kept = round((args.size // args.patch) ** 2 * (1 - args.dropped))
    best, step, start = -1.0, 0, time.time()
    for epoch in range(args.epochs):
        total = 0.0
        shuffled = train[torch.randperm(len(train))]
        for i in range(len(train) // args.batch):
            rows = shuffled[i * args.batch:(i + 1) * args.batch]
            warm = min(1.0, (step + 1) / (0.03 * steps))
            for group in optimiser.param_groups:
                group["lr"] = args.rate * warm * (0.505 + 0.495 * math.cos(math.pi * step / steps))
            e = model(augment(images[rows], args.size, args.smallest_area),
                      kept if step < args.dropping_until * steps else None)
            guess = regressor(e)
            loss = (F.cross_entropy(classifier(e), labels[rows], label_smoothing=0.1)
                    + 2 * (1 - F.cosine_similarity(guess, targets[rows]).mean())
                    + F.kl_div(F.log_softmax(teacher_head(guess), 1), F.softmax(teacher_head(targets[rows]), 1),
                               reduction="batchmean"))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(parts.parameters(), 1.0)
            optimiser.step()
            step += 1
            keep = min(0.998, step / (step + 10))
            with torch.no_grad():
                for a, b in zip(averaged.parameters(), model.parameters()):
                    a.lerp_(b, 1 - keep)
            total += loss.item()
        line = f"epoch {epoch + 1}/{args.epochs} loss {total * args.batch / len(train):.3f} {time.time() - start:.0f} s"
        if (epoch + 1) % 3 == 0 or epoch + 1 == args.epochs:
            accuracy = knn_accuracy(embed(averaged, images[train], args.size, 500), labels[train],
                                    embed(averaged, images[test], args.size, 500), labels[test])
            line += f" kNN {100 * accuracy:.1f} %"
            if accuracy > best:
                best = accuracy
                save(averaged, args.output, {"held_out_knn": f"{accuracy:.4f}", "epoch": epoch + 1})
        print(line, flush=True)
    size = sum(p.numel() for p in model.parameters())
    print(json.dumps({"parameters": size, "held_out_knn": round(best, 4), "seconds": round(time.time() - start)}))


if __name__ == "__main__":
    main()
