from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from support.ncu_rep_writer import KernelSpec, ReportSpec, RuleText, write_report

from rooflens.cli.group import main

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: object) -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def kernels(*arguments: object) -> list[dict[str, object]]:
    """Return what the JSON of `analyze` says of each kernel."""
    return list(json.loads(run("analyze", *arguments, "--format", "json").stdout)["kernels"])


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Write a report in which NVIDIA's rules name a bottleneck."""
    rule = RuleText("SOLBottleneck", "SpeedOfLight", "Latency Issue", "low compute throughput and memory bandwidth")
    metrics = {"gpu__time_duration.sum": 1e6, "launch__waves_per_multiprocessor": 0.2, "launch__grid_size": 4}
    return write_report(tmp_path / "judged.ncu-rep", ReportSpec([KernelSpec("kernel()", metrics, rules=(rule,))]))


def test_nvidia_s_rules_can_be_withheld_from_a_report_and_a_store(judged: Path, tmp_path: Path) -> None:
    """With `--without-nvidia` nothing that NVIDIA's rules say is in the analysis, and all else is as it was."""
    store = tmp_path / "store"
    run("ingest", judged, "--store", store)
    for source in ((judged,), ("--store", store)):
        ((told,), (withheld,)) = kernels(*source), kernels(*source, "--without-nvidia")
        assert told.pop("nvidia") == {"bottleneck": "Latency Issue", "fp32_pct_of_peak": None, "fp64_pct_of_peak": None}
        assert set(dict(withheld.pop("nvidia")).values()) == {None}  # type: ignore[call-overload]
        assert withheld == told


def test_a_store_keeps_no_verdicts_of_an_analysis_without_nvidia(judged: Path, tmp_path: Path) -> None:
    """What was withheld for a check does not stand in the store as if it were the whole analysis."""
    store = tmp_path / "store"
    run("ingest", judged, "--store", store)
    assert run("analyze", "--store", store, "--without-nvidia").stderr.count(f"wrote {store}") == 0
    assert not list(store.glob("roofline/*.parquet"))
    assert run("analyze", "--store", store).stderr.splitlines()[-1] == f"wrote {store}"
    assert list(store.glob("roofline/*.parquet"))
