"""Roofs of the plane: which are drawn, their values, and their names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from planes import make_plane, make_spec
from support import samples
from support.roofs import own_roof

from rooflens.model.records import Kernel, Roof
from rooflens.model.roofline.flops import instruction_roofs
from rooflens.report.plane.viewport import WIDE
from rooflens.report.roofline.labels import pipe_roof
from rooflens.report.roofline.rows import clock_text

WGMMA_PER_S = 4096 * 132 * 1.5e9


def values(roofs: dict[str, Roof]) -> dict[str, float]:
    """Return what each of them does a second."""
    return {key: roof.value for key, roof in roofs.items()}


def hopper_kernel(**peaks: float) -> Kernel:
    """Make a kernel on an H200 whose report has these tensor peaks."""
    return Kernel("a", "a", 0, "k", "k", "ok", gpu="NVIDIA H200", compute_capability="9.0", tensor_peaks_per_s=peaks)


def test_a_stray_pipe_draws_no_roof() -> None:
    """A pipe with less than a hundredth of a launch's FLOPs is not a roof of the launch."""
    stray = samples.Sample("k", "memory", 100, "dram", {"dram": 1e8}, {"fp32": 1e9, "fp16": 1e6})
    assert [roof.keys for roof in make_plane([samples.analysis(stray)]).pipe_roofs] == [("fp32",)]


def test_equal_roofs_are_one_line() -> None:
    """L1 and shared memory of the same width share a line, the fastest first."""
    keys = [roof.keys for roof in make_plane(samples.every_verdict()).level_roofs]
    assert keys == [("l1", "smem"), ("l2",), ("dram",)]


def test_attainable_roofs_lie_under_their_own() -> None:
    """A roof has the median of what its launches can attain, at most its own value."""
    analyses = [
        replace(a, levels=a.levels | {"dram": replace(a.levels["dram"], attainable_per_s=attained)})
        for a, attained in zip(samples.every_verdict()[:3], (1.3e12, 1.4e12, 9e12), strict=True)
    ]
    assert make_plane(analyses).level_roofs[-1].attainable == pytest.approx(1.4e12)
    assert make_plane(analyses[2:]).level_roofs[-1].attainable == pytest.approx(1.555e12)


@pytest.mark.parametrize(
    ("clocks_hz", "said"),
    [((1.2757e9, 1.2883e9, 1.2929e9), "1.29 GHz"), ((1.0e9, 1.2883e9, 1.5e9), "1.00 GHz to 1.50 GHz")],
)
def test_the_clock_of_the_roofs_is_that_of_their_peaks(clocks_hz: tuple[float, ...], said: str) -> None:
    """Lines are at the median peak, so their clock is the median, not the middle of its range."""
    analyses = [
        replace(a, kernel=replace(a.kernel, counters={**a.kernel.counters, "sm_clock_hz": hz}))
        for a, hz in zip(samples.every_verdict()[:3], clocks_hz, strict=True)
    ]
    assert clock_text(make_plane(analyses).roofs.clocks_hz) == said


@pytest.mark.parametrize(("full", "drawn"), [(1.6e12, None), (2.0e12, 2.0e12)])
def test_memory_has_a_second_roof_only_well_over_the_first(full: float, drawn: float | None) -> None:
    """DRAM at its own top clock is drawn and named if that is more than 1.1 times the profiled 1.555 TB/s."""
    analyses = [
        replace(a, kernel=replace(a.kernel, counters={**a.kernel.counters, "device_dram_peak_bytes_per_s": full}))
        for a in samples.every_verdict()[:2]
    ]
    assert make_plane(analyses).level_roofs[-1].full_clock == drawn
    spec = make_spec(analyses)
    assert [row["v"] for row in spec["datasets"].get("twinSlopes", [])] == ([drawn] if drawn else [])
    note = "light dashes over HBM2: at full memory clock, 2.00 TB/s"
    assert (note in spec["title"]["subtitle"].replace("\u00a0", " ")) == bool(drawn)


def test_hopper_has_two_roofs_for_one_type() -> None:
    """A type with mma and wgmma has both peaks: mma reaches two thirds of the dense peak."""
    kernel = hopper_kernel(src_bf16_dst_fp32_sparsity_off=WGMMA_PER_S)
    peaks = {"tensor_bf16": WGMMA_PER_S * 2 / 3, "tensor_bf16_wgmma": WGMMA_PER_S}
    assert values(instruction_roofs(kernel, "tensor_bf16")) == pytest.approx(peaks)
    assert values(instruction_roofs(kernel, "tensor_bf16_wgmma")) == pytest.approx(peaks)


@pytest.mark.parametrize("key", ["fp32", "tensor_bf16_sparse", "tensor_fp16_acc16", "tensor_fp64"])
def test_other_pipes_have_one_roof(key: str) -> None:
    """Pipes without a second instruction have no second roof."""
    assert instruction_roofs(hopper_kernel(src_fp64=1e13, src_fp16_sparsity_off=WGMMA_PER_S), key) == {}


def test_chips_without_wgmma_have_one_roof() -> None:
    """Before Hopper there is only mma."""
    kernel = replace(hopper_kernel(src_bf16_dst_fp32=1e14), compute_capability="8.0", gpu=None)
    assert instruction_roofs(kernel, "tensor_bf16") == {}


def test_blackwell_tells_mma_from_tcgen05() -> None:
    """If a report has the peaks of both instructions, both are roofs."""
    kernel = hopper_kernel(op_hmma_src_bf16_dst_fp32_sparsity_off=5e14, op_utchmma_src_bf16_dst_fp32_sparsity_off=2e15)
    kernel = replace(kernel, compute_capability="10.0", gpu=None)
    assert values(instruction_roofs(kernel, "tensor_bf16")) == {"tensor_bf16": 5e14, "tensor_bf16_tcgen05": 2e15}


def test_both_instructions_are_drawn_and_named() -> None:
    """A plane of Hopper's tensor work shows mma and wgmma, each with its name, whichever of them ran."""
    (gemm,) = [a for a in samples.every_verdict() if a.verdict.bound == "compute"]
    kernel = hopper_kernel(src_bf16_dst_fp32_sparsity_off=WGMMA_PER_S)
    pipe = replace(gemm.pipes["tensor_bf16"], roof=own_roof(WGMMA_PER_S * 2 / 3))
    placed = make_plane([replace(gemm, kernel=replace(gemm.kernel, compute_capability="9.0", gpu="NVIDIA H200",
                         tensor_peaks_per_s=kernel.tensor_peaks_per_s), pipes={"tensor_bf16": pipe})])  # fmt: skip
    named = [pipe_roof(roof, None, WIDE).names[0].replace("\u00a0", " ") for roof in placed.pipe_roofs]
    assert named == ["tensor bf16 wgmma  811 TFLOP/s", "tensor bf16 mma  541 TFLOP/s"]
