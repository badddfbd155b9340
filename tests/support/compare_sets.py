"""Two sides of an imagined layer, recorded several times: a regression, a fused, a re-tiled and a renamed kernel."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from support.chips import H200
from support.fixture_kernels import Shares, by_shares, square_gemm
from support.ncu_rep_writer import ReportSpec, write_report
from support.synthetic_kernels import Launch, kernel_spec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from support.chips import Chip
    from support.synthetic_kernels import Work

NOISE = 0.004
"""Standard deviation of a launch's time between recordings, as a part of it."""

_GRID = (4096, 1, 1)
_ROUTER = Shares(dram=0.1, l2=0.2, l1=0.1, smem=0.45, fp32=0.71)


def write_side(folder: Path, works: Sequence[Work], recordings: int = 5, *, seed: int = 1, name: str = "layer") -> Path:
    """Write `recordings` reports of the same launches, each with its own noise."""
    source = random.Random(seed)  # noqa: S311 - a simulation
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(recordings):
        noisy = [replace(work, duration_ns=round(work.duration_ns * source.gauss(1, NOISE))) for work in works]
        write_report(folder / f"{name}_{i}.ncu-rep", ReportSpec(kernels=tuple(map(kernel_spec, noisy))))
    return folder


def layer_before(chip: Chip = H200) -> list[Work]:
    """Describe the layer before: nine kernels, some far below their roofs."""
    return [
        replace(square_gemm(chip, 0.62, 4096), name="gemm_bf16_4096<128, 128, 32>(GemmParams)"),
        elementwise("bias_add(const float *, float *)", chip, 310_000, dram=0.86),
        elementwise("gelu_forward(const float *, float *)", chip, 330_000, dram=0.84, fp32=0.12, xu=0.22),
        elementwise("dropout(const float *, float *, float)", chip, 300_000, dram=0.85, alu=0.30),
        elementwise("softmax_warp_forward<float, 10, false>(float *, const float *)", chip, 640_000, 0.88, 0.09),
        elementwise("layer_norm_kernel<float, 256>(float *, const float *)", chip, 420_000, dram=0.61, fp32=0.05),
        elementwise("triton_red_fused_add_mean_12", chip, 180_000, dram=0.74, fp32=0.04),
        by_shares(
            "router_sgemm(const float *, const float *, float *)", chip, 520_000, _ROUTER, Launch(_GRID, (256, 1, 1))
        ),
        elementwise("sort_keys(unsigned *, const unsigned *)", chip, 45_000, dram=0.16),
    ]


def layer_after(chip: Chip = H200) -> list[Work]:
    """Describe the layer after: three kernels fused, one slower, one re-tiled, one renamed."""
    before = layer_before(chip)
    return [
        replace(square_gemm(chip, 0.78, 4096), name="gemm_bf16_4096<256, 128, 64>(GemmParams)"),
        elementwise("bias_gelu_dropout(const float *, float *, float)", chip, 340_000, dram=0.88, fp32=0.16, xu=0.25),
        elementwise("softmax_warp_forward<float, 10, false>(float *, const float *)", chip, 860_000, 0.87, 0.067),
        elementwise("layer_norm_kernel<float, 1024>(float *, const float *)", chip, 300_000, dram=0.85, fp32=0.07),
        replace(before[6], name="triton_red_fused_add_mean_15"),
        *before[7:],
    ]


def elementwise(  # noqa: PLR0913, PLR0917 - shares of one kernel
    name: str, chip: Chip, duration_ns: int, dram: float, fp32: float = 0.03, xu: float = 0.0, alu: float = 0.05
) -> Work:
    """Describe a kernel that streams arrays through the chip."""
    shares = Shares(dram=dram, l2=0.45 * dram, l1=0.25 * dram, fp32=fp32, xu=xu, alu=alu)
    return by_shares(name, chip, duration_ns, shares, Launch(_GRID, (256, 1, 1), stalls={"long_scoreboard": 800}))
