from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from msgspec.structs import asdict
from support.ncu_rep_writer import Instances, KernelSpec, MetricValue, ReportSpec, write_report

from rooflens.analyzing import Missing, analyze_paths, analyze_store
from rooflens.cli.group import main
from rooflens.errors import InputError
from rooflens.ingest.load import Loaded, load_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.model.analyze import analyze_all
from rooflens.model.records import Analysis, Kernel
from rooflens.model.roofline.calibrations import calibrations_folder
from rooflens.report.words.verdict import verdict_sentence


@pytest.fixture
def report(fixtures: Path) -> Path:
    """Return a stored report of several kernels."""
    return fixtures / "synthetic" / "attention.synthetic.ncu-rep"


@pytest.fixture
def store(tmp_path: Path, report: Path) -> Path:
    """Return a store of that report only."""
    run("ingest", report, "--store", tmp_path / "store")
    return tmp_path / "store"


def with_instructions(folder: Path) -> Path:
    """Write a report of one small kernel with three instructions."""
    metrics: dict[str, MetricValue] = {
        "gpu__time_duration.sum": 2000.0,
        "launch__waves_per_multiprocessor": 0.2,
        "launch__grid_size": 4,
        "launch__block_size": 40,
        "smsp__pcsamp_sample_count": Instances({4096: 2, 4112: 7}, 9),
        "inst_executed": Instances({4096: 4, 4112: 2, 4128: 1}, 7),
    }
    return write_report(folder / "code.ncu-rep", ReportSpec([KernelSpec("kernel()", metrics)]))


def run(*arguments: object) -> None:
    """Run a command that must succeed."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.stderr


def contents(store: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and modification time of every file of a store."""
    files = [file for file in sorted(store.rglob("*")) if file.is_file()]
    return {str(file.relative_to(store)): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def test_a_script_needs_no_guard(report: Path, tmp_path: Path) -> None:
    """A script that analyzes at top level reads the report: reader processes do not run it again."""
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
    """A notebook gets from a file to verdicts with one import and one call."""
    (analyzed,) = analyze_paths([report]).reports
    longest = max(analyzed.analyses, key=lambda analysis: analysis.gpu_time_ns or 0.0)
    assert (analyzed.run.kernel_count, longest.verdict.bound) == (len(analyzed.analyses), "compute")


def test_a_store_holds_the_same_as_its_reports(report: Path, store: Path) -> None:
    """A store's analyses equal those of its files."""
    assert analyze_store(store).reports == analyze_paths([report]).reports


def test_a_store_holds_what_is_known_of_instructions(tmp_path: Path) -> None:
    """Hot spots, sums over instructions and estimated speed-ups come back from a store unchanged."""
    report = with_instructions(tmp_path)
    run("ingest", report, "--store", tmp_path / "store")
    ((read,),) = (found.analyses for found in analyze_paths([report]).reports)
    ((stored,),) = (found.analyses for found in analyze_store(tmp_path / "store").reports)
    assert stored.kernel == read.kernel
    assert len(stored.kernel.hotspots) == 4
    assert stored.kernel.code_totals == {"samples": 9, "warp_inst": 7}


def test_a_store_holds_the_findings_of_its_verdicts(tmp_path: Path) -> None:
    """The table `findings` has a row per kernel and finding, with evidence and places."""
    run("ingest", with_instructions(tmp_path), "--store", tmp_path / "store")
    (report,) = analyze_store(tmp_path / "store", keep=True).reports
    (file,) = (tmp_path / "store" / "findings").iterdir()
    rows = pq.read_table(file).to_pylist()
    findings = report.analyses[0].findings
    assert findings
    assert [(row["id"], row["severity"], row["gain"], row["move"]) for row in rows] == [
        (finding.id, finding.severity, finding.gain and asdict(finding.gain), finding.move) for finding in findings
    ]
    assert [[number["value"] for number in row["evidence"]] for row in rows] == [
        [number.value for number in finding.evidence] for finding in findings
    ]
    assert [[(place["pc"], place["share"]) for place in row["where"]] for row in rows] == [
        [(place.hotspot.pc, place.share) for place in finding.where] for finding in findings
    ]


def test_what_was_found_besides_is_data(report: Path, tmp_path: Path) -> None:
    """Damaged reports, other files and copies are in the result, and nothing is printed."""
    (tmp_path / "notes.txt").write_text("no report")
    (tmp_path / "bad.ncu-rep").write_bytes(b"NVR\0")
    for name in ("one.ncu-rep", "two.ncu-rep"):
        (tmp_path / name).write_bytes(report.read_bytes())
    found = analyze_paths([tmp_path])
    assert len(found.reports) == 1
    assert [source for source, _ in found.failures] == [str(tmp_path / "bad.ncu-rep")]
    assert (found.skipped_count, [path.name for path in found.ignored]) == (1, ["notes.txt"])


def test_a_store_that_takes_no_verdicts_says_why(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the analysis cannot be written to the store, it is returned with the reason."""

    def refuse(*_: object) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr("rooflens.model.store.dataset.Store.keep", refuse)
    found = analyze_store(store, keep=True)
    assert found.reports
    assert str(found.not_kept) == "the disk is full"
    said = CliRunner().invoke(main, ["analyze", "--store", str(store)]).stderr
    assert ("verdicts are not kept" in said, "wrote" in said) == (True, False)


def test_commands_that_read_write_nothing(store: Path) -> None:
    """`compare` changes no file of a store; `analyze` writes the tables of verdicts."""
    before = contents(store)
    for command in (("compare", store, store, "--anyway"),):
        run(*command)
        assert contents(store) == before
    run("analyze", "--store", store)
    assert {name.partition("/")[0] for name in contents(store).keys() - before.keys()} == {
        "verdicts",
        "roofline",
        "findings",
    }


def test_analyzing_needs_no_terminal_and_no_chart() -> None:
    """Importing it loads neither click nor wcwidth, nor any data, chart or report library."""
    code = "import sys, rooflens.analyzing; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    heavy = {"click", "wcwidth", "altair", "pandas", "pyarrow", "numpy", "ncu_report", "vl_convert", "jinja2", "google"}
    assert not loaded & heavy


# A fault in one report, sidecar or calibration must not affect the others.


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Loaded:
    """Read two reports from a folder of their own: one with a single kernel, one with several."""
    folder = tmp_path_factory.mktemp("two")
    shutil.copy(fixtures / "synthetic" / "attention.synthetic.ncu-rep", folder / "several.ncu-rep")
    return load_reports(find_inputs([str(with_instructions(folder)), str(folder / "several.ncu-rep")]).jobs)


@pytest.fixture
def pair(two: Loaded, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Return the two reports without reading them again; files beside them are removed at the end."""
    monkeypatch.setattr("rooflens.analyzing.load_reports", lambda *_: two)
    first, second = (Path(run.source) for run, _ in two.reports)
    yield first, second
    for beside in first.parent.glob("*.json"):
        shutil.rmtree(beside) if beside.is_dir() else beside.unlink()


def as_text(text: str) -> Callable[[Path], object]:
    """Make a function that writes a text."""
    return lambda path: path.write_text(text, encoding="utf-8")


def as_large(path: Path) -> None:
    """Make a sparse file of 5 GiB."""
    with path.open("wb") as stream:
        stream.truncate(5 << 30)


def as_forbidden(path: Path) -> None:
    """Make a link to itself, which not even root can open."""
    path.symlink_to(path)


BAD: dict[str, Callable[[Path], object]] = {
    "empty": as_text(""),
    "no object": as_text("[]"),
    "other keys": as_text('{"a": 1}'),
    "deep": as_text('{"a": ' * 100_000),
    "deep and closed": as_text('{"a": ' * 500 + "1" + "}" * 500),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "large": as_large,
    "a loop": as_forbidden,
}
SIDECAR = {
    "schema_version": 1,
    "wall_ns": 100,
    "kernel_ns": 50,
    "launches": 1,
    "source": "wall",
    "iterations": 1,
    "launch_counts": [],
    "gap_share": 0.5,
}
BAD_SIDECARS = {
    **BAD,
    "no iterations": as_text(json.dumps({**SIDECAR, "iterations": 0})),
    "beyond measure": as_text(json.dumps(SIDECAR).replace("100", str(10**400))),
    "more than 63 bits": as_text(json.dumps({**SIDECAR, "launches": 2**63})),
}


@pytest.mark.parametrize("make", BAD_SIDECARS.values(), ids=BAD_SIDECARS)
def test_a_bad_sidecar_costs_a_warning(pair: tuple[Path, Path], make: Callable[[Path], object]) -> None:
    """With anything under the name of an un-profiled run, its report is analyzed without it, the others normally."""
    make(pair[0].with_name("code.unprofiled.json"))
    found = analyze_paths(pair)
    assert ([report.unprofiled for report in found.reports], found.failures) == ([None, None], ())
    ((source, error),) = found.warnings
    assert source == str(pair[0])
    assert "code.unprofiled.json" in str(error)
    assert error.hint


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_a_bad_calibration_costs_a_warning(pair: tuple[Path, Path], make: Callable[[Path], object]) -> None:
    """With anything under the name of a calibration, reports are analyzed without it."""
    folder = calibrations_folder()
    folder.mkdir(parents=True, exist_ok=True)
    bad = folder / "bad.json"
    make(bad)
    try:
        found = analyze_paths(pair)
    finally:
        shutil.rmtree(folder)
    assert (len(found.reports), found.failures) == (2, ())
    ((source, error),) = found.warnings
    assert source == str(folder)
    assert "bad.json" in str(error)


def test_warnings_are_printed(pair: tuple[Path, Path]) -> None:
    """A command reports such faults on stderr, with a hint, and succeeds."""
    pair[0].with_name("code.unprofiled.json").write_text("{}", encoding="utf-8")
    done = CliRunner().invoke(main, ["analyze", *map(str, pair)])
    assert done.exit_code == 0
    assert "warning: " in done.stderr
    assert "delete it, or collect again" in done.stderr


def test_a_bug_costs_the_kernel_that_meets_it(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception while analyzing a kernel fails only that kernel, with the place and whom to tell."""
    whole = analyze_paths(pair)
    victim = whole.reports[1].analyses[0].kernel.name

    def breaking(kernels: Sequence[Kernel], *given: Any, **how: bool) -> list[Analysis]:
        if any(kernel.name == victim for kernel in kernels):
            raise ZeroDivisionError("float division by zero")
        return analyze_all(kernels, *given, **how)

    monkeypatch.setattr("rooflens.analyzing.analyze_all", breaking)
    found = analyze_paths(pair)
    failed = [analysis for report in found.reports for analysis in report.analyses if analysis.kernel.failed]
    assert {analysis.kernel.name for analysis in failed} == {victim}
    assert found.failures == ()
    reason = failed[0].kernel.status_reason or ""
    assert "ZeroDivisionError at test_analyzing.py:" in reason
    assert "bug in rooflens" in reason
    assert reason in verdict_sentence(failed[0])
    kept = [[a for a in report.analyses if a.kernel.name != victim] for report in whole.reports]
    assert [[a for a in report.analyses if a.kernel.name != victim] for report in found.reports] == kept


def test_a_bug_that_a_whole_report_meets_costs_that_report(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception outside any kernel makes the report unreadable, and the error calls it a bug."""

    def breaking(*_: object) -> None:
        raise OverflowError("too large")

    monkeypatch.setattr("rooflens.model.program.matching.place", breaking)  # called only with an un-profiled run
    pair[0].with_name("code.unprofiled.json").write_text(json.dumps(SIDECAR), encoding="utf-8")
    found = analyze_paths(pair)
    assert [report.run.source for report in found.reports] == [str(pair[1])]
    ((source, error),) = found.failures
    assert source == str(pair[0])
    assert "OverflowError" in str(error)
    assert "please report" in error.hint


@pytest.mark.parametrize(
    ("names", "option"),
    [
        (("gemm<float, (int)128>",), "--kernel gemm"),
        (("ns::(anonymous namespace)::gemm<a::b<1>>", "gemm<double>"), "--kernel gemm"),
        (("at::native::relu<float>", "copy"), "--kernel 'regex:^(relu|copy)$'"),
        (("evil'; rm -rf /",), "--launch-count N"),
        (tuple(f"k{number}" for number in range(99)), f"--kernel 'regex:^({'|'.join(f'k{n}' for n in range(12))})$'"),
    ],
)
def test_missing_kernels_are_asked_for_by_names_that_ncu_matches(names: tuple[str, ...], option: str) -> None:
    """The suggested filter has function names without namespaces, template arguments and parameters, like ncu's."""
    assert Missing("x.ncu-rep", names).option == option
