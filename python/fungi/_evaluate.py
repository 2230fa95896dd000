# SPDX-License-Identifier: Apache-2.0
"""Evaluations of stores: the verbs knn, linear, kmeans, retrieve and cka."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fungi import _fungi
from fungi._common import PathLike, Progress, choice, count, path, progress_function, size, threads as threads_of, warn
from fungi._errors import InputError
from fungi._results import Choice, Cka, KMeansScore, KnnScore, LinearScore, RetrievalScore, StableChoice, StableFeatures, WeightedFeatures, made
from fungi._store import Store, native

METRICS = ("euclidean", "inner_product", "cosine")


def _combined(features: str | None, all_combinations: bool, pca: int, memory: int | str, threads: int) -> Any:
    if features and all_combinations:
        raise InputError("some blocks and every combination cannot both be meant", "all_combinations", "leave out features or it")
    return _fungi.Combined(features or "", bool(all_combinations), count(pca, "pca"), size(memory), threads_of(threads))


def _without_pca(exact_gradients: bool, pca: int | None, memory: int | str) -> int:
    if exact_gradients and pca:
        raise InputError("whole gradients are compared without ever being columns, so there is nothing to shrink", "pca",
                         "leave out pca or exact_gradients")
    if exact_gradients and memory:
        raise InputError("whole gradients are never rows, so none go to a scratch file", "memory", "leave out memory or exact_gradients")
    if pca is None:
        return 0 if exact_gradients else 512
    return pca


def knn(train: Store | PathLike, test: Store | PathLike, *, k: int | None = None, shots: int = 0, sampling: str | None = None,
        vote: str = "uniform", metric: str = "euclidean", features: str | None = None, all_combinations: bool = False,
        pca: int | None = None, exact_gradients: bool = False, memory: int | str = 0, threads: int = 0,
        progress: Progress = None) -> list[KnnScore]:
    """Classifies the rows of one store by their nearest neighbours in another, once per combination of blocks.

    k: neighbours that vote, 20 or as many as there are rows. shots: only so many training rows of each class (0: all).
    pca: columns to shrink to where the rows allow it (512; 0: never). features: blocks joined with +; left out, one more
    block at a time.

    >>> import fungi
    >>> for score in fungi.knn(train, test, k=5):
    ...     print(score.features, score.columns)
    embedding 128
    embedding+kl 256
    """
    choice(vote, "vote", ("uniform", "distance"))
    choice(metric, "metric", METRICS)
    choice(sampling or "first", "sampling", ("first", "stratified"))
    if sampling is not None and not shots:
        raise InputError("without shots all rows are kept", "sampling", "give shots")
    if vote == "distance" and metric != "euclidean":
        raise InputError(f"vote=\"distance\" needs metric=\"euclidean\", found {metric}", "vote", "")
    columns = _without_pca(exact_gradients, pca, memory)
    with progress_function(progress) as show:
        out = _fungi.knn(native(train), native(test), _combined(features, all_combinations, columns, memory, threads),
                         None if k is None else count(k, "k", 1), vote, metric, count(shots, "shots"), sampling or "first",
                         exact_gradients, show)
    warn(out["notes"])
    return [made(KnnScore, one, pca=columns, shots=shots, sampling=sampling or "first", exact_gradients=exact_gradients)
            for one in out["scores"]]


def linear(train: Store | PathLike, test: Store | PathLike, *, validation: Store | PathLike | None = None,
           lambdas: Sequence[float] | None = None, shots: int = 0, features: str | None = None, all_combinations: bool = False,
           pca: int = 512, memory: int | str = 0, threads: int = 0, progress: Progress = None) -> list[LinearScore]:
    """A linear probe: softmax regression on the rows of one store, tested on another.

    lambdas: penalties to choose from (`--lambda` of the command line); left out, those of the paper. validation: a store
    that chooses; left out, a fifth of the training rows.

    >>> import fungi
    >>> score = fungi.linear(train, test, features="embedding+kl")[0]
    >>> score.converged, len(score.predicted) == score.test_rows
    (True, True)
    """
    if lambdas is not None and not (lambdas and all(isinstance(v, (int, float)) and v > 0 for v in lambdas)):
        raise InputError(f"expected positive numbers, found {lambdas!r}", "lambdas", "")
    with progress_function(progress) as show:
        out = _fungi.linear(native(train), native(test), None if validation is None else native(validation),
                            _combined(features, all_combinations, pca, memory, threads), [float(v) for v in lambdas or []],
                            count(shots, "shots"), show)
    warn(out["notes"])
    return [made(LinearScore, one, pca=pca, shots=shots) for one in out["scores"]]


def kmeans(store: Store | PathLike, *, seed: int | None = None, features: str | None = None, all_combinations: bool = False,
           pca: int = 512, memory: int | str = 0, threads: int = 0, progress: Progress = None) -> list[KMeansScore]:
    """Clusters the rows of a store, as many clusters as classes, and matches clusters with classes.

    >>> import fungi
    >>> fungi.kmeans(train, features="kl")[0].clusters
    10
    """
    with progress_function(progress) as show:
        out = _fungi.kmeans(native(store), _combined(features, all_combinations, pca, memory, threads),
                            None if seed is None else count(seed, "seed"), show)
    warn(out["notes"])
    return [made(KMeansScore, one, pca=pca) for one in out["scores"]]


def retrieve(database: Store | PathLike, queries: Store | PathLike, *, truth: PathLike | None = None,
             metric: str = "inner_product", features: str | None = None, all_combinations: bool = False, pca: int | None = None,
             exact_gradients: bool = False, memory: int | str = 0, threads: int = 0,
             progress: Progress = None) -> list[RetrievalScore]:
    """Ranks a database for each query and scores where the relevant rows stand: mean average precision.

    truth: gnd_*.pkl or .json (revisited Oxford and Paris), or .jsonl of ids; left out, rows of the same class are relevant.

    >>> import fungi
    >>> [score.relevance for score in fungi.retrieve(train, test, features="embedding")]
    ['class']
    """
    choice(metric, "metric", METRICS)
    columns = _without_pca(exact_gradients, pca, memory)
    with progress_function(progress) as show:
        out = _fungi.retrieve(native(database), native(queries), path(truth, "truth"),
                              _combined(features, all_combinations, columns, memory, threads), metric, exact_gradients, show)
    return [made(RetrievalScore, one, pca=columns, exact_gradients=exact_gradients) for one in out]


def choose(train: Store | PathLike, *, draw: Store | PathLike | None = None, features: str | None = None,
           weights: Sequence[float] | None = None, k: int = 20, folds: int = 5, most_rows: int = 8192, seed: int = 42, threads: int = 0,
           progress: Progress = None) -> Choice | StableChoice:
    """Which blocks of a store help on its own rows, and with how much weight.

    draw: a store of the same samples with another seed; labels are not looked at then, but what both draws agree on.

    >>> import fungi
    >>> fungi.choose(train, k=5, folds=3).first.features
    'embedding'
    """
    if weights is not None and not (weights and all(isinstance(v, (int, float)) and v > 0 for v in weights)):
        raise InputError(f"expected positive numbers, found {weights!r}", "weights", "")
    if draw is not None:
        with progress_function(progress) as show:
            out = _fungi.choose_stable(native(train), native(draw), features or "", [float(v) for v in weights or []], count(k, "k", 1),
                                       count(most_rows, "most_rows", 1), count(seed, "seed"), threads_of(threads), show)
        warn(out["notes"])
        return made(StableChoice, out, chosen=StableFeatures(**out["chosen"]),
                    best_of_blocks=[StableFeatures(**f) for f in out["best_of_blocks"]])
    with progress_function(progress) as show:
        out = _fungi.choose(native(train), features or "", [float(v) for v in weights or []], count(k, "k", 1), count(folds, "folds", 1),
                            count(most_rows, "most_rows", 1), count(seed, "seed"), threads_of(threads), show)
    warn(out["notes"])
    one = {name: WeightedFeatures(**out[name]) if out[name] else None for name in ("first", "chosen", "equal")}
    return made(Choice, out, **one, best_of_blocks=[WeightedFeatures(**f) for f in out["best_of_blocks"]])


def cka(store: Store | PathLike, *, features: str | None = None, threads: int = 0) -> Cka:
    """Linear CKA between every two blocks: how much of one the other already says.

    >>> import fungi
    >>> fungi.cka(train).blocks
    ['embedding', 'kl']
    """
    return Cka(*_fungi.cka(native(store), features or "", threads_of(threads)))
