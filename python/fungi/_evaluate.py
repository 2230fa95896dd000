# SPDX-License-Identifier: Apache-2.0
"""Evaluations of stores: the verbs knn, linear, kmeans, retrieve and cka."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fungi import _fungi
from fungi._common import PathLike, Progress, choice, count, path, progress_function, size, threads as threads_of, warn
from fungi._errors import InputError
from fungi._results import (Choice, Cka, KMeansScore, KnnScore, LinearScore, OverSeeds, RetrievalScore, StableChoice, StableFeatures,
                            WeightedFeatures, made)
from fungi._store import Store, native

METRICS = ("euclidean", "inner_product", "cosine")


REDUCTIONS = ("pca", "sign", "gaussian", "sparse")


def _combined(features: str | None, all_combinations: bool, pca: int, memory: int | str, threads: int, reduce: str,
              seed: int | None) -> Any:
    if features and all_combinations:
        raise InputError("some blocks and every combination cannot both be meant", "all_combinations", "leave out features or it")
    choice(reduce, "reduce", REDUCTIONS)
    return _fungi.Combined(features or "", bool(all_combinations), count(pca, "pca"), size(memory), threads_of(threads), reduce, seed)


def _seeded(store: Store | PathLike, seed: int | None) -> Any:
    """The store of that seed, where its path has a place for one."""
    return native(store if seed is None or isinstance(store, Store) else _fungi.with_seed(path(store, "store"), seed))


def checked_seeds(seeds: Sequence[int] | None, stores: Sequence[Store | PathLike | None], draws: bool, hint: str) -> list[int]:
    """The seeds, where something depends on them; "{seed}" in the path of a store does."""
    places = any(not isinstance(s, Store) and s is not None and _fungi.names_seed(path(s, "store")) for s in stores)
    numbers = [count(seed, "seeds") for seed in seeds or []]
    if any(seed >= 1 << 32 for seed in numbers):
        raise InputError(f"expected seeds below 2^32, found {max(numbers)}", "seeds", "")
    _fungi.check_seeds(numbers, places, draws, hint)
    return numbers


def _spread(values: Sequence[Any]) -> tuple[Any, Any]:
    """Mean and deviation; of lists, one for each place."""
    if not isinstance(values[0], list):
        mean, deviation = _fungi.spread_of([float(v) for v in values])
        return mean, deviation
    columns = [_spread(column) for column in zip(*values)]
    return [m for m, _ in columns], [d for _, d in columns]


def joined_seeds(seeds: list[int], each: Sequence[Any], measures: Sequence[str], features: str | None = None) -> OverSeeds:
    """What one score of each seed has in common. features: where the scores do not say."""
    spreads = {}
    for name in measures:
        values = [getattr(score, name) for score in each]
        if all(value is not None for value in values):
            spreads[name] = _spread(values)
    return OverSeeds(each[0].features if features is None else features, seeds, {n: s[0] for n, s in spreads.items()},
                     {n: s[1] for n, s in spreads.items()}, list(each), getattr(each[0], "relevance", None))


def _over_seeds(seeds: Sequence[int] | None, stores: Sequence[Store | PathLike | None], draws: bool, hint: str,
                measures: Sequence[str], run: Callable[[int | None], list[Any]]) -> Any:
    """The scores of a run; of seeds an OverSeeds of each combination."""
    numbers = checked_seeds(seeds, stores, draws, hint)
    if not numbers:
        return run(None)
    return [joined_seeds(numbers, each, measures) for each in zip(*[run(seed) for seed in numbers])]


def _without_pca(exact_gradients: bool, pca: int | None, memory: int | str, reduce: str) -> int:
    if exact_gradients and reduce != "pca":
        raise InputError("whole gradients are never columns, so there is nothing to shrink", "reduce", "leave out reduce or exact_gradients")
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
        pca: int | None = None, reduce: str = "pca", exact_gradients: bool = False, seeds: Sequence[int] | None = None,
        memory: int | str = 0, threads: int = 0, progress: Progress = None) -> Any:
    """Classifies the rows of one store by their nearest neighbours in another, once per combination of blocks.

    k: neighbours that vote, 20 or as many as there are rows. shots: only so many training rows of each class (0: all).
    pca: columns to shrink to where the rows allow it (512; 0: never). reduce: "pca", or a random matrix ("sign", "gaussian",
    "sparse"). features: blocks joined with +; left out, one more block at a time.

    seeds: the same for each of them; "{seed}" in the path of a store stands for it, and what is drawn is drawn with it. The
    result is then a list of OverSeeds, with mean and deviation, here and in linear(), kmeans() and retrieve().

    >>> import fungi
    >>> over = fungi.knn(train, test, k=5, reduce="gaussian", pca=64, seeds=[0, 1, 2])[0]
    >>> over.seeds, len(over.by_seed), sorted(over.mean)
    ([0, 1, 2], 3, ['accuracy', 'mean_per_class_accuracy', 'standard_error'])
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
    columns = _without_pca(exact_gradients, pca, memory, reduce)

    def run(seed: int | None) -> list[KnnScore]:
        with progress_function(progress) as show:
            out = _fungi.knn(_seeded(train, seed), _seeded(test, seed),
                             _combined(features, all_combinations, columns, memory, threads, reduce, seed),
                             None if k is None else count(k, "k", 1), vote, metric, count(shots, "shots"), sampling or "first",
                             exact_gradients, show)
        warn(out["notes"], 5)
        return [made(KnnScore, one, pca=columns, reduce=reduce, shots=shots, sampling=sampling or "first", exact_gradients=exact_gradients)
                for one in out["scores"]]

    return _over_seeds(seeds, [train, test], (shots > 0 and sampling == "stratified") or (reduce != "pca" and columns > 0),
                       ", draw few shots (sampling=\"stratified\"), or give a random reduce",
                       ["accuracy", "mean_per_class_accuracy", "standard_error", "auc"], run)


def linear(train: Store | PathLike, test: Store | PathLike, *, validation: Store | PathLike | None = None,
           lambdas: Sequence[float] | None = None, shots: int = 0, features: str | None = None, all_combinations: bool = False,
           pca: int = 512, reduce: str = "pca", seeds: Sequence[int] | None = None, memory: int | str = 0, threads: int = 0,
           progress: Progress = None) -> Any:
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

    def run(seed: int | None) -> list[LinearScore]:
        with progress_function(progress) as show:
            out = _fungi.linear(_seeded(train, seed), _seeded(test, seed), None if validation is None else _seeded(validation, seed),
                                _combined(features, all_combinations, pca, memory, threads, reduce, seed), [float(v) for v in lambdas or []],
                                count(shots, "shots"), show)
        warn(out["notes"], 5)
        return [made(LinearScore, one, pca=pca, reduce=reduce, shots=shots) for one in out["scores"]]

    return _over_seeds(seeds, [train, test, validation], validation is None or (reduce != "pca" and pca > 0),
                       ", leave out validation, or give a random reduce",
                       ["accuracy", "mean_per_class_accuracy", "standard_error", "lambda_", "validation"], run)


def kmeans(store: Store | PathLike, *, seed: int | None = None, features: str | None = None, all_combinations: bool = False,
           pca: int = 512, reduce: str = "pca", seeds: Sequence[int] | None = None, memory: int | str = 0, threads: int = 0,
           progress: Progress = None) -> Any:
    """Clusters the rows of a store, as many clusters as classes, and matches clusters with classes.

    >>> import fungi
    >>> fungi.kmeans(train, features="kl")[0].clusters
    10
    """
    if seed is not None and seeds:
        raise InputError("one seed and several cannot both be meant", "seeds", "leave out seed or seeds")

    def run(one_of: int | None) -> list[KMeansScore]:
        with progress_function(progress) as show:
            out = _fungi.kmeans(_seeded(store, one_of), _combined(features, all_combinations, pca, memory, threads, reduce, one_of),
                                None if seed is None else count(seed, "seed"), show)
        warn(out["notes"], 5)
        return [made(KMeansScore, one, pca=pca, reduce=reduce) for one in out["scores"]]

    return _over_seeds(seeds, [store], True, "", ["overlap"], run)


def retrieve(database: Store | PathLike, queries: Store | PathLike, *, truth: PathLike | None = None,
             metric: str = "inner_product", features: str | None = None, all_combinations: bool = False, pca: int | None = None,
             reduce: str = "pca", exact_gradients: bool = False, seeds: Sequence[int] | None = None, memory: int | str = 0,
             threads: int = 0, progress: Progress = None) -> Any:
    """Ranks a database for each query and scores where the relevant rows stand: mean average precision.

    truth: gnd_*.pkl or .json (revisited Oxford and Paris), or .jsonl of ids; left out, rows of the same class are relevant.

    >>> import fungi
    >>> [score.relevance for score in fungi.retrieve(train, test, features="embedding")]
    ['class']
    """
    choice(metric, "metric", METRICS)
    columns = _without_pca(exact_gradients, pca, memory, reduce)

    def run(seed: int | None) -> list[RetrievalScore]:
        with progress_function(progress) as show:
            out = _fungi.retrieve(_seeded(database, seed), _seeded(queries, seed), path(truth, "truth"),
                                  _combined(features, all_combinations, columns, memory, threads, reduce, seed), metric,
                                  exact_gradients, show)
        return [made(RetrievalScore, one, pca=columns, reduce=reduce, exact_gradients=exact_gradients) for one in out]

    return _over_seeds(seeds, [database, queries], reduce != "pca" and columns > 0, ", or give a random reduce",
                       ["map", "precision"], run)


def choose(train: Store | PathLike, *, draw: Store | PathLike | None = None, features: str | None = None,
           weights: Sequence[float] | None = None, k: int = 20, folds: int = 5, most_rows: int = 8192, seed: int | None = None,
           seeds: Sequence[int] | None = None, threads: int = 0, progress: Progress = None) -> Choice | StableChoice | OverSeeds:
    """Which blocks of a store help on its own rows, and with how much weight.

    draw: a store of the same samples with another seed; labels are not looked at then, but what both draws agree on.
    seed: of the folds and of rows drawn (42). seeds: a choice for each of them; "{seed}" in the path of a store stands for it.

    >>> import fungi
    >>> fungi.choose(train, k=5, folds=3).first.features
    'embedding'
    """
    if weights is not None and not (weights and all(isinstance(v, (int, float)) and v > 0 for v in weights)):
        raise InputError(f"expected positive numbers, found {weights!r}", "weights", "")
    if seed is not None and seeds:
        raise InputError("one seed and several cannot both be meant", "seeds", "leave out seed or seeds")

    def run(one_of: int | None) -> Choice | StableChoice:
        drawn = count(one_of if one_of is not None else 42 if seed is None else seed, "seed")
        grid = [float(v) for v in weights or []]
        with progress_function(progress) as show:
            if draw is not None:
                out = _fungi.choose_stable(_seeded(train, one_of), _seeded(draw, one_of), features or "", grid, count(k, "k", 1),
                                           count(most_rows, "most_rows", 1), drawn, threads_of(threads), show)
            else:
                out = _fungi.choose(_seeded(train, one_of), features or "", grid, count(k, "k", 1), count(folds, "folds", 1),
                                    count(most_rows, "most_rows", 1), drawn, threads_of(threads), show)
        warn(out["notes"], 5)
        if draw is not None:
            return made(StableChoice, out, chosen=StableFeatures(**out["chosen"]),
                        best_of_blocks=[StableFeatures(**f) for f in out["best_of_blocks"]])
        one = {name: WeightedFeatures(**out[name]) if out[name] else None for name in ("first", "chosen", "equal")}
        return made(Choice, out, **one, best_of_blocks=[WeightedFeatures(**f) for f in out["best_of_blocks"]])

    numbers = checked_seeds(seeds, [train, draw], True, "")
    if not numbers:
        return run(None)
    each = [run(one_of) for one_of in numbers]
    measures = ["expected_accuracy", "expected_gain"] if draw is None else ["gain"]
    return joined_seeds(numbers, each, measures, features or "all")


def cka(store: Store | PathLike, *, features: str | None = None, seeds: Sequence[int] | None = None, threads: int = 0) -> Cka | OverSeeds:
    """Linear CKA between every two blocks: how much of one the other already says.

    seeds: the same for each of them, for which "{seed}" stands in the path of the store; mean["cka"] and deviation["cka"] are lists.

    >>> import fungi
    >>> fungi.cka(train).blocks
    ['embedding', 'kl']
    """
    numbers = checked_seeds(seeds, [store], False, "")
    one_or_many: Sequence[int | None] = numbers or [None]
    each = [Cka(*_fungi.cka(_seeded(store, seed), features or "", threads_of(threads))) for seed in one_or_many]
    if not numbers:
        return each[0]
    if any(one.blocks != each[0].blocks for one in each):
        raise InputError("the stores of different seeds have different blocks", "seeds", "extract them in the same way, but for the seed")
    mean, deviation = _spread([one.cka.tolist() for one in each])
    return OverSeeds("+".join(each[0].blocks), numbers, {"cka": mean}, {"cka": deviation}, each)
