# SPDX-License-Identifier: Apache-2.0
"""The ViTs of the comparison: shapes, random weights as one safetensors file, FLOP counts.

numpy only, because Debian's python3 runs it too. Both sides of the comparison read the same file.
"""
import json
import pathlib
import struct

import numpy as np

MODELS = {"vit_base_patch16_224": dict(width=768, depth=12, heads=12),
          "vit_small_patch16_224": dict(width=384, depth=12, heads=6),
          "vit_tiny_patch16_224": dict(width=192, depth=12, heads=3)}
PATCH, SIDE, TOKENS = 16, 224, 197


def shapes(width, depth, **_):
    """timm's names. Values are (shape, standard deviation, mean)."""
    out = {"cls_token": ((1, 1, width), 0.5, 0), "pos_embed": ((1, TOKENS, width), 0.5, 0),
           "patch_embed.proj.weight": ((width, 3, PATCH, PATCH), 768 ** -0.5, 0),
           "patch_embed.proj.bias": ((width,), 0.1, 0)}
    for n in range(depth):
        for norm in ("norm1", "norm2"):
            out[f"blocks.{n}.{norm}.weight"] = ((width,), 0.1, 1)
            out[f"blocks.{n}.{norm}.bias"] = ((width,), 0.1, 0)
        for name, rows, columns in (("attn.qkv", 3 * width, width), ("attn.proj", width, width),
                                    ("mlp.fc1", 4 * width, width), ("mlp.fc2", width, 4 * width)):
            out[f"blocks.{n}.{name}.weight"] = ((rows, columns), columns ** -0.5, 0)
            out[f"blocks.{n}.{name}.bias"] = ((rows,), 0.1, 0)
    out["norm.weight"] = ((width,), 0.1, 1)
    out["norm.bias"] = ((width,), 0.1, 0)
    return out


def write_weights(name, folder):
    """Writes FOLDER/NAME.safetensors once; random values, never zeros (they run faster)."""
    path = pathlib.Path(folder) / f"{name}.safetensors"
    if path.exists():
        return path
    rng = np.random.default_rng(7)
    wanted = shapes(**MODELS[name])
    header, offset = {}, 0
    for key, (shape, _, _) in wanted.items():
        size = 4 * int(np.prod(shape))
        header[key] = {"dtype": "F32", "shape": list(shape),
                       "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = path.with_suffix(".part")
    with open(part, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for shape, deviation, mean in wanted.values():
            f.write((rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation)
                     + np.float32(mean)).tobytes())
    part.rename(path)
    return path


def read_weights(path):
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
    data = np.memmap(path, np.uint8, "r", offset=8 + size)
    return {k: np.array(data[v["data_offsets"][0]:v["data_offsets"][1]]).view(np.float32)
            .reshape(v["shape"]) for k, v in header.items() if k != "__metadata__"}


def images(batch):
    return np.random.default_rng(11).standard_normal((batch, 3, SIDE, SIDE), dtype=np.float32)


def flop_per_image(width, depth, **_):
    """Two per multiply-add, the matrix products only: 35.1 GFLOP for ViT-B/16."""
    patches = (TOKENS - 1) * width * 3 * PATCH * PATCH
    block = TOKENS * 12 * width * width + 2 * TOKENS * TOKENS * width
    return 2 * (patches + depth * block)


def gemm_shapes(batch, width=768):
    """(rows, inner, columns) of one block's linear layers."""
    rows = batch * TOKENS
    return [(rows, width, 3 * width), (rows, width, width), (rows, width, 4 * width),
            (rows, 4 * width, width)]
