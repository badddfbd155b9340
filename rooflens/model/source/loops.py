"""Sketches of loops that the compiler did not unroll."""

from __future__ import annotations

import re

from rooflens.model.source.names import Definitions, Site, closing, loop_parts, rounds
from rooflens.model.source.place import MoveLine, Sketch, body_of, loop_around
from rooflens.model.source.text import SourceText, Statement

_PRAGMA = re.compile(r"#\s*pragma\s+unroll|_Pragma|#\s*pragma\s+GCC\s+unroll")
_BARRIER = re.compile(r"__sync(?:threads|warp)|cooperative_groups|\.sync\s*\(|cuda::barrier|\basm\b")
_UNROLLED_BY_COMPILERS = 32
_UNROLL = 4


def unrolled(place: MoveLine) -> Sketch | None:
    """Unroll the innermost loop around a line that the compiler cannot, or did not, unroll itself."""
    source, head = place.source, loop_around(place)
    if head is None or _has_pragma(source, head):
        return None
    body = body_of(source, head)
    if _BARRIER.search(body) or re.search(r"\b(?:break|return|goto)\b", body):
        return None
    if place.kernel.inside is not None:
        line = source.line_of(head.start)
        loops = [one for one in place.kernel.inside.loops if one.file == place.file and one.line is not None]
        near = [
            one for one in loops if line <= (one.line or 0) <= source.line_of(max(head.end, head.start + len(body)))
        ]
        if any(one.anatomy is not None and (one.anatomy.unroll or 1) > 1 for one in near):
            return None
    site = Site(Definitions(source), place.kernel, place.function)
    trips = sum(1 for _ in rounds(site, [head]))
    is_known = next(iter(rounds(site, [head])), {}) != {}
    if is_known and trips <= _UNROLLED_BY_COMPILERS:
        return None
    first = _first_line(source, head)
    return Sketch((f"#pragma unroll {_UNROLL}", first), "the loads of its trips can then be in flight together", head)


def _has_pragma(source: SourceText, head: Statement) -> bool:
    """Return whether a pragma before a loop says how to unroll it."""
    before = [one for one in source.statements if one.end <= head.start]
    return bool(before) and before[-1].closes == "#" and _PRAGMA.search(source.code(before[-1])) is not None


def _first_line(source: SourceText, head: Statement) -> str:
    code = source.code(head)
    end = closing(code, code.index("("))
    return " ".join(source.text[head.start : head.start + end + 1].split())


def all_unrolled(place: MoveLine) -> Sketch | None:
    """Unroll a loop whose index picks an element of an array of a thread: only then can that be in registers."""
    source, head = place.source, loop_around(place)
    if head is None or _has_pragma(source, head):
        return None
    parts = loop_parts(source.code(head))
    name = re.search(r"\b([A-Za-z_]\w*)\s*=(?!=)", parts[0]) if parts is not None else None
    if name is None:
        return None
    body = body_of(source, head)
    local = _local_arrays(place)
    indexed = [one for one in local if re.search(rf"\b{one}\s*(?:\[[^\]]*\])*\[[^\]]*\b{name[1]}\b", body)]
    site = Site(Definitions(source), place.kernel, place.function)
    if not indexed or next(iter(rounds(site, [head])), {}) == {}:
        return None
    note = f"`{indexed[0]}` can be in registers only where each index is known when it is compiled"
    return Sketch(("#pragma unroll", _first_line(source, head)), note, head)


def _local_arrays(place: MoveLine) -> list[str]:
    source, found = place.source, []
    for one in source.statements:
        code = source.code(one)
        if place.function.start < one.start < place.function.end and "__shared__" not in code:
            declared = re.match(r"(?:const\s+|unsigned\s+)*[A-Za-z_][\w:]*\s+([A-Za-z_]\w*)\s*\[[^\]]+\]", code)
            if declared is not None and not code.startswith("return"):
                found.append(declared[1])
    return found
