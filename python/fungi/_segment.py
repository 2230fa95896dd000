# SPDX-License-Identifier: Apache-2.0
"""In-context segmentation: the verb segment, and its memory as an object."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fungi import _fungi, _inputs
from fungi._common import PathLike, Progress, choice, count, path, progress_function, threads as threads_of, warn
from fungi._errors import Error, InputError
from fungi._evaluate import checked_seeds, joined_seeds
from fungi._extract import PROJECTIONS
from fungi._extractor import Failure
from fungi._models import pulled
from fungi._results import Segmentation, SegmentationScore, SegmentedPicture, made

LAYOUTS = ("auto", "folders", "voc", "ade20k", "camvid", "list")
_COUNTS = ("projection_dim", "seed", "memory", "epochs", "images", "k", "lists", "probes", "rerank")


def _size(size: int | str | Sequence[int]) -> tuple[int, int]:
    """A side, (height, width) or "384x640"."""
    parts = size.split("x") if isinstance(size, str) else [size] if isinstance(size, int) else list(size)
    numbers = [int(part) for part in parts if str(part).isdigit()]
    if len(numbers) != len(parts) or len(parts) not in (1, 2) or not all(0 < n <= 16384 for n in numbers):
        raise InputError(f"expected a side such as 512, or (height, width), found {size!r}", "size", "")
    return numbers[0], numbers[-1]


class Segmenter:
    """Segments pictures by a memory of patches, which `segment()` left in OUTPUT/bank.

    kind: "embedding" or "fungi"; left out, the best there is. model: only if it was moved.
    """

    def __init__(self, bank: PathLike, *, model: PathLike | None = None, kind: str | None = None, colours: bool = False,
                 threads: int = 0) -> None:
        choice(kind or "fungi", "kind", ("embedding", "fungi"))
        self._native = _fungi.Segmenter(path(bank, "bank"), pulled(path(model, "model")), kind or "", colours, threads_of(threads))

    @property
    def classes(self) -> list[str]:
        """Their names, or numbers where they have none."""
        return list(self._native.class_names())

    @property
    def kinds(self) -> list[str]:
        return list(self._native.kinds())

    def segment(self, picture: Any, id: str | None = None) -> NDArray[np.uint8]:
        """The class of each pixel [height, width]. picture: as for `Extractor`. What is drawn for it is drawn by its id, of a
        file its name without the extension."""
        mask: NDArray[np.uint8] = self._all(picture, id)[0]
        return mask

    def _all(self, picture: Any, id: str | None) -> Any:
        if id is None:
            named = isinstance(picture, (str, os.PathLike))
            id = os.path.splitext(os.path.basename(os.fspath(picture)))[0] if named else "picture"
        item = _inputs.item(picture, "image", "picture")
        return self._native.segment(_fungi.Samples([item], [id], "image"), id)


def _pictures(pictures: Sequence[Any], output: str, segmenter: Segmenter, colours: str) -> list[SegmentedPicture]:
    several = len(pictures) > 1

    def file(into: str, picture: Any, number: int) -> str:
        if not several:
            return into
        os.makedirs(into, exist_ok=True)
        name = os.path.basename(os.fspath(picture)) if isinstance(picture, (str, os.PathLike)) else f"{number:06d}"
        return os.path.join(into, os.path.splitext(name)[0] + ".png")

    done = []
    for number, picture in enumerate(pictures):
        try:
            values, shares, coloured = segmenter._all(picture, None)
            where = file(output, picture, number)
            _fungi.write_mask(where, values)
            if coloured is not None:
                with open(file(colours, picture, number), "wb") as out:
                    out.write(coloured)
            done.append(SegmentedPicture(picture, where, dict(shares), None, values))
        except Error as error:
            if not several:
                raise
            done.append(SegmentedPicture(picture, None, {}, str(error)))
    return done


def segment(data: Any, output: PathLike, *, model: PathLike | None = None, bank: PathLike | None = None,
            size: int | str | Sequence[int] | None = None, objectives: str | None = None, preset: str | None = None,
            layer: str | None = None, precision: str | None = None, facts: Mapping[str, Any] | None = None,
            projection: str | None = None, projection_dim: int | None = None, seed: int | None = None,
            seeds: Sequence[int] | None = None, memory: int | None = None, epochs: int | None = None, images: int | None = None, few_shot: bool = False, k: int | None = None,
            temperature: float | None = None, search: str | None = None, lists: int | None = None, probes: int | None = None,
            rerank: int | None = None, layout: str | None = None, split: str | None = None, test_split: str | None = None,
            class_names: PathLike | None = None, ignore: int | None = None, at_picture_size: bool = False, no_masks: bool = False,
            no_page: bool = False, shown: int | None = None, kind: str | None = None, colours: PathLike | None = None,
            threads: int = 0, progress: Progress = None) -> Any:
    """Labels every pixel by the nearest patches of pictures with masks, without training.

    data: the two data sets [train, test] (images/ beside masks/, Pascal VOC, ADE20K, CamVid, a .csv of pairs), with `model`:
    a memory, scores, masks and a page go into the folder `output`, and a `Segmentation` is returned. With `bank`, the memory
    of an earlier run (OUTPUT/bank): pictures, whose masks go into the file `output`, or a folder for several; then a
    `SegmentedPicture` of each is returned. Called again, it goes on where it was stopped.

    seeds: the whole once for each of them, into the folder where "{seed}" in `output` stands for it; an OverSeeds of each kind of
    features is returned.

    >>> import fungi
    >>> pairs = "tests/golden/segment/pairs"
    >>> found = fungi.segment([pairs + "/train", pairs + "/test"], folder + "/segmented", model="tests/golden/segment/model.safetensors",
    ...                       facts={"heads": 4, "family": "vit"}, size="40x56", k=7, memory=90)
    >>> [(score.features, score.columns) for score in found.results], found.rows
    ([('embedding', 32), ('fungi', 64)], 90)
    >>> one = fungi.segment([pairs + "/test/images/1.png"], folder + "/mask.png", bank=folder + "/segmented/bank")[0]
    >>> one.mask == folder + "/mask.png", one.values.dtype
    (True, dtype('uint8'))
    """
    stated = {"objectives": objectives, "preset": preset, "layer": layer, "precision": precision, "facts": facts,
              "projection": projection, "projection_dim": projection_dim, "seed": seed, "memory": memory, "epochs": epochs,
              "images": images, "k": k, "temperature": temperature, "search": search, "lists": lists, "probes": probes,
              "rerank": rerank, "layout": layout, "split": split, "test_split": test_split,
              "class_names": None if class_names is None else path(class_names, "class_names"), "ignore": ignore}
    stated = {name: value for name, value in stated.items() if value is not None}
    flags = {"few_shot": few_shot, "at_picture_size": at_picture_size, "no_masks": no_masks, "no_page": no_page}
    out = path(output, "output")
    if bank is not None:
        given = [*stated, *(["seeds"] if seeds is not None else []), *(name for name, on in flags.items() if on), *(["size"] if size is not None else []),
                 *(["shown"] if shown is not None else [])]
        if given:
            raise InputError("was decided when the memory was made", given[0], "leave it out")
        pictures = [data] if isinstance(data, (str, os.PathLike)) else list(data)
        if not pictures:
            raise InputError("expected pictures, found none", "data", "give at least one")
        segmenter = Segmenter(bank, model=model, kind=kind, colours=colours is not None, threads=threads)
        return _pictures(pictures, out, segmenter, path(colours, "colours"))
    for name, value in (("kind", kind), ("colours", colours)):
        if value is not None:
            raise InputError("is for pictures, which need a memory", name, "give bank=, OUTPUT/bank of a run")
    sets = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    if len(sets) != 2:
        raise InputError(f"expected the two data sets [train, test], found {len(sets)}", "data", "with bank= give pictures")
    if model is None:
        raise InputError("expected a model, found none", "model", "give a checkpoint of a vision transformer")
    if seeds and seed is not None:
        raise InputError("one seed and several cannot both be meant", "seeds", "leave out seed or seeds")

    def run(into: str, more: dict[str, Any]) -> Segmentation:
        return _test(sets, into, pulled(path(model, "model")), {**stated, **more}, flags, _size(512 if size is None else size),
                     6 if shown is None else shown, threads, progress)

    numbers = checked_seeds(seeds, [out], False, "")
    if not numbers:
        return run(out, {})
    each = [run(_fungi.with_seed(out, number), {"seed": number}).results for number in numbers]
    return [joined_seeds(numbers, kinds, ["miou", "miou_present", "miou_hungarian", "pixel_accuracy"]) for kinds in zip(*each)]


def _test(sets: list[Any], output: str, model: str, stated: dict[str, Any], flags: dict[str, bool], size: tuple[int, int], shown: int,
          threads: int, progress: Progress) -> Segmentation:
    if "facts" in stated:
        stated["facts"] = {str(key): str(value) for key, value in stated["facts"].items()}
    for name in _COUNTS:
        if name in stated:
            count(stated[name], name, 1 if name in ("epochs", "k", "lists", "probes", "rerank") else 0)
    if not stated.get("temperature", 1) > 0:
        raise InputError(f"expected a positive number, found {stated['temperature']!r}", "temperature", "")
    if not -1 <= stated.get("ignore", -1) <= 255:
        raise InputError(f"expected a number from -1 to 255, found {stated['ignore']}", "ignore", "-1: none")
    if stated.get("objectives", "none").split(":")[0] not in ("patch_simclr", "kl", "dino", "none"):
        raise InputError(f"expected patch_simclr, kl, dino or none, found {stated['objectives']}", "objectives", "")
    choice(stated.get("layout", "auto"), "layout", LAYOUTS)
    choice(stated.get("search", "auto"), "search", ("auto", "exact", "ivf"))
    choice(stated.get("projection", "sign"), "projection", PROJECTIONS[:5])
    height, width = size
    stated.update(height=height, width=width, masks=not flags["no_masks"], few_shot=flags["few_shot"],
                  at_picture_size=flags["at_picture_size"])
    with progress_function(progress) as show:
        out = _fungi.segment(path(sets[0], "data"), path(sets[1], "data"), output, model, stated, not flags["no_page"],
                             count(shown, "shown"), threads_of(threads), show)
    warn(out["notes"], 4)
    failed = {name: [Failure(*f) for f in out[name]] for name in ("failed_train", "failed_test")}
    warn([f"{f.id}: {f.reason}: left out" for f in [*failed["failed_train"], *failed["failed_test"]][:3]], 4)
    return made(Segmentation, {**out, **failed}, results=[SegmentationScore(**one) for one in out["results"]])
