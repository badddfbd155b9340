"""The one order of kernels, and what to do first in that order: a move for many kernels is one row.

Kernels stand by the time that is at stake: what the best of their moves wins, else what lies above the nearer of their
floors, else all of it. One of less than a tenth of the time leads no list in which another takes over half. A library's
kernels come after those that the reader can change, unless libraries take nearly all of the time; what fills inputs
comes last, and behind a kernel that could not be profiled where nothing else is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import count
from rooflens.model.records import Analysis, Gain, Move, Role, SharedMove, Verdict, timed
from rooflens.model.summary import KernelSummary, summarize, summed, time_part
from rooflens.model.verdict.collecting import for_all_kernels

ORDER = "by time at stake: best gain, else above the floor; libraries and fills last"
"""The one order of kernels, in the words of legend, help and documentation."""

RANKED_SHOWN = 5
"""Rows of what to do first."""

LIBRARIES_LEAD_FROM = 0.8
"""From this part of the GPU time on libraries are the program, and their kernels stand by their time."""

LITTLE, MOST = 0.1, 0.5
"""A kernel of less than the first part of the GPU time does not lead where another has more than the second."""

RANKED_FROM_SHARE = 0.01
"""Less at stake than this part of the most is not worth a line in a short list."""


_OF_LIBRARIES = frozenset({"library", "copy"})
"""Roles of kernels whose code the reader cannot change."""
_LEAST_ALIKE = 3
"""From so many kernels on whose own moves are the same they are one row that opens."""

_OF_LAUNCHES = frozenset({"short_kernel", "launch_gaps"})
"""Findings whose move is about the launches of a program, and not about the code of a kernel."""


class Tier(IntEnum):
    """What the time at stake of a kernel is made of; those of libraries and fills stand behind all others."""

    GAIN = 0
    LIMIT = 1
    TIME = 2
    LIBRARY = 3
    FILL = 4


def tiers(kernels: Sequence[KernelSummary]) -> list[Tier]:
    """Return the tier that each kernel is ranked in."""
    total_ns = sum(kernel.duration_ns or 0.0 for kernel in kernels)
    of_libraries_ns = sum(kernel.duration_ns or 0.0 for kernel in kernels if kernel.analysis.role in _OF_LIBRARIES)
    leads = of_libraries_ns >= LIBRARIES_LEAD_FROM * total_ns
    found = []
    for kernel in kernels:
        role, verdict = kernel.analysis.role, kernel.analysis.verdict
        if role == "fill":
            found.append(Tier.FILL)
        elif verdict.gain is not None:
            found.append(Tier.GAIN)
        elif role in _OF_LIBRARIES and not leads:
            found.append(Tier.LIBRARY)
        else:
            found.append(Tier.TIME if kernel.winnable_ns is None else Tier.LIMIT)
    return found


def in_rank(kernels: Iterable[KernelSummary]) -> list[KernelSummary]:
    """Order kernels by what to look at first, ties by their time."""
    listed = list(kernels)
    found = tiers(listed)
    order = [
        (max(tier, Tier.TIME), -kernel.at_stake_ns, -(kernel.duration_ns or 0.0))
        for tier, kernel in zip(found, listed, strict=True)
    ]
    places = sorted(range(len(listed)), key=order.__getitem__)
    total_ns = sum(kernel.duration_ns or 0.0 for kernel in listed)
    parts = [(kernel.duration_ns or 0.0) / total_ns if total_ns else 0.0 for kernel in listed]
    if places and parts[places[0]] < LITTLE:
        longest = max(places, key=parts.__getitem__)
        if parts[longest] > MOST and found[longest] != Tier.FILL:
            places.remove(longest)
            places.insert(0, longest)
    return [listed[place] for place in places]


def in_order(kernels: Sequence[KernelSummary]) -> list[KernelSummary]:
    """Put kernels in the one order of tables and the Python API, failed ones last.

    They are first where the others do no more than fill their inputs: then what was to be profiled is among them.
    """
    failed = [kernel for kernel in kernels if kernel.is_failed]
    sound = in_rank(kernel for kernel in kernels if not kernel.is_failed)
    return [*failed, *sound] if failed_lead(kernels) else [*sound, *failed]


def failed_lead(kernels: Sequence[KernelSummary]) -> bool:
    """Return whether all that could be profiled fills the inputs of what could not."""
    is_lost = any(kernel.is_failed and kernel.analysis.role in {"kernel", "library"} for kernel in kernels)
    return is_lost and all(kernel.is_failed or kernel.analysis.role == "fill" for kernel in kernels)


def most_at_stake(analyses: Sequence[Analysis]) -> Analysis | None:
    """Return the launch to look at first: the median one of the first kernel in order; None if there is none."""
    kernels = in_rank(summarize(timed(analyses)))
    return kernels[0].analysis if kernels else next(iter(analyses), None)


def opportunities(kernels: Sequence[KernelSummary], *, opening: bool = False) -> list[KernelSummary]:
    """List what to do, in order: kernels that one move is for as one, which stands for them.

    Where all kernels lack counters their times are all that is known: they stay apart.

    Args:
        kernels: All kernels.
        opening: Rows open: kernels whose own first moves are the same stand in one, too.
    """
    sound = [kernel for kernel in kernels if not kernel.is_failed]
    alike: defaultdict[tuple[str, ...], list[KernelSummary]] = defaultdict(list)
    for kernel in sound:
        about: str = _shared_move(kernel.analysis.verdict, kernel.analysis.role)
        alike[(about, kernel.analysis.kernel.digest, kernel.gpu) if about else (kernel.key,)].append(kernel)
    rows: list[KernelSummary] = []
    for (about, *_), members in alike.items():
        fold = _FOLDS.get(about)
        if fold is None or len(members) < fold.least or (fold.is_partial and len(members) == len(sound)):
            rows += members
        else:
            rows.append(_folded(members, fold.move(members)))
    rows = _rows_by_move(rows) if opening else rows
    return in_order([*rows, *(kernel for kernel in kernels if kernel.is_failed)])


def _rows_by_move(rows: Sequence[KernelSummary]) -> list[KernelSummary]:
    """Merge kernels of a report with the same first move into one row, if they are at least `_LEAST_ALIKE`."""
    alike: defaultdict[tuple[object, ...], list[KernelSummary]] = defaultdict(list)
    for row in rows:
        alike[_move_of_peers(row) or (row.key,)].append(row)
    return [
        one
        for members in alike.values()
        for one in ([_folded(members, _longest_move(members))] if len(members) >= _LEAST_ALIKE else members)
    ]


def _move_of_peers(kernel: KernelSummary) -> tuple[object, ...]:
    """Name what kernels with the same first move share; empty if the kernel has no such peers."""
    verdict = kernel.analysis.verdict
    move = verdict.best
    if kernel.members or move is None or move.kind == "collect":
        return ()
    what = move.finding or move.text.partition(":")[0]
    known = move.gain is not None, bool(verdict.or_bound)
    return kernel.analysis.kernel.digest, kernel.gpu, what, move.kind, *known


def _longest_move(members: Sequence[KernelSummary]) -> Move:
    """Say the move of the longest of them without its numbers, with what it brings to all of them."""
    longest = max(members, key=lambda kernel: kernel.duration_ns or 0.0)
    move = longest.analysis.verdict.best
    if move is None:
        raise ValueError(longest.key)
    total_ns = sum(kernel.duration_ns or 0.0 for kernel in members)
    left_ns = total_ns - sum(kernel.at_stake_ns for kernel in members)
    gain = Gain(total_ns / left_ns, left_ns) if move.gain and 0 < left_ns < total_ns else None
    return replace(move, text=move.text.partition(":")[0], gain=gain, where=())


def worth_a_line(ordered: Iterable[KernelSummary]) -> list[KernelSummary]:
    """Leave out the rows with next to nothing at stake: gains beside other gains, others beside all but fills."""
    rows = list(ordered)
    found = tiers(rows)
    placed = list(zip(rows, found, strict=True))
    most_ns = max((row.at_stake_ns for row, tier in placed if tier != Tier.FILL), default=0.0)
    won_ns = max((row.at_stake_ns for row, tier in placed if tier == Tier.GAIN), default=0.0)
    return [
        row
        for row, tier in placed
        if row.is_failed or row.at_stake_ns >= RANKED_FROM_SHARE * (won_ns if tier == Tier.GAIN else most_ns)
    ]


def _shared_move(verdict: Verdict, role: Role) -> SharedMove:
    """Name the move for the program, and not for this kernel alone, that comes first; empty if there is none."""
    if verdict.gain is not None or not verdict.moves:
        return ""
    move = verdict.moves[0]
    if role == "fill":
        return "fills" if move.shared == "fills" else ""
    if verdict.bound == "overhead" and (move.finding in _OF_LAUNCHES or role in _OF_LIBRARIES):
        return "graph"
    return "collect" if move.shared == "collect" else ""


def _folded(members: Sequence[KernelSummary], move: Move) -> KernelSummary:
    """Make a row of kernels that one move is for; the one with most time gives its name, class and limit."""
    first = max(members, key=lambda kernel: kernel.duration_ns or 0.0)
    analysis = replace(first.analysis, findings=(), verdict=replace(first.analysis.verdict, moves=(move,)))
    median = replace(first.representative, analysis=analysis, short_name=f"{first.shown} and {len(members) - 1} more")
    folded = summed([launch for kernel in members for launch in kernel.launches], 0.0, median)
    return replace(folded, time_share=time_part(members), spread="", members=tuple(members))


def _graph(members: Sequence[KernelSummary]) -> Move:
    launches = count(sum(kernel.launch_count for kernel in members), "launch")
    around = f"put one CUDA graph around {launches} of {len(members)} kernels"
    return Move(f"{around}, or fuse them: each runs about as long as a launch takes", "graph")


def _collect(members: Sequence[KernelSummary]) -> Move:
    """Ask for the counters of all of them, with the command for one that then chooses no kernel."""
    first = members[0].analysis
    command = for_all_kernels(first.verdict.moves[0].command, first.kernel.function_name)
    return Move(f"collect what {len(members)} kernels lack: `{command}`", "collect")


class _Fold(Struct, frozen=True):
    """A move that is for many kernels.

    Attributes:
        least: From so many kernels on they are one row.
        is_partial: Only where there are other kernels, too.
    """

    move: Callable[[Sequence[KernelSummary]], Move]
    least: int
    is_partial: bool = False


_FOLDS = {
    "graph": _Fold(_graph, 2),
    "collect": _Fold(_collect, 3, is_partial=True),
    "fills": _Fold(lambda members: members[0].analysis.verdict.moves[0], 2),
}
