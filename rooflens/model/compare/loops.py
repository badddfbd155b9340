"""Loops of a kernel on both sides, matched by lines and nesting, else by what they do: how their parts changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from rooflens.model.compare.compare import Change
from rooflens.model.compare.same_code import is_same_launch
from rooflens.model.records import Analysis, JudgedLoop
from rooflens.model.verdict.thresholds import default_thresholds

MOST_LOOPS = 3
"""Loops that a comparison names."""


class LoopChange(Struct, frozen=True):
    """A loop whose part of warps' time changed.

    Attributes:
        base, head: The loop before and after; None if it is on one side only.
        before, after: Its own part of warps' time, 0 to 1; 0 where it is not there.
    """

    base: JudgedLoop | None
    head: JudgedLoop | None
    before: float
    after: float

    @property
    def shown(self) -> JudgedLoop | None:
        """The loop on the head side, or on the base side if it is gone."""
        return self.head or self.base


def changed_loops(change: Change) -> tuple[LoopChange, ...]:
    """Find loops whose part of warps' time changed, most changed first.

    Empty if a side was not looked into, or if nothing of the code changed.
    """
    base, head = change.base, change.head
    if base is None or head is None or not base.loops or not head.loops or is_same_launch(base, head):
        return ()
    pairs = [LoopChange(one, other, _self_share(one), _self_share(other)) for one, other in _matched(base, head)]
    changed = [pair for pair in pairs if abs(pair.after - pair.before) >= default_thresholds().negligible_share]
    return tuple(sorted(changed, key=lambda pair: -abs(pair.after - pair.before))[:MOST_LOOPS])


def _self_share(loop: JudgedLoop | None) -> float:
    return (loop.share_self or 0.0) if loop is not None else 0.0


def _matched(base: Analysis, head: Analysis) -> Iterator[tuple[JudgedLoop | None, JudgedLoop | None]]:
    """Yield loops with their counterparts: those of the same line and nesting, then those that do the same."""
    left = [one for one in base.loops if one.loop.kind == "loop"]
    right = [one for one in head.loops if one.loop.kind == "loop"]
    for by_line in (True, False):
        known: defaultdict[Hashable, list[JudgedLoop]] = defaultdict(list)
        for one in left:
            if (key := _loop_key(one, base, by_line=by_line)) is not None:
                known[key].append(one)
        for other in list(right):
            key = _loop_key(other, head, by_line=by_line)
            if key is not None and known[key]:
                one = known[key].pop(0)
                left.remove(one)
                right.remove(other)
                yield one, other
    yield from ((one, None) for one in left)
    yield from ((None, other) for other in right)


def _loop_key(loop: JudgedLoop, side: Analysis, *, by_line: bool) -> Hashable | None:
    """Return the key that loops of both sides are matched by; None if the loop has no source line."""
    parents = {other.loop.id: other.loop.parent for other in side.loops}
    around, depth = loop.loop.parent, 0
    while around is not None:
        around, depth = parents.get(around), depth + 1
    if not by_line:
        return loop.job, depth
    if loop.loop.file is None or loop.loop.line is None:
        return None
    return PurePosixPath(loop.loop.file.replace("\\", "/")).name, loop.loop.line, depth
