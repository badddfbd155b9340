"""Kernels of one report that do the same work: the faster one shows how much time can be saved.

The same work means equally many FLOPs, or equally many requested bytes under a similar name, and an output of the same
size. Kernels as short as their launch, and launches of one kernel, prove nothing; libraries get no such advice.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from msgspec.structs import replace

from rooflens.format import duration, factor, plain_name, si
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.findings.find import MOST_ADVISED
from rooflens.model.records import Analysis, Confidence, Evidence, Finding, Gain, Kernel, Move, MoveKind
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE
from rooflens.model.verdict.thresholds import Thresholds

SIBLING = "sibling_faster"
_KIND: MoveKind = "algorithm"
_SAME, _VERY_SAME, _LIKE = 0.05, 0.01, 0.5
"""Amounts of the same work differ by a twentieth; by a hundredth where outputs do not agree, or are not known."""
_FASTER = 1.2
_WORDS = re.compile(r"[a-z]{4,}")


def with_siblings(analyses: Sequence[Analysis], limits: Thresholds) -> tuple[Analysis, ...]:
    """Add to each kernel of a report the fastest other one that does the same work."""
    fastest: dict[tuple[str, str | None, float], Analysis] = {}
    for one in analyses:
        amount, time_ns = _amount(one), one.kernel.duration_ns
        if amount and time_ns and not one.kernel.failed and time_ns >= limits.overhead_duration_ns:
            known = fastest.setdefault((one.kernel.name, one.kernel.gpu, amount), one)
            if time_ns < (known.kernel.duration_ns or 0.0):
                fastest[one.kernel.name, one.kernel.gpu, amount] = one
    if len({name for name, _, _ in fastest}) < 2:
        return tuple(analyses)
    ordered = sorted(fastest.values(), key=lambda one: _amount(one) or 0.0)
    amounts = [_amount(one) or 0.0 for one in ordered]
    found = []
    for one in analyses:
        amount = _amount(one)
        if not amount or one.kernel.failed or one.library is not None:
            found.append(one)
            continue
        near = ordered[bisect_left(amounts, amount * (1 - _SAME)) : bisect_left(amounts, amount * (1 + _SAME))]
        matches = [(other, sure) for other in near if (sure := _match(one, other)) is not None]
        best = min(matches, key=lambda match: match[0].kernel.duration_ns or 0.0, default=None)
        found.append(one if best is None else _with_sibling(one, *best))
    return tuple(found)


def _amount(analysis: Analysis) -> float | None:
    """Return the FLOPs of a kernel, else the sectors that its global accesses request."""
    return analysis.flop_total or analysis.kernel.counters.get("global_ideal_sectors")


def _match(one: Analysis, other: Analysis) -> Confidence | None:
    """Return how certain it is that another kernel does the same work faster; None if it does not."""
    kernel, faster = one.kernel, other.kernel
    time_ns, other_ns = kernel.duration_ns, faster.duration_ns
    if not time_ns or not other_ns or time_ns < _FASTER * other_ns:
        return None
    if kernel.name == faster.name or kernel.gpu != faster.gpu or bool(one.flop_total) is not bool(other.flop_total):
        return None
    stored, written = kernel.counters.get("l2_write_bytes"), faster.counters.get("l2_write_bytes")
    is_output_same = bool(stored) and bool(written) and _differ(stored or 0.0, written or 0.0) <= _SAME
    if not one.flop_total:
        shared = _WORDS.findall(kernel.function_name.lower()), _WORDS.findall(faster.function_name.lower())
        return "low" if is_output_same and set(shared[0]) & set(shared[1]) else None
    if is_output_same:
        return "medium"
    is_output_like = not stored or not written or _differ(stored, written) <= _LIKE
    return "low" if is_output_like and _differ(one.flop_total, other.flop_total or 0.0) <= _VERY_SAME else None


def _differ(one: float, other: float) -> float:
    return abs(one - other) / max(one, other)


def _with_sibling(one: Analysis, other: Analysis, confidence: Confidence) -> Analysis:
    """Add the faster kernel as a finding and a move, after the moves that say what to change.

    A kernel that is faster than the proven floor does other work; one that is faster than today's traffic allows moves
    fewer bytes.
    """
    kernel, verdict, time_ns = one.kernel, one.verdict, other.kernel.duration_ns or 0.0
    times = (kernel.duration_ns or 0.0) / time_ns
    changes = "types" if _main_type(one) != _main_type(other) else None
    if changes is None and verdict.limit.over_floor is not None and times > verdict.limit.over_floor:
        if verdict.limit.proven:
            return one
        changes = "bytes"
    name = _name(other.kernel, kernel)
    work = si(one.flop_total, "FLOP") if one.flop_total else si((_amount(one) or 0.0) * SECTOR_BYTES, "B")
    text = f"compare it with `{name}`, which in this report does the same {work} {factor(times)} faster"
    text = f"{text} ({duration(time_ns)})"
    costing = sum(finding.severity != "note" for finding in one.findings)
    is_advised = costing < MOST_ADVISED
    is_earned = "low" not in {confidence, verdict.confidence}
    gain = Gain(times, time_ns, changes=changes) if is_earned else None
    finding = Finding(
        id=SIBLING,
        title="a faster kernel for the same work",
        severity="contributes" if is_advised else "note",
        evidence=(
            Evidence("times as fast", times, "x", f"duration / duration of `{name}`"),
            Evidence("duration of the other", time_ns, "ns", "gpu__time_duration.sum"),
        ),
        move=text,
        kind=_KIND,
        gain=gain if is_advised else None,
        confidence=confidence,
    )
    place = next((at for at, each in enumerate(one.findings) if each.id == NVIDIA_RULE), costing)
    place = min(place, costing)
    moves = list(verdict.moves)
    if is_advised:
        last = max(
            (at for at, move in enumerate(moves) if move.finding not in {None, NVIDIA_RULE}), default=len(moves) - 1
        )
        moves.insert(last + 1, Move(text, _KIND, SIBLING, gain=gain))
    return replace(
        one,
        findings=(*one.findings[:place], finding, *one.findings[place:]),
        verdict=replace(verdict, moves=tuple(moves)),
    )


def _main_type(analysis: Analysis) -> str:
    return max(analysis.flop, key=analysis.flop.__getitem__, default="")


def _name(kernel: Kernel, beside: Kernel) -> str:
    """Shorten a kernel's name as far as it still differs from the other's."""
    return kernel.function_name if kernel.function_name != beside.function_name else plain_name(kernel.name)
