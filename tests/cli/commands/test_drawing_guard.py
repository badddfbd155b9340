"""One kernel that cannot be drawn costs `hotspots`, `history` and `compare` its own lines, and never the others'."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import sgemm, triad
from support.ncu_rep_writer import ReportSpec, SessionSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.cli.group import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

ODD, SOUND = "sgemm", "triad"


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def record(folder: Path, times_ns: list[int]) -> Path:
    """Write one report of a triad and a matrix product for each time of the triad."""
    folder.mkdir(parents=True)
    for i, time_ns in enumerate(times_ns, start=1):
        kernels = (kernel_spec(replace(triad(H200), duration_ns=time_ns)), kernel_spec(sgemm(H200)))
        session = SessionSpec(created_unix_s=86_400 * i)
        write_report(folder / f"app_{i}.ncu-rep", ReportSpec(kernels=kernels, session=session))
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Three recordings of about 1 ms."""
    return record(tmp_path / "base", [1_000_000, 1_005_000, 1_010_000])


@pytest.fixture
def head(tmp_path: Path) -> Path:
    """Three recordings in which the triad takes twice as long."""
    return record(tmp_path / "head", [2_000_000, 2_005_000, 2_010_000])


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return what lets a function that is given names fail for the odd kernel; no summary of a workflow is written."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def break_(module: str, function: str) -> None:
        sound = getattr(importlib.import_module(module), function)

        def broken(what: object, *more: object, **named: object) -> object:
            if ODD in str(what) and "status='failed'" not in str(what):
                raise OverflowError("int too large")
            return sound(what, *more, **named)

        monkeypatch.setattr(f"{module}.{function}", broken)

    return break_


def told(done: Result) -> bool:
    """Return whether the command ended well and said which result it left out, and why."""
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "error: rooflens" not in done.stderr
    return "warning: result 1 of " in done.stderr and "OverflowError at " in done.stderr


@pytest.mark.parametrize("style", ["table", "json"])
def test_history_goes_on_without_a_kernel_that_it_cannot_draw(
    base: Path, tmp_path: Path, odd: Callable[[str, str], None], style: str
) -> None:
    """The other kernel's line stands as ever."""
    assert run("ingest", base, "--store", tmp_path / "store").exit_code == 0
    odd("rooflens.report.text.history", {"table": "plain_name", "json": "_series"}[style])
    done = run("history", "--store", tmp_path / "store", "--format", style)
    assert told(done)
    assert SOUND in done.stdout
    assert ODD not in done.stdout


def test_hotspots_go_on_without_a_kernel_that_they_cannot_list(base: Path, odd: Callable[[str, str], None]) -> None:
    """What is left out for a bug is not said to have no samples."""
    odd("rooflens.report.text.hotspots", "_listing")
    done = run("hotspots", base / "app_1.ncu-rep")
    assert told(done)
    assert "this kernel holds no samples" in done.stderr
    assert "OverflowError" not in done.stdout


@pytest.mark.parametrize(
    ("style", "function"),
    [("table", "_story"), ("md", "_story"), ("github", "_story"), ("json", "_change"), ("junit", "change_sentence")],
)
def test_compare_draws_the_kernels_that_it_can(
    base: Path, head: Path, odd: Callable[[str, str], None], style: str, function: str
) -> None:
    """The gate still judges the whole program, with the odd kernel: what cannot be drawn was measured."""
    gate = ("--fail-on", "5%", "--per-kernel")
    whole = run("compare", base, head, *gate, "--format", style)
    odd("rooflens.report.text.comparison", function)
    done = run("compare", base, head, *gate, "--format", style)
    assert told(done)
    assert done.exit_code == whole.exit_code == 5
    failures = [[line for line in one.stderr.splitlines() if line.startswith("gate")] for one in (whole, done)]
    assert failures[0] == failures[1]
    assert SOUND in done.stdout
    assert ODD in whole.stdout
    assert ODD not in done.stdout


def test_the_page_of_a_comparison_is_written_without_it(
    base: Path, head: Path, odd: Callable[[str, str], None], tmp_path: Path
) -> None:
    """The other kernel stands in the page."""
    odd("rooflens.report.comparison.rows", "plain_name")
    done = run("compare", base, head, "-o", tmp_path / "page.html")
    assert told(done)
    assert SOUND in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_kernel_that_cannot_be_compared_costs_itself(base: Path, head: Path, odd: Callable[[str, str], None]) -> None:
    """The others are compared, and the program says how many are left out on either side."""
    odd("rooflens.model.compare.compare", "_look")
    done = run("compare", base, head, "--format", "json")
    assert told(done)
    (program,) = json.loads(done.stdout)["programs"]
    (kernel,) = program["kernels"]
    assert SOUND in kernel["head"]["name"]
    assert "of the head's kernels" in " ".join(program["warnings"])
