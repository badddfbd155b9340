"""Check the corrections of misleading counters on real reports: shared memory, constants, integer products, L2."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.model.records import Analysis
from rooflens.model.roofline.datasheets import datasheet_of

WAVEFRONT_BYTES = 128
PACKED_FMA_FLOP = 4


def test_no_kernel_without_shared_memory_is_at_such_a_level(analyses: list[Analysis]) -> None:
    """If static and dynamic shared memory are 0 bytes, the kernel has no amount, share or intensity of it."""
    without = [
        analysis
        for analysis in analyses
        if [analysis.kernel.counters.get(f"smem_{kind}_per_block_bytes") for kind in ("static", "dynamic")] == [0, 0]
    ]
    assert len(without) >= 60
    for analysis in without:
        level = analysis.levels["smem"]
        assert (level.amount_bytes, level.share, level.intensity_flop_per_byte) == (None, None, None)


def test_delivered_bytes_are_those_of_the_accesses(analyses: list[Analysis]) -> None:
    """If the wavefronts of all accesses are stored, shared memory delivered 128 bytes with each."""
    compared = 0
    for analysis in analyses:
        stored = analysis.kernel.counters.get("smem_access_wavefronts")
        if stored is None or analysis.levels["smem"].amount_bytes is None:
            continue
        wgmma = analysis.kernel.counters.get("smem_wgmma_bytes", 0.0)
        assert analysis.levels["smem"].amount_bytes == WAVEFRONT_BYTES * stored + wgmma
        compared += 1
    assert compared >= 8


def test_loaded_constants_are_no_arithmetic(analyses: list[Analysis]) -> None:
    """Packed fp16 is exactly the opcode table's count minus the instructions that only load a constant."""
    compared = 0
    for analysis in analyses:
        constants = analysis.kernel.code_totals.get("fp16_constant_threads")
        opcodes = analysis.kernel.thread_opcodes
        if constants is None or not opcodes or any(name.startswith(("HADD2", "HMUL2")) for name in opcodes):
            continue
        executed = sum(count for name, count in opcodes.items() if name.startswith("HFMA2"))
        assert analysis.flop["fp16"] == PACKED_FMA_FLOP * (executed - constants)
        compared += 1
    assert compared >= 20


def test_integer_products_stand_under_their_own_roof(analyses: list[Analysis]) -> None:
    """The three int8 products are placed by their operations, their fp32 epilogue is not placed."""
    products = [a for a in analyses if Path(a.kernel.source).name.startswith("cutlass__384")]
    assert len(products) == 3
    for analysis in products:
        pipe = analysis.pipes["tensor_int8"]
        assert pipe.unit == "op"
        assert pipe.peak_per_s is not None
        assert pipe.peak_per_s > 1e14
        assert analysis.levels["dram"].intensity_flop_per_byte is None


def test_l2_of_the_gpu_files_returns_what_reports_say(analyses: list[Analysis]) -> None:
    """The bytes per cycle in the L2 bandwidth of a GPU file are those of the return path in reports of that GPU."""
    compared = set()
    for kernel in (analysis.kernel for analysis in analyses):
        gpu = datasheet_of(kernel.gpu)
        peak, clock_hz = (kernel.counters.get(name) for name in ("l2_return_peak_bytes_per_s", "l2_clock_hz"))
        is_of_rate = ".pct_of_peak" in kernel.counter_sources.get("l2_return_peak_bytes_per_s", "")
        if gpu and gpu.l2_bandwidth and peak and clock_hz and not is_of_rate:
            assert peak / clock_hz == pytest.approx(gpu.l2_bandwidth.value / gpu.boost_clock.value, rel=1e-3)
            compared.add(gpu.id)
    assert {"a100-sxm4-40gb", "h100-pcie"} <= compared
