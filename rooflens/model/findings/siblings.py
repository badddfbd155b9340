"""Kernels of one report that do the same work: the faster one shows how much time can be saved.

The same work means equally many FLOPs, or equally many requested bytes under a similar name, and an output of the same
size. Kernels as short as their launch, and launches of one kernel, prove nothing; libraries get no such advice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from heapq import merge
from math import floor, inf, log
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import duration, factor, plain_name, si
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.findings.find import MOST_ADVISED
from rooflens.model.records import Analysis, Confidence, Evidence, Finding, Gain, Kernel, Move, MoveKind
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE
from rooflens.model.verdict.thresholds import Thresholds, default_thresholds

SIBLING = "sibling_faster"
_KIND: MoveKind = "algorithm"
_SAME_WITHIN = 0.05
"""Amounts of the same work differ by a twentieth."""
_CELL = log((1 + _SAME_WITHIN) / (1 - _SAME_WITHIN))
_WORDS = re.compile(r"[a-z]{4,}")


class _Done(Struct, frozen=True):
    """The work of a kernel, and its time.

    Attributes:
        amount: FLOPs, else the sectors that its global accesses request.
        output_bytes: What it writes to L2; None if that is unknown.
    """

    analysis: Analysis
    amount: float
    time_ns: float
    output_bytes: float | None

    @property
    def order(self) -> tuple[float, float]:
        """The faster first, then the smaller."""
        return self.time_ns, self.amount

    @property
    def kind(self) -> tuple[str | None, bool]:
        """What the same work agrees in: its GPU, and whether FLOPs are its amount."""
        return self.analysis.kernel.gpu, bool(self.analysis.flop_total)

    @property
    def words(self) -> set[str]:
        """The words of its function's name."""
        return set(_WORDS.findall(self.analysis.kernel.function_name.lower()))


def with_siblings(analyses: Sequence[Analysis], limits: Thresholds) -> tuple[Analysis, ...]:
    """Add to each kernel of a report the fastest other one that does the same work."""
    every = [_done(one) for one in analyses]
    fastest: dict[tuple[str, str | None, float], _Done] = {}
    for done in every:
        if done is not None and done.time_ns >= limits.overhead_duration_ns:
            key = (done.analysis.kernel.name, done.analysis.kernel.gpu, done.amount)
            if key not in fastest or done.time_ns < fastest[key].time_ns:
                fastest[key] = done
    if len({name for name, _, _ in fastest}) < 2:
        return tuple(analyses)
    by_size: dict[_Cell, list[_Done]] = {}
    for done in sorted(fastest.values(), key=attrgetter("order")):
        by_size.setdefault((*done.kind, _work_cell(done.amount)), []).append(done)
    found = []
    for one, done in zip(analyses, every, strict=True):
        best = None if done is None or one.library is not None else _fastest_alike(done, by_size, limits.untold_gain)
        found.append(one if best is None else _with_sibling(one, *best))
    return tuple(found)


_Cell: TypeAlias = tuple[str | None, bool, int]
"""The kernels of one kind whose amounts have about the same logarithm."""


def _work_cell(amount: float) -> int:
    return floor(log(amount) / _CELL)


def _fastest_alike(
    done: _Done, by_size: Mapping[_Cell, Sequence[_Done]], least_gain: float
) -> tuple[Analysis, Confidence] | None:
    """Return the fastest kernel that does the same work, and how certain that is; None if there is none.

    The first match is the fastest, so that a kernel is mostly held against very few.
    """
    least, most = done.amount * (1 - _SAME_WITHIN), done.amount * (1 + _SAME_WITHIN)
    near = [by_size.get((*done.kind, cell), ()) for cell in range(_work_cell(least), _work_cell(most) + 1)]
    for other in merge(*near, key=attrgetter("order")):
        if done.time_ns < least_gain * other.time_ns:
            return None
        if least <= other.amount < most and (sure := _match(done, other)) is not None:
            return other.analysis, sure
    return None


def _done(analysis: Analysis) -> _Done | None:
    """Return what a kernel did; None if its work or its time is unknown."""
    amount, time_ns = _work_amount(analysis), analysis.kernel.duration_ns
    if not amount or not 0 < amount < inf or not time_ns or analysis.kernel.failed:
        return None
    return _Done(analysis, amount, time_ns, analysis.kernel.counters.get("l2_write_bytes"))


def _work_amount(analysis: Analysis) -> float | None:
    """Return the FLOPs of a kernel, else the sectors that its global accesses request."""
    return analysis.flop_total or analysis.kernel.counters.get("global_ideal_sectors")


def _match(done: _Done, other: _Done) -> Confidence | None:
    """Return how certain it is that a faster kernel of about the same amount does the same work; None if not."""
    if done.analysis.kernel.name == other.analysis.kernel.name:
        return None
    stored, written = done.output_bytes, other.output_bytes
    is_output_same = bool(stored) and bool(written) and _differ(stored or 0.0, written or 0.0) <= _SAME_WITHIN
    if not done.analysis.flop_total:
        return "low" if is_output_same and done.words & other.words else None
    if is_output_same:
        return "medium"
    is_output_like = not stored or not written or _differ(stored, written) <= default_thresholds().most_share
    is_amount_same = _differ(done.amount, other.amount) <= default_thresholds().noise_share
    return "low" if is_output_like and is_amount_same else None


def _differ(value: float, other: float) -> float:
    return abs(value - other) / max(value, other)


def _with_sibling(analysis: Analysis, other: Analysis, confidence: Confidence) -> Analysis:
    """Add the faster kernel as a finding and a move, after the moves that say what to change.

    A kernel that is faster than the proven floor does other work; one that is faster than today's traffic allows moves
    fewer bytes.
    """
    kernel, verdict, time_ns = analysis.kernel, analysis.verdict, other.kernel.duration_ns or 0.0
    times = (kernel.duration_ns or 0.0) / time_ns
    changes = "types" if _main_type(analysis) != _main_type(other) else None
    if changes is None and verdict.limit.over_floor is not None and times > verdict.limit.over_floor:
        if verdict.limit.proven:
            return analysis
        changes = "bytes"
    name = _distinct_name(other.kernel, kernel)
    work = (
        si(analysis.flop_total, "FLOP")
        if analysis.flop_total
        else si((_work_amount(analysis) or 0.0) * SECTOR_BYTES, "B")
    )
    text = f"compare it with `{name}`, which in this report does the same {work} {factor(times)} faster"
    text = f"{text} ({duration(time_ns)})"
    costing = sum(finding.severity != "note" for finding in analysis.findings)
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
    place = next((at for at, each in enumerate(analysis.findings) if each.id == NVIDIA_RULE), costing)
    place = min(place, costing)
    moves = list(verdict.moves)
    if is_advised:
        last = max(
            (at for at, move in enumerate(moves) if move.finding not in {None, NVIDIA_RULE}), default=len(moves) - 1
        )
        moves.insert(last + 1, Move(text, _KIND, SIBLING, gain=gain))
    return replace(
        analysis,
        findings=(*analysis.findings[:place], finding, *analysis.findings[place:]),
        verdict=replace(verdict, moves=tuple(moves)),
    )


def _main_type(analysis: Analysis) -> str:
    return max(analysis.flop, key=analysis.flop.__getitem__, default="")


def _distinct_name(kernel: Kernel, beside: Kernel) -> str:
    """Shorten a kernel's name as far as it still differs from the other's."""
    return kernel.function_name if kernel.function_name != beside.function_name else plain_name(kernel.name)
