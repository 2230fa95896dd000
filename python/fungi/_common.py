# SPDX-License-Identifier: Apache-2.0
"""What all calls share: threads, progress, warnings, paths."""
from __future__ import annotations

import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Union

import numpy as np

from fungi._errors import FungiWarning, InputError, MissingError

PathLike = Union[str, "os.PathLike[str]"]
ProgressFunction = Callable[[str, int, int, int], object]
Progress = Union[bool, ProgressFunction, None]

_threads = 0


def set_threads(threads: int) -> None:
    """The threads of all calls that are not told otherwise; 0: as many as `threads()` finds.

    >>> import fungi
    >>> fungi.set_threads(2)
    >>> fungi.threads()
    2
    >>> fungi.set_threads(0)
    """
    global _threads
    _threads = _checked_threads(threads)


def threads(stated: int = 0) -> int:
    """What calls use: what was stated, or set_threads(), or OMP_NUM_THREADS, or the physical cores that this process may
    run on (its affinity, a container's quota)."""
    from fungi import _fungi

    if stated:
        return _checked_threads(stated)
    if _threads:
        return _threads
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdigit() and int(wanted) > 0:
        return min(int(wanted), 1024)
    return int(_fungi.machine()["threads"])


def _checked_threads(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 1024:
        raise InputError(f"expected a whole number from 0 to 1024, found {count!r}", "threads", "0 means all cores")
    return count


def path(value: PathLike | None, name: str) -> str:
    """As a text; empty for None."""
    if value is None:
        return ""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise InputError(f"expected a path, found {type(value).__name__}", name, "give a str or a pathlib.Path")


_SIZE = re.compile(r"(\d{1,18})\s*([kmgtKMGT]?)(i?)[bB]?")


def size(value: int | str, name: str = "memory") -> int:
    """8GB, as the command line reads it (units are powers of 1024); a number is bytes."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise InputError(f"expected a size such as 8GB, found {value!r}", name, "give bytes as a number, or a text with a unit")
    return int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ")


def seconds(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value < float("inf"):
        raise InputError(f"expected seconds from 0 on, found {value!r}", name, "")
    return float(value)


def choice(value: str, name: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InputError(f"expected {', '.join(choices[:-1])} or {choices[-1]}, found {value!r}", name, "")
    return value


def count(value: int, name: str, least: int = 0) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise InputError(f"expected a whole number that is at least {least}, found {value!r}", name, "")
    if value >= 1 << 64:
        raise InputError(f"expected a number below 2^64, found {value}", name, "")
    return int(value)


def warn(notes: list[str], level: int = 3) -> None:
    for note in notes:
        warnings.warn(note, FungiWarning, stacklevel=level)


def _bar() -> Any:
    try:
        if "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets"):
            from tqdm.notebook import tqdm
        else:
            from tqdm.std import tqdm
    except ImportError:
        return None
    return tqdm


@contextmanager
def progress_function(wanted: Progress) -> Iterator[ProgressFunction | None]:
    """None: a tqdm bar where tqdm is there and somebody looks; True: a bar; False: nothing; a function is called with
    (stage, done, total, failed)."""
    if callable(wanted):
        yield wanted
        return
    if wanted not in (None, True, False):
        raise InputError(f"expected True, False or a function, found {wanted!r}", "progress", "")
    watched = wanted or (wanted is None and (sys.stderr.isatty() or "ipykernel" in sys.modules))
    tqdm = _bar() if watched else None
    if wanted and tqdm is None:
        raise MissingError("tqdm is not installed, and a bar is drawn by it", "progress", "pip install tqdm, or give a function")
    if tqdm is None:
        yield None
        return
    bar: Any = None

    def show(stage: str, done: int, total: int, failed: int) -> None:
        nonlocal bar
        if bar is None or bar.desc != stage:
            if bar is not None:
                bar.close()
            bar = tqdm(total=total, desc=stage, leave=False, delay=0 if wanted else 1)
        bar.total = total
        if failed:
            bar.set_postfix(failed=failed, refresh=False)
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()
