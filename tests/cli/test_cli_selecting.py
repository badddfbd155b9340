"""`--kernel` and `--nvtx` mean the same in every command, for files and stores."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import triad
from support.ncu_rep_writer import KernelSpec, NvtxRange, ReportSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.cli.group import main

LAUNCHES = (
    ("void ns::gemm<64>(float *)", "forward", 8, 900_000),
    ("adamw_kernel2", "optimizer", 8, 400_000),
    ("void ns::gemm<64>(float *)", "forward", 8, 800_000),
    ("void ns::gemm<64>(float *)", "backward", 8, 700_000),
)


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def launches(slower: int = 0) -> tuple[KernelSpec, ...]:
    """Make the launches of a step, slower by the given nanoseconds."""
    return tuple(
        replace(
            kernel_spec(replace(triad(H200), duration_ns=time_ns + slower)),
            name=name,
            grid=(grid, 1, 1),
            ranges=(NvtxRange(opened),),
        )
        for name, opened, grid, time_ns in LAUNCHES
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of a step."""
    path = tmp_path_factory.mktemp("selecting") / "step.ncu-rep"
    write_report(path, ReportSpec(kernels=launches()))
    return path


@pytest.fixture(scope="module")
def store(report: Path) -> Path:
    """Ingest the report of a step."""
    folder = report.parent / "store"
    assert run("ingest", report, "--store", folder).exit_code == 0
    return folder


def kernels(*arguments: object) -> list[dict[str, Any]]:
    """Return the kernels in the JSON of `analyze`."""
    done = run("analyze", "--format", "json", *arguments)
    assert done.exit_code == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["kernels"]
    return found


@pytest.mark.parametrize(
    ("options", "places"),
    [
        (("--kernel", "gemm"), [0, 2, 3]),
        (("--kernel", "adamw*", "--kernel", "nothing"), [1]),
        (("--nvtx", "forward"), [0, 2]),
        (("--kernel", "gemm", "--nvtx", "*ward"), [0, 2, 3]),
    ],
)
def test_files_and_stores_give_the_same_choice(
    report: Path, store: Path, options: tuple[str, ...], places: list[int]
) -> None:
    """Selected launches keep the keys and verdicts that they have in the whole report, from files and stores."""
    whole = kernels(report)
    assert kernels(report, *options) == [whole[place] for place in places]
    assert kernels("--store", store, *options) == [whole[place] for place in places]


def test_ten_thousand_patterns_are_a_choice_like_any_other(report: Path, store: Path) -> None:
    """With thousands of patterns the answer is the same from files and stores, and no library fails."""
    asked = [option for number in range(10_000) for option in ("--kernel", f"x{number}")]
    chosen = kernels(report, "--kernel", "adamw")
    assert kernels(report, "--kernel", "adamw", *asked) == chosen
    assert kernels("--store", store, "--kernel", "adamw", *asked) == chosen


def test_keys_are_the_same_from_file_and_store(report: Path, store: Path) -> None:
    """A launch has the same key in files and stores, and each key selects its launch."""
    keys = [kernel["key"] for kernel in kernels(report)]
    assert len(set(keys)) == len(keys)
    assert keys[2] == f"{keys[0]}#2"
    assert [kernel["key"] for kernel in kernels("--store", store)] == keys
    for place, key in enumerate(keys):
        assert [kernel["index"] for kernel in kernels(report, "--kernel", key)] == [place]
    rows = csv.DictReader(io.StringIO(run("analyze", "--format", "csv", report).stdout))
    assert [row["key"] for row in rows] == keys


@pytest.mark.parametrize("command", ["analyze", "report", "hotspots", "explain"])
def test_an_unknown_kernel_ends_alike_everywhere(command: str, report: Path, store: Path, tmp_path: Path) -> None:
    """For a misspelled name each command suggests a kernel, with exit code 1 and without output."""
    page = tmp_path / "page.html"
    output = ("-o", page) if command == "report" else ()
    for place in ((report,), ("--store", store)):
        done = run(command, *place, "--kernel", "adamx", *output)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.endswith("error: no kernel matches `adamx`\n\nhint: did you mean `adamw_kernel2`?\n")
        assert run(command, *place, "--kernel", "re:(", *output).exit_code == 2
    assert not page.exists()


def test_a_table_and_a_page_hold_the_choice_only(report: Path, store: Path, tmp_path: Path) -> None:
    """The table of a store and the page count only the selected kernels."""
    done = run("analyze", "--store", store, "--kernel", "adamw")
    assert "adamw_kernel2" in done.stdout
    assert "gemm" not in done.stdout
    page = tmp_path / "page.md"
    assert run("report", report, "--kernel", "adamw", "-o", page).exit_code == 0
    assert "gemm" not in page.read_text("utf-8")


def test_a_comparison_is_of_the_choice(report: Path, tmp_path: Path) -> None:
    """Both sides are filtered: the gate judges the selected time, and a side without matches is named."""
    write_report(tmp_path / "step.ncu-rep", ReportSpec(kernels=launches(slower=200_000)))
    done = run("compare", report, tmp_path / "step.ncu-rep", "--kernel", "adamw*", "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert "gemm" not in done.stdout
    assert "adamw_kernel2" in done.stdout
    assert run("compare", report, tmp_path / "step.ncu-rep", "--kernel", "zzz").exit_code == 1
