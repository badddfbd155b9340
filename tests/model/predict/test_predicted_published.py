"""Compare formulas with the counters of published reports by others."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.analyzing import analyze_paths
from rooflens.model.predict.forecast import Forecast, forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.records import Analysis
from rooflens.model.roofline.datasheets import datasheet_of

PUBLISHED = Path(__file__).parents[3] / "fixtures" / "published"


def measured(name: str) -> Analysis:
    """Analyze the first kernel of a published report."""
    (report,) = analyze_paths([PUBLISHED / name]).reports
    return report.analyses[0]


def predicted(operation: str, gpu: str, **sizes: int) -> Forecast:
    """Predict in fp32 on the GPU of a report."""
    datasheet = datasheet_of(gpu)
    assert datasheet is not None
    return forecast(OPERATIONS[operation], sizes, "fp32", datasheet)


def test_adamw_of_llm_c_moves_28_bytes_a_parameter() -> None:
    """2048 blocks of 512 threads, one parameter each, on an RTX 3060 Ti: 29.1 MB and 17 FLOPs each were counted."""
    found = measured("llm.c__adamw_coalsecing_shared.ncu-rep")
    step = predicted("adamw", "NVIDIA GeForce RTX 3060 Ti", n=2048 * 512)
    assert found.levels["dram"].amount_bytes == pytest.approx(step.moved_bytes, rel=0.01)
    assert found.flop_total == pytest.approx(step.flop, rel=0.07)
    assert found.kernel.duration_ns is not None
    # 29.4 MB at 448 GB/s are 65.5 us; it took 72.6.
    assert found.kernel.duration_ns / (step.t_lower_s * 1e9) == pytest.approx(72.6 / 65.5, rel=1e-2)


def test_the_naive_product_of_kernelbench_reads_through_every_level_as_its_tiles_say() -> None:
    """4096^3 in fp32 with blocks of 16 x 16 on an H100 PCIe: L1 as with a tile of 1, L2 as with a tile of 16."""
    found = measured("KernelBench__matmul_kernel.ncu-rep")
    sizes = {"m": 4096, "n": 4096, "k": 4096}
    blocks = predicted("gemm", "NVIDIA H100 PCIe", **sizes, l2_tile=16)
    threads = predicted("gemm", "NVIDIA H100 PCIe", **sizes, tile=1)
    assert found.flop_total == blocks.flop
    assert found.levels["l2"].amount_bytes == pytest.approx(blocks.l2_bytes, rel=0.01)
    assert found.levels["l1"].amount_bytes == pytest.approx(threads.moved_bytes, rel=0.01)
