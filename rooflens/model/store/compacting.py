"""Compact a store: many small parts become few large ones, packed harder; what is damaged goes only when asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.model.store.merging import Piece, merge
from rooflens.model.store.parts import COMPACT_LEVEL, PART_BYTES
from rooflens.model.store.verdicts import merge_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rooflens.errors import InputError
    from rooflens.model.store.index import Part
    from rooflens.model.store.store import Store


class Compacted(Struct, frozen=True):
    """What became of a store.

    Attributes:
        parts_before: Parts it had; `parts` are those it has.
        bytes_before: Bytes of their files, verdicts left out; `byte_count` are those of the new ones.
        damaged: Parts that could not be read, by key: dropped where that was asked for, else as they were.
    """

    parts_before: int
    parts: int
    bytes_before: int
    byte_count: int
    damaged: Mapping[str, InputError]


def compact(store: Store, *, drop_damaged: bool = False, on_part: Callable[[], None] = lambda: None) -> Compacted:
    """Merge the parts of a store until each has `PART_BYTES` or more; each merge is committed as it is done.

    Args:
        store: The store; it is locked meanwhile.
        drop_damaged: Remove the parts that cannot be read, with what was in them.
        on_part: Called with each part that was merged into another.

    Raises:
        InputError: It cannot be written.
    """
    with store.writing():
        before = _bytes(store.index().parts.values())
        parts_before = len(store.index().parts) + len(store.index().unreadable)
        damaged = store.damage()
        whole = [part for key, part in store.index().parts.items() if key not in damaged]
        healed = {run.source for part in whole for run in part.runs.values()}
        for group in _groups(whole):
            index = store.index()
            pieces = [Piece(part, frozenset(index.digests_of(part))) for part in group]
            merged = merge(store.place, pieces, level=COMPACT_LEVEL, healed=healed)
            keys = [part.key for part in group]
            if all(len(piece.digests) == len(piece.part.runs) for piece in pieces):
                merge_verdicts(store.place, keys, merged.key)
            store.replace(keys, merged, is_compact=True)
            for _ in group:
                on_part()
        if drop_damaged:
            store.drop(damaged)
        parts = store.index().parts
        return Compacted(
            parts_before, len(parts) + len(store.index().unreadable), before, _bytes(parts.values()), damaged
        )


def _groups(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Group parts to merge, in their order; a large one that is compact already is left out."""
    group: list[Part] = []
    for part in parts:
        if part.commit.is_compact and _bytes([part]) >= PART_BYTES:
            continue
        group.append(part)
        if _bytes(group) >= PART_BYTES:
            yield group
            group = []
    if len(group) > 1 or any(not part.commit.is_compact for part in group):
        yield group


def _bytes(parts: Iterable[Part]) -> int:
    return sum(file.byte_count for part in parts for _, _, file in part.commit.all_files())
