from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from support import samples
from support.kernels import make_kernel
from support.loops import for_all
from support.roofs import own_roof

from rooflens.model.analyze import analyze
from rooflens.model.predict.expectations import check_reports
from rooflens.model.predict.explain import check
from rooflens.model.predict.measured import Checked, Coverage, Prediction, Topic, read_coverage
from rooflens.model.records import Analysis, Pipe

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


def words(checked: Checked, topic: Topic) -> str:
    """Return all sentences about a topic."""
    return " ".join(gap.text for gap in checked.gaps if gap.topic == topic)


def test_what_is_as_predicted_is_said_so() -> None:
    """Work, bytes, time within its bounds, and limiter agree: each sentence says so, and none looks for reasons."""
    checked = check(GEMM, [did({"tensor_bf16": 2.0 * 4096**3})], IN_RANGE)
    assert [(gap.topic, gap.as_predicted, gap.reasons) for gap in checked.gaps[:2]] == [
        ("work", True, ()),
        ("bytes", True, ()),
    ]
    assert words(checked, "work") == "The work is as predicted: 137 GFLOP."
    assert words(checked, "bytes") == "DRAM moved the compulsory bytes: 101 MB."
    assert words(checked, "limiter") == ("It is limited, as expected, by compute at tensor bf16 for 100 % of the time.")
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


@pytest.mark.parametrize(
    ("duration_ns", "expected", "as_predicted"),
    [
        (
            0.2e6,
            (
                "200 \u00b5s is 0.454 times the floor: its operands or sums have a narrower type, or it did less work "
                "than predicted; or the time is wrong (L2 is no reason, as it takes 441 \u00b5s with all data there). "
                "Not everything was profiled, or less work was done than predicted."
            ),
            False,
        ),
        (0.48e6, "480 \u00b5s is 1.09 times the floor and 0.820 times the median of published kernels: faster", True),
        (
            5e6,
            (
                "5.00 ms is 11.4 times the floor and 8.54 times the median of published kernels: slower than nearly "
                "all of them; the best would take 481 µs. Latency or launch overhead may explain the 4.56 ms beyond it."
            ),
            False,
        ),
    ],
)
def test_time_is_held_against_floor_and_published_kernels(
    duration_ns: float,
    expected: str,
    as_predicted: bool,  # noqa: FBT001 - a parameter
) -> None:
    """A time may be below the floor of 0.4405 ms, within the range of published kernels, or beyond it."""
    checked = check(GEMM, [did({"tensor_bf16": 1e9}, counters={"duration_ns": duration_ns})])
    assert expected in words(checked, "time")
    assert [gap.as_predicted for gap in checked.gaps if gap.topic == "time"] == [as_predicted]


def test_a_time_alone_has_the_floor_of_the_datasheet() -> None:
    """A report with only the time uses the published peaks of its GPU."""
    bare = did({}, {}, counters={"duration_ns": 1e6})
    bare = replace(bare, pipes={}, levels={name: replace(level, roof=None) for name, level in bare.levels.items()})
    checked = check(GEMM, [bare])
    assert checked.times.is_published
    assert checked.times.floor_ns == pytest.approx(2.0 * 4096**3 / 312e12 * 1e9)
    assert "times the floor" in words(checked, "time")


def test_more_bytes_are_re_reads_through_l2() -> None:
    """Bytes beyond the compulsory ones: by direction, how often the SMs moved the data, and that it exceeds L2."""
    traffic = {"dram": 3e8, "l2": 3e9}
    counters = {"dram_read_bytes": 2.6e8, "dram_write_bytes": 0.4e8}
    said = words(check(GEMM, [did({"tensor_bf16": 1.0}, traffic, counters)]), "bytes")
    assert said == (
        "DRAM moved 300 MB, 2.98x the compulsory 101 MB: 260 MB read, 40.0 MB written. "
        "Between the SMs and L2 3.00 GB moved, 29.8x the compulsory bytes: operands are read again, and 10 % of that "
        "reaches DRAM. The compulsory bytes do not fit in the 41.9 MB of L2."
    )


def test_l2_can_take_all_re_reads() -> None:
    """DRAM bytes agree with the prediction because L2 served the re-reads, which are mentioned."""
    (gap,) = (g for g in check(GEMM, [did({}, {"l2": 1e9})]).gaps if g.topic == "bytes")
    assert gap.as_predicted
    assert "9.93x the compulsory bytes" in gap.text


def test_memory_that_moves_more_than_was_asked_for() -> None:
    """With fewer bytes between SMs and L2 than at DRAM nothing was reread; DRAM may transfer larger pieces."""
    said = words(check(GEMM, [did({}, {"dram": 2e8, "l2": 1e8})]), "bytes")
    assert "Only 100 MB passed between the SMs and L2, 2.00x of that at DRAM" in said
    assert "read again" not in said


def test_several_launches_may_hand_over_through_memory() -> None:
    """For more bytes over several launches, the round trip between them is named as a possible reason."""
    parts = [did({}, {"dram": 2e8}), did({}, {"dram": 2e8})]
    assert "Data passed between the 2 launches may go through DRAM." in words(check(GEMM, parts), "bytes")


def test_fewer_bytes_because_the_output_stayed_in_l2() -> None:
    """The flag of writes that stay in L2 explains missing bytes, with the bytes written to L2 and on to DRAM."""
    counters = {"l2_write_bytes": 33.6e6, "dram_write_bytes": 0.1e6}
    kernel = did({}, {"dram": 67e6}, counters, flags=("dram_writes_stay_in_l2",))
    said = words(check(GEMM, [kernel]), "bytes")
    assert "The output stayed in L2: 33.6 MB were written to it, but only 100 kB on to DRAM." in said
    assert "inputs" not in said


def test_fewer_bytes_because_caches_were_kept() -> None:
    """If caches were not emptied, L2 may hold inputs; if everything fits L2, a part may have stayed."""
    kernel = did({}, {"dram": 4e6})
    assert "inputs may have been in L2" in words(check(GEMM, [kernel], Coverage(caches_kept=True)), "bytes")
    small = replace(GEMM, moved_bytes=8e6)
    assert "All of it fits in the 41.9 MB of L2" in words(check(small, [kernel]), "bytes")
    assert "fits" not in words(check(GEMM, [kernel]), "bytes")


def test_bytes_that_were_not_measured() -> None:
    """A kernel without DRAM bytes makes the whole sum unknown, not smaller."""
    unknown = replace(did({}), levels={**did({}).levels, "dram": replace(did({}).levels["dram"], amount_bytes=None)})
    checked = check(GEMM, [did({}), unknown])
    assert checked.bytes_ratio is None
    assert words(checked, "bytes") == "The bytes at DRAM were not measured."


def test_work_beside_the_tensor_pipes() -> None:
    """Tensor FLOPs are as predicted, with FP32 work on top: the formula leaves it out, and no padding is assumed."""
    said = words(check(GEMM, [did({"tensor_bf16": 2.0 * 4096**3, "fp32": 9e9})]), "work")
    assert said.endswith("The tensor pipes did what the formula counts; 9.00 GFLOP more ran on FP32.")


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"m": 4096, "n": 4096, "k": 4096}, "padded tiles, masked tiles or recomputation may be the reason."),
        (
            {"m": 100, "n": 4096, "k": 72},
            "m = 100 and k = 72 are not multiples of 64, so padded tiles may be part of it.",
        ),
        ({"length": 4096, "causal": 1}, "tiles on the edge of the mask may be computed in full."),
    ],
)
def test_more_work_on_the_tensor_pipes(parameters: Mapping[str, int], reason: str) -> None:
    """Tensor FLOPs above the prediction are shown by counters; the reason is only called possible."""
    said = words(check(replace(GEMM, parameters=parameters), [did({"tensor_bf16": 1.5e11})]), "work")
    assert said.endswith(f"The tensor pipes alone did 1.09x that: {reason}")


def test_special_functions_explain_vector_work() -> None:
    """Functions on the MUFU pipe are counted from the opcodes: they explain more FLOPs, or are absent."""
    kernel = did({"fp32": 9e6}, thread_opcodes={"MUFU.EX2": 1_000_000, "FFMA": 4_500_000})
    assert "1.00 M special functions (MUFU) ran too" in words(check(SAXPY, [kernel]), "work")
    idle = did({}, thread_opcodes={"MUFU.EX2": 1_000_000})
    assert "which do not count as FLOPs" in words(check(SAXPY, [idle]), "work")
    assert "Comparisons, selects and conversions do not count as FLOPs." in words(check(SAXPY, [did({})]), "work")


def test_less_work_names_masks_and_what_was_not_counted() -> None:
    """A mask may skip tiles; a flag names the counters that lack a kind of work."""
    causal = replace(GEMM, parameters={"causal": 1})
    said = words(check(causal, [did({"tensor_bf16": 7e10}, flags=("sparse_tensor_work",))]), "work")
    assert "Fully masked tiles may have been skipped." in said
    assert "Sparse tensor instructions (2:4) ran" in said


def test_work_that_is_not_counted_is_no_gap() -> None:
    """A kernel without FLOP counters makes the sum unknown, and the flag says why."""
    said = words(check(GEMM, [did(None, flags=("no_flop_counters",))]), "work")
    assert said.startswith("This report does not count all FLOP. The report has no FLOP counters")


def test_the_wrong_type_is_found_on_the_pipe() -> None:
    """A bf16 product on FP32, and an fp32 product on TF32, are named with shares and published peaks."""
    on_fp32 = words(check(GEMM, [did({"fp32": 2.0 * 4096**3})]), "type")
    assert on_fp32 == (
        "Predicted for tensor bf16, but FP32 did 100 % of the work. "
        "Their published peaks are 19.5 TFLOP/s and 312 TFLOP/s."
    )
    exact = replace(GEMM, dtype="fp32", resource="fp32")
    assert "Operands were rounded to TF32." in words(check(exact, [did({"tensor_tf32": 1.37e11})]), "type")
    rounded = replace(GEMM, dtype="tf32", resource="tensor_tf32")
    assert "TF32 may be disabled." in words(check(rounded, [did({"fp32": 1.37e11})]), "type")


def test_vector_work_of_narrow_types_runs_on_fp32_as_it_should() -> None:
    """Adding bf16 numbers on FP32 is right if memory is the limiter anyway; a guessed type is never called wrong."""
    norm = Prediction("layernorm", "bf16", {"rows": 1}, "bf16", "", 7e6, 4e6, "memory", "dram")
    assert words(check(norm, [did({"fp32": 7e6})]), "type") == ""
    heavy = replace(norm, flop=7e9)
    assert "FP32 did 100 %" in words(check(heavy, [did({"fp32": 7e9})]), "type")
    guessed = did({"fp32": 1.37e11}, flags=("tensor_flop_estimated",))
    assert words(check(GEMM, [guessed]), "type") == ""
    assert words(check(GEMM, [did({"tensor_bf16": 2.0 * 4096**3, "fp32": 3e10})]), "type") == ""


def test_another_wall_is_said_with_its_cause_and_the_expectation() -> None:
    """The limiter of most of the time is shown beside the expected limiter and the reason for expecting it."""
    checked = check(GEMM, [did({"tensor_bf16": 1.0}, limiter=("latency", None))])
    assert words(checked, "limiter") == (
        "It is limited by latency for 100 % of the time: long_scoreboard. "
        "The prediction was compute at tensor bf16: 1365 FLOP/B: far to the right."
    )
    wgmma = check(GEMM, [did({}, limiter=("compute", "tensor_bf16_wgmma"))])
    assert "as expected" in words(wgmma, "limiter")
    assert words(check(replace(GEMM, bound=None), [did({})]), "limiter") == ""
    assert words(check(GEMM, [analyze(make_kernel({"duration_ns": None}))]), "limiter") == ""


def test_equal_launches_profiled_once_are_a_lower_bound() -> None:
    """Only an amount that adds up shows that no launch is missing; otherwise the measurement is a lower bound."""
    once = Coverage(once_each=True, in_range=True)
    whole = check(GEMM, [did({"tensor_bf16": 2.0 * 4096**3})], once)
    assert not whole.at_least
    part = check(GEMM, [did({"tensor_bf16": 4096.0**3})], once)
    assert part.at_least
    assert "Each distinct launch was profiled once" in words(part, "scope")
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
    assert "not limited to an NVTX range" in words(check(GEMM, kernels), "scope")
    assert words(check(GEMM, kernels, IN_RANGE), "scope") == ""
    assert words(check(GEMM, kernels[:1]), "scope") == ""


def test_a_failed_kernel_leaves_the_sum_unknown() -> None:
    """Nothing is summed up if a kernel failed."""
    checked = check(GEMM, [did({"tensor_bf16": 1.0}), samples.failed()])
    assert "1 kernel failed while being profiled" in words(checked, "scope")
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
