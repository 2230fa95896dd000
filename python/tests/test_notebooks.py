# SPDX-License-Identifier: Apache-2.0
"""The notebooks of examples/ run, and say what they say there."""
from __future__ import annotations

import os

import pytest

import fungi
from conftest import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")


def texts(notebook):
    """What cells printed; figures depend on the processor, so numbers are left out."""
    said = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.get("text")
            said.append(sorted(set(output.get("data", {})) - {"image/jpeg"}) or "".join(c for c in output.text if not (c.isdigit() or c in ". ")))
    return said


@pytest.mark.parametrize("name", ["better_neighbours", "texts", "what_gradients_add", "pipeline"])
def test_notebook(name, monkeypatch):
    if name == "pipeline":
        pytest.importorskip("sklearn")
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(fungi.__path__[0]))
    notebook = nbformat.read(ROOT / f"examples/{name}.ipynb", as_version=4)
    before = texts(notebook)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT / "examples")}}).execute()
    after = texts(notebook)
    assert len(before) == len(after)
    for one, other in zip(before, after):
        assert (one == other) or isinstance(one, str), name
