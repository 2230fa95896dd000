# SPDX-License-Identifier: Apache-2.0
"""What docstrings and documents show works as shown."""
from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re

import pytest

import fungi
from conftest import ROOT

MODULES = [m.name for m in pkgutil.iter_modules(fungi.__path__) if m.name not in ("_fungi", "__main__")]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def examples():
    for name in MODULES:
        for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(f"fungi.{name}")):
            if test.examples:
                yield pytest.param(test, id=test.name)


@pytest.mark.parametrize("example", list(examples()))
def test_docstrings(example, shown, tmp_path):
    example.globs = {"train": shown.train, "test": shown.test, "folder": str(tmp_path)}
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=said.append)
    assert failed == 0, "".join(said)


def test_every_function_has_an_example():
    for name in fungi.__all__:
        thing = getattr(fungi, name)
        if callable(thing) and not (isinstance(thing, type) and issubclass(thing, (Exception, tuple))):
            assert thing.__doc__, name


@pytest.mark.parametrize("document, least", [("docs/python.md", 5), ("README.md", 1)])
def test_documents(document, least, data, tmp_path, monkeypatch):
    """Their blocks, one after the other in a folder with `pictures` and `model`."""
    text = (ROOT / document).read_text()
    (tmp_path / "pictures").symlink_to(data.folder / "pictures")
    (tmp_path / "model").symlink_to(ROOT / "demo")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if document != "README.md" or "import fungi" in block]
    assert len(blocks) >= least
    for block in blocks:
        needs = re.match(r"# needs (\S+)", block)
        if needs and importlib.util.find_spec(needs[1].replace("scikit-learn", "sklearn")) is None:
            continue
        exec(compile(block, document, "exec"), names)  # noqa: S102
