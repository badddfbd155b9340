"""`analyze --format digest` and `explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import triad
from support.ncu_rep_writer import ReportSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.cli.group import main


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of three kernels, the first launched twice."""
    path = tmp_path_factory.mktemp("digest") / "step.ncu-rep"
    times_ns = (("gemm", 500_000), ("gemm", 900_000), ("copy", 300_000), ("fill", 200_000))
    specs = [replace(kernel_spec(replace(triad(H200), duration_ns=ns)), name=name) for name, ns in times_ns]
    write_report(path, ReportSpec(kernels=tuple(specs)))
    return path


@pytest.fixture(scope="module")
def store(report: Path) -> Path:
    """Ingest it."""
    folder = report.parent / "store"
    assert run("ingest", report, "--store", folder).exit_code == 0
    return folder


def test_the_digest_is_the_same_from_file_and_store(report: Path, store: Path) -> None:
    """Both commands print the kernels, most to win first, and respect the kernel selection."""
    done = run("analyze", "--format", "digest", report)
    assert done.exit_code == 0
    assert done.stdout.startswith("# `step.ncu-rep`\n")
    assert "## 1. `gemm`: 1.40 ms in 2 launches" in done.stdout
    assert run("analyze", "--format", "digest", "--store", store).stdout == done.stdout
    assert "gemm" not in run("analyze", "--format", "digest", report, "--kernel", "copy").stdout


def test_the_size_of_a_digest_is_chosen(report: Path) -> None:
    """`--top` and `--max-tokens` cut the digest and say so; --max-tokens is refused for other formats."""
    assert "truncated, 2 more kernels" in run("analyze", "--format", "digest", report, "--top", 1).stdout
    small = run("analyze", "--format", "digest", report, "--max-tokens", 200)
    assert len(small.stdout.encode()) <= 600
    assert run("analyze", report, "--max-tokens", 200).exit_code == 2
    assert run("analyze", "--format", "digest", report, "--max-tokens", 10).exit_code == 2


def test_a_report_that_cannot_be_read_is_named_in_the_digest(report: Path, tmp_path: Path) -> None:
    """The digest names a missing report, and the exit code is 1."""
    broken = tmp_path / "broken.ncu-rep"
    broken.write_bytes(report.read_bytes()[:3000])
    done = run("analyze", "--format", "digest", report, broken)
    assert done.exit_code == 1
    assert "1 of 2 reports could not be read: `broken.ncu-rep` (" in done.stdout


def test_one_kernel_is_explained_by_name_and_by_key(report: Path, store: Path) -> None:
    """A name selects the launch with most to win, a key its own; shares are of the whole report, also from a store."""
    by_name = run("explain", report, "--kernel", "gemm")
    assert by_name.exit_code == 0
    assert by_name.stderr == ""
    assert by_name.stdout.startswith("# `gemm`\n\nResult 1 of `step.ncu-rep`")
    assert ": 74 % of the report's GPU time" in by_name.stdout
    key = by_name.stdout.partition("key `")[2].partition("`")[0]
    assert key.endswith("#2")
    for place in ((report,), ("--store", store)):
        assert run("explain", *place, "--kernel", key).stdout == by_name.stdout
        assert "Result 0 of" in run("explain", *place, "--kernel", key.removesuffix("#2")).stdout


def test_without_a_choice_the_first_kernel_is_explained(report: Path) -> None:
    """The kernel with the most to win is explained; stderr counts the others."""
    done = run("explain", report)
    assert done.stdout.startswith("# `gemm`\n")
    assert done.stderr == "2 other kernels left out: choose with `--kernel NAME`\n"


def test_a_relative_path_is_named_as_it_opens(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths in commands are printed so that they open again; absolute folders are not shown."""
    monkeypatch.chdir(report.parent.parent)
    relative = report.relative_to(Path.cwd())
    assert f"Result 1 of `{relative.as_posix()}`" in run("explain", relative).stdout
    assert f"Result 1 of `{report.name}`" in run("explain", report).stdout


def test_a_file_that_is_no_report_is_one_error(tmp_path: Path) -> None:
    """If nothing could be read, `explain` says why, without adding that there is no kernel."""
    (tmp_path / "cut.ncu-rep").write_bytes(b"cut off")
    done = run("explain", tmp_path / "cut.ncu-rep")
    assert done.exit_code == 1
    assert done.stderr.count("error: ") == 1
    assert "not an Nsight Compute report" in done.stderr


def test_a_command_without_input_names_itself() -> None:
    """The hint repeats the called command with a report."""
    done = run("explain")
    assert done.exit_code == 2
    assert "hint: `rooflens explain report.ncu-rep`" in done.stderr


def test_explain_holds_a_prediction_against_its_kernel() -> None:
    """`explain --predict` holds 137 GFLOP (2 x 4096³) against a published product, in the lines of `analyze`."""
    report = Path(__file__).parents[3] / "fixtures" / "published" / "KernelBench__matmul_kernel.ncu-rep"
    stated = ("--predict", "gemm:m=4096,n=4096,k=4096,dtype=fp32")
    done = run("explain", report, *stated)
    assert done.exit_code == 0
    told = done.stdout[done.stdout.index("## Predicted against measured") :]
    assert "| FLOP | 137 GFLOP | 137 GFLOP | 1.00x | as predicted |" in told
    assert run("analyze", report, "--format", "md", *stated).stdout.endswith(told)
    written = json.loads(run("explain", report, *stated, "--format", "json").stdout)
    assert [row["verdict"] for row in written["expectations"][0]["rows"]][:2] == ["as predicted", "more"]
