"""The table of findings, by subject: run every rule over kernels, judge how much each finding matters, and sort."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec.structs import replace

from rooflens.format import percent
from rooflens.model.findings.arithmetic import ARITHMETIC
from rooflens.model.findings.cooperation import COOPERATION
from rooflens.model.findings.cost import IDLE, LATENCY, cost_of, loads_unseen, next_unit
from rooflens.model.findings.launch import BALANCE, DIVERGENCE, LAUNCH, OCCUPANCY
from rooflens.model.findings.loops import LOOPS, most_of_one_loop
from rooflens.model.findings.memory import ATOMICS, MEMORY
from rooflens.model.findings.nvidia import nvidia_rules
from rooflens.model.findings.reuse import REUSE
from rooflens.model.findings.rule import FindingDraft, FindingRule, Holdings, held_of, holdings_of, weighed
from rooflens.model.findings.stalls import STALLED, largest_wait, long_waits
from rooflens.model.hotspots import STALL, caller_of
from rooflens.model.records import Finding, Gain, Inside, MoveKind, Place, Severity, held_once
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict.decide import FEW_WARPS
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE

CAUSES: tuple[FindingRule, ...] = (
    *(*LAUNCH, *MEMORY, *REUSE, *COOPERATION, *DIVERGENCE),
    *(*ATOMICS, *ARITHMETIC, *BALANCE, *OCCUPANCY, *LOOPS),
)
"""All but the waits: the stalls show directly which of those apply."""

RULES: tuple[FindingRule, ...] = (*CAUSES, *STALLED)

KIND_OF = {rule.id: rule.kind for rule in RULES}

MOST_ADVISED = 6
"""At most this many findings that cost time: nobody reads more, so the rest become notes."""

_ORDER: tuple[Severity, ...] = ("limiter", "contributes", "note")


def find_findings(kernels: Sequence[Facts]) -> list[tuple[Finding, ...]]:
    """Return the findings of each kernel: those that cost time first, ordered by cost, then notes.

    Each rule runs over all kernels that have its counters before the next does.
    """
    findings: list[list[Finding]] = [[] for _ in kernels]
    alike: defaultdict[Holdings, list[tuple[Facts, list[Finding]]]] = defaultdict(list)
    known = [holdings_of(facts.kernel, traced=facts.outside.in_program is not None) for facts in kernels]
    for holdings, facts, own in zip(known, kernels, findings, strict=True):
        alike[holdings].append((facts, own))
    for holdings, members in alike.items():
        causes, _ = _that_can_tell(holdings)
        for rule in causes:
            find = rule.find
            for facts, own in members:
                if (result := find(facts)) is not None:
                    own.append(_judged_finding(facts, rule, result))
    return [_ranked(*each) for each in zip(kernels, findings, known, strict=True)]


@lru_cache(maxsize=1024)
def _that_can_tell(holdings: Holdings) -> tuple[tuple[FindingRule, ...], frozenset[str]]:
    """Return the rules of causes that may find something in what is known, and the IDs of all that can tell."""
    held = held_of(holdings)
    causes = tuple(rule for rule in CAUSES if rule.may_tell(held))
    return causes, frozenset(rule.id for rule in RULES if rule.can_tell(held))


def _ranked(facts: Facts, findings: list[Finding], holdings: Holdings) -> tuple[Finding, ...]:
    """Sort findings, including the kernel's waits and NVIDIA's results; if there are too many, some become notes."""
    findings += [
        _judged_finding(facts, rule, result)
        for rule in long_waits(facts.stall_shares, facts.limits.dominant_stall)
        if (result := rule.find(facts)) is not None
    ]
    if facts.bound == "latency" and all(finding.severity == "note" for finding in findings):
        findings += [_judged_finding(facts, *wait) for wait in (largest_wait(facts),) if wait is not None]
    if facts.kernel.rules:
        findings += nvidia_rules(facts, {finding.id for finding in findings}, _that_can_tell(holdings)[1])
    ranked = sorted(findings, key=lambda finding: _rank(finding, facts.limits.untold_gain))
    costing = [finding for finding in ranked if finding.severity != "note"]
    demoted = [replace(finding, severity="note", gain=None) for finding in costing[MOST_ADVISED:]]
    return (*costing[:MOST_ADVISED], *demoted, *(finding for finding in ranked if finding.severity == "note"))


def _rank(finding: Finding, untold_gain: float) -> tuple[int, bool, float, bool]:
    """Sort by cost, with NVIDIA's unchecked estimates after ours.

    A limiter without a factor comes first, as its cost is larger than can be calculated, for example a grid of one
    block. A wait follows its possible causes in the launch or in the code, unless its factor is clearly larger than
    theirs.
    """
    untold = math.inf if finding.severity == "limiter" else 1.0
    is_wait = finding.id.startswith(STALL) or finding.id in FEW_WARPS
    gain = (finding.factor or untold) / (untold_gain if is_wait else 1.0)
    return _ORDER.index(finding.severity), finding.id == NVIDIA_RULE, -gain, is_wait


def _judged_finding(facts: Facts, rule: FindingRule, draft: FindingDraft) -> Finding:
    """Work out the gain of a finding; the time never falls below what the move leaves unchanged."""
    library, time_ns = facts.library, facts.kernel.duration_ns
    is_told, draft = draft.severity is not None or draft.waste is not None, weighed(facts, draft)
    factor = None if draft.gain is None else max(1.0, min(draft.gain, *_most_left(facts, draft)))
    severity = draft.severity or _severity(facts, draft.bears_on, draft.whole or factor)
    unit = next_unit(facts, draft.waste) if severity != "note" and draft.waste is not None else None
    is_small = factor is not None and factor < 1 + facts.limits.noise_share
    if is_small and unit is None and (severity == "contributes" or not is_told):
        severity = "note"  # what others measured it by leaves less of it than runs differ by
    # Behind a side that was not measured, and may be full, a wait ends where nobody knows; few blocks fill nothing.
    is_open = facts.bound == "latency" and LATENCY in draft.bears_on and bool(facts.or_bound) and rule.kind != "blocks"
    is_guess = draft.confidence == "low" or is_open
    gain = (
        None
        if factor is None or severity == "note" or factor < 1 + facts.limits.noise_share or is_guess
        else Gain(factor, time_ns / factor if time_ns is not None else None, changes=draft.changes)
    )
    move = draft.move
    if unit is not None:
        label, first = (
            resource_label(one, facts.kernel.gpu) for one in (unit, facts.limiter and facts.limiter.resource)
        )
        busy = f"{percent(facts.shares[unit])} busy"
        move = move if busy in move else f"{move}; {label} is {busy}, and next once {first} is relieved"
    finding = Finding(
        id=rule.id,
        title=rule.title,
        severity=severity,
        evidence=tuple(map(held_once, draft.evidence)),
        move=held_once(move if library is None else _of_library(library, move, draft.kind or rule.kind)),
        kind=(draft.kind or rule.kind) if library is None else "library",
        gain=gain,
        where=_in_program(facts.kernel.inside, draft.where),
        confidence=draft.confidence,
        cost=cost_of(facts, draft.waste, draft.bears_on, factor),
        limiters=draft.limiters,
    )
    return held_once(finding)


def _in_program(inside: Inside | None, where: tuple[Place, ...]) -> tuple[Place, ...]:
    """Name the program's own line beside each place in a header of a library."""
    if inside is None or not inside.callers:
        return where
    return tuple(replace(place, caller=caller_of(inside, place.hotspot)) for place in where)


def _most_left(facts: Facts, draft: FindingDraft) -> Iterator[float]:
    """Yield how much faster each thing allows that a move leaves as it is.

    These are the units that it takes no work from, one that is at least so busy by what is known to pass it among them,
    the loops outside the lines that it is about, the shortest launch and, unless it changes what that keeps, a proven
    limit.
    """
    time_ns, limit = facts.kernel.duration_ns, facts.limit
    shares, spared = facts.shares, draft.bears_on
    # Nothing that reads and writes moves DRAM's whole peak: a time at 100 % of it is a promise that nobody keeps.
    best = {"dram": facts.limits.best_copy_share}
    yield from (max(1.0, best.get(unit, 1.0) / share) for unit, share in shares.items() if share and unit not in spared)
    for side in facts.sides:
        if side.resource is not None and side.share and side.resource not in shares and side.resource not in spared:
            yield max(1.0, best.get(side.resource, 1.0) / side.share)
    if (most := most_of_one_loop(facts, draft.where)) is not None:
        yield most
    if time_ns is not None:
        yield time_ns / facts.limits.shortest_launch_ns
    if limit.proven and limit.over_floor is not None and draft.changes is None:
        yield limit.over_floor


_OF_A_LAUNCH = frozenset({"blocks", "balance", "occupancy", "shape"})


def _of_library(library: str, move: str, kind: MoveKind) -> str:
    """Keep only the numbers of a finding about a library's kernel, the end of its move: callers cannot change it."""
    whose = f"{library} picks this" if kind in _OF_A_LAUNCH else f"in {library}'s own code"
    numbers = re.split("; or |, and all of these", move.rpartition(": ")[2])[0]
    return f"{numbers} ({whose})"


def _severity(facts: Facts, bears_on: frozenset[str], gain: float | None) -> Severity:
    """Judge by what the waste affects: the limiter, another busy unit, or nothing that costs time.

    Where a unit is full for a part of the run, time is lost in the rest of it, to SMs that idle and not to warps
    that wait. A gain limits a waiting kernel where it is a good part of what that could be faster, or either is not
    known. Factors multiply, so parts are those of their logarithms: 1.13x is 6 % of 7.8x, and leaves 6.9x unexplained.
    """
    if facts.full_for_a_while and LATENCY in bears_on:
        return "limiter" if IDLE in bears_on else "note"
    limits, room, waits = facts.limits, facts.room, LATENCY in bears_on
    explains = waits and facts.bound in {"latency", "overhead"}
    if explains and gain is not None and room is not None and room > 1:
        explains = math.log(gain) >= limits.quarter_share * math.log(room)
    is_at_limiter = facts.limiter is not None and facts.limiter.resource in bears_on
    if (is_at_limiter or explains) and (gain is None or gain >= limits.limiter_gain):
        return "limiter"
    busy = max((facts.shares.get(resource, 0.0) for resource in bears_on - {LATENCY, IDLE}), default=0.0)
    if loads_unseen(facts.unseen, facts.shares, bears_on):
        return "contributes"
    is_waiting = waits and not facts.at_roof
    return "contributes" if is_waiting or busy >= limits.contributing_share else "note"
