# SPDX-License-Identifier: Apache-2.0
"""Segmentation and prompts against the command line."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fungi
from conftest import GOLDEN, cli, cli_json, files_of

MODEL = GOLDEN / "segment/model.safetensors"
PAIRS = GOLDEN / "segment/pairs"
SETS = [PAIRS / "train", PAIRS / "test"]
WORDS = ["-m", MODEL, "--set", "heads=4", "--set", "family=vit"]
ARGUMENTS = {"model": MODEL, "facts": {"heads": 4, "family": "vit"}, "progress": False}


@pytest.mark.parametrize("words, arguments", [
    (["--size", "40x56", "-k", 7, "--memory", 90, "--precision", "f32"], {"size": (40, 56), "k": 7, "memory": 90, "precision": "f32"}),
    (["--size", "40x56", "--few-shot", "-k", 5, "--objectives", "kl:width=8", "--projection", "sign", "--projection-dim", 16, "--seed", 3,
      "--images", 4, "--temperature", 0.05, "--at-picture-size", "--no-masks", "--ignore", 254],
     {"size": "40x56", "few_shot": True, "k": 5, "objectives": "kl:width=8", "projection": "sign", "projection_dim": 16, "seed": 3,
      "images": 4, "temperature": 0.05, "at_picture_size": True, "no_masks": True, "ignore": 254}),
    (["--size", 40, "--objectives", "none", "--search", "ivf", "--lists", 4, "--probes", 2, "--rerank", 40, "-k", 3, "--no-page"],
     {"size": 40, "objectives": "none", "search": "ivf", "lists": 4, "probes": 2, "rerank": 40, "k": 3, "no_page": True})])
def test_segment(tmp_path, words, arguments):
    theirs = cli_json("segment", *SETS, *WORDS, *words, "-o", tmp_path / "a")
    ours = fungi.segment(SETS, tmp_path / "b", **ARGUMENTS, **arguments)
    for one, other in zip(theirs["results"], ours.results, strict=True):
        for name, value in one.items():
            assert getattr(other, name) == value, name
        assert np.diag(other.confusion).sum() == pytest.approx(other.pixel_accuracy * other.confusion.sum())
    for name in ("test_pictures", "rows", "settings", "notes"):
        assert getattr(ours, name) == theirs[name], name
    assert theirs["failed_train"] == theirs["failed_test"] == ours.failed_train == ours.failed_test == []
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert ours.picture_miou.shape == (len(ours.ids), len(ours.results))


def test_new_pictures(tmp_path):
    fungi.segment(SETS, tmp_path / "out", **ARGUMENTS, size="40x56", k=7, memory=90)
    bank, pictures = tmp_path / "out/bank", [PAIRS / f"test/images/{i}.png" for i in range(3)]
    for kind in ("fungi", "embedding"):
        theirs = cli_json("segment", *pictures, "--bank", bank, "-o", tmp_path / "a", "--kind", kind, "--colours", tmp_path / "ca")
        ours = fungi.segment(pictures, tmp_path / "b", bank=bank, kind=kind, colours=tmp_path / "cb")
        assert [one["shares"] for one in theirs] == [one.shares for one in ours]
        assert files_of(tmp_path / "a") == files_of(tmp_path / "b") and files_of(tmp_path / "ca") == files_of(tmp_path / "cb")
    segmenter = fungi.Segmenter(bank, kind="embedding")
    assert segmenter.kinds == ["embedding", "fungi"] and len(segmenter.classes) == 4
    for picture, one in zip(pictures, ours):
        assert np.array_equal(segmenter.segment(picture), one.values)
        assert np.array_equal(segmenter.segment(picture.read_bytes()), one.values)
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    some = fungi.segment([broken, pictures[0]], tmp_path / "some", bank=bank)
    assert some[0].failed and some[0].mask is None and some[1].mask == str(tmp_path / "some/0.png")
    with pytest.raises(fungi.Error):
        fungi.segment([broken], tmp_path / "one.png", bank=bank)


@pytest.mark.parametrize("data, arguments, said", [
    (SETS[:1], ARGUMENTS, "found 1"), (SETS, {}, "expected a model"), (SETS, {**ARGUMENTS, "kind": "fungi"}, "bank="),
    (SETS, {**ARGUMENTS, "size": "40x"}, "expected a side"), (SETS, {**ARGUMENTS, "objectives": "simclr"}, "patch_simclr"),
    (SETS, {**ARGUMENTS, "size": 41}, "41"), (SETS, {**ARGUMENTS, "temperature": 0}, "positive"), ([], {"bank": "x"}, "pictures"),
    (["y.png"], {"bank": "x", "k": 3}, "was decided"), (["y.png"], {"bank": "x"}, "there is no memory")])
def test_mistakes(tmp_path, data, arguments, said):
    with pytest.raises(fungi.Error, match=said):
        fungi.segment(data, tmp_path / "out", **arguments)


def test_a_progress_function_ends_it(tmp_path):
    seen = []

    def stop(stage, done, total, failed):
        seen.append(stage)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fungi.segment(SETS, tmp_path / "out", **{**ARGUMENTS, "progress": stop}, size="40x56", k=7, memory=90)
    whole = fungi.segment(SETS, tmp_path / "out", **ARGUMENTS, size="40x56", k=7, memory=90)
    assert seen and whole.test_pictures == 3


def test_prompts(tmp_path):
    model = tmp_path / "bert"
    model.mkdir()
    for file in (GOLDEN / "backbone/bert").glob("*"):
        if file.suffix in (".safetensors", ".json"):
            (model / file.name).symlink_to(file)
    (model / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]) + "\n")
    for name, lines in (("train", ["a b c\tx", "d e f g\ty", "h i\tx", "j a b\ty"]), ("test", ["a b\tx", "d e\ty"])):
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    fungi.extract(tmp_path / "train.tsv", tmp_path / "train", model=model, objectives="kl", progress=False)
    fungi.extract(tmp_path / "test.tsv", tmp_path / "test", like=tmp_path / "train", progress=False)
    theirs = cli_json("prompts", tmp_path / "train", tmp_path / "test", "--train-data", tmp_path / "train.tsv", "--test-data",
                      tmp_path / "test.tsv", "-k", 2, "--nearest", "last", "--model", "some", "-o", tmp_path / "a.jsonl")
    ours = fungi.prompts(fungi.Store(tmp_path / "train"), tmp_path / "test", tmp_path / "b.jsonl", train_data=tmp_path / "train.tsv",
                         test_data=tmp_path / "test.tsv", k=2, nearest="last", model="some")
    assert {**theirs, "file": None} == {**ours, "file": None}
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    with pytest.raises(fungi.Error, match="train_data"):
        fungi.prompts(tmp_path / "train", tmp_path / "test")
