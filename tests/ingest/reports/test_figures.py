"""Published figures of instructions, from reports whose numbers can be added up by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.ncu_rep_writer import Instances, KernelSpec, MetricValue, ReportSpec, SessionSpec, write_report
from support.nvidia_reads import read_with_nvidia

from rooflens.ingest.metrics.figures import KIND, LINE_IN, OPCODE
from rooflens.ingest.reports.container import inspect
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions

LOAD, STORE, CONSTANT, PACKED = 0, 16, 32, 48
METRICS: Mapping[str, MetricValue] = {
    "gpu__time_duration.sum": 1000.0,
    "inst_executed": Instances({LOAD: 10, STORE: 10, CONSTANT: 4, PACKED: 2}, 26),
    "thread_inst_executed_true": Instances({LOAD: 320, STORE: 320, CONSTANT: 128, PACKED: 64}, 832),
    "memory_l2_theoretical_sectors_global": Instances({LOAD: 70, STORE: 30}, 100),
}
FIGURES: Mapping[str, MetricValue] = {
    KIND: Instances({LOAD: "load", CONSTANT: "constant", PACKED: "computes"}),
    OPCODE: Instances({LOAD: "LDG.E", STORE: "STG.E"}),
    f"{LINE_IN}a.cu": Instances({LOAD: 7, STORE: 7}),
    f"{LINE_IN}b.h": Instances({CONSTANT: 3}),
}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Write figures of four instructions."""
    return write_report(tmp_path / "figures.ncu-rep", ReportSpec([KernelSpec("kernel()", {**METRICS, **FIGURES})]))


@pytest.fixture
def _no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a child was asked")

    monkeypatch.setattr("rooflens.ingest.reports.child.in_child", refuse)


@pytest.mark.usefixtures("_no_child")
def test_figures_place_instructions_without_code(report: Path) -> None:
    """Lines and opcodes come from our own metrics, without code in the report and without another reader."""
    (kernel,) = read_report(report, "figures").kernels
    lines = {(spot.file, spot.line): spot.measures["warp_inst"] for spot in kernel.hotspots if spot.by == "line"}
    assert lines == {("a.cu", 7): 20, ("b.h", 3): 4}
    opcodes = {spot.pc: (spot.sass, spot.line) for spot in kernel.hotspots if spot.by == "sass"}
    assert opcodes == {LOAD: ("LDG.E", 7), STORE: ("STG.E", 7), CONSTANT: (None, 3), PACKED: (None, None)}


@pytest.mark.usefixtures("_no_child")
def test_kinds_divide_traffic_and_find_constants(report: Path) -> None:
    """Sectors of instructions marked as loads count as loads, of the others as stores; constants are separate."""
    (kernel,) = read_report(report, "figures").kernels
    assert kernel.code_totals["load_sectors"] == 70
    assert kernel.code_totals["store_sectors"] == 30
    assert kernel.code_totals["fp16_constant_threads"] == 128


def test_both_readers_read_the_same_figures(report: Path) -> None:
    """NVIDIA's module returns our metrics unchanged, with the same result."""
    (ours,) = read_report(report, "figures").kernels
    (theirs,) = read_with_nvidia(report, "figures", ReadOptions()).kernels
    assert ours.hotspots == theirs.hotspots
    assert ours.code_totals == theirs.code_totals


def test_figures_that_are_none_are_left_out(tmp_path: Path) -> None:
    """An unknown kind is `other`, and an invalid line is dropped; the rest is read."""
    odd: Mapping[str, MetricValue] = {
        KIND: Instances({LOAD: "load", CONSTANT: "jump"}),
        f"{LINE_IN}a.cu": Instances({LOAD: "seven"}),
    }
    file = write_report(tmp_path / "odd.ncu-rep", ReportSpec([KernelSpec("kernel()", {**METRICS, **odd})]))
    (kernel,) = read_report(file, "odd").kernels
    assert kernel.code_totals["load_sectors"] == 70
    assert kernel.code_totals["fp16_constant_threads"] == 0
    assert {spot.by for spot in kernel.hotspots} == {"sass", "function"}


def test_published_figures_are_not_synthetic(tmp_path: Path) -> None:
    """A report of published figures states their origin, and is not called synthetic."""
    session = SessionSpec(published="someone/something MIT 0123abc profile.ncu-rep", host="published figures")
    file = write_report(tmp_path / "figures.ncu-rep", ReportSpec([KernelSpec("kernel()", METRICS)], session))
    assert not inspect(file).synthetic
    assert b"someone/something MIT 0123abc profile.ncu-rep" in file.read_bytes()
