# SPDX-License-Identifier: Apache-2.0
"""The face of the package fungivision: here against features that it made (tests/golden/fungivision), and where it and torch are
installed against itself."""
from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import fungi
from conftest import GOLDEN, ROOT
from fungi.compat import DINOConfig, FUNGIWrapper, KLConfig, SimCLRConfig

PIL = pytest.importorskip("PIL.Image")
HELD = GOLDEN / "fungivision"


def cosines(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_features_are_those_of_fungivision():
    names = [name for name in (HELD / "list.txt").read_text().split("\n") if name]
    pictures = [PIL.open(HELD / name).convert("RGB") for name in names]
    wrapper = FUNGIWrapper(model=HELD / "model.safetensors", target_layer="blocks.1.attn.proj", device="cpu",
                           extractor_configs=[KLConfig(latent_dim=24), DINOConfig(latent_dim=32),
                                              SimCLRConfig(latent_dim=12, comparison_batch_size=3)],
                           facts={"heads": 2}, given=fungi._fungi.read_arrays(HELD / "given.safetensors"))
    wrapper.extractor.state = {"simclr-negatives": np.load(HELD / "negatives.npy")}
    rows = np.asarray(wrapper.forward(pictures, ids=names))
    for block, name in zip(np.split(rows, 3, axis=1), ("kl", "dino", "simclr")):
        assert cosines(block, np.load(HELD / f"{name}.npy")).min() > 0.99999, name


def test_the_notebooks_calls():
    rng = np.random.default_rng(0)
    dataset = [(PIL.fromarray(rng.integers(0, 256, (60, 50, 3), np.uint8)), i % 2) for i in range(6)]
    wrapper = FUNGIWrapper(model=HELD / "model.safetensors", target_layer="blocks.1.attn.proj", device="cpu", use_fp16=True,
                           extractor_configs=[KLConfig(), SimCLRConfig(comparison_batch_size=2)], facts={"heads": 2})
    with pytest.raises(fungi.NotFittedError):
        wrapper([dataset[0][0]])
    wrapper.setup(dataset=dataset)
    rows = wrapper([image for image, _ in dataset])
    assert rows.shape == (6, 32) and np.allclose(np.linalg.norm(np.asarray(rows)[:, :16], axis=1), 1, atol=1e-5)
    with pytest.raises(fungi.InputError):
        FUNGIWrapper(HELD / "model.safetensors", "blocks.1.attn.proj", extractor_configs=[])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None or importlib.util.find_spec("fungivision") is None or
                    importlib.util.find_spec("timm") is None, reason="a developer's test: needs torch, timm and fungivision")
def test_against_fungivision_itself():
    done = subprocess.run([sys.executable, ROOT / "python/tests/against_fungivision.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
