"""The time of a kernel on another GPU: ridges, sides and lower bounds compared with manual calculations."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.roofs import own_roof
from support.samples import Sample

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.other_gpu import (
    GpuRoofs,
    Load,
    RoofTimes,
    gpu_roofs,
    load_of,
    own_roofs,
    place,
    report_roofs,
    tells_time,
    what_if,
)
from rooflens.model.records import Analysis, Pipe
from rooflens.model.roofline.datasheets import load_datasheets
from rooflens.model.summary import KernelSummary, summarize

GPUS = {gpu.id: gpu for gpu in load_datasheets()}
A100_80GB = replace(samples.A100, name="NVIDIA A100-SXM4-80GB")
NOT_LISTED = replace(samples.A100, name="NVIDIA Test GPU")

GEMM = Sample("gemm", "compute", 10_000, "tensor_bf16", {"dram": 1e10}, {"tensor_bf16": 2e12}, chip=A100_80GB)
"""200 FLOP/B: between the ridges of A100 and H100."""
COPY = Sample("copy", "memory", 6_000, "dram", {"dram": 1e10}, {}, chip=A100_80GB)
GATHER = Sample("gather", "latency", 5_000, None, {"dram": 1e9}, {"fp32": 1e9}, chip=A100_80GB)


def standing(analysis: Analysis) -> RoofTimes | None:
    """Place a kernel under the roofs of its own GPU."""
    load, roofs = load_of(analysis), own_roofs(analysis)
    return place(load, roofs) if load and roofs else None


def here(sample: Sample) -> RoofTimes:
    """Place a sample that can be placed."""
    found = standing(samples.analysis(sample))
    assert found is not None
    return found


def kernel(sample: Sample) -> KernelSummary:
    """Summarize the only launch of a sample."""
    (found,) = summarize([samples.analysis(sample)])
    return found


def on(gpu: str, load: Load) -> RoofTimes:
    """Place a load on a GPU with a peak for all of it."""
    found = place(load, gpu_roofs(GPUS[gpu]))
    assert found is not None
    return found


def with_pipe(name: str, amount: float) -> Analysis:
    """Replace the GEMM's tensor pipe by one with this name."""
    pipe = Pipe(amount, "FLOP", "opcode", roof=own_roof(300e12))
    return replace(samples.analysis(GEMM), pipes={name: pipe})


@for_all(
    "gpu, key, ridge",
    [
        ("a100-sxm4-40gb", "tensor_bf16", 200.6),  # 312 / 1.555
        ("a100-sxm4-80gb", "tensor_bf16", 153.0),  # 312 / 2.039
        ("h100-sxm", "tensor_bf16", 295.3),  # 989.4 / 3.35
        ("b200", "tensor_bf16", 292.2),  # 2250 / 7.7
        ("a100-sxm4-80gb", "fp32", 9.564),  # 19.5 / 2.039
        ("h100-sxm", "fp32", 19.97),  # 66.9 / 3.35
        ("b200", "fp32", 9.740),  # 75 / 7.7
    ],
)
def test_ridges_are_peak_over_bandwidth(gpu: str, key: str, ridge: float) -> None:
    """The ridge of a datasheet is its dense peak over its bandwidth, in FLOP per byte."""
    roofs = gpu_roofs(GPUS[gpu])
    assert roofs.peaks_per_s[key] / roofs.bandwidth_bytes_per_s == pytest.approx(ridge, rel=5e-4)


def test_a_kernel_between_two_ridges_changes_side() -> None:
    """At 200 FLOP/B a bf16 GEMM is compute-bound on an A100 and memory-bound on an H100.

    A100: 2e12 / 312e12 = 6.410 ms over 1e10 / 2.039e12 = 4.904 ms; H100: 2.021 ms under 2.985 ms.
    """
    measured = here(GEMM)
    load = load_of(samples.analysis(GEMM))
    assert load is not None
    there = on("h100-sxm", load)
    assert (measured.side, there.side) == ("compute", "memory")
    assert measured.math_s == pytest.approx(6.410e-3, rel=1e-3)
    assert measured.memory_s == pytest.approx(4.904e-3, rel=1e-3)
    assert there.math_s == pytest.approx(2.021e-3, rel=1e-3)
    assert there.lower_s == there.memory_s == pytest.approx(2.985e-3, rel=1e-3)
    answer = what_if(kernel(GEMM), GPUS["h100-sxm"], None)
    assert answer.side == "memory"
    assert answer.factor == pytest.approx(2.147, rel=1e-3)


def test_the_same_gpu_changes_nothing() -> None:
    """On the GPU it ran on, a kernel keeps side and time."""
    answer = what_if(kernel(GEMM), GPUS["a100-sxm4-80gb"], None)
    assert (answer.side, answer.factor) == ("compute", 1.0)


def test_a_mix_of_types_takes_the_time_of_each_part() -> None:
    """T_math adds each type's FLOPs over its own peak; H100: 989.4e9 / 989.4e12 + 66.9e9 / 66.9e12 = 2 ms."""
    assert on("h100-sxm", Load({"tensor_bf16": 989.4e9, "fp32": 66.9e9}, 1e9)).math_s == pytest.approx(2e-3)


def test_side_is_the_intensity_against_the_ridge() -> None:
    """A kernel is on the compute side exactly if its intensity exceeds the ridge of its mix."""
    ridge = 1.01e12 / (1e12 / 312e12 + 1e10 / 19.5e12) / 2.039e12
    for moved_bytes in (1e9, 5e9, 6e9, 7e9, 8e9, 2e10):
        side = on("a100-sxm4-80gb", Load({"tensor_bf16": 1e12, "fp32": 1e10}, moved_bytes)).side
        assert side == ("compute" if 1.01e12 / moved_bytes > ridge else "memory")


def test_a_missing_type_is_not_predicted() -> None:
    """An fp8 kernel is not predicted for an A100, and the missing peak is named."""
    chip = replace(samples.A100, name="NVIDIA H100 80GB HBM3", pipe_peaks={"tensor_fp8": 1.9e15})
    answer = what_if(kernel(replace(GEMM, flop={"tensor_fp8": 2e12}, chip=chip)), GPUS["a100-sxm4-80gb"], None)
    assert (answer.lower_ns, answer.side, answer.factor) == (None, None, None)
    assert answer.reason == "no published peak of tensor fp8 for NVIDIA A100-SXM4-80GB"


def test_a_part_below_one_in_a_hundred_needs_no_peak() -> None:
    """Constants loaded through the fp16 pipe do not prevent a prediction; real fp16 work does."""
    roofs = GpuRoofs(1e12, {"fp32": 1e13})
    assert place(Load({"fp32": 1e12, "fp16": 9e9}, 1e9), roofs) is not None
    assert place(Load({"fp32": 1e12, "fp16": 2e10}, 1e9), roofs) is None


def test_a_gpu_that_no_file_has_keeps_the_roofs_of_its_report() -> None:
    """Without a datasheet the report's own peaks are used."""
    found = here(replace(GEMM, chip=NOT_LISTED))
    assert found.memory_s == pytest.approx(1e10 / samples.A100.level_peaks["dram"])
    assert found.math_s == pytest.approx(2e12 / 312e12)


def test_two_instructions_of_one_type_are_one_load() -> None:
    """Work by mma and by wgmma has one datasheet peak; in a report the slower one's peak is used."""
    pipes = {
        "tensor_bf16": Pipe(1e12, "FLOP", "opcode", roof=own_roof(600e12)),
        "tensor_bf16_wgmma": Pipe(3e12, "FLOP", "opcode", roof=own_roof(900e12)),
    }
    analysis = replace(samples.analysis(GEMM), pipes=pipes)
    load, roofs = load_of(analysis), report_roofs(analysis)
    assert load is not None
    assert roofs is not None
    assert load.ops == {"tensor_bf16": 4e12}
    assert roofs.peaks_per_s == {"tensor_bf16": 600e12}


def test_work_that_no_datasheet_states_is_not_placed() -> None:
    """2:4 sparsity has rates of its own, so nothing is guessed."""
    assert standing(with_pipe("tensor_bf16_sparse", 2e12)) is None


@pytest.mark.parametrize(("gpu", "math_s"), [("a100-sxm4-80gb", 2e12 / 312e12), ("rtx-4090", 2e12 / 330.3e12)])
def test_accumulation_in_fp16_has_the_peak_of_its_board(gpu: str, math_s: float) -> None:
    """On an A100 both accumulators have one rate; an RTX 4090 doubles its 165.2 TFLOP/s with fp16 accumulation."""
    load = load_of(with_pipe("tensor_fp16_acc16", 2e12))
    assert load is not None
    assert on(gpu, load).math_s == pytest.approx(math_s)


@pytest.mark.parametrize(
    "analysis",
    [
        samples.failed(),
        samples.analysis(replace(GEMM, flop=None)),
        samples.analysis(replace(GEMM, level_bytes={})),
        samples.analysis(replace(GEMM, level_bytes={"dram": 0.0}, flop={})),
    ],
    ids=["failed", "no FLOPs counted", "no bytes counted", "nothing to do"],
)
def test_a_kernel_without_flops_or_bytes_has_no_place(analysis: Analysis) -> None:
    """A kernel whose report lacks FLOPs or bytes is not placed."""
    assert standing(analysis) is None


def test_a_kernel_without_hbm_traffic_stands_on_the_compute_side() -> None:
    """Zero bytes that were measured are not missing bytes."""
    found = here(replace(GEMM, level_bytes={"dram": 0.0}))
    assert (found.side, found.memory_s) == ("compute", 0.0)


@for_all(
    "bound, resource, told",
    [
        ("memory", "dram", True),
        ("compute", "tensor_bf16", True),
        ("compute", "tensor_bf16_wgmma", True),
        ("balanced", "dram", True),
        ("memory", "l2", False),
        ("memory", None, False),
        ("compute", "alu", False),
        ("latency", None, False),
        ("overhead", None, False),
        ("unknown", None, False),
    ],
)
def test_the_lower_bound_tells_of_hbm_and_flop_pipes_only(bound: str, resource: str | None, told: bool) -> None:  # noqa: FBT001
    """Caches, other pipes, latency and overhead are limiters that no datasheet covers."""
    analysis = samples.analysis(GEMM)
    verdict = replace(analysis.verdict, bound=bound, resource=resource)  # type: ignore[arg-type]
    assert tells_time(replace(analysis, verdict=verdict)) is told


def test_a_memory_bound_kernel_follows_bandwidth_and_width() -> None:
    """On an H100 a copy takes 2.039 / 3.35 of its time, half of that with half the bytes; waits are not predicted."""
    there = what_if(kernel(COPY), GPUS["h100-sxm"], None)
    assert there.side == "memory"
    assert there.factor == pytest.approx(3.35 / 2.039, rel=1e-3)
    assert there.about_ns == pytest.approx(6_000e3 * 2.039 / 3.35, rel=1e-3)
    waiting = what_if(kernel(GATHER), GPUS["h100-sxm"], None)
    assert (waiting.factor, waiting.side) == (None, None)
    assert waiting.reason == "limited by latency, which datasheets do not cover"
    assert waiting.lower_ns == pytest.approx(1e9 / 3.35e12 * 1e9, rel=1e-3)


def test_a_narrower_type_halves_bytes_and_uses_its_own_peak() -> None:
    """A bf16 product in fp8 has twice the peak on an H100 and half the bytes, so half the time."""
    as_bf16 = what_if(kernel(GEMM), GPUS["h100-sxm"], None)
    as_fp8 = what_if(kernel(GEMM), GPUS["h100-sxm"], "fp8")
    assert as_bf16.lower_ns is not None
    assert as_fp8.lower_ns == pytest.approx(as_bf16.lower_ns / 2, rel=0.01)
    with pytest.raises(UsageError, match="`--dtype bf16` has no effect"):
        what_if(kernel(GEMM), None, "bf16")
    with pytest.raises(UsageError, match="`--dtype fp16` has no effect"):
        what_if(kernel(COPY), None, "fp16")


def test_launches_of_different_times_are_their_sum() -> None:
    """A copy of 1, 1 and 4 us takes 6 us, not three times the median; elsewhere the bandwidths scale this sum."""
    launches = [replace(COPY, duration_us=time_us, level_bytes={"dram": time_us * 1e6}) for time_us in (1, 1, 4)]
    (copies,) = summarize([samples.analysis(one) for one in launches])
    there = what_if(copies, GPUS["h100-sxm"], None)
    assert there.measured_ns == pytest.approx(6e3)
    assert there.about_ns == pytest.approx(6e3 * 2.039 / 3.35, rel=1e-3)
    assert there.lower_ns == pytest.approx(6e6 / 3.35e12 * 1e9, rel=1e-3)


@for_all(
    "sample, gpu, reason",
    [
        (replace(GEMM, flop=None), "h100-sxm", "FLOPs not counted"),
        (replace(GEMM, level_bytes={}), "h100-sxm", "DRAM bytes not measured"),
        (replace(GEMM, flop=None, level_bytes={}), "h100-sxm", "FLOPs not counted, DRAM bytes not measured"),
        (GEMM, "t4", "no published peak of tensor bf16 for Tesla T4"),
        (replace(GEMM, resource="l1"), "h100-sxm", "limited by L1, which datasheets do not cover"),
        (
            replace(GEMM, bound="memory", resource="dram"),
            "h100-sxm",
            "limited by HBM2e, though by datasheet arithmetic takes longer",
        ),
    ],
)
def test_what_keeps_a_kernel_from_being_predicted_is_named(sample: Sample, gpu: str, reason: str) -> None:
    """The reason says what is missing, in the words of `analyze`, and no side contradicts it."""
    there = what_if(kernel(sample), GPUS[gpu], None)
    assert (there.reason, there.about_ns, there.side) == (reason, None, None)


def test_a_type_needs_the_peaks_of_a_known_gpu() -> None:
    """Without a datasheet of its own GPU the error says how to name one; on another GPU the kernel is predicted."""
    unnamed = replace(samples.analysis(GEMM), kernel=replace(samples.analysis(GEMM).kernel, gpu=None))
    with pytest.raises(InputError, match="does not name its GPU") as error:
        what_if(summarize([unnamed])[0], None, "fp8")
    assert "--from-gpu" in error.value.hint
    with pytest.raises(InputError, match="no datasheet of NVIDIA Test GPU"):
        what_if(kernel(replace(GEMM, chip=NOT_LISTED)), None, "fp8")
    assert what_if(kernel(replace(GEMM, chip=NOT_LISTED)), GPUS["h100-sxm"], "fp8").lower_ns
