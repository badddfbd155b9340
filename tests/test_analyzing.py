from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rooflens.analyzing import analyze_paths, analyze_store
from rooflens.cli.group import main
from rooflens.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def report(fixtures: Path) -> Path:
    """Return a stored report of several kernels."""
    return fixtures / "synthetic" / "attention.synthetic.ncu-rep"


@pytest.fixture
def store(tmp_path: Path, report: Path) -> Path:
    """Return a store of that report, and of nothing else."""
    run("ingest", report, "--store", tmp_path / "store")
    return tmp_path / "store"


def run(*arguments: object) -> None:
    """Run a command, which must do well."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.stderr


def contents(store: Path) -> dict[str, tuple[bytes, int]]:
    """Return the bytes and the time of change of every file of a store."""
    files = [file for file in sorted(store.rglob("*")) if file.is_file()]
    return {str(file.relative_to(store)): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def test_a_script_needs_no_guard(report: Path, tmp_path: Path) -> None:
    """A script that analyzes at its top level reads the report: readers in child processes do not run it again."""
    script = tmp_path / "script.py"
    script.write_text(
        "from rooflens.analyzing import analyze_paths\n"
        f"found = analyze_paths([{str(report)!r}])\n"
        "print(len(found.reports), len(found.failures))\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert (done.stdout, done.stderr) == ("1 0\n", "")


def test_a_report_is_analyzed_in_five_lines(report: Path) -> None:
    """A notebook needs one import and one call to get from a file to verdicts."""
    (analyzed,) = analyze_paths([report]).reports
    longest = max(analyzed.analyses, key=lambda analysis: analysis.gpu_time_ns or 0.0)
    assert (analyzed.run.kernel_count, longest.verdict.bound) == (len(analyzed.analyses), "compute")


def test_a_store_holds_the_same_as_its_reports(report: Path, store: Path) -> None:
    """Analyses of a store equal those of the files it was made of."""
    assert analyze_store(store).reports == analyze_paths([report]).reports


def test_what_was_found_besides_is_data(report: Path, tmp_path: Path) -> None:
    """Damaged reports, other files and copies are told by the record, and nothing is printed."""
    (tmp_path / "notes.txt").write_text("no report")
    (tmp_path / "bad.ncu-rep").write_bytes(b"NVR\0")
    for name in ("one.ncu-rep", "two.ncu-rep"):
        (tmp_path / name).write_bytes(report.read_bytes())
    found = analyze_paths([tmp_path])
    assert len(found.reports) == 1
    assert [source for source, _ in found.failures] == [str(tmp_path / "bad.ncu-rep")]
    assert (found.skipped_count, [path.name for path in found.ignored]) == (1, ["notes.txt"])


def test_a_store_that_takes_no_verdicts_says_why(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An analysis is worth having where it cannot be kept: the reason stands beside it."""

    def refuse(*_: object) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr("rooflens.model.store.store.Store.put_rooflines", refuse)
    found = analyze_store(store, keep=True)
    assert found.reports
    assert str(found.not_kept) == "the disk is full"


def test_commands_that_read_write_nothing(store: Path) -> None:
    """`compare` and `history` leave every file of a store as it was; `analyze` writes the table `roofline`."""
    before = contents(store)
    for command in (("history", "--store", store), ("compare", store, store, "--anyway")):
        run(*command)
        assert contents(store) == before
    run("analyze", "--store", store)
    assert {name.partition("/")[0] for name in contents(store).keys() - before.keys()} == {"roofline"}


def test_analyzing_needs_no_terminal_and_no_chart() -> None:
    """Importing it loads neither click nor rich, and none of the data, chart or report libraries."""
    code = "import sys, rooflens.analyzing; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    heavy = {"click", "rich", "altair", "pandas", "pyarrow", "numpy", "ncu_report", "vl_convert", "jinja2", "google"}
    assert not loaded & heavy
