# SPDX-License-Identifier: Apache-2.0
"""The verbs export, report, inspect, models, info, bench, plan, prompts, pull and reproduce."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fungi import _command, _fungi, _models
from fungi._common import PathLike, choice, count, path, seconds, size, threads as threads_of, warn
from fungi._errors import Error, InputError
from fungi._evaluate import REDUCTIONS, checked_seeds
from fungi._extractor import objective_words
from fungi._results import Inspection, TensorInfo
from fungi._search import Index
from fungi._store import Store, folder as folder_of, native


def export(store: Store | PathLike, output: PathLike, *, format: str = "npz", split: str | None = None,
           layer_name: str | None = None) -> list[str]:
    """Writes a store for other programs: one .npz, or HDF5 files in a folder as the paper's scripts read them.

    >>> import fungi
    >>> fungi.export(train, folder + "/train.npz") == [folder + "/train.npz"]
    True
    """
    choice(format, "format", ("npz", "hdf5"))
    out = path(output, "output")
    if out.endswith((".h5", ".hdf5")):
        raise InputError(f"HDF5 goes into a folder with a file for each block, found the file name '{out}'", "output", "give a folder")
    if format == "hdf5" and out.endswith(".npz"):
        raise InputError("is hdf5, but the name of the output ends in .npz", "format", "leave one of the two out")
    if format == "npz" and (split is not None or layer_name is not None):
        raise InputError("split and layer_name are about HDF5 files", "format", "give format=\"hdf5\", or leave them out")
    for name, value in (("split", split), ("layer_name", layer_name)):
        if value is not None and ("/" in value or value == "."):
            raise InputError("is a part of a name: expected no '/' in it", name, "")
    return list(_fungi.export(native(store), out, format, split or "", layer_name or ""))


def report(train: Store | PathLike, test: Store | PathLike, output: PathLike = "report.html", *,
           train_pictures: PathLike | None = None, test_pictures: PathLike | None = None, hop: float = 0, split: str = "",
           test_split: str = "", text_column: str = "", label_column: str = "", id_column: str = "", queries: int = 12,
           k: int | None = None, pca: int = 512, reduce: str = "pca", seeds: Sequence[int] | None = None, memory: int | str = 0,
           threads: int = 0) -> str:
    """One self-contained HTML page: what the gradients add to the embedding. Gives its path.

    train_pictures, test_pictures: the data sets, of pictures, texts or sounds, to show neighbours. hop: of sounds, as they
    were extracted. split, test_split: the splits of the data sets, where they were extracted with them. reduce: "pca", or a random matrix ("sign", "gaussian", "sparse"). seeds: also mean and deviation over these,
    for which "{seed}" stands in the paths of the stores; the rest of the page is of the first.

    >>> import fungi, os
    >>> page = fungi.report(train, test, folder + "/report.html")
    >>> os.path.getsize(page) > 10000
    True
    """
    if hop and train_pictures is None:
        raise InputError("is about the data sets, of which there are none", "hop", "give train_pictures and test_pictures")
    if (train_pictures is None) != (test_pictures is None):
        raise InputError("neighbours are shown with the pictures of both", "train_pictures", "give both data sets, or none")
    out = path(output, "output")
    choice(reduce, "reduce", REDUCTIONS)
    numbers = checked_seeds(seeds, [train, test], reduce != "pca" and pca > 0, ", or give a random reduce")
    paths = [tuple(_fungi.with_seed(folder_of(store), seed) for store in (train, test)) for seed in numbers or [0]]
    shown = [native(store) for store in (paths[0] if numbers else (train, test))]
    warn(_fungi.report(*shown, out, path(train_pictures, "train_pictures"), path(test_pictures, "test_pictures"),
                       {"hop": seconds(hop, "hop"), "split": split, "text_column": text_column, "label_column": label_column,
                        "id_column": id_column}, test_split,
                       None if k is None else count(k, "k", 1), count(queries, "queries"), count(pca, "pca"), reduce,
                       [(seed, *both) for seed, both in zip(numbers, paths)], size(memory), threads_of(threads)))
    return out


def inspect(model: Any, *, facts: Mapping[str, Any] | None = None) -> Inspection:
    """What a checkpoint (or a torch module) is and how it would be run.

    >>> import fungi
    >>> found = fungi.inspect("demo")
    >>> found.format, found.architecture["family"], found.default_layer
    ('safetensors', 'vit', 'blocks.5.attn.proj')
    """
    what, said, _ = _models.resolve(model)
    out = _fungi.inspect(what, {**said, **{str(k): str(v) for k, v in (facts or {}).items()}})
    tensors = [TensorInfo(*t) for t in out["tensors"]]
    return Inspection(out["path"], out["format"], len(tensors), out["architecture"], out["default_layer"], out["notes"], tensors)


def models() -> list[dict[str, str]]:
    """The families of backbones that can be read.

    >>> import fungi
    >>> "vit" in [family["family"] for family in fungi.models()]
    True
    """
    return list(_fungi.models())


def info(folder: PathLike | Store | Index | None = None) -> dict[str, Any]:
    """What a store, an index or a PCA holds; without a folder, what this machine can do.

    >>> import fungi
    >>> fungi.info()["version"] == fungi.__version__
    True
    """
    if folder is None:
        return dict(_fungi.machine())
    where = folder.path if isinstance(folder, (Store, Index)) else path(folder, "folder")
    if where is None:
        raise InputError("the index is in memory alone", "folder", "use its facts")
    if _fungi.is_index(where):
        facts = _fungi.FeatureIndex.open(where).facts()
        del facts["input_columns"]
        return {"index": where, **facts}
    if os.path.isfile(os.path.join(where, "unfinished")):
        raise Error("an index or PCA that is being written, or was when its program ended", where, "repeat what writes it")
    if os.path.isfile(os.path.join(where, "features.json")):
        found = _fungi.pca_facts(where)
        if found is None:
            raise Error("the folder describes vectors of a store, but holds neither a PCA nor an index", where,
                        "make it again with fungi.pca() or fungi.index()")
        return dict(found)
    return dict(_fungi.store_facts(where))


def bench(model: PathLike, *, objectives: str | Iterable[str] | None = None, presets: str | Iterable[str] | None = None,
          seconds: float = 3, batch: int = 0,
          layer: str | None = None, layers: str | Iterable[str] | None = None, precision: str | None = None,
          facts: Mapping[str, Any] | None = None, threads: int = 0) -> dict[str, Any]:
    """Samples per second of a backbone, and where the time goes: a checkpoint, or random weights by architecture name.

    `presets` measures whole features under each of these, side by side. It runs in a process of its own, so that nothing else
    of this one is measured.

    >>> import fungi
    >>> fungi.bench("vit_tiny_patch16_224", seconds=0.1)["views_per_sample"]
    1
    """
    words = ["bench", "-m", path(model, "model"), "--seconds", str(seconds), "--json", "-j", str(threads_of(threads))]
    if objectives is not None:
        words += ["--objectives", *(objective_words(objectives) or [])]
    for option, several in (("--presets", presets), ("--layers", layers)):
        if several is not None:
            words += [option, *([several] if isinstance(several, str) else several)]
    for option, value in (("--batch", batch), ("--layer", layer), ("--precision", precision)):
        if value:
            words += [option, str(value)]
    for key, value in (facts or {}).items():
        words += ["--set", f"{key}={value}"]
    return dict(_command.run(words))


def plan(model: PathLike, samples: float, *, objectives: str | Iterable[str] | None = None, queries: float = 0, classes: int | None = None,
         projection_dim: int = 0, pca: int | None = None, storage: str | None = None, shard: int = 0, sample_kb: float | None = None,
         cores: int | None = None, host_cores: int | None = None, gflops: float | None = None, row_gflops: float | None = None,
         disk_gb: float | None = None, link_gb: float | None = None, file_rate: float | None = None,
         memory_gb: float | None = None) -> dict[str, Any]:
    """What a run on many machines would take, by a cost model: times, memory and the first bottleneck.

    >>> import fungi
    >>> plan = fungi.plan("vit_base_patch16_224", 1e9, objectives="kl", cores=4096)
    >>> [step["name"] for step in plan["steps"]]
    ['list', 'extract', 'pca', 'knn', 'kmeans', 'linear', 'retrieve']
    """
    words = ["plan", "-m", path(model, "model"), "--samples", str(samples), "--json"]
    if objectives is not None:
        words += ["--objectives", *(objective_words(objectives) or [])]
    stated = {"queries": queries or None, "classes": classes, "projection-dim": projection_dim or None, "pca": pca, "storage": storage,
              "shard": shard or None, "sample-kb": sample_kb, "cores": cores, "host-cores": host_cores, "gflops": gflops,
              "row-gflops": row_gflops, "disk-gb": disk_gb, "link-gb": link_gb, "file-rate": file_rate, "memory-gb": memory_gb}
    for option, value in stated.items():
        if value is not None:
            words += ["--" + option, str(value)]
    return dict(_command.run(words))


def prompts(train: Store | PathLike, test: Store | PathLike, output: PathLike | None = None, *, train_data: PathLike | None = None,
            test_data: PathLike | None = None, split: str | None = None, test_split: str | None = None, text_column: str | None = None, label_column: str | None = None,
            id_column: str | None = None, k: int | None = None, features: str | None = None, metric: str | None = None,
            pca: int | None = None, memory: int | str | None = None, nearest: str | None = None, random: bool = False,
            seed: int | None = None, template: PathLike | None = None, model: str | None = None, endpoint: str | None = None,
            replies: PathLike | None = None, parallel: int | None = None, tries: int | None = None, timeout: float | None = None,
            key_variable: str | None = None, key_over_http: bool = False, label_names: PathLike | None = None,
            limit: int | None = None, score: PathLike | None = None, baseline: PathLike | None = None, threads: int = 0) -> Any:
    """Requests to a language model, with the nearest training texts as examples, in the file `output`; with `endpoint` they
    are asked there; with `score` replies are counted. What is left out has the command line's defaults; its --json is
    returned. It runs in a process of its own.
    """
    words = ["prompts", folder_of(train), folder_of(test), "--json", "-j", str(threads_of(threads))]
    stated = {"output": output, "train_data": train_data, "test_data": test_data, "split": split, "test_split": test_split, "text_column": text_column,
              "label_column": label_column, "id_column": id_column, "k": k, "features": features, "metric": metric, "pca": pca,
              "memory": memory, "nearest": nearest, "seed": seed, "template": template, "model": model, "endpoint": endpoint,
              "replies": replies, "parallel": parallel, "tries": tries, "timeout": timeout, "key_variable": key_variable,
              "label_names": label_names, "limit": limit, "score": score, "baseline": baseline}
    for name, value in stated.items():
        if value is not None:
            words.append(f"{'-' if len(name) == 1 else '--'}{name.replace('_', '-')}")
            words.append(os.fspath(value) if isinstance(value, os.PathLike) else str(value))
    words += ["--random"] * random + ["--key-over-http"] * key_over_http
    return _command.run(words)


def pull(model: str, *, endpoint: str | None = None, weights: str | None = None, offline: bool = False, tries: int | None = None,
         timeout: float | None = None) -> str:
    """Fetches a model, ORG/NAME or ORG/NAME@REVISION, from the hub, once; gives the path to open. `"hf:ORG/NAME"` as a model
    is this path. It runs in a process of its own.

    >>> import fungi
    >>> fungi.pull("nobody/nothing", offline=True)
    Traceback (most recent call last):
    ...
    fungi._errors.Error: fungi pull: nobody/nothing: this machine has nothing of revision 'main' (pull it once without offline)
    """
    words = ["pull", model, "--json"] + ["--offline"] * offline
    for name, value in (("endpoint", endpoint), ("weights", weights), ("tries", tries), ("timeout", timeout)):
        if value is not None:
            words += [f"--{name}", str(value)]
    out = _command.run(words)
    warn(out["notes"])
    return str(out["path"])


def data(data: PathLike, *, decode: bool = False) -> dict[str, Any]:
    """Which data set lies in a folder, its splits, and what of it is missing or, with `decode`, damaged. It runs in a process
    of its own.

    >>> import fungi
    >>> fungi.data("demo/images/test")["kind"]
    'image, classes'
    """
    return dict(_command.run(["data", path(data, "data"), "--json", *["--decode"] * decode]))


def reproduce(*arguments: str) -> Any:
    """The paper's tables beside ours. Takes the words of `fungi reproduce` and gives its --json; it runs in a process of its
    own.
    """
    return _command.run(["reproduce", *map(str, arguments), "--json"], arguments=False)
