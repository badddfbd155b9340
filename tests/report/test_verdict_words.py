from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.kernels import judge, make_case, make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.records import Outside
from rooflens.model.unprofiled import InProgram
from rooflens.report.words.verdict import evidence_lines, verdict_sentence

MEMORY = {"dram_bytes": 1.41e9, "dram_bus_peak_bytes_per_s": 2e12, "ffma_peak_threads_per_s": 5e12}


def test_memory_sentence_has_rate_roof_and_intensity() -> None:
    """1.41 GB in 1 ms of 2 TB/s with 1.41e9 FLOP: 1.41 TB/s, 70 %, 1 FLOP/B, then the move."""
    sentence = verdict_sentence(analyze(make_kernel(MEMORY, thread_opcodes={"FADD": 1_410_000_000})))
    assert sentence.startswith("Memory-bound at DRAM: ")
    for words in ("1.41 TB/s", "2.00 TB/s", "70 %", "1.00 FLOP/B", "ove less than"):
        assert words in sentence


def test_a_copy_has_no_intensity_in_its_sentence() -> None:
    """Without FLOPs the sentence says nothing about FLOP per byte."""
    assert "FLOP/B" not in verdict_sentence(analyze(make_kernel(MEMORY, thread_opcodes={"MOV": 1})))


def test_a_leading_stage_is_named_where_bytes_prove_nothing() -> None:
    """L1's data stage is at 99 % with few bytes: the stage is named and its bytes are not shown."""
    counters = {"l1_data_share": 0.994, "l1_tag_bytes": 1e8, "l1_data_peak_bytes_per_s": 1e13, "alu_inst_share": 0.1}
    sentence = verdict_sentence(analyze(make_kernel(counters)))
    assert sentence.startswith("Memory-bound: L1 is saturated, 99 % of data passes used.")
    assert "B/s" not in sentence


def test_a_bound_of_hardly_anything_is_said_once() -> None:
    """For units that are 0.02 % busy the sentence does not say "above under"."""
    counters = {"dram_bus_share": 2e-4, "l1_data_share": 1e-4, "issue_active_share": 1e-4}
    sentence = verdict_sentence(analyze(make_kernel(counters)))
    assert "no unit above 0.1 %" in sentence


def test_compute_sentence_has_rate_and_roof() -> None:
    """7e9 FLOP in 1 ms of 10 TFLOP/s are 70 %."""
    counters = {"dram_bus_share": 0.1, "ffma_peak_threads_per_s": 5e12}
    sentence = verdict_sentence(analyze(make_kernel(counters, thread_opcodes={"FADD": 7_000_000_000})))
    assert sentence.startswith("Compute-bound by FP32: ")
    for words in ("7.00 TFLOP/s", "10.0 TFLOP/s", "70 %"):
        assert words in sentence


def test_a_pipe_without_rate_says_how_busy_it_is() -> None:
    """A pipe known only by its per cent is called this busy."""
    sentence = verdict_sentence(analyze(make_kernel({"dram_bus_share": 0.1, "xu_inst_share": 0.91})))
    assert "the XU pipe is saturated, 91 % busy" in sentence


def test_estimates_are_called_so() -> None:
    """Numbers based on pipe activity are preceded by `about`."""
    counters = {
        "dram_bus_share": 0.1,
        "tensor_float_busy_share": 0.8,
        **{f"f{op}_threads": 1.0 for op in ("add", "mul", "fma")},
    }
    sentence = verdict_sentence(analyze(make_kernel(counters, tensor_peaks_per_s={"src_fp16_dst_fp32": 1e14})))
    assert "about 80.0 TFLOP/s" in sentence


def test_balanced_names_both_sides() -> None:
    """The sentence has the busiest unit of each side with its share."""
    sentence = verdict_sentence(judge(make_case({"dram": 0.66, "fp32": 0.64})))
    for words in ("Near two limits", "DRAM 66 %", "FP32 64 %"):
        assert words in sentence


def test_latency_says_the_top_and_the_causes() -> None:
    """The busiest unit is named with its share, and the first causes with their numbers."""
    kernel = make_kernel({"waves": 0.25, "grid_size": 33.0, "sm_count": 132.0})
    sentence = verdict_sentence(judge(make_case({"dram": 0.31, "fp32": 0.1}, kernel=kernel)))
    for words in ("Latency-bound", "31 %", "33 blocks for 132 SMs, 99 of which stay idle", "aunch more blocks"):
        assert words in sentence


def test_overhead_says_the_duration() -> None:
    """3.2 µs is in the order of a launch."""
    sentence = verdict_sentence(judge(make_case({"dram": 0.1, "fp32": 0.1}, {"duration_ns": 3200.0})))
    for words in ("Too short to matter alone: 3.20 µs", "10 %"):
        assert words in sentence


@pytest.mark.parametrize(
    ("shares", "counters", "missing", "present"),
    [
        ({}, {"duration_ns": None}, ("duration", "throughput counters"), ()),
        ({}, {}, ("throughput counters",), ("duration",)),
    ],
)
def test_unknown_says_what_is_missing(
    shares: dict[str, float], counters: dict[str, float], missing: tuple[str, ...], present: tuple[str, ...]
) -> None:
    """An unknown verdict names what the report lacks, and nothing that it has."""
    head = verdict_sentence(judge(make_case(shares, counters))).partition(".")[0]
    assert head.startswith("Unknown")
    assert all(word in head for word in missing)
    assert not any(word in head for word in present)


def test_a_failed_kernel_says_so() -> None:
    """A kernel whose profiling failed is not called one with missing counters."""
    kernel = make_kernel({"duration_ns": None}, status="failed")
    assert "failed" in verdict_sentence(analyze(kernel))


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>"])
def test_names_never_reach_a_sentence(name: str) -> None:
    """A kernel's name is shown beside its verdict, never inside it."""
    analysis = analyze(make_kernel(MEMORY, name=name, function_name=name, thread_opcodes={"FADD": 1}))
    assert name not in " ".join((verdict_sentence(analysis), *evidence_lines(analysis), *analysis.verdict.advice))


def test_evidence_lists_the_busiest_units_first() -> None:
    """The busiest unit of each side comes first, then every level that was used, then what keeps the SMs busy."""
    counters = {
        **MEMORY,
        "l2_return_share": 0.2,
        "l1_data_share": 0.009,
        "achieved_occupancy": 0.5,
        "theoretical_occupancy": 0.6,
        "blocks_limit_warps": 4.0,
        "eligible_warps_per_cycle": 1.5,
        "alu_inst_share": 0.3,
    }
    evidence = evidence_lines(analyze(make_kernel(counters)))
    assert "DRAM 70 %" in evidence[0]
    assert "ALU pipe 30 %" in evidence[1]
    assert any("1.41 GB" in line and "1.41 TB/s" in line for line in evidence)
    assert any(line.startswith("L2 20 %") for line in evidence)
    assert not any(line.startswith("L1") for line in evidence)
    assert any("occupancy 50 %" in line and "warps a block" in line for line in evidence)
    assert any("1.50 warps ready" in line for line in evidence)


@pytest.mark.parametrize(
    ("achieved", "allowed", "line"),
    [
        (0.50, 0.60, "occupancy 50 %, limited by registers"),
        (0.49, 0.60, "occupancy 49 %"),
        (0.50, None, "occupancy 50 %"),
        (1.05, 1.00, "occupancy 100 %"),
    ],
)
def test_occupancy_is_limited_by_the_launch_only_where_it_is_reached(
    achieved: float, allowed: float | None, line: str
) -> None:
    """A grid too small to reach what the launch allows is not limited by registers; nor is one at all slots."""
    counters = {"achieved_occupancy": achieved, "theoretical_occupancy": allowed, "blocks_limit_registers": 2.0}
    assert line in evidence_lines(analyze(make_kernel({**MEMORY, **counters})))


@pytest.mark.parametrize(("used", "limiter"), [(1024.0, "block slots"), (1025.0, "shared memory")])
def test_shared_memory_that_the_program_does_not_use_limits_nothing(used: float, limiter: str) -> None:
    """The driver's kilobyte allows no more blocks than the slots, which are named unless the program uses a byte."""
    counters = {"achieved_occupancy": 0.5, "theoretical_occupancy": 0.5, "smem_driver_bytes": 1024.0}
    limits = {"smem_per_block_bytes": used, "blocks_limit_smem": 8.0, "blocks_limit_blocks": 8.0}
    evidence = evidence_lines(analyze(make_kernel({**MEMORY, **counters, **limits})))
    assert f"occupancy 50 %, limited by {limiter}" in evidence


@pytest.mark.parametrize("share", [0.3, 0.62, 0.7, 0.95])
@pytest.mark.parametrize("other", [0.1, 0.6])
def test_a_sentence_is_a_sentence(share: float, other: float) -> None:
    """Every verdict is made of sentences: a capital first, a full stop last, no gaps and no doubled punctuation."""
    for shares in (
        {"dram": share, "fp32": other},
        {"dram": other, "fp32": share},
        {"dram": share},
        {"l1": share, "issue": other},
    ):
        case = make_case(shares)
        for variant in (
            case,
            replace(case, outside=Outside(in_program=InProgram(time_ns=4_000, gap_ns=9_000))),
            replace(case, kernel=replace(case.kernel, status="failed")),
        ):
            sentence = verdict_sentence(judge(variant))
            assert sentence[0].isupper()
            assert sentence.endswith(".")
            assert not any(hole in sentence for hole in ("None", "  ", "..", " .", ", ,", ": ,", ": ."))
