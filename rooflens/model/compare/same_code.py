"""Kernels that run the same machine code on both sides: what became of them is no work of a change in the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflens.format import count, cut_name, plain_name, some
from rooflens.model.compare.compare import Change

_NAME_WIDTH = 60


def has_same_code(change: Change) -> bool | None:
    """Return whether a kernel's instructions are the same, byte for byte; None if a side's are unknown."""
    sides = [side.kernel.inside for side in (change.base, change.head) if side is not None]
    digests = [inside.code_digest for inside in sides if inside is not None and inside.code_digest]
    return digests[0] == digests[1] if len(digests) == 2 else None


def same_code_words(changes: Sequence[Change]) -> Iterator[str]:
    """Say which kernels run the same machine code on both sides, and what then is left to make a difference."""
    both = [change for change in changes if change.base is not None and change.head is not None]
    same = [change for change in both if has_same_code(change)]
    if not same:
        return
    left = "what differs there is clocks, data or noise"
    if len(same) == len(both) == len(changes):
        yield f"all kernels run the same machine code on both sides: {left}"
    else:
        names = some(cut_name(plain_name(change.name), _NAME_WIDTH) for change in same)
        verb = "runs" if len(same) == 1 else "run"
        yield f"{count(len(same), 'kernel')} {verb} the same machine code on both sides ({names}): {left}"
