"""Potentials of real kernels, held to what rewrites reached, and to kernels that are known to be near their end.

A potential that is lower than what somebody reached would be wrong; one far above 1 on a tuned kernel would be useless.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.model.records import Analysis

MW = "GPU_workshop__MW_Baseline.ncu-rep"
ESMM = "ESMM-Research__profile_output.ncu-rep"


def longest(analyses: list[Analysis], report: str, kernel: str) -> Analysis:
    """Return the longest launch of one kernel of a report."""
    found = [a for a in analyses if Path(a.kernel.source).name == report and kernel in a.kernel.name]
    return max(found, key=lambda a: a.kernel.duration_ns or 0.0)


@pytest.mark.parametrize(
    ("report", "kernel", "reached"),
    [
        (MW, "compute_tendencies_x_279", 1.78),
        (ESMM, "one_blocktiling", 431648 / 222464),
        ("KernelBench__matmul_kernel.ncu-rep", "matmul_kernel", 6.0),
    ],
    ids=["divisions became multiplications", "the last kernel of its ladder", "tiled"],
)
def test_no_potential_is_below_what_was_reached(
    analyses: list[Analysis], report: str, kernel: str, reached: float
) -> None:
    """Siblings of the same repository do the same work so many times faster."""
    distances = longest(analyses, report, kernel).verdict.distances
    assert max(distances.potential or 0.0, distances.potential_by_reuse or 0.0) >= reached


def test_reuse_stands_beside_what_the_bytes_of_today_allow(analyses: list[Analysis]) -> None:
    """A GEMM at 6 % of the tensor peak moves bytes that tiles would not: little at today's traffic, much without it."""
    found = longest(analyses, "cuda-fused-linear-layer__profile_report_(1).ncu-rep", "wmma_gemm").verdict.distances
    assert found.potential is not None
    assert found.potential_by_reuse is not None
    assert found.potential < 2
    assert found.potential_by_reuse >= 12
    assert not found.by_fusing_only


@pytest.mark.parametrize(
    ("report", "kernel"),
    [
        ("llm.c__adamw_coalsecing_shared.ncu-rep", "adamw"),
        ("cs599k__2025-04-21_v2-float4.ncu-rep", "rms_norm"),
        ("cs599k__silu-2025-04-19-v3.ncu-rep", "silu_kernel"),
        ("IndexSpaces.jl__profile.ncu-rep", "julia__5_11155"),
        ("nsight-training__manual_nvtx.ncu-rep", "daxpy_kernel"),
    ],
)
def test_kernels_near_their_end_have_little_potential(analyses: list[Analysis], report: str, kernel: str) -> None:
    """What streams at the limit of DRAM gains under a third by any waste that goes."""
    potential = longest(analyses, report, kernel).verdict.distances.potential
    assert potential is not None
    assert 1 <= potential < 1.3


def test_copies_gain_more_by_fusing_only(analyses: list[Analysis]) -> None:
    """An optimizer step uses each operand about once: no tile spares its bytes."""
    assert longest(analyses, "llm.c__adamw_coalsecing_shared.ncu-rep", "adamw").verdict.distances.by_fusing_only


def test_integer_kernels_have_no_potential(analyses: list[Analysis]) -> None:
    """Hardly any of their instructions has a roof, or integers fill the busiest unit, as in generators of numbers."""
    for report, kernel in (
        (MW, "set_halo_values_x_396"),
        ("GPU-MMS__profile.ncu-rep", "multimergeLevel"),
        ("sglang__profile.ncu-rep", "distribution_elementwise"),
        ("cs599k__silu-2025-04-19-v3.ncu-rep", "distribution_elementwise"),
        ("cs599k__rms_norm_triton_looping.ncu-rep", "distribution_elementwise"),
    ):
        distances = longest(analyses, report, kernel).verdict.distances
        assert distances.potential is None
        assert distances.why_null == "integer work: bound not known"
