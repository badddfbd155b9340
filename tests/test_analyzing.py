from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, write_report

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


def with_instructions(folder: Path) -> Path:
    """Write a report of one small kernel with three instructions."""
    metrics = {
        "gpu__time_duration.sum": 2000.0,
        "launch__waves_per_multiprocessor": 0.2,
        "launch__grid_size": 4,
        "launch__block_size": 40,
        "smsp__pcsamp_sample_count": Instances({4096: 2, 4112: 7}, 9),
        "inst_executed": Instances({4096: 4, 4112: 2, 4128: 1}, 7),
    }
    return write_report(folder / "code.ncu-rep", ReportSpec([KernelSpec("kernel()", metrics)]))


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


def test_a_store_holds_what_is_known_of_instructions(tmp_path: Path) -> None:
    """Hot spots, the sums over all instructions and estimated speed-ups come back from a store as they were read."""
    report = with_instructions(tmp_path)
    run("ingest", report, "--store", tmp_path / "store")
    ((read,),) = (found.analyses for found in analyze_paths([report]).reports)
    ((stored,),) = (found.analyses for found in analyze_store(tmp_path / "store").reports)
    assert stored.kernel == read.kernel
    assert len(stored.kernel.hotspots) == 4
    assert stored.kernel.code_totals == {"samples": 9, "warp_inst": 7}


def test_a_store_holds_the_findings_of_its_verdicts(tmp_path: Path) -> None:
    """The table `findings` has a row for each finding of each kernel, with its evidence and its places."""
    run("ingest", with_instructions(tmp_path), "--store", tmp_path / "store")
    (report,) = analyze_store(tmp_path / "store", keep=True).reports
    (file,) = (tmp_path / "store" / "findings").iterdir()
    rows = pq.read_table(file).to_pylist()
    findings = report.analyses[0].findings
    assert findings
    assert [(row["id"], row["severity"], row["speedup_up_to"], row["move"]) for row in rows] == [
        (finding.id, finding.severity, finding.speedup_up_to, finding.move) for finding in findings
    ]
    assert [[number["value"] for number in row["evidence"]] for row in rows] == [
        [number.value for number in finding.evidence] for finding in findings
    ]
    assert [[(place["pc"], place["share"]) for place in row["where"]] for row in rows] == [
        [(place.hotspot.pc, place.share) for place in finding.where] for finding in findings
    ]


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
    """`compare` and `history` leave every file of a store as it was; `analyze` writes the tables of verdicts."""
    before = contents(store)
    for command in (("history", "--store", store), ("compare", store, store, "--anyway")):
        run(*command)
        assert contents(store) == before
    run("analyze", "--store", store)
    assert {name.partition("/")[0] for name in contents(store).keys() - before.keys()} == {"roofline", "findings"}


def test_analyzing_needs_no_terminal_and_no_chart() -> None:
    """Importing it loads neither click nor rich, and none of the data, chart or report libraries."""
    code = "import sys, rooflens.analyzing; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    heavy = {"click", "rich", "altair", "pandas", "pyarrow", "numpy", "ncu_report", "vl_convert", "jinja2", "google"}
    assert not loaded & heavy
