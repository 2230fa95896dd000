# SPDX-License-Identifier: Apache-2.0
"""A model at hand: a path, named arrays, or a network that timm, transformers or torchvision built."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from fungi import _fungi
from fungi._errors import InputError, InputTypeError

_TYPES = {"float32": "f32", "float16": "f16", "float64": "f64", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
          "int8": "i8", "uint8": "u8", "bool": "bool"}


def _tensor(name: str, value: Any) -> tuple[str, str, list[int], Any]:
    """(name, type, shape, bytes): views of what is there, where it is compact."""
    if hasattr(value, "detach"):  # torch
        import torch

        value = value.detach().cpu().contiguous()
        kind = str(value.dtype).removeprefix("torch.")
        shape = list(value.shape)
        raw = value.reshape(-1).view(torch.uint8).numpy() if value.numel() else np.zeros(0, np.uint8)
    else:
        array = np.asarray(value)
        kind, shape = array.dtype.name, list(array.shape)
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if kind not in _TYPES:
        raise InputError(f"the tensor '{name}' has the element type {kind}", "model", "give float32, float16, bfloat16 or float64")
    return name, _TYPES[kind], shape, raw


def _memory(name: str, tensors: Mapping[str, Any], beside: dict[str, Any]) -> Any:
    listed = [_tensor(str(key), value) for key, value in tensors.items() if hasattr(value, "shape")]
    return _fungi.MemoryModel(name, listed, {file: json.dumps(value) for file, value in beside.items()})


def _plain(value: Any) -> Any:
    """As JSON has it; what JSON has not is left out by the caller."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _timm(module: Any, config: Any) -> dict[str, Any]:
    said = config if isinstance(config, Mapping) else config.to_dict()
    said = _plain({k: v for k, v in said.items() if v is not None})
    name = str(said.get("architecture") or "").split(".")[0]
    out: dict[str, Any] = {"pretrained_cfg": said, "num_features": getattr(module, "num_features", None)}
    if name:
        out["architecture"] = name
    if getattr(module, "global_pool", None) is not None:
        out["global_pool"] = module.global_pool
    args: dict[str, Any] = {}
    size = getattr(getattr(module, "patch_embed", None), "img_size", None)
    if size is not None:
        args["img_size"] = _plain(size)
    if args:
        out["model_args"] = args
    return out


def _heads(module: Any) -> int | None:
    """Of its attention, which no tensor tells."""
    for part in module.modules():
        for name in ("num_heads", "num_attention_heads"):
            found = getattr(part, name, None)
            if isinstance(found, int):
                return found
    return None


def _as_in_files(module: Any, state: Any) -> Any:
    """transformers 5 names tensors otherwise in memory than in files."""
    try:
        from transformers.core_model_loading import revert_weight_conversion
    except ImportError:
        return state
    return revert_weight_conversion(module, state)


def _module(module: Any) -> tuple[Any, dict[str, str]]:
    """A torch module: its state dict, and what its own library knows of it."""
    name = f"{type(module).__name__} in memory"
    state = module.state_dict()
    config = getattr(module, "config", None)
    if config is not None and hasattr(config, "to_dict"):  # transformers
        said = {"architectures": [type(module).__name__], **_plain(config.to_dict())}
        return _memory(name, _as_in_files(module, state), {"config.json": said}), {}
    told = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
    facts: dict[str, str] = {}
    if told is not None:
        beside = {"config.json": _timm(module, told)}
    else:
        beside = {}
    heads = _heads(module)
    if heads is not None:
        facts["heads"] = str(heads)
    return _memory(name, state, beside), facts


def pulled(model: str) -> str:
    """A path as it is; of "hf:ORG/NAME" where it lies."""
    return str(_fungi.pulled_model(model))


def resolve(model: Any) -> tuple[Any, dict[str, str], str | None]:
    """What the library opens, facts to state of it, and its path where it has one."""
    if isinstance(model, (str, os.PathLike)):
        where = pulled(os.fspath(model))
        return where, {}, where
    if hasattr(model, "state_dict") and hasattr(model, "modules"):
        native, facts = _module(model)
        return native, facts, None
    if isinstance(model, Mapping):
        if not model:
            raise InputError("expected named arrays, found an empty dict", "model", "give a model's state dict")
        beside = {key: value for key, value in model.items() if str(key).endswith(".json")}
        tensors = {key: value for key, value in model.items() if key not in beside}
        return _memory("arrays in memory", tensors, beside), {}, None
    raise InputTypeError(f"expected a path, a dict of named arrays or a torch module, found {type(model).__name__}", "model", "")


def arrays(given: Any) -> dict[str, Any] | None:
    """Heads or a projection of one's own: a file's, or a dict's, as float32 matrices."""
    if given is None:
        return None
    found: Mapping[str, Any] = given if isinstance(given, Mapping) else _fungi.read_arrays(os.fspath(given))
    made = {}
    for name, value in found.items():
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value, np.float32)
        made[str(name)] = np.ascontiguousarray(array.reshape(1, -1) if array.ndim < 2 else array.reshape(array.shape[0], -1))
    return made
