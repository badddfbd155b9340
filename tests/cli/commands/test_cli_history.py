from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import triad
from support.ncu_rep_writer import ReportSpec, SessionSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.cli.group import main


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three runs of one program on three days, each faster than the one before."""
    for day, time_ns in enumerate((1_600_000, 1_200_000, 800_000), start=1):
        kernel = kernel_spec(replace(triad(H200), duration_ns=time_ns))
        report = ReportSpec(kernels=(kernel,), session=SessionSpec(created_unix_s=86_400 * day))
        write_report(tmp_path / f"app_{day}.ncu-rep", report)
    assert run("ingest", tmp_path, "--store", tmp_path / "store").exit_code == 0
    return tmp_path / "store"


def test_the_overview_has_a_line_for_each_kernel(store: Path) -> None:
    """Runs, first and last time, the factor between them, and the verdict before and after."""
    done = run("history", "--store", store)
    assert done.exit_code == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("stream_triad")]
    assert line.split()[1:3] == ["app", "3"]
    assert "1.60 ms" in line
    assert "800 µs" in line
    assert "2.00x" in line
    assert "memory at HBM3e" in line


def test_one_kernel_is_shown_run_by_run(store: Path) -> None:
    """With --kernel: a line for each run, with what changed since the run before, and the fastest marked."""
    said = " ".join(run("history", "--store", store, "--kernel", "TRIAD").stdout.split())
    words = ("1.33x faster", "1.50x faster", "2.00x", "app_3.ncu-rep (fastest)", "1970-01-02", "1970-01-04")
    assert [word for word in words if word not in said] == []


def test_json_holds_every_run(store: Path) -> None:
    """Times in nanoseconds, oldest first."""
    found = json.loads(run("history", "--store", store, "--format", "json").stdout)
    (kernel,) = found["kernels"]
    assert [point["time_ns"] for point in kernel["runs"]] == [1_600_000, 1_200_000, 800_000]
    assert {point["bound"] for point in kernel["runs"]} <= {"memory", "latency"}


def test_html_is_a_page_in_a_file(store: Path, tmp_path: Path) -> None:
    """The page names the program, its runs and that they are synthetic; it needs a file."""
    file = tmp_path / "history.html"
    assert run("history", "--store", store, "--format", "html").exit_code == 2
    assert run("history", "--store", store, "--format", "html", "-o", file).exit_code == 0
    page = file.read_text(encoding="utf-8")
    assert [words for words in ("History of app", "3 runs", "Synthetic data", "2.0x faster") if words not in page] == []


def test_what_is_not_there_is_an_error(store: Path, tmp_path: Path) -> None:
    """A folder that is no store, and a kernel that nobody recorded."""
    assert run("history", "--store", tmp_path / "nothing").exit_code == 1
    done = run("history", "--store", store, "--kernel", "gemm")
    assert done.exit_code == 1
    assert "no kernel" in done.stderr
    assert "hint: " in done.stderr


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """Names of kernels and files reach the terminal without markup and control characters."""
    report = ReportSpec(kernels=(replace(kernel_spec(triad(H200)), name="k[/b]\x1b[2J(int)"),))
    write_report(tmp_path / "[i]\x1b[2J.ncu-rep", report)
    assert run("ingest", tmp_path, "--store", tmp_path / "store").exit_code == 0
    for options in ((), ("--kernel", "k")):
        done = run("history", "--store", tmp_path / "store", *options)
        assert done.exit_code == 0
        assert "k[/b]?[2J" in done.stdout
        assert "\x1b" not in done.stdout
