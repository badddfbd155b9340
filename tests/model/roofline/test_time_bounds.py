from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.kernels import make_kernel
from support.loops import for_all

from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis
from rooflens.model.roofline.time_bounds import Bounds, time_bounds

H100_BF16 = 1979e12
H100_DRAM = 3.35e12
"""FLOP/s and B/s that the seed `004_20b1d30282d329e1.txt` counts with."""


def tensor_analysis(flop: float, moved_bytes: float, duration_ns: float = 2000.0) -> Analysis:
    """Analyze a bf16 kernel on the seed's H100."""
    counters = {
        "duration_ns": duration_ns,
        "dram_bytes": moved_bytes,
        "dram_peak_bytes_per_s": H100_DRAM,
        **dict.fromkeys(("fadd_threads", "fmul_threads", "ffma_threads"), 0.0),
    }
    ops, peaks = {"src_bf16_dst_fp32": flop}, {"src_bf16_dst_fp32_sparsity_off": H100_BF16}
    return analyze(make_kernel(counters, tensor_ops=ops, tensor_peaks_per_s=peaks))


def bounds_of(analysis: Analysis) -> Bounds:
    """Return the bounds of a kernel that has some."""
    bounds = time_bounds(analysis)
    assert bounds is not None
    return bounds


@pytest.mark.parametrize(
    ("flop", "moved_bytes", "math_ns", "memory_ns"),
    [(2 * 2**20 - 1, 4 * 2**20 + 2, 1.06, 1250.0), (2 * 64**3, 3 * 64 * 64 * 2, 0.26, 7.34)],
    ids=["dot product of 1M", "matmul of 64"],
)
def test_times_of_the_seed(flop: float, moved_bytes: float, math_ns: float, memory_ns: float) -> None:
    """The dot product and the matmul of the seed have its T_math and T_comms, their maximum and their sum."""
    bounds = bounds_of(tensor_analysis(flop, moved_bytes))
    assert bounds.math_ns == pytest.approx(math_ns, abs=0.005)
    assert bounds.memory_ns == pytest.approx(memory_ns, rel=0.002)
    assert bounds.lower_ns == bounds.memory_ns
    assert bounds.upper_ns == pytest.approx(math_ns + memory_ns, rel=0.003)


def test_types_add_up_to_the_time_of_the_arithmetic() -> None:
    """4 GFLOP of fp32 at 20 TFLOP/s and 1 GFLOP of fp64 at 10 take 200 and 100 us: 300 us in all."""
    counters = {
        "ffma_threads": 2e9,
        "fadd_threads": 0.0,
        "fmul_threads": 0.0,
        "ffma_peak_threads_per_s": 10e12,
        "dfma_threads": 0.5e9,
        "dadd_threads": 0.0,
        "dmul_threads": 0.0,
        "dfma_peak_threads_per_s": 5e12,
        "dram_bytes": 1e9,
        "dram_peak_bytes_per_s": 2e12,
    }
    bounds = bounds_of(analyze(make_kernel(counters)))
    assert bounds.math_parts_ns == pytest.approx({"fp32": 200e3, "fp64": 100e3})
    assert bounds.math_ns == pytest.approx(300e3)
    assert (bounds.lower_ns, bounds.upper_ns) == pytest.approx((500e3, 800e3))
    assert bounds.position == "above"


def test_a_level_needs_the_time_of_its_busiest_stage() -> None:
    """Shared memory that moves 1 GB at 4 TB/s needs 250 us, of L1 too; a level that was not measured has no time."""
    counters = {"smem_bytes": 1e9, "l1_peak_bytes_per_s": 4e12}
    bounds = bounds_of(analyze(make_kernel(counters)))
    assert bounds.level_ns == pytest.approx({"l1": 250e3, "smem": 250e3})
    assert bounds.memory_ns is None


@for_all(
    "duration_ns, position",
    [(900, "below"), (990, "near"), (1199, "near"), (1300, "between"), (1570, "between"), (1600, "above")],
)
def test_where_a_time_stands(duration_ns: float, position: str) -> None:
    """With T_math 500 and T_DRAM 1000 ns: near up to 1200, between up to 5 % over the sum of 1500, then above."""
    bounds = Bounds(duration_ns, 500.0, {"fp32": 500.0}, {"dram": 1000.0})
    assert bounds.position == position


def test_missing_parts_leave_no_bounds() -> None:
    """Without FLOP counters, DRAM traffic, peak or duration there are no bounds, and nothing is taken as zero."""
    whole = tensor_analysis(1e9, 1e6)
    assert bounds_of(replace(whole, flop_total=None)).math_ns is None
    assert bounds_of(replace(whole, flop_total=None)).position is None
    pipes = {**whole.pipes, "tensor_bf16": replace(whole.pipes["tensor_bf16"], share=None)}
    assert bounds_of(replace(whole, pipes=pipes)).math_ns is None
    levels = {**whole.levels, "dram": replace(whole.levels["dram"], share=None)}
    unknown = bounds_of(replace(whole, levels=levels))
    assert (unknown.lower_ns, unknown.upper_ns, unknown.position) == (None, None, None)
    assert time_bounds(replace(whole, kernel=make_kernel({"duration_ns": None}))) is None
    assert time_bounds(replace(whole, kernel=replace(whole.kernel, status="failed"))) is None


def test_no_arithmetic_is_no_time() -> None:
    """A copy has T_math 0 and both bounds at its traffic; integer tensor work is arithmetic too."""
    copy = bounds_of(tensor_analysis(0.0, 3.35e6))
    assert (copy.math_ns, copy.lower_ns, copy.upper_ns) == (0.0, pytest.approx(1000.0), pytest.approx(1000.0))
    whole = tensor_analysis(1979e6, 3.35e6)
    pipes = {"tensor_int8": replace(whole.pipes["tensor_bf16"], unit="op")}
    assert bounds_of(replace(whole, pipes=pipes)).math_ns == pytest.approx(1000.0)


def test_nothing_done_has_no_position() -> None:
    """A kernel without arithmetic and traffic is not compared with bounds of zero."""
    assert bounds_of(tensor_analysis(0.0, 0.0)).position is None
