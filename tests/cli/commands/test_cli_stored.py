"""`analyze --store` prints the same whatever the history of ingests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from click.testing import CliRunner, Result
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

from rooflens.cli.group import main


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_reports_stand_in_the_order_of_their_paths(tmp_path: Path) -> None:
    """A store's reports are listed in the order of their paths, not of their ingests, and the exit code is 0."""
    store = tmp_path / "store"
    for number, name in enumerate(("c", "a", "b")):
        report = tmp_path / f"{name}.ncu-rep"
        write_report(report, ReportSpec([KernelSpec(f"{name}()", {"gpu__time_duration.sum": 1000.0 + number})]))
        assert _run("ingest", report, "--store", store).exit_code == 0
    done = _run("analyze", "--store", store, "--format", "json")
    assert (done.exit_code, [kernel["name"] for kernel in json.loads(done.stdout)["kernels"]]) == (0, ["a", "b", "c"])
    lines = _run("analyze", "--store", store, "--format", "csv").stdout.splitlines()[1:]
    assert [line.split(",")[2] for line in lines] == ["a", "b", "c"]


def test_damaged_reports_are_counted(tmp_path: Path) -> None:
    """If a file of one of two reports is cut, the other is shown, the loss is counted, and the exit code is 1."""
    store = tmp_path / "store"
    for name in ("a", "b"):
        write_report(tmp_path / f"{name}.ncu-rep", ReportSpec([KernelSpec(f"{name}()", {"m__a.sum": 1.0})]))
        assert _run("ingest", tmp_path / f"{name}.ncu-rep", "--store", store).exit_code == 0
    digest = hashlib.sha256((tmp_path / "a.ncu-rep").read_bytes()).hexdigest()
    first = store / "kernels" / f"{digest}.parquet"
    first.write_bytes(first.read_bytes()[:-20])
    done = _run("analyze", "--store", store, "--format", "json")
    assert done.exit_code == 1
    assert "1 of 2 reports could not be read" in done.stderr
    assert [kernel["name"] for kernel in json.loads(done.stdout)["kernels"]] == ["b"]
