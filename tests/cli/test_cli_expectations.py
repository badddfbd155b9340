from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import samples
from support.ncu_rep_writer import KernelSpec, ReportSpec, SessionSpec, write_report

from rooflens.cli.expectations import find_expected
from rooflens.cli.group import main

PROGRAM = f"ncu --nvtx-include rooflens /cache/saxpy-sm_90-{'0123456789abcdef' * 4}"
KERNEL = KernelSpec("saxpy(int, float *)", {"gpu__time_duration.sum": 3000.0})


def report_of(folder: Path, command_line: str) -> Path:
    """Write a small report with a command line."""
    session = SessionSpec(command_line=command_line)
    return write_report(folder / "one.ncu-rep", ReportSpec([KERNEL], session))


@pytest.mark.parametrize(
    ("options", "case", "flop", "bound", "iterations"),
    [
        ("--n 65536 --iterations 1", "n16", 131_072, "overhead", 1),
        ("--n 1000 --check 0 --iterations 7", "", 2000, None, 7),
    ],
)
def test_a_workload_s_report_is_predicted(
    options: str, case: str, flop: float, bound: str | None, iterations: int
) -> None:
    """A bundled program's command line gives its case; with other sizes, only formulas without case or limiter."""
    run = samples.run(command_line=f"{PROGRAM} {options}")
    (prediction,) = find_expected(samples.reports([run, samples.run(digest="b" * 64)], []), None).reports.values()
    assert (prediction.operation, prediction.case, prediction.flop) == ("saxpy", case, flop)
    assert (prediction.bound, prediction.iterations) == (bound, iterations)
    assert prediction.source.startswith("counted")


def test_a_case_that_refers_to_another_has_its_words() -> None:
    """A case that borrows formulas shows the source of the other case instead of `as bf16_4096`."""
    line = "ncu python -m rooflens.workloads.torch_harness gemm --case bf16_128"
    (prediction,) = find_expected([samples.report([], command_line=line)], None).reports.values()
    assert prediction.source.startswith("FLOPs: one multiply-add for each m, n, k.")


def test_the_page_and_the_table_tell_of_it(tmp_path: Path) -> None:
    """`report --table` adds the section and prints predictions for bundled programs only."""
    ours = report_of(tmp_path, f"{PROGRAM} --n 65536 --iterations 1")
    page = tmp_path / "page.html"
    result = CliRunner().invoke(main, ["report", str(ours), "-o", str(page), "--table"])
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "saxpy n16: 1 launch, overhead? for 100 % of the time FLOP 131 kFLOP" in said
    assert "limiter overhead overhead? as predicted" in said
    assert "Predicted against measured" in page.read_text(encoding="utf-8")
    theirs = report_of(tmp_path, "ncu ./saxpy --n 65536 --iterations 1")
    result = CliRunner().invoke(main, ["report", str(theirs), "-o", str(page), "--table", "--force"])
    assert "predicted" not in result.stdout
    assert "Predicted against measured" not in page.read_text(encoding="utf-8")


def test_the_stored_sweep_is_drawn(fixtures: Path, tmp_path: Path) -> None:
    """The stored sweep gives a page with its path and a prediction per step."""
    page = tmp_path / "sweep.html"
    reports = sorted(str(path) for path in fixtures.glob("synthetic/sweep_*.ncu-rep"))
    assert CliRunner().invoke(main, ["report", *reports, "-o", str(page)]).exit_code == 0
    html = page.read_text(encoding="utf-8")
    assert 'id="spec-sweep-0"' in html
    assert html.count('scope="rowgroup"') >= len(reports)


def test_a_prediction_of_the_user_is_set_beside_the_kernels(fixtures: Path) -> None:
    """`--predict` accepts an operation with sizes, and prints predicted, measured and a verdict after the kernels."""
    report = str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep")
    triad = "elementwise:n=268435456,reads=2,flops=2,dtype=fp32"  # 12 bytes and 2 FLOP an element, as the fixture says
    done = CliRunner().invoke(main, ["analyze", report, "--predict", triad])
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert "FLOP 537 MFLOP 537 MFLOP 1.00x as predicted DRAM bytes 3.22 GB 3.22 GB 1.00x as predicted" in said


def test_a_prediction_is_keys_in_json(fixtures: Path) -> None:
    """`--predict` adds predicted and measured values with units to JSON; without it JSON has none."""
    report = str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep")
    asked = ["analyze", report, "--format", "json"]
    triad = "elementwise:n=268435456,reads=2,flops=2,dtype=fp32"
    assert "expectations" not in json.loads(CliRunner().invoke(main, asked).stdout)
    told = json.loads(CliRunner().invoke(main, [*asked, "--predict", triad]).stdout)
    (kernel,), (checked,) = told["kernels"], told["expectations"]
    rows = {row["quantity"]: row for row in checked["rows"]}
    assert (rows["work"]["predicted"], rows["dram_bytes"]["predicted"]) == (2 * 268435456, 12 * 268435456)
    assert rows["dram_bytes"]["measured"] == kernel["bytes"]["dram"]
    assert rows["floor"]["measured"] == kernel["duration_ns"]
    assert all(row["factor"] == pytest.approx(row["measured"] / row["predicted"]) for row in rows.values())
    assert checked["launches"] == 1


def test_predictions_by_kernel_name_come_from_a_file(fixtures: Path, tmp_path: Path) -> None:
    """A TOML file says what a launch of the named kernels must do, and the page shows it."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[[kernel]]\nmatch = "stream_*"\npredict = "saxpy:n=268435456,dtype=fp32"\n', encoding="utf-8")
    report = str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep")
    page = tmp_path / "page.html"
    done = CliRunner().invoke(main, ["report", report, "-o", str(page), "--predict", str(rules)])
    assert done.exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "of <code>stream_*</code>" in text
    assert "saxpy n=268435456,dtype=fp32" in text


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ("gem:m=1", 2, "no operation is called"),
        ("nowhere.toml", 1, "cannot read"),
        ("gemm:m=1", 2, "needs the size"),
    ],
)
def test_what_is_no_prediction_is_an_error(fixtures: Path, given: str, code: int, words: str) -> None:
    """A misspelled prediction ends the command before anything is written."""
    report = str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep")
    done = CliRunner().invoke(main, ["analyze", report, "--predict", given])
    assert done.exit_code == code
    assert words in done.stderr
    assert not done.stdout


def test_a_pattern_without_a_kernel_is_named(fixtures: Path, tmp_path: Path) -> None:
    """A rule for a kernel name that does not exist gives a warning."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[[kernel]]\nmatch = "gemm"\npredict = "saxpy:n=1"\n', encoding="utf-8")
    report = str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep")
    done = CliRunner().invoke(main, ["analyze", report, "--predict", str(rules)])
    assert done.exit_code == 0
    assert "warning: the prediction of `gemm` matches no kernel" in done.stderr


def test_a_prediction_goes_with_a_page_markdown_or_a_table(fixtures: Path, tmp_path: Path) -> None:
    """Markdown shows a prediction like the terminal; a picture cannot, so --predict is refused instead of ignored."""
    report = str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep")
    predict = ["--predict", "saxpy:n=1"]
    done = CliRunner().invoke(main, ["report", report, "-o", str(tmp_path / "x.md"), *predict, "--table"])
    assert done.exit_code == 0
    assert "saxpy n=1,dtype=fp32: 1 launch" in done.stdout
    assert "## Predicted against measured" in (tmp_path / "x.md").read_text(encoding="utf-8")
    assert CliRunner().invoke(main, ["report", report, "-o", str(tmp_path / "x.svg"), *predict]).exit_code == 2
