from __future__ import annotations

from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.report.prediction import prediction_lines
from rooflens.workloads.registry import Case, Expectation

SAXPY = Case("n", {"n": 1_000_000}, "fp32", "by hand", Expectation("memory", "dram", "streams"), "2 * n", "12 * n")
MOVED = {"dram_bytes": 13.2e6, "dram_peak_bytes_per_s": 15e9}


class Unpredicted:
    """A case without formulas."""

    expect = Expectation("latency", None, "waits")

    def flop_count(self) -> None:
        """Return nothing."""

    def byte_count(self) -> None:
        """Return nothing."""


def test_measured_stands_beside_predicted() -> None:
    """2 MFLOP and 12 MB predicted, 2 MFLOP and 13.2 MB measured: once and 1.1 times as much."""
    kernel = make_kernel(MOVED, thread_opcodes={"FFMA": 1_000_000})
    predicted, measured = prediction_lines(SAXPY, [analyze(kernel)])
    assert predicted == "predicted, one iteration: 2.00 MFLOP, 12.0 MB at HBM, memory at HBM"
    assert "2.00 MFLOP (1.00x), 13.2 MB (1.10x) at HBM" in measured


def test_what_was_not_measured_is_said() -> None:
    """A kernel without counters leaves its side of the comparison unsaid, not zero."""
    _, measured = prediction_lines(SAXPY, [analyze(make_kernel({}))])
    assert "FLOP not measured" in measured
    assert "B not measured at HBM" in measured


def test_a_case_without_formulas_has_its_wall_only() -> None:
    """Pointer chasing has no FLOPs to predict; its wall is still expected."""
    predicted, _ = prediction_lines(Unpredicted(), [analyze(make_kernel(MOVED))])
    assert predicted == "predicted, one iteration: latency"
