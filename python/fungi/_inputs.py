# SPDX-License-Identifier: Apache-2.0
"""Samples as people have them, as the library takes them: names of files, bytes, uint8 pixels, texts, sounds."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fungi._errors import InputError, InputTypeError

Item = Any  # str | bytes | uint8 array [h, w, 3] | (float32 array, rate)

MOST_SAMPLES = 4096  # of a chunk
MOST_BYTES = 128 << 20  # that a chunk's conversions may take

_COLUMNS = {"image": ("image", "img", "images", "pixel_values"), "text": ("text", "sentence", "texts"), "sound": ("audio", "sound")}


def _is_torch(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def _is_pil(value: Any) -> bool:
    return hasattr(value, "convert") and hasattr(value, "mode") and hasattr(value, "size")


def _from_torch(value: Any) -> np.ndarray[Any, Any]:
    """Channels last, as pictures lie in memory."""
    value = value.detach().cpu()
    if value.is_floating_point():
        value = value.float()
    array: np.ndarray[Any, Any] = value.numpy()
    if array.ndim in (3, 4) and array.shape[-3] in (1, 3, 4):
        array = np.moveaxis(array, -3, -1)
    return array


def pixels(array: np.ndarray[Any, Any], place: str) -> np.ndarray[Any, Any]:
    """uint8 [h, w, 3] or [n, h, w, 3], without a copy where it is that already."""
    if array.ndim < 2 or array.ndim > 4:
        raise InputError(f"expected pixels [height, width, 3], found an array of shape {array.shape}", place, "")
    if array.ndim == 2:
        array = array[..., None]
    if array.shape[-1] not in (1, 3, 4):
        hint = "put the channels last: array.transpose(1, 2, 0)" if array.shape[-3] in (1, 3, 4) else "give RGB pictures"
        raise InputError(f"expected pixels [height, width, 3], found an array of shape {array.shape}", place, hint)
    if 0 in array.shape[-3:]:
        raise InputError(f"expected pixels, found an array of shape {array.shape}", place, "leave empty pictures out")
    if np.issubdtype(array.dtype, np.floating):
        if not np.isfinite(array).all():
            raise InputError("the picture holds NaN or infinity", place, "mend it, or leave it out")
        least, most = float(array.min()), float(array.max())
        if least < 0 or most > 1:
            raise InputError(f"expected a float picture between 0 and 1, found {least:g} to {most:g}", place,
                             "give uint8 pixels from 0 to 255, not normalised: the engine does that as the model wants it")
        array = np.rint(array * 255).astype(np.uint8)
    elif array.dtype != np.uint8:
        raise InputError(f"expected uint8 pixels, found {array.dtype}", place, "array.astype('uint8') where the values are 0 to 255")
    if array.shape[-1] == 1:
        array = np.repeat(array, 3, axis=-1)
    return np.ascontiguousarray(array[..., :3])


def _wave(value: Any, place: str) -> Item | None:
    if isinstance(value, Mapping) and "array" in value and "sampling_rate" in value:
        value = (value["array"], value["sampling_rate"])
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], (int, float, np.number))):
        return None
    array = _from_torch(value[0]) if _is_torch(value[0]) else np.asarray(value[0])
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"expected a sound of one channel as floats, found {array.dtype} of shape {array.shape}", place, "")
    if len(array) == 0 or not 0 < float(value[1]) < float("inf"):
        raise InputError(f"expected samples at some rate, found {len(array)} at {value[1]}", place, "leave empty sounds out")
    if not np.isfinite(array).all():
        raise InputError("the sound holds NaN or infinity", place, "mend it, or leave it out")
    return (np.ascontiguousarray(array, np.float32), float(value[1]))


def item(value: Any, kind: str, place: str) -> Item:
    """One sample of a model of such a kind."""
    if kind == "text":
        if isinstance(value, str):
            return str(value)
        raise InputTypeError(f"the model reads texts; expected a str, found {type(value).__name__}", place, "")
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    wave = _wave(value, place) if kind == "sound" else None
    if wave is not None:
        return wave
    if isinstance(value, Mapping) and ("bytes" in value or "path" in value):  # datasets.Image(decode=False)
        return item(value["bytes"] if value.get("bytes") is not None else value["path"], kind, place)
    if kind == "sound":
        raise InputTypeError(f"the model hears sounds; expected a path, bytes or (array, rate), found {type(value).__name__}", place, "")
    if _is_pil(value):
        return pixels(np.asarray(value.convert("RGB")), place)
    if _is_torch(value):
        value = _from_torch(value)
    if isinstance(value, np.ndarray) and value.ndim in (2, 3) and value.dtype != object:
        return pixels(value, place)
    raise InputTypeError(f"the model looks at pictures; expected a path, bytes, a PIL image, an array or a tensor, found "
                         f"{type(value).__name__}{getattr(value, 'shape', '')}", place, "")


def column(samples: Any, kind: str) -> Any:
    """Of a table (a `datasets` data set, one of its batches, a data frame) the column with the samples."""
    names = getattr(samples, "column_names", None)
    if names is None and (isinstance(samples, Mapping) or hasattr(samples, "columns")):
        names = list(samples.keys())
    if not isinstance(names, list):
        return samples
    for name in _COLUMNS[kind]:
        if name in names:
            return samples[name]
    raise InputError(f"expected a column {' or '.join(_COLUMNS[kind][:2])}, found {', '.join(map(str, names))}", "samples",
                     "give the column itself")


def _each(samples: Any, kind: str) -> Iterator[Item]:
    for number, value in enumerate(samples):
        yield item(value, kind, f"sample {number}")


def chunks(samples: Any, kind: str) -> Iterator[list[Item]]:
    """Lists of items, none of them too large for memory. An array or a tensor of pictures is not copied."""
    samples = column(samples, kind)
    if isinstance(samples, (str, bytes, bytearray, os.PathLike)) or _is_pil(samples):
        raise InputTypeError(f"expected a list of samples, found a single {type(samples).__name__}", "samples", "put it into a list")
    if _is_torch(samples):
        samples = _from_torch(samples)
    if isinstance(samples, np.ndarray) and samples.dtype.kind not in "OUS":
        if kind != "image" or samples.ndim != 4:
            raise InputError(f"expected pictures [n, height, width, 3], found an array of shape {samples.shape}", "samples",
                             "put a single picture into a list")
        ready = samples.dtype == np.uint8
        for first in range(0, len(samples), MOST_SAMPLES if ready else 256):
            yield list(pixels(samples[first : first + (MOST_SAMPLES if ready else 256)], "samples"))
        return
    if not isinstance(samples, Iterable):
        raise InputTypeError(f"expected a list of samples, found {type(samples).__name__}", "samples", "")
    chunk: list[Item] = []
    held = 0
    for one in _each(samples, kind):
        chunk.append(one)
        held += getattr(one[0] if isinstance(one, tuple) else one, "nbytes", 0)
        if len(chunk) == MOST_SAMPLES or held >= MOST_BYTES:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk
