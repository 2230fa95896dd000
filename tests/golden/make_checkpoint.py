#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/checkpoint/: small files by the real torch, safetensors and numpy, and what is in them.

Needs torch 2.13, safetensors and numpy. expected.json holds, for every file that can be read as a checkpoint, the
format and each tensor's type, shape and values; arrays.json the same for the .npy files.
"""
import argparse
import collections
import io
import json
import math
import pathlib
import sys
import zipfile

import numpy as np
import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).parent / "checkpoint"
TYPES = {
    torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool",
}  # fmt: skip
expected = {}


def flat(value, prefix=""):
    """Named tensors below nested dicts and lists, as the library names them."""
    if isinstance(value, torch.Tensor):
        if value.dtype in TYPES:
            yield prefix, value
    elif isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            if isinstance(key, (str, int)):
                yield from flat(inner, f"{prefix}.{key}" if prefix else str(key))


def describe(tensor):
    values = tensor.detach().float().flatten().tolist()
    values = [v if math.isfinite(v) else str(v) for v in values]  # JSON knows no infinity
    return {"type": TYPES[tensor.dtype], "shape": list(tensor.shape), "values": values}


def note(name, kind, content):
    expected[name] = {"format": kind, "tensors": {key: describe(value) for key, value in flat(content)}}


def save(name, content, kind=None, **options):
    torch.save(content, ROOT / name, **options)
    legacy = options.get("_use_new_zipfile_serialization") is False
    note(name, kind or ("pytorch legacy" if legacy else "pytorch zip"), content)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(4, 12)
        self.proj = torch.nn.Linear(4, 4, bias=False)

    def forward(self, x):
        return self.proj(self.qkv(x)[..., :4])


class Tiny(torch.nn.Module):
    sizes: list[int]

    def __init__(self):
        super().__init__()
        self.cls_token = torch.nn.Parameter(torch.randn(1, 1, 4))
        self.blocks = torch.nn.ModuleList([Attention(), Attention()])
        self.norm = torch.nn.BatchNorm1d(4)
        self.register_buffer("scale", torch.tensor(2.5))
        self.sizes = [3, 4]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x + self.cls_token[0]) * self.scale


def all_types():
    values = torch.tensor([[0.0, -1.5, 3.25], [65504.0, 6.1e-5, -5.96e-8]])
    return {
        "f32": values, "f16": values.half(), "bf16": values.bfloat16(), "f64": values.double() * 1.1,
        "f16.special": torch.tensor([float("inf"), -float("inf"), -0.0, 1e-7]).half(),
        "i64": torch.arange(6).view(2, 3), "i32": torch.arange(4, dtype=torch.int32),
        "i16": torch.arange(4, dtype=torch.int16), "i8": torch.arange(4, dtype=torch.int8),
        "u8": torch.arange(4, dtype=torch.uint8), "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(7.5), "empty": torch.zeros(0, 4), "u16": torch.arange(3).to(torch.uint16),
    }  # fmt: skip


def views():
    base = torch.arange(24, dtype=torch.float32).view(4, 6) / 4
    return {
        "base": base, "row": base[2], "column": base[:, 1], "transposed": base.t(), "block": base[1:3, 2:5],
        "every_other": base[::2, ::3], "expanded": base[0:1].expand(5, 6), "repeated": base[1, 2].expand(2, 3),
        "permuted": base.view(2, 2, 6).permute(2, 0, 1), "alias": base, "flat": base.view(-1),
        "half_column": base.half().t()[1], "double_t": base.double().t(), "unit": base[:1, :1].t(),
    }  # fmt: skip


def training_run(model):
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()
    return {
        "student": collections.OrderedDict((f"module.backbone.{k}", v) for k, v in model.state_dict().items()),
        "teacher": {f"backbone.{k}": v for k, v in model.state_dict().items()},
        "optimizer": optimizer.state_dict(),
        "args": argparse.Namespace(arch="vit_tiny", patch_size=16, out=pathlib.PurePosixPath("runs/1"), drop=None),
        "epoch": 3, "best": np.float64(0.75), "losses": [0.5, 0.25], "rng": np.arange(3, dtype=np.int64),
        "counts": collections.defaultdict(int, {"seen": 5}), "flags": {1, 2}, "device": torch.device("cpu"),
        "dtype": torch.float32, "shape": torch.Size([3, 4]), "big": 1 << 70, "name": "tiny", "raw": b"\x00\x01",
    }  # fmt: skip


class Subclass(torch.Tensor):
    pass


def make_pytorch():
    model = Tiny().eval()
    save("state_dict.pth", model.state_dict())
    save("training.pth", training_run(Tiny()))
    save("training_legacy.pth", training_run(Tiny()), _use_new_zipfile_serialization=False)
    save("types.pth", all_types())
    save("views.pth", views())
    save("views_legacy.pth", views(), _use_new_zipfile_serialization=False)
    for protocol in (1, 3, 4, 5):
        weights = {"weight": torch.arange(6.0).view(2, 3), "bias": torch.arange(3.0)}
        content = {"model": weights, "n": [1, 300, -7, 70000]}
        save(f"protocol{protocol}.pth", content, pickle_protocol=protocol)
        save(f"protocol{protocol}_legacy.pth", content, pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    parameter = torch.nn.Parameter(torch.arange(4.0))
    parameter.note = "kept"
    save("parameters.pth", {"plain": torch.nn.Parameter(torch.ones(2, 2)), "with_state": parameter})
    save("complex.pth", {"weight": torch.ones(3), "freqs_cis": torch.ones(2, dtype=torch.complex64)})
    negative = {
        "imaginary": torch.tensor([1 + 2j, 3 - 4j]).conj().imag, "part": torch._neg_view(torch.arange(6.0).view(2, 3))[:, 1:],
        "parameter": torch.nn.Parameter(torch._neg_view(torch.arange(3.0))), "half": torch._neg_view(torch.ones(2).half()),
    }  # fmt: skip
    assert all(value.is_neg() for value in negative.values())
    save("negative.pth", negative)
    save("negative_legacy.pth", negative, _use_new_zipfile_serialization=False)
    torch.save(model, ROOT / "whole_model.pth")
    torch.save({"w": torch.ones(2).to(torch.float8_e4m3fn)}, ROOT / "float8.pth")
    torch.save({"w": torch.ones(2, 2).to_sparse()}, ROOT / "sparse.pth")
    torch.save(torch.ones(3), ROOT / "single_tensor.pth")
    script = torch.jit.script(Tiny().half().eval())
    save_script(script, ROOT / "script.pt")
    note("script.pt", "torchscript", script.state_dict())


def save_script(script, path):
    """torch.jit.save without its debug entries, which hold the paths of the machine that wrote them."""
    buffer = io.BytesIO()
    torch.jit.save(script, buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
        for entry in source.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                target.writestr(entry, source.read(entry))


def make_sharded():
    weights = {f"blocks.{i}.weight": torch.full((2, 3), float(i)) + torch.arange(3) for i in range(3)}
    note("sharded/model.safetensors.index.json", "safetensors (sharded)", weights)
    note("sharded_bin/pytorch_model.bin.index.json", "pytorch zip (sharded)", weights)
    for folder, stem, end, write in (
        ("sharded", "model", "safetensors", lambda part, path: save_file(part, path, metadata={"format": "pt"})),
        ("sharded_bin", "pytorch_model", "bin", torch.save),
    ):
        (ROOT / folder).mkdir(exist_ok=True)
        names = list(weights)
        parts = {f"{stem}-0000{i + 1}-of-00002.{end}": names[2 * i : 2 * i + 2] for i in range(2)}
        for file, keys in parts.items():
            write({key: weights[key] for key in keys}, ROOT / folder / file)
        where = {key: file for file, keys in parts.items() for key in keys}
        index = {"metadata": {"total_size": 72}, "weight_map": where}
        (ROOT / folder / f"{stem}.{end}.index.json").write_text(json.dumps(index, indent=2) + "\n")
        (ROOT / folder / "config.json").write_text('{"model_type": "tiny"}\n')


def make_numpy():
    random = np.random.default_rng(0)
    augreg = {
        "Transformer/encoderblock_0/MlpBlock_3/Dense_0/kernel": random.normal(size=(4, 6)).astype("f4"),
        "Transformer/encoderblock_0/LayerNorm_0/scale": random.normal(size=4).astype("f4"),
        "embedding/kernel": np.asfortranarray(random.normal(size=(2, 2, 3, 4)).astype("f4")),
        "head/bias": random.normal(size=3).astype("f2"), "cls": random.normal(size=(1, 1, 4)),
        "step": np.int64(5), "key": np.arange(2, dtype="u4"), "names": np.array(["a", "bc"]),
        "zeros": np.zeros((64, 64), "f4"),
    }  # fmt: skip
    tensors = {k: torch.from_numpy(np.array(v)) for k, v in augreg.items() if k not in ("key", "names")}
    brain = torch.arange(6).bfloat16().view(2, 3) / 3
    augreg["brain"] = brain.view(torch.int16).numpy().view("V2")
    tensors["brain"] = brain
    np.savez(ROOT / "augreg.npz", **augreg)
    np.savez_compressed(ROOT / "augreg_packed.npz", **augreg)
    note("augreg.npz", "npz", tensors)
    note("augreg_packed.npz", "npz", tensors)
    np.savez(ROOT / "objects.npz", o=np.array([{}, None], dtype=object), w=np.ones(2, "f4"))
    note("objects.npz", "npz", {"w": torch.ones(2)})

    arrays = {}
    values = random.normal(size=(3, 4)) * 10
    for name, array in {
        "f4": values.astype("f4"), "f8": values, "f2": values.astype("f2"), "i1": values.astype("i1"),
        "i2": values.astype("i2"), "i4": values.astype("i4"), "i8": values.astype("i8"), "u1": np.arange(5, dtype="u1"),
        "u2": np.arange(5, dtype="u2"), "u4": np.array([1, 2**32 - 1], "u4"), "u8": np.array([1, 2**40], "u8"),
        "b1": np.array([True, False]), "fortran": np.asfortranarray(values.astype("f4")),
        "fortran_i8": np.asfortranarray(values.astype("i8")), "scalar": np.float32(2.5),
        "vector": np.arange(7.0, dtype="f4"),
        "cube": np.arange(24, dtype="f4").reshape(2, 3, 4), "none": np.zeros((0, 5), "f4"),
    }.items():  # fmt: skip
        np.save(ROOT / f"{name}.npy", array)
        facts = {"shape": list(np.shape(array)), "descr": np.asarray(array).dtype.str}
        arrays[name] = facts | {"values": np.float32(array).ravel().tolist()}
    for version in (2, 3):
        with open(ROOT / f"version{version}.npy", "wb") as file:
            np.lib.format.write_array(file, values.astype("f4"), version=(version, 0))
        arrays[f"version{version}"] = arrays["f4"]
    np.save(ROOT / "big_endian.npy", values.astype(">f4"))
    np.save(ROOT / "text.npy", np.array(["a", "bc"]))
    np.save(ROOT / "record.npy", np.zeros(2, [("x", "f4"), ("y", "i4")]))
    (ROOT / "arrays.json").write_text(json.dumps(arrays, indent=0) + "\n")


def main():
    torch.manual_seed(0)
    ROOT.mkdir(exist_ok=True)
    save_file(all_types(), ROOT / "types.safetensors", metadata={"format": "pt"})
    note("types.safetensors", "safetensors", all_types())
    make_pytorch()
    make_sharded()
    make_numpy()
    (ROOT / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")


if __name__ == "__main__":
    sys.exit(main())
