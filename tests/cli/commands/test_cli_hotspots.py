from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, write_report

from rooflens.analyzing import Analyzed, read_thresholds
from rooflens.cli.group import main
from rooflens.cli.wanted import Wanted
from rooflens.format import MISSING
from rooflens.model.analyze import analyze
from rooflens.model.catalogue import KERNEL
from rooflens.model.keys import first_key
from rooflens.model.records import AnalyzedReport, Hotspot, Kernel, Run
from rooflens.model.selecting import select

HOTTEST = {
    "samples": 80.0,
    "stall_wait": 10.0,
    "stall_long_scoreboard": 60.0,
    "warp_inst": 1000.0,
    "thread_inst": 8000.0,
}
LINES = (
    Hotspot(
        "line",
        "/src/a.cu",
        7,
        "kernel",
        text="y[i] = x[j];\x1b[2J",
        measures={**HOTTEST, "load_sectors": 400.0, "load_excess_sectors": 300.0},
    ),
    Hotspot("line", "C:\\src\\b.cuh", 9, "kernel", measures={"samples": 20.0, "warp_inst": 500.0}),
)
SASS = (Hotspot("sass", "/src/a.cu", 7, "kernel", 0x1E0, "LDG.E R2, [R4.64]", "y[i] = x[j];", HOTTEST),)
TOTALS = {
    "samples": 100.0,
    "warp_inst": 2000.0,
    "thread_inst": 30000.0,
    "load_sectors": 500.0,
    "load_excess_sectors": 300.0,
    "stall_wait": 20.0,
    "stall_long_scoreboard": 60.0,
    "local_sectors": 0.0,
}


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def kernel(name: str, index: int, **more: object) -> Kernel:
    """Make a kernel whose time grows with its index."""
    counters = {"duration_ns": 1000.0 * (index + 1)}
    return Kernel("d", "a.ncu-rep", index, name, name, "ok", counters=counters, **more)  # type: ignore[arg-type]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every report have a kernel with lines, a longer kernel with instructions only, and one with neither."""
    kernels = (
        kernel("with_lines", 0, hotspots=LINES + SASS, code_totals=TOTALS),
        kernel("with_sass", 1, hotspots=SASS, code_totals=TOTALS),
        kernel("bare", 2),
    )
    run_ = Run("d", "a.ncu-rep", 1, 3, synthetic=False)
    found = Analyzed((AnalyzedReport(run_, tuple(analyze(one) for one in kernels)),), read_thresholds(None))

    def load(wanted: Wanted) -> Analyzed:
        return replace(found, reports=select(found.reports, wanted.selection))

    monkeypatch.setattr("rooflens.cli.commands.hotspots.load_analyzed", load)


@pytest.mark.usefixtures("known")
def test_the_table_says_what_each_line_costs() -> None:
    """A row shows share of samples, stall, executed, threads, excess and text, without control characters."""
    done = run("hotspots", "x", "--kernel", "with_LINES")
    assert done.exit_code == 0
    heading, columns, first, second, *_ = done.stdout.splitlines()
    assert heading == "with_lines: 1.00 µs, 100 samples (result 0 of a.ncu-rep)"
    assert "local" not in columns
    assert first.split() == [
        "80",
        "%",
        "long_scoreboard,",
        *["75", "%"],  # 60 of the line's 80 samples
        "1.00",
        "k",
        "8.00",
        "300",
        "(75",
        "%)",
        "a.cu:7",
        *["y[i]", "=", "x[j];?[2J"],
    ]
    assert second.split() == ["20", "%", MISSING, "500", "0", MISSING, "b.cuh:9", MISSING]


@pytest.mark.usefixtures("known")
def test_the_longest_kernel_comes_first_each_with_what_it_has() -> None:
    """Without --by a kernel shows lines if it has any, else instructions; the other kernels are counted."""
    done = run("hotspots", "x")
    headings = [line for line in done.stdout.splitlines() if "result" in line]
    assert [heading.split()[0] for heading in headings] == ["with_sass:", "with_lines:"]
    assert "0x01e0  a.cu:7  LDG.E R2, [R4.64]" in done.stdout
    assert done.stderr == "1 kernel of 3 left out: no instructions recorded\n"


@pytest.mark.usefixtures("known")
def test_json_holds_lines_with_shares_and_totals() -> None:
    """JSON has full amounts, shares of samples and the kernel's totals; --top and --by select."""
    done = run("hotspots", "x", "--format", "json", "--by", "line", "--top", 1)
    (found,) = json.loads(done.stdout)["kernels"]
    (line,) = found["hotspots"]
    assert (found["name"], found["by"], found["totals"]["samples"]) == ("with_lines", "line", 100)
    assert found["key"] == first_key(kernel("with_lines", 0)) != ""
    assert (line["file"], line["line"], line["share_of_samples"], line["leading_stall"]) == (
        "/src/a.cu",
        7,
        0.8,
        "long_scoreboard",
    )
    assert line["measures"]["load_excess_sectors"] == 300


@pytest.mark.usefixtures("known")
def test_csv_tells_zero_from_missing() -> None:
    """A value that the kernel measured but the line lacks is 0; an unmeasured value is empty."""
    first, second, _ = csv.DictReader(io.StringIO(run("hotspots", "x", "--format", "csv").stdout))
    assert (first["name"], first["pc"], first["stall_long_scoreboard"]) == ("with_sass", "480", "60")
    assert (second["line"], second["local_sectors"], second["store_sectors"]) == ("7", "0", "")


def test_the_json_of_analyze_holds_all_of_them() -> None:
    """`kernels[].hotspots[]` has lines and instructions, with null for unknown shares."""
    written = KERNEL.json(analyze(kernel("k", 0, hotspots=LINES + SASS, code_totals=TOTALS)))["hotspots"]
    assert [(one["by"], one["pc"], one["share_of_samples"]) for one in written] == [
        ("line", None, 0.8),
        ("line", None, 0.2),
        ("sass", 480, 0.8),
    ]
    unsampled = KERNEL.json(analyze(kernel("k", 0, hotspots=SASS)))["hotspots"]
    assert unsampled[0]["share_of_samples"] is None


@pytest.mark.usefixtures("known")
def test_what_is_not_there_is_an_error() -> None:
    """An unknown kernel, and lines for kernels with instructions only, give exit code 1 and the next step."""
    unknown = run("hotspots", "x", "--kernel", "gemm")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert "no kernel matches `gemm`" in unknown.stderr
    lineless = run("hotspots", "x", "--kernel", "with_sass", "--by", "line", "--format", "json")
    assert (lineless.exit_code, lineless.stdout) == (1, "")
    assert "-lineinfo" in lineless.stderr


def test_a_report_without_instructions_names_the_command_that_records_them(tmp_path: Path) -> None:
    """Without data by instruction the exit code is 1, and the hint names ncu's section."""
    file = write_report(tmp_path / "a.ncu-rep", ReportSpec([KernelSpec("k()", {"gpu__time_duration.sum": 1000.0})]))
    done = run("hotspots", file)
    assert done.exit_code == 1
    assert "this kernel holds no samples or counts by instruction" in done.stderr
    assert "ncu --section SourceCounters" in done.stderr


def test_a_store_shows_what_its_reports_do(tmp_path: Path) -> None:
    """A store gives the same table as its report."""
    metrics = {"gpu__time_duration.sum": 1000.0, "smsp__pcsamp_sample_count": Instances({4096: 1, 4112: 3}, 4)}
    file = write_report(tmp_path / "a.ncu-rep", ReportSpec([KernelSpec("k()", metrics)]))
    assert run("ingest", file, "--store", tmp_path / "store").exit_code == 0
    shown = run("hotspots", file).stdout
    assert "75 %" in shown
    assert run("hotspots", "--store", tmp_path / "store").stdout == shown


def test_the_short_name_heads_and_the_full_one_is_said_once() -> None:
    """A kernel's tables are headed by its short name, with the full name below the first table."""
    report = Path(__file__).parents[3] / "fixtures" / "published" / "cutlass__384.ncu-rep"
    text = run("hotspots", report, "--top", 1).stdout
    heads = [line.partition(": ")[0] for line in text.splitlines() if "samples (result" in line]
    assert heads == ["B2bGemm<32x384x64>", "Gemm<128x96x64>", "Gemm<128x96x64>"]
    assert text.count("full name: cutlass::Kernel<") == 2
