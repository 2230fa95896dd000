# SPDX-License-Identifier: Apache-2.0
"""Features of Ray Data blocks, and of any other batches of columns: `extract` needs Ray, `Rows` does not."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fungi._common import count
from fungi._errors import InputError
from fungi._extractor import Extractor


class Rows:
    """Turns batches of samples into batches of features; the model is loaded once.

    Called with a dict of columns, it gives the columns but `column`, one of float32 rows for each block, as a store has them, and
    `failure`: why a sample could not be used (its rows are NaN), or "". Rows depend on the ids, which `id_column` has, and on nothing else
    of the batch. What Extractor takes may be given, above all `like`: a store whose heads and negatives are used.

    >>> import fungi, fungi.ray
    >>> rows = fungi.ray.Rows(like=train, column="path", id_column="id")
    >>> files = ["demo/images/test/bag/00018.png", "demo/images/test/bag/none.png"]
    >>> out = rows({"path": files, "id": ["a", "b"], "price": [1, 2]})
    >>> sorted(out), out["kl"].shape, out["failure"][0], out["failure"][1] != ""
    (['embedding', 'failure', 'id', 'kl', 'price'], (2, 128), '', True)
    """

    def __init__(self, column: str, id_column: str, **extractor: Any) -> None:
        self.column, self.id_column = column, id_column
        self.extractor = Extractor(**extractor)
        if not self.extractor.ready:
            raise InputError("an objective still needs samples for its heads or negatives", "like",
                             "extract a part of the data into a store first, and give like= that store")

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        for name in (self.column, self.id_column):
            if name not in batch:
                raise InputError(f"there is no column '{name}': {', '.join(batch)}", "column", "name one of them")
        ids = [str(one) for one in batch[self.id_column]]
        if len(set(ids)) < len(ids):
            raise InputError("two samples of a batch have one id", "id_column", "ids have to be unique: rows depend on them")
        found = self.extractor.extract([_plain(one) for one in batch[self.column]], ids=ids)
        place = {name: i for i, name in enumerate(ids)}
        rows = [place[name] for name in found.ids]
        out = {name: values for name, values in batch.items() if name != self.column}
        for name in self.extractor.blocks:
            block = np.full((len(ids), found[name].shape[1]), np.nan, np.float32)
            block[rows] = found[name]
            out[name] = block
        reasons = {failure.id: failure.reason for failure in found.failures}
        out["failure"] = np.array([reasons.get(name, "") for name in ids], dtype=object)
        return out


def _plain(sample: Any) -> Any:
    return sample.item() if isinstance(sample, np.generic) else sample


def extract(dataset: Any, *, column: str = "bytes", id_column: str = "path", batch_size: int = 64, actors: int | tuple[int, int] = 1,
            threads: int = 1, **extractor: Any) -> Any:
    """A Ray dataset with the features of another: an actor-pool map over its blocks.

    column: encoded files (`ray.data.read_binary_files(..., include_paths=True)` has them in "bytes"), paths or texts.
    actors: how many, or (least, most); each loads the model once, and takes `threads` cores. Other arguments: those of Extractor.
    """
    import ray.data
    if not isinstance(dataset, ray.data.Dataset):
        raise InputError(f"expected a ray.data.Dataset, found {type(dataset).__name__}", "dataset", "read one by ray.data.read_...")
    arguments = {"column": column, "id_column": id_column, "threads": count(threads, "threads"), **extractor}
    return dataset.map_batches(Rows, fn_constructor_kwargs=arguments, batch_size=batch_size, batch_format="numpy",
                               concurrency=actors, num_cpus=threads)
