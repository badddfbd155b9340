"""Check exercise 2: `pytest docs/tutorials/exercises/test_level.py`."""

from __future__ import annotations

import math
from pathlib import Path

import level as answer

import rooflens

PUBLISHED = Path(__file__).parents[3] / "fixtures" / "published"

MATMUL = {"dram": 330e9, "l2": 656e9, "l1": 10.64e12}
MATMUL_PEAKS = {"dram": 2.04e12, "l2": 8.41e12, "l1": 16.0e12}
MATMUL_STAGES = {"dram": 0.16, "l2": 0.23, "l1": 0.99}

TILED = {"dram": 47.9e9, "l2": None, "l1": 315e9}
TILED_PEAKS = {"dram": 598e9, "l2": 1.90e12, "l1": 13.5e12}
TILED_STAGES = {"dram": 0.08, "l2": 0.16, "l1": 0.65}


def close(value: float | None, expected: float, within: float = 0.01) -> bool:
    """Return whether there is a number, within a per cent of the expected one."""
    return value is not None and math.isclose(value, expected, rel_tol=within)


def test_one_kernel_has_an_intensity_at_each_level() -> None:
    """2.65 TFLOP/s of a naive product: 8 FLOP/B at DRAM, 4 at L2, a quarter at L1."""
    found = answer.intensities(2.65e12, MATMUL)
    assert close(found["dram"], 8.03)
    assert close(found["l2"], 4.04)
    assert close(found["l1"], 0.249)


def test_what_was_not_measured_is_none() -> None:
    """The bytes of L2 were not counted, so its intensity is unknown rather than 0 or infinite."""
    found = answer.intensities(4.98e12, TILED)
    assert found["l2"] is None
    assert close(found["dram"], 104)


def test_the_busiest_stage_counts() -> None:
    """L1 of the naive product: 67 % by bytes, 99 % by its data stage."""
    assert close(answer.shares(MATMUL, MATMUL_PEAKS, MATMUL_STAGES)["l1"], 0.99)


def test_bytes_stand_for_a_level_without_stages() -> None:
    """If no stage was measured, only bytes over peak is known."""
    assert close(answer.shares(MATMUL, MATMUL_PEAKS, {})["l1"], 0.665)


def test_a_stage_stands_for_a_level_without_bytes() -> None:
    """The bytes of L2 were not counted, but how busy it was is known."""
    assert close(answer.shares(TILED, TILED_PEAKS, TILED_STAGES)["l2"], 0.16)


def test_a_level_of_which_nothing_is_known_has_no_share() -> None:
    """It is left out; 0 would mean that it was idle."""
    assert "l2" not in answer.shares(TILED, TILED_PEAKS, {})


def test_the_limiter_of_the_naive_product_is_l1() -> None:
    """Not DRAM, whatever a chart of DRAM alone suggests."""
    assert answer.limiting_level(answer.shares(MATMUL, MATMUL_PEAKS, MATMUL_STAGES)) == "l1"


def test_the_limiter_of_the_tiled_product_is_l1_too() -> None:
    """By instructions: its bytes are 2 % of the peak."""
    assert answer.limiting_level(answer.shares(TILED, TILED_PEAKS, TILED_STAGES)) == "l1"


def test_the_limiter_of_adamw_is_dram() -> None:
    """398 of 435 GB/s."""
    rates = {"dram": 398e9, "l2": 396e9, "l1": 337e9}
    peaks = {"dram": 435e9, "l2": 1.02e12, "l1": 6.72e12}
    assert answer.limiting_level(answer.shares(rates, peaks, {})) == "dram"


def test_a_kernel_may_have_no_level_that_limits() -> None:
    """A scan that waits at barriers: its busiest level is DRAM, at 53 %."""
    assert answer.limiting_level({"dram": 0.53, "l2": 0.19, "l1": 0.49}) is None
    assert answer.limiting_level({}) is None


def test_your_answer_and_the_verdict_agree() -> None:
    """The verdict names the same level for the naive product."""
    kernel = rooflens.open(PUBLISHED / "KernelBench__matmul_kernel.ncu-rep")[0]
    levels = {name: level for name, level in kernel.levels.items() if level.bytes_per_s is not None}
    busy = answer.shares(
        {name: level.bytes_per_s for name, level in levels.items()},
        {name: level.peak_bytes_per_s for name, level in levels.items()},
        {name: level.share for name, level in levels.items()},
    )
    assert answer.limiting_level(busy) == kernel.verdict.resource
