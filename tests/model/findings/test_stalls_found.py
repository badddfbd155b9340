"""Findings about waiting warps: when a reason is reported, from which numbers, and in which words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.findings import at_limiter, findings_of, make_facts, unsaid
from support.loops import for_all

from rooflens.ingest.reports.resolve import resolve
from rooflens.model.counters.balance import SAMPLED_AS, STALLS
from rooflens.model.findings import stalls
from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import FindingDraft
from rooflens.model.findings.stalls import drain, long_scoreboard
from rooflens.model.knowledge.items import find_item
from rooflens.model.records import Hotspot
from rooflens.model.verdict.facts import Facts

REASONS = sorted(STALLS.keys() - SAMPLED_AS.values())


def _counted(reason: str, share: float, issued: float = 0.4) -> dict[str, float]:
    return {
        f"stall_{reason}_cycles": 20 * share,
        "warp_latency_cycles": 20.0,
        "issue_active_per_cycle": issued,
    }


def _find(reason: str) -> Callable[[Facts], FindingDraft | None]:
    return next(rule.find for rule in RULES if rule.id == f"stall_{reason}")


@pytest.mark.parametrize("share", [0.05, 0.29, 0.31, 0.6])
def test_a_rule_that_is_not_asked_finds_nothing(share: float) -> None:
    """Evaluating only the rules of long waits, counted or sampled, misses no finding."""
    counted = make_facts(_counted("barrier", share))
    sampled = make_facts(kernel={"stalls": {"wait": share, "no_instructions": share / 2, "selected": 0.1}})
    unissued = make_facts(
        {"issued_samples": 50.0, "stall_samples": 100.0}, kernel={"stalls": {"drain": share, "lg_throttle": 2 * share}}
    )
    for facts in (counted, sampled, unissued):
        asked = list(stalls.long_waits(facts.stall_shares, facts.limits.dominant_stall))
        assert not [rule.id for rule in stalls.STALLED if rule not in asked and rule.find(facts) is not None]


@for_all("reason", REASONS)
@for_all("share, issued, said", [(0.30, 0.4, False), (0.31, 0.79, True), (0.5, 0.80, False)])
def test_each_reason_is_said_above_30_percent_where_schedulers_issue_in_less_than_80(
    reason: str, share: float, issued: float, *, said: bool
) -> None:
    """NVIDIA's limits, for every reason; its numbers are in the move, and half of the wait is the gain."""
    found = _find(reason)(make_facts(_counted(reason, share, issued), {"fma": 0.2}))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []
        assert found.gain == pytest.approx(min(1 / (1 - share / 2), 1 / issued))
        assert found.whole == pytest.approx(min(1 / (1 - share), 1 / issued))


def test_a_wait_promises_no_more_than_the_busiest_unit_allows() -> None:
    """91 % of a warp's time is waiting: L1 at 92 % busy allows only 1.09x, and DRAM, which reaches 90 % in a copy, too.

    Both are notes. DRAM at 75 % leaves 0.9 / 0.75.
    """
    for level, busy, gain in (("l1", 0.92, 1 / 0.92), ("dram", 0.92, 1.0), ("dram", 0.75, 0.9 / 0.75)):
        facts = make_facts(_counted("long_scoreboard", 0.91), {level: busy}, **at_limiter(level, busy))
        found = stalls.long_scoreboard(facts)
        assert found is not None
        assert found.gain == pytest.approx(gain)
        assert (findings_of(facts)[0].severity == "note") == (busy > 0.9)


def test_samples_stand_in_for_counters_and_those_that_issued_count_as_time() -> None:
    """Of 1,000 samples 200 issued: 45 % of the stalls are 36 % of the time, and 35 % are 28 %, too little."""
    counters = {"stall_samples": 1000.0, "issued_samples": 200.0, "issue_active_per_cycle": 0.4}
    facts = make_facts(counters, kernel={"stalls": {"barrier": 0.45, "wait": 0.35, "misc": 0.2}})
    found = stalls.barrier(facts)
    assert found is not None
    assert "36 %" in found.move
    assert unsaid(found.evidence, found.move) == []
    assert stalls.wait(facts) is None


def test_the_samplers_own_spelling_is_known() -> None:
    """Counters say `no_instruction`, samples `no_instructions`: both give one finding with its places."""
    hot = Hotspot("sass", pc=16, sass="BRA", measures={"stall_no_instructions": 30.0})
    kernel = {"stalls": {"no_instructions": 1.0}, "hotspots": (hot,), "code_totals": {"stall_no_instructions": 40.0}}
    found = _find("no_instruction")(make_facts(kernel=kernel))
    assert found is not None
    assert [(place.hotspot, place.share) for place in found.where] == [(hot, 0.75)]


def test_loads_in_flight_are_advised_only_where_no_memory_is_full() -> None:
    """At the roof more loads would only queue for L2; just below it there is room to fill."""
    counters = _counted("long_scoreboard", 0.8)
    free = stalls.long_scoreboard(make_facts(counters, {"l2": 0.3}))
    below = stalls.long_scoreboard(make_facts(counters, {"l2": 0.79}, **at_limiter("l2", 0.79)))
    full = stalls.long_scoreboard(make_facts(counters, {"l2": 0.80}, **at_limiter("l2", 0.80)))
    assert free is not None
    assert below is not None
    assert full is not None
    assert "more loads in flight" in free.move
    assert "more bytes in flight" in below.move
    assert "L2 is only 79 % busy" in below.move
    assert "take load off" not in below.move
    assert "in flight" not in full.move
    assert "take load off L2, 80 % busy" in full.move


@pytest.mark.parametrize(
    ("capability", "smem", "advised"), [("8.0", 2048.0, True), ("7.5", 2048.0, False), ("9.0", 1024.0, False)]
)
def test_asynchronous_copies_are_advised_to_chips_that_have_them_and_kernels_with_shared_memory(
    capability: str, smem: float, *, advised: bool
) -> None:
    """Turing has no cp.async, and the driver's kilobyte of shared memory is not a tile."""
    counters = {**_counted("long_scoreboard", 0.8), "smem_per_block_bytes": smem, "smem_driver_bytes": 1024.0}
    found = stalls.long_scoreboard(make_facts(counters, kernel={"compute_capability": capability}))
    assert found is not None
    assert ("cp.async" in found.move) is advised


def test_a_full_queue_of_loads_is_never_told_to_keep_more_in_flight() -> None:
    """`lg_throttle` means that the queue is full: fewer and wider accesses are advised."""
    found = _find("lg_throttle")(make_facts(_counted("lg_throttle", 0.5)))
    assert found is not None
    assert "fewer and wider" in found.move
    assert "in flight" not in found.move


@pytest.mark.parametrize("reason", ["short_scoreboard", "mio_throttle"])
@pytest.mark.parametrize(
    ("opcodes", "names", "silent"),
    [
        ({"LDS.128": 30, "MUFU.RCP": 5, "FFMA": 65}, "shared-memory instructions being 30 %", "special functions"),
        ({"MUFU.EX2": 12, "FFMA": 88}, "special functions being 12 %", "shared memory wider"),
        ({"SHFL.BFLY": 9, "FADD": 91}, "shuffles being 9.0 %", "shared memory wider"),
        ({"FFMA": 10}, "", "shared"),
        ({}, "which takes shared memory, special functions and shuffles", "being"),
    ],
)
def test_the_queue_of_shared_memory_is_explained_by_what_the_kernel_executes(
    reason: str, opcodes: dict[str, int], names: str, silent: str
) -> None:
    """A kernel without shared memory or special functions is not told to use less of them."""
    found = _find(reason)(make_facts(_counted(reason, 0.5), kernel={"warp_opcodes": opcodes}))
    assert found is not None
    assert names in found.move
    assert silent not in found.move
    assert unsaid(found.evidence, found.move) == []


def test_a_busy_math_pipe_is_named_with_its_share() -> None:
    """The pipe that warps wait for is named with its share."""
    found = stalls.math_pipe_throttle(make_facts(_counted("math_pipe_throttle", 0.4), {"alu": 0.68, "issue": 0.7}))
    assert found is not None
    assert "ALU pipe at 68 %" in found.move
    assert "alu" in found.bears_on


def test_warps_that_are_ready_are_always_a_note() -> None:
    """No time is lost while another warp issues."""
    findings = findings_of(make_facts(_counted("not_selected", 0.5)))
    assert [(finding.id, finding.severity) for finding in findings] == [("stall_not_selected", "note")]


@pytest.mark.parametrize(("bound", "severity"), [("latency", "limiter"), ("overhead", "note")])
def test_a_kernel_as_short_as_its_launch_is_not_told_to_read_constants_otherwise(bound: str, severity: str) -> None:
    """Its first read of a parameter always misses; a longer kernel that waits for constants is limited by it."""
    findings = findings_of(make_facts(_counted("imc_miss", 0.6, 0.02), {"fma": 0.4}, bound=bound))
    (found,) = (finding for finding in findings if finding.id == "stall_imc_miss")
    assert found.severity == severity
    assert ("same constants" in found.move) is (bound == "latency")
    assert unsaid(found.evidence, found.move) == []


def test_a_wait_worth_less_than_a_tenth_is_no_limiter() -> None:
    """With only 5 % left by the busiest unit, the wait contributes."""
    facts = make_facts(_counted("wait", 0.5, 0.5), {"fma": 0.95})
    assert [finding.severity for finding in findings_of(facts)] == ["contributes"]


@pytest.mark.parametrize(("waiting", "first"), [(0.79, "small_grid"), (0.81, "stall_barrier")])
def test_a_wait_comes_after_its_possible_causes_unless_it_is_worth_a_quarter_more(waiting: float, first: str) -> None:
    """Three quarters of a wave give 1.33x; half of 79 % of the time 1.65x, below 1.67x, and of 81 % 1.68x."""
    counters = {**_counted("barrier", waiting, 0.05), "waves": 0.75, "grid_size": 81.0, "sm_count": 108.0}
    findings = findings_of(make_facts(counters, {"fma": 0.4}))
    assert [finding.severity for finding in findings] == ["limiter", "limiter"]
    assert findings[0].id == first


@pytest.mark.parametrize(
    ("cycles", "between", "severity"),
    [(3.0, 6.1, "note"), (3.1, 6.3, "limiter"), (3.0, 5.9, "limiter"), (1.9, 5.8, "note"), (4.0, 11.0, "limiter")],
)
def test_fixed_latencies_are_a_cause_above_three_cycles_or_where_a_warp_does_little_else(
    cycles: float, between: float, severity: str
) -> None:
    """Dependent arithmetic always waits 3 cycles: 49 % of 6.1 is usual, 51 % of 5.9 is a cause."""
    counters = {"stall_wait_cycles": cycles, "warp_latency_cycles": between, "issue_active_per_cycle": 0.2}
    (found,) = findings_of(make_facts(counters, {"fma": 0.2}))
    assert (found.id, found.severity) == ("stall_wait", severity)
    assert unsaid(found.evidence, found.move) == []
    assert ("more warps" in found.move) is (severity == "note")


def test_the_cycles_of_a_sampled_wait_are_its_share_of_those_between_two_instructions() -> None:
    """40 % of the samples are 2.8 of 7 cycles, a usual wait, or 3.2 of 8, a long one; unknown cycles give a cause."""
    for between, severity in ((7.0, "note"), (8.0, "limiter"), (None, "limiter")):
        counters = {"issue_active_per_cycle": 0.2} | ({"warp_latency_cycles": between} if between else {})
        kernel = {"stalls": {"wait": 0.4, "barrier": 0.2, "drain": 0.2, "misc": 0.2}}
        found = {one.id: one.severity for one in findings_of(make_facts(counters, {"fma": 0.2}, kernel=kernel))}
        assert found["stall_wait"] == severity


def test_a_usual_wait_is_no_answer_to_why_a_kernel_waits() -> None:
    """1.4 of 5 cycles are the largest wait, but usual; the next largest, 1.2 for data, is named."""
    counters = {"stall_wait_cycles": 1.4, "stall_long_scoreboard_cycles": 1.2, "warp_latency_cycles": 5.0}
    (found,) = findings_of(make_facts({**counters, "issue_active_per_cycle": 0.2}, {"fma": 0.2}))
    assert (found.id, found.severity, found.confidence) == ("stall_long_scoreboard", "contributes", "low")


def test_a_wait_before_warpgroup_products_is_not_told_as_one_for_their_results() -> None:
    """NVIDIA's staff: stall GMMA occurs at `WARPGROUP.ARRIVE`, before issue; the end of products is at a barrier."""
    found = _find("gmma")(make_facts(_counted("gmma", 0.5), kernel={"compute_capability": "9.0"}))
    assert found is not None
    assert "50 % of their time waiting to issue warpgroup matrix instructions" in found.move
    assert "in flight" not in found.move
    before, end = find_item("findings", "stall_gmma"), find_item("findings", "stall_barrier")
    assert before is not None
    assert end is not None
    assert "wait_group" not in " ".join(before.tries)
    assert "wgmma.wait_group" in " ".join(end.tries)


@for_all(
    "opcodes, chained",
    [
        ({"LDG.E.64.STRONG.SYS": 1200, "STG.E.64.STRONG.GPU": 500}, True),
        ({"LD.E.STRONG.GPU": 1200, "ATOMG.E.EXCH.STRONG.GPU": 500}, True),
        ({"LDG.E.STRONG.GPU": 1200, "STG.E": 500}, False),
        ({"LDG.E": 1200, "STG.E.STRONG.GPU": 500}, False),
        ({"LDG.E.STRONG.GPU": 1200, "RED.E.ADD.STRONG.GPU": 500, "ATOMG.E.ADD.STRONG.GPU": 500}, False),
        ({}, False),
    ],
)
def test_blocks_that_wait_for_one_another_are_not_told_to_be_smaller(opcodes: dict[str, int], *, chained: bool) -> None:
    """A one-pass scan polls other blocks' results, so halving blocks doubles its chain; a histogram does not wait."""
    counters = {**_counted("barrier", 0.5), "block_size": 512.0}
    found = stalls.barrier(make_facts(counters, kernel={"warp_opcodes": opcodes}))
    assert found is not None
    assert ("smaller blocks than 512 threads" in found.move) is not chained
    assert ("more elements" in found.move) is chained
    assert ("(1.20 k coherent loads, 500 coherent stores)" in found.move) is chained
    assert unsaid(found.evidence, found.move) == []


def test_per_cents_of_a_warps_time_are_stall_shares() -> None:
    """`smsp__warp_issue_stalled_barrier_per_warp_active.pct` of 45 is 45 % of a warp's time, with this source."""
    metric = "smsp__warp_issue_stalled_barrier_per_warp_active.pct"
    resolved = resolve({metric: 45.0, "smsp__warp_issue_stalled_wait_per_warp_active.pct": 10.0})
    facts = make_facts(resolved.values, kernel={"counter_sources": resolved.sources})
    assert facts.stall_shares == {"barrier": pytest.approx(0.45), "wait": pytest.approx(0.10)}
    found = stalls.barrier(facts)
    assert found is not None
    assert "45 %" in found.move
    assert [one.source for one in found.evidence] == [metric]


@pytest.mark.parametrize(("opcode", "begins"), [("RED.E.ADD", "reduce within the warp"), ("STG.E", "store earlier")])
def test_atomics_without_stores_are_not_told_to_store(opcode: str, begins: str) -> None:
    """Only the kernel's own way of writing can be in flight at its exit."""
    found = drain(make_facts(kernel={"stalls": {"drain": 0.6}, "warp_opcodes": {opcode: 10}}))
    assert found is not None
    assert found.move.startswith(begins)


@pytest.mark.parametrize(
    ("barriers", "capability", "begins"),
    [
        (32, "7.5", "double-buffer the tiles: fetch the next one into registers"),
        (32, "8.6", "double-buffer the tiles: fetch the next one with cp.async"),
        (31, "8.6", "keep more loads in flight"),
    ],
)
def test_loads_of_tiles_are_told_of_double_buffers(barriers: int, capability: str, begins: str) -> None:
    """Two blocks of four warps with four barriers each loop over tiles; a reduction has fewer barriers."""
    counters = {"block_size": 128.0, "grid_size": 2.0, "smem_per_block_bytes": 5120.0, "smem_driver_bytes": 1024.0}
    opcodes = {"BAR.SYNC": barriers, "LDS": 100, "STS": 64, "LDG.E": 64}
    kernel = {"stalls": {"long_scoreboard": 0.6}, "warp_opcodes": opcodes, "compute_capability": capability}
    found = long_scoreboard(make_facts(counters, kernel=kernel))
    assert found is not None
    assert found.move.startswith(begins)
