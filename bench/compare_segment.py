#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Patch features beside the same protocol in torch (autograd, the sign matrix as a product) and faiss (a flat index for the
neighbours), by turns on one picture of random pixels: tokens alone, and tokens with the projected gradient of every patch.

  bench/compare segment [--model vit_small_patch16_224] [--weights FILE] [--size 512] [--repeats 3] [--cpu]

--cpu compares processor time on one thread instead of time on the clock: for machines that are busy with other work.
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


def ours(args, weights, precision, projection):
    command = [args.program, weights, str(args.size), precision, "patch_simclr", projection,
               f"family=vit,heads={compare_model.MODELS[args.model]['heads']}", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compare: {done.stderr}")
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("."), help=argparse.SUPPRESS)
    parser.add_argument("--program", type=pathlib.Path, default=HERE.parent / "build/segment_bench")
    parser.add_argument("--model", choices=sorted(compare_model.MODELS), default="vit_small_patch16_224")
    parser.add_argument("--weights", type=pathlib.Path, help="of that model, in timm's names; default: random ones")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    args.threads = 1  # one picture on one thread, as our features are computed: pictures share the others
    if not importlib.util.find_spec("faiss"):
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "faiss-cpu"], check=True)
    weights = args.weights or compare_model.write_weights(args.model, args.cache)
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
