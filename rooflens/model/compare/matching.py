"""Match the launches of two recordings of a program: by where they were launched, name, shape and order.

Four rounds, each over what the one before left:

1. same NVTX range, same name, same grid and block: the first with the first, the second with the second;
2. same NVTX range and same function, whatever its template arguments and shape: re-tiled;
3. same NVTX range and same function but for its numbers, which compilers of Julia and Triton count up: renamed;
4. same place in the sequence, between the same matched neighbours, where both sides have equally many launches and
   neither has the other's name: renamed.

What is still left has no partner: a fused kernel is not a partner of the three it replaced.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from rooflens.model.keys import function_of, launch_id
from rooflens.model.records import Kernel

_DIGITS = re.compile(r"\d+")

How = Literal["same", "re-tiled", "renamed", "gone", "new"]


class Match(Struct, frozen=True):
    """Positions of a launch in both sequences; None if a side has no partner."""

    base: int | None
    head: int | None
    how: How


def match_launches(base: Sequence[Kernel], head: Sequence[Kernel]) -> tuple[Match, ...]:
    """Match two sequences of launches, in the order of the head; removed launches come last."""
    partner: dict[int, tuple[int, How]] = {}
    rounds: tuple[tuple[Callable[[Kernel], Hashable], How], ...] = (
        (launch_id, "same"),
        (_function, "re-tiled"),
        (_unnumbered, "renamed"),
    )
    for key, how in rounds:
        _by_key(base, head, key, how, partner)
    _by_place(base, head, partner)
    matched = [
        Match(partner[j][0], j, partner[j][1]) if j in partner else Match(None, j, "new") for j in range(len(head))
    ]
    taken = {i for i, _ in partner.values()}
    return (*matched, *(Match(i, None, "gone") for i in range(len(base)) if i not in taken))


def _function(kernel: Kernel) -> Hashable:
    return kernel.nvtx_range, function_of(kernel.name)


def _unnumbered(kernel: Kernel) -> Hashable:
    return kernel.nvtx_range, _DIGITS.sub("0", function_of(kernel.name))


def _by_key(
    base: Sequence[Kernel],
    head: Sequence[Kernel],
    key: Callable[[Kernel], Hashable],
    how: How,
    partner: dict[int, tuple[int, How]],
) -> None:
    taken = {i for i, _ in partner.values()}
    waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for i, kernel in enumerate(base):
        if i not in taken:
            waiting[key(kernel)].append(i)
    for j, kernel in enumerate(head):
        if j not in partner and (candidates := waiting.get(key(kernel))):
            partner[j] = candidates.popleft(), how


def _by_place(base: Sequence[Kernel], head: Sequence[Kernel], partner: dict[int, tuple[int, How]]) -> None:
    """Pair launches after the same matched launch, if both sides have equally many and NVTX ranges agree.

    A kernel that the other side has under the same name was launched more or less often, not renamed.
    """
    mine_named, theirs_named = {kernel.name for kernel in base}, {kernel.name for kernel in head}
    anchors = {i: j for j, (i, _) in partner.items()}
    mine = _gaps(range(len(base)), anchors.get)
    theirs = _gaps(range(len(head)), lambda j: j if j in partner else None)
    for anchor, group in theirs.items():
        others = mine.get(anchor, [])
        if len(others) == len(group):
            for i, j in zip(others, group, strict=True):
                is_known = base[i].name in theirs_named or head[j].name in mine_named
                if base[i].nvtx_range == head[j].nvtx_range and not is_known:
                    partner[j] = i, "renamed"


def _gaps(positions: Iterable[int], anchor_of: Callable[[int], int | None]) -> dict[int, list[int]]:
    """Collect the unmatched positions after each anchor, by the anchor's position in the head; -1 at the start."""
    gaps: defaultdict[int, list[int]] = defaultdict(list)
    last = -1
    for position in positions:
        anchor = anchor_of(position)
        if anchor is None:
            gaps[last].append(position)
        else:
            last = anchor
    return gaps
