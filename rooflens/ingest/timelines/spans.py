"""What was open on the host at some moments of a thread: the innermost event of a kind around each."""

from __future__ import annotations

from array import array
from collections import defaultdict
from heapq import heappop, heappush
from itertools import islice
from operator import le
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflens.model.program.timeline import HostSpan

NONE = -1
"""No event is around a moment."""

_MOST_OPEN = 128
"""Most events that are open at once on a thread; those further inside are left out."""


def opened_at(spans: Iterable[HostSpan], moments: Iterable[int]) -> Iterator[tuple[HostSpan, ...]]:
    """Yield those of some spans that are open at each of some moments; both are in order."""
    coming = iter(spans)
    following = next(coming, None)
    found: list[HostSpan] = []
    for moment in moments:
        while following is not None and following.start_ns <= moment:
            if following.end_ns >= moment:
                if len(found) >= _MOST_OPEN:
                    found = [one for one in found if one.end_ns >= following.start_ns]
                if len(found) < _MOST_OPEN:
                    found.append(following)
            following = next(coming, None)
        if found:
            found = [one for one in found if one.end_ns >= moment]
        yield tuple(found)


def in_order(moments: Sequence[int]) -> Sequence[int]:
    """Return the places of some moments in their order; most are in order already, and a list takes memory."""
    places = range(len(moments))
    return places if _are_ordered(moments) else sorted(places, key=moments.__getitem__)


def ordered(column: array[int], order: Sequence[int]) -> array[int]:
    """Return a column in an order that `in_order` found."""
    return column if isinstance(order, range) else array(column.typecode, map(column.__getitem__, order))


def _are_ordered(moments: Sequence[int]) -> bool:
    return all(map(le, moments, islice(moments, 1, None)))


class Spans:
    """Events of one kind in columns, in the order of the file, some ten bytes each per column.

    Attributes:
        starts, ends: In nanoseconds.
        facts: What each says: an index of whoever filled it.
        by_thread: Indices of the events of each thread.
    """

    def __init__(self) -> None:
        self.starts, self.ends = array("q"), array("q")
        self.facts = array("I")
        self.by_thread: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
        self._in_order: dict[int, Sequence[int]] = {}

    def extend(self, threads: Sequence[int], starts: list[int], ends: list[int], facts: list[int]) -> None:
        """Add the next events."""
        first = len(self.facts)
        if threads and threads.count(threads[0]) == len(threads):
            self.by_thread[threads[0]].extend(range(first, first + len(threads)))
        else:
            for at, thread in enumerate(threads, first):
                self.by_thread[thread].append(at)
        self.starts.fromlist(starts)
        self.ends.fromlist(ends)
        self.facts.fromlist(facts)

    def duration(self, event: int) -> int:
        """Return how long an event took."""
        return self.ends[event] - self.starts[event]

    def in_order(self, thread: int) -> Sequence[int]:
        """Return the events of a thread in the order in which they began; no more may be added then."""
        if thread in self._in_order:
            return self._in_order[thread]
        own, start = self.by_thread.get(thread, ()), self.starts.__getitem__
        is_ordered = _are_ordered(array("q", map(start, own)))
        self._in_order[thread] = own if is_ordered else array("I", sorted(own, key=start))
        return self._in_order[thread]

    def around(self, events: Iterable[int], moments: Sequence[int]) -> Iterator[int]:
        """Yield those of some events, in the order in which they began, that contain one of some ordered moments."""
        starts, ends = self.starts, self.ends
        coming = iter(moments)
        moment = next(coming, None)
        for event in events:
            start = starts[event]
            while moment is not None and moment < start:
                moment = next(coming, None)
            if moment is None:
                return
            if ends[event] >= moment:
                yield event

    def innermost(self, events: Iterable[int], moments: Sequence[int]) -> array[int]:
        """Find the innermost of some events around each moment: the shortest, or the first of equally short ones.

        Each event and each moment is gone through once, however many moments an event contains.

        Args:
            events: In the order in which they began.
            moments: In order.

        Returns:
            An event for each moment, or `NONE`. An event contains the moments of its start and its end.
        """
        starts, ends = self.starts, self.ends
        found = array("q")
        opened: list[tuple[int, int]] = []
        coming = iter(events)
        event = next(coming, NONE)
        for moment in moments:
            while event != NONE and (start := starts[event]) <= moment:
                if (end := ends[event]) >= moment:
                    heappush(opened, (end - start, event))
                event = next(coming, NONE)
            while opened and ends[opened[0][1]] < moment:
                heappop(opened)
            found.append(opened[0][1] if opened else NONE)
        return found
