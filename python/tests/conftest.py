# SPDX-License-Identifier: Apache-2.0
"""A small data set of the demo's pictures, its stores, and the command line beside."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest

import fungi
from fungi._command import command

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
OBJECTIVES = ["kl", "simclr:negatives=8,width=16"]


def cli(*words: Any, code: int = 0) -> str:
    done = subprocess.run([command(), *map(str, words)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == code, done.stderr
    return done.stdout


def cli_json(*words: Any) -> Any:
    return json.loads(cli(*words, "--json"))


def pictures(folder: pathlib.Path, split: str, first: int, count: int) -> pathlib.Path:
    """So many of each class, as links."""
    for of_class in sorted((ROOT / "demo/images" / split).iterdir()):
        (folder / of_class.name).mkdir(parents=True)
        for file in sorted(of_class.iterdir())[first : first + count]:
            (folder / of_class.name / file.name).symlink_to(file)
    return folder


class Data:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.train_pictures = pictures(folder / "pictures/train", "train", 0, 6)
        self.test_pictures = pictures(folder / "pictures/test", "test", 0, 2)
        self.train, self.test = str(folder / "train"), str(folder / "test")
        fungi.extract(self.train_pictures, self.train, model=ROOT / "demo", objectives=OBJECTIVES, keep_factors=True, progress=False)
        fungi.extract(self.test_pictures, self.test, like=self.train, progress=False)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def arrays(data: Data) -> np.ndarray:
    """The pixels of the first pictures."""
    opened = fungi._fungi.open_dataset(str(data.train_pictures), {})
    return np.stack([opened.image(i) for i in range(12)])


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="session")
def shown(data: Data) -> Any:
    """Stores of an embedding and kl, as examples have them."""

    class Shown:
        train, test = str(data.folder / "shown-train"), str(data.folder / "shown-test")

    fungi.extract(data.train_pictures, Shown.train, model=ROOT / "demo", objectives="kl", progress=False)
    fungi.extract(data.test_pictures, Shown.test, like=Shown.train, progress=False)
    return Shown


def files_of(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    root = pathlib.Path(folder)
    return {str(f.relative_to(root)): f.read_bytes() for f in sorted(root.rglob("*")) if f.is_file() and f.name != ".lock"}
