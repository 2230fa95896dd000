# SPDX-License-Identifier: Apache-2.0
"""The constructor and the call of the package fungivision, computed here: change the import line of its notebook to

    from fungi.compat import DINOConfig, FUNGIWrapper, KLConfig, SimCLRConfig

and it runs. Features are those of its code (preset "lib"); heads and projection are drawn by `seed` instead of torch's global
generator, so that they are other numbers of the same kind. Crops of a picture depend on its pixels alone, never on its batch.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fungi._errors import InputError
from fungi._extractor import Extractor


@dataclass
class KLConfig:
    """The KL objective."""

    temperature: float = 1
    latent_dim: int = 768

    def specification(self) -> str:
        return f"kl:temperature={self.temperature},width={self.latent_dim}"


@dataclass
class DINOConfig:
    """The DINO objective."""

    teacher_temperature: float = 0.07
    student_temperature: float = 0.1
    latent_dim: int = 2048

    def specification(self) -> str:
        return (f"dino:teacher_temperature={self.teacher_temperature},student_temperature={self.student_temperature},"
                f"width={self.latent_dim}")


@dataclass
class SimCLRConfig:
    """The SimCLR objective. Views are never compared with themselves, whatever self_similarity_constant says."""

    temperature: float = 0.07
    self_similarity_constant: float = -10e3
    comparison_batch_size: int = 64
    comparison_batch_encoding_batch_size: int = 32
    latent_dim: int = 96
    num_patches: int = 4
    stride_scale: int = 6

    def specification(self) -> str:
        return (f"simclr:temperature={self.temperature},negatives={self.comparison_batch_size},width={self.latent_dim},"
                f"patch_count={self.num_patches},stride_scale={self.stride_scale}")


class _Pictures:
    """The pictures of a data set of (picture, label), one by one."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Any:
        for i in range(len(self.dataset)):
            yield self.dataset[i][0]


class FUNGIWrapper:
    """Gradient features of a model at hand. `model` may also be a path; `given` holds heads and a projection of your own."""

    def __init__(self, model: Any, target_layer: str, device: Any = None, projection: Any = None, input_dim: int = 224,
                 use_fp16: bool = False, fp16_dtype: Any = None, extractor_configs: Sequence[Any] = (), *, seed: int = 42,
                 precision: str | None = None, facts: Mapping[str, Any] | None = None, given: Mapping[str, Any] | None = None,
                 threads: int = 0) -> None:
        if not extractor_configs:
            raise InputError("expected the configuration of at least one objective, found none", "extractor_configs", "such as [KLConfig()]")
        for config in extractor_configs:
            if not hasattr(config, "specification"):
                raise InputError(f"expected KLConfig, DINOConfig or SimCLRConfig, found {type(config).__name__}", "extractor_configs",
                                 "take those of fungi.compat; an objective of your own is a class in C++")
        arrays = dict(given or {})
        if projection is not None:
            arrays["projection"] = projection
        self.target_layer = target_layer
        self.device = device
        self.input_dim = input_dim
        self.extractor = Extractor(
            model, objectives=[config.specification() for config in extractor_configs], preset="lib", layer=target_layer,
            precision=precision or ("auto" if use_fp16 else "f32"), facts=facts, given=arrays or None, seed=seed, threads=threads,
            projection="matrix" if "projection" in arrays else None)
        self.embeddings_dim = self.extractor.blocks["embedding"].stop

    def setup(self, dataset: Any) -> None:
        """dataset: (picture, label) by number, of which SimCLR takes its negatives."""
        self.extractor.fit(_Pictures(dataset))

    def __call__(self, images: Sequence[Any]) -> Any:
        return self.forward(images)

    def forward(self, images: Sequence[Any], *, ids: Sequence[str] | None = None) -> Any:
        """[n, width of the embedding times objectives], each part of length 1; a tensor where torch is there, else an array."""
        rows = self.extractor.transform(list(images), ids=ids)[:, self.embeddings_dim :]
        try:
            import torch
        except ImportError:
            return np.ascontiguousarray(rows)
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self.device if self.device is not None else "cpu")
