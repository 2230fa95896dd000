# SPDX-License-Identifier: Apache-2.0
"""Making stores: the verbs extract and project."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fungi import _fungi, _inputs, _models
from fungi._common import PathLike, Progress, choice, count, path, progress_function, seconds, threads as threads_of, warn
from fungi._errors import InputError
from fungi._extractor import Failure, stated_settings
from fungi._results import Extraction, ExtractionPlan, Merge, Projection, made
from fungi._store import Store, native

KINDS = ("auto", "classes", "flat", "list", "tar", "cifar", "idx")
STATISTICS = ("model", "measure", "esc50", "speechcommands")
PROJECTIONS = ("sign", "sign_reference", "gaussian", "sparse", "factored", "matrix", "none")


def _held(data: Any, kind: str, ids: Sequence[str] | None, labels: Sequence[Any] | None) -> Any:
    """Samples in memory as a data set; labels are numbers (-1: none) or names of classes."""
    items = [one for chunk in _inputs.chunks(data, kind) for one in chunk]
    if not items:
        raise InputError("expected samples, found none", "data", "give at least one")
    made = _fungi.Samples(items, [f"{i:06d}" for i in range(len(items))] if ids is None else list(ids), kind)
    if labels is None:
        made.set_labels([], [])
        return made
    if len(labels) != len(items):
        raise InputError(f"expected a label for each of {len(items)} samples, found {len(labels)}", "labels", "")
    names = sorted({str(label) for label in labels if not isinstance(label, (int, np.integer))})
    if names:
        numbers = [names.index(str(label)) for label in labels]
    else:
        numbers = [int(label) for label in labels]
        names = [str(i) for i in range(max(numbers) + 1)]
    made.set_labels(numbers, names)
    return made


def extract(data: Any, output: PathLike, *, model: Any = None, objectives: str | Iterable[str] | None = None,
            preset: str | None = None, layer: str | None = None, layers: str | Iterable[str] | None = None, precision: str | None = None,
            facts: Mapping[str, Any] | None = None, projection: str | None = None, projection_dim: int | None = None,
            weight: float | None = None, given: Any = None, seed: int | None = None, like: PathLike | Store | None = None, kind: str = "auto", split: str = "",
            fold: str | int = "", classes: PathLike | None = None, text_column: str = "", label_column: str = "", id_column: str = "", storage: str | None = None, shard: int = 0,
            limit: int = 0, part: str = "", keep_factors: bool | None = None, exif: bool | None = None, allow_truncated: bool | None = None,
            prefix: str | None = None, max_tokens: int | None = None, tokenizer: PathLike | None = None,
            window: float | None = None, hop: float = 0, statistics: str = "model", strict: bool = False,
            retry_failed: bool = False, prune: bool = False, overwrite: bool = False, dry_run: bool = False, threads: int = 0,
            ids: Sequence[str] | None = None, labels: Sequence[Any] | None = None, samples: str = "image",
            progress: Progress = None) -> Any:
    """Features of every sample of a data set, in a store; call it again to go on where it was stopped.

    data: a folder of classes, a flat folder, a list (.csv .tsv .jsonl), tar shards, CIFAR or IDX files; or samples in memory
    (as for `Extractor`) with `ids` and `labels`, where `samples` says of which kind they are.
    model: a checkpoint file or folder, a dict of named arrays, or a torch module; not needed with `like`.
    samples: "image", "text" or "sound". window, hop: of files of sounds, each of which is several samples then.
    statistics: of sounds for AST: mean and std of the "model", "measure"d on the data, or of "esc50" or "speechcommands".
    split: of a published set ("train", "val", "test") or a folder. fold: of a list, rows whose column fold is this; "!1": all
    but 1. classes: a file with a class in each line; samples of all others are left out.
    like: another store, whose heads, negatives, classes, model and settings are used for all that is left out.
    layers: gradients of several layers at once, each a block of its own: "blocks.*.mlp.fc2" gives kl@blocks.0.mlp.fc2, ...
    facts: what the file does not tell (`--set`): {"heads": 6}.
    part: "3/16", only the third of sixteen parts, into a store of its own; `merge` joins all of them.

    Left out, options have the command line's defaults: objectives kl, dino and simclr; preset native; layer
    blocks.-1.attn.proj; precision auto; projection sign; seed 42; storage float32. The result says what was done; of
    dry_run=True what would be.

    >>> import fungi
    >>> done = fungi.extract("demo/images/test/bag", folder + "/bags", model="demo", objectives="kl", limit=4)
    >>> done.rows, done.complete, done.pipeline
    (4, True, 'embedding+kl')
    """
    if model is None and like is None:
        raise InputError("expected a model, found none", "model", "give a checkpoint, or like= a store")
    if limit and prune:
        raise InputError("together they would drop all rows beyond the limit", "prune", "leave out limit or prune")
    choice(kind, "kind", KINDS)
    stated = stated_settings(objectives=objectives, preset=preset, layer=layer, layers=layers, precision=precision, facts=facts,
                             projection=projection, projection_dim=projection_dim, weight=weight, given=given, seed=seed, storage=storage,
                             keep_factors=keep_factors, exif=exif, allow_truncated=allow_truncated, prefix=prefix,
                             max_tokens=max_tokens, tokenizer=tokenizer, window=window)
    choice(statistics, "statistics", STATISTICS)
    what, found, _ = (None, {}, None) if model is None else _models.resolve(model)
    if found:
        stated["facts"] = {**found, **stated.get("facts", {})}
    if not isinstance(data, (str, os.PathLike)):
        if hop or window:
            raise InputError("files of sounds are cut into windows; sounds in memory are samples as they are", "window",
                             "cut them, and give each part")
        data = _held(data, samples, ids, labels)
    elif ids is not None or labels is not None:
        raise InputError("a data set on disk has ids and labels of its own", "labels", "leave them out")
    how = {"like": like.path if isinstance(like, Store) else path(like, "like"), "kind": kind, "split": split,
           "fold": str(fold), "classes": path(classes, "classes"), "text_column": text_column, "label_column": label_column, "id_column": id_column,
           "hop": seconds(hop, "hop"), "statistics": statistics, "limit": count(limit, "limit"), "part": str(part),
           "shard": count(shard, "shard"), "strict": strict, "retry_failed": retry_failed, "prune": prune,
           "overwrite": overwrite, "dry_run": dry_run}
    with progress_function(progress) as show:
        out = _fungi.extract(data, path(output, "output"), what, stated, how, threads_of(threads), show)
    warn(out["notes"])
    if dry_run:
        return made(ExtractionPlan, out)
    failures = [Failure(*f) for f in out["failures"]]
    warn([f"{f.id}: {f.reason}: recorded, not a row" for f in failures[:3]])
    if len(failures) > 3:
        warn([f"{len(failures) - 3} more samples failed, see failed.jsonl"])
    return made(Extraction, out, failures=failures)


def merge(parts: Sequence[PathLike], output: PathLike, *, allow_mixed: bool = False, overwrite: bool = False, dry_run: bool = False,
          progress: Progress = None) -> Merge:
    """The stores of all parts (`extract(part=...)`), in any order, joined into the one store of a single run.

    allow_mixed: also join parts of other versions or instruction sets; the store records them.

    >>> import fungi
    >>> for part in ("1/2", "2/2"):
    ...     done = fungi.extract("demo/images/test/bag", folder + "/part" + part[0], model="demo", objectives="kl", limit=4, shard=2, part=part)
    >>> fungi.merge([folder + "/part1", folder + "/part2"], folder + "/joined").rows
    4
    """
    if isinstance(parts, (str, os.PathLike)):
        parts = [parts]
    with progress_function(progress) as show:
        out = _fungi.merge([path(part, "parts") for part in parts], path(output, "output"), allow_mixed, overwrite, dry_run, show)
    return made(Merge, out)


def project(store: Store | PathLike, output: PathLike, *, projection: str = "sign", projection_dim: int = 0, given: Any = None,
            seed: int | None = None, keep_factors: bool = False, prune: bool = False, overwrite: bool = False, threads: int = 0,
            progress: Progress = None) -> Projection:
    """The gradients of a store projected anew, from the factors that extract(keep_factors=True) stored.

    >>> import fungi
    >>> done = fungi.extract("demo/images/test/bag", folder + "/kept", model="demo", objectives="kl", limit=4, keep_factors=True)
    >>> fungi.project(folder + "/kept", folder + "/narrower", projection_dim=64).rows
    4
    >>> fungi.Store(folder + "/narrower")["kl"].shape
    (4, 64)
    """
    choice(projection, "projection", PROJECTIONS)
    if count(projection_dim, "projection_dim") and projection in ("matrix", "none"):
        raise InputError(f"projection=\"{projection}\" has its own number of rows, found {projection_dim}", "projection_dim", "leave it out")
    arrays = _models.arrays(given)
    if projection == "matrix" and (arrays is None or "projection" not in arrays):
        raise InputError("projection=\"matrix\" needs the matrix", "given", "give an array named 'projection', or the file that holds it")
    if projection != "matrix" and arrays is not None:
        raise InputError(f"is the matrix of projection=\"matrix\"; projection=\"{projection}\" makes its own", "given", "leave one of them out")
    with progress_function(progress) as show:
        out = _fungi.project(native(store), path(output, "output"), projection, projection_dim,
                             None if seed is None else count(seed, "seed"), None if arrays is None else arrays["projection"],
                             keep_factors, prune, overwrite, threads_of(threads), show)
    return made(Projection, out)
