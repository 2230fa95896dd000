# SPDX-License-Identifier: Apache-2.0
"""Better neighbours from a frozen transformer, without training: features from unsupervised gradients.

One call per verb of the command line (`fungi.extract`, `fungi.knn`, ...), objects (`Extractor`, `Store`, `Index`), and
estimators for scikit-learn (`fungi.sklearn`). Nothing but numpy is needed.
"""
from fungi import ray
from fungi._common import set_threads, threads
from fungi._errors import (Error, FungiWarning, InputError, InputTypeError, MissingError, NotFittedError, SampleError)
from fungi._evaluate import choose, cka, kmeans, knn, linear, retrieve
from fungi._extract import extract, merge, project
from fungi._extractor import Extractor, Failure, Features
from fungi._fungi import __version__
from fungi._search import Found, Index, index, pca, search
from fungi._segment import Segmenter, segment
from fungi._serve import Server, serve
from fungi._store import Store
from fungi._works import bench, data, export, info, inspect, models, plan, prompts, pull, report, reproduce

__all__ = [
    "Error", "Extractor", "Failure", "Features", "Found", "FungiWarning", "Index", "InputError", "InputTypeError", "MissingError",
    "NotFittedError", "SampleError", "Segmenter", "Server", "Store", "__version__", "bench", "choose", "cka", "data", "export", "extract", "index", "info", "inspect",
    "kmeans", "knn", "linear", "merge", "models", "pca", "plan", "project", "prompts", "pull", "ray", "report", "reproduce", "retrieve", "search", "segment",
    "serve", "set_threads", "threads",
]
