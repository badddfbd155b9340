"""Arrays in shared memory laid out without bank conflicts: sketches of what a replay shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import prod

from rooflens.model.records import Hotspot
from rooflens.model.source.banks import Remedy, Replay, SharedArray, find_remedy, subscripts
from rooflens.model.source.expressions import UnknownError
from rooflens.model.source.names import closing
from rooflens.model.source.place import END_OF, MOST_LINES, MoveLine, Sketch
from rooflens.model.source.text import Statement

_SAME_WAYS = 0.02
"""Ways replayed and counted are the same up to this share: samples of addresses are exact."""


def without_conflicts(place: MoveLine) -> Sketch | None:
    """Lay an array out without bank conflicts, where the replay of today's addresses equals what was counted."""
    counted = counted_ways(place.spot)
    replay = Replay(place.source, place.kernel, place.function)
    before = replay.at(place.statement)
    if counted is None or abs(before.ways - counted) > _SAME_WAYS * counted:
        return None
    remedy = find_remedy(replay, place.statement, before)
    if remedy is None:
        return Sketch(ways=(before.ways, None))
    return _laid_out(place, remedy, replay)


def counted_ways(spot: Hotspot) -> float | None:
    """Return the passes of a line's shared-memory accesses for each that their bytes need; None if not counted."""
    taken = spot.measures.get("shared_wavefronts")
    ideal = (taken or 0.0) - spot.measures.get("shared_excess_wavefronts", 0.0)
    return taken / ideal if taken and ideal > 0 else None


def _laid_out(place: MoveLine, remedy: Remedy, replay: Replay) -> Sketch:
    array, layout = remedy.array, remedy.layout
    ways = remedy.before.ways, remedy.after.ways
    if layout.is_transposed:
        return Sketch(_transposed(place, remedy, replay), "columns become rows, in as much shared memory", ways=ways)
    if layout.pad:
        more = layout.pad * array.element_bytes * prod(size or 1 for size in array.sizes[:-1])
        note = f"{more:,} more bytes of shared memory a block"
        return Sketch((_padded(place, remedy),), note, array.statement, ways)
    if layout.skip:
        size = f"a {layout.skip}th more elements" if array.sizes[0] is not None else "a 32nd more bytes at the launch"
        macro, note = f"SPREAD(i) ((i) + (i) / {layout.skip})", f"{size} for `{array.name}`"
    else:
        number = f"(i) / 32 % {layout.groups}" + (f" * {layout.vector}" if layout.vector > 1 else "")
        unit = f"; {layout.vector} elements that are moved at once stay side by side" if layout.vector > 1 else ""
        macro, note = f"SWIZZLED(i) ((i) ^ ({number}))", f"takes no more shared memory{unit}"
    name = macro.partition("(")[0]
    changed = _with_indices(place, place.statement, array, lambda of: [*of[:-1], f"{name}({of[-1].strip()})"])
    return Sketch((f"#define {macro}", f"{changed}  // so at every access to `{array.name}`"), note, ways=ways)


def _padded(place: MoveLine, remedy: Remedy) -> str:
    """Return the declaration of an array with a longer last dimension."""
    lead, sizes = _declared(place, remedy.array)
    last = sizes[-1]
    grown = f"{last} + {remedy.layout.pad}" if re.fullmatch(r"[\w\s*+()]+", last) else f"({last}) + {remedy.layout.pad}"
    return f"{lead}{_subscripts_of([*sizes[:-1], grown])};"


def _transposed(place: MoveLine, remedy: Remedy, replay: Replay) -> tuple[str, ...]:
    """Return the statements of an array with the last two indices swapped, and its declaration where that changes."""
    array, source = remedy.array, place.source
    lines = [_with_indices(place, place.statement, array, _swapped_last)]
    if array.sizes[-2] != array.sizes[-1]:
        lead, sizes = _declared(place, array)
        lines.insert(0, f"{lead}{_subscripts_of(_swapped_last(sizes))};")
    others = [one for one in replay.users(array) if one != place.statement]
    if len(lines) + len(others) > MOST_LINES:
        return (*lines, f"// and so at every other access to `{array.name}`")
    changed = (f"{source.line_of(one.start)}: {_with_indices(place, one, array, _swapped_last)}" for one in others)
    return (*lines, *(f"// and at line {one}" for one in changed))


def _swapped_last(parts: Sequence[str]) -> list[str]:
    return [*parts[:-2], parts[-1], parts[-2]]


def _with_indices(
    place: MoveLine, statement: Statement, array: SharedArray, change: Callable[[Sequence[str]], Sequence[str]]
) -> str:
    """Return a statement on one line, with other indices at its accesses to an array.

    Raises:
        UnknownError: It has an access within another, or none that is written out.
    """
    code, pieces, at = place.source.code(statement), list[str](), 0
    for found in re.finditer(rf"(?<![\w.>]){re.escape(array.name)}\s*(?=\[)", code):
        indices = subscripts(code[found.end() :])
        if len(indices) != len(array.sizes) or found.start() < at:
            raise UnknownError
        pieces += [code[at : found.end()], _subscripts_of(change(indices))]
        at = found.end()
        for _ in indices:
            at = closing(code, code.index("[", at)) + 1
    if not pieces:
        raise UnknownError
    return " ".join("".join([*pieces, code[at:]]).split()) + END_OF.get(statement.closes, "")


def _subscripts_of(parts: Iterable[str]) -> str:
    return "".join(f"[{' '.join(one.split())}]" for one in parts)


def _declared(place: MoveLine, array: SharedArray) -> tuple[str, list[str]]:
    """Return what stands before the dimensions of an array where it is declared alone, and these."""
    lead = place.source.text[array.statement.start : array.at]
    begin = lead if "," not in lead else f"{lead.partition(',')[0].rsplit(None, 1)[0]} {array.name}"
    sizes = subscripts(place.source.clean[array.at : array.statement.end])
    return " ".join(begin.split()), [one.strip() for one in sizes]
