# SPDX-License-Identifier: Apache-2.0
"""Ray Data and Spark: rows have the bytes of one process, on a cluster of several nodes. Run where ray and pyspark are installed:
neither is among what `make test` installs, since they are larger than all of that together."""
from __future__ import annotations

import os
import re
import sys

import numpy as np
import pytest

import fungi
from conftest import OBJECTIVES, ROOT

DRAWS = ["kl", "dino", *OBJECTIVES[1:]]  # dino's crops are drawn by the id


@pytest.fixture(scope="module")
def pictures(data):
    files = sorted(data.train_pictures.rglob("*.png"))[:40]
    ids = [str(f.relative_to(data.train_pictures)) for f in files]
    return files, ids


@pytest.fixture(scope="module")
def extractor(data, pictures):
    return fungi.Extractor(ROOT / "demo", objectives=DRAWS, threads=1).fit([str(f) for f in pictures[0]])


@pytest.fixture(scope="module")
def expected(extractor, pictures):
    return extractor.transform([str(f) for f in pictures[0]], ids=pictures[1])


def shown():
    """The blocks of the how-to."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/several-machines.md").read_text(), re.MULTILINE | re.DOTALL)


# Ray.


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'ray[data]'")
    pytest.importorskip("ray.data", reason="Ray Data is not installed: pip install 'ray[data]'")
    from ray.cluster_utils import Cluster

    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 200 << 20})
    for _ in range(2):
        made.add_node(num_cpus=2, object_store_memory=200 << 20)
    ray.init(address=made.address, logging_level="ERROR", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    assert len([n for n in ray.nodes() if n["Alive"]]) == 3
    yield ray
    ray.shutdown()
    made.shutdown()


def by_id(rows):
    found = sorted(rows.take_all(), key=lambda row: row["id"])
    return [row["id"] for row in found], np.stack([row["features"] for row in found])


@pytest.mark.parametrize("actors, blocks, batch_size", [(1, 3, 64), (3, 7, 4), ((1, 2), 40, 3)])
def test_ray_has_the_bytes_of_one_process(cluster, extractor, pictures, expected, actors, blocks, batch_size):
    files, ids = pictures
    items = [{"id": id, "picture": file.read_bytes(), "size": i} for i, (file, id) in enumerate(zip(files, ids))]
    rows = fungi.ray.extract(cluster.data.from_items(items, override_num_blocks=blocks), extractor, column="picture", ids="id", actors=actors,
                             batch_size=batch_size)
    found_ids, found = by_id(rows)
    order = np.argsort(ids)
    assert found_ids == [ids[i] for i in order]
    assert found.dtype == np.float32 and np.array_equal(found, expected[order])
    assert sorted(rows.columns()) == ["features", "id", "size"]


def test_ray_reads_pictures_and_has_the_rows_of_a_store(cluster, data, tmp_path):
    fungi.extract(data.train_pictures, tmp_path / "store", model=ROOT / "demo", objectives=DRAWS, progress=False)
    store = fungi.Store(tmp_path / "store")
    read = cluster.data.read_images(str(data.train_pictures), include_paths=True, mode="RGB")
    named = read.map_batches(lambda batch: {**batch, "id": np.array([path.partition("pictures/train/")[2] for path in batch["path"]])})
    rows = fungi.ray.extract(named, fungi.Extractor(like=tmp_path / "store"), column="image", ids="id", actors=2, batch_size=5)
    found_ids, found = by_id(rows)
    order = np.argsort(list(store.ids))
    assert found_ids == [store.ids[i] for i in order]
    assert np.array_equal(found, store.load()[order])


def test_ray_has_actors_on_several_nodes(cluster, extractor, pictures):
    files, _ = pictures
    from fungi.ray import _Rows

    class Where(_Rows):
        def __call__(self, batch):
            import ray

            return {**super().__call__(batch), "node": np.full(len(batch["id"]), ray.get_runtime_context().get_node_id())}

    items = [{"id": str(i), "picture": str(files[i % len(files)])} for i in range(300)]
    kept = {**extractor.__getstate__(), "threads": 1}
    rows = cluster.data.from_items(items, override_num_blocks=60).map_batches(
        Where, fn_constructor_args=(kept, "picture", "id", "features", "raise", ""), batch_size=5,
        compute=cluster.data.ActorPoolStrategy(min_size=4, max_size=4), num_cpus=1)
    assert len({row["node"] for row in rows.take_all()}) >= 2


def test_ray_leaves_a_bad_sample_as_nan(cluster, extractor, pictures):
    items = [{"id": "good", "picture": pictures[0][0].read_bytes()}, {"id": "bad", "picture": b"no picture"}]
    dataset = cluster.data.from_items(items)
    ids, found = by_id(fungi.ray.extract(dataset, extractor, column="picture", ids="id", errors="nan"))
    assert ids == ["bad", "good"] and np.isnan(found[0]).all() and np.isfinite(found[1]).all()
    with pytest.raises(Exception, match="bad"):
        fungi.ray.extract(dataset, extractor, column="picture", ids="id").take_all()


def test_ray_refuses_before_anything_runs(cluster, extractor):
    dataset = cluster.data.from_items([{"id": "a", "picture": b"x"}])
    for match, change in (("no column 'image'", {"column": "image"}), ("no column 'name'", {"ids": "name"}),
                          ("a column 'id' already", {"output": "id"}), ("the least and the most", {"actors": (3, 2)}),
                          ("expected raise or nan", {"errors": "skip"}), ("at least 1", {"cpus": 0})):
        with pytest.raises(fungi.InputError, match=match):
            fungi.ray.extract(dataset, extractor, **{"column": "picture", "ids": "id", **change})
    with pytest.raises(fungi.InputError, match="ray.data.Dataset"):
        fungi.ray.extract([b"x"], extractor, column="picture")
    with pytest.raises(fungi.NotFittedError):
        fungi.ray.extract(dataset, fungi.Extractor(ROOT / "demo", objectives=DRAWS), column="picture")


def test_ray_as_it_is_shown(cluster, data, tmp_path, monkeypatch):
    (tmp_path / "pictures").symlink_to(data.folder / "pictures")
    (tmp_path / "model").symlink_to(ROOT / "demo")
    monkeypatch.chdir(tmp_path)
    block = next(b for b in shown() if "import ray" in b).replace('"pictures/train"', f'"{tmp_path}/pictures/train"').replace(
        '"rows"', f'"{tmp_path}/rows"')
    exec(compile(block, "docs", "exec"), {})  # noqa: S102
    assert sum(cluster.data.read_parquet(str(file)).count() for file in (tmp_path / "rows").iterdir()) == sum(
        1 for _ in data.train_pictures.rglob("*.png"))


def test_ray_refuses_other_instructions(cluster, extractor, pictures):
    from fungi.ray import _Rows

    kept = {**extractor.__getstate__(), "threads": 1}
    with pytest.raises(fungi.Error, match="allow_mixed"):
        _Rows(kept, "picture", None, "features", "raise", "another")


# Spark, as docs/several-machines.md shows it.


def test_spark_has_the_bytes_of_one_process(pictures, extractor, expected, tmp_path, monkeypatch):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install pyspark")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    files, ids = pictures
    try:
        spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
                 .config("spark.driver.host", "127.0.0.1").config("spark.sql.warehouse.dir", str(tmp_path)).getOrCreate())
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"Spark does not start (it needs Java): {error}")
    try:
        frame = spark.createDataFrame([(id, file.read_bytes()) for file, id in zip(files, ids)], "path string, content binary").repartition(3)
        block = next(b for b in shown() if "mapInPandas" in b)
        names = {"pictures": frame, "extractor": extractor}
        exec(compile("\n".join(line for line in block.splitlines() if not line.startswith(("pictures =", "extractor ="))), "docs", "exec"), names)  # noqa: S102
        found = {row["path"]: np.array(row["features"], np.float32) for row in names["rows"].collect()}
    finally:
        spark.stop()
    assert sorted(found) == sorted(ids)
    assert all(np.array_equal(found[id], expected[i]) for i, id in enumerate(ids))
