# SPDX-License-Identifier: Apache-2.0
"""Estimators for scikit-learn: features as a transformer, and a classifier on exact neighbours.

>>> from sklearn.pipeline import make_pipeline
>>> from fungi.sklearn import FungiKNNClassifier, FungiTransformer
>>> pictures = ["demo/images/test/bag/00018.png", "demo/images/test/coat/00006.png"]
>>> model = make_pipeline(FungiTransformer("demo", objectives="kl"), FungiKNNClassifier(k=1))
>>> model.fit(pictures, ["bag", "coat"]).predict(pictures).tolist()
['bag', 'coat']
"""
from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fungi import _fungi
from fungi._common import threads as threads_of
from fungi._errors import InputError, MissingError
from fungi._extractor import OBJECTIVES, Extractor

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingError("scikit-learn 1.6 or newer is not installed", "fungi.sklearn", "pip install scikit-learn") from None


class FungiTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Samples to features, as `fungi.Extractor`; its arguments are those of that class.

    `fit` opens the model and chooses what objectives compare with. The rows of `transform` have blocks of length 1 side by
    side; `set_output(transform="pandas")` gives them as a data frame with the names of the features.
    """

    def __init__(self, model: Any = None, *, objectives: Any = OBJECTIVES, preset: str = "native",
                 layer: str = "blocks.-1.attn.proj", precision: str = "auto", facts: Any = None, projection: str = "sign",
                 projection_dim: int = 0, weight: float | None = None, given: Any = None, seed: int = 42, exif: bool = False, allow_truncated: bool = False,
                 prefix: str = "", max_tokens: int = 0, tokenizer: Any = None, errors: str = "raise", threads: int = 0) -> None:
        self.model = model
        self.objectives = objectives
        self.preset = preset
        self.layer = layer
        self.precision = precision
        self.facts = facts
        self.projection = projection
        self.projection_dim = projection_dim
        self.weight = weight
        self.given = given
        self.seed = seed
        self.exif = exif
        self.allow_truncated = allow_truncated
        self.prefix = prefix
        self.max_tokens = max_tokens
        self.tokenizer = tokenizer
        self.errors = errors
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> FungiTransformer:
        words = [self.objectives] if isinstance(self.objectives, str) else list(self.objectives)
        said = dict(objectives=words, preset=self.preset, precision=self.precision, facts=self.facts, given=self.given,
                    seed=self.seed, exif=self.exif, allow_truncated=self.allow_truncated, prefix=self.prefix,
                    max_tokens=self.max_tokens, tokenizer=self.tokenizer, threads=self.threads)
        if words not in ([], ["none"]):  # what is about gradients
            said.update(layer=self.layer, projection=self.projection, projection_dim=self.projection_dim, weight=self.weight)
        self.extractor_ = Extractor(self.model, **said)
        X = X if hasattr(X, "__len__") or isinstance(X, os.PathLike) else list(X)
        if not isinstance(X, os.PathLike) and len(X) == 0:
            raise InputError("expected samples, found none", "X", "give at least one")
        if not self.extractor_.ready:
            self.extractor_.fit(X)
        self.n_features_out_ = self.extractor_.width
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        check_is_fitted(self)
        return self.extractor_.transform(X, errors=self.errors)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        check_is_fitted(self)
        names = [f"{block}_{i}" for block, at in self.extractor_.blocks.items() for i in range(at.stop - at.start)]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class FungiKNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The vote of the exactly nearest rows, as `fungi.knn()` counts it: equal votes go to the smaller class.

    k: 20, or all rows where there are fewer. vote: "uniform" or "distance". metric: "euclidean", "inner_product", "cosine".

    >>> from fungi.sklearn import FungiKNNClassifier
    >>> FungiKNNClassifier(k=1).fit([[0.0], [1.0]], ["low", "high"]).predict([[0.1], [0.9]]).tolist()
    ['low', 'high']
    """

    def __init__(self, k: int | None = None, *, vote: str = "uniform", metric: str = "euclidean", threads: int = 0) -> None:
        self.k = k
        self.vote = vote
        self.metric = metric
        self.threads = threads

    def fit(self, X: Any, y: Any) -> FungiKNNClassifier:
        X, y = validate_data(self, X, y, dtype=np.float32, order="C")
        check_classification_targets(y)
        if self.vote == "distance" and self.metric != "euclidean":
            raise InputError(f"vote=\"distance\" needs metric=\"euclidean\", found {self.metric}", "vote", "")
        if self.k is not None and not 1 <= self.k <= len(X):
            raise InputError(f"expected at least 1 neighbour and at most n_samples = {len(X)}, found {self.k}", "k", "leave it out: None fits any number of rows")
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._rows = X
        self._labels = np.ascontiguousarray(labels.reshape(-1), np.int64)
        return self

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Distances (similarities) and row numbers, the nearest first; of X=None those of the training rows, without
        themselves."""
        check_is_fitted(self)
        k = n_neighbors or self._neighbours()
        own = X is None
        rows = self._rows if own else validate_data(self, X, dtype=np.float32, order="C", reset=False)
        if k > len(self._rows) - own:
            raise InputError(f"expected at most {len(self._rows) - own} neighbours, found {k}", "n_neighbors", "")
        at, values = _fungi.neighbours(self._rows, rows, k, self.metric, own, threads_of(self.threads))
        return values, at.astype(np.int64)

    def predict(self, X: Any) -> NDArray[Any]:
        values, at = self.kneighbors(X)
        voted = _fungi.vote(at.astype(np.uint32), values, self._labels, self.vote)
        chosen: NDArray[Any] = self.classes_[voted]
        return chosen

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The share of the votes for each class."""
        values, at = self.kneighbors(X)
        if self.vote == "distance":
            with np.errstate(divide="ignore"):
                weights = 1 / values
            zero = np.isinf(weights)
            weights[zero.any(axis=1)] = zero[zero.any(axis=1)]
        else:
            weights = np.ones_like(values)
        votes = np.zeros((len(at), len(self.classes_)))
        labels = self._labels[at]
        for column in range(at.shape[1]):
            votes[np.arange(len(at)), labels[:, column]] += weights[:, column]
        shares: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
        return shares

    def _neighbours(self) -> int:
        return min(20, len(self._rows)) if self.k is None else self.k
