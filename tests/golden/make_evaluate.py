#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/evaluate: what scikit-learn, numpy and scipy say about small inputs.

A developer's tool: needs numpy, scipy and scikit-learn. The tests only read the files.
"""
import json
import pathlib
import pickle

import numpy as np
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from sklearn.neighbors import KNeighborsClassifier

OUT = pathlib.Path(__file__).parent / "evaluate"
golden = {}


def save(name, array, dtype=np.float32):
    np.save(OUT / f"{name}.npy", np.ascontiguousarray(array, dtype=dtype))


def pca():
    for name, rows, width, dim, seed in [("pca_tall", 150, 40, 12, 1), ("pca_wide", 30, 64, 10, 2)]:
        rng = np.random.default_rng(seed)
        spectrum = 0.9 ** np.arange(width)
        turn, _ = np.linalg.qr(rng.standard_normal((width, width)))
        make = lambda n: ((rng.standard_normal((n, width)) * spectrum) @ turn + 3.0).astype(np.float32)
        train, test = make(rows), make(20)
        fit = PCA(n_components=dim, svd_solver="full").fit(train.astype(np.float64))
        save(name + "_train", train)
        save(name + "_test", test)
        save(name + "_components", fit.components_, np.float64)
        save(name + "_variance", fit.explained_variance_, np.float64)
        save(name + "_transformed", fit.transform(test.astype(np.float64)), np.float64)


def knn():
    rng = np.random.default_rng(3)
    # Small integers: many equal distances and equal votes, all distances exact.
    train = rng.integers(0, 4, (240, 5)).astype(np.float32)
    test = rng.integers(0, 4, (80, 5)).astype(np.float32)
    labels = rng.integers(0, 7, 240) * 3 + 1
    smooth_train = rng.standard_normal((300, 24)).astype(np.float32)
    smooth_test = rng.standard_normal((90, 24)).astype(np.float32)
    smooth_labels = rng.integers(0, 5, 300)
    smooth_targets = rng.integers(0, 5, 90)
    save("knn_train", train)
    save("knn_test", test)
    save("knn_smooth_train", smooth_train)
    save("knn_smooth_test", smooth_test)

    def first_by_row(x, q, k):
        """Neighbours by (distance, row): integers, so this order is exact."""
        d = ((q[:, None, :].astype(np.int64) - x[None].astype(np.int64)) ** 2).sum(-1)
        return np.argsort(d, axis=1, kind="stable")[:, :k]

    neighbours = first_by_row(train, test, 20)
    # scikit-learn's vote, on these neighbours: KNeighborsClassifier on the query's own 20 rows.
    votes = []
    for row in neighbours:
        vote = KNeighborsClassifier(20, algorithm="brute").fit(np.zeros((20, 1)), labels[row])
        votes.append(int(vote.predict([[0.0]])[0]))
    ours = KNeighborsClassifier(20, algorithm="brute").fit(train, labels)
    distances = np.sqrt(np.sort(((test[:, None] - train[None]) ** 2).sum(-1), axis=1))
    clear = distances[:, 19] < distances[:, 20]  # no tie across the cut: there scikit-learn has no choice
    golden["knn"] = {
        "labels": labels.tolist(),
        "neighbours": neighbours.tolist(),
        "votes": votes,
        "clear": [int(i) for i in np.flatnonzero(clear)],
        "clear_predictions": ours.predict(test[clear]).tolist(),
        "smooth_labels": smooth_labels.tolist(),
        "smooth_targets": smooth_targets.tolist(),
    }
    for k in (1, 4, 20):
        for weights in ("uniform", "distance"):
            fit = KNeighborsClassifier(k, weights=weights, algorithm="brute").fit(smooth_train, smooth_labels)
            golden["knn"][f"smooth_{weights}_{k}"] = fit.predict(smooth_test).tolist()
    fit = KNeighborsClassifier(20, algorithm="brute").fit(smooth_train, smooth_labels)
    found = fit.predict(smooth_test)
    golden["knn"]["smooth_accuracy"] = float((found == smooth_targets).mean())
    golden["knn"]["smooth_mean_per_class"] = float(
        recall_score(smooth_targets, found, labels=np.unique(smooth_targets), average="macro"))


def auc():
    rng = np.random.default_rng(4)
    train = rng.standard_normal((200, 6)).astype(np.float32)
    labels = (train[:, 0] + rng.standard_normal(200) > 0.4).astype(int)
    test = rng.standard_normal((70, 6)).astype(np.float32)
    targets = (test[:, 0] + rng.standard_normal(70) > 0.4).astype(int)
    save("auc_train", train)
    save("auc_test", test)
    fit = KNeighborsClassifier(20, algorithm="brute").fit(train, labels)
    golden["auc"] = {"labels": labels.tolist(), "targets": targets.tolist(),
                     "auc": float(roc_auc_score(targets, fit.predict_proba(test)[:, 1]))}


def splits():
    rng = np.random.default_rng(5)
    cases = []
    for name, labels, size in [
        ("balanced fraction", np.repeat(np.arange(10), 30), 0.8),
        ("unbalanced fraction", rng.choice(8, 500, p=[.4, .2, .1, .1, .08, .06, .04, .02]), 0.8),
        ("equal remainders", np.repeat(np.arange(7), 11), 30),
        ("few of many", rng.integers(0, 6, 400), 30),
        ("larger", np.repeat(np.arange(10), 2700), 0.8),
        ("shuffled labels", rng.permutation(np.repeat(np.arange(37), 20)) + 5, 0.8),
    ]:
        # Without a test size the class would take a tenth as test: the protocol takes the rest.
        n_train = int(np.floor(size * len(labels))) if isinstance(size, float) else size
        split = StratifiedShuffleSplit(1, train_size=n_train, test_size=len(labels) - n_train, random_state=42)
        train, test = next(split.split(np.zeros(len(labels)), labels))
        other = train_test_split(np.arange(len(labels)), train_size=size, stratify=labels, random_state=42)
        assert np.array_equal(other[0], train) and np.array_equal(other[1], test)
        whole = len(labels) <= 1000
        digest = lambda rows: int(sum((i + 1) * int(r) for i, r in enumerate(rows)) % (1 << 31))
        cases.append({"name": name, "labels": labels.tolist() if whole else [int(labels.max()) + 1, 2700],
                      "n_train": n_train, "train": train[:1000].tolist() if whole else train[:50].tolist(),
                      "test": test.tolist() if whole else test[:50].tolist(),
                      "train_digest": digest(train), "test_digest": digest(test)})
    golden["splits"] = cases
    golden["permutation"] = np.random.RandomState(42).permutation(20).tolist()


def logistic():
    rng = np.random.default_rng(6)
    rows, width, classes = 400, 20, 5
    turn = np.linalg.qr(rng.standard_normal((width, width)))[0] * (0.7 ** np.arange(width))
    centres = rng.standard_normal((classes, width))
    labels = rng.integers(0, classes, rows)
    x = ((centres[labels] + 0.8 * rng.standard_normal((rows, width))) @ turn + 0.2).astype(np.float32)
    save("logistic_rows", x)
    wide = x.astype(np.float64)
    one_hot = np.eye(classes)[labels]
    cases = []
    for lam in (5e-6, 2.525e-4, 5e-4, 1e-2):
        def objective(w):
            w = w.reshape(classes, width)
            z = wide @ w.T
            top = z.max(1, keepdims=True)
            e = np.exp(z - top)
            p = e / e.sum(1, keepdims=True)
            loss = (np.log(e.sum(1)) + top[:, 0] - z[np.arange(rows), labels]).mean()
            return loss + lam / 2 * (w ** 2).sum(), ((p - one_hot).T @ wide / rows + lam * w).ravel()
        best = minimize(objective, np.zeros(classes * width), jac=True, method="L-BFGS-B",
                        options={"maxiter": 100000, "maxfun": 200000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 50})
        cases.append({"lambda": lam, "objective": float(best.fun),
                      "gap": float((objective(best.x)[1] ** 2).sum() / (2 * lam))})
        assert cases[-1]["gap"] < 1e-7 * best.fun, cases[-1]
    golden["logistic"] = {"labels": labels.tolist(), "cases": cases}


def kmeans():
    rng = np.random.default_rng(7)
    x = (rng.standard_normal((9, 8))[rng.integers(0, 9, 600)] * 1.5 + rng.standard_normal((600, 8))).astype(np.float32)
    start = x[rng.choice(600, 9, replace=False)]
    save("kmeans_rows", x)
    save("kmeans_start", start)
    fit = KMeans(9, init=start, n_init=1, max_iter=25, tol=0, algorithm="lloyd").fit(x)
    golden["kmeans"] = {"inertia": float(fit.inertia_), "labels": fit.labels_.tolist()}


def cka():
    rng = np.random.default_rng(8)
    a = rng.standard_normal((70, 12)).astype(np.float32)
    b = (a[:, :5] @ rng.standard_normal((5, 9)) + 0.5 * rng.standard_normal((70, 9))).astype(np.float32) + 2
    c = rng.standard_normal((70, 4)).astype(np.float32)
    blocks = [a, b, c]

    def table(rows):
        """Of the first rows, each of length 1."""
        unit = [x[:rows].astype(np.float64) for x in blocks]
        unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in unit]
        centred = [x - x.mean(0) for x in unit]
        norm = lambda x, y: np.linalg.norm(x.T @ y) ** 2
        return [[norm(x, y) / np.sqrt(norm(x, x) * norm(y, y)) for y in centred] for x in centred]

    for name, block in zip("abc", blocks):
        save("cka_" + name, block)
    golden["cka"] = table(70)
    golden["cka_few_rows"] = table(20)  # fewer than columns


def revisited(ranks, truth, cuts=(1, 5, 10)):
    """The published protocol: ranks [database, queries], truth = [{"ok", "junk"}]."""
    aps, precisions = [], []
    for i, record in enumerate(truth):
        if len(record["ok"]) == 0:
            continue
        position = np.arange(len(ranks))[np.isin(ranks[:, i], record["ok"])]
        junk = np.arange(len(ranks))[np.isin(ranks[:, i], record["junk"])]
        position = np.array([p - (junk < p).sum() for p in position])
        ap = 0.0
        for j, rank in enumerate(position):
            before = 1.0 if rank == 0 else j / rank
            ap += (before + (j + 1) / (rank + 1)) / (2.0 * len(position))
        aps.append(ap)
        position = position + 1
        depth = [min(position.max(), k) for k in cuts]
        precisions.append([(position <= k).sum() / k for k in depth])
    return float(np.mean(aps)), np.mean(precisions, axis=0).tolist()


def retrieval():
    rng = np.random.default_rng(9)
    database = rng.integers(-3, 4, (120, 6)).astype(np.float32)  # integers: exact products, many ties
    queries = rng.integers(-3, 4, (15, 6)).astype(np.float32)
    save("retrieval_database", database)
    save("retrieval_queries", queries)
    ranks = np.argsort(-(queries @ database.T), axis=1, kind="stable").T
    records = []
    for i in range(15):
        order = [int(r) for r in rng.permutation(120)]
        sizes = rng.integers(0, 9, 3)
        if i == 4:
            sizes[:2] = 0  # no positives at all
        if i == 7:
            sizes[1] = 0  # none that are hard
        a, b, c = np.cumsum(sizes)
        records.append({"easy": order[:a], "hard": order[a:b], "junk": order[b:c], "bbx": [1.5, 2.0, 30.25, 40.0]})
    medium = [{"ok": r["easy"] + r["hard"], "junk": r["junk"]} for r in records]
    hard = [{"ok": r["hard"], "junk": r["junk"] + r["easy"]} for r in records]
    easy = [{"ok": r["easy"], "junk": r["junk"] + r["hard"]} for r in records]
    golden["retrieval"] = {}
    for name, truth in (("easy", easy), ("medium", medium), ("hard", hard)):
        value, precision = revisited(ranks, truth)
        golden["retrieval"][name] = {"map": value, "precision": precision}
    truth = {"imlist": [f"image_{i:04d}" for i in range(120)], "qimlist": [f"query_{i:02d}" for i in range(15)],
             "gnd": records}
    for protocol in (2, 4):
        (OUT / f"gnd_protocol{protocol}.pkl").write_bytes(pickle.dumps(truth, protocol=protocol))
    (OUT / "gnd.json").write_text(json.dumps(truth))
    (OUT / "gnd_numpy.pkl").write_bytes(
        pickle.dumps({**truth, "gnd": [{k: np.array(v) for k, v in records[0].items()}]}, protocol=2))
    with open(OUT / "relevance.jsonl", "w") as file:
        for i, record in enumerate(medium):
            line = {"query": f"query_{i:02d}", "positive": [f"image_{r:04d}" for r in record["ok"]],
                    "junk": [f"image_{r:04d}" for r in record["junk"]]}
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for make in (pca, knn, auc, splits, logistic, kmeans, cka, retrieval):
        make()
    (OUT / "golden.json").write_text(json.dumps(golden))
