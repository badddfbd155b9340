from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.roofs import own_roof

from rooflens.model.predict.expectations import check_reports
from rooflens.model.predict.explain import check
from rooflens.model.predict.measured import Coverage, Prediction, read_coverage
from rooflens.model.records import Analysis, Pipe
from rooflens.report.kernel.predicted import REASONS

GEMM = Prediction(
    operation="gemm",
    case="bf16_4096",
    parameters={"m": 4096, "n": 4096, "k": 4096},
    dtype="bf16",
    source="by counting",
    flop=2.0 * 4096**3,
    moved_bytes=6.0 * 4096**2,
    bound="compute",
    resource="tensor_bf16",
    why="1365 FLOP/B: far to the right",
)
SAXPY = Prediction("saxpy", "n28", {"n": 10**6}, "fp32", "by counting", 2e6, 12e6, "memory", "dram", "streams")
IN_RANGE = Coverage(in_range=True)


def did(
    flop: Mapping[str, float] | None,
    level_bytes: Mapping[str, float] | None = None,
    counters: Mapping[str, float] | None = None,
    **overrides: Any,
) -> Analysis:
    """Make an A100 kernel of 1 ms with these amounts."""
    chip = replace(samples.A100, pipe_peaks={**samples.A100.pipe_peaks, "tensor_tf32": 156e12})
    bound, resource = overrides.pop("limiter", ("compute", "tensor_bf16"))
    moved = {"dram": GEMM.moved_bytes or 0.0, **(level_bytes or {})}
    sample = samples.Sample("gemm", bound, 1000, resource, moved, flop, chip=chip, flags=overrides.pop("flags", ()))
    analysis = samples.analysis(sample)
    kernel = replace(analysis.kernel, counters={**analysis.kernel.counters, **(counters or {})}, **overrides)
    return replace(analysis, kernel=kernel)


def test_what_is_as_predicted_needs_no_reason() -> None:
    """Work, bytes, time within its bounds, and limiter agree: nothing looks for reasons."""
    checked = check(GEMM, [did({"tensor_bf16": 2.0 * 4096**3})], IN_RANGE)
    assert checked.gaps == ()
    assert (checked.work_ratio, checked.bytes_ratio) == (1.0, 1.0)


def test_bounds_come_from_the_report_s_own_peaks() -> None:
    """T_math is the predicted FLOP at the pipe's peak, T_memory the predicted bytes at the memory's."""
    bounds = check(GEMM, [did({"tensor_bf16": 1e9, "fp32": 1e12})]).times
    assert bounds.pipe == "tensor_bf16"
    assert bounds.math_ns == pytest.approx(2.0 * 4096**3 / 312e12 * 1e9)
    assert bounds.memory_ns == pytest.approx(6.0 * 4096**2 / 1.555e12 * 1e9)
    assert bounds.floor_ns == bounds.math_ns
    assert not bounds.is_published
    without_work = check(replace(GEMM, flop=None), [did({})]).times
    assert without_work.math_ns is None
    assert without_work.floor_ns == without_work.memory_ns
    assert check(GEMM, []).times.floor_ns is None


def test_a_time_alone_has_the_floor_of_the_datasheet() -> None:
    """A report with only the time uses the published peaks of its GPU."""
    bare = did({}, {}, counters={"duration_ns": 1e6})
    bare = replace(bare, pipes={}, levels={name: replace(level, roof=None) for name, level in bare.levels.items()})
    checked = check(GEMM, [bare])
    assert checked.times.is_published
    assert checked.times.floor_ns == pytest.approx(2.0 * 4096**3 / 312e12 * 1e9)


FLOP = 2.0 * 4096**3
RIGHT = {"tensor_bf16": FLOP}
ONCE = Coverage(once_each=True, in_range=True)
SPECIAL = {"MUFU.EX2": 1_000_000}
UNKNOWN = replace(
    did(RIGHT), levels={**did(RIGHT).levels, "dram": replace(did(RIGHT).levels["dram"], amount_bytes=None)}
)
FP32 = replace(GEMM, dtype="fp32", resource="fp32")
TF32 = replace(GEMM, dtype="tf32", resource="tensor_tf32")
NORM = Prediction("layernorm", "bf16", {"rows": 1}, "bf16", "", 7e6, 4e6, "memory", "dram")
TILES = {"tensor_bf16": 1.5e11}

CASES: tuple[tuple[Prediction, list[Analysis], Coverage, set[str]], ...] = (
    # Bytes beyond the compulsory ones are re-reads through L2; L2 may serve them all; DRAM may move larger pieces.
    (GEMM, [did(RIGHT, {"dram": 3e8, "l2": 3e9})], IN_RANGE, {"read_again", "larger_than_l2"}),
    (GEMM, [did(RIGHT, {"l2": 1e9})], IN_RANGE, {"read_again"}),
    (GEMM, [did(RIGHT, {"dram": 2e8, "l2": 1e8})], IN_RANGE, {"larger_pieces", "larger_than_l2"}),
    (SAXPY, [did({"fp32": 1e6}, {"dram": 8e6})] * 2, IN_RANGE, {"passed_between_launches"}),
    # Fewer bytes: what was written stayed in L2, caches were kept, or all of it fits.
    (GEMM, [did(RIGHT, {"dram": 67e6}, flags=("dram_writes_stay_in_l2",))], IN_RANGE, {"output_stayed_in_l2"}),
    (GEMM, [did(RIGHT, {"dram": 4e6})], Coverage(in_range=True, caches_kept=True), {"caches_kept"}),
    (replace(GEMM, moved_bytes=8e6), [did(RIGHT, {"dram": 4e6})], IN_RANGE, {"fits_l2"}),
    (GEMM, [did(TILES), UNKNOWN], ONCE, {"bytes_not_measured", "launches_profiled_once", "padded_or_repeated"}),
    # More work: beside the tensor pipes, in tiles, or special functions that the formula counts once.
    (GEMM, [did({**RIGHT, "fp32": 9e9})], IN_RANGE, {"work_beside_tensor"}),
    (GEMM, [did(TILES)], IN_RANGE, {"padded_or_repeated"}),
    (replace(GEMM, parameters={"m": 100, "k": 72}), [did(TILES)], IN_RANGE, {"uneven_tiles"}),
    (replace(GEMM, parameters={"causal": 1}), [did(TILES)], IN_RANGE, {"edge_of_mask"}),
    (SAXPY, [did({"fp32": 9e6}, {"dram": 12e6}, thread_opcodes=SPECIAL)], IN_RANGE, {"several_instructions"}),
    # Less work: what does not count as FLOP, masks, and what counters lack.
    (SAXPY, [did({}, {"dram": 12e6}, thread_opcodes=SPECIAL)], IN_RANGE, {"special_not_counted"}),
    (SAXPY, [did({}, {"dram": 12e6})], IN_RANGE, {"comparisons_not_counted"}),
    (
        replace(GEMM, parameters={"causal": 1}),
        [did({"tensor_bf16": 7e10}, flags=("sparse_tensor_work",))],
        IN_RANGE,
        {"masked_tiles_skipped", "counted_low"},
    ),
    (GEMM, [did(None, flags=("no_flop_counters",))], IN_RANGE, {"work_not_counted"}),
    # Another type: named where the pipe matters; never where the type was guessed, or memory is the limiter anyway.
    (GEMM, [did({"fp32": FLOP})], IN_RANGE, {"another_type"}),
    (FP32, [did({"tensor_tf32": FLOP}, counters={"duration_ns": 9e6})], IN_RANGE, {"rounded_to_tf32"}),
    (TF32, [did({"fp32": FLOP})], IN_RANGE, {"tf32_disabled"}),
    (NORM, [did({"fp32": 7e6}, {"dram": 4e6})], IN_RANGE, set()),
    (replace(NORM, flop=7e9), [did({"fp32": 7e9}, {"dram": 4e6})], IN_RANGE, {"another_type"}),
    (GEMM, [did({"fp32": FLOP}, flags=("tensor_flop_estimated",))], IN_RANGE, set()),
    # A time below the floor, and what was profiled.
    (GEMM, [did(RIGHT, counters={"duration_ns": 0.2e6})], IN_RANGE, {"too_fast"}),
    (
        GEMM,
        [did({"tensor_bf16": FLOP / 2})] * 2,
        Coverage(),
        {"whole_program_profiled", "larger_than_l2", "passed_between_launches"},
    ),
    (GEMM, [did(RIGHT), samples.failed()], IN_RANGE, {"failed", "work_not_counted", "bytes_not_measured"}),
)


@for_all("prediction, kernels, coverage, reasons", CASES)
def test_reasons_are_what_the_counters_show(
    prediction: Prediction, kernels: list[Analysis], coverage: Coverage, reasons: set[str]
) -> None:
    """Each difference has the reasons that its counters show, and no other."""
    assert {*check(prediction, kernels, coverage).gaps} == reasons


def test_every_reason_has_a_sentence() -> None:
    """No reason is without words, and no words are for a reason that nothing gives."""
    given = {reason for _, _, _, reasons in CASES for reason in reasons}
    assert given | {"counted_high"} == {*REASONS}


def test_equal_launches_profiled_once_are_a_lower_bound() -> None:
    """Only an amount that adds up shows that no launch is missing; otherwise the measurement is a lower bound."""
    once = Coverage(once_each=True, in_range=True)
    whole = check(GEMM, [did({"tensor_bf16": 2.0 * 4096**3})], once)
    assert not whole.at_least
    part = check(GEMM, [did({"tensor_bf16": 4096.0**3})], once)
    assert part.at_least
    assert "launches_profiled_once" in part.gaps
    no_work = replace(GEMM, flop=None)
    assert not check(no_work, [did({})], once).at_least
    assert check(no_work, [did({}, {"dram": 1e6})], once).at_least


def test_launches_count_as_often_as_they_ran() -> None:
    """A profiled launch that represents three counts three times."""
    checked = check(SAXPY, [replace(did({"fp32": 1e6}, {"dram": 4e6}), launches=3)])
    assert checked.measured.launches == 3
    assert (checked.work_ratio, checked.bytes_ratio) == (1.5, 1.0)
    assert checked.measured.time_ns == 3e6


def test_several_iterations_are_divided() -> None:
    """Of four iterations profiled as a whole, one is compared; one of several equal launches is a single iteration."""
    four = replace(SAXPY, iterations=4)
    kernels = [did({"fp32": 2e6}, {"dram": 12e6})] * 4
    assert check(four, kernels).work_ratio == 1.0
    assert check(four, kernels).measured.time_ns == 1e6
    assert check(four, kernels[:1], Coverage(once_each=True)).work_ratio == 1.0


@for_all("moved, launches, iterations", [(4e6, 4, 4), (1e6, 4, 1), (4e6, 1, 1)])
def test_equal_launches_are_iterations_where_each_moves_what_was_predicted(
    moved: float, launches: int, iterations: int
) -> None:
    """Four launches that move the bytes each are four iterations; four that move them together are parts of one."""
    kernels = [did({"fp32": 2e6}, {"dram": moved})] * launches
    (report,) = samples.reports([samples.run()], kernels)
    for stated, count in ((True, iterations), (False, 1)):
        prediction = replace(SAXPY, moved_bytes=4e6, is_stated_once=stated)
        (found,) = check_reports([report], {report.run.digest: prediction})
        assert found.prediction.iterations == count


def test_more_than_the_range_was_profiled() -> None:
    """In a profile of the whole program, amounts above the prediction may include preparation."""
    kernels = [did({"tensor_bf16": 2.0 * 4096**3})] * 2
    runs = (check(GEMM, kernels), check(GEMM, kernels, IN_RANGE), check(GEMM, kernels[:1]))
    assert ["whole_program_profiled" in checked.gaps for checked in runs] == [True, False, False]


def test_a_failed_kernel_leaves_the_sum_unknown() -> None:
    """Nothing is summed up if a kernel failed."""
    checked = check(GEMM, [did({"tensor_bf16": 1.0}), samples.failed()])
    assert "failed" in checked.gaps
    assert checked.work_ratio is None
    assert checked.measured.time_ns is None


def test_integer_operations_are_compared_with_their_like() -> None:
    """An int8 prediction is compared with the tensor pipe's integer operations, never with FLOPs."""
    int8 = Prediction("int8_mma", "tiles14", {}, "int8", "", 1e12, 1e8, "compute", "tensor_int8")
    pipe = Pipe(1e12, "op", "opcode", 1e15, own_roof(624e12, "op"), 1.0)
    kernel = replace(did({"fp32": 5e9}), pipes={**did({"fp32": 5e9}).pipes, "tensor_int8": pipe})
    checked = check(int8, [kernel])
    assert checked.work_ratio == 1.0
    assert checked.prediction.unit == "op"
    assert checked.times.pipe == "tensor_int8"


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        (None, Coverage()),
        ("ncu --nvtx --nvtx-include rooflens ./a", Coverage(in_range=True)),
        ("ncu --filter-mode=per-launch-config --launch-count 1 ./a", Coverage(once_each=True)),
        ("ncu --filter-mode global ./a", Coverage()),
    ],
)
def test_the_command_line_says_how_much_was_profiled(command_line: str | None, expected: Coverage) -> None:
    """Filter mode and NVTX range come from the profiler's command line, the cache mode from provenance."""
    assert read_coverage(samples.run(command_line=command_line)) == expected
    kept = read_coverage(samples.run(command_line=command_line, cache_control="none"))
    assert kept == replace(expected, caches_kept=True)
