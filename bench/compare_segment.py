#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Patch features beside the same protocol in torch (autograd, the sign matrix as a product) and faiss (a flat index for the
neighbours), by turns on one picture of random pixels: tokens alone, and tokens with the projected gradient of every patch.
With --data also `fungi segment` end to end beside the whole protocol in torch, numpy and faiss: training pictures jittered and
cut, patches chosen, two memories, every patch of the test pictures labelled by its neighbours, mIoU.

  bench/compare segment [--model vit_small_patch16_224] [--weights FILE] [--size 512] [--repeats 3] [--cpu]
                        [--data TRAIN TEST] [--memory 20480] [--threads 1]

TRAIN and TEST hold images/ and masks/. --cpu compares processor time instead of time on the clock: for machines that are busy
with other work.
"""
import argparse
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import time

import numpy as np

import compare_model

HERE = pathlib.Path(__file__).resolve().parent
HEAD, NEGATIVES, SUPPORT, WARMTH = 96, 2, 2048, 0.07


class Peer:
    """What a torch user would write: the published protocol, one picture at a time."""

    def __init__(self, args, weights, dtype):
        import faiss
        import torch
        from compare_peers import TorchForward
        self.torch, self.F = torch, torch.nn.functional
        self.net = TorchForward(argparse.Namespace(threads=args.threads, model=args.model, weights=str(weights)), dtype)
        self.dtype = self.net.dtype
        faiss.omp_set_num_threads(args.threads)
        stored = self.net.w["pos_embed"].float()
        width, grid = stored.shape[2], args.size // compare_model.PATCH
        old = math.isqrt(stored.shape[1] - 1)
        table = stored[:, 1:].reshape(1, old, old, width).permute(0, 3, 1, 2)
        table = self.F.interpolate(table, (grid, grid), mode="bicubic", antialias=True)
        self.positions = torch.cat([stored[:, :1], table.flatten(2).transpose(1, 2)], 1).to(self.dtype)
        torch.manual_seed(0)
        self.head = torch.nn.Linear(width, HEAD)
        self.signs = torch.where(torch.rand(width, width * (width + 1)) > 0.5, 1.0, -1.0).to(self.dtype)
        self.support = self.F.normalize(torch.randn(SUPPORT, width), dim=1)
        self.index = faiss.IndexFlatIP(width)
        self.index.add(self.support.numpy())

    def trunk(self, pixels):
        """The picture up to the last block's attention: the stream, and what the projection reads."""
        net, F, torch = self.net, self.F, self.torch
        x = F.conv2d(pixels.to(self.dtype), net.w["patch_embed.proj.weight"], net.w["patch_embed.proj.bias"],
                     stride=compare_model.PATCH).flatten(2).transpose(1, 2)
        x = torch.cat([net.w["cls_token"].expand(len(x), -1, -1), x], 1) + self.positions
        depth = net.shape["depth"]
        for n in range(depth):
            b = f"blocks.{n}."
            q, k, v = net.linear(net.norm(x, b + "norm1"), b + "attn.qkv").view(
                *x.shape[:2], 3, net.shape["heads"], -1).permute(2, 0, 3, 1, 4)
            context = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            if n == depth - 1:
                return x, context
            x = self.tail(x, net.linear(context, b + "attn.proj"), b)

    def tail(self, x, projected, block):
        x = x + projected
        hidden = self.F.gelu(self.net.linear(self.net.norm(x, block + "norm2"), block + "mlp.fc1"))
        return x + self.net.linear(hidden, block + "mlp.fc2")

    def last(self, x, projected):
        return self.net.norm(self.tail(x, projected, f"blocks.{self.net.shape['depth'] - 1}."), "norm")

    def project(self, context):
        return self.net.linear(context, f"blocks.{self.net.shape['depth'] - 1}.attn.proj")

    def tokens(self, pixels):
        with self.torch.no_grad():
            x, context = self.trunk(pixels)
            return self.F.normalize(self.last(x, self.project(context))[0, 1:].float(), dim=1)

    def loss(self, tokens):
        F, torch = self.F, self.torch
        with torch.no_grad():
            _, nearest = self.index.search(tokens.detach().numpy(), NEGATIVES)
            found = self.support[torch.from_numpy(nearest).flatten()]
            negatives = F.normalize(self.head(found[torch.rand(len(found)) <= 0.5]), dim=1)
        z = F.normalize(self.head(tokens), dim=1)
        own = z @ z.T
        alone = torch.eye(len(z), dtype=torch.bool)
        positive = own.masked_fill(alone, 0).sum(1) / (WARMTH * (len(z) - 1))
        logits = torch.cat([own.masked_fill(alone, -1e4), z @ negatives.T], 1)
        return (torch.logsumexp(logits, 1) - positive).mean()

    def features(self, pixels):
        F, torch = self.F, self.torch
        with torch.no_grad():
            x, context = self.trunk(pixels)
            projected = self.project(context)
        projected.requires_grad_()
        tokens = self.last(x, projected)[0]
        b, = torch.autograd.grad(self.loss(tokens.float()), projected)
        with torch.no_grad():
            a = F.pad(context[0, 1:], (0, 1), value=1.0)
            b = b[0, 1:]
            y = torch.cat([torch.einsum("ti,tj->tij", b[i:i + 64], a[i:i + 64]).flatten(1) @ self.signs.T
                           for i in range(0, len(b), 64)]).float()
            return F.normalize(torch.cat([F.normalize(tokens[1:].float(), dim=1), F.normalize(y, dim=1)], 1), dim=1)


class Protocol:
    """Segmentation as the paper describes it, with what a peer gives of each picture."""

    MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    K, BETA = 30, 0.02

    def __init__(self, peer, args):
        self.peer, self.args, self.torch, self.F = peer, args, peer.torch, peer.F
        self.random = np.random.default_rng(0)

    def pairs(self, folder):
        from PIL import Image
        for picture in sorted((folder / "images").iterdir()):
            yield Image.open(picture).convert("RGB"), np.array(Image.open(folder / "masks" / (picture.stem + ".png")))

    def normalised(self, image):
        pixels = (np.asarray(image, dtype=np.float32) / 255 - self.MEAN) / self.STD
        return self.torch.from_numpy(pixels).permute(2, 0, 1)[None]

    def nearest(self, mask):
        rows, columns = (np.arange(self.args.size) * n // self.args.size for n in mask.shape)
        return mask[np.ix_(rows, columns)]

    def train_view(self, image, mask):
        from PIL import Image, ImageEnhance
        for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            if self.random.random() < 0.5:
                image = enhance(image).enhance(self.random.uniform(0.9, 1.1))
        if self.random.random() < 0.5:
            h, s, v = image.convert("HSV").split()
            h = Image.fromarray(np.uint8((np.int64(h) + int(self.random.uniform(-25.5, 25.5))) % 256))
            image = Image.merge("HSV", (h, s, v)).convert("RGB")
        width, height = image.size
        top, left, h, w = 0, 0, height, width
        for _ in range(10):
            area = width * height * self.random.uniform(0.5, 2)
            ratio = math.exp(self.random.uniform(math.log(3 / 4), math.log(4 / 3)))
            across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if across <= width and down <= height:
                top, left = self.random.integers(0, height - down + 1), self.random.integers(0, width - across + 1)
                h, w = down, across
                break
        pixels = self.normalised(image)[:, :, top:top + h, left:left + w]
        pixels = self.F.interpolate(pixels, (self.args.size,) * 2, mode="bilinear", antialias=True)
        return pixels, self.nearest(mask[top:top + h, left:left + w])

    def labels(self, mask, classes):
        patch, grid = compare_model.PATCH, self.args.size // compare_model.PATCH
        of = np.where(mask == 255, 0, mask).reshape(grid, patch, grid, patch).transpose(0, 2, 1, 3).reshape(grid * grid, -1)
        return np.stack([(of == c).mean(1) for c in range(classes)], 1).astype(np.float32)

    def chosen(self, labels, count):
        holds = labels > 0
        score = (holds * holds.sum(0)).sum(1) * self.random.random(len(labels))
        return np.argsort(score)[:count]

    def run(self, train, test):
        import faiss
        peer, torch, classes, grid = self.peer, self.torch, 21, self.args.size // compare_model.PATCH
        pairs = list(self.pairs(train))
        count = min(max(self.args.memory // len(pairs), 1), grid * grid)
        views = [self.train_view(*pairs[i]) for i in self.random.permutation(len(pairs))[:64]]
        support = torch.cat([peer.tokens(pixels)[self.chosen(self.labels(mask, classes), SUPPORT // 64)]
                             for pixels, mask in views])
        peer.support, peer.index = support, faiss.IndexFlatIP(support.shape[1])
        peer.index.add(support.numpy())
        width, rows, known = support.shape[1], [], []
        for image, mask in pairs:
            pixels, mask = self.train_view(image, mask)
            label = self.labels(mask, classes)
            keep = self.chosen(label, count)
            rows.append(peer.features(pixels)[keep].numpy())
            known.append(label[keep])
        rows, known = np.concatenate(rows), torch.from_numpy(np.concatenate(known))
        scores = {}
        memories = {"embedding": rows[:, :width] * math.sqrt(2), "fungi": rows}
        found = {kind: faiss.IndexFlatIP(memory.shape[1]) for kind, memory in memories.items()}
        counts = {kind: np.zeros((classes, classes)) for kind in found}
        for kind, memory in memories.items():
            found[kind].add(np.ascontiguousarray(memory))
        from PIL import Image
        for image, mask in self.pairs(test):
            truth = self.nearest(mask).astype(np.int64)
            features = peer.features(self.normalised(image.resize((self.args.size,) * 2, Image.BILINEAR))).numpy()
            for kind, index in found.items():
                query = features[:, :width] * math.sqrt(2) if kind == "embedding" else features
                near, which = index.search(np.ascontiguousarray(query), self.K)
                share = torch.softmax(torch.from_numpy(near) / self.BETA, 1)
                label = torch.einsum("pk,pkc->pc", share, known[torch.from_numpy(which)])
                label = label.T.reshape(1, classes, grid, grid)
                told = self.F.interpolate(label, (self.args.size,) * 2, mode="bilinear")[0].argmax(0).numpy()
                real = truth != 255
                counts[kind] += np.bincount(truth[real] * classes + told[real], minlength=classes ** 2).reshape(classes, -1)
        for kind, c in counts.items():
            union = c.sum(0) + c.sum(1) - c.diagonal()
            scores[kind] = 100 * float(np.mean(c.diagonal() / np.maximum(union, 1)))
        return scores


def end_to_end(args, weights):
    """Once each, after the other: minutes of the same work."""
    import resource
    import tempfile
    print(f"\n{args.data[0]}, {args.data[1]}: end to end, {args.threads} threads, {args.memory} patches")
    print(f"{'precision':<12}{'who':<10}{'seconds':>10}{'ratio':>8}   mIoU of 21 classes")
    for precision, dtype in (("f32", "float32"), ("bf16", "bfloat16")):
        seconds = {}
        for who in ("torch", "sign", "factored"):
            processor = resource.getrusage(resource.RUSAGE_CHILDREN)
            start = time.process_time() if args.cpu else time.perf_counter()
            if who == "torch":
                scores = Protocol(Peer(args, weights, dtype), args).run(*args.data)
                seconds[who] = (time.process_time() if args.cpu else time.perf_counter()) - start
            else:
                with tempfile.TemporaryDirectory() as folder:
                    command = [args.fungi, "segment", *args.data, "-m", weights, "-o", folder, "--precision", precision,
                               "--projection", who, "--memory", args.memory, "--size", args.size, "-j", args.threads,
                               "--set", "family=vit", f"heads={compare_model.MODELS[args.model]['heads']}", "--json", "-q",
                               "--no-page", "--no-masks"]
                    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
                    if done.returncode:
                        sys.exit(f"compare: {done.stderr}")
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = after.ru_utime + after.ru_stime - processor.ru_utime - processor.ru_stime
                seconds[who] = used if args.cpu else time.perf_counter() - start
                scores = {k["features"]: 100 * k["miou"] for k in json.loads(done.stdout)["results"]}
            said = ", ".join(f"{kind} {score:.2f}" for kind, score in scores.items())
            print(f"{precision:<12}{who:<10}{seconds[who]:>10.1f}{seconds['torch'] / seconds[who]:>7.1f}x   {said}", flush=True)


def ours(args, weights, precision, projection):
    command = [args.program, weights, str(args.size), precision, "patch_simclr", projection,
               f"family=vit,heads={compare_model.MODELS[args.model]['heads']}", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compare: {done.stderr}")
    return json.loads(done.stdout)


def pictures(args, weights):
    """One picture on one thread, as our features are computed: pictures share the threads."""
    args = argparse.Namespace(**{**vars(args), "threads": 1})
    clock = time.process_time if args.cpu else time.perf_counter
    print(f"{args.model} at {args.size} x {args.size}, one thread, best of {args.repeats}, milliseconds a picture")
    print(f"{'precision':<12}{'what':<12}{'torch':>10}{'sign':>10}{'ratio':>8}{'factored':>10}{'ratio':>8}")
    for precision, dtype in (("f32", "float32"), ("bf16", "bfloat16")):
        peer = Peer(args, weights, dtype)
        pixels = peer.torch.randn(1, 3, args.size, args.size)
        best = {}
        for turn in range(args.repeats + 1):  # by turns, so that other work on the machine meets all
            for what in ("tokens", "features"):
                start = clock()
                getattr(peer, what)(pixels)
                if turn > 0:  # the first one warms up
                    best["torch", what] = min(best.get(("torch", what), math.inf), clock() - start)
            for projection in ("sign", "factored"):
                run = ours(args, weights, precision, projection)
                for what in ("tokens", "features"):
                    key = projection, what
                    best[key] = min(best.get(key, math.inf), run["processor" if args.cpu else "clock"][what])
        for what in ("tokens", "features"):
            torch = best["torch", what]
            print(f"{precision:<12}{what:<12}{1000 * torch:>10.1f}", end="")
            for projection in ("sign", "factored"):
                mine = best[projection, what]
                print(f"{1000 * mine:>10.1f}{torch / mine:>7.1f}x", end="")
            print(flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("."), help=argparse.SUPPRESS)
    parser.add_argument("--program", type=pathlib.Path, default=HERE.parent / "build/segment_bench")
    parser.add_argument("--model", choices=sorted(compare_model.MODELS), default="vit_small_patch16_224")
    parser.add_argument("--weights", type=pathlib.Path, help="of that model, in timm's names; default: random ones")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--data", type=pathlib.Path, nargs=2, help="end to end on TRAIN and TEST")
    parser.add_argument("--memory", type=int, default=20480)
    parser.add_argument("--threads", type=int, default=1, help="end to end")
    parser.add_argument("--fungi", type=pathlib.Path, default=HERE.parent / "build/fungi")
    args = parser.parse_args()
    for package, name in (("faiss", "faiss-cpu"), ("PIL", "pillow")):
        if not importlib.util.find_spec(package):
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", name], check=True)
    weights = args.weights or compare_model.write_weights(args.model, args.cache)
    if args.repeats > 0:
        pictures(args, weights)
    if args.data:
        end_to_end(args, weights)
    return 0


if __name__ == "__main__":
    sys.exit(main())
