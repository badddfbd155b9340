"""`import rooflens` costs next to nothing until something is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"altair", "click", "google", "IPython", "jinja2", "msgspec", "multiprocessing", "ncu_report", "numpy"}
HEAVY |= {"pandas", "polars", "pyarrow", "wcwidth", "subprocess", "typing", "vl_convert"}


def modules_after(code: str) -> set[str]:
    """Return the modules imported by a one-line program."""
    program = f"import sys; before = {{*sys.modules}}\n{code}\nprint(*({{*sys.modules}} - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_the_import_costs_nothing_of_others() -> None:
    """`import rooflens` imports only itself: no third-party module, and no slow standard module."""
    loaded = modules_after("import rooflens")
    assert loaded <= {"rooflens", "importlib", "__future__", "warnings"}
    assert not loaded & HEAVY


def test_names_are_known_before_they_are_imported() -> None:
    """`dir` lists all public names, and an unknown name raises an AttributeError."""
    assert not modules_after("import rooflens; assert {*rooflens.__all__} <= {*dir(rooflens)}") & HEAVY
    import rooflens  # noqa: PLC0415 - what the test is about

    with pytest.raises(AttributeError, match="no attribute `analyse`"):
        rooflens.analyse  # noqa: B018


def test_opening_imports_no_library_of_tables_or_charts(fixtures: Path) -> None:
    """Verdicts of a report need no pyarrow, pandas, Altair, NVIDIA module or IPython."""
    file = str(fixtures / "synthetic" / "attention.synthetic.ncu-rep")
    loaded = modules_after(f"import rooflens; rooflens.open({file!r})[0].verdict.sentence")
    assert not loaded & {"altair", "IPython", "ncu_report", "numpy", "pandas", "polars", "pyarrow", "vl_convert"}
