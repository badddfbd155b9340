"""Findings about idle lanes, from branches, conditions and block sizes: thresholds and costs."""

from __future__ import annotations

from math import prod

import pytest
from msgspec.structs import replace
from support.findings import at_limiter, found_by, make_facts, unsaid

from rooflens.model.findings.launch import partial_warps, thread_divergence, warp_fill
from rooflens.model.findings.rule import FindingDraft
from rooflens.model.records import Hotspot, Level


@pytest.mark.parametrize(("threads", "said"), [(24.0, False), (23.9, True)])
def test_divergence_is_said_below_24_of_32_threads(threads: float, *, said: bool) -> None:
    """NVIDIA's limit; the smaller of participating threads and threads not switched off counts."""
    for counters in (
        {"threads_per_inst": threads, "threads_on_per_inst": threads},
        {"threads_per_inst": 32.0, "threads_on_per_inst": threads},
        {"threads_on_per_inst": threads},
    ):
        found = found_by(thread_divergence, make_facts(counters))
        assert (found is not None) is said
        if found is not None:
            assert unsaid(found.evidence, found.move) == []


def test_opcode_tables_tell_the_threads_where_no_counter_does() -> None:
    """320 thread instructions in 20 warp instructions are 16 threads."""
    found = found_by(
        thread_divergence, make_facts(kernel={"thread_opcodes": {"FADD": 320}, "warp_opcodes": {"FADD": 20}})
    )
    assert found is not None
    assert "16.0 of 32 lanes active" in found.move


def test_branches_and_conditions_are_told_apart() -> None:
    """Threads on different paths should be brought together; threads switched off by a condition should get work."""
    parted = {"threads_per_inst": 9.0, "threads_on_per_inst": 8.5, "divergent_branch_count": 2e6}
    found, off = (
        thread_divergence(make_facts(counters))
        for counters in (parted, {**parted, "threads_per_inst": 31.0, "threads_on_per_inst": 18.4})
    )
    assert found is not None
    assert off is not None
    assert "8.50 of 32 lanes active" in found.move
    assert found.evidence[1].value == 2e6
    assert "predicated off" in off.move
    assert unsaid(found.evidence[:1], found.move) == unsaid(off.evidence, off.move) == []


def test_divergence_at_a_full_issue_slot_limits_and_costs_the_idle_part_of_it() -> None:
    """16 of 32 threads: with all of them at work, half of the instructions would suffice, on every pipe."""
    facts = make_facts({"threads_per_inst": 16.0}, {"issue": 0.8, "alu": 0.5}, **at_limiter("issue", 0.8))
    found = found_by(thread_divergence, facts)
    assert found is not None
    assert (found.severity, found.gain) == ("limiter", pytest.approx(2.0))


def test_divergence_of_a_kernel_at_its_memory_is_a_note() -> None:
    """Idle lanes move no bytes."""
    facts = make_facts({"threads_per_inst": 16.0}, {"issue": 0.3, "dram": 0.9}, **at_limiter("dram", 0.9))
    found = found_by(thread_divergence, facts)
    assert found is not None
    assert found.severity == "note"


def test_blocks_that_do_not_fill_a_warp_explain_its_idle_lanes() -> None:
    """9 of 32 threads in blocks of 9 diverge at no branch; 4 of them do."""
    blocks = {"block": (9, 1, 1)}
    by_block = found_by(thread_divergence, make_facts({"threads_per_inst": 9.0}, {"issue": 0.5}, kernel=blocks))
    by_branch = found_by(thread_divergence, make_facts({"threads_per_inst": 4.0}, {"issue": 0.5}, kernel=blocks))
    assert by_block is not None
    assert by_branch is not None
    assert (by_block.severity, by_branch.severity) == ("note", "contributes")
    assert "blocks of 9 do not fill warps" in by_block.move


@pytest.mark.parametrize(
    ("block", "threads", "explained"), [(9, 6.74, False), (9, 6.76, True), (1, 0.5, True), (48, 17.9, False)]
)
def test_the_block_size_explains_idle_lanes_where_three_quarters_of_its_threads_work(
    block: int, threads: float, *, explained: bool
) -> None:
    """24 of 32 is the limit for whole warps, so for 9 threads it is 6.75; a single thread never diverges."""
    kernel = {"block": (block, 1, 1)}
    found = found_by(thread_divergence, make_facts({"threads_per_inst": threads}, {"issue": 0.5}, kernel=kernel))
    assert found is not None
    assert ("change the block size" in found.move) is explained
    assert (found.severity == "note") is explained
    assert unsaid(found.evidence, found.move) == []


def test_the_places_are_those_that_lose_most_lanes() -> None:
    """Line 8 loses 30 of its 32 lanes; line 7 executes more and loses none."""
    full = Hotspot("line", "a.cu", 7, measures={"warp_inst": 100.0, "thread_inst": 3200.0})
    lost = Hotspot("line", "a.cu", 8, measures={"warp_inst": 10.0, "thread_inst": 20.0})
    kernel = {"hotspots": (full, lost), "code_totals": {"warp_inst": 112.0, "thread_inst": 3220.0}}
    found = found_by(thread_divergence, make_facts({"threads_per_inst": 20.0}, kernel=kernel))
    assert found is not None
    assert [(place.hotspot, place.share) for place in found.where] == [(lost, pytest.approx(300 / 364))]


def test_instructions_that_contradict_their_sum_are_no_places() -> None:
    """If all instructions together lose no lane, none is named, whatever a single instruction shows."""
    lost = Hotspot("line", "a.cu", 8, measures={"warp_inst": 10.0, "thread_inst": 20.0})
    kernel = {"hotspots": (lost,), "code_totals": {"warp_inst": 112.0, "thread_inst": 3584.0}}
    found = found_by(thread_divergence, make_facts({"threads_per_inst": 9.0}, kernel=kernel))
    assert found is not None
    assert found.where == ()


@pytest.mark.parametrize(
    ("block", "fill"),
    [((1, 1, 1), 1 / 32), ((9, 1, 1), 9 / 32), ((32, 1, 1), 1.0), ((33, 1, 1), 33 / 64), ((16, 16, 3), 1.0)],
)
def test_warps_are_partly_filled_unless_the_block_is_a_multiple_of_32(block: tuple[int, int, int], fill: float) -> None:
    """The last warp of a block holds what is left."""
    assert warp_fill(prod(block)) == pytest.approx(fill)
    found = found_by(partial_warps, make_facts(kernel={"block": block}))
    assert (found is None) is (fill == 1.0)
    if found is not None:
        assert unsaid(found.evidence, found.move) == []


def test_tiny_blocks_hold_a_waiting_kernel_back_where_there_are_many() -> None:
    """Blocks of 9 threads leave 72 % of resident lanes empty; of a single block that counts beside its being alone.

    In a kernel as short as a launch it does not.
    """
    kernel = {"block": (9, 1, 1)}

    def found(blocks: float, issue: float, duration_ns: float) -> FindingDraft:
        counters = {"sm_count": 14.0, "grid_size": blocks, "duration_ns": duration_ns}
        told = found_by(partial_warps, make_facts(counters, {"issue": issue}, kernel=kernel))
        assert told is not None
        return told

    many = found(1e6, 0.4, 1e6)
    assert (many.severity, many.gain) == ("limiter", pytest.approx(2.5))
    assert [found(1.0, 0.001, time_ns).severity for time_ns in (1e6, 5e3)] == ["contributes", "note"]


def test_the_size_of_no_block_is_no_finding() -> None:
    """Ranges and graphs have no block."""
    assert partial_warps(make_facts()) is None


def test_partly_filled_warps_keep_l1_busy_with_accesses_for_few_threads() -> None:
    """Blocks of 8 threads: three quarters of the accesses go, each takes two passes of L1, one of which goes too."""
    counters = {"block_size": 8.0, "lsu_inst": 1e6, "l1_data_bytes": 2e6 * 128}
    facts = make_facts(counters, {"l1": 0.8}, kernel={"block": (8, 1, 1)}, **at_limiter("l1", 0.8))
    level = Level(share=0.8, stages={"data": 0.8, "lsu_input": 0.2})
    found = found_by(partial_warps, replace(facts, levels={**facts.levels, "l1": level}))
    assert found is not None
    assert found.gain == pytest.approx(1 / (1 - 0.75 / 2))


def test_a_full_input_of_l1_is_relieved_of_accesses() -> None:
    """Three quarters of the accesses leave a fifth of input and a tenth of data: requests to L2, at 30 %, are next."""
    counters = {"block_size": 8.0, "lsu_inst": 1e6, "l1_data_bytes": 1e6 * 128}
    facts = make_facts(counters, {"l1": 0.8}, kernel={"block": (8, 1, 1)}, **at_limiter("l1", 0.8))
    level = Level(share=0.8, stages={"data": 0.4, "lsu_input": 0.8, "to_l2": 0.3})
    found = found_by(partial_warps, replace(facts, levels={**facts.levels, "l1": level}))
    assert found is not None
    assert found.gain == pytest.approx(0.8 / 0.3)
