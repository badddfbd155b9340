"""Hold the house rules that a machine can check: who imports what, and what a command costs to start."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rooflens

PACKAGE = Path(rooflens.__file__).parent
HEAVY = {"altair", "pandas", "pyarrow", "numpy", "ncu_report", "vl_convert", "rich", "google", "plotext"}

MAY_IMPORT = {
    "cli.py": {
        "cli_collect",
        "cli_compare",
        "cli_history",
        "cli_load",
        "cli_predict",
        "cli_report",
        "cli_show",
        "errors",
        "doctor",
        "ingest",
        "model",
        "report",
        "workloads",
        "",
    },
    "cli_collect.py": {"collecting", "errors", "ingest", "report"},
    "cli_compare.py": {"cli_load", "cli_show", "errors", "model", "report"},
    "cli_expect.py": {"errors", "model", "report", "workloads"},
    "cli_history.py": {"cli_load", "cli_show", "errors", "ingest", "model", "report"},
    "cli_load.py": {"cli_show", "errors", "ingest", "model"},
    "cli_report.py": {"cli_expect", "cli_load", "cli_show", "errors", "ingest", "model", "report"},
    "cli_predict.py": {"cli_show", "errors", "model", "report"},
    "cli_show.py": {"errors", "ingest", "model", "report"},
    "collecting.py": {"errors", "ingest", "workloads"},
    "__main__.py": {"cli"},
    "doctor.py": {"errors", "ingest", "model", "workloads"},
    "errors.py": set(),
    "ingest": {"errors", "model"},
    "model": {"errors"},
    "report": {"errors", "model", ""},
    "workloads": {"errors"},
}
"""Stage -> the other stages it may import from; an empty name is the package's version."""

ONLY_IN = {
    "click": {
        "cli.py",
        "cli_collect.py",
        "cli_compare.py",
        "cli_expect.py",
        "cli_history.py",
        "cli_load.py",
        "cli_predict.py",
        "cli_report.py",
        "cli_show.py",
    },
    "ncu_report": {"ingest/reader.py"},
    "google": {"ingest/messages.py", "ingest/container.py"},
    "torch": {"workloads"},
    "altair": {"report"},
    "pandas": {"report"},
    "vl_convert": {"report"},
    "plotext": {"report/plot.py"},
    "jinja2": {"report"},
    "rich": {"cli_show.py", "report"},
    "pyarrow": {"model/schema.py", "model/store.py", "ingest/raw.py", "ingest/reader.py"},
    "multiprocessing": {"ingest/supervise.py"},
    "ctypes": {"ingest/passes.py"},
    "subprocess": {"ingest/processes.py", "workloads"},
}
"""Third-party or costly module -> the only places that may import it."""


def _modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "rooflens" else {node.module}
            )
    return found


def _stage(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_stages_import_only_in_the_direction_of_the_arrows(path: Path) -> None:
    """A module imports from its own stage and from those the table allows."""
    stage = _stage(path)
    for name in _imports(path):
        head, _, rest = name.partition(".")
        if head != "rooflens":
            continue
        target = rest.partition(".")[0]
        target = "" if target == "__version__" else target
        assert target in MAY_IMPORT[stage] | {stage.removesuffix(".py")}, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_each_dependency_has_its_one_place(path: Path) -> None:
    """Third-party modules are imported only where the table says."""
    place = path.relative_to(PACKAGE).as_posix()
    for name in _imports(path):
        allowed = ONLY_IN.get(name.partition(".")[0])
        if allowed is not None:
            assert any(place == one or place.startswith(f"{one}/") for one in allowed), f"{place} imports {name}"


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_stay_small(path: Path) -> None:
    """No module grows over 400 lines: one that does is about two things."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def _modules_after(*arguments: str) -> set[str]:
    code = f"import sys; sys.argv = ['rooflens', *{arguments!r}]\nfrom rooflens.cli import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\nprint('MODULES', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return {name.partition(".")[0] for name in done.stdout.rpartition("MODULES")[2].split()}


def test_help_imports_nothing_heavy() -> None:
    """`rooflens --help` starts without any of the data, chart or report libraries."""
    assert not _modules_after("--help") & HEAVY


def test_help_of_a_command_imports_nothing_heavy() -> None:
    """The help of a command is as cheap as that of the group."""
    assert not _modules_after("report", "--help") & HEAVY


def test_analyze_needs_no_chart_library(fixtures: Path) -> None:
    """The table on the terminal comes without altair, pandas or pyarrow."""
    assert not _modules_after("analyze", str(fixtures)) & {"altair", "pandas", "pyarrow", "vl_convert"}
