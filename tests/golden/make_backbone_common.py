# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the make_backbone_*.py scripts: random weights, per-sample gradients, files.

Every script builds tiny random models with third-party code, saves the checkpoint as that code
would, then computes the truth in float64 from the stored (float32) weights.
"""
import importlib.abc
import importlib.machinery
import json
import pathlib
import sys
import types
import zlib

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent / "backbone"
SAMPLES = 3


class _AnyMember(type):
    def __getattr__(cls, item):
        if item.startswith("__"):
            raise AttributeError(item)
        return item


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for torchvision, which timm and open_clip import for their data loaders only."""

    def __init__(self, name):
        self.name = name

    def find_spec(self, fullname, path=None, target=None):
        if fullname == self.name or fullname.startswith(self.name + "."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        class Stand(types.ModuleType):
            def __getattr__(self, item):
                if item.startswith("__"):
                    raise AttributeError(item)
                return _AnyMember(item, (torch.nn.Module,), {})

        return Stand(spec.name)

    def exec_module(self, module):
        module.__version__ = "0.0"


def stand_in(*names):
    for name in names:
        if importlib.util.find_spec(name) is None:
            sys.meta_path.append(_Absent(name))


def generator(family):
    g = torch.Generator()
    g.manual_seed(zlib.crc32(family.encode()))
    return g


@torch.no_grad()
def randomise(model, g, gain=1.3):
    """Rich values everywhere: no zero bias, no unit norm, no vanishing layer scale.

    Values are rounded to 12 significant bits so that the files compress well; the truth is
    computed from the rounded values.
    """
    for name, p in model.named_parameters():
        short = name.lower()
        r = torch.randn(p.shape, generator=g, dtype=torch.float64)
        is_table = any(k in short for k in ("pos_embed", "position_embedding", "positional",
                                            "cls_token", "class_token", "class_embedding",
                                            "reg_token", "register", "dist_token",
                                            "distillation_token", "mask_token", "embeddings.word",
                                            "token_type", "shared.weight", "embed_tokens"))
        if is_table:
            value = 0.6 * r
        elif "relative_attention_bias" in short:
            value = r
        elif short.endswith("bias"):
            value = 0.2 * r
        elif "gamma" in short or "lambda1" in short or "layer_scale" in short:
            value = 0.5 + 0.3 * r
        elif p.dim() <= 1:
            value = 1.0 + 0.3 * r
        else:
            fan_in = p[0].numel()
            value = gain * r / fan_in ** 0.5
        mantissa, exponent = torch.frexp(value)
        p.copy_(torch.ldexp(torch.round(mantissa * 4096) / 4096, exponent).to(p.dtype))
    return model.eval()


def random_images(g, size, channels=3):
    h, w = size if isinstance(size, tuple) else (size, size)
    x = torch.randn((SAMPLES, channels, h, w), generator=g)
    return torch.round(x * 256) / 256


def stacked(parts):
    """[(weight, bias or None), ...] -> list of parameters in row order."""
    return [parts] if isinstance(parts, tuple) else list(parts)


def layer_gradients(forward, layers, seed):
    """forward(i) -> embedding [1, d] of sample i. Returns {canonical name: [n, H, K(+1)]}.

    A stacked layer with a bias in only some parts gets zeros in the bias column of the others. A
    bias may also be a list of parts itself, None where there is none.
    """
    out = {name: [] for name in layers}
    for i in range(seed.shape[0]):
        loss = (forward(i)[0] * seed[i]).sum()
        params, slots = [], []
        for name, parts in layers.items():
            for weight, bias in stacked(parts):
                pieces = bias if isinstance(bias, list) else [bias]
                slots.append((name, len(params), pieces))
                params += [weight] + [piece for piece in pieces if piece is not None]
        unique = list({id(p): p for p in params}.values())
        position = {id(p): k for k, p in enumerate(unique)}
        grads = torch.autograd.grad(loss, unique)
        per_name = {}
        for name, w, pieces in slots:
            gw = grads[position[id(params[w])]]
            gw = gw.reshape(gw.shape[0], -1)
            rows = gw.shape[0] // len(pieces)
            gb = torch.cat([torch.zeros(rows, dtype=gw.dtype) if piece is None else
                            grads[position[id(piece)]] for piece in pieces])
            gb = None if all(piece is None for piece in pieces) else gb
            per_name.setdefault(name, []).append((gw, gb))
        for name, parts in per_name.items():
            with_bias = any(gb is not None for _, gb in parts)
            rows = []
            for gw, gb in parts:
                if with_bias:
                    column = torch.zeros(gw.shape[0], dtype=gw.dtype) if gb is None else gb
                    gw = torch.cat([gw, column[:, None]], 1)
                rows.append(gw)
            out[name].append(torch.cat(rows, 0))
    return {name: torch.stack(v) for name, v in out.items()}


def save(path, array):
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu().numpy()
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    np.save(path, np.ascontiguousarray(array))


def random_mask(g, patches):
    """Which patches are hidden: six of the first sample, three of the second, none of the third."""
    masked = torch.zeros((SAMPLES, patches), dtype=torch.uint8)
    for i, hidden in enumerate((6, 3)):
        masked[i, torch.randperm(patches, generator=g)[:hidden]] = 1
    return masked


def write_truth(family, g, inputs, run, layers, facts, extra=None, token_seed=False):
    """run(x, **kw) -> (embedding [b, d], tokens [b, T, width]); inputs: dict, 'input' first.

    Writes everything beside the checkpoint, which the caller has put into ROOT/family already.
    With token_seed the loss also sees the tokens: + sum(token_seed * tokens).
    """
    folder = ROOT / family
    x = inputs["input"]
    rest = {k: v for k, v in inputs.items() if k != "input"}

    def at(i):
        one = x[i:i + 1]
        return run(one.double() if one.is_floating_point() else one,
                   **{k: v[i:i + 1] for k, v in rest.items()})

    with torch.no_grad():
        results = [at(i) for i in range(x.shape[0])]
        whole, _ = run(x.double() if x.is_floating_point() else x, **rest)
    embedding = torch.cat([r[0] for r in results])
    tokens = torch.cat([r[1] for r in results])
    assert torch.allclose(embedding, whole, rtol=1e-9, atol=1e-11), "batch changes the result"
    seed = torch.randn(embedding.shape, generator=g, dtype=torch.float64).float().double()
    if token_seed:
        at_tokens = torch.randn(tokens.shape, generator=g, dtype=torch.float64).float().double()
        extra = {**(extra or {}), "token_seed": at_tokens}
        grads = layer_gradients(lambda i: torch.cat([r.flatten(1) for r in at(i)], 1), layers,
                                torch.cat([seed, at_tokens.flatten(1)], 1))
    else:
        grads = layer_gradients(lambda i: at(i)[0], layers, seed)
    for name, value in inputs.items():
        save(folder / f"{name}.npy", value)
    save(folder / "embedding.npy", embedding)
    save(folder / "tokens.npy", tokens)
    save(folder / "seed.npy", seed)
    for name, value in grads.items():
        assert float(value.abs().max()) > 0, name
        save(folder / f"grad_{name}.npy", value)
    for name, value in (extra or {}).items():
        save(folder / f"{name}.npy", value)
    facts = {"family": family, **facts, "embedding_width": embedding.shape[1],
             "tokens": tokens.shape[1], "layers": sorted(grads)}
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{family:32s} {size / 1000:7.1f} kB  |e| {float(embedding.norm(dim=1).mean()):.3f}")


def folder_for(family):
    folder = ROOT / family
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return folder
