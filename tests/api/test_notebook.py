"""Notebooks: the example notebook runs, and a cell is profiled through the stand-in for ncu."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.error import UsageError as MagicError
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from support import fake_ncu

import rooflens as rl

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start IPython in this process, and load the extension like a notebook."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # IPython replaces it
    made = InteractiveShell()
    made.run_line_magic("load_ext", "rooflens")
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


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


def test_a_cell_is_profiled_in_a_program_of_its_own(gpu_box: Path, shell: Any) -> None:
    """The magic runs the cell from a file, returns its report, and binds it to a name."""
    cell = "from pathlib import Path\nPath('ran').open('a').write(Path(__file__).read_text())\n"
    found = shell.run_cell_magic("rooflens", "--tier quick --name mine --output kept.ncu-rep", cell)
    assert isinstance(found, rl.Report)
    assert shell.user_ns["mine"] is found
    assert (gpu_box / "ran").read_text() == 2 * cell  # once without the profiler
    assert (gpu_box / "kept.ncu-rep").is_file()


def test_what_is_wrong_with_a_cell_is_told_in_lines(gpu_box: Path, shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing program, a missing permission and an unknown option give a message with a hint, no traceback."""
    assert gpu_box.is_dir()
    with pytest.raises(MagicError, match="unrecognized arguments: --nothing"):
        shell.run_cell_magic("rooflens", "--nothing", "pass")
    with pytest.raises(MagicError, match="ZeroDivisionError"):
        shell.run_cell_magic("rooflens", "", "1 / 0")
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "permission")
    with pytest.raises(MagicError, match="hint: "):
        shell.run_cell_magic("rooflens", "", "pass")
