# SPDX-License-Identifier: Apache-2.0
"""Features of a data set of Ray Data: actors on any number of machines, each of which loads the model once.

    import ray

    pictures = ray.data.read_images("pictures/train", include_paths=True, mode="RGB")
    rows = fungi.ray.extract(pictures, fungi.Extractor("model", objectives="kl"), column="image", ids="path", actors=8)
    rows.write_parquet("train.parquet")

A row depends on its sample, its id and the extractor alone: it has the bytes of `Extractor.transform`, whatever the blocks, batches and
machines are.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fungi._common import choice, count
from fungi._errors import Error, InputError, MissingError, NotFittedError
from fungi._extractor import Extractor


def extract(dataset: Any, extractor: Extractor, *, column: str, ids: str | None = None, output: str = "features", errors: str = "raise",
            actors: int | tuple[int, int] = 1, cpus: int = 1, batch_size: int = 64, allow_mixed: bool = False) -> Any:
    """The data set with a column of rows in place of the samples; nothing is computed before it is asked for.

    dataset: a ray.data.Dataset. extractor: of a model that all machines see under the same path (one in memory cannot travel), and
    fitted where its objectives compare with other samples.
    column: the samples, anything that `Extractor.transform` takes. ids: the column with their ids, by which dino draws its crops;
    left out, an id is a file's name, a text, or a sum of the pixels, as of `Extractor`. All other columns stay as they are.
    output: the new column, rows as `Extractor.transform` gives them: `extractor.blocks` says where each block lies.
    errors: "raise" on a sample that cannot be used, or "nan": its row is NaN.
    actors: how many hold the model, or the least and the most of a pool that grows. cpus: of each actor, which computes with as many
    threads. batch_size: samples that an actor takes at once.
    allow_mixed: machines may differ in their instructions; without it that is an error, since rows would differ in their last bits.
    """
    try:
        import ray.data
    except ImportError:
        raise MissingError("Ray Data is not installed", "fungi.ray", "pip install 'ray[data]'") from None
    if not isinstance(dataset, ray.data.Dataset):
        raise InputError(f"expected a ray.data.Dataset, found {type(dataset).__name__}", "dataset", "such as ray.data.read_images(...)")
    if not isinstance(extractor, Extractor):
        raise InputError(f"expected a fungi.Extractor, found {type(extractor).__name__}", "extractor", "make one of the model")
    if not extractor.ready:
        raise NotFittedError("an objective still needs samples to compare with", "extractor", "call fit() first, or set its state")
    choice(errors, "errors", ("raise", "nan"))
    columns = dataset.columns()
    for name, wanted in (("column", column), ("ids", ids)):
        if wanted is not None and columns is not None and wanted not in columns:
            raise InputError(f"there is no column '{wanted}'", name, f"choose one of {', '.join(columns)}")
    if columns is not None and output != column and output in columns:
        raise InputError(f"there is a column '{output}' already", "output", "choose another name")
    least, most = (actors, actors) if isinstance(actors, int) else actors
    if count(least, "actors", 1) > most:
        raise InputError(f"expected the least and the most actors, found {actors}", "actors", "")
    kept = extractor.__getstate__()
    kept["threads"] = count(cpus, "cpus", 1)
    kept["settings"] = {**kept["settings"], "precision": extractor.precision}
    return dataset.map_batches(
        _Rows, fn_constructor_args=(kept, column, ids, output, errors, "" if allow_mixed else extractor.kernel), batch_format="numpy",
        batch_size=count(batch_size, "batch_size", 1), num_cpus=cpus, compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most))


class _Rows:
    """What an actor holds."""

    def __init__(self, kept: dict[str, Any], column: str, ids: str | None, output: str, errors: str, kernel: str) -> None:
        self._extractor = Extractor.__new__(Extractor)
        self._extractor.__setstate__(kept)
        if kernel and kernel != self._extractor.kernel:
            raise Error(f"{self._extractor.kernel} computes here, and {kernel} where the extractor was made: rows would not be those of one "
                        "machine", "fungi.ray", "FUNGI_ISA makes all machines compute alike; allow_mixed=True computes as each can")
        self._column, self._ids, self._output, self._errors = column, ids, output, errors

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        samples = batch.pop(self._column)
        ids: Sequence[str] | None = None if self._ids is None else [str(one) for one in batch[self._ids]]
        batch[self._output] = self._extractor.transform(samples, ids=ids, errors=self._errors, progress=False)
        return batch
