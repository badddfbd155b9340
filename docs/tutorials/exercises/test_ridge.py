"""Check exercise 1: `pytest docs/tutorials/exercises/test_ridge.py`."""

from __future__ import annotations

import math

import ridge as answer

TERA = 1e12
H100 = (989.4 * TERA, 3.35 * TERA)
A100 = (312 * TERA, 2.039 * TERA)


def close(value: float, expected: float, within: float = 0.005) -> bool:
    """Return whether two numbers agree to half a per cent."""
    return math.isclose(value, expected, rel_tol=within)


def test_the_ridge_of_an_h100_in_bf16() -> None:
    """989.4 TFLOP/s over 3.35 TB/s."""
    assert close(answer.ridge(*H100), 295.3)


def test_cuda_cores_have_a_ridge_of_their_own() -> None:
    """66.9 TFLOP/s of fp32 meet the same bandwidth much further left."""
    assert close(answer.ridge(66.9 * TERA, 3.35 * TERA), 20.0)


def test_a_kernel_on_the_slope() -> None:
    """saxpy: 2 FLOP for 12 bytes, a hundredth of the fp32 peak."""
    assert close(answer.attainable(2 / 12, 66.9 * TERA, 3.35 * TERA), 558e9)
    assert answer.limiter(2 / 12, 66.9 * TERA, 3.35 * TERA) == "memory"


def test_a_kernel_under_the_flat_roof() -> None:
    """A bf16 product of 4096 x 4096 matrices has 4096 / 3 FLOP a byte."""
    assert close(answer.attainable(4096 / 3, *H100), 989.4 * TERA)
    assert answer.limiter(4096 / 3, *H100) == "compute"


def test_the_corner_itself_is_compute() -> None:
    """On the ridge both roofs are equally high; from there on arithmetic is the limit."""
    assert answer.limiter(2.0, 2 * TERA, 1 * TERA) == "compute"
    assert close(answer.attainable(2.0, 2 * TERA, 1 * TERA), 2 * TERA)


def test_the_same_kernel_changes_sides_with_the_gpu() -> None:
    """200 FLOP/B in bf16: 2.1 times as fast on an H100 as on an A100, not 3.2 times."""
    assert answer.limiter(200, *A100) == "compute"
    assert answer.limiter(200, *H100) == "memory"
    assert close(answer.attainable(200, *H100) / answer.attainable(200, *A100), 2.147)


def test_the_peak_of_a_v100_under_the_profiler() -> None:
    """80 SMs do 32 multiply-adds a cycle in fp64; MW_Baseline was profiled at 1.295 GHz."""
    assert close(answer.peak_at_clock(80, 32, 1.295e9), 6.63 * TERA)


def test_the_ridge_follows_the_clock() -> None:
    """A lower SM clock lowers the flat roof and leaves the slope."""
    profiled = answer.ridge(answer.peak_at_clock(80, 32, 1.295e9), 898e9)
    datasheet = answer.ridge(answer.peak_at_clock(80, 32, 1.53e9), 900e9)
    assert close(profiled, 7.38)
    assert close(datasheet, 8.70)


def test_a_measured_kernel_stands_below_its_roof() -> None:
    """`semi_discrete_step` of MW_Baseline: 53.6 GFLOP/s at 0.0809 FLOP/B are 74 % of what is attainable."""
    assert close(53.6e9 / answer.attainable(0.0809, 6.6 * TERA, 891e9), 0.744)
