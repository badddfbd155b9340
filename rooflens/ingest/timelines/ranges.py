"""Find the NVTX ranges that were open on the host at each launch, in one pass over ranges and launches."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush, merge
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING

from rooflens.ingest.timelines.budget import PATH_CHARACTERS, PATH_LENGTH, RANGE_DEPTH, TimelineBudget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CUT = "…"


Range = tuple[int, int, str]
"""Start, negated end, and name of a range; if ranges begin together, the longest is outermost."""

OUTERMOST_FIRST = itemgetter(0, 1)


class OpenRanges:
    """The open ranges of a thread or process, updated in start order.

    Only the outermost ranges are kept at hand; the others wait in start order, so that a thousand open ranges cost a
    launch no more than a few do.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        """Take ranges sorted by start, the longest first."""
        self._ranges = list(ranges)
        self._next = 0
        self._outer: list[Range] = []
        self._waiting: deque[Range] = deque()
        self._ends: list[tuple[int, int]] = []
        self.changes = 0
        """Counts ranges that began or ended, so it grows with each change."""

    @property
    def all(self) -> Sequence[Range]:
        """All ranges, open or not."""
        return self._ranges

    def go_to(self, time_ns: int) -> None:
        """Open and close ranges up to a time, which must not decrease."""
        ranges, ends = self._ranges, self._ends
        while self._next < len(ranges) and (begun := ranges[self._next])[0] <= time_ns:
            if -begun[1] >= time_ns:  # a range is still open at its end time
                heappush(ends, (-begun[1], self._next))
                (self._outer if len(self._outer) <= RANGE_DEPTH else self._waiting).append(begun)
                self.changes += 1
            self._next += 1
        while ends and ends[0][0] < time_ns:
            self._close(ranges[heappop(ends)[1]], time_ns)
            self.changes += 1

    def open(self) -> list[Range]:
        """Return the open ranges, outermost first, up to one more than are kept; valid until the next `go_to`."""
        return self._outer

    def _close(self, ended: Range, time_ns: int) -> None:
        outer = self._outer
        if outer and outer[-1] == ended:  # as nested ranges do
            outer.pop()
        elif ended in outer:
            outer.remove(ended)
        else:
            return  # it is still waiting, and is dropped when its turn comes
        while self._waiting and len(outer) <= RANGE_DEPTH:
            if -(waiting := self._waiting.popleft())[1] >= time_ns:
                outer.append(waiting)


class Paths:
    """Write each path of ranges once, as long as the budget lasts."""

    def __init__(self, budget: TimelineBudget) -> None:
        self._budget = budget
        self._texts: dict[str, str] = {}

    def of(self, *opened: OpenRanges) -> str | None:
        """Join the names of the open ranges, outermost first, with `/`; None if none is open or the budget is spent."""
        lists = [one.open() for one in opened]
        ranges = lists[0] if len(lists) == 1 else list(merge(*lists, key=OUTERMOST_FIRST))
        if not ranges:
            return None
        text, is_cut = _joined_names(ranges)
        if (known := self._texts.get(text)) is None:
            if not self._budget.has(PATH_CHARACTERS, len(text)):
                self._budget.lost_path_count += 1
                return None
            known = self._texts[text] = text
            self._budget.cut_path_count += is_cut
        return known or None


def _joined_names(ranges: Sequence[Range]) -> tuple[str, bool]:
    """Join the names of the outermost ranges; say whether any was left out."""
    names = [one[2] for one in ranges]
    if len(names) <= RANGE_DEPTH and sum(map(len, names)) <= PATH_LENGTH:
        return "/".join(names), False
    lengths = accumulate(len(name) + 1 for name in names)
    kept = [name for name, length in zip(names[:RANGE_DEPTH], lengths, strict=False) if length <= PATH_LENGTH]
    return "/".join([*kept, _CUT]), True
