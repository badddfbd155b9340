"""Findings about warps, too few allowed or too few resident, on made numbers checked with CUDA's arithmetic."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, findings_of, make_facts, unsaid
from support.loops import for_all

from rooflens.model.findings.launch import achieved_occupancy_gap, low_occupancy

BLACKWELL = {
    "theoretical_occupancy": 1 / 6,
    "block_size": 128.0,
    "registers_per_thread": 128.0,
    "smem_per_block_bytes": 41984.0,
    "smem_driver_bytes": 1024.0,
    "sm_smem_bytes": 102400.0,
    "smem_config_bytes": 102400.0,
    "sm_registers": 65536.0,
    "sm_warps": 48.0,
    "blocks_limit_registers": 4.0,
    "blocks_limit_smem": 2.0,
    "blocks_limit_warps": 12.0,
    "blocks_limit_blocks": 24.0,
    "grid_size": 512.0,
    "sm_count": 170.0,
}
"""A flash-attention kernel on an RTX 5090, as its report has it."""


@pytest.mark.parametrize(("allowed", "said"), [(0.80, False), (0.799, True), (None, False)])
def test_low_occupancy_is_said_below_80_percent_of_the_warp_slots(allowed: float | None, *, said: bool) -> None:
    """The limit is NVIDIA's; an unknown occupancy is not low."""
    found = low_occupancy(make_facts({"theoretical_occupancy": allowed}))
    assert (found is not None) is said


def test_shared_memory_that_limits_is_said_with_the_size_that_would_let_one_more_block_in() -> None:
    """102,400 bytes hold two blocks of 41,984; three fit at 34,048, of which 1,024 belong to the driver.

    With 1.5 times as many warps, the 70 % of the time in which no unit is busy shrink to two thirds.
    """
    found = low_occupancy(make_facts(BLACKWELL, {"dram": 0.1, "fma": 0.3}))
    assert found is not None
    assert "41.0 kB of shared memory per block allow 2 blocks per SM, 33.0 kB would allow 3" in found.move
    assert "register" not in found.move
    assert unsaid(found.evidence, found.move) == []
    assert (found.whole, found.gain) == pytest.approx((3 / 2, 1 / (0.3 + 0.7 * 2 / 3)))


@pytest.mark.parametrize(
    ("stalls", "sure"),
    [({}, "medium"), ({"long_scoreboard": 0.5}, "high"), ({"barrier": 0.6, "wait": 0.2}, "medium")],
)
def test_more_warps_are_sure_to_help_where_warps_wait_for_what_others_fill(stalls: dict[str, float], sure: str) -> None:
    """At a barrier further warps wait as well, and where no wait was measured nothing shows that they would help."""
    for rule in (low_occupancy, achieved_occupancy_gap):
        found = rule(make_facts({**BLACKWELL, "achieved_occupancy": 0.05}, {"dram": 0.1}, stall_shares=stalls))
        assert found is not None
        assert found.confidence == sure
    full = make_facts(BLACKWELL, {"dram": 0.8}, stall_shares={"long_scoreboard": 0.5}, **at_limiter("dram", 0.8))
    assert (found := low_occupancy(full)) is not None
    assert found.confidence == "medium"


def test_all_limiters_that_tie_are_named() -> None:
    """With 256 registers per thread, registers too allow only two blocks: both limits must be raised."""
    found = low_occupancy(make_facts({**BLACKWELL, "registers_per_thread": 200.0, "blocks_limit_registers": 2.0}))
    assert found is not None
    assert "200 registers per thread allow 2 blocks per SM, 168 would allow 3" in found.move
    assert "33.0 kB would allow 3" in found.move
    assert "have to change together" in found.move
    assert unsaid(found.evidence, found.move) == []


def test_an_sm_that_set_little_shared_memory_aside_is_told_of_its_carveout() -> None:
    """9 kB blocks fit once into the 16 kB set aside, and eleven times into what the SM could set aside."""
    counters = {
        **BLACKWELL,
        "smem_per_block_bytes": 9216.0,
        "smem_config_bytes": 16384.0,
        "blocks_limit_smem": 1.0,
    }
    found = low_occupancy(make_facts(counters))
    assert found is not None
    assert "8.19 kB of shared memory per block allow 1 block per SM in the 16.4 kB" in found.move
    assert "102 kB, enough for 11" in found.move
    assert unsaid(found.evidence, found.move) == []


def test_blocks_that_leave_warp_slots_over_are_told_a_size_that_does_not() -> None:
    """48 warp slots hold one block of 32 warps or two of 24."""
    counters = {
        "theoretical_occupancy": 32 / 48,
        "block_size": 1024.0,
        "sm_warps": 48.0,
        "blocks_limit_warps": 1.0,
        "blocks_limit_blocks": 24.0,
    }
    found = low_occupancy(make_facts(counters))
    assert found is not None
    assert "blocks of 1,024 threads" in found.move
    assert "768 would fill more of them with 2" in found.move
    assert found.gain == pytest.approx(48 / 32)
    assert unsaid(found.evidence, found.move) == []


def test_blocks_of_one_thread_are_told_the_size_that_fills_the_warp_slots() -> None:
    """16 block slots hold 32 warps only in blocks of two; unused shared memory is not blamed."""
    counters = {
        "theoretical_occupancy": 0.5,
        "block_size": 1.0,
        "sm_warps": 32.0,
        "smem_per_block_bytes": 0.0,
        "blocks_limit_blocks": 16.0,
        "blocks_limit_smem": 16.0,
        "blocks_limit_warps": 32.0,
    }
    found = low_occupancy(make_facts(counters))
    assert found is not None
    assert "blocks of 1 thread use up" in found.move
    assert "blocks of 64 would" in found.move
    assert found.gain == pytest.approx(2)
    assert "shared memory" not in found.move


@for_all(
    "counters, severity",
    [
        ({}, "limiter"),
        ({"eligible_warps_per_cycle": 1.2, "issue_active_per_cycle": 0.65}, "note"),
        ({"eligible_warps_per_cycle": 1.2, "issue_active_per_cycle": 0.55}, "limiter"),
        ({"eligible_warps_per_cycle": 0.9, "issue_active_per_cycle": 0.65}, "limiter"),
        ({"grid_size": 340.0}, "note"),
        ({"grid_size": 341.0}, "limiter"),
    ],
)
def test_low_occupancy_costs_nothing_where_warps_suffice_or_the_grid_has_no_more(
    counters: dict[str, float], severity: str
) -> None:
    """Two blocks per SM on 170 SMs hold 340 blocks, so a smaller grid gains nothing from a third."""
    findings = findings_of(make_facts({**BLACKWELL, **counters}, {"fma": 0.3}))
    assert next(finding.severity for finding in findings if finding.id == "low_occupancy") == severity


@pytest.mark.parametrize(
    ("changes", "speedup"),
    [
        ({}, 9 / 8),
        ({"registers_per_thread": 128.0, "block_size": 64.0, "blocks_limit_smem": 32.0}, 10 / 8),
        ({"registers_per_thread": 128.0, "block_size": 64.0, "blocks_limit_smem": 9.0}, 9 / 8),
        ({"sm_registers": None}, 9 / 8),
        ({"sm_registers": None, "blocks_limit_registers": 7.0}, 4),
    ],
)
def test_low_occupancy_promises_no_more_than_its_step_gives(changes: dict[str, float | None], speedup: float) -> None:
    """From 8 to 9 blocks is 9/8, and to 10 is 9/8 too if memory holds 9; 4x only if no step can be named.

    Every SM has 65,536 registers, so even without that count they explain 8 of these blocks, but not 7.
    """
    counters = {
        "theoretical_occupancy": 0.25,
        "block_size": 128.0,
        "registers_per_thread": 64.0,
        "sm_registers": 65536.0,
        "blocks_limit_registers": 8.0,
    }
    found = low_occupancy(make_facts({**counters, **changes}))
    assert found is not None
    assert found.gain == pytest.approx(speedup)


def test_low_occupancy_at_91_percent_of_memory_is_a_note() -> None:
    """A kernel at its roof waits for memory, however many warps it has."""
    findings = findings_of(make_facts(BLACKWELL, {"dram": 0.91}, **at_limiter("dram", 0.91)))
    low = next(finding for finding in findings if finding.id == "low_occupancy")
    assert (low.severity, low.gain) == ("note", None)


@pytest.mark.parametrize(("achieved", "said"), [(0.65, False), (0.649, True), (None, False)])
def test_a_gap_is_said_from_10_points_below_what_the_launch_allows(achieved: float | None, *, said: bool) -> None:
    """NVIDIA's limit: with 75 % allowed, 65 % achieved is not a gap."""
    found = achieved_occupancy_gap(make_facts({"theoretical_occupancy": 0.75, "achieved_occupancy": achieved}))
    assert (found is not None) is said
    if found is not None and achieved is not None:
        assert unsaid(found.evidence, found.move) == []
        assert found.gain == pytest.approx(0.75 / achieved)


def test_a_gap_of_a_small_grid_asks_for_blocks() -> None:
    """Below one wave there are no more warps to have, and balancing the work would not create any."""
    counters = {"theoretical_occupancy": 1.0, "achieved_occupancy": 0.3, "waves": 0.4}
    found = achieved_occupancy_gap(make_facts(counters))
    assert found is not None
    assert found.severity == "note"
    assert "fills 40 % of the block slots" in found.move
    assert "balance the work" not in found.move


@pytest.mark.parametrize(
    ("executed", "short"), [({"LDG": 6600, "EXIT": 4400}, True), ({"FFMA": 99_000}, True), ({"FFMA": 100_000}, False)]
)
def test_warps_below_100_instructions_are_told_to_loop_and_longer_ones_to_share_work_equally(
    executed: dict[str, int], *, short: bool
) -> None:
    """250 blocks of 100 threads are 1,000 warps, the last of each partly filled: 11, 99 and 100 instructions."""
    counters = {"theoretical_occupancy": 1.0, "achieved_occupancy": 0.7, "grid_size": 250.0, "block_size": 100.0}
    found = achieved_occupancy_gap(make_facts(counters, kernel={"warp_opcodes": executed}))
    assert found is not None
    each = sum(executed.values()) // 1000
    assert (
        f"loop over several elements per thread, as each warp executes only {each} instructions" in found.move
    ) is short
    assert ("balance the work" in found.move) is not short
    assert unsaid(found.evidence, found.move) == []


def test_instructions_counted_in_all_tell_short_warps_where_no_opcode_is() -> None:
    """A block reduction with one element per thread on an RTX 4090: 12,058,624 instructions in 524,288 warps are 23."""
    counters = {"theoretical_occupancy": 1.0, "achieved_occupancy": 0.26, "grid_size": 131_072.0, "block_size": 128.0}
    found = achieved_occupancy_gap(make_facts({**counters, "executed_inst": 12_058_624.0}))
    assert found is not None
    assert "loop over several elements per thread, as each warp executes only 23 instructions" in found.move
    assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(("ready", "issued", "severity"), [(3.93, 0.74, "note"), (0.9, 0.74, None), (3.93, 0.59, None)])
def test_a_gap_is_a_note_where_schedulers_have_warps_enough(ready: float, issued: float, severity: str | None) -> None:
    """A kernel that issues in 74 % of the cycles, with four warps ready, gains nothing from more warps."""
    counters = {"theoretical_occupancy": 0.75, "achieved_occupancy": 0.57}
    counters |= {"eligible_warps_per_cycle": ready, "issue_active_per_cycle": issued}
    found = achieved_occupancy_gap(make_facts(counters))
    assert found is not None
    assert found.severity == severity


@pytest.mark.parametrize(
    ("achieved", "shares", "severity"),
    [
        (0.60, {"fma": 1 / 16}, "contributes"),
        (0.51, {"fma": 1 / 16}, "contributes"),
        (0.49, {"fma": 1 / 16}, "limiter"),
        (0.60, {"fma": 1 / 4}, "limiter"),
        (0.60, {}, "limiter"),
    ],
)
def test_a_wait_limits_only_where_it_explains_a_quarter_of_the_room(
    achieved: float, shares: dict[str, float], severity: str
) -> None:
    """Of 16x, 2x is a quarter on a logarithmic scale and 1.67x less; for 4x or unknown, it is enough."""
    counters = {"theoretical_occupancy": 1.0, "achieved_occupancy": achieved}
    findings = findings_of(make_facts(counters, shares))
    assert [(one.id, one.severity) for one in findings] == [("achieved_occupancy_gap", severity)]


FUSED = {
    "theoretical_occupancy": 0.0625,
    "block_size": 128.0,
    "grid_size": 96.0,
    "sm_count": 108.0,
    "waves": 96 / 108,
    "blocks_limit_registers": 2.0,
    "blocks_limit_smem": 1.0,
    "blocks_limit_warps": 16.0,
    "blocks_limit_blocks": 32.0,
    "stall_wait_cycles": 1.88,
    "warp_latency_cycles": 5.83,
    "issue_active_per_cycle": 0.17,
}
"""A fused pair of matrix products on an A100, as its report has it: one block an SM, one warp a scheduler."""


def test_more_warps_a_block_are_advised_where_the_grid_has_no_more_blocks_and_waits_are_the_usual_ones() -> None:
    """8 warps instead of 4 give at most 2x, or 1.67x with a unit 60 % busy."""
    for shares, most in (({"l2": 0.2}, 2.0), ({"l2": 0.6}, 1 / 0.6)):
        found = low_occupancy(make_facts(FUSED, shares))
        assert found is not None
        assert "8 instead of 4" in found.move
        assert unsaid(found.evidence, found.move) == []
        assert found.gain == pytest.approx(most)
        assert found.severity is None


@pytest.mark.parametrize(
    "change",
    [
        {"waves": 0.5, "grid_size": 54.0},
        {"stall_wait_cycles": 3.1, "warp_latency_cycles": 9.0},
        {"stall_wait_cycles": 1.7},
        {"block_size": 1024.0},
        {"issue_active_per_cycle": 0.8},
    ],
    ids=["half the slots empty", "long waits", "under 30 % of the time", "no larger block", "issues as it is"],
)
def test_more_warps_a_block_are_not_advised_where_something_else_is_the_matter(change: dict[str, float]) -> None:
    """Then the problem is blocks, dependent chains, or none: low occupancy stays a note, as the grid has no more."""
    found = low_occupancy(make_facts({**FUSED, **change}, {"l2": 0.2}))
    assert found is not None
    assert "instead of" not in found.move
    assert found.severity == "note"


@pytest.mark.parametrize(
    ("blocks", "threads", "alone"), [(1.0, 1024.0, True), (2.0, 1024.0, False), (1.0, 256.0, False)]
)
def test_one_large_block_an_sm_is_told_to_be_smaller(blocks: float, threads: float, *, alone: bool) -> None:
    """Nothing replaces a block until its last warp is done, unless another block is resident."""
    counters = {"theoretical_occupancy": 0.5, "achieved_occupancy": 0.3, "block_size": threads}
    counters |= {"registers_per_thread": 64.0, "blocks_limit_registers": blocks}
    found = achieved_occupancy_gap(make_facts(counters))
    assert found is not None
    words = "reduce the block size, such as to 256 threads, as one block of 1,024 fills an SM"
    assert found.move.startswith(words) is alone
    assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(("allowed", "said"), [(0.0625, True), (0.125, False)])
def test_one_warp_per_scheduler_is_said(allowed: float, *, said: bool) -> None:
    """Four of 64 warps are one for each of the four schedulers, which idle while it waits."""
    found = low_occupancy(make_facts({"theoretical_occupancy": allowed, "sm_warps": 64.0}))
    assert found is not None
    assert ("one warp per scheduler" in found.move) is said


@pytest.mark.parametrize(
    ("registers", "block", "capability", "said"),
    [
        (128.0, 256.0, "8.0", "blocks of 256 threads, leave room for 25 % of the warps"),
        (128.0, 256.0, "7.5", "blocks of 256 threads, leave room for 50 % of the warps"),
        (32.0, 256.0, "8.0", None),
        (128.0, 256.0, "13.0", None),
        (128.0, None, "8.0", None),
    ],
)
def test_registers_alone_tell_how_many_warps_fit(
    registers: float, block: float | None, capability: str, said: str | None
) -> None:
    """65,536 registers hold two blocks of 256 threads with 128 each: 16 warps of the 64, or 32, of an SM."""
    counters = {"registers_per_thread": registers, "block_size": block}
    found = low_occupancy(make_facts(counters, kernel={"compute_capability": capability}))
    assert (found is not None) is (said is not None)
    if found is not None:
        assert said in found.move.replace("\u00a0", " ")
        assert found.confidence == "medium"
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(("waves", "kind"), [(1000.0, "elements"), (100.0, "balance")])
def test_blocks_that_come_and_go_are_told_to_loop(waves: float, kind: str) -> None:
    """A thousand waves in a millisecond last 1 us each, which is what it takes to start and to end."""
    counters = {"theoretical_occupancy": 1.0, "achieved_occupancy": 0.6, "waves": waves}
    found = achieved_occupancy_gap(make_facts(counters))
    assert found is not None
    assert found.kind in ((kind,) if kind == "elements" else (kind, None))
    assert ("a wave lasts" in found.move) is (kind == "elements")
    assert unsaid(found.evidence, found.move) == []
