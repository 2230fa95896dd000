# SPDX-License-Identifier: Apache-2.0
"""Stores and indices as objects."""
from __future__ import annotations

import pickle

import numpy as np
import pytest

import fungi


def test_rows_are_the_files(data):
    store = fungi.Store(data.train)
    for block in store.blocks:
        shards = store.shards(block)
        files = [np.load(f) for f in sorted(__import__("pathlib").Path(data.train).glob(f"{block}-[0-9]*.npy"))]
        assert len(shards) == len(files) and all(np.array_equal(a, b) for a, b in zip(shards, files))
        assert np.array_equal(store[block], np.concatenate(files))
    unit = store["embedding"] / np.linalg.norm(store["embedding"].astype(np.float64), axis=1, keepdims=True)
    assert np.allclose(store.load("embedding"), unit, atol=1e-6)
    assert np.array_equal(store.load("kl+embedding", normalise=False), np.hstack([store["kl"], store["embedding"]]))


def maps():
    """Of this process: where which file is mapped."""
    with open("/proc/self/maps") as lines:
        for line in lines:
            words = line.split()
            first, last = (int(end, 16) for end in words[0].split("-"))
            yield first, last, words[-1]


def test_rows_share_memory_with_the_file(data):
    store = fungi.Store(data.train)
    for number, rows in enumerate(store.shards("kl")):
        address = rows.__array_interface__["data"][0]
        assert any(first <= address < last and name.endswith(f"kl-{number:05d}.npy") for first, last, name in maps())
        assert not rows.flags.writeable and not rows.flags.owndata
    rows = store.shards("kl")[0]
    del store
    assert np.isfinite(rows).all()  # the file stays mapped as long as the array


def test_ids_labels_and_the_rest(data):
    store = fungi.Store(data.train)
    assert len(store) == len(store.ids) == len(store.labels) == 60
    assert store.ids[0] == "ankle-boot/" + sorted(f.name for f in (data.train_pictures / "ankle-boot").iterdir())[0]
    assert store.class_names()[-1] == store.classes[store.labels[-1]] == "trouser"
    assert store.manifest["complete"] and store.failed == [] and "simclr-negatives" in [s["name"] for s in store.manifest["state"]]
    assert store.state("kl-head-weight").shape[1] == 128 and "60 rows" in repr(store)
    again = pickle.loads(pickle.dumps(store))
    assert np.array_equal(again["kl"], store["kl"])


def test_data_frames(data):
    pandas = pytest.importorskip("pandas")
    store = fungi.Store(data.train)
    frame = store.to_pandas("embedding+kl")
    assert isinstance(frame, pandas.DataFrame) and frame.shape == (60, 258) and frame.index[0] == store.ids[0]
    assert np.array_equal(frame[[f"kl_{i}" for i in range(128)]].to_numpy(), store.load("kl"))
    assert frame["class"].iloc[0] == "ankle-boot"


def test_tables_share_memory(data):
    pyarrow = pytest.importorskip("pyarrow")
    store = fungi.Store(data.train)
    table = store.to_arrow()
    assert table.column_names == ["id", "label", "class", "embedding", "kl", "simclr"]
    assert table.schema.field("kl").type == pyarrow.list_(pyarrow.float32(), 128)
    flat = table["kl"].chunk(0).flatten()
    assert np.array_equal(flat.to_numpy().reshape(-1, 128), store.shards("kl")[0])
    assert any(first <= flat.buffers()[1].address < last and "/kl-" in name for first, last, name in maps())


def test_half_precision(data, tmp_path):
    fungi.extract(data.test_pictures, tmp_path / "half", model="demo", objectives="kl", storage="float16")
    store = fungi.Store(tmp_path / "half")
    assert store["kl"].dtype == np.float32 and np.array_equal(store["kl"], store["kl"].astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("what, words", [("gone", "no manifest"), ("kl-00000.npy", "")])
def test_refusals(data, tmp_path, what, words):
    with pytest.raises(fungi.Error):
        fungi.Store(tmp_path / what)
    with pytest.raises(fungi.Error, match="klo"):
        fungi.Store(data.train).load("klo")
    with pytest.raises(fungi.Error):
        fungi.Store(data.train)["klo"]
    with pytest.raises(fungi.Error):
        fungi.Store(5)


def test_an_unfinished_store(data, tmp_path):
    calls = []

    def stop(stage, done, total, failed):
        calls.append(done)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fungi.extract(data.train_pictures, tmp_path / "s", model="demo", objectives=["kl", "dino"], shard=2, threads=1, progress=stop)
    with pytest.raises(fungi.Error):
        fungi.Store(tmp_path / "s")
    fungi.extract(data.train_pictures, tmp_path / "s", model="demo", objectives=["kl", "dino"], shard=2, threads=1)
    assert len(fungi.Store(tmp_path / "s")) == 60


def test_index(data, tmp_path):
    store = fungi.Store(data.train)
    rows = store.load()
    built = fungi.Index.build(store, kind="exact")
    with pytest.raises(fungi.Error, match="saved"):
        pickle.dumps(built)
    built.save(tmp_path / "index")
    opened = fungi.Index.open(tmp_path / "index")
    expected = np.linalg.norm(rows[:, None].astype(np.float64) - rows[None], axis=2)
    for index in (built, opened, pickle.loads(pickle.dumps(opened))):
        found = index.search(rows[:5], k=4)
        assert np.array_equal(found.rows, np.argsort(expected[:5], axis=1, kind="stable")[:, :4])
        assert np.allclose(found.values, np.sort(expected[:5], axis=1)[:, :4], atol=1e-4)
        assert found.ids[0][0] == store.ids[0] and index.find(store.ids[7]) == 7 and index.find("nobody") is None
        assert (index.label(59), index.class_name(59), len(index)) == (9, "trouser", 60)
    shrunk = fungi.Index.build(store, kind="hnsw", features="kl", pca=8)
    assert shrunk.search(store.load("kl")[:2]).rows[:, 0].tolist() == [0, 1]
    for queries in (rows[:, :7], rows[0], [["a"]], np.full((1, rows.shape[1]), np.nan)):
        with pytest.raises(fungi.Error):
            opened.search(queries)
    with pytest.raises(fungi.InputError, match="hnsw"):
        fungi.Index.build(store, kind="ivf", links=3)
