# SPDX-License-Identifier: Apache-2.0
"""The estimators, judged by scikit-learn's own checks."""
from __future__ import annotations

import pickle

import numpy as np
import pytest

import fungi
from conftest import ROOT

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import Normalizer  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402

from fungi.sklearn import FungiKNNClassifier, FungiTransformer  # noqa: E402

# None is known to fail; a check that is listed here needs a reason.
EXPECTED_FAILURES: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [FungiTransformer("demo", objectives="kl"), FungiKNNClassifier(), FungiKNNClassifier(3, vote="distance")])
def test_scikit_learns_own_checks(estimator):
    results = estimator_checks.check_estimator(estimator, expected_failed_checks=EXPECTED_FAILURES, on_fail=None)
    failed = [f"{r['check_name']}: {r['exception']}" for r in results if r["status"] == "failed"]
    assert not failed
    # What does not read tables is asked for little; the next test asks for more.
    assert sum(r["status"] == "passed" for r in results) >= (40 if isinstance(estimator, FungiKNNClassifier) else 1)


@pytest.mark.parametrize("check", ["check_get_params_invariance", "check_set_params", "check_no_attributes_set_in_init", "check_estimator_repr",
                                   "check_parameters_default_constructible", "check_estimator_cloneable", "check_valid_tag_types"])
def test_scikit_learns_checks_of_parameters(check):
    getattr(estimator_checks, check)("FungiTransformer", FungiTransformer("demo", objectives="kl"))


def samples(data):
    store = fungi.Store(data.train)
    return [str(data.train_pictures / id) for id in store.ids], np.array(store.class_names())


def test_transformer(data):
    pictures, _ = samples(data)
    transformer = FungiTransformer(str(ROOT / "demo"), objectives=["kl"]).fit(pictures)
    rows = transformer.transform(pictures)
    assert np.array_equal(rows, fungi.Extractor(ROOT / "demo", objectives="kl").transform(pictures))
    assert list(transformer.get_feature_names_out()[[0, 128]]) == ["embedding_0", "kl_0"]
    assert np.array_equal(pickle.loads(pickle.dumps(transformer)).transform(pictures[:3]), rows[:3])
    fresh = clone(transformer)
    assert fresh.get_params() == transformer.get_params() and not hasattr(fresh, "extractor_")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        fresh.transform(pictures)
    assert np.array_equal(FungiTransformer(str(ROOT / "demo"), objectives="none").fit_transform(pictures)[:3],
                          fungi.Extractor(ROOT / "demo", objectives="none").transform(pictures[:3]))


def test_set_output(data):
    pandas = pytest.importorskip("pandas")
    pictures, _ = samples(data)
    frame = FungiTransformer(str(ROOT / "demo"), objectives="kl").set_output(transform="pandas").fit_transform(pictures)
    assert isinstance(frame, pandas.DataFrame) and frame.columns[-1] == "kl_127"


def test_classifier_is_the_verb(data):
    train, test = fungi.Store(data.train), fungi.Store(data.test)
    for vote, k in (("uniform", 5), ("distance", 7), ("uniform", None)):
        ours = FungiKNNClassifier(k, vote=vote).fit(train.load("embedding+kl"), train.labels)
        theirs = fungi.knn(train, test, k=k, vote=vote, features="embedding+kl", pca=0)[0]
        assert np.array_equal(ours.predict(test.load("embedding+kl")), theirs.predicted)
        assert ours.score(test.load("embedding+kl"), test.labels) == theirs.accuracy


def test_classifier_is_that_of_scikit_learn(data):
    train, test = fungi.Store(data.train), fungi.Store(data.test)
    X, queries = train.load(), test.load()
    for vote in ("uniform", "distance"):
        ours = FungiKNNClassifier(5, vote=vote).fit(X, train.labels)
        theirs = KNeighborsClassifier(5, weights=vote, algorithm="brute").fit(X.astype(np.float64), train.labels)
        assert np.allclose(ours.predict_proba(queries), theirs.predict_proba(queries.astype(np.float64)), atol=1e-6)
        distances, rows = ours.kneighbors(queries)
        expected, expected_rows = theirs.kneighbors(queries.astype(np.float64))
        assert np.allclose(distances, expected, atol=1e-6) and np.array_equal(rows, expected_rows)
    distances, rows = ours.kneighbors()
    assert not (rows == np.arange(len(X))[:, None]).any()


def test_pipelines(data):
    pictures, classes = samples(data)
    pipeline = make_pipeline(FungiTransformer(str(ROOT / "demo"), objectives="kl"), Normalizer(), FungiKNNClassifier(3))
    scores = cross_val_score(pipeline, pictures, classes, cv=2)
    assert (scores > 0.2).all()
    search = GridSearchCV(pipeline, {"fungiknnclassifier__k": [1, 3], "fungitransformer__objectives": ["none", "kl"]}, cv=2).fit(pictures, classes)
    assert len(search.cv_results_["params"]) == 4
    again = pickle.loads(pickle.dumps(pipeline.fit(pictures, classes)))
    assert np.array_equal(again.predict(pictures), pipeline.predict(pictures))
