"""NVIDIA's own rule results with an estimated speed-up, as findings, unless one of our findings covers them.

They come from the report and stand last: their titles and estimates are NVIDIA's, uncut and unchecked, and are not our
gains.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rooflens.format import percent
from rooflens.model.records import Evidence, Finding, Rule
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE

_WHOLE_PCT = 100.0

_COVERED: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("TheoreticalOccupancy", "", frozenset({"low_occupancy"})),
    ("Occupancy", "", frozenset({"low_occupancy"})),
    ("AchievedOccupancy", "", frozenset({"achieved_occupancy_gap"})),
    ("LaunchConfiguration", "Block Size", frozenset({"partial_warps"})),
    ("LaunchConfiguration", "Small Grid", frozenset({"small_grid"})),
    ("LaunchConfiguration", "Tail Effect", frozenset({"tail_wave"})),
    ("WorkloadImbalance", "L2", frozenset({"partition_imbalance"})),
    ("WorkloadImbalance", "DRAM", frozenset({"partition_imbalance"})),
    ("WorkloadImbalance", "", frozenset({"load_imbalance"})),
    ("ThreadDivergence", "", frozenset({"thread_divergence"})),
    (
        "UncoalescedGlobalAccess",
        "",
        frozenset({"uncoalesced_global_load", "uncoalesced_global_store"}),
    ),
    ("UncoalescedSharedAccess", "", frozenset({"bank_conflicts"})),
    ("SharedMemoryConflicts", "", frozenset({"bank_conflicts"})),
    ("MemoryCacheAccessPattern", "Local", frozenset({"local_memory"})),
    ("MemoryCacheAccessPattern", "Load", frozenset({"uncoalesced_global_load"})),
    ("MemoryCacheAccessPattern", "Store", frozenset({"uncoalesced_global_store"})),
    ("FPInstructions", "", frozenset({"unfused_arithmetic"})),
    ("SOLFPRoofline", "FP64", frozenset({"slow_fp64"})),
)
"""Rule, what its title holds, and the findings that say the same; the first row that fits counts."""

_STALLS = re.compile(r"(\w+(?: \w+)*?)(?: Stalls?)?")


def nvidia_rules(facts: Facts, finding_ids: Collection[str], looked: Collection[str]) -> tuple[Finding, ...]:
    """Return what NVIDIA's rules report beyond the findings, the highest estimates first.

    An estimate is the share of the time that would be saved, in per cent. None is a limiter, as nobody checked it. It
    is a note if the kernel is at its roof, if little would be saved, or if a rule of ours examined the same and saw
    less, such as a computed tail that was not measured. Of several with one title, as in exports without titles, the
    highest is reported.

    Args:
        facts: Facts of the kernel, with its rule results.
        finding_ids: IDs of the findings that it has.
        looked: IDs of the findings for which the report has enough data.
    """
    rules = [rule for rule in facts.kernel.rules if rule.speedup_pct and not covered_by(rule) & set(finding_ids)]
    by_title: dict[str, Rule] = {}
    for rule in sorted(rules, key=lambda rule: -(rule.speedup_pct or 0.0)):
        by_title.setdefault(rule.title or rule.identifier, rule)
    findings = []
    for title, rule in by_title.items():
        estimate = rule.speedup_pct or 0.0
        saved = estimate / _WHOLE_PCT
        faster = _WHOLE_PCT / (_WHOLE_PCT - estimate) if estimate < _WHOLE_PCT else None
        is_much = faster is None or faster >= facts.limits.limiter_gain
        costs = not facts.at_roof and is_much and covered_by(rule).isdisjoint(looked)
        findings.append(
            Finding(
                id=NVIDIA_RULE,
                title=f"NVIDIA: {title}",
                severity="contributes" if costs else "note",
                evidence=(Evidence("time it would save", saved, "share", f"NVIDIA's rule {rule.identifier}"),),
                move=f"see NVIDIA's rule `{title}`, which estimates {percent(saved)} less time",
                kind="nvidia",
                confidence="low",
            )
        )
    return tuple(findings)


def covered_by(rule: Rule) -> frozenset[str]:
    """Return the IDs of our findings that cover a rule of NVIDIA's; empty if there are none."""
    if rule.identifier == "CPIStall":
        match = _STALLS.fullmatch(rule.title)
        return frozenset({f"stall_{match[1].lower().replace(' ', '_')}"}) if match else frozenset()
    fitting = (ids for identifier, part, ids in _COVERED if identifier == rule.identifier and part in rule.title)
    return next(fitting, frozenset())
