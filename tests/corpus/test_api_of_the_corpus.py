"""Compare the Python API on a published report with NVIDIA's module and the commands."""

from __future__ import annotations

import json
from pathlib import Path

import ncu_report
import pytest
from click.testing import CliRunner

import rooflens as rl
from rooflens.cli.group import main

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def file(corpus: Path) -> Path:
    """Return a report of four launches of AdamW, with samples by source line and over time."""
    return corpus / "llm.c__adamw_coalsecing_shared.ncu-rep"


@pytest.fixture(scope="module")
def report(file: Path) -> rl.Report:
    """Open it."""
    return rl.open(file)


def test_metrics_are_those_of_nvidia_s_module(file: Path, report: rl.Report) -> None:
    """Every metric of every kernel has the value given by NVIDIA's module; only samples over time have none."""
    actions = ncu_report.load_report(str(file))[0]
    for kernel in report:
        action = actions[kernel.index]
        found = kernel.metrics()
        names = set(action.metric_names())
        assert len(names) > 200
        assert all("Triage" in name for name in names - found.keys())
        assert all(found[name] == action[name].value() for name in names & found.keys())


def test_hot_lines_are_those_of_the_command(file: Path, report: rl.Report) -> None:
    """Lines, shares and reasons for waiting are those printed by `hotspots --format json`."""
    done = CliRunner().invoke(main, ["hotspots", str(file), "--by", "line", "--format", "json", "--top", "100"])
    for told in json.loads(done.stdout)["kernels"]:
        (kernel,) = (kernel for kernel in report if kernel.index == told["index"])
        spots = kernel.hotspots(by="line")
        assert [(s.file, s.line, s.share, s.stall) for s in spots] == [
            (h["file"], h["line"], pytest.approx(h["share_of_samples"]), h["leading_stall"]) for h in told["hotspots"]
        ]
        assert spots


def test_launches_of_one_kernel_have_keys_of_their_own(report: rl.Report) -> None:
    """Four equal launches have four keys, each of which opens its own launch."""
    keys = [kernel.key for kernel in report]
    assert len({*keys}) == 4
    assert [report[key].kernels[0].index for key in keys] == [kernel.index for kernel in report]


def test_samples_over_time_come_as_a_timeline(report: rl.Report) -> None:
    """The longest launch has a series over its whole time, divided into phases; a launch may lack a series."""
    assert None in [kernel.timeline() for kernel in report]
    for kernel in report[:1]:
        series, phases = kernel.timeline(), kernel.phases
        assert series is not None
        assert phases is not None
        assert phases.ramp + phases.plateau + phases.tail == pytest.approx(1.0)
        assert len(series.shares["dram"]) * series.interval_ns == pytest.approx(kernel.duration_ns, rel=0.2)
