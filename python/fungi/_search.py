# SPDX-License-Identifier: Apache-2.0
"""Search: the verbs index, search and pca, and an index as an object."""
from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fungi import _fungi, _inputs, _models
from fungi._common import PathLike, Progress, choice, count, path, progress_function, threads as threads_of, warn
from fungi._errors import Error, InputError
from fungi._evaluate import METRICS
from fungi._results import Answer, IndexResult, Neighbour, PcaFile, PcaResult, SearchResult
from fungi._store import Store, folder, native

INDEX_KINDS = ("exact", "hnsw", "ivf")
_OF_KIND = {"links": "hnsw", "build_effort": "hnsw", "effort": "hnsw", "lists": "ivf", "probes": "ivf"}


@dataclass
class Found:
    """The nearest rows of each query, [queries, k]: their numbers, and distances or similarities."""

    rows: NDArray[np.uint32]
    values: NDArray[np.float64]
    ids: list[list[str]]


def _tuning(kind: str, **given: int | None) -> dict[str, int]:
    stated = {name: count(value, name) for name, value in given.items() if value is not None}
    for name in stated:
        if name in _OF_KIND and _OF_KIND[name] != kind:
            raise InputError(f"is a setting of kind=\"{_OF_KIND[name]}\"; kind=\"{kind}\" has none like it", name, "leave it out, or build that kind")
    if kind == "exact" and "seed" in stated:
        raise InputError("the kind 'exact' draws nothing", "seed", "leave it out")
    if "links" in stated and not 2 <= stated["links"] <= 1000:
        raise InputError(f"expected a number from 2 to 1000, found {stated['links']}", "links", "")
    return stated


class Index:
    """A searchable set of rows: built of a store, saved as a folder, opened again without the store.

    >>> import fungi
    >>> index = fungi.Index.build(train, kind="hnsw")
    >>> rows = fungi.Store(train).load()
    >>> found = index.search(rows[:2], k=3)
    >>> found.rows[:, 0].tolist(), found.rows.shape
    ([0, 1], (2, 3))
    >>> index.save(folder + "/train.index")
    >>> fungi.Index.open(folder + "/train.index")
    Index(hnsw, 60 rows, 256 columns of embedding+kl, euclidean)
    """

    def __init__(self, native_index: Any, path: str | None) -> None:
        self._native = native_index
        self.path = path

    @classmethod
    def build(cls, store: Store | PathLike, *, kind: str = "hnsw", features: str | None = None, pca: int = 0,
              metric: str = "euclidean", links: int | None = None, build_effort: int | None = None, lists: int | None = None,
              seed: int | None = None, threads: int = 0, progress: Progress = None) -> Index:
        choice(kind, "kind", INDEX_KINDS)
        choice(metric, "metric", METRICS)
        tuning = _tuning(kind, links=links, build_effort=build_effort, lists=lists, seed=seed)
        with progress_function(progress) as show:
            return cls(_fungi.FeatureIndex.build(native(store), kind, features or "", count(pca, "pca"), metric, tuning,
                                                 threads_of(threads), show), None)

    @classmethod
    def open(cls, folder: PathLike) -> Index:
        where = path(folder, "folder")
        return cls(_fungi.FeatureIndex.open(where), where)

    def save(self, folder: PathLike) -> None:
        """Replaces an index that is there; a folder with anything else in it is an error."""
        self.path = path(folder, "folder")
        self._native.save(self.path)

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self._native.facts())

    def __len__(self) -> int:
        return int(self._native.facts()["rows"])

    def __repr__(self) -> str:
        f = self.facts
        return f"Index({f['kind']}, {f['rows']} rows, {f['columns']} columns of {f['features']}, {f['metric']})"

    def id(self, row: int) -> str:
        return str(self._native.id(row))

    def label(self, row: int) -> int:
        """-1: none."""
        return int(self._native.label(row))

    def class_name(self, row: int) -> str:
        return str(self._native.class_name(row))

    def find(self, id: str) -> int | None:
        """The row of an id."""
        found = self._native.find(id)
        return None if found is None else int(found)

    def search(self, queries: Any, k: int = 8, *, effort: int = 0, probes: int = 0, threads: int = 0) -> Found:
        """The k nearest rows of each query: rows [n, columns] as Store.load() and Extractor.transform() give them."""
        rows = matrix(queries, "queries")
        at, values = self._native.search(rows, count(k, "k", 1), _fungi.SearchOptions(effort, probes), threads_of(threads))
        return Found(at, values, [[self.id(row) for row in line] for line in at])

    def recall(self, k: int = 10, sample: int = 1000, *, effort: int = 0, probes: int = 0, threads: int = 0) -> float:
        """The share of true neighbours that is found, of an index that was built here."""
        return float(self._native.recall(k, sample, _fungi.SearchOptions(effort, probes), threads_of(threads)))

    def __getstate__(self) -> dict[str, Any]:
        if self.path is None:
            raise Error("an index that was not saved cannot be pickled", "Index", "save() it first")
        return {"path": self.path}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.path = kept["path"]
        self._native = _fungi.FeatureIndex.open(self.path)


def matrix(values: Any, name: str) -> NDArray[np.float32]:
    """Finite float32 [n, columns]."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().float().numpy()
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(f"expected numbers [n, columns], found {array.dtype} of shape {array.shape}", name, "")
    array = np.ascontiguousarray(array, np.float32)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise InputError(f"row {bad[0]} holds NaN or infinity", name, "mend it, or leave it out")
    return array


def index(store: Store | PathLike, output: PathLike, *, kind: str = "hnsw", features: str | None = None, pca: int = 0,
          metric: str = "euclidean", links: int | None = None, build_effort: int | None = None, lists: int | None = None,
          seed: int | None = None, k: int = 10, sample: int = 1000, effort: int | None = None, probes: int | None = None,
          threads: int = 0, progress: Progress = None) -> IndexResult:
    """Builds a search index of a store in a folder and measures its recall.

    >>> import fungi
    >>> fungi.index(train, folder + "/exact.index", kind="exact").recall
    1.0
    """
    _tuning(kind, effort=effort, probes=probes)
    opened, out = native(store), path(output, "output")
    _fungi.FeatureIndex.require_can_save(out)
    _fungi.require_outside(opened, out)
    start = time.perf_counter()
    built = Index.build(store, kind=kind, features=features, pca=pca, metric=metric, links=links, build_effort=build_effort,
                        lists=lists, seed=seed, threads=threads, progress=progress)
    built.save(out)
    saved = time.perf_counter()
    rows = len(built)
    k, sample = min(count(k, "k", 1), rows - 1), min(count(sample, "sample", 1), rows)
    recall = built.recall(k, sample, effort=effort or 0, probes=probes or 0, threads=threads)
    facts = built.facts
    files = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(out) for name in names)
    return IndexResult(index=out, store=folder(store), kind=kind, metric=metric, features=facts["features"], rows=rows,
                       columns=facts["columns"], pca=pca, k=k, sample=sample, recall=recall, build_seconds=saved - start,
                       recall_seconds=time.perf_counter() - saved, bytes=files)


def _texts(data: PathLike | None, **columns: str) -> dict[str, str]:
    if data is None:
        return {}
    opened = _fungi.open_dataset(path(data, "data"), {"samples": "text", **columns})
    return {id: opened.read(number).decode() for number, id in enumerate(opened.ids())}


def search(target: Store | Index | PathLike, *, images: Iterable[Any] = (), audio: Iterable[Any] = (), texts: Iterable[str] = (), rows: Sequence[str] = (),
           k: int = 8, data: PathLike | None = None, split: str = "", text_column: str = "", label_column: str = "", id_column: str = "",
           model: PathLike | None = None, given: Any = None, features: str | None = None, metric: str | None = None,
           effort: int = 0, probes: int = 0, threads: int = 0) -> SearchResult:
    """The rows nearest to pictures, sounds or texts, which are extracted as the rows were, or to rows by their id.

    target: a store, every row of which is compared, or an index of one. images: paths, bytes, PIL pictures, arrays.
    audio: paths, bytes, (array, rate).
    data: the texts that were extracted, to show them; split: the split of them that was extracted.

    >>> import fungi
    >>> answer = fungi.search(train, images=["demo/images/test/bag/00018.png"], k=2).queries[0]
    >>> len(answer.neighbours), answer.neighbours[0].value > 0
    (2, True)
    """
    asked_for = {"image": list(images), "sound": list(audio), "text": list(texts)}
    rows = list(rows)
    if not (any(asked_for.values()) or rows):
        raise InputError("images, audio, texts or rows are required", "search", "give what to search for")
    if not any(asked_for.values()) and (model is not None or given is not None):
        raise InputError("model and given are about images, audio or texts, and none is there", "model", "leave them out")
    if metric is not None:
        choice(metric, "metric", METRICS)
    where = target.path if isinstance(target, Index) else folder(target)
    if where is None:
        raise InputError("the index is in memory alone", "target", "save() it, or use its search()")
    arrays = _models.arrays(given)
    asked = [_fungi.Samples([one for chunk in _inputs.chunks(these, kind) for one in chunk], [], kind)
             for kind, these in asked_for.items() if these]
    shown = _texts(data, split=split, text_column=text_column, label_column=label_column, id_column=id_column)
    out = _fungi.search(where, asked, rows, count(k, "k", 1), _models.pulled(path(model, "model")), None if arrays is None else arrays["projection"],
                        features or "", metric or "", _fungi.SearchOptions(effort, probes), threads_of(threads))
    warn(out["notes"])
    answers = []
    named = {"image": asked_for["image"], "audio": asked_for["sound"], "text": asked_for["text"], "row": rows}
    queries = [(query, kind) for kind, of_kind in named.items() for query in of_kind]
    for (query, kind), one in zip(queries, out["queries"]):
        found = [Neighbour(id, row, value, label, name, shown.get(id, "") if data is not None else None)
                 for id, row, value, label, name in one.get("neighbours", [])]
        answers.append(Answer(query, kind, found, one.get("error")))
    return SearchResult(where, out["features"], out["metric"], answers, list(out["notes"]))


def pca(stores: Store | PathLike | Sequence[Store | PathLike], output: PathLike, *, dim: int | None = None,
        features: str | None = None, apply: PathLike | None = None, threads: int = 0) -> PcaResult:
    """Fits a PCA on the first store and writes the rows of all of them through it as .npy, 512 columns wide or `dim`.

    >>> import fungi
    >>> fungi.pca([train, test], folder + "/pca", dim=16).files[1].columns
    16
    """
    if apply is not None and (dim is not None or features is not None):
        raise InputError("the PCA that is there has its own", "apply", "leave out dim and features")
    several = [stores] if isinstance(stores, (str, os.PathLike, Store)) else list(stores)
    out = _fungi.pca([folder(store) for store in several], path(output, "output"), features or "",
                     512 if dim is None else count(dim, "dim", 1), path(apply, "apply"), threads_of(threads))
    return PcaResult(out["features"], out["input_columns"], out["dim"], out["fitted_rows"], out["explained_variance_share"],
                     [PcaFile(*file) for file in out["files"]])
