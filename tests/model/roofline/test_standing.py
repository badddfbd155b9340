"""Where a kernel stands: its level, the roof over it, and what binds it before that."""

from __future__ import annotations

from typing import Any

import pytest
from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis
from rooflens.model.roofline.standing import standing, standings

CLOCKS = {"sm_clock_hz": 1e9, "sm_count": 100.0, "l1_clock_hz": 1e9, "l1_data_peak_bytes_per_s": 12.8e12}
MEASURED = {
    "dram_bytes": 1e8,
    "dram_bus_peak_bytes_per_s": 1e12,
    "l2_bytes": 4e8,
    "l2_tag_bytes": 4e8,
    "l2_tag_peak_bytes_per_s": 4e12,
    "ffma_threads": 5e8,
    "fadd_threads": 0.0,
    "fmul_threads": 0.0,
    "ffma_peak_threads_per_s": 5e12,
    "issue_active_share": 0.2,
}
"""1 GFLOP in 1 ms: 10 FLOP/B at DRAM, which is 10 % busy, and 2.5 at L2; FP32 does 10 TFLOP/s at most."""


def placed(**changes: Any) -> Analysis:
    """Analyze a kernel of 1 ms with these counters and others."""
    return analyze(make_kernel({**CLOCKS, **MEASURED, **changes}))


def test_a_kernel_stands_at_each_level_by_its_own_bytes() -> None:
    """Intensity is FLOP over a level's bytes, and the roof over it the lower of slope and flat one."""
    dram, l2 = standings(placed())
    assert (dram.level, dram.intensity, dram.per_s, dram.unit) == ("dram", 10, 1e12, "FLOP")
    assert dram.roof_per_s == pytest.approx(1e13)
    assert (l2.level, l2.intensity, l2.roof_per_s) == ("l2", 2.5, pytest.approx(1e13))
    assert dram.slope is not None
    assert dram.slope.value == 1e12


def test_a_kernel_at_a_level_stands_there() -> None:
    """With DRAM 85 % busy it stands at DRAM, with nothing before the slope, and 85 % of it is reached."""
    one = standing(placed(dram_bytes=8.5e8))
    assert one is not None
    assert (one.level, one.is_limit, one.binding) == ("dram", True, None)
    assert one.share == pytest.approx(0.85)
    assert one.limit_per_s == pytest.approx(1e12 / 0.85)


def test_a_full_stage_has_a_roof_of_its_own() -> None:
    """L1 is full by its load and store slots with few bytes: the gap is that to the slots, far below the bandwidth."""
    one = standing(placed(l1_lsu_input_share=0.9, l1_data_bytes=6.4e8, l1_tag_bytes=3.2e8))
    assert one is not None
    assert (one.level, one.is_limit) == ("l1", True)
    assert one.binding is not None
    assert (one.binding.unit, one.binding.stage) == ("l1", "lsu_input")
    assert one.binding.per_s == one.limit_per_s == pytest.approx(1e12 / 0.9)
    assert one.binding.bytes_per_s == pytest.approx(3.2e11 / 0.9)
    assert one.roof_per_s == pytest.approx(1e13)
    assert one.share == pytest.approx(0.9)


@pytest.mark.parametrize(("pipe", "unit"), [("issue_active_share", "issue"), ("xu_inst_share", "xu")])
def test_a_pipe_without_a_line_binds_by_its_share(pipe: str, unit: str) -> None:
    """A kernel at its issue slots, or at a pipe that does no FLOPs, is held to that unit's."""
    one = standing(placed(**{pipe: 0.88}))
    assert one is not None
    assert one.binding is not None
    assert (one.binding.unit, one.binding.stage, one.binding.bytes_per_s) == (unit, None, None)
    assert one.share == pytest.approx(0.88)


def test_counted_arithmetic_has_a_line() -> None:
    """FP32 at 90 % is measured against its own flat roof: no bar stands before it."""
    one = standing(placed(ffma_threads=4.5e9))
    assert one is not None
    assert one.binding is None
    assert one.share == pytest.approx(0.9)


def test_a_kernel_that_waits_stands_at_its_nearest_roof() -> None:
    """Without a limiter the level counts whose roof is lowest; a known one goes before an unknown one."""
    one = standing(placed(dram_bytes=4e8, l2_bytes=1e8))
    assert one is not None
    assert (one.level, one.is_limit) == ("dram", False)


@pytest.mark.parametrize(
    "changes", [{"ffma_threads": 0.0}, {"duration_ns": None}, {"dram_bytes": 0.0, "l2_bytes": 0.0}]
)
def test_without_work_time_or_bytes_it_stands_nowhere(changes: dict[str, float | None]) -> None:
    """No FLOPs, no time, or no bytes: there is no place."""
    assert standings(placed(**changes)) == ()
    assert standing(placed(**changes)) is None


def test_integer_products_count_operations() -> None:
    """A kernel whose main work is int8 products stands by its operations."""
    int8 = analyze(
        make_kernel(
            {**CLOCKS, "dram_bytes": 1e8, "dram_bus_peak_bytes_per_s": 1e12},
            warp_opcodes={"IMMA.16832.S8.S8": 1_000_000},
            thread_opcodes={"IMMA.16832.S8.S8": 32_000_000},
            compute_capability="8.0",
            gpu="NVIDIA A100-SXM4-40GB",
        )
    )
    one = standing(int8)
    assert one is not None
    assert (one.unit, one.intensity) == ("op", pytest.approx(2 * 16 * 8 * 32 * 1e6 / 1e8))
