"""Run every rule over kernels; say how much each finding matters, and put them in order."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rooflens.model.findings.nvidia import NVIDIA_RULE, nvidia_rules
from rooflens.model.findings.rule import IDLE, LATENCY, held_of, holdings_of
from rooflens.model.findings.stalls import largest_wait, long_waits
from rooflens.model.findings.table import CAUSES, RULES
from rooflens.model.hotspots import STALL
from rooflens.model.records import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.findings.rule import Facts, FindingRule, Found, Holdings
    from rooflens.model.records import Severity

MOST_ADVISED = 6
"""At most this many findings that cost time: nobody reads more, so the rest become notes."""

_WELL_OVER = 1.25
"""Factors of waits are of less use than those of causes: both are upper bounds, and a cause says what to change."""
_FEW_WARPS = frozenset({"low_occupancy", "achieved_occupancy_gap"})
"""More warps hide a wait as more loads in flight do: neither is the cause of the other."""
_ORDER: tuple[Severity, ...] = ("limiter", "contributes", "note")


def find_findings(kernels: Sequence[Facts]) -> list[tuple[Finding, ...]]:
    """Return what the rules find of each kernel: first what costs time, by how much, then notes.

    Each rule runs over all kernels of which enough is known before the next one does.
    """
    found: list[list[Finding]] = [[] for _ in kernels]
    alike: defaultdict[Holdings, list[tuple[Facts, list[Finding]]]] = defaultdict(list)
    known = [holdings_of(facts.kernel, traced=facts.in_program is not None) for facts in kernels]
    for holdings, facts, own in zip(known, kernels, found, strict=True):
        alike[holdings].append((facts, own))
    for holdings, members in alike.items():
        for rule in _that_can_tell(holdings):
            find = rule.find
            for facts, own in members:
                if (result := find(facts)) is not None:
                    own.append(_finding(facts, rule, result))
    return [_ranked(*each) for each in zip(kernels, found, known, strict=True)]


@lru_cache(maxsize=1024)
def _that_can_tell(holdings: Holdings) -> tuple[FindingRule, ...]:
    """Return the rules that need no more than is known."""
    held = held_of(holdings)
    return tuple(rule for rule in CAUSES if rule.can_tell(held))


@lru_cache(maxsize=1024)
def _looked_for(holdings: Holdings) -> frozenset[str]:
    """Return the ids of all rules, those of the waits included, that need no more than is known."""
    held = held_of(holdings)
    return frozenset(rule.id for rule in RULES if rule.can_tell(held))


def _ranked(facts: Facts, found: list[Finding], holdings: Holdings) -> tuple[Finding, ...]:
    """Put what was found in order, with what the kernel waits for and what NVIDIA found."""
    found += [_finding(facts, rule, result) for rule in long_waits(facts) if (result := rule.find(facts)) is not None]
    if facts.bound == "latency" and all(finding.severity == "note" for finding in found):
        found += [_finding(facts, *wait) for wait in (largest_wait(facts),) if wait is not None]
    looked = _looked_for(holdings) if facts.kernel.rules else frozenset()
    found += nvidia_rules(facts, {finding.id for finding in found}, looked)
    return _few(sorted(found, key=_rank))


def _rank(finding: Finding) -> tuple[int, bool, float, bool]:
    """Order by what it costs; NVIDIA's unchecked estimates stand behind ours.

    A limiter without a factor leads: what it costs is more than can be told, such as a grid of one block. A wait comes
    after what in the launch or in the code may be the cause of it, unless its factor is well over that one's.
    """
    untold = math.inf if finding.severity == "limiter" else 1.0
    is_wait = finding.id.startswith(STALL) or finding.id in _FEW_WARPS
    gain = (finding.speedup_up_to or untold) / (_WELL_OVER if is_wait else 1.0)
    return _ORDER.index(finding.severity), finding.id == NVIDIA_RULE, -gain, is_wait


def _finding(facts: Facts, rule: FindingRule, found: Found) -> Finding:
    severity = found.severity or _severity(facts, found)
    return Finding(
        id=rule.id,
        title=rule.title,
        severity=severity,
        evidence=found.evidence,
        move=found.move,
        speedup_up_to=None if severity == "note" else _bounded(facts, found.speedup_up_to),
        where=found.where,
        confidence=found.confidence,
    )


def _severity(facts: Facts, found: Found) -> Severity:
    """Judge by what the waste bears on: the wall, something else that is busy, or nothing that costs time.

    Where a unit is full for a part of the run, time is lost in the rest of it, to SMs that idle and not to warps
    that wait.
    """
    if facts.full_for_a_while and LATENCY in found.bears_on:
        return "limiter" if IDLE in found.bears_on else "note"
    wall = facts.wall.resource if facts.wall else None
    gain = _bounded(facts, found.speedup_up_to)
    worth = gain is None or gain >= facts.limits.limiter_gain
    waiting = facts.bound in {"latency", "overhead"} and LATENCY in found.bears_on
    bounds = wall in found.bears_on or (waiting and _explains(facts, gain))
    if bounds and worth:
        return "limiter"
    busy = max((facts.share(resource) or 0.0 for resource in found.bears_on - {LATENCY, IDLE}), default=0.0)
    waits = LATENCY in found.bears_on and not facts.at_roof
    return "contributes" if waits or busy >= facts.limits.contributing_share else "note"


def _explains(facts: Facts, gain: float | None) -> bool:
    """Return whether a gain is a good part of what a waiting kernel could be faster; True where either is not known.

    Factors multiply, so parts are those of their logarithms: 1.13x is 6 % of 7.8x, and leaves 6.9x unexplained.
    """
    headroom = facts.distances.headroom
    if gain is None or headroom is None or headroom <= 1:
        return True
    return math.log(gain) >= facts.limits.limiter_part_of_headroom * math.log(headroom)


def _bounded(facts: Facts, speedup: float | None) -> float | None:
    """Hold a speed-up to what the kernel can reach at all: its potential, or that with reuse."""
    known = [factor for factor in (facts.distances.potential, facts.distances.potential_by_reuse) if factor is not None]
    if speedup is None or not known:
        return speedup
    return max(1.0, min(speedup, max(known)))


def _few(ranked: Sequence[Finding]) -> tuple[Finding, ...]:
    costing = [finding for finding in ranked if finding.severity != "note"]
    too_many = costing[MOST_ADVISED:]
    demoted = [replace(finding, severity="note", speedup_up_to=None) for finding in too_many]
    notes = [finding for finding in ranked if finding.severity == "note"]
    return (*costing[:MOST_ADVISED], *demoted, *notes)
