"""Join the timelines of several processes: one list of kernels, and the rank that the others wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter
from statistics import median

from msgspec import Struct

from rooflens.model.program.kernels import ProgramKernel, in_order, summed
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
    return in_order([summed(own, time_ns) for own in alike.values()])


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
