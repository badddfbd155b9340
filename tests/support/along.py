"""A simulated recording of the workload `roofline` on an A100: the files that `rooflens profile roofline` would write.

FLOPs and bytes follow the workload's formulas, and times the share of its roof that each kernel should reach.
"""

from __future__ import annotations

from pathlib import Path

from support.chips import A100
from support.fixture_kernels import Shares, by_shares
from support.make_fixtures import Fixture
from support.ncu_rep_writer import KernelSpec
from support.synthetic_kernels import Launch, kernel_spec

N = 1 << 26
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
MEMORY_SHARE, COMPUTE_SHARE, RIDGE_SHARE = 0.9, 0.95, 0.75
"""Shares of the roof that a kernel reaches: far from the ridge on either side, and beside it."""


def kernel_of(name: str, flop: float, moved_bytes: float, share: float) -> KernelSpec:
    """Describe a kernel with this work, at a share of the roof above it."""
    peak = A100.sm_count * A100.ffma_per_sm * 2 * A100.sm_clock_hz
    seconds = max(flop / peak, moved_bytes / A100.dram_bytes_per_s) / share
    shares = Shares(dram=moved_bytes / A100.dram_bytes_per_s / seconds, l2=0.2, l1=0.1, fp32=flop / peak / seconds)
    launch = Launch((N // 4 // 256, 1, 1), (256, 1, 1))
    return kernel_spec(by_shares(name, A100, round(seconds * 1e9), shares, launch))


def along_kernels() -> tuple[KernelSpec, ...]:
    """Describe SAXPY and the chains, with the names that ncu gives them."""
    saxpy = kernel_of("<unnamed>::roofline_saxpy(long long, float, const float4 *, float4 *)", 2 * N, 12 * N, 0.91)
    chains = (
        kernel_of(
            f"void <unnamed>::roofline_fma<(int){steps}>(long long, float, float, const float4 *, float4 *)",
            2 * N * steps,
            8 * N,
            MEMORY_SHARE if steps < 32 else RIDGE_SHARE if steps < 128 else COMPUTE_SHARE,
        )
        for steps in STEPS
    )
    return (saxpy, *chains)


def record_along(folder: Path) -> Path:
    """Write the report."""
    program = f"roofline-sm_80-{'0' * 64} --n {N} --iterations 1"
    options = "--nvtx --nvtx-include rooflens --clock-control base"
    path = folder / "roofline.ncu-rep"
    path.write_bytes(Fixture("roofline", "", "", A100, along_kernels(), program, options).encode())
    return path
