"""Check exercise 3: `pytest docs/tutorials/exercises/test_fusing.py`."""

from __future__ import annotations

import math

import fusing as answer
from fusing import Roofs, Work

TERA = 1e12
H100_BF16 = Roofs(989.4 * TERA, 3.35 * TERA)
H100_FP32 = Roofs(66.9 * TERA, 3.35 * TERA)
H200_MEASURED = Roofs(541 * TERA, 4.80 * TERA)
N = 2**28


def close(value: float, expected: float, within: float = 0.01) -> bool:
    """Return whether two numbers agree to a per cent."""
    return math.isclose(value, expected, rel_tol=within)


def product(m: int, n: int, k: int) -> Work:
    """A product of bf16 matrices, each read or written once."""
    return Work(2 * m * n * k, 2 * (m * k + k * n + m * n))


def test_the_longer_one_is_the_time() -> None:
    """A second of arithmetic beside half a second of memory, and the other way round."""
    assert answer.time_s(Work(2, 1), Roofs(2, 2)) == 1
    assert answer.time_s(Work(1, 2), Roofs(2, 2)) == 1


def test_the_intermediate_is_saved_twice() -> None:
    """It is neither written nor read."""
    assert answer.fused(Work(1, 80), Work(2, 80), 40) == Work(3, 80)


def test_what_somebody_else_needs_is_still_written() -> None:
    """Training keeps activations for the backward pass: only rereading them is saved."""
    assert answer.fused(Work(1, 80), Work(2, 80), 40, still_needed=True) == Work(3, 120)


def test_two_cosines() -> None:
    """Four trips become two."""
    cosine = Work(N, 8 * N)
    assert close(answer.gain(cosine, cosine, 4 * N, H100_FP32), 2.0)


def test_kernels_without_an_intermediate_gain_nothing() -> None:
    """AdamW, then zeroing the gradients: 28 and 4 bytes per parameter, and no array between them."""
    assert close(answer.gain(Work(17 * N, 28 * N), Work(0, 4 * N), 0, H100_FP32), 1.0)


def test_an_epilogue_hides_behind_a_large_product() -> None:
    """139 + 20 us become 139: the product leaves DRAM mostly idle."""
    gelu = Work(0, 2 * 2 * 4096 * 4096)
    assert close(answer.gain(product(4096, 4096, 4096), gelu, 2 * 4096 * 4096, H100_BF16), 1.144)


def test_an_epilogue_of_a_skinny_product_gains_little() -> None:
    """Nearly all bytes are the weights."""
    gelu = Work(0, 2 * 2 * 4096 * 64)
    assert close(answer.gain(product(4096, 64, 4096), gelu, 2 * 4096 * 64, H100_BF16), 1.03)


def test_attention() -> None:
    """Scores and softmax of the synthetic report: 1.208 and 2.147 GB, with 1.074 GB of scores between them."""
    scores, softmax = Work(137.4e9, 1.208e9), Work(2.7e9, 2.147e9)
    assert close(answer.gain(scores, softmax, 1.074e9, H200_MEASURED), 2.70)
