"""The statement that a move changes, and a sketch of what it becomes, with the kernel's own names and sizes.

A rule makes a sketch only where it holds for every program whose text it matches, and where what it relies on was found
in the source. Nothing here is compiled: the sketch says where to begin, and the next profile whether it was right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from rooflens.model.hotspots import caller_of
from rooflens.model.records import Edit, Finding, Hotspot, Kernel, Move
from rooflens.model.source.accesses import coalesced, copied_asynchronously
from rooflens.model.source.expressions import UnknownError
from rooflens.model.source.launch import grid, index, indexed_constant, launch
from rooflens.model.source.layouts import without_conflicts
from rooflens.model.source.loops import all_unrolled, unrolled
from rooflens.model.source.place import MOST_LINES, MoveLine, Sketch, edit_of, kernel_place, parsed
from rooflens.model.source.reductions import added_by_warps, from_large_to_small, last_warp_alone, with_shuffles
from rooflens.model.source.text import is_c_like
from rooflens.model.source.threads import DOUBLE, bounded, single_precision, without_divergence


def with_edits(kernel: Kernel, moves: Sequence[Move], findings: Iterable[Finding], key: str) -> tuple[Move, ...]:
    """Add to moves the statements that they change, as far as the source is known.

    Args:
        kernel: The kernel.
        moves: Its moves.
        findings: Its findings, whose numbers some sketches need.
        key: Key of the launch, for the command that checks a change.
    """
    if not any(source.text for source in kernel.sources.values()):
        return tuple(moves)
    by_id = {finding.id: finding for finding in findings}
    check = f"rooflens compare BEFORE AFTER --kernel {key}"
    made = []
    for move in moves:
        edit = _edit(kernel, move, by_id.get(move.finding or ""))
        made.append(move if edit is None else replace(move, edit=replace(edit, check=check)))
    return tuple(made)


def _edit(kernel: Kernel, move: Move, finding: Finding | None) -> Edit | None:
    if move.finding in _OF_A_KERNEL:
        return _of_kernel(kernel, partial(_OF_A_KERNEL[move.finding], finding=finding))
    if not move.where and move.kind in _WITHOUT_A_PLACE:
        return _WITHOUT_A_PLACE[move.kind](kernel)
    outside: Edit | None = None
    for spot in _spots(kernel, move):
        text = _text_of(kernel, spot.file)
        if text is None or spot.file is None or spot.line is None:
            continue
        if not is_c_like(spot.file):
            return _line_of(spot.file, text, spot.line)
        source = parsed(text)
        statement = source.statement_at(spot.line)
        function = None if statement is None else source.function_at(statement.start)
        if statement is None:
            continue
        if function is None:  # such as the head of the kernel: what a move changes stands in its body
            outside = outside or edit_of(source, spot.file, statement)
            continue
        place = MoveLine(kernel, spot.file, source, spot, statement, function)
        return _sketched(place, move)
    return outside


def _spots(kernel: Kernel, move: Move) -> Iterator[Hotspot]:
    """Yield the places of a move, as lines of the program itself; of double literals, the hottest line with one."""
    if not move.where and move.finding in _OF_LITERALS:
        yield from (spot for spot in kernel.hotspots if spot.by == "line" and DOUBLE.search(spot.text or ""))
        return
    for place in move.where:
        called = caller_of(kernel.inside, place.hotspot)
        if called is not None and _text_of(kernel, called[0]) is not None:
            yield Hotspot("line", *called, measures=place.hotspot.measures)
        yield place.hotspot


def _text_of(kernel: Kernel, file: str | None) -> str | None:
    source = kernel.sources.get(file or "")
    return None if source is None else source.text


def _line_of(file: str, text: str, line: int) -> Edit | None:
    lines = text.splitlines()
    if not 0 < line <= len(lines) or not lines[line - 1].strip():
        return None
    return Edit(file, line, line, (lines[line - 1].strip(),))


def _sketched(place: MoveLine, move: Move) -> Edit:
    rule = _RULES.get(move.finding or "")
    return (_made(rule, place) if rule is not None else None) or place.edit()


def _made(rule: Callable[[MoveLine], Sketch | None], place: MoveLine) -> Edit | None:
    """Return what a rule makes of a place; None if it makes no sketch."""
    try:
        sketch = rule(place)
    except (UnknownError, RecursionError):
        return None
    if sketch is None:
        return None
    before, after = sketch.ways or (None, None)
    return replace(
        place.edit(sketch.statement),
        after=sketch.after[:MOST_LINES],
        note=sketch.note,
        ways_before=before,
        ways_after=after,
    )


def _of_kernel(kernel: Kernel, rule: Callable[[MoveLine], Sketch | None]) -> Edit | None:
    """Return what a rule makes of a kernel as a whole."""
    place = kernel_place(kernel)
    return None if place is None else _made(rule, place)


_OF_LITERALS = frozenset({"slow_fp64", "conversions", "fp64_divisions"})


_OF_A_KERNEL: Mapping[str | None, Callable[..., Sketch | None]] = {"low_occupancy": bounded}


_WITHOUT_A_PLACE: Mapping[str, Callable[[Kernel], Edit | None]] = {
    "blocks": grid,
    "fuse": launch,
    "graph": launch,
    "elements": index,
    "index": indexed_constant,
    "barrier": partial(_of_kernel, rule=last_warp_alone),
    "shuffle": partial(_of_kernel, rule=with_shuffles),
}
"""Kind of a move that names no line -> what finds its statement."""


def _first_of(*rules: Callable[[MoveLine], Sketch | None]) -> Callable[[MoveLine], Sketch | None]:
    """Return a rule that makes what the first of several makes."""
    return lambda place: next((sketch for rule in rules if (sketch := rule(place)) is not None), None)


_RULES: Mapping[str, Callable[[MoveLine], Sketch | None]] = {
    "bank_conflicts": without_conflicts,
    "uncoalesced_global_load": _first_of(coalesced, from_large_to_small),
    "uncoalesced_global_store": _first_of(coalesced, from_large_to_small),
    "stall_barrier": _first_of(last_warp_alone, from_large_to_small),
    "stall_long_scoreboard": unrolled,
    "local_memory": all_unrolled,
    "unoverlapped_loads": copied_asynchronously,
    "contended_atomics": added_by_warps,
    "thread_divergence": without_divergence,
    **dict.fromkeys(_OF_LITERALS, single_precision),
}
"""Finding -> what makes its sketch."""
