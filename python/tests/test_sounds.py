# SPDX-License-Identifier: Apache-2.0
"""Sounds as data sets and as samples in memory, against the command line."""
from __future__ import annotations

import pathlib
import wave

import numpy as np
import pytest

import fungi
from conftest import GOLDEN, cli, cli_json, files_of

MODEL = GOLDEN / "backbone/hf_ast"
OBJECTIVES = ["kl:width=16", "dino:width=16,local_views=2", "simclr:width=8,views=4,negatives=3"]

pytestmark = pytest.mark.skipif(not fungi.info()["sound_formats"], reason="built without libsndfile")


def tone(hertz: float, seed: int, rate: int = 16000, length: float = 0.25) -> np.ndarray:
    time = np.arange(int(length * rate)) / rate
    noise = np.random.default_rng(seed).uniform(-0.5, 0.5, len(time))
    return (9000 * np.sin(2 * np.pi * (hertz + 20 * seed) * time) + 900 * noise).astype(np.int16)


def write(file: pathlib.Path, samples: np.ndarray, rate: int = 16000) -> np.ndarray:
    """What the file holds, as floats."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.astype("<i2").tobytes())
    return samples.astype(np.float32) / np.float32(32768)


class Clips:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.waves: dict[str, np.ndarray] = {}
        lines = ["file,label,fold"]
        for name, hertz in (("high", 2600), ("low", 240)):
            for i in range(6):
                file = f"{name}/{i}.wav"
                self.waves[file] = write(folder / "clips" / file, tone(hertz, i))
                lines.append(f"{file},{name},{1 + i % 3}")
        (folder / "clips/list.csv").write_text("\n".join(lines) + "\n")
        self.list = folder / "clips/list.csv"
        self.train = folder / "train"
        fungi.extract(self.list, self.train, model=MODEL, objectives=OBJECTIVES, fold="!1", progress=False)


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Clips:
    return Clips(tmp_path_factory.mktemp("sounds"))


def test_folds_and_follow(clips, tmp_path):
    cli("extract", clips.list, "-m", MODEL, "-o", tmp_path / "train", "--objectives", *OBJECTIVES, "--fold", "!1", "-q")
    assert files_of(tmp_path / "train") == files_of(clips.train) and len(fungi.Store(clips.train)) == 8
    cli("extract", clips.list, "-o", tmp_path / "a", "--like", clips.train, "--fold", 1, "-q")
    fungi.extract(clips.list, tmp_path / "b", like=clips.train, fold=1, progress=False)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    scores = fungi.knn(clips.train, tmp_path / "b", k=3)
    assert scores[0].accuracy == cli_json("knn", clips.train, tmp_path / "a", "-k", 3)[0]["accuracy"]


@pytest.mark.parametrize("words, arguments", [
    (["--window", 0.1, "--hop", 0.05], {"window": 0.1, "hop": 0.05}), (["--window", 0.125], {"window": 0.125}),
    (["--statistics", "measure"], {"statistics": "measure"})])
def test_options(clips, tmp_path, words, arguments):
    cli("extract", clips.list, "-m", MODEL, "-o", tmp_path / "a", "--objectives", "kl:width=16", *words, "-q")
    done = fungi.extract(clips.list, tmp_path / "b", model=MODEL, objectives="kl:width=16", progress=False, **arguments)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert any("measured" in note for note in done.notes) == ("statistics" in arguments)
    again = fungi.extract(clips.list, tmp_path / "b", model=MODEL, objectives="kl:width=16", progress=False, **arguments)
    assert again.computed == 0 and again.complete


def test_samples_in_memory(clips, tmp_path):
    """Arrays, bytes, names of files and rows of a store are the same."""
    store = fungi.Store(clips.train)
    extractor = fungi.Extractor(like=clips.train)
    assert extractor.kind == "sound"
    files = [clips.folder / "clips" / name for name in store.ids]
    waves = [clips.waves[name] for name in store.ids]
    stored = store.load()
    for given in (files, [f.read_bytes() for f in files], [(w, 16000) for w in waves], [(w.astype(np.float64), 16000.0) for w in waves],
                  [{"array": w, "sampling_rate": 16000} for w in waves], [{"bytes": None, "path": str(f)} for f in files],
                  {"audio": [(w, 16000) for w in waves]}):
        assert np.array_equal(extractor.transform(given, ids=store.ids), stored)
    fungi.extract([(w, 16000) for w in waves], tmp_path / "held", like=clips.train, ids=store.ids,
                  labels=[name.split("/")[0] for name in store.ids], samples="sound", progress=False)
    held = fungi.Store(tmp_path / "held")
    assert np.array_equal(held.load(), stored) and held.labels.tolist() == store.labels.tolist()


def test_long_and_of_another_rate(tmp_path):
    """As much of an array is looked at as of a file, whatever its rate."""
    long = {rate: write(tmp_path / f"{rate}.wav", tone(700, 1, rate, 3), rate) for rate in (8000, 22050, 44100)}
    extractor = fungi.Extractor(MODEL, objectives=["kl:width=16"])
    for rate, samples in long.items():
        of_file, of_array = extractor.transform([tmp_path / f"{rate}.wav"], ids=["a"]), extractor.transform([(samples, rate)], ids=["a"])
        assert np.array_equal(of_file, of_array), rate
    assert np.array_equal(of_array, extractor.transform(tmp_path / "44100.wav"))


def test_the_other_front_end(clips):
    extractor = fungi.Extractor(GOLDEN / "backbone/kwt", objectives="kl:width=16", facts={"heads": 2})
    name = "low/2.wav"
    rows = extractor.transform([clips.folder / "clips" / name, (clips.waves[name], 16000)], ids=["a", "a2"])
    assert np.array_equal(rows[0], rows[1]) and np.isfinite(rows).all()


def test_search_and_report(clips, tmp_path):
    name = "high/1.wav"
    theirs = cli_json("search", clips.train, "--audio", clips.folder / "clips" / name, "-k", 3)["queries"][0]
    ours = fungi.search(clips.train, audio=[clips.folder / "clips" / name, (clips.waves[name], 16000)], k=3).queries
    assert [(n["id"], n["distance"]) for n in theirs["neighbours"]] == [(n.id, n.value) for n in ours[0].neighbours]
    assert ours[0].kind == "audio" and ours[1].neighbours[0].id == name
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    arguments = {"train_pictures": clips.list, "test_pictures": clips.list, "queries": 2, "k": 3}
    cli("report", clips.train, clips.train, "-o", pages[0], "--train-data", clips.list, "--test-data", clips.list, "--queries", 2, "-k", 3)
    fungi.report(clips.train, clips.train, pages[1], **arguments)
    assert pages[0].read_bytes() == pages[1].read_bytes() and b"<audio" in pages[1].read_bytes()


@pytest.mark.parametrize("bad, said", [
    (np.zeros(4000, np.float32), "array, rate"), ((np.zeros((2, 400), np.float32), 16000), "one channel"),
    ((np.zeros(400, np.int16), 16000), "floats"), ((np.full(400, np.nan, np.float32), 16000), "NaN"),
    ((np.zeros(400, np.float32), 0), "rate"), ((np.zeros(0, np.float32), 16000), "found 0"), ("no such file.wav", "no such file")])
def test_bad_sounds(bad, said):
    extractor = fungi.Extractor(MODEL, objectives="kl:width=16")
    with pytest.raises(fungi.Error, match=said):
        extractor.transform([bad])
    with pytest.raises(fungi.InputError, match="seconds from 0 on"):
        fungi.Extractor(MODEL, window=-1)
