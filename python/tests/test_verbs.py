# SPDX-License-Identifier: Apache-2.0
"""Every verb gives what the command line gives, to the last bit."""
from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import pathlib
import re
import shutil

import numpy as np
import pytest

import fungi
from conftest import GOLDEN, OBJECTIVES, ROOT, cli, cli_json, files_of


def same(theirs, ours):
    """Every field of the command line's JSON is one of ours."""
    assert len(theirs) == len(ours)
    for one, other in zip(theirs, ours):
        known = {f.name.rstrip("_"): getattr(other, f.name) for f in dataclasses.fields(other)}
        for name, value in one.items():
            assert known[name] == value, name


def test_extract(data, tmp_path):
    options = ["--objectives", *OBJECTIVES, "--keep-factors"]
    cli("extract", data.train_pictures, "-m", "demo", "-o", tmp_path / "train", *options, "-q")
    assert files_of(tmp_path / "train") == files_of(data.train)
    cli("extract", data.test_pictures, "-o", tmp_path / "test", "--like", tmp_path / "train", "-q")
    ours, theirs = files_of(data.test), files_of(tmp_path / "test")
    assert ours.keys() == theirs.keys() and all(ours[name] == theirs[name] for name in ours)


@pytest.mark.parametrize("words, arguments", [
    ([], {}),
    (["--objectives", "none"], {"objectives": "none"}),
    (["--objectives", "kl", "dino:local_crops=1,width=8", "--preset", "paper", "--seed", "7", "--shard", "3", "-j", "1"],
     {"objectives": ["kl", "dino:local_crops=1,width=8"], "preset": "paper", "seed": 7, "shard": 3, "threads": 1}),
    (["--objectives", "kl", "--projection", "sparse", "--projection-dim", "20", "--layer", "blocks.1.mlp.fc1", "--precision", "f32",
      "--storage", "float16", "--limit", "2", "--set", "crop=even"],
     {"objectives": "kl", "projection": "sparse", "projection_dim": 20, "layer": "blocks.1.mlp.fc1", "precision": "f32",
      "storage": "float16", "limit": 2, "facts": {"crop": "even"}}),
])
def test_extract_options(data, tmp_path, words, arguments):
    pictures = data.test_pictures / "bag"
    cli("extract", pictures, "-m", "demo", "-o", tmp_path / "a", *words, "-q")
    fungi.extract(pictures, tmp_path / "b", model="demo", progress=False, **arguments)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_extract_says_what_it_did(data, tmp_path):
    theirs = cli_json("extract", data.test_pictures, "-m", "demo", "-o", tmp_path / "a", "--objectives", "kl")
    ours = fungi.extract(data.test_pictures, tmp_path / "b", model="demo", objectives="kl", progress=False)
    for name in ("rows", "failed", "waiting", "missing", "complete", "computed", "dropped", "pipeline", "ignored", "notes"):
        assert getattr(ours, name) == theirs[name], name
    plan = fungi.extract(data.test_pictures, tmp_path / "c", model="demo", objectives="kl", dry_run=True)
    said = cli_json("extract", data.test_pictures, "-m", "demo", "-o", tmp_path / "c", "--objectives", "kl", "--dry-run")
    for field in dataclasses.fields(plan):
        assert getattr(plan, field.name) == said[field.name], field.name
    assert not (tmp_path / "c").exists()
    again = fungi.extract(data.test_pictures, tmp_path / "b", model="demo", objectives="kl", progress=False)
    assert again.complete and again.computed == 0


def test_texts(tmp_path):
    model = GOLDEN / "backbone/bert"
    folder = tmp_path / "bert"
    folder.mkdir()
    for file in model.glob("*"):
        if file.suffix in (".safetensors", ".json", ".bin"):
            (folder / file.name).symlink_to(file)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    texts = tmp_path / "texts.txt"
    texts.write_text("a b c\nd e f g\nh i j a\n")
    try:
        cli("extract", texts, "-m", folder, "-o", tmp_path / "a", "--objectives", "kl", "-q")
    except AssertionError as error:
        pytest.skip(f"the golden model reads no texts: {error}")
    fungi.extract(texts, tmp_path / "b", model=folder, objectives="kl", progress=False)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    extractor = fungi.Extractor(folder, objectives="kl")
    rows = extractor.transform(["a b c", "d e f g", "h i j a"], ids=["1", "2", "3"])
    assert np.array_equal(rows, fungi.Store(tmp_path / "b").load())
    theirs = cli_json("search", tmp_path / "a", "--text", "a b", "-k", 2)
    ours = fungi.search(tmp_path / "b", texts=["a b"], k=2)
    assert [n["id"] for n in theirs["queries"][0]["neighbours"]] == [n.id for n in ours.queries[0].neighbours]


@pytest.mark.parametrize("words, arguments", [
    ([], {}),
    (["-k", 3, "--metric", "cosine", "--all-combinations", "--pca", 8], {"k": 3, "metric": "cosine", "all_combinations": True, "pca": 8}),
    (["-k", 3, "--vote", "distance", "--shots", 2, "--features", "embedding+kl"],
     {"k": 3, "vote": "distance", "shots": 2, "features": "embedding+kl"}),
    (["-k", 3, "--shots", 2, "--sampling", "stratified"], {"k": 3, "shots": 2, "sampling": "stratified"}),
    (["-k", 3, "--exact-gradients"], {"k": 3, "exact_gradients": True}),
])
def test_knn(data, words, arguments):
    ours = fungi.knn(data.train, data.test, **arguments)
    same(cli_json("knn", data.train, data.test, *words), ours)
    labels = fungi.Store(data.test).labels
    assert ours[-1].accuracy == (ours[-1].predicted == labels).mean()


@pytest.mark.parametrize("words, arguments", [
    ([], {}), (["--lambda", 1e-4, 1e-3, "--shots", 3, "--features", "kl"], {"lambdas": [1e-4, 1e-3], "shots": 3, "features": "kl"})])
def test_linear(data, words, arguments):
    same(cli_json("linear", data.train, data.test, *words), fungi.linear(data.train, data.test, **arguments))
    assert fungi.linear(data.train, data.test, validation=data.test, features="kl")[0].lambda_ == \
        cli_json("linear", data.train, data.test, "--validation", data.test, "--features", "kl")[0]["lambda"]


@pytest.mark.parametrize("words, arguments", [([], {}), (["--seed", 3, "--pca", 0], {"seed": 3, "pca": 0})])
def test_kmeans(data, words, arguments):
    same(cli_json("kmeans", data.train, *words), fungi.kmeans(fungi.Store(data.train), **arguments))


@pytest.mark.parametrize("words, arguments", [
    ([], {}), (["--metric", "euclidean", "--exact-gradients"], {"metric": "euclidean", "exact_gradients": True})])
def test_retrieve(data, words, arguments):
    same(cli_json("retrieve", data.train, data.test, *words), fungi.retrieve(data.train, data.test, **arguments))


def test_retrieve_with_a_list(data, tmp_path):
    ids, queries = fungi.Store(data.train).ids, fungi.Store(data.test).ids
    truth = tmp_path / "truth.jsonl"
    truth.write_text(f'{{"query": "{queries[0]}", "positive": ["{ids[0]}", "{ids[5]}"], "junk": []}}\n')
    ours = fungi.retrieve(data.train, data.test, truth=truth)
    same(cli_json("retrieve", data.train, data.test, "--truth", truth), ours)
    assert np.isnan(ours[0].average_precision[1:]).all() and ours[0].average_precision[0] == ours[0].map


@pytest.mark.parametrize("words, arguments", [
    ([], {}), (["-k", 3, "--folds", 3, "--weights", 0.5, 2, "--seed", 1, "--features", "embedding+kl"],
               {"k": 3, "folds": 3, "weights": [0.5, 2], "seed": 1, "features": "embedding+kl"})])
def test_choose(data, words, arguments):
    theirs, ours = cli_json("choose", data.train, *words), dataclasses.asdict(fungi.choose(data.train, **arguments))
    ours = {name: value for name, value in ours.items() if name != "equal" or value is not None}
    assert theirs == ours
    weighted = "embedding+0.5*kl"
    same(cli_json("knn", data.train, data.test, "--features", weighted), fungi.knn(data.train, data.test, features=weighted))
    assert fungi.Store(data.test).to_pandas(weighted).shape == (20, 258) if importlib.util.find_spec("pandas") else True


@pytest.mark.parametrize("verb, stores, words, arguments", [
    ("knn", 2, ["-k", 3, "--reduce", "gaussian", "--pca", 8], {"k": 3, "reduce": "gaussian", "pca": 8}),
    ("knn", 2, ["-k", 3, "--shots", 2, "--sampling", "stratified"], {"k": 3, "shots": 2, "sampling": "stratified"}),
    ("kmeans", 1, ["--features", "kl"], {"features": "kl"}),
    ("retrieve", 2, ["--reduce", "sign", "--pca", 16], {"reduce": "sign", "pca": 16})])
def test_seeds(data, verb, stores, words, arguments):
    paths = [data.train, data.test][:stores]
    theirs = cli_json(verb, *paths, *words, "--seeds", 0, 5)
    ours = getattr(fungi, verb)(*paths, seeds=[0, 5], **arguments)
    ours = ours if isinstance(ours, list) else [ours]
    assert len(theirs) == len(ours)
    for one, other in zip(theirs, ours):
        assert one["seeds"] == other.seeds and one["mean"] == other.mean and one["deviation"] == other.deviation
        assert len(other.by_seed) == 2
    with pytest.raises(fungi.Error):
        getattr(fungi, verb)(*paths, seeds=[3, 3], **arguments)


def test_seeds_of_choices(data):
    theirs, ours = cli_json("choose", data.train, "-k", 5, "--seeds", 0, 5), fungi.choose(data.train, k=5, seeds=[0, 5])
    assert theirs["seeds"] == ours.seeds and theirs["mean"] == ours.mean and theirs["deviation"] == ours.deviation
    assert [one["chosen"]["features"] for one in theirs["by_seed"]] == [one.chosen.features for one in ours.by_seed]
    with pytest.raises(fungi.Error):
        fungi.choose(data.train, k=5, seed=1, seeds=[0])
    with pytest.raises(fungi.Error, match="nothing here depends on a seed"):
        fungi.cka(data.train, seeds=[0, 1])


def test_seeds_of_stores(data, tmp_path):
    for seed in (3, 4):
        for name in ("train", "test"):
            like = {"like": tmp_path / f"train-{seed}"} if name == "test" else {"model": "demo", "objectives": "kl", "seed": seed}
            fungi.extract(data.test_pictures, tmp_path / f"{name}-{seed}", progress=False, **like)
    train, test = tmp_path / "train-{seed}", tmp_path / "test-{seed}"
    theirs, ours = cli_json("cka", train, "--seeds", 3, 4), fungi.cka(train, seeds=[3, 4])
    assert theirs["mean"] == ours.mean and theirs["deviation"] == ours.deviation and len(ours.by_seed) == 2
    page = fungi.report(train, test, tmp_path / "ours.html", k=3, seeds=[3, 4])
    cli("report", train, test, "-o", tmp_path / "theirs.html", "-k", 3, "--seeds", 3, 4)
    assert "Over 2 seeds" in pathlib.Path(page).read_text()
    assert (tmp_path / "theirs.html").read_bytes() == (tmp_path / "ours.html").read_bytes()


def test_segment_over_seeds(tmp_path):
    golden = ROOT / "tests/golden/segment"
    sets = [golden / "pairs/train", golden / "pairs/test"]
    theirs = cli_json("segment", *sets, "-m", golden / "model.safetensors", "--set", "heads=4", "--set", "family=vit", "--size", "40x56", "-k", 7,
                      "--memory", 30, "--no-page", "-o", tmp_path / "a-{seed}", "--seeds", 1, 2)
    ours = fungi.segment(sets, tmp_path / "b-{seed}", model=golden / "model.safetensors", facts={"heads": 4, "family": "vit"}, size="40x56", k=7,
                         memory=30, no_page=True, seeds=[1, 2])
    assert [one["mean"] for one in theirs] == [one.mean for one in ours] and ours[1].features == "fungi"


def test_layers(data, tmp_path):
    pictures = data.test_pictures / "bag"
    cli("extract", pictures, "-m", "demo", "-o", tmp_path / "a", "--objectives", "kl", "--layers", "blocks.*.mlp.fc2", "-q")
    fungi.extract(pictures, tmp_path / "b", model="demo", objectives="kl", layers="blocks.*.mlp.fc2", progress=False)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert "kl@blocks.3.mlp.fc2" in fungi.Store(tmp_path / "b").blocks


def test_choose_by_a_second_draw(data, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(data.train, again)  # two draws that are the same
    theirs = cli_json("choose", data.train, "--draw", again, "-k", 5)
    ours = dataclasses.asdict(fungi.choose(data.train, draw=again, k=5))
    assert "another --seed" in theirs.pop("notes")[0] and "another seed" in ours.pop("notes")[0]
    assert theirs == ours


def test_cka(data):
    theirs, ours = cli_json("cka", data.train), fungi.cka(data.train)
    assert theirs["blocks"] == ours.blocks and theirs["cka"] == ours.cka.tolist()


def test_pca(data, tmp_path):
    theirs = cli_json("pca", data.train, data.test, "-o", tmp_path / "a", "--dim", 8)
    ours = fungi.pca([data.train, data.test], tmp_path / "b", dim=8)
    for name in ("features", "input_columns", "dim", "fitted_rows", "explained_variance_share"):
        assert getattr(ours, name) == theirs[name]
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    fungi.pca(data.test, tmp_path / "c", apply=tmp_path / "b")
    assert (tmp_path / "c/test.npy").read_bytes() == (tmp_path / "a/test.npy").read_bytes()


@pytest.mark.parametrize("words, arguments", [
    ([], {}), (["--kind", "exact", "--metric", "cosine", "--pca", 8, "-k", 4], {"kind": "exact", "metric": "cosine", "pca": 8, "k": 4}),
    (["--kind", "ivf", "--lists", 4, "--probes", 1, "--sample", 20], {"kind": "ivf", "lists": 4, "probes": 1, "sample": 20}),
    (["--links", 4, "--build-effort", 8, "--effort", 12, "--seed", 3], {"links": 4, "build_effort": 8, "effort": 12, "seed": 3})])
def test_index(data, tmp_path, words, arguments):
    theirs = cli_json("index", data.train, "-o", tmp_path / "a", *words)
    ours = fungi.index(data.train, tmp_path / "b", **arguments)
    for name, value in theirs.items():
        if name not in ("index", "build_seconds", "recall_seconds"):
            assert getattr(ours, name) == value, name
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def answers(result):
    return [[(n.id, n.row, n.value, n.label, n.class_name) for n in q.neighbours] for q in result.queries]


def said(result, value):
    return [[(n["id"], n["row"], n[value], n["label"], n["class"]) for n in q.get("neighbours", [])] for q in result["queries"]]


def test_search(data, tmp_path):
    images = sorted((data.test_pictures / "coat").iterdir())
    row = fungi.Store(data.train).ids[3]
    theirs = cli_json("search", data.train, "--image", *images, "--row", row, "-k", 4)
    ours = fungi.search(data.train, images=images, rows=[row], k=4)
    assert said(theirs, "distance") == answers(ours) and ours.features == theirs["features"]
    assert [q.kind for q in ours.queries] == ["image", "image", "row"]
    fungi.index(data.train, tmp_path / "index", metric="cosine", features="kl")
    theirs = cli_json("search", tmp_path / "index", "--image", images[0], "--effort", 100)
    assert said(theirs, "similarity") == answers(fungi.search(tmp_path / "index", images=[str(images[0])], effort=100))
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    found = fungi.search(data.train, images=[bad, images[0]], rows=["nobody"], k=1)
    assert [bool(q.error) for q in found.queries] == [True, False, True]


def test_project(data, tmp_path):
    theirs = cli_json("project", data.train, "-o", tmp_path / "a", "--projection", "gaussian", "--projection-dim", 24, "--seed", 5)
    ours = fungi.project(data.train, tmp_path / "b", projection="gaussian", projection_dim=24, seed=5)
    assert {**dataclasses.asdict(ours), "store": None} == {**theirs, "store": None}
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_export(data, tmp_path):
    cli("export", data.train, tmp_path / "a.npz")
    assert fungi.export(data.train, tmp_path / "b.npz") == [str(tmp_path / "b.npz")]
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    if not fungi.info()["hdf5"]:
        with pytest.raises(fungi.Error, match="HDF5"):
            fungi.export(data.train, tmp_path / "h", format="hdf5")
        return
    theirs = cli("export", data.train, tmp_path / "h", "--format", "hdf5", "--split", "x").split()
    ours = fungi.export(data.train, tmp_path / "i", format="hdf5", split="x")
    assert [name.replace(str(tmp_path / "h"), str(tmp_path / "i")) for name in theirs] == ours


def test_report(data, tmp_path):
    arguments = [data.train, data.test, "--train-pictures", data.train_pictures, "--test-pictures", data.test_pictures, "--queries", 2]
    cli("report", *arguments, "-o", tmp_path / "a.html")
    fungi.report(data.train, data.test, tmp_path / "b.html", train_pictures=data.train_pictures,
                 test_pictures=data.test_pictures, queries=2)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("model", ["demo", "tests/golden/backbone/hf_vit", "tests/golden/backbone/timm_clip", "tests/golden/backbone/bert"])
def test_inspect(model):
    theirs, ours = cli_json("inspect", model, "--tensors"), fungi.inspect(model)
    for name, value in theirs.items():
        found = getattr(ours, name)
        if name == "notes":  # each face has its own words for options
            assert [note.split("--set")[0] for note in value] == [note.split("facts")[0] for note in found]
            continue
        assert value == ([dataclasses.asdict(t) for t in found] if name == "tensor_list" else found), name


def test_models_and_info(data, tmp_path):
    theirs = [{k: v.replace("--set ", "") for k, v in family.items()} for family in cli_json("models")]
    ours = [{k: re.sub(r'facts=\{"(\w+)": "?([^"}]+)"?\}', r"\1=\2", v) for k, v in family.items()} for family in fungi.models()]
    assert theirs == ours
    assert cli_json("info") == fungi.info()
    assert cli_json("info", data.train) == fungi.info(data.train)
    fungi.index(data.train, tmp_path / "index")
    fungi.pca(data.train, tmp_path / "pca", dim=8)
    for folder in ("index", "pca"):
        assert cli_json("info", tmp_path / folder) == fungi.info(tmp_path / folder)


def test_bench():
    theirs = cli_json("bench", "-m", "vit_tiny_patch16_224", "--seconds", 0.1, "--objectives", "none")
    ours = fungi.bench("vit_tiny_patch16_224", seconds=0.1, objectives="none")
    assert theirs.keys() == ours.keys() and ours["views_per_sample"] == theirs["views_per_sample"]
    both = fungi.bench("vit_tiny_patch16_224", seconds=0.1, objectives="kl", presets=["paper", "fast"], precision="f32")
    assert [(p["preset"], p["precision"], p["views_per_sample"]) for p in both["presets"]] == [("paper", "f32", 1), ("fast", "f32", 1)]


def test_models_of_a_hub(tmp_path, monkeypatch):
    """What the hub's own tools have fetched is a model under its name there; nothing is ever fetched for it."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("FUNGI_HOME", str(tmp_path / "home"))
    with pytest.raises(fungi.Error, match=r'fungi.pull\("some/model"\)'):
        fungi.inspect("hf:some/model")
    snapshot = tmp_path / "hub/models--some--model/snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (tmp_path / "hub/models--some--model/refs").mkdir()
    (tmp_path / "hub/models--some--model/refs/main").write_text("a" * 40)
    for name in ("model.safetensors", "config.json"):
        (snapshot / name).symlink_to(ROOT / "demo" / name)
    assert fungi.inspect("hf:some/model").path.startswith(str(snapshot))
    assert fungi.Extractor("hf:some/model", objectives="kl") is not None
    pulled = fungi.pull("some/model", offline=True)
    assert pulled.startswith(str(tmp_path / "home")) and fungi.inspect(pulled).architecture == fungi.inspect("demo").architecture


# What an option of the command line is called here, where it is not its own name.
RENAMED = {"lambda": "lambdas", "set": "facts", "image": "images", "text": "texts", "row": "rows", "quiet": "progress", "json": None,
           "help": None, "tensors": None, "model": "model", "output": "output"}
# Those of the processes that mpirun starts: it starts the command.
OF_RANKS = {("extract", "gather"), ("extract", "allow-mixed")}
# Those of search stand for one sample each; the text and label of a table are not among them.


@pytest.mark.parametrize("verb", ["extract", "merge", "project", "knn", "linear", "kmeans", "retrieve", "choose", "cka", "pca", "index", "search", "export",
                                  "report", "inspect", "info", "bench", "plan", "segment", "prompts", "pull", "serve"])
def test_every_option_is_an_argument(verb):
    options = re.findall(r"^ +(?:-\w,)?--([a-z][a-z-]*)", cli(verb, "--help"), re.MULTILINE)
    names = inspect.signature(getattr(fungi, verb)).parameters
    for option in options:
        if (verb, option) in OF_RANKS:
            continue
        name = RENAMED.get(option, option.replace("-", "_"))
        assert name is None or name in names or option == "model" and "model" in names or verb == "project" and name == "progress", option


def test_every_verb_is_there():
    verbs = re.findall(r"^  ([a-z]+) +\S", cli("--help").split("SUBCOMMANDS")[-1].split("Subcommands:")[-1], re.MULTILINE)
    assert len(verbs) > 10
    for verb in verbs:
        assert callable(getattr(fungi, verb)), verb


# Not arguments: the result always has them, or mpirun starts the command.
NO_ARGUMENTS = {"tensors", "gather"}


def test_words_of_the_library():
    """Each word of app/words.cpp is a function or an argument here."""
    table = re.findall(r'\{"(\w+)",', (ROOT / "app/words.cpp").read_text())
    arguments = {name for verb in fungi.__all__ if inspect.isfunction(getattr(fungi, verb))
                 for name in inspect.signature(getattr(fungi, verb)).parameters}
    for word in table:
        said = fungi._fungi.worded(f"`{word}`")
        if said.startswith("fungi."):
            assert hasattr(fungi, said[6:-2]), said
        else:
            assert said in arguments or word in NO_ARGUMENTS, f"{word}: {said}"
