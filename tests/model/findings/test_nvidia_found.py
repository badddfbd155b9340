"""NVIDIA's own estimates: given where no finding of ours covers them, uncut and sorted."""

from __future__ import annotations

from support.findings import at_limiter, make_facts, unsaid
from support.loops import for_all

from rooflens.model.findings.find import RULES
from rooflens.model.findings.nvidia import covered_by, nvidia_rules
from rooflens.model.records import Rule


def _rule(identifier: str, title: str = "", speedup_pct: float | None = 30.0) -> Rule:
    return Rule(identifier, "Section", title, "message", speedup_pct)


def test_rules_that_no_finding_covers_are_said_with_the_highest_estimate_first() -> None:
    """Rules without an estimate cannot be sorted, covered ones are left out, and none of them is our gain."""
    rules = (
        _rule("MemoryL2Compression", "Low Compression Rate", 22.5),
        _rule("HighPipeUtilization", "Low Utilization", 96.31),
        _rule("CPIStall", "Long Scoreboard Stalls", 50.0),
        _rule("SOLBottleneck", "Latency", None),
    )
    findings = nvidia_rules(make_facts(kernel={"rules": rules}), {"stall_long_scoreboard"}, ())
    assert [finding.title for finding in findings] == ["NVIDIA: Low Utilization", "NVIDIA: Low Compression Rate"]
    assert "96 %" in findings[0].move
    assert [finding.gain for finding in findings] == [None, None]
    assert all(unsaid(finding.evidence, finding.move) == [] for finding in findings)
    assert {(finding.severity, finding.kind) for finding in findings} == {("contributes", "nvidia")}


def test_estimates_for_a_kernel_at_its_roof_are_notes() -> None:
    """NVIDIA estimates for the unit; at the roof it cannot bring anything."""
    facts = make_facts(kernel={"rules": (_rule("X"),)}, **at_limiter("dram", 0.9))
    assert [(one.severity, one.gain) for one in nvidia_rules(facts, (), ())] == [("note", None)]


@for_all(
    "identifier, title, ours",
    [
        ("CPIStall", "Long Scoreboard Stalls", "stall_long_scoreboard"),
        ("CPIStall", "Imc Miss", "stall_imc_miss"),
        ("CPIStall", "No Instruction Stalls", "stall_no_instruction"),
        ("WorkloadImbalance", "L2 Slices Workload Imbalance", "partition_imbalance"),
        ("WorkloadImbalance", "SMSPs Workload Imbalance", "load_imbalance"),
        ("LaunchConfiguration", "Tail Effect", "tail_wave"),
        ("TheoreticalOccupancy", "", "low_occupancy"),
    ],
)
def test_a_rule_is_covered_by_the_finding_that_says_the_same(identifier: str, title: str, ours: str) -> None:
    """The finding exists in the table, and a rule of that title is not repeated."""
    assert covered_by(_rule(identifier, title)) == {ours}
    assert ours in {rule.id for rule in RULES}


def test_an_estimate_is_a_note_where_ours_saw_less_or_little_would_go() -> None:
    """NVIDIA computes a tail of 50 % although no SM was measured idle; 5 % is not worth a move."""
    rules = (_rule("LaunchConfiguration", "Tail Effect", 50.0), _rule("NewRule", "New", 5.0))
    findings = nvidia_rules(make_facts(kernel={"rules": rules}), (), {"tail_wave"})
    assert [(finding.severity, finding.gain) for finding in findings] == [("note", None), ("note", None)]


def test_an_estimate_costs_time_where_ours_could_not_look_at_the_same() -> None:
    """An export of NVIDIA's `details` page has its rule about coalescing, but not the counters that ours needs."""
    rules = (_rule("UncoalescedGlobalAccess", "", 75.0),)
    (finding,) = nvidia_rules(make_facts(kernel={"rules": rules}), (), {"low_occupancy"})
    assert (finding.severity, finding.gain) == ("contributes", None)


def test_results_of_one_title_are_said_once_with_the_highest_estimate() -> None:
    """Exports name the rule without a title, so loads and stores would give two moves with the same words."""
    rules = (_rule("MemoryCacheAccessPattern", "", 43.0), _rule("MemoryCacheAccessPattern", "", 45.0))
    (finding,) = nvidia_rules(make_facts(kernel={"rules": rules}), (), ())
    assert "45 %" in finding.move


def test_unknown_rules_are_covered_by_nothing() -> None:
    """A rule that NVIDIA adds later is shown."""
    assert covered_by(_rule("NewRule", "New")) == frozenset()
    assert covered_by(_rule("CPIStall", "")) == frozenset()
