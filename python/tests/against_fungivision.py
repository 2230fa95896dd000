# SPDX-License-Identifier: Apache-2.0
"""fungi.compat beside the package fungivision, on one tiny model of timm's and the same calls. The package's heads and projection are
handed over, and torch's generator gets our seeds before each call, so that both see the same crops and negatives. Exits with 1 where a
cosine is below 0.99999. Needs torch, torchvision, timm, Pillow below 13 and fungivision 0.0.2 (without its dependencies).

    PYTHONPATH=build/python python python/tests/against_fungivision.py
"""
from __future__ import annotations

import pathlib
import sys
import warnings

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/golden"))

import compare_fungivision as package  # noqa: E402
import torch  # noqa: E402

from fungi.compat import DINOConfig, FUNGIWrapper, KLConfig, SimCLRConfig  # noqa: E402


def main() -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    package.provide_transforms()
    import fungivision.config as theirs_config

    model, pictures = package.tiny_model(), package.read_pictures(package.GOLDEN / "list.txt")
    configs = [dict(latent_dim=24), dict(latent_dim=32), dict(latent_dim=12, comparison_batch_size=3)]
    theirs, given = package.run_package(model, pictures, [c(**a) for c, a in zip(
        (theirs_config.KLConfig, theirs_config.DINOConfig, theirs_config.SimCLRConfig), configs)])
    wrapper = FUNGIWrapper(model=model, target_layer=f"blocks.{len(model.blocks) - 1}.attn.proj", device=torch.device("cpu"),
                           extractor_configs=[c(**a) for c, a in zip((KLConfig, DINOConfig, SimCLRConfig), configs)],
                           given={name: value.numpy() for name, value in given.items()})
    wrapper.setup(dataset=[(image, 0) for image in pictures.values()])
    rows = wrapper.forward(list(pictures.values()), ids=list(pictures))
    good = isinstance(rows, torch.Tensor)
    for name, ours in zip(package.BLOCKS, rows.numpy().astype(np.float64).reshape(len(rows), 3, -1).transpose(1, 0, 2)):
        other = theirs[name].astype(np.float64)
        cosine = ((ours * other).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(other, axis=1)).min()
        print(f"{name:8} smallest cosine {cosine:.9f}")
        good &= cosine >= package.THRESHOLD
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
