# SPDX-License-Identifier: Apache-2.0
"""The notebooks of examples/ run, and say what they say there."""
from __future__ import annotations

import os

import pytest

import fungi
from conftest import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")


def said(notebook):
    """What each cell shows: the kinds of its results, and what it printed, which comes in pieces of any size. Figures depend
    on the processor, so numbers are left out."""
    cells = []
    for cell in notebook.cells:
        kinds, printed = [], ""
        for output in cell.get("outputs", []):
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.get("text")
            if "data" in output:
                kinds.append(sorted(set(output["data"]) - {"image/jpeg"}))
            else:
                printed += output.text
        cells.append((kinds, "".join(c for c in printed if c.isalpha())))
    return cells


@pytest.mark.parametrize("name", ["better_neighbours", "texts", "what_gradients_add", "pipeline"])
def test_notebook(name, monkeypatch):
    if name == "pipeline":
        pytest.importorskip("sklearn")
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(fungi.__path__[0]))
    notebook = nbformat.read(ROOT / f"examples/{name}.ipynb", as_version=4)
    before = said(notebook)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT / "examples")}}).execute()
    for cell, (shown, now) in enumerate(zip(before, said(notebook), strict=True)):
        assert shown == now, f"{name}, cell {cell}"
