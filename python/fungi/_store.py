# SPDX-License-Identifier: Apache-2.0
"""A feature store: arrays that are the files, with ids and labels."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fungi import _fungi
from fungi._common import PathLike, path
from fungi._errors import InputError, MissingError
from fungi._extractor import Failure


class Store:
    """What `fungi.extract()` or `fungi extract` made, opened for reading. Nothing is loaded before it is asked for.

    >>> import fungi
    >>> store = fungi.Store(train)
    >>> len(store), store.blocks
    (60, {'embedding': 128, 'kl': 128})
    >>> store["kl"].shape, store.labels[:3].tolist(), store.classes[:2]
    ((60, 128), [0, 0, 0], ['ankle-boot', 'bag'])
    >>> store.load("embedding+kl").shape
    (60, 256)
    """

    def __init__(self, folder: PathLike, *, allow_partial: bool = False) -> None:
        self.path = path(folder, "folder")
        self._allow_partial = allow_partial
        self._native = _fungi.Store.open(self.path, allow_partial)
        self._ids: list[str] | None = None

    @property
    def ids(self) -> list[str]:
        if self._ids is None:
            self._ids = list(self._native.ids())
        return self._ids

    @property
    def labels(self) -> NDArray[np.int64]:
        """Numbers of `classes`; -1: none."""
        labels: NDArray[np.int64] = self._native.labels()
        return labels

    @property
    def classes(self) -> list[str]:
        return list(self._native.classes())

    @property
    def blocks(self) -> dict[str, int]:
        """The width of each block that is a feature."""
        return {name: width for name, width, rows in self._native.blocks() if rows == 1 and "_factors_" not in name}

    @property
    def manifest(self) -> dict[str, Any]:
        """All that is known about how the rows were made."""
        return dict(self._native.manifest())

    @property
    def failed(self) -> list[Failure]:
        """Samples that are no rows."""
        return [Failure(*f) for f in self._native.failed()]

    def __len__(self) -> int:
        return int(self._native.rows())

    def __repr__(self) -> str:
        return f"Store({self.path!r}, {len(self)} rows of {'+'.join(self.blocks)})"

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "allow_partial": self._allow_partial}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__init__(kept["path"], allow_partial=kept["allow_partial"])  # type: ignore[misc]

    def shards(self, block: str) -> list[NDArray[np.float32]]:
        """The rows of a block as they were stored, one read-only array per shard, which is the mapped file itself
        (of float16 a converted copy)."""
        return [self._native.shard(block, shard) for shard in range(self._native.shards())]

    def __getitem__(self, block: str) -> NDArray[np.float32]:
        """The rows of a block as they were stored: the mapped file where there is one shard, else a copy of all."""
        shards = self.shards(block)
        if not shards:
            raise InputError("the store has no rows", self.path, "")
        return shards[0] if len(shards) == 1 else np.concatenate(shards)

    def load(self, features: str = "all", *, normalise: bool = True) -> NDArray[np.float32]:
        """Blocks side by side, each of length 1 per row unless normalise is False: what evaluations compare."""
        rows: NDArray[np.float32] = self._native.load(features, normalise)
        return rows

    def state(self, name: str) -> NDArray[np.float32]:
        """A head, the negatives or centres that the rows were made with."""
        state: NDArray[np.float32] = self._native.state(name)
        return state

    def class_names(self) -> list[str | None]:
        """Of each row."""
        classes = self.classes
        return [classes[label] if label >= 0 else None for label in self.labels]

    def _columns(self, features: str) -> list[str]:
        names = list(self.blocks) if features in ("", "all") else [part.split("*")[-1] for part in features.split("+")]
        return [f"{name}_{column}" for name in names for column in range(self.blocks[name])]

    def to_pandas(self, features: str = "all", *, normalise: bool = True) -> Any:
        """A data frame: a column per feature, then label and class; the index holds the ids."""
        try:
            import pandas
        except ImportError:
            raise MissingError("pandas is not installed", "Store.to_pandas()", "pip install pandas") from None
        frame = pandas.DataFrame(self.load(features, normalise=normalise), index=pandas.Index(self.ids, name="id"),
                                 columns=self._columns(features))
        return frame.assign(label=self.labels, **{"class": self.class_names()})

    def to_arrow(self, *, normalise: bool = False) -> Any:
        """A table: id, label, class, and a column of fixed-size lists per block, which share the numbers with the files
        where they are stored as float32 (normalise=False)."""
        try:
            import pyarrow
        except ImportError:
            raise MissingError("pyarrow is not installed", "Store.to_arrow()", "pip install pyarrow") from None
        columns: dict[str, Any] = {"id": pyarrow.array(self.ids, pyarrow.string()), "label": pyarrow.array(self.labels),
                                   "class": pyarrow.array(self.class_names(), pyarrow.string())}
        for block, width in self.blocks.items():
            shards = [self.load(block)] if normalise else self.shards(block)
            lists = [pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.reshape(-1)), width) for rows in shards]
            columns[block] = pyarrow.chunked_array(lists, pyarrow.list_(pyarrow.float32(), width))
        return pyarrow.table(columns)


def native(store: Store | PathLike) -> Any:
    """Of a store or its path."""
    return store._native if isinstance(store, Store) else _fungi.Store.open(path(store, "store"))


def folder(store: Store | PathLike) -> str:
    return store.path if isinstance(store, Store) else path(store, "store")
