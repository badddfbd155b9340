"""Join the timelines of several processes: their kernels in one list, the ranks side by side, and the last with why.

Clocks of two machines cannot be compared, but no rank leaves a collective before all have come. So ranks are aligned by
the ends of their collectives: how long a collective takes on a rank is how early the rank came. Of two ranks that take
400 and 20 us for the same one, the second came 380 us later, and the first waited as long.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.program import copies as all_copies
from rooflens.model.program import idle as all_idle
from rooflens.model.program import parts as all_parts
from rooflens.model.program.communication import CollectiveLaunches, Collectives, collectives_of
from rooflens.model.program.copies import Copies
from rooflens.model.program.idle import Idle, IdleCause
from rooflens.model.program.kernels import ProgramKernel, in_order, summed
from rooflens.model.program.parts import Parts, Subject
from rooflens.model.program.program import Program

LEAST_SHARE = 0.02
"""Waiting is mentioned from this part of the kernels' time on."""

LATER = 1.5
"""A rank that comes late by so many times as much as the median of the others is the one they wait for."""

WAITED_FOR = 0.8
"""Without collectives to compare: a rank that communicates for less than this part of the others' time came last."""

Reason = Literal["kernels", "host"]


class Rank(Struct, frozen=True):
    """One process beside the others.

    Attributes:
        program: Its timeline.
        kernels_ns: Time of its kernels that do not communicate.
        compared: Collectives of it that were set beside those of other ranks; 0 where no counts agree.
        waits_ns: How long it waited in them for the last rank; None without any.
        late_ns: How much later than the median of the others it came to them; None without any.
    """

    program: Program
    kernels_ns: int
    compared: int
    waits_ns: int | None
    late_ns: int | None

    @property
    def exposed_ns(self) -> int | None:
        """Time in which only communication ran; None without any."""
        return None if self.program.communication is None else self.program.communication.exposed_ns

    @property
    def hidden_ns(self) -> int | None:
        """The rest of the time of communication; None without any."""
        return None if self.program.communication is None else self.program.communication.hidden_ns


class Late(Struct, frozen=True):
    """The rank that the others wait for.

    Attributes:
        rank: The rank.
        reason: What came longer on it than on the others before the collectives to which it came late: the work of its
            GPU, or a GPU without work because the host was late; None where its timeline does not show it.
        more_ns: How much longer.
        slower: The kernel that loses most time there; None where none does, or the host was late.
        usual_ns: The median of what that kernel takes on the others.
        idle: What the GPU waited for longest there, beyond the median of the others, where the host was late.
        first_ns: How much of its lateness is at the first collectives, to which ranks also come late whose recording
            began late.
    """

    rank: Rank
    reason: Reason | None = None
    more_ns: float = 0.0
    slower: ProgramKernel | None = None
    usual_ns: float | None = None
    idle: IdleCause | None = None
    first_ns: int = 0

    @property
    def kernel(self) -> str | None:
        """The kernel that loses most time on the late rank."""
        return None if self.slower is None else self.slower.name

    @property
    def operator(self) -> str | None:
        """The operator of that kernel, or what the host was in."""
        found = self.slower or self.idle
        return None if found is None else found.operator

    @property
    def time_ns(self) -> int | None:
        """That kernel's time on the late rank."""
        return None if self.slower is None else self.slower.time_ns


class Joined(Struct, frozen=True):
    """One or more timelines as one: several are ranks or runs of one program.

    Attributes:
        programs: The timelines.
        kernels: The selected kernels, in order; those with equal name, operator, sizes and types are one row.
        every: All kernels, selected or not.
        time_ns: The sum of all launch times.
        parts: Where their time goes; all of them are 0 where no times were recorded.
        idle, copies: As of a program.
        collectives: What is sent by all, most exposed first.
        graph_hint: As of the first program that has one.
        ranks: The processes side by side, by rank; empty where the timelines do not say which is which.
        waited_for: The rank that the others wait for; None if unknown, or none.
    """

    programs: tuple[Program, ...]
    kernels: tuple[ProgramKernel, ...]
    every: tuple[ProgramKernel, ...]
    time_ns: int
    parts: Parts
    idle: tuple[Idle, ...]
    copies: tuple[Copies, ...]
    collectives: tuple[CollectiveLaunches, ...]
    graph_hint: str | None = None
    ranks: tuple[Rank, ...] = ()
    waited_for: Late | None = None

    @property
    def whole_ns(self) -> int:
        """What shares are of, as of a program."""
        return self.parts.wall_ns or self.time_ns

    def share(self, subject: Subject) -> float:
        """Return the part of the time that a subject takes."""
        return self.parts.of(subject) / self.parts.wall_ns if self.parts.wall_ns else 0.0


def joined(programs: Sequence[Program]) -> Joined:
    """Join one or more timelines."""
    kernels, every = (_rows_of_ranks(programs, rows_of) for rows_of in (lambda one: one.kernels, lambda one: one.every))
    parts = all_parts.summed([one.parts for one in programs])
    ranks, late = _side_by_side(programs) if len(programs) > 1 else ((), None)
    return Joined(
        programs=tuple(programs),
        kernels=kernels,
        every=every,
        time_ns=sum(one.time_ns for one in programs),
        parts=parts,
        idle=all_idle.added((cause for one in programs for cause in one.idle), parts.wall_ns),
        copies=all_copies.added(kind for one in programs for kind in one.copies),
        collectives=collectives_of(one.communication for one in programs),
        graph_hint=next((one.graph_hint for one in programs if one.graph_hint), None),
        ranks=ranks,
        waited_for=late,
    )


def _rows_of_ranks(
    programs: Sequence[Program], rows_of: Callable[[Program], Sequence[ProgramKernel]]
) -> tuple[ProgramKernel, ...]:
    if len(programs) == 1:
        return tuple(rows_of(programs[0]))
    alike: defaultdict[tuple[str | None, ...], list[ProgramKernel]] = defaultdict(list)
    whole_ns = sum(program.whole_ns for program in programs) or 1
    for program in programs:
        part = program.whole_ns / whole_ns
        for one in rows_of(program):
            shared = one if one.share is None else replace(one, share=one.share * part)
            alike[program.gpu, *one.identity].append(shared)
    return in_order([summed(own) for own in alike.values()])


class _RankComparison:
    """How late a rank comes to each collective, against the other ranks."""

    def __init__(self) -> None:
        self.compared = self.waits_ns = self.late_ns = self.first_ns = 0
        self.more_idle_ns = self.more_work_ns = 0.0


def _side_by_side(programs: Sequence[Program]) -> tuple[tuple[Rank, ...], Late | None]:
    """Set the ranks of one program side by side, and find the one that the others wait for."""
    if len({one.rank for one in programs if one.rank is not None}) < len(programs):
        return (), None
    beside = [_RankComparison() for _ in programs]
    for places, sequences in _shared_sequences(programs):
        _compare([beside[place] for place in places], sequences)
    ranks = [_rank(one, found) for one, found in zip(programs, beside, strict=True)]
    late = _latest(ranks, beside) if any(one.compared for one in beside) else _least_communicating(ranks)
    if late is not None:
        late = _with_idle(late, programs) if late.reason == "host" else _with_kernel(late, programs)
    return tuple(sorted(ranks, key=lambda one: one.program.rank or 0)), late


def _rank(program: Program, comparison: _RankComparison) -> Rank:
    return Rank(
        program=program,
        kernels_ns=sum(one.time_ns for one in program.every if not one.is_communication),
        compared=comparison.compared,
        waits_ns=comparison.waits_ns if comparison.compared else None,
        late_ns=comparison.late_ns if comparison.compared else None,
    )


def _shared_sequences(programs: Sequence[Program]) -> Iterator[tuple[list[int], list[Collectives]]]:
    """Yield the sequences of each group that several ranks have alike, with the places of these ranks.

    Of a group whose ranks do not agree, the largest part that does is compared.
    """
    groups: defaultdict[object, defaultdict[tuple[str, ...], list[tuple[int, Collectives]]]]
    groups = defaultdict(lambda: defaultdict(list))
    for place, program in enumerate(programs):
        for sequence in program.communication.sequences if program.communication else ():
            groups[sequence.group][sequence.names].append((place, sequence))
    for found in groups.values():
        most = max(found.values(), key=len)
        if len(most) > 1:
            yield [place for place, _ in most], [sequence for _, sequence in most]


def _compare(comparisons: Sequence[_RankComparison], sequences: Sequence[Collectives]) -> None:
    """Add what the collectives of one group tell of its ranks."""
    for at in range(len(sequences[0].names)):
        times_ns = [one.durations_ns[at] for one in sequences]
        ordered = sorted(times_ns)
        idle_ns = sorted(one.idle_ns[at] for one in sequences)
        worked_ns = sorted(one.worked_ns[at] for one in sequences)
        for own, sequence, time_ns in zip(comparisons, sequences, times_ns, strict=True):
            own.compared += 1
            own.waits_ns += time_ns - ordered[0]
            late_ns = round(_median_of_others(ordered, time_ns) - time_ns)
            if late_ns > 0:
                own.late_ns += late_ns
                own.first_ns += 0 if at else late_ns
                own.more_idle_ns += sequence.idle_ns[at] - _median_of_others(idle_ns, sequence.idle_ns[at])
                own.more_work_ns += sequence.worked_ns[at] - _median_of_others(worked_ns, sequence.worked_ns[at])


def _median_of_others(ordered: Sequence[int], value: int) -> float:
    """Return the median of sorted values without one of them."""
    at = bisect_left(ordered, value)
    return median([*ordered[:at], *ordered[at + 1 :]])


def _latest(ranks: Sequence[Rank], beside: Sequence[_RankComparison]) -> Late | None:
    """Return the rank that comes latest to the collectives, if it comes far later than the others."""
    times_ns = [one.late_ns or 0 for one in ranks]
    place = max(range(len(ranks)), key=times_ns.__getitem__)
    late_ns, one, found = times_ns[place], ranks[place], beside[place]
    if late_ns < LEAST_SHARE * one.program.time_ns or late_ns < LATER * _median_of_others(sorted(times_ns), late_ns):
        return None
    more_ns = max(found.more_idle_ns, found.more_work_ns)
    reason: Reason | None = None
    if more_ns > 0:
        reason = "host" if found.more_idle_ns > found.more_work_ns else "kernels"
    return Late(one, reason, max(0.0, more_ns), first_ns=found.first_ns)


def _least_communicating(ranks: Sequence[Rank]) -> Late | None:
    """Return the rank that communicates far less than all others, where no collectives can be compared."""
    times_ns = [one.program.communication.time_ns if one.program.communication else 0 for one in ranks]
    order = sorted(range(len(ranks)), key=times_ns.__getitem__)
    least_ns, next_ns = times_ns[order[0]], times_ns[order[1]]
    one = ranks[order[0]]
    is_worth_a_word = next_ns >= LEAST_SHARE * one.program.time_ns
    return Late(one) if is_worth_a_word and least_ns < WAITED_FOR * next_ns else None


def _with_kernel(late: Late, programs: Sequence[Program]) -> Late:
    """Add the kernel that loses most time on the late rank against the median of the others; one that lacks takes 0."""
    last = late.rank.program
    others = [{one.identity: one.time_ns for one in program.every} for program in programs if program is not last]
    found: list[tuple[float, float, ProgramKernel]] = []
    for one in last.every:
        if not one.is_communication:
            usual_ns = float(median(times.get(one.identity, 0) for times in others))
            found.append((one.time_ns - usual_ns, usual_ns, one))
    more_ns, usual_ns, kernel = max(found, key=itemgetter(0), default=(0.0, 0.0, None))
    return replace(late, slower=kernel, usual_ns=usual_ns) if more_ns > 0 else late


def _with_idle(late: Late, programs: Sequence[Program]) -> Late:
    """Add the cause of idle time that takes most on the late rank beyond the median of the others."""
    last = late.rank.program
    others = [{_cause_key(one): one.gap_ns for one in program.idle} for program in programs if program is not last]
    found = [(one.gap_ns - median(times.get(_cause_key(one), 0) for times in others), one.cause) for one in last.idle]
    more_ns, idle = max(found, key=itemgetter(0), default=(0.0, None))
    return replace(late, idle=idle) if more_ns > 0 else late


def _cause_key(idle: Idle) -> tuple[str | None, ...]:
    return idle.cause.kind, idle.cause.operator, idle.cause.call
