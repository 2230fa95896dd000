# SPDX-License-Identifier: Apache-2.0
"""What the verbs give: the fields of the command line's --json under the same names, and arrays besides."""
from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fungi._extractor import Failure

T = TypeVar("T")


def made(kind: type[T], given: dict[str, Any], **more: Any) -> T:
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in {**given, **more}.items() if name in names})


@dataclass
class KnnScore:
    """Of one combination of blocks."""

    features: str
    accuracy: float
    mean_per_class_accuracy: float
    standard_error: float
    columns: int
    k: int
    train_rows: int
    test_rows: int
    pca: int
    pca_applied: bool
    reduce: str
    reduced: bool  # by a PCA or otherwise
    shots: int
    sampling: str
    exact_gradients: bool
    auc: float | None
    predicted: NDArray[np.int64] = field(repr=False)  # a class of the training store for each test row


@dataclass
class LinearScore:
    """Of one combination of blocks."""

    features: str
    accuracy: float
    standard_error: float
    mean_per_class_accuracy: float
    columns: int
    train_rows: int
    test_rows: int
    lambda_: float
    validation: list[float]
    pca: int
    pca_applied: bool
    reduce: str
    reduced: bool  # by a PCA or otherwise
    shots: int
    converged: bool
    predicted: NDArray[np.int64] = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)


@dataclass
class KMeansScore:
    """Of one combination of blocks."""

    features: str
    overlap: float
    clusters: int
    rows: int
    pca: int
    pca_applied: bool
    reduce: str
    reduced: bool  # by a PCA or otherwise
    assignment: NDArray[np.uint32] = field(repr=False)  # of each row
    label_of_cluster: NDArray[np.int64] = field(repr=False)  # -1: none
    centres: NDArray[np.float32] = field(repr=False)


@dataclass
class RetrievalScore:
    """Of one combination of blocks and one notion of what is relevant."""

    features: str
    relevance: str
    map: float
    precision_at: list[int]
    precision: list[float]
    queries: int
    queries_left_out: int
    notes: list[str]
    pca: int
    pca_applied: bool
    reduce: str
    reduced: bool  # by a PCA or otherwise
    exact_gradients: bool
    average_precision: NDArray[np.float64] = field(repr=False)  # of each query; NaN: it has no relevant rows


@dataclass
class OverSeeds:
    """One evaluation over several seeds: the mean and the deviation of each number, and the scores themselves."""

    features: str
    seeds: list[int]
    mean: dict[str, Any]
    deviation: dict[str, Any]
    by_seed: list[Any] = field(repr=False)
    relevance: str | None = None


@dataclass
class WeightedFeatures:
    """Blocks with their weights, and what they gain over the first block alone."""

    features: str
    accuracy: float
    gain: float
    gain_error: float


@dataclass
class Choice:
    """Which blocks help on a store's own rows, and with how much weight."""

    rows: int
    k: int
    first: WeightedFeatures
    chosen: WeightedFeatures
    equal: WeightedFeatures | None
    expected_accuracy: float
    expected_gain: float
    expected_error: float
    best_of_blocks: list[WeightedFeatures]
    notes: list[str]


@dataclass
class StableFeatures:
    """Blocks with their weights: neighbours that two draws agree on, beside those of the first block, less disputed ones."""

    features: str
    agreed: float
    disputed: float
    gain: float
    gain_error: float


@dataclass
class StableChoice:
    """Which blocks two draws agree on, and with how much weight."""

    rows: int
    k: int
    chosen: StableFeatures
    best_of_blocks: list[StableFeatures]
    notes: list[str]

    @property
    def gain(self) -> float:
        return self.chosen.gain


@dataclass
class Cka:
    """Linear CKA between every two blocks."""

    blocks: list[str]
    cka: NDArray[np.float64]


@dataclass
class Extraction:
    """What a run of extract() did. `store` is ready where `complete`."""

    store: str
    rows: int
    failed: int
    waiting: int
    missing: int
    complete: bool
    computed: int
    dropped: int
    seconds: float
    pipeline: str
    ignored: dict[str, int]
    notes: list[str]
    failures: list[Failure] = field(repr=False)  # of this run
    stages: list[tuple[str, float, int]] = field(repr=False)  # name, seconds of all threads, calls


@dataclass
class ExtractionPlan:
    """What extract(dry_run=True) found: nothing was written."""

    kind: str
    samples: int
    to_compute: int
    to_drop: int
    classes: int
    pipeline: str
    views_per_sample: int
    model: str
    precision: str
    ignored: dict[str, int]
    notes: list[str]


@dataclass
class Merge:
    """What merge() joined."""

    store: str
    parts: int
    rows: int
    failed: int
    complete: bool


@dataclass
class Projection:
    """What a run of project() did."""

    store: str
    rows: int
    failed: int
    missing: int
    complete: bool
    computed: int
    dropped: int


@dataclass
class PcaFile:
    store: str
    file: str
    rows: int
    columns: int


@dataclass
class PcaResult:
    """A PCA in a folder, and the rows of stores through it."""

    features: str
    input_columns: int
    dim: int
    fitted_rows: int
    explained_variance_share: float
    files: list[PcaFile]


@dataclass
class IndexResult:
    """An index that was built, and how much of the exact answer it finds."""

    index: str
    store: str
    kind: str
    metric: str
    features: str
    rows: int
    columns: int
    pca: int
    k: int
    sample: int
    recall: float
    build_seconds: float
    recall_seconds: float
    bytes: int


@dataclass
class SegmentationScore:
    """Of one kind of features: "embedding", or "fungi" with gradients beside it."""

    features: str
    columns: int
    miou: float
    miou_present: float
    miou_hungarian: float
    pixel_accuracy: float
    recall: float
    exact_search: bool
    classes: dict[str, dict[str, float]]  # iou and pixels of each
    confusion: NDArray[np.uint64] = field(repr=False)  # pixels [true class, predicted class]


@dataclass
class Segmentation:
    """What segment() found on pictures with masks."""

    results: list[SegmentationScore]
    test_pictures: int
    rows: int
    settings: dict[str, Any] = field(repr=False)
    failed_train: list[Failure]
    failed_test: list[Failure]
    notes: list[str]
    ids: list[str] = field(repr=False)  # of the pictures that were measured
    picture_miou: NDArray[np.float64] = field(repr=False)  # [pictures, kinds of features]


@dataclass
class SegmentedPicture:
    """A picture segmented by a memory. `mask` is the file; where `failed` says why, there is none."""

    picture: Any
    mask: str | None
    shares: dict[str, float]  # of the pixels
    failed: str | None = None
    values: NDArray[np.uint8] | None = field(default=None, repr=False)  # the class of each pixel


@dataclass
class Neighbour:
    id: str
    row: int
    value: float  # a distance, or a similarity
    label: int | None
    class_name: str | None
    text: str | None = None


@dataclass
class Answer:
    """The neighbours of one query, the nearest first; or why there are none."""

    query: Any
    kind: str  # "image", "audio", "text" or "row"
    neighbours: list[Neighbour]
    error: str | None = None


@dataclass
class SearchResult:
    searched: str
    features: str
    metric: str
    queries: list[Answer]
    notes: list[str]


@dataclass
class TensorInfo:
    name: str
    type: str
    shape: list[int]


@dataclass
class Inspection:
    """What a checkpoint is and how it would be run."""

    path: str
    format: str
    tensors: int
    architecture: dict[str, str]
    default_layer: str
    notes: list[str]
    tensor_list: list[TensorInfo] = field(repr=False)
