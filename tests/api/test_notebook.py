"""Notebooks: the example notebook runs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.filterwarnings("default")  # what the kernel's own libraries warn of is not ours
def test_the_notebook_of_the_examples_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of the example runs; reports show rows, charts pictures without script; outputs are not stored."""
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent))
    notebook = nbformat.read(EXAMPLES / "reports.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    shown = [output.data for cell in cells for output in cell.outputs if "data" in output]
    assert "image/svg+xml;base64" in shown[0]["text/html"]
    assert any("image/svg+xml" in data for data in shown)
    assert not any("<script" in data.get("text/html", "") for data in shown)
