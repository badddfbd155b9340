"""Which NVTX ranges were open on the host at each launch: ranges and launches are iterated once, together."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush, merge
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING

from rooflens.ingest.timelines.budget import PATH_CHARACTERS, PATH_LENGTH, RANGE_DEPTH, Budget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CUT = "…"


Range = tuple[int, int, str]
"""When a range began, minus when it ended, and its name: of those that begin together, the longest is outermost."""

OUTERMOST_FIRST = itemgetter(0, 1)


class OpenRanges:
    """The ranges of a thread or process, gone through in the order in which they begin.

    Only the outermost ones are kept at hand: the others wait in the order in which they began, so that a thousand open
    ranges cost a launch no more than a few do.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        """Take ranges in their order: by start, the longest first."""
        self._ranges = list(ranges)
        self._next = 0
        self._outer: list[Range] = []
        self._waiting: deque[Range] = deque()
        self._ends: list[tuple[int, int]] = []
        self.changes = 0
        """Grows with each range that begins or ends."""

    def go_to(self, time_ns: int) -> None:
        """Open and close what begins and ends until a time, which is not before the last."""
        ranges, ends = self._ranges, self._ends
        while self._next < len(ranges) and (begun := ranges[self._next])[0] <= time_ns:
            if -begun[1] >= time_ns:  # it is open at its end, too
                heappush(ends, (-begun[1], self._next))
                (self._outer if len(self._outer) <= RANGE_DEPTH else self._waiting).append(begun)
                self.changes += 1
            self._next += 1
        while ends and ends[0][0] < time_ns:
            self._close(ranges[heappop(ends)[1]], time_ns)
            self.changes += 1

    def open(self) -> list[Range]:
        """Return the open ranges, outermost first, but no more than are kept, and one; good until the next `go_to`."""
        return self._outer

    def _close(self, ended: Range, time_ns: int) -> None:
        outer = self._outer
        if outer and outer[-1] == ended:  # as ranges within each other do
            outer.pop()
        elif ended in outer:
            outer.remove(ended)
        else:
            return  # it waits, and is left out when its turn comes
        while self._waiting and len(outer) <= RANGE_DEPTH:
            if -(waiting := self._waiting.popleft())[1] >= time_ns:
                outer.append(waiting)


class Paths:
    """Writes paths of ranges, each of them once, for as long as the budget lasts."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._texts: dict[str, str] = {}

    def of(self, *opened: OpenRanges) -> str | None:
        """Return the names of the open ranges, outermost first, joined by `/`; None if none is open, or no room."""
        lists = [one.open() for one in opened]
        ranges = lists[0] if len(lists) == 1 else list(merge(*lists, key=OUTERMOST_FIRST))
        if not ranges:
            return None
        text, is_cut = _joined(ranges)
        if (known := self._texts.get(text)) is None:
            if not self._budget.has(PATH_CHARACTERS, len(text)):
                self._budget.lost_path_count += 1
                return None
            known = self._texts[text] = text
            self._budget.cut_path_count += is_cut
        return known or None


def _joined(ranges: Sequence[Range]) -> tuple[str, bool]:
    """Join the names of the outermost ranges, and say whether any was left out."""
    names = [one[2] for one in ranges]
    if len(names) <= RANGE_DEPTH and sum(map(len, names)) <= PATH_LENGTH:
        return "/".join(names), False
    lengths = accumulate(len(name) + 1 for name in names)
    kept = [name for name, length in zip(names[:RANGE_DEPTH], lengths, strict=False) if length <= PATH_LENGTH]
    return "/".join([*kept, _CUT]), True
