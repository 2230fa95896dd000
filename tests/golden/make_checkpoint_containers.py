#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/checkpoint/containers*.pth by the real torch: tensors inside dicts, lists and records of classes
of their own, and containers.json, which tells under which names they are to be found.

Needs torch 2.13, easydict 1.14, munch 4.0, addict 2.4, omegaconf 2.4 and ml_collections 1.1.
"""
import argparse
import collections
import json
import pathlib
import types

import addict
import easydict
import ml_collections
import munch
import omegaconf
import torch

ROOT = pathlib.Path(__file__).parent / "checkpoint"
expected = {}


class Maker:
    """Hands out tensors, each with values of its own, and remembers under which name they are to be found."""

    def __init__(self):
        self.names = {}

    def __call__(self, *names):
        tensor = torch.arange(2.0) + 10 * len(self.names)
        for name in names:
            self.names[name] = {"type": "f32", "shape": [2], "values": tensor.tolist()}
        return tensor


def content(make, set_items):
    ordered = collections.OrderedDict(weight=make("ordered.weight"))
    ordered.prompt = make("ordered.prompt")
    config = omegaconf.OmegaConf.create({"deep": {"lr": 0.1, "list": [1, {"a": 2}]}}, flags={"allow_objects": True})
    config.deep.prompt = make("omegaconf._content.deep._content.prompt._val")
    return {
        "default": collections.defaultdict(list, weight=make("default.weight")),
        "counter": collections.Counter(weight=make("counter.weight")),
        "deque": collections.deque([make("deque.1"), make("deque.2")], 5),  # 0: that it began empty
        "set": {make(f"set.{set_items}")},
        "frozen": frozenset([make(f"frozen.{set_items}")]),
        "ordered": ordered,
        "easydict": easydict.EasyDict(weight=make("easydict.weight"), deep={"bias": make("easydict.deep.bias")}),
        "munch": munch.munchify({"weight": make("munch.weight"), "deep": {"bias": make("munch.deep.bias")}}),
        "addict": addict.Dict({"weight": make("addict.weight"), "deep": {"bias": make("addict.deep.bias")}}),
        "config_dict": ml_collections.ConfigDict({"weight": make("config_dict._fields.weight")}),
        "omegaconf": config,
        "namespace": argparse.Namespace(prompt=make("namespace.prompt"), deep=[make("namespace.deep.0")]),
        "simple": types.SimpleNamespace(prompt=make("simple.prompt")),
        "keys": {None: make("keys.?1"), ("a", 1): make("keys.?2"), dict: make(f"keys.{BUILTINS}.dict")},
        "lr": 0.5,
    }  # fmt: skip


BUILTINS = "__builtin__"  # Python 2's word, which protocol 2 writes


def save(name, kind, set_items, **options):
    make = Maker()
    torch.save(content(make, set_items), ROOT / name, **options)
    expected[name] = {"format": kind, "tensors": make.names}


def main():
    global BUILTINS
    save("containers.pth", "pytorch zip", "0.0")
    save("containers_legacy.pth", "pytorch legacy", "0.0", _use_new_zipfile_serialization=False)
    BUILTINS = "builtins"
    save("containers_protocol4.pth", "pytorch zip", "0", pickle_protocol=4)
    make = Maker()
    weights = easydict.EasyDict({"blocks.0.weight": make("blocks.0.weight"), "norm": make("norm")})
    torch.save(weights, ROOT / "container_alone.pth")
    expected["container_alone.pth"] = {"format": "pytorch zip", "tensors": make.names}
    (ROOT / "containers.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
