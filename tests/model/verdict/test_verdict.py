from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from support.kernels import judge, make_case, make_kernel, place, reach
from support.loops import for_all
from support.roofs import own_roof

from rooflens.model.analyze import analysis_of, analyze
from rooflens.model.findings.find import RULES
from rooflens.model.records import Analysis, Finding, Gain, Level, Outside, Rule, Severity, Verdict
from rooflens.model.roofline.unit_names import bottleneck_words
from rooflens.model.unprofiled import InProgram
from rooflens.model.verdict.bottleneck import Bottleneck, compute_bottleneck, memory_bottleneck
from rooflens.model.verdict.decide import WHAT_FILLS_A_UNIT, decide, make_verdict
from rooflens.report.words.gain_and_limit import share_words
from rooflens.report.words.verdict import evidence_lines, verdict_sentence

COLLECT = "`rooflens profile "
LOW = {"dram": 0.2, "fp32": 0.1}
SHORT = {"duration_ns": 4999.0}


def verdict(shares: Mapping[str, float], counters: Mapping[str, float] | None = None, **overrides: Any) -> Verdict:
    """Return the verdict of a kernel with these shares."""
    return judged(shares, counters, **overrides).verdict


def judged(shares: Mapping[str, float], counters: Mapping[str, float] | None = None, **overrides: Any) -> Analysis:
    """Judge a kernel of these shares."""
    return judge(make_case(shares, counters, **overrides))


@for_all(
    "shares, bound, resource",
    [
        ({"dram": 0.7, "fp32": 0.3}, "memory", "dram"),
        ({"l2": 0.7, "dram": 0.6, "fp32": 0.3}, "memory", "l2"),
        ({"l1": 0.7, "smem": 0.1, "fp32": 0.3}, "memory", "l1"),
        ({"smem": 0.7, "fp32": 0.3}, "memory", "smem"),
        ({"dram": 0.3, "tensor_bf16": 0.7}, "compute", "tensor_bf16"),
        ({"dram": 0.3, "alu": 0.7, "fp32": 0.1}, "compute", "alu"),
        ({"dram": 0.3, "issue": 0.65}, "compute", "issue"),
        ({"dram": 0.7, "fp32": 0.65}, "balanced", "dram"),
        ({"dram": 0.65, "fp32": 0.7}, "balanced", "fp32"),
        ({"dram": 0.59, "fp32": 0.3}, "latency", None),
        ({"dram": 0.59, "fp32": 0.58}, "latency", None),
        ({"dram": 0.0, "fp32": 0.0}, "latency", None),
    ],
)
def test_classes_by_the_leading_share(shares: dict[str, float], bound: str, resource: str | None) -> None:
    """From 60 % on a level or pipe leads; below that the kernel waits; two within 10 points are balanced."""
    found = verdict(shares)
    assert (found.bound, found.resource) == (bound, resource)


@for_all(
    "memory, compute, bound",
    [
        (0.60, 0.30, "memory"),
        (0.599, 0.30, "latency"),
        (0.75, 0.625, "memory"),
        (0.75, 0.6875, "balanced"),
        (0.625, 0.5625, "balanced"),
        (0.5625, 0.75, "compute"),
        (0.75, 0.75, "balanced"),
        (0.95, 0.94, "balanced"),
    ],
)
def test_ten_points_decide(memory: float, compute: float, bound: str) -> None:
    """A lead of 10 points or more, with one side at 60 %, decides between memory and compute."""
    assert verdict({"dram": memory, "fp32": compute}).bound == bound


@pytest.mark.parametrize(
    ("shares", "at_roof"),
    [
        ({"dram": 0.80, "fp32": 0.1}, True),
        ({"dram": 0.799, "fp32": 0.1}, False),
        ({"dram": 0.1, "fp32": 0.81}, True),
        ({"dram": 0.85, "fp32": 0.84}, True),
        (LOW, False),
    ],
)
def test_at_roof_stands_beside_the_class(shares: dict[str, float], *, at_roof: bool) -> None:
    """A limiter at 80 % is at its roof, and the class stays the same."""
    found = judged(shares)
    assert found.verdict.at_roof is at_roof
    sentence = verdict_sentence(found)
    assert (" is saturated, " in sentence or ", at the roof" in sentence) is at_roof


@pytest.mark.parametrize(
    ("shares", "room"),
    [
        ({"dram": 0.8, "fp32": 0.1}, 1.25),
        ({"dram": 0.2, "l1": 0.1, "fp32": 0.25, "issue": 0.2}, 4.0),
        ({"dram": 0.0, "fp32": 0.0}, None),
    ],
)
def test_the_busiest_unit_leaves_room_of_one_over_its_share(shares: dict[str, float], room: float | None) -> None:
    """At 80 % the same work could be done 1.25 times as fast; without any share nothing is known."""
    assert decide(make_case(shares)).room == room


def test_warps_that_are_ready_do_not_speak_of_waiting() -> None:
    """A warp could continue while another was selected, so its state is not a reason to wait."""
    assert verdict({}, kernel=make_kernel({}, stalls={"not_selected": 0.6, "selected": 0.4})).bound == "unknown"


@pytest.mark.parametrize("shares", [{}, {"fp16": 0.9}])
def test_unknown_where_nothing_speaks(shares: dict[str, float]) -> None:
    """Neither side measured, and no informative launch figure or stall: the move is the command to collect more."""
    found = verdict(shares)
    assert (found.bound, found.resource, found.cause) == ("unknown", None, "missing counters")
    assert (found.at_roof, found.limit.factor, found.confidence) == (False, None, "low")
    assert COLLECT in found.advice[0]


def test_what_is_known_to_be_in_vain_goes_before_collecting_more() -> None:
    """32 sectors for each request are too many whatever limits the kernel."""
    counters = {"global_load_sectors": 32e6, "global_load_requests": 1e6, "duration_ns": None}
    found = analyze(make_kernel(counters)).verdict
    assert found.bound == "unknown"
    assert [move.kind for move in found.moves] == ["coalesce", "collect"]


@pytest.mark.parametrize(
    ("shares", "missing"),
    [
        ({"dram": 0.59, "l1": 0.2}, "compute"),
        ({"dram": 0.59}, "L2, L1 and compute"),
        ({"fp32": 0.1, "issue": 0.1}, "memory"),
        ({"fp32": 0.1}, "memory and other pipes"),
        ({"fp16": 0.9, "dram": 0.3, "l1": 0.2}, "compute"),
    ],
)
def test_one_low_side_is_a_provisional_latency(shares: dict[str, float], missing: str) -> None:
    """With one side unmeasured and the other below 60 %, the class is latency at low confidence, and says why."""
    found = verdict(shares)
    assert (found.bound, found.resource, found.confidence) == ("latency", None, "low")
    assert f"use of {missing} is not measured" in verdict_sentence(judged(shares))
    assert (found.limit.factor is None) is missing.startswith("memory")
    assert decide(make_case(shares)).room is None


@pytest.mark.parametrize(
    ("shares", "counters", "at_roof", "says"),
    [
        ({"issue": 0.72}, {}, False, "Possibly limited by instruction issue: 72 % of slots used; or memory-bound"),
        ({"issue": 0.72, "l1": 0.3}, {}, False, "Possibly limited by instruction issue"),
        ({"issue": 0.72, "l2": 0.3}, {}, False, "Limited by instruction issue: 72 % of slots used."),
        ({"tensor_bf16": 0.85}, {}, True, "Compute-bound: tensor bf16 is saturated, "),
        (
            {},
            {"sol_compute": 0.97},
            False,
            "Possibly compute-bound (97 % of peak; the report does not name the unit); or",
        ),
        (
            {},
            {"sol_compute": 0.97, "sol_memory": 0.5},
            True,
            "Compute-bound (97 % of peak; the report does not name the unit)",
        ),
        ({"alu": 0.2, "l1": 0.3}, {}, False, "Possibly latency-bound, or memory- or compute-bound"),
        ({"issue": 0.2, "l1": 0.3}, {}, False, "Possibly latency-bound, or memory-bound"),
    ],
)
def test_a_busy_pipe_may_not_be_the_limit_where_memory_was_not_measured(
    shares: dict[str, float], counters: dict[str, float], says: str, *, at_roof: bool
) -> None:
    """Only a full pipe is certainly the limit; L1 alone says nothing about memory."""
    found, sentence = verdict(shares, counters), verdict_sentence(judged(shares, counters))
    assert sentence.replace("\u00a0", " ").startswith(says)
    assert found.at_roof is at_roof
    if says.startswith("Possibly"):
        assert found.confidence == "low"
        assert "not measured" in sentence


def test_what_collects_more_is_the_last_move() -> None:
    """Collecting more is the last move if anything is known, and the only move if nothing is."""
    few = {"theoretical_occupancy": 0.2, "blocks_limit_registers": 2.0}
    assert [move.kind for move in verdict({"alu": 0.2}, few).moves] == ["occupancy", "collect"]
    assert [move.kind for move in verdict({}, {"sol_compute": 0.97}).moves] == ["collect", "collect"]
    assert [move.kind for move in verdict({}, {}).moves] == ["collect"]


@pytest.mark.parametrize(
    ("counters", "stalls"),
    [
        ({"waves": 0.2}, {}),
        ({}, {"long_scoreboard": 0.5}),
        ({"theoretical_occupancy": 0.1, "blocks_limit_smem": 1}, {}),
    ],
)
def test_launch_and_stalls_speak_where_no_unit_was_measured(
    counters: dict[str, float], stalls: dict[str, float]
) -> None:
    """Too few blocks, a low occupancy or a leading stall give a provisional latency at low confidence."""
    found = judged({}, kernel=make_kernel(counters, stalls=stalls))
    assert (found.verdict.bound, found.verdict.confidence) == ("latency", "low")
    assert "use of memory and compute is not measured" in verdict_sentence(found)


@pytest.mark.parametrize(
    ("title", "bound"), [("Latency Issue", "latency"), ("Small Grid", "latency"), ("High Throughput", "unknown")]
)
def test_nvidias_rule_speaks_where_nothing_else_does(title: str, bound: str) -> None:
    """Its text alone gives a latency verdict; a class that names a busy unit without its number does not."""
    rule = Rule("SOLBottleneck", "SpeedOfLight", title, "text")
    found = verdict({}, kernel=make_kernel({}, rules=(rule,)))
    assert (found.bound, found.confidence) == (bound, "low")


@pytest.mark.parametrize(
    ("counters", "share"),
    [
        ({"dram_read_share": 0.7}, 0.7),
        ({"dram_read_share": 0.4, "dram_write_share": 0.3}, 0.7),
        ({"dram_read_bytes": 7e8, "duration_ns": 1e6, "device_dram_peak_bytes_per_s": 1e12}, 0.7),
        ({"dram_bytes": 7e8, "duration_ns": 1e6, "device_dram_peak_bytes_per_s": 1e12}, 0.7),
        ({"l2_read_miss_bytes": 7e8, "duration_ns": 1e6, "dram_bus_peak_bytes_per_s": 1e12}, 0.7),
    ],
)
def test_parts_of_the_traffic_are_a_lower_bound_of_dram(counters: dict[str, float], share: float) -> None:
    """Reads alone, bytes against the device's own peak, or L2's misses at 70 % make the kernel memory-bound."""
    found = verdict({"smem": 0.1}, counters)
    assert (found.bound, found.resource, found.confidence) == ("memory", "dram", "low")
    assert found.bottleneck == Bottleneck("dram", pytest.approx(share))
    assert "at least 70 % of its peak" in verdict_sentence(judged({"smem": 0.1}, counters))


def test_misses_of_a_split_l2_are_no_traffic_of_dram() -> None:
    """What one half of an A100's L2 misses, the other half may have."""
    counters = {"l2_read_miss_bytes": 7e8, "duration_ns": 1e6, "dram_bus_peak_bytes_per_s": 1e12}
    kernel = make_kernel(counters, compute_capability="8.0", gpu="unlisted")
    assert verdict({}, kernel=kernel).bound == "unknown"


def test_the_datasheet_has_a_peak_where_the_report_has_none() -> None:
    """An A100 of 40 GB moves 1.555 TB/s by its datasheet: 1.2 GB in a millisecond are 77 % of it."""
    kernel = make_kernel({"dram_bytes": 1.2e9, "duration_ns": 1e6}, gpu="NVIDIA A100-PCIE-40GB")
    found = verdict({}, kernel=kernel)
    assert (found.bound, found.resource, found.confidence) == ("memory", "dram", "low")
    assert found.bottleneck is not None
    assert found.bottleneck.share == pytest.approx(0.772, abs=0.001)


def test_nvidias_per_cent_of_memory_is_l1s_where_both_are_the_same() -> None:
    """Ncu prints 96.84 % of 2,169,592 active cycles: of 2,253,598 elapsed ones that is 93.2 %, as for memory."""
    counters = {"sol_l1_share": 0.9684 * 2169592 / 2253598, "sol_compute": 0.4, "sol_memory": 0.9348}
    assert analyze(make_kernel(counters)).verdict.resource == "l1"
    assert analyze(make_kernel({**counters, "sol_memory": 0.95})).verdict.resource is None


def test_a_cache_that_is_measured_hides_no_dram_whose_peak_is_published() -> None:
    """L1 is 44 % busy; 1.2 GB in a millisecond are 77 % of what an A100 moves."""
    counters = {"l1_data_share": 0.44, "l1_tag_share": 0.3, "dram_bytes": 1.2e9, "issue_active_share": 0.1}
    found = analyze(make_kernel(counters, gpu="NVIDIA A100-PCIE-40GB")).verdict
    assert (found.bound, found.resource) == ("memory", "dram")
    little = analyze(make_kernel({**counters, "dram_bytes": 1.2e8}, gpu="NVIDIA A100-PCIE-40GB"))
    assert "no unit above 44 %" in verdict_sentence(little).replace("\u00a0", " ")


@for_all(
    "counters, bound",
    [
        ({"sol_memory_access_share": 0.7, "sol_memory_request_share": 0.2}, "memory"),
        ({"sol_memory_request_share": 0.7}, "memory"),
        ({"sol_sm_memory_share": 0.7}, "memory"),
        ({"sol_l2_share": 0.7}, "memory"),
        ({"sol_instructions_share": 0.7}, "compute"),
        ({"executed_share": 0.7}, "compute"),
        ({"executed_inst_per_cycle": 2.8}, "compute"),
        ({"issue_active_per_cycle": 0.7}, "compute"),
        ({"sol_memory_access_share": 0.3, "executed_inst_per_cycle": 1.0}, "latency"),
    ],
)
def test_what_stands_for_a_side(counters: dict[str, float], bound: str) -> None:
    """NVIDIA's partial per cents and instructions per cycle represent a side with no other measurement."""
    found = verdict({}, counters)
    assert (found.bound, found.confidence) == (bound, "low")


def test_what_is_measured_goes_before_what_stands_in() -> None:
    """If caches and pipes are measured, NVIDIA's per cents are not used; issue slots alone hide pipes."""
    counters = {"sol_memory_access_share": 0.95, "sol_instructions_share": 0.95}
    found = verdict({"dram": 0.2, "l2": 0.3, "issue": 0.1, "fp32": 0.1}, counters)
    assert (found.bound, found.confidence) == ("latency", "high")
    hidden = verdict({"dram": 0.2, "l2": 0.3, "issue": 0.1}, counters)
    assert (hidden.bound, hidden.resource, hidden.confidence) == ("compute", None, "low")


@pytest.mark.parametrize(("shares", "bound"), [({"dram": 0.7}, "memory"), ({"fp32": 0.7}, "compute")])
def test_one_side_is_enough_when_it_is_high(shares: dict[str, float], bound: str) -> None:
    """A share of 60 % proves its limiter even if the other side was not measured."""
    assert verdict(shares).bound == bound


def test_a_failed_kernel_is_unknown_whatever_else_it_says() -> None:
    """A kernel whose counters are NaN has no verdict, and the move is to profile it again."""
    found = verdict({"dram": 0.9, "fp32": 0.1}, kernel=make_kernel({"duration_ns": None}, status="failed"))
    assert (found.bound, found.resource, found.cause, found.confidence) == ("unknown", None, "profiling failed", "low")
    assert any("--replay-mode application" in move for move in found.advice)


def test_a_short_kernel_without_counters_is_overhead() -> None:
    """Its time alone shows that it is as short as its launch; confidence is low, as a unit may be busy."""
    found = verdict({}, SHORT)
    assert (found.bound, found.confidence) == ("overhead", "low")


@pytest.mark.parametrize(
    ("duration_ns", "share", "bound"), [(4999.0, 0.59, "overhead"), (5000.0, 0.59, "latency"), (4999.0, 0.6, "memory")]
)
def test_short_kernels_with_no_busy_unit_are_overhead(duration_ns: float, share: float, bound: str) -> None:
    """Below 5 us a kernel is as long as its launch, unless a unit is 60 % busy."""
    found = verdict({"dram": share, "fp32": 0.1}, {"duration_ns": duration_ns})
    assert found.bound == bound
    assert (found.cause == "launch-sized kernel") is (bound == "overhead")


@pytest.mark.parametrize(("gap_ns", "bound"), [(None, "memory"), (6_000_000, "memory"), (6_000_001, "overhead")])
def test_gaps_that_outweigh_a_launch_are_overhead(gap_ns: int | None, bound: str) -> None:
    """A kernel of 6 ms is overhead only if the gaps around its launches are longer."""
    in_program = None if gap_ns is None else InProgram(time_ns=6_000_000, gap_ns=gap_ns)
    found = verdict({"dram": 0.7, "fp32": 0.1}, outside=Outside(in_program=in_program))
    assert found.bound == bound
    assert (found.cause == "gaps around its launches") is (bound == "overhead")


@pytest.mark.parametrize(("share", "bound"), [(0.79, "overhead"), (0.80, "memory")])
def test_a_unit_that_is_full_is_the_class_whatever_the_gaps_around_a_launch(share: float, bound: str) -> None:
    """Gaps belong to the program: the sentence and a move mention them even if a unit is at 80 % or more."""
    in_program = InProgram(time_ns=1_000_000, gap_ns=3_000_000)
    found = judged({"dram": share, "fp32": 0.1}, outside=Outside(in_program=in_program))
    assert found.verdict.bound == bound
    assert "the GPU is idle for 3.00 ms around a launch of 1.00 ms" in verdict_sentence(found)
    assert "launch_gaps" in [move.finding for move in found.verdict.moves]


def test_gaps_are_not_called_a_short_kernel() -> None:
    """A kernel of 1 ms between gaps is not `launch-sized`: the gaps are the reason."""
    outside = Outside(in_program=InProgram(time_ns=1_000_000, gap_ns=3_000_000))
    sentence = verdict_sentence(judged({"dram": 0.7, "fp32": 0.1}, outside=outside))
    assert "Too short" not in sentence
    assert "is idle for 3.00 ms around a launch of 1.00 ms" in sentence


def test_a_short_kernel_between_small_gaps_is_called_short() -> None:
    """Gaps shorter than the kernel are not given as the reason, in the cause or in the sentence."""
    found = judged(LOW, SHORT, outside=Outside(in_program=InProgram(time_ns=4_000, gap_ns=400)))
    assert found.verdict.cause == "launch-sized kernel"
    assert "about what a launch costs" in verdict_sentence(found)


def test_overhead_goes_before_balanced_and_latency() -> None:
    """A short kernel is overhead before its causes of latency are considered."""
    found = verdict({"dram": 0.2, "fp32": 0.15}, {**SHORT, "waves": 0.1})
    assert found.bound == "overhead"
    assert "CUDA graph" in found.advice[0]


def test_latency_names_its_first_cause() -> None:
    """The first cause is in the verdict, all of them are in the evidence, and the moves follow."""
    analysis = judged(LOW, kernel=make_kernel({"waves": 0.2}, stalls={"barrier": 0.5}))
    found = analysis.verdict
    assert (found.bound, found.cause, len(found.causes)) == ("latency", "too few blocks", 2)
    assert (found.causes[0], found.is_wait_explained) == ("small_grid", True)
    assert sum(line.startswith("cause: ") for line in evidence_lines(analysis)) == 2
    assert "more blocks" in found.advice[0]


def test_latency_without_a_cause_says_so() -> None:
    """If the counters show no cause, none is invented, and the command to collect more is given."""
    found = verdict(LOW)
    assert found.cause == "cause not measured"
    assert COLLECT in found.advice[0]


@pytest.mark.parametrize("bound", ["memory", "compute", "balanced"])
def test_other_classes_need_no_cause(bound: str) -> None:
    """A kernel at a limiter has its resource as the cause."""
    shares = {
        "memory": {"dram": 0.7, "fp32": 0.1},
        "compute": {"dram": 0.1, "fp32": 0.7},
        "balanced": {"dram": 0.7, "fp32": 0.7},
    }
    found = verdict(shares[bound], {"waves": 0.1})
    assert (found.bound, found.cause) == (bound, None)


def test_thresholds_move_the_classes() -> None:
    """A stricter bound makes a memory-bound kernel latency-bound."""
    case = make_case({"dram": 0.7, "fp32": 0.1})
    assert reach(replace(case, limits=replace(case.limits, bound_share=0.75))).bound == "latency"


# Bottlenecks


@for_all(
    "shares, expected",
    [
        ({"dram": 0.2, "l2": 0.5, "l1": 0.3, "smem": 0.1}, Bottleneck("l2", 0.5)),
        ({"l1": 0.8, "smem": 0.41}, Bottleneck("smem", 0.8, "l1")),
        ({"l1": 0.8, "smem": 0.39}, Bottleneck("l1", 0.8)),
        ({"l1": 0.8, "smem": 0.8}, Bottleneck("smem", 0.8)),
        ({"l1": 0.8}, Bottleneck("l1", 0.8)),
        ({"dram": 0.9, "l1": 0.8, "smem": 0.7}, Bottleneck("dram", 0.9)),
        ({"dram": 0.0}, Bottleneck("dram", 0.0)),
        ({"fp32": 0.9}, None),
    ],
)
def test_the_busiest_level_leads(shares: dict[str, float], expected: Bottleneck | None) -> None:
    """The largest share leads; L1 is called shared memory if more than half of its use is."""
    assert memory_bottleneck(make_case(shares)) == expected


@for_all(
    "shares, expected",
    [
        ({"fp32": 0.5, "alu": 0.4, "xu": 0.3}, Bottleneck("fp32", 0.5)),
        ({"fp32": 0.5, "alu": 0.6}, Bottleneck("alu", 0.6)),
        ({"issue": 0.7, "fp32": 0.6}, Bottleneck("issue", 0.7)),
        ({"fp16": 0.9, "fp32": 0.1}, Bottleneck("fp32", 0.1)),
        ({"fp16": 0.9}, None),
        ({"lsu": 0.9, "alu": 0.2}, Bottleneck("alu", 0.2)),
        ({"tensor_fp16_acc16": 0.9}, Bottleneck("tensor_fp16_acc16", 0.9)),
        ({"tensor_int8": 0.9}, Bottleneck("tensor_int8", 0.9)),
        ({"dram": 0.9}, None),
    ],
)
def test_the_busiest_pipe_leads(shares: dict[str, float], expected: Bottleneck | None) -> None:
    """The largest share leads, except CUDA-core fp16, an upper bound, and the LSU pipe, which belongs to memory."""
    assert compute_bottleneck(make_case(shares)) == expected


@for_all(
    "shares, expected",
    [
        ({"fma": 0.8, "fp32": 0.5}, Bottleneck("fp32", 0.8, "fma")),
        ({"fma": 0.8, "fp32": 0.33}, Bottleneck("fp32", 0.8, "fma")),
        ({"fma": 0.8, "fp32": 0.31}, Bottleneck("fma", 0.8)),
        ({"fma": 0.8, "fp16": 0.5, "fp32": 0.1}, Bottleneck("fp16", 0.8, "fma")),
        ({"fma": 0.8, "fp64": 0.7}, Bottleneck("fma", 0.8)),
        ({"fp64_pipe": 0.9, "fp64": 0.6}, Bottleneck("fp64", 0.9, "fp64_pipe")),
        ({"fp64_pipe": 0.9, "tensor_fp64": 0.6}, Bottleneck("tensor_fp64", 0.9, "fp64_pipe")),
        ({"fp16_pipe": 0.9, "fp16": 0.6}, Bottleneck("fp16", 0.9, "fp16_pipe")),
        ({"fp16_pipe": 0.9}, Bottleneck("fp16_pipe", 0.9)),
        ({"tensor_pipe": 0.9, "tensor_bf16": 0.7, "tensor_fp16": 0.1}, Bottleneck("tensor_bf16", 0.9, "tensor_pipe")),
        ({"tensor_pipe": 0.9, "tensor_int8": 0.7}, Bottleneck("tensor_int8", 0.9, "tensor_pipe")),
        ({"tensor_pipe": 0.9, "fp32": 0.8}, Bottleneck("tensor_pipe", 0.9)),
        ({"tensor_pipe": 0.9}, Bottleneck("tensor_pipe", 0.9)),
        ({"alu": 0.9, "fp32": 0.8}, Bottleneck("alu", 0.9)),
    ],
)
def test_a_busy_pipe_is_named_after_its_work(shares: dict[str, float], expected: Bottleneck) -> None:
    """Work that explains 40 % of a busy pipe names it; an ALU has no such work, and integer work keeps `fma`."""
    assert compute_bottleneck(make_case(shares)) == expected


@for_all(
    "bottleneck, words, named, share",
    [
        (Bottleneck("l2", 0.8), "L2 80 %", "l2", "80 %"),
        (Bottleneck("smem", 0.8, "l1"), "SMEM (L1 80 %)", "smem", "L1 80 %"),
        (Bottleneck("fp32", 0.7, "fma"), "FP32 (FMA pipe 70 %)", "fp32", "FMA pipe 70 %"),
        (Bottleneck("fp64", 0.7, "fp64_pipe"), "FP64 pipe 70 %", "fp64_pipe", "70 %"),
    ],
)
def test_a_share_says_whose_it_is(bottleneck: Bottleneck, words: str, named: str, share: str) -> None:
    """A limiter named after what fills a unit has the unit's share, in tables and in ladders."""
    assert bottleneck_words(bottleneck).replace("\u00a0", " ") == words
    name, part = share_words(bottleneck)
    assert (name, part.replace("\u00a0", " ")) == (named, share)


def test_two_rates_have_their_own_per_cent() -> None:
    """Bytes at 71 % of shared memory's peak go through L1, which other wavefronts fill to 80 %."""
    level = Level(8.85e9, "", 8.85e12, own_roof(12.4e12, "byte"), 0.714, {"data": 0.714}, None)
    facts = make_case({"l1": 0.8, "smem": 0.714})
    facts = replace(facts, levels={**facts.levels, "smem": level})
    said = verdict_sentence(analysis_of(decide(facts), ())).replace("\u00a0", " ")
    assert "moving 8.85 TB/s of 12.4 TB/s (71 %) through L1, which is 80 % busy" in said


SGEMM = {
    "ffma_threads": 32 * 7.6e6,
    "issue_peak_inst_per_s": 1e10,
    "issue_active_share": 0.9,
    "ffma_peak_threads_per_s": 3e11,
}


@for_all(
    "counters, overrides, resource",
    [
        (SGEMM, {}, "fp32"),
        ({**SGEMM, "issued_inst": 9e6}, {}, "fp32"),
        (SGEMM | {"ffma_threads": 32 * 6.7e6}, {}, "issue"),
        (SGEMM, {"warp_opcodes": {"FFMA": 7, "IMAD": 9}, "thread_opcodes": {"FFMA": 7}}, "issue"),
        ({**SGEMM, "issued_inst": 9.0}, {"warp_opcodes": {"FFMA": 7, "LDS": 2}, "thread_opcodes": {"FFMA": 7}}, "fp32"),
        ({"issued_inst": 9e6, "issue_active_share": 0.9, "alu_inst": 7e6, "alu_inst_share": 0.8}, {}, "alu"),
        ({"issued_inst": 9e6, "issue_active_share": 0.9, "lsu_inst": 8e6, "lsu_inst_share": 0.1}, {}, "issue"),
        ({"issue_active_share": 0.9, "alu_inst": 7e6, "alu_inst_share": 0.8}, {}, "issue"),
    ],
)
def test_full_issue_slots_are_named_after_what_fills_them(
    counters: dict[str, float], overrides: dict[str, Any], resource: str
) -> None:
    """Work that is three quarters of the instructions names full issue slots; the share stays that of the slots."""
    found = compute_bottleneck(place(make_kernel(counters, **overrides)))
    assert found == Bottleneck(resource, 0.9, None if resource == "issue" else "issue")


LSU_FULL = {"lsu_inst": 1.5e7, "lsu_peak_inst_per_s": 1.6e10, "ffma_threads": 0.0, "alu_inst_share": 0.2}


def test_a_full_load_store_unit_is_memory() -> None:
    """Load and store instructions that fill L1's input limit as memory does; the move is to issue fewer."""
    analysis = judge(place(make_kernel(LSU_FULL)))
    found = analysis.verdict
    assert (found.bound, found.resource, found.bottleneck) == ("memory", "l1", Bottleneck("l1", 0.9375))
    assert "L1 is saturated, 94 % of load/store slots used" in verdict_sentence(analysis)
    assert any(move.startswith("load wider") for move in found.advice)


def test_nvidias_pair_stands_beside_its_l2_throughput() -> None:
    """The smallest metric set has NVIDIA's per cent of L2 and none of L1: the pair still leads if it is higher.

    If it is lower, L2's inner activity counts no more than the pair says, as not all of it is traffic.
    """
    counters = {"l2_internal_share": 0.7, "sol_memory": 0.8}
    assert memory_bottleneck(place(make_kernel(counters))) == Bottleneck(None, 0.8)
    assert memory_bottleneck(place(make_kernel({**counters, "sol_memory": 0.6}))) == Bottleneck("l2", 0.6)


def test_nvidias_pair_stands_beside_a_load_store_unit_alone() -> None:
    """A report with only L1's input measured may still hide the busiest unit of memory."""
    assert memory_bottleneck(place(make_kernel({**LSU_FULL, "sol_memory": 0.97}))) == Bottleneck(None, 0.97)


@pytest.mark.parametrize(
    ("sentence", "resource"),
    [
        ("Tensor is the highest-utilized pipeline (88.2%) based on elapsed cycles. It's well-utilized.", "tensor_pipe"),
        (
            (
                "Shared is the highest-utilized pipeline (88.2%) based on active cycles, as all of them share it. "
                "It's dominated by its Tensor (FP) sub-pipeline."
            ),
            "tensor_pipe",
        ),
        ("FMA is the highest-utilized pipeline (88.2%) based on active cycles.", "fma"),
        ("FP64 is the highest-utilized pipeline (88.2%) based on active cycles.", "fp64_pipe"),
        ("FP16 is the highest-utilized pipeline (88.2%) based on active cycles.", "fp16_pipe"),
        ("All compute pipelines are under-utilized.", None),
    ],
)
def test_the_pipe_of_nvidias_sentence_has_its_per_cent(sentence: str, resource: str | None) -> None:
    """In a details page without pipes, only NVIDIA's rule names the busiest pipe and its sub-pipeline."""
    rule = Rule("HighPipeUtilization", "ComputeWorkloadAnalysis", "", sentence)
    kernel = make_kernel({"sol_compute": 0.88, "issue_active_per_cycle": 0.3}, rules=(rule,))
    assert compute_bottleneck(make_case({"issue": 0.3}, kernel=kernel)) == Bottleneck(resource, 0.88)


def test_nvidias_pair_leads_where_the_busiest_unit_may_be_hidden() -> None:
    """Its per cents represent a side without caches or issue slots, if they are the highest."""
    pair = {"sol_memory": 0.9, "sol_compute": 0.8}
    assert memory_bottleneck(make_case({}, pair)) == Bottleneck(None, 0.9)
    assert compute_bottleneck(make_case({}, pair)) == Bottleneck(None, 0.8)
    assert memory_bottleneck(make_case({"dram": 0.1}, pair)) == Bottleneck(None, 0.9)
    assert compute_bottleneck(make_case({"fp32": 0.1}, pair)) == Bottleneck(None, 0.8)
    assert memory_bottleneck(make_case({"dram": 0.1, "l2": 0.2}, pair)) == Bottleneck("l2", 0.2)
    assert compute_bottleneck(make_case({"fp32": 0.1, "issue": 0.3}, pair)) == Bottleneck("issue", 0.3)
    assert compute_bottleneck(make_case({"issue": 0.3}, pair)) == Bottleneck(None, 0.8)
    assert memory_bottleneck(make_case({"dram": 0.95}, pair)) == Bottleneck("dram", 0.95)


@for_all(
    "shares, counters, expected",
    [
        (
            {"l1": 0.8, "smem": 0.41, "alu": 0.1},
            {},
            Bottleneck("smem", 0.8, "l1"),
        ),  # a limiter has the name of what explains it
        (
            {"l1": 0.5, "smem": 0.41, "alu": 0.1},
            {},
            Bottleneck("l1", 0.5),
        ),  # without a limiter the unit itself is named
        ({"dram": 0.1, "fma": 0.8, "fp32": 0.6}, {}, Bottleneck("fp32", 0.8, "fma")),
        ({"dram": 0.1, "fma": 0.5, "fp32": 0.4}, {}, Bottleneck("fma", 0.5)),
        ({"dram": 0.1, "fp16": 0.5, "alu": 0.2}, {}, Bottleneck("alu", 0.2)),
        ({"dram": 0.1}, {}, Bottleneck("dram", 0.1)),  # unknown: one side only
        ({"issue": 0.3}, {"sol_memory": 0.4}, Bottleneck(None, 0.4)),
        ({}, {}, None),
    ],
)
def test_every_class_has_its_busiest_unit(
    shares: dict[str, float], counters: dict[str, float], expected: Bottleneck | None
) -> None:
    """The verdict names the busiest unit once, with or without a limiter; without any share it names none."""
    found = reach(make_case(shares, counters))
    assert found.bottleneck == expected
    assert found.resource in {None, expected and expected.resource}


# Confidence


@for_all(
    "flags, confidence",
    [
        ((), "high"),
        (("synthetic", "no_flop", "bank_conflicts", "dram_writes_stay_in_l2"), "high"),
        (("short_and_replayed",), "medium"),
        (("share_over_one",), "medium"),
        (("no_flop_counters",), "medium"),
        (("clocks_moved", "partial_counters"), "low"),
        (("clocks_moved", "partial_counters", "share_over_one"), "low"),
    ],
)
def test_each_doubt_takes_a_step(flags: tuple[str, ...], confidence: str) -> None:
    """Facts about the kernel cost nothing, doubts about the numbers one step each, down to low."""
    assert verdict({"dram": 0.7, "fp32": 0.1}, flags=flags).confidence == confidence


@pytest.mark.parametrize("flag", ["no_flop_counters", "sol_pair_only", "partial_counters"])
def test_what_is_missing_can_be_collected(flag: str) -> None:
    """A report that lacks counters gets the command that collects them, once, after the moves."""
    found = verdict({"dram": 0.7, "fp32": 0.1}, flags=(flag,))
    assert COLLECT in found.advice[-1]
    assert len(found.advice) == len(set(found.advice)) > 1


@pytest.mark.parametrize(
    ("memory", "compute", "bound"),
    [(0.9, 0.3, "memory"), (0.3, 0.9, "compute"), (0.3, 0.2, "latency"), (0.7, 0.65, "balanced")],
)
def test_a_report_with_nvidias_pair_alone(memory: float, compute: float, bound: str) -> None:
    """The default set gives a class at low confidence, no resource, and the command to collect more."""
    result = analyze(make_kernel({"sol_memory": memory, "sol_compute": compute}))
    assert (result.verdict.bound, result.verdict.resource, result.verdict.confidence) == (bound, None, "low")
    assert any(COLLECT in move for move in result.verdict.advice)
    assert result.flags == ("sol_pair_only",)
    assert "busiest memory unit, not named" in " ".join((verdict_sentence(result), *evidence_lines(result)))


def test_a_side_of_nvidias_pair_lowers_confidence() -> None:
    """A class that rests on one of NVIDIA's per cents, here that no memory unit is busy, has low confidence."""
    result = analyze(make_kernel({"sol_memory": 0.2, "sol_compute": 0.3, "issue_active_share": 0.3, "waves": 0.5}))
    assert (result.verdict.bound, result.verdict.confidence) == ("latency", "low")


@pytest.mark.parametrize(
    ("device_peak_bytes_per_s", "at_roof", "confidence"),
    [(1e12, False, "medium"), (0.83e12, True, "medium"), (0.75e12, True, "high"), (None, True, "high")],
)
def test_a_low_dram_clock_is_no_roof(device_peak_bytes_per_s: float | None, *, at_roof: bool, confidence: str) -> None:
    """87 % of 0.7 TB/s are 61, 73 and 81 % of the rate at the memory's own clock: a roof needs 72 % of that too.

    More than 10 % below that clock, confidence is a step lower too.
    """
    counters = {
        "dram_bytes": 0.61e9,
        "dram_bus_peak_bytes_per_s": 0.7e12,
        "issue_active_share": 0.1,
        "tensor_busy_share": 0.0,
        "ffma_peak_threads_per_s": 5e12,
    }
    kernel = make_kernel(
        {**counters, "device_dram_peak_bytes_per_s": device_peak_bytes_per_s}, thread_opcodes={"FADD": 400_000}
    )
    found = analyze(kernel).verdict
    assert (found.bound, found.at_roof, found.confidence) == ("memory", at_roof, confidence)
    assert ("dram_clock_low" in analyze(kernel).flags) is (confidence == "medium")


def test_whole_kernel_by_hand() -> None:
    """1.6 GB in 1 ms of 2 TB/s with 4e8 FLOP of 1e13 FLOP/s: 80 % of DRAM, 4 % of fp32, intensity 0.25."""
    kernel = make_kernel(
        {"dram_bytes": 1.6e9, "dram_bus_peak_bytes_per_s": 2e12, "ffma_peak_threads_per_s": 5e12},
        thread_opcodes={"FADD": 400_000_000},
    )
    result = analyze(kernel)
    assert (result.verdict.bound, result.verdict.resource, result.verdict.at_roof) == ("memory", "dram", True)
    assert result.verdict.limit.factor == pytest.approx(1.25)
    assert result.pipes["fp32"].share == pytest.approx(0.04)
    assert result.levels["dram"].intensity_flop_per_byte == pytest.approx(0.25)
    assert result.flop_per_s == pytest.approx(4e11)


def test_a_copy_does_not_vanish() -> None:
    """A kernel without FLOPs keeps its bandwidth share and its verdict, and has no intensity."""
    kernel = make_kernel(
        {"dram_bytes": 1.4e9, "dram_bus_peak_bytes_per_s": 2e12, "issue_active_share": 0.1}, thread_opcodes={"MOV": 9}
    )
    result = analyze(kernel)
    assert (result.verdict.bound, result.verdict.resource, result.flop_total) == ("memory", "dram", 0)
    assert result.levels["dram"].intensity_flop_per_byte is None
    assert "no_flop" in result.flags


def test_placed_kernel_and_case_agree() -> None:
    """The separate parts of the analysis give the same bottleneck as the whole."""
    kernel = make_kernel({"alu_inst_share": 0.9, "dram_bus_share": 0.1})
    assert compute_bottleneck(place(kernel)) == Bottleneck("alu", 0.9)
    assert analyze(kernel).verdict.resource == "alu"


def test_findings_that_fill_a_unit_are_rules() -> None:
    """Each ID that precedes a limiter's own move is in the table."""
    assert {rule.id for rule in RULES} >= WHAT_FILLS_A_UNIT


@pytest.mark.parametrize(
    ("found", "shares", "first"),
    [
        ("stall_lg_throttle", {"l1": 0.83, "fp32": 0.1}, "keep reused values"),
        ("uncoalesced_global_load", {"l1": 0.83, "fp32": 0.1}, "of the finding"),
        ("stall_long_scoreboard", {"dram": 0.74, "fp32": 0.1}, "of the finding"),
        ("stall_long_scoreboard", {"dram": 0.92, "fp32": 0.1}, "move fewer bytes"),
        ("low_occupancy", {"issue": 0.68, "dram": 0.1}, "issue fewer instructions"),
    ],
)
def test_a_full_unit_is_relieved_before_warps_wait_less(found: str, shares: dict[str, float], first: str) -> None:
    """A stall or few warps at a full unit result from it; what fills it goes first, and DRAM is filled to its roof."""
    finding = Finding(found, "title", "limiter", (), "of the finding", "coalesce")
    moves = make_verdict(decide(make_case(shares)), (finding,)).advice
    assert moves[0].startswith(first)
    assert "of the finding" in moves


@pytest.mark.parametrize(("time_ns", "said"), [(4999.0, False), (5000.0, True), (20_000.0, False)])
def test_a_kernel_of_few_microseconds_is_told_what_its_start_and_end_take(time_ns: float, *, said: bool) -> None:
    """Below 5 us a kernel is as short as its launch; from 20 us on start and end take little."""
    assert ("are start and end" in verdict_sentence(judged(LOW, {"duration_ns": time_ns}))) is said


@pytest.mark.parametrize(
    ("counters", "capability", "line"),
    [
        ({"sol_l1_share": 0.8}, "7.5", "NVIDIA's own L1 throughput disagrees: it reads 80 %, 2.0x the busiest stage"),
        ({"sol_l1_share": 0.5}, "7.5", None),
        ({"dram_read_bytes": 1.9e6, "l2_read_miss_bytes": 1e6}, "8.6", "DRAM reads 1.9x the sectors that missed in L2"),
        ({"dram_read_bytes": 1.9e6, "l2_read_miss_bytes": 1e6}, "8.0", None),
        ({"dram_read_bytes": 3e6, "l2_read_miss_bytes": 1e6}, "8.6", None),
    ],
)
def test_evidence_says_where_counters_of_one_unit_disagree(
    counters: dict[str, float], capability: str, line: str | None
) -> None:
    """L1 by NVIDIA's per cent, which includes a stage without a counter, and DRAM by pairs of sectors."""
    kernel = make_kernel(counters, compute_capability=capability)
    lines = [one.replace("\u00a0", " ") for one in evidence_lines(judged({**LOW, "l1": 0.4}, kernel=kernel))]
    said = [one for one in lines if "disagrees" in one or "missed in L2" in one]
    assert [one.startswith(line or "") for one in said] == ([True] if line else [])


@pytest.mark.parametrize(
    "counters",
    [{"sol_compute": 0.97}, {"sol_compute": 0.7, "sol_memory": 0.72}, {"sol_compute": 0.3, "sol_memory": 0.02}],
)
def test_a_side_without_a_name_is_not_named_twice(counters: dict[str, float]) -> None:
    """NVIDIA's per cents name no unit: no text says `busiest unit` of a busiest unit."""
    found = judged({}, counters)
    for text in (verdict_sentence(found), *found.verdict.advice, *evidence_lines(found)):
        head = text.partition(". ")[0]
        assert head.count("busiest unit") <= 1
        assert "busiest pipe: busiest" not in text


def test_moves_fall_by_what_they_bring_and_collecting_is_last() -> None:
    """Modelled moves come first by their gains; for a kernel of which nothing is known, collecting comes first."""
    findings = [
        Finding("tail_wave", "title", "limiter", (), "first 10 %", "balance", Gain(1.1)),
        Finding("low_occupancy", "title", "contributes", (), "then 5 %", "occupancy", Gain(1.7)),
        Finding("thread_divergence", "title", "contributes", (), "last", "divergence"),
    ]
    lacking = make_case({"issue": 0.3}, flags=("partial_counters",))
    assert [move.kind for move in make_verdict(decide(lacking), findings).moves] == [
        *("occupancy", "balance", "divergence", "collect"),
    ]
    unknown = make_verdict(decide(make_case({})), findings[:1])
    assert (unknown.bound, [move.kind for move in unknown.moves]) == ("unknown", ["collect", "balance"])


@pytest.mark.parametrize(("fills", "kinds"), [(True, ["pad", "tile"]), (False, ["tile", "pad"])])
def test_what_a_full_unit_does_in_vain_goes_before_another_kernel(*, fills: bool, kinds: list[str]) -> None:
    """Conflicts of 1.3x come before a tile of 2x if they limit, as a tile would have them too."""
    severity: Severity = "limiter" if fills else "contributes"
    findings = [
        Finding("low_reuse", "title", "limiter", (), "tile 50 %", "tile", Gain(2.0)),
        Finding("bank_conflicts", "title", severity, (), "pad 30 %", "pad", Gain(1.3)),
    ]
    assert [move.kind for move in make_verdict(decide(make_case({"l1": 0.7})), findings).moves] == kinds


@pytest.mark.parametrize("shares", [{"l1": 0.7}, {"l2": 0.9}, {"dram": 0.95}, {"alu": 0.9}, {"fp32": 0.7}, {"xu": 0.9}])
def test_moves_of_a_limiter_each_hold_a_number(shares: dict[str, float]) -> None:
    """Each says how busy the unit is, or gives another number of the kernel."""
    moves = reach(decide(make_case(shares))).moves
    assert [move.text for move in moves if move.kind != "collect" and "%" not in move.text] == []


@pytest.mark.parametrize(
    ("of_l1", "tiles", "kind"), [(0.03, True, "cache"), (0.4, True, "results"), (0.03, False, "tile")]
)
def test_a_full_l2_is_told_the_next_step_and_not_the_one_taken(of_l1: float, *, tiles: bool, kind: str) -> None:
    """A kernel with tiles is advised to use larger ones, or to go through L1 if nothing hits there."""
    held = {"smem_static_per_block_bytes": 4096.0 * tiles, "l1_hit_rate": of_l1, "l2_hit_rate": 0.99}
    assert reach(decide(make_case({"l2": 0.9}, held))).moves[0].kind == kind


@pytest.mark.parametrize(("capability", "named"), [("10.0", "l1"), ("8.9", None)])
def test_a_per_cent_that_leads_is_called_after_its_level(capability: str, named: str | None) -> None:
    """NVIDIA's L1 at 85 % beside L2 at 54: it is L1, unless the chip counts requests of L1 twice."""
    counters = {"sol_l1_active_share": 0.85, "sol_l2_share": 0.54, "l2_internal_share": 0.54, "dram_bus_share": 0.27}
    analysis = analyze(make_kernel(counters, compute_capability=capability))
    verdict = analysis.verdict
    assert (verdict.bound, verdict.resource) == ("memory", named)
    # L1's time is of active cycles, and L2's is not the longest: no floor of today's traffic is known.
    assert verdict.today is None
    if named:
        assert "85 % by NVIDIA's per cent" in verdict_sentence(analysis).replace("\u00a0", " ")
