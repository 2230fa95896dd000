# SPDX-License-Identifier: Apache-2.0
"""The extractor as an object: samples in, rows of features out."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fungi import _fungi, _inputs, _models
from fungi._common import PathLike, Progress, choice, count, path, progress_function, seconds, threads as threads_of, warn
from fungi._errors import Error, InputError, NotFittedError, SampleError

OBJECTIVES = ("kl", "dino", "simclr")


@dataclass(frozen=True)
class Failure:
    """A sample that is no row, and why."""

    id: str
    stage: str
    reason: str
    hint: str
    position: int = -1


@dataclass
class Features:
    """Rows with everything that belongs to them. `features["kl"]` is a block, without a copy.

    >>> import fungi
    >>> features = fungi.Extractor("demo", objectives="kl").extract(["demo/images/test/bag/00018.png"])
    >>> features["kl"].shape, features.ids
    ((1, 128), ['00018.png'])
    """

    array: NDArray[np.float32]
    blocks: dict[str, slice]
    ids: list[str]
    labels: NDArray[np.int64]
    classes: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def __getitem__(self, block: str) -> NDArray[np.float32]:
        if block not in self.blocks:
            raise InputError(f"there is no block '{block}'", "features", f"choose one of {', '.join(self.blocks)}")
        return self.array[:, self.blocks[block]]

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array: NDArray[Any] = self.array if dtype is None else self.array.astype(dtype, copy=False)
        return array.copy() if copy else array


def objective_words(objectives: str | Iterable[str] | None) -> list[str] | None:
    """"none", None inside a list, an empty list: the embedding alone."""
    if objectives is None:
        return None
    words = [objectives] if isinstance(objectives, str) else list(objectives)
    if not all(isinstance(word, str) for word in words):
        raise InputError(f"expected names of objectives, found {objectives!r}", "objectives", "such as ['kl', 'simclr:negatives=64']")
    return words or ["none"]


def stated_settings(**settings: Any) -> dict[str, Any]:
    """What was said, without what was left out, in the library's words."""
    if settings.get("objectives") is not None:
        settings["objectives"] = objective_words(settings["objectives"])
    if settings.get("facts") is not None:
        settings["facts"] = {str(key): str(value) for key, value in settings["facts"].items()}
    if settings.get("layers") is not None:
        layers = settings["layers"]
        settings["layers"] = [layers] if isinstance(layers, str) else [str(layer) for layer in layers]
        if not settings["layers"]:
            raise InputError("expected names of layers, found none", "layers", "give at least one, 'blocks.*.attn.proj'")
    settings["given"] = _models.arrays(settings.get("given"))
    if settings.get("tokenizer") is not None:
        settings["tokenizer"] = os.fspath(settings["tokenizer"])
    for name in ("seed", "max_tokens", "projection_dim"):
        if settings.get(name) is not None:
            count(settings[name], name)
    weight = settings.get("weight")
    if weight is not None and not (isinstance(weight, (int, float)) and 0 < weight < float("inf")):
        raise InputError(f"expected a positive number, found {weight!r}", "weight", "")
    if settings.get("window") is not None:
        settings["window"] = seconds(settings["window"], "window")
    if settings.get("precision") is not None:
        choice(settings["precision"], "precision", ("auto", "f32", "bf16", "int8"))
    return {key: value for key, value in settings.items() if value is not None}


class Extractor:
    """A frozen model with the objectives whose gradients are taken: pictures, texts or sounds in, features out.

    model: a checkpoint file or folder, a dict of named arrays (and texts such as "config.json"), or a network that timm,
    transformers or torchvision built. Everything else as for `extract()`; what is left out has the same defaults.

    Samples are paths, bytes, PIL pictures, uint8 arrays [h, w, 3], tensors [3, h, w], texts, sounds (array, rate), or a
    column of a `datasets` data set. A sample's features depend on the settings, its id and its content alone, never on the
    other samples; dino draws its crops by the id, which is a file's name, a text, or a sum of the pixels, unless `ids` says
    otherwise. Of a sound `window` seconds are looked at, or as many as the model does.

    Threads may share an extractor; their calls wait for each other. It may be used in forked processes, and pickles by its
    settings, its model's path and what fit() found.

    >>> import fungi
    >>> extractor = fungi.Extractor("demo", objectives=["kl"])
    >>> rows = extractor.transform(["demo/images/test/bag/00018.png"])
    >>> rows.shape, rows.dtype
    ((1, 256), dtype('float32'))
    >>> list(extractor.blocks)
    ['embedding', 'kl']
    """

    def __init__(self, model: Any = None, *, objectives: str | Iterable[str] | None = None, preset: str | None = None,
                 layer: str | None = None, layers: str | Iterable[str] | None = None, precision: str | None = None,
                 facts: Mapping[str, Any] | None = None,
                 projection: str | None = None, projection_dim: int | None = None, weight: float | None = None, given: Any = None,
                 seed: int | None = None,
                 exif: bool | None = None, allow_truncated: bool | None = None, prefix: str | None = None,
                 max_tokens: int | None = None, tokenizer: PathLike | None = None, window: float | None = None,
                 like: PathLike | None = None, threads: int = 0) -> None:
        if model is None and like is None:
            raise InputError("expected a model, found none", "model", "give a checkpoint, or like= a store")
        self._settings = stated_settings(
            objectives=objectives, preset=preset, layer=layer, layers=layers, precision=precision, facts=facts, projection=projection,
            projection_dim=projection_dim, weight=weight, given=given, seed=seed, exif=exif, allow_truncated=allow_truncated, prefix=prefix,
            max_tokens=max_tokens, tokenizer=tokenizer, window=window)
        self._like = path(like, "like")
        self._threads = threads
        native, found, where = (None, {}, None) if model is None else _models.resolve(model)
        self._path: str | None = where
        if found:
            self._settings["facts"] = {**found, **self._settings.get("facts", {})}
        if self._path is not None:
            self._path = os.path.abspath(self._path)
        self._open(native)
        warn(self.notes)

    def _open(self, native: Any) -> None:
        self._native = _fungi.Extractor(native, self._settings, self._like, threads_of(self._threads))

    # What it is.

    @property
    def blocks(self) -> dict[str, slice]:
        """The columns of each block of a row: the embedding, then each objective's gradient."""
        out, first = {}, 0
        for name, width in self._native.blocks():
            out[name] = slice(first, first + width)
            first += width
        return out

    @property
    def width(self) -> int:
        """Columns of a row."""
        return sum(width for _, width in self._native.blocks())

    @property
    def kind(self) -> str:
        """What the model looks at: "image", "text" or "sound"."""
        return str(self._native.kind())

    @property
    def ready(self) -> bool:
        """False: an objective compares with other samples, which fit() has to choose."""
        return bool(self._native.ready())

    @property
    def notes(self) -> list[str]:
        """What you should know of the model and of the samples so far."""
        return list(self._native.notes())

    @property
    def views_per_sample(self) -> int:
        """Forward passes that each sample takes."""
        return int(self._native.views())

    @property
    def precision(self) -> str:
        return str(self._native.precision())

    @property
    def kernel(self) -> str:
        """The instructions that compute, and in what precision. Rows of others differ in their last bits."""
        return str(self._native.kernel())

    @property
    def state(self) -> dict[str, NDArray[np.float32]]:
        """Heads, negatives and centres, as a store keeps them."""
        return dict(self._native.state())

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        self._native.restore(list((_models.arrays(value) or {}).items()))

    def __repr__(self) -> str:
        return f"Extractor({self._path or self._like or 'in memory'!r}, {'+'.join(self.blocks)}, {self.precision})"

    # What it does.

    def fit(self, X: Any, y: Any = None, *, progress: Progress = None) -> Extractor:
        """Finds what objectives compare with: the negatives of simclr, the centres of deepcluster. `X`: a folder or list of
        a data set, or samples; some of them are chosen by the seed."""
        data = self._dataset(X)
        if data is None:
            items = [one for chunk in _inputs.chunks(X, self.kind) for one in chunk]
            data = self._samples(items, None)
        with progress_function(progress) as show:
            self._native.fit(data, show)
        return self

    def transform(self, X: Any, *, ids: Sequence[str] | None = None, errors: str = "raise", progress: Progress = None) -> NDArray[np.float32]:
        """Rows [n, width]: each block of each row has length 1, as searches and evaluations compare them.

        errors: "raise" on a sample that cannot be used, or "nan": its row is NaN, and a warning says why.
        """
        return self._rows(X, ids, True, errors, progress).array

    def fit_transform(self, X: Any, y: Any = None, *, progress: Progress = None) -> NDArray[np.float32]:
        """fit() and transform() of the same samples, which are kept in a list where they come one by one."""
        X = X if hasattr(X, "__len__") or isinstance(X, os.PathLike) else list(X)
        return self.fit(X, y, progress=progress).transform(X, progress=progress)

    def extract(self, X: Any, *, ids: Sequence[str] | None = None, progress: Progress = None) -> Features:
        """Rows as a store has them, with ids and labels; samples that cannot be used are among the failures."""
        return self._rows(X, ids, False, "leave out", progress)

    def _dataset(self, X: Any) -> Any:
        """Of a path: the data set that lies there."""
        if isinstance(X, (str, os.PathLike)):
            return self._native.open(os.fspath(X))
        return X if isinstance(X, _fungi.Dataset) else None

    def _samples(self, items: list[Any], ids: Sequence[str] | None) -> Any:
        if not items:
            raise InputError("expected samples, found none", "samples", "give at least one")
        if ids is not None and not all(isinstance(id, str) for id in ids):
            raise InputError("expected texts", "ids", "give a str for each sample")
        return _fungi.Samples(items, [] if ids is None else list(ids), self.kind)

    def _parts(self, X: Any, ids: Sequence[str] | None) -> Iterator[Any]:
        data = self._dataset(X)
        if data is not None:
            if ids is not None:
                raise InputError("a data set has ids of its own", "ids", "leave them out")
            yield data
            return
        first = 0
        for chunk in _inputs.chunks(X, self.kind):
            yield self._samples(chunk, None if ids is None else ids[first : first + len(chunk)])
            first += len(chunk)
        if first == 0:
            self._samples([], None)
        if ids is not None and len(ids) != first:
            raise InputError(f"expected an id for each of {first} samples, found {len(ids)}", "ids", "")

    def _rows(self, X: Any, ids: Sequence[str] | None, normalise: bool, errors: str, progress: Progress) -> Features:
        choice(errors, "errors", ("raise", "nan", "leave out"))
        if not self.ready:
            raise NotFittedError("an objective still needs samples to compare with", "Extractor", "call fit() first, or set its state")
        before = len(self.notes)
        parts: list[tuple[NDArray[np.float32], list[str], NDArray[np.int64]]] = []
        failures: list[Failure] = []
        classes: list[str] = []
        seen = 0
        with progress_function(progress) as show:
            for data in self._parts(X, ids):
                rows, failed, names, labels, classes = self._native.extract(data, normalise, show)
                if failed and errors == "raise":
                    _, name, stage, reason, hint = failed[0]
                    raise SampleError(reason, name, hint or f"errors=\"nan\" goes on without it ({stage})")
                if failed and errors == "nan":
                    kept = np.full((len(data), rows.shape[1]), np.nan, np.float32)
                    good = np.ones(len(data), bool)
                    good[[f[0] for f in failed]] = False
                    kept[good] = rows
                    rows = kept
                    warn([f"{name}: {reason}: its row is NaN" for _, name, _, reason, _ in failed], 5)
                failures += [Failure(name, stage, reason, hint, seen + at) for at, name, stage, reason, hint in failed]
                parts.append((rows, names, labels))
                seen += len(data)
        warn(self.notes[before:], 5)
        array = parts[0][0] if len(parts) == 1 else np.concatenate([p[0] for p in parts])
        labels = np.concatenate([p[2] for p in parts])
        return Features(array, self.blocks, [name for p in parts for name in p[1]], labels, list(classes), failures)

    # Pickling: by settings, path and state.

    def __getstate__(self) -> dict[str, Any]:
        if self._path is None and not self._like:
            raise Error("an extractor of a model in memory cannot be pickled: its weights are in no file", "Extractor",
                        "save the model, and give its path")
        return {"settings": self._settings, "like": self._like, "path": self._path, "threads": self._threads,
                "state": list(self._native.state())}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self._settings, self._like, self._path = kept["settings"], kept["like"], kept["path"]
        self._threads = kept["threads"]
        self._open(self._path)
        if kept["state"]:
            self._native.restore(kept["state"])
