"""The parts that the time of a program adds up to: the one place that says where it goes.

Every instant between the first and the last kernel of a GPU belongs to one part, by what runs in it:

1. a kernel that does not wait for other GPUs: kernels, which share an instant evenly where several run;
2. else a graph that was traced as one: graphs;
3. else a kernel that waits for other GPUs: communication;
4. else a copy or a memset: copies;
5. else a graph that was launched, and of which nothing was recorded: unknown, neither busy nor idle;
6. else nothing: idle.

So communication and copies count only where no other work hides them. The time of kernels is parted once more: what
could be won of a row with a known gain, the rest of that row, and rows whose gain nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

if TYPE_CHECKING:
    from rooflens.model.program.idle import Idle, IdleKind
    from rooflens.model.program.kernels import ProgramKernel
    from rooflens.model.program.occupancy import TimelineOccupancy

Subject = Literal["idle", "communication", "copies", "kernels", "graphs", "unknown"]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
"""What the largest part of a program may be."""


class Parts(Struct, frozen=True):
    """Where the time of a program goes: the fields after the first add up to it, to the nanosecond.

    Attributes:
        wall_ns: As in `TimelineOccupancy`.
        faster_ns: Kernels: what could be won of them at most.
        floor_ns: The rest of the kernels of which that is known: at their floor, or as short as a launch.
        open_ns: Kernels of which nobody knows what can be won.
        communication_ns, copies_ns, graphs_ns, unknown_ns: As in `TimelineOccupancy`.
        launching_ns: Idle: launches came one by one, each later than the GPU could take it.
        synchronizing_ns: Idle: the host had waited for the GPU, and could launch only then.
        host_ns: Idle: the host did something else, for longer than a launch takes.
        queued_ns: Idle: the next work was launched already, and nothing says what it waited for.
        idle_unknown_ns: Idle: the trace does not say who launched the next work.
    """

    wall_ns: int = 0
    faster_ns: int = 0
    floor_ns: int = 0
    open_ns: int = 0
    communication_ns: int = 0
    copies_ns: int = 0
    graphs_ns: int = 0
    unknown_ns: int = 0
    launching_ns: int = 0
    synchronizing_ns: int = 0
    host_ns: int = 0
    queued_ns: int = 0
    idle_unknown_ns: int = 0

    @property
    def kernels_ns(self) -> int:
        """Kernels that do not wait for other GPUs."""
        return self.faster_ns + self.floor_ns + self.open_ns

    @property
    def idle_ns(self) -> int:
        """Time in which nothing ran on the GPU."""
        return self.launching_ns + self.synchronizing_ns + self.host_ns + self.queued_ns + self.idle_unknown_ns

    @property
    def idle_by_kind(self) -> Mapping[IdleKind, int]:
        """Idle time by what the host did, most first; kinds without any are left out."""
        times: dict[IdleKind, int] = {
            "launching": self.launching_ns,
            "synchronizing": self.synchronizing_ns,
            "host": self.host_ns,
            "queued": self.queued_ns,
            "unknown": self.idle_unknown_ns,
        }
        return {kind: times[kind] for kind in sorted(times, key=times.__getitem__, reverse=True) if times[kind]}

    @property
    def most_from_kernels_ns(self) -> int:
        """What all kernels together could win at most: all of those of which nobody knows."""
        return self.faster_ns + self.open_ns

    def of(self, subject: Subject) -> int:
        """Return the time of a subject: of kernels what they could win at most."""
        found: int = getattr(self, "most_from_kernels_ns" if subject == "kernels" else f"{subject}_ns")
        return found

    @property
    def ranked(self) -> tuple[Subject, ...]:
        """Subjects that take time, the largest first."""
        return tuple(sorted((one for one in SUBJECTS if self.of(one)), key=self.of, reverse=True))

    @property
    def largest(self) -> Subject | None:
        """What takes most time; None where nothing could be won, as all kernels are at their floor."""
        return next(iter(self.ranked), None)


def parted(occupancy: TimelineOccupancy, kernels: Iterable[ProgramKernel], idle: Iterable[Idle]) -> Parts:
    """Part the time of a program.

    Args:
        occupancy: What ran on its GPUs.
        kernels: All of its kernels.
        idle: The causes of its idle time.
    """
    faster = rest = opened = 0.0
    for one in kernels:
        if one.is_communication:
            continue
        if one.gain_ns is None:
            opened += one.wall_ns or 0.0
            continue
        part = min(1.0, one.gain_ns / one.time_ns) if one.time_ns else 0.0
        faster += (one.wall_ns or 0.0) * part
        rest += (one.wall_ns or 0.0) * (1.0 - part)
    faster_ns, rest_ns, open_ns = _shared(occupancy.kernels_ns, (faster, rest, opened))
    causes = dict.fromkeys(("launching", "synchronizing", "host", "queued"), 0)
    for gaps in idle:
        if gaps.cause.kind in causes:
            causes[gaps.cause.kind] += gaps.gap_ns
    return Parts(
        wall_ns=occupancy.wall_ns,
        faster_ns=faster_ns,
        floor_ns=rest_ns,
        open_ns=open_ns,
        communication_ns=occupancy.communication_ns,
        copies_ns=occupancy.copies_ns,
        graphs_ns=occupancy.graphs_ns,
        unknown_ns=occupancy.unknown_ns,
        launching_ns=causes["launching"],
        synchronizing_ns=causes["synchronizing"],
        host_ns=causes["host"],
        queued_ns=causes["queued"],
        idle_unknown_ns=occupancy.idle_ns - sum(causes.values()),
    )


def summed(parts: Sequence[Parts]) -> Parts:
    """Add up the parts of several programs."""
    return Parts(*(sum(getattr(one, name) for one in parts) for name in Parts.__struct_fields__))


def _shared(whole_ns: int, weights: Sequence[float]) -> list[int]:
    """Part whole nanoseconds by weights, so that they add up: the largest remainders are rounded up."""
    total = sum(weights)
    if not total:
        return [whole_ns, *(0 for _ in weights[1:])][::-1]
    exact = [whole_ns * weight / total for weight in weights]
    found = [int(one) for one in exact]
    order = sorted(range(len(exact)), key=lambda place: found[place] - exact[place])
    left = whole_ns - sum(found)
    for place in order[: max(0, left)]:
        found[place] += 1
        left -= 1
    found[order[0]] += left  # what floating point lost of very long times
    return found
