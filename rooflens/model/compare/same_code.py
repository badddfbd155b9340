"""Kernels that run the same machine code on both sides: what became of them is no work of a change in the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rooflens.format import count, cut_name, plain_name, some
from rooflens.model.records import Analysis

if TYPE_CHECKING:
    from rooflens.model.compare.compare import Change

_COMPARED_NAME_WIDTH = 60
"""Characters of a kernel's name in a sentence."""

LEFT = "clocks, data or noise"
"""What can make a difference where the code is the same."""


def is_same_launch(before: Analysis | None, after: Analysis | None) -> bool | None:
    """Return whether two launches run the same instructions, byte for byte, in as many threads with as much memory.

    None if a side's instructions are unknown. Another grid of the same code is a change that somebody made.
    """
    sides = [side.kernel for side in (before, after) if side is not None]
    digests = [one.inside.code_digest for one in sides if one.inside is not None and one.inside.code_digest]
    if len(digests) != 2:
        return None
    shapes = [(one.grid, one.block, one.counters.get("smem_dynamic_per_block_bytes")) for one in sides]
    return digests[0] == digests[1] and shapes[0] == shapes[1]


def same_code_words(changes: Sequence[Change]) -> Iterator[str]:
    """Say which kernels run the same machine code on both sides, and what then is left to make a difference."""
    both = [change for change in changes if change.base is not None and change.head is not None]
    same = [change for change in both if is_same_launch(change.base, change.head)]
    if not same:
        return
    left = f"what differs there is {LEFT}"
    if len(same) == len(both) == len(changes):
        yield f"all kernels run the same machine code on both sides: {left}"
    else:
        names = some(cut_name(plain_name(change.name), _COMPARED_NAME_WIDTH) for change in same)
        verb = "runs" if len(same) == 1 else "run"
        yield f"{count(len(same), 'kernel')} {verb} the same machine code on both sides ({names}): {left}"
