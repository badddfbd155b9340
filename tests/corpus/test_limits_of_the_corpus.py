"""Check limits and gains of real kernels against what rewrites reached, and on kernels that are nearly optimal.

A limit below what somebody reached would be wrong; a limit far above 1 for a tuned kernel would be useless.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rooflens.model.records import Analysis

_COUNTER = re.compile(r"`[a-z]+__\w+")
_ROUNDING = 1 + 1e-9


def longest(analyses: list[Analysis], report: str, kernel: str) -> Analysis:
    """Return the longest launch of one kernel of a report."""
    found = [a for a in analyses if Path(a.kernel.source).name == report and kernel in a.kernel.name]
    return max(found, key=lambda a: a.kernel.duration_ns or 0.0)


def test_every_kernel_has_a_limit_or_the_counter_that_would_tell_it(analyses: list[Analysis]) -> None:
    """No limit is below 1, each has its floor and the side that sets it, and nine kernels in ten have one."""
    limits = [(one.verdict.limit, one) for one in analyses if not one.kernel.failed]
    for limit, one in limits:
        if limit.over_floor is None:
            assert _COUNTER.search(limit.missing or ""), (one.kernel.source, one.kernel.index, limit)
            continue
        assert limit.over_floor >= 1
        assert limit.floor_ns == pytest.approx((one.kernel.duration_ns or 0.0) / limit.over_floor)
        assert limit.by
        assert limit.missing is None
    assert sum(limit.over_floor is not None for limit, _ in limits) >= 0.9 * len(limits)


def test_no_gain_is_beyond_a_proven_limit_unless_its_move_changes_what_that_keeps(analyses: list[Analysis]) -> None:
    """A move may change types, instructions and bytes, which the limit keeps; then the figure says so."""
    gains = [(one, finding.id, finding.gain) for one in analyses for finding in one.findings if finding.gain]
    assert len(gains) > 200
    for one, finding, gain in gains:
        limit = one.verdict.limit
        assert gain.factor >= 1
        assert gain.changes in {None, "types", "instructions", "bytes"}
        if limit.over_floor is not None and limit.proven and gain.changes is None:
            assert gain.factor <= limit.over_floor * _ROUNDING, (one.kernel.source, one.kernel.index, finding)


def test_no_move_of_a_library_kernel_is_about_its_code(analyses: list[Analysis]) -> None:
    """Findings describe a library kernel's code; moves name only what a caller can choose."""
    libraries = [one for one in analyses if one.library and not one.kernel.failed]
    assert len(libraries) >= 50
    for one in libraries:
        assert one.verdict.moves
        assert {move.finding for move in one.verdict.moves} == {None}


@pytest.mark.parametrize(
    ("report", "kernel", "reached"),
    [
        ("GPU_workshop__MW_Baseline.ncu-rep", "compute_tendencies_x_279", 1.78),
        ("ESMM-Research__profile_output.ncu-rep", "one_blocktiling", 431648 / 222464),
        ("KernelBench__matmul_kernel.ncu-rep", "matmul_kernel", 6.0),
    ],
    ids=["divisions became multiplications", "the last kernel of its ladder", "tiled"],
)
def test_no_limit_is_below_what_was_reached(analyses: list[Analysis], report: str, kernel: str, reached: float) -> None:
    """Siblings of the same repository do the same work this many times faster."""
    limit = longest(analyses, report, kernel).verdict.limit.over_floor
    assert limit is not None
    assert limit >= reached


def test_a_product_is_not_held_to_the_traffic_that_tiles_would_spare(analyses: list[Analysis]) -> None:
    """For a GEMM at 6 % of the tensor peak that rereads its operands, the floor is its arithmetic, not its traffic."""
    limit = longest(analyses, "cuda-fused-linear-layer__profile_report_(1).ncu-rep", "wmma_gemm").verdict.limit
    assert limit.by == "tensor fp16 arithmetic"
    assert limit.over_floor is not None
    assert limit.over_floor >= 12


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
def test_kernels_near_their_end_have_a_low_limit(analyses: list[Analysis], report: str, kernel: str) -> None:
    """Kernels that stream at the DRAM limit can gain less than a third while they move the same bytes."""
    limit = longest(analyses, report, kernel).verdict.limit
    assert limit.by == "DRAM traffic"
    assert limit.factor is not None
    assert 1 <= limit.factor < 1.3
