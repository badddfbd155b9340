"""Copies and memsets of a program, by direction and kind of memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from rooflens.model.program.timeline import BusyEvent

_PAGEABLE = "Pageable"


class Copies(Struct, frozen=True):
    """All copies of one kind.

    Attributes:
        name: What was copied where, as PyTorch's profiler writes it, `Memcpy HtoD (Pageable -> Device)`; None where the
            timeline does not say.
        count: How many.
        time_ns: Their time; that of those which overlap counts in full.
        moved_bytes: What they moved; None if the timeline does not say that of each.
    """

    name: str | None
    count: int
    time_ns: int
    moved_bytes: int | None

    @property
    def bandwidth_bytes_per_s(self) -> float | None:
        """What they moved over their time; None if either is unknown."""
        return self.moved_bytes / self.time_ns * 1e9 if self.moved_bytes is not None and self.time_ns else None

    @property
    def is_pageable(self) -> bool:
        """Whether host memory is pageable, so that a copy goes through a buffer and blocks the host."""
        return _PAGEABLE in (self.name or "")


def copies_of(events: Iterable[BusyEvent]) -> tuple[Copies, ...]:
    """Sum up copies and memsets by their kind, most time first."""
    found: defaultdict[str | None, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for event in events:
        if event.kind in {"copy", "memset"}:
            sums = found[event.name]
            sums[0] += 1
            sums[1] += event.duration_ns
            if event.moved_bytes is not None:
                sums[2] += event.moved_bytes
                sums[3] += 1
    return added(
        Copies(name, count, time_ns, moved if known == count else None)
        for name, (count, time_ns, moved, known) in found.items()
    )


def added(copies: Iterable[Copies]) -> tuple[Copies, ...]:
    """Add up copies of the same kind, as of several programs; most time first."""
    alike: defaultdict[str | None, list[Copies]] = defaultdict(list)
    for one in copies:
        alike[one.name].append(one)
    summed = [
        Copies(
            name,
            sum(one.count for one in own),
            sum(one.time_ns for one in own),
            None if any(one.moved_bytes is None for one in own) else sum(one.moved_bytes or 0 for one in own),
        )
        for name, own in alike.items()
    ]
    return tuple(sorted(summed, key=lambda one: (-one.time_ns, one.name or "")))
