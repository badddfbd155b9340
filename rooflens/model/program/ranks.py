"""Join the timelines of several processes: one list of kernels, and the rank that the others wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.program.kernels import OfShape, ProgramKernel, in_order
from rooflens.model.program.program import Program

WAITED_FOR = 0.8
"""A rank that waits for less than this part of the others' waiting is the one they wait for."""

LEAST_SHARE = 0.02
"""Waiting is mentioned from this part of the kernels' time on."""


class Joined(Struct, frozen=True):
    """Kernels of several timelines in one list.

    Attributes:
        kernels: The selected kernels, in order; those with equal name, operator, sizes and types are one row.
        every: All kernels, selected or not.
        time_ns: The sum of all launch times.
        waited_for: The timeline that the others wait for; None if unknown.
        slower: The kernel that loses most time there against the median of the others, with that median; None if none
            does.
    """

    kernels: tuple[ProgramKernel, ...]
    every: tuple[ProgramKernel, ...]
    time_ns: int
    waited_for: Program | None
    slower: tuple[ProgramKernel, float] | None = None


def joined(programs: Sequence[Program]) -> Joined:
    """Join one or more timelines."""
    time_ns = sum(one.time_ns for one in programs)
    if len(programs) == 1:
        return Joined(programs[0].kernels, programs[0].every, time_ns, None)
    kernels, every = (_rows(programs, rows_of, time_ns) for rows_of in (lambda one: one.kernels, lambda one: one.every))
    last = _waited_for(programs)
    return Joined(kernels, every, time_ns, last, None if last is None else _slower(last, programs))


def _rows(
    programs: Sequence[Program], rows_of: Callable[[Program], Sequence[ProgramKernel]], time_ns: int
) -> tuple[ProgramKernel, ...]:
    alike: defaultdict[tuple[str | None, ...], list[ProgramKernel]] = defaultdict(list)
    for program in programs:
        for one in rows_of(program):
            alike[program.gpu, *_key(one)].append(one)
    return in_order([_row(own, time_ns) for own in alike.values()])


def _row(rows: Sequence[ProgramKernel], total_ns: int) -> ProgramKernel:
    """Sum up equal kernels; what has no sum comes from the row with most time."""
    first = max(rows, key=lambda one: one.time_ns)
    time_ns = sum(one.time_ns for one in rows)
    has_floors = all(one.floor_ns is not None for one in rows)
    shapes: defaultdict[tuple[object, object], list[OfShape]] = defaultdict(list)
    for row in rows:
        for shape in row.shapes:
            shapes[shape.grid, shape.block].append(shape)
    return replace(
        first,
        count=sum(one.count for one in rows),
        time_ns=time_ns,
        share=time_ns / total_ns if total_ns else 0.0,
        gap_ns=sum(one.gap_ns for one in rows),
        floor_ns=_sum(one.floor_ns for one in rows) if has_floors else None,
        floor_cold_ns=_sum(one.floor_cold_ns for one in rows) if has_floors else None,
        calls=_sum(one.calls for one in rows) if has_floors else None,
        caches=first.caches if has_floors else None,
        gain_ns=_sum(one.gain_ns for one in rows),
        shapes=tuple(
            OfShape(own[0].grid, own[0].block, sum(one.count for one in own), sum(one.time_ns for one in own))
            for own in shapes.values()
        ),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    """Sum up the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _key(one: ProgramKernel) -> tuple[str | None, ...]:
    return one.name, one.operator, one.shape, one.dtype


def _slower(last: Program, programs: Sequence[Program]) -> tuple[ProgramKernel, float] | None:
    """Find the kernel that loses most time in a timeline against the median of the others that have it."""
    others = [{_key(one): one for one in program.every} for program in programs if program is not last]
    found: list[tuple[float, float, ProgramKernel]] = []
    for one in last.every:
        times = [rows[_key(one)].time_ns for rows in others if _key(one) in rows]
        if times and not one.is_communication:
            usual_ns = median(times)
            found.append((one.time_ns - usual_ns, usual_ns, one))
    if not found:
        return None
    more_ns, usual_ns, one = max(found, key=itemgetter(0))
    return (one, usual_ns) if more_ns > 0 else None


def _waited_for(programs: Sequence[Program]) -> Program | None:
    """Return the rank that arrives last: it waits far less in communication than the others."""
    if len({one.rank for one in programs if one.rank is not None}) < len(programs):
        return None
    waits = sorted((one.communication.time_ns if one.communication else 0, place) for place, one in enumerate(programs))
    (least_ns, place), (next_ns, _) = waits[:2]
    is_worth_a_word = next_ns >= LEAST_SHARE * programs[place].time_ns
    return programs[place] if is_worth_a_word and least_ns < WAITED_FOR * next_ns else None
