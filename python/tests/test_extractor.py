# SPDX-License-Identifier: Apache-2.0
"""The extractor as an object: what it takes, what it gives, and that both faces give the same."""
from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pytest

import fungi
from conftest import GOLDEN, OBJECTIVES, ROOT

PIL = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def kl():
    return fungi.Extractor(ROOT / "demo", objectives="kl", threads=2)


def test_a_data_set_is_what_the_store_holds(data):
    extractor = fungi.Extractor(ROOT / "demo", objectives=OBJECTIVES)
    assert not extractor.ready
    with pytest.raises(fungi.NotFittedError) as error:
        extractor.transform(data.train_pictures)
    assert "fit()" in error.value.hint
    store = fungi.Store(data.train)
    assert np.array_equal(extractor.fit_transform(data.train_pictures), store.load())
    features = extractor.extract(data.train_pictures)
    assert features.ids == store.ids and features.classes == store.classes and np.array_equal(features.labels, store.labels)
    for block in store.blocks:
        assert np.array_equal(features[block], store[block])
    for name, state in extractor.state.items():
        assert np.array_equal(state, store.state(name))


def test_like_a_store(data):
    extractor = fungi.Extractor(like=data.train)
    assert extractor.ready
    store = fungi.Store(data.test)
    assert np.array_equal(extractor.transform(data.test_pictures), store.load())
    files = [data.test_pictures / id for id in store.ids]
    assert np.array_equal(extractor.transform(files, ids=store.ids), store.load())


def test_every_form_of_a_picture(kl, data):
    files = sorted((data.train_pictures / "bag").iterdir())[:3]
    expected = kl.transform(files)
    pil = [PIL.open(f) for f in files]
    arrays = [np.asarray(image.convert("RGB")) for image in pil]
    encoded = [f.read_bytes() for f in files]
    for samples in (list(map(str, files)), encoded, pil, arrays, iter(pil), (f for f in files), np.stack(arrays), tuple(arrays),
                    [bytearray(b) for b in encoded], [a.astype(np.float32) / 255 for a in arrays], np.array(list(map(str, files))),
                    [a[:, :, ::-1][:, :, ::-1] for a in arrays], {"image": pil, "label": [0, 0, 0]},
                    [{"bytes": b, "path": None} for b in encoded], [files[0], encoded[1], pil[2]]):
        assert np.array_equal(kl.transform(samples), expected)


class Column(list):
    pass


class HubData:
    """As `datasets.Dataset` looks from outside."""

    column_names = ["label", "img"]

    def __init__(self, pictures):
        self.pictures = pictures

    def __getitem__(self, key):
        return Column(self.pictures) if key == "img" else self.pictures[key]


def test_hub_data_sets(kl, data):
    pil = [PIL.open(f) for f in sorted((data.train_pictures / "bag").iterdir())[:2]]
    assert np.array_equal(kl.transform(HubData(pil)), kl.transform(pil))
    with pytest.raises(fungi.InputError, match="column"):
        kl.transform({"pixels": pil})


class Tensor:
    """As torch's looks from outside."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def detach(self):
        return self

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.array.astype(np.float32))

    def is_floating_point(self):
        return self.array.dtype.kind == "f"

    def numpy(self):
        return self.array


Tensor.__module__ = "torch"


def test_tensors_have_channels_first(kl, arrays):
    expected = kl.transform(arrays[:2])
    channels_first = np.ascontiguousarray(arrays[:2].transpose(0, 3, 1, 2))
    assert np.array_equal(kl.transform(Tensor(channels_first)), expected)
    assert np.array_equal(kl.transform([Tensor(a) for a in channels_first]), expected)
    assert np.array_equal(kl.transform(Tensor(channels_first.astype(np.float32) / 255)), expected)


def test_grey_and_alpha(kl, arrays):
    grey = np.repeat(arrays[0][:, :, :1], 3, axis=2)
    rows = kl.transform([grey, grey[:, :, 0], grey[:, :, :1], np.concatenate([grey, grey[:, :, :1]], axis=2)])
    assert np.array_equal(rows, np.repeat(rows[:1], 4, axis=0))


def test_a_sample_is_alone(data, arrays):
    extractor = fungi.Extractor(ROOT / "demo", objectives=["kl", "dino:local_crops=2"])
    rows = extractor.transform(arrays)
    assert np.array_equal(rows[::-1], extractor.transform(arrays[::-1]))
    assert np.array_equal(rows[3:4], extractor.transform(arrays[3:4]))
    assert np.array_equal(rows, fungi.Extractor(ROOT / "demo", objectives=["kl", "dino:local_crops=2"], threads=1).transform(arrays))
    named = extractor.transform(arrays[:2], ids=["a", "b"])
    assert np.array_equal(named[:, extractor.blocks["kl"]], rows[:2, extractor.blocks["kl"]])
    assert not np.array_equal(named[:, extractor.blocks["dino"]], rows[:2, extractor.blocks["dino"]])


def test_a_bad_sample(kl, data, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes((ROOT / "demo/images/test/bag/00018.png").read_bytes()[:200])
    good = sorted((data.train_pictures / "bag").iterdir())[0]
    with pytest.raises(fungi.SampleError) as error:
        kl.transform([good, bad])
    assert error.value.place == "bad.png" and error.value.hint
    with pytest.warns(fungi.FungiWarning, match="bad.png"):
        rows = kl.transform([good, bad, tmp_path / "gone.png"], errors="nan")
    assert np.isfinite(rows[0]).all() and np.isnan(rows[1:]).all()
    features = kl.extract([bad, good])
    assert features.ids == [good.name] and [f.id for f in features.failures] == ["bad.png"]


@pytest.mark.parametrize("samples, kind, words", [
    ([], fungi.InputError, "found none"),
    (iter(()), fungi.InputError, "found none"),
    ([np.zeros((4, 4, 3), np.float32) - 1], fungi.InputError, "between 0 and 1"),
    ([np.full((4, 4, 3), 255.0)], fungi.InputError, "between 0 and 1"),
    ([np.full((4, 4, 3), np.nan)], fungi.InputError, "NaN"),
    ([np.zeros((4, 4, 3), np.int64)], fungi.InputError, "uint8"),
    ([np.zeros((3, 4, 5), np.uint8)], fungi.InputError, "shape"),
    ([np.zeros((0, 4, 3), np.uint8)], fungi.InputError, "shape"),
    (np.zeros((4, 4, 3), np.uint8), fungi.InputError, "list"),
    (np.zeros((4, 7), np.float32), fungi.InputError, "shape"),
    ([np.zeros((4, 4, 3), np.uint8), 5], fungi.InputTypeError, "sample 1"),
    ([object()], fungi.InputTypeError, "object"),
    (b"bytes", fungi.InputTypeError, "list"),
    (7, fungi.InputTypeError, "int"),
    (None, fungi.InputTypeError, "NoneType"),
])
def test_refusals(kl, samples, kind, words):
    with pytest.raises(kind) as error:
        kl.transform(samples)
    assert words in str(error.value) or words in error.value.hint


def test_refused_settings(tmp_path):
    for arguments, place in (({"objectives": "kll"}, ""), ({"objectives": ["kl", "kl"]}, "objectives"), ({"objectives": ["kl", "none"]}, "objectives"),
                             ({"preset": "best"}, "preset"), ({"precision": "f16"}, "precision"), ({"projection": "matrix"}, "given"),
                             ({"facts": {"hats": 3}}, ""), ({"layer": "blocks.99.attn.proj"}, ""), ({"seed": -1}, "seed"),
                             ({"objectives": "none", "layer": "blocks.0.mlp.fc1"}, "layer"), ({"threads": -1}, "threads"),
                             ({"given": {"projection": [[np.inf]]}, "projection": "matrix"}, "given")):
        with pytest.raises(fungi.Error) as error:
            fungi.Extractor(ROOT / "demo", **arguments)
        assert place in error.value.place, arguments
    bad = tmp_path / "model.safetensors"
    bad.write_bytes(b"no model at all, but long enough to be looked at")
    for model in (bad, tmp_path / "gone", None, 5, {}, {"x": np.zeros(3, np.complex64)}):
        with pytest.raises(fungi.Error):
            fungi.Extractor(model)


def test_pickling(data, arrays):
    extractor = fungi.Extractor(ROOT / "demo", objectives=OBJECTIVES).fit(data.train_pictures)
    again = pickle.loads(pickle.dumps(extractor))
    assert np.array_equal(again.transform(arrays), extractor.transform(arrays))
    held = fungi.Extractor(model_in_memory(), objectives="kl")
    with pytest.raises(fungi.Error, match="memory"):
        pickle.dumps(held)


def tensors_of(folder):
    """A checkpoint's tensors as a program holds them, in the shapes of the file."""
    shapes = {name: shape for name, _, shape in fungi._fungi.tensors(folder)}
    return {name: value.reshape(shapes[name]) for name, value in fungi._fungi.read_arrays(folder).items()}


def model_in_memory():
    return {**tensors_of("demo"), "config.json": json.loads((ROOT / "demo/config.json").read_text())}


@pytest.mark.parametrize("name", ["timm_vit", "timm_deit_distilled", "hf_vit", "timm_clip", "dinov2_registers"])
def test_a_model_in_memory_is_that_of_the_file(name):
    folder = GOLDEN / "backbone" / name
    heads = json.loads((folder / "facts.json").read_text()).get("heads")
    facts = {"heads": heads} if heads else {}
    held = tensors_of(folder)
    for file in set(folder.glob("*.json")) - {folder / "facts.json"}:
        held[file.name] = json.loads(file.read_text())
    pictures = [np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)]
    expected = fungi.Extractor(folder, objectives="kl", facts=facts).transform(pictures)
    extractor = fungi.Extractor(held, objectives="kl", facts=facts)
    held.clear()
    assert np.array_equal(extractor.transform(pictures), expected)


def test_stores_of_a_model_in_memory(data, tmp_path):
    model = model_in_memory()
    fungi.extract(data.test_pictures, tmp_path / "a", model=model, objectives="kl")
    fungi.extract(data.test_pictures, tmp_path / "b", model="demo", objectives="kl")
    a, b = fungi.Store(tmp_path / "a"), fungi.Store(tmp_path / "b")
    assert np.array_equal(a["kl"], b["kl"]) and len(a.manifest["model"]["sha256"]) == 64
    model["norm.weight"] = model["norm.weight"] * 2
    with pytest.raises(fungi.Error):  # another model may not go on with it
        fungi.extract(data.test_pictures, tmp_path / "a", model=model, objectives="kl")


def test_samples_in_memory_into_a_store(arrays, tmp_path):
    labels = ["bag"] * 6 + ["boot"] * 6
    done = fungi.extract(arrays, tmp_path / "a", model="demo", objectives="kl", labels=labels)
    assert done.complete and done.rows == 12
    store = fungi.Store(tmp_path / "a")
    assert store.classes == ["bag", "boot"] and store.labels.tolist() == [0] * 6 + [1] * 6 and store.ids[0] == "000000"
    again = fungi.extract(arrays, tmp_path / "a", model="demo", objectives="kl", labels=labels)
    assert again.computed == 0
    with pytest.raises(fungi.Error):
        fungi.extract(arrays, tmp_path / "b", model="demo", objectives="kl", labels=labels[:3])


def test_encoded_and_pixels_may_be_read_only(kl, arrays):
    frozen = arrays[:1].copy()
    frozen.flags.writeable = False
    assert np.array_equal(kl.transform(frozen), kl.transform(arrays[:1]))
    buffer = io.BytesIO()
    PIL.fromarray(arrays[0]).save(buffer, "PNG")
    assert np.array_equal(kl.transform([memoryview(buffer.getvalue())]), kl.transform(arrays[:1]))
