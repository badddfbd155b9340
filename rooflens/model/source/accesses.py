"""Sketches of accesses to global memory: threads that walk along the rows, and copies past registers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rooflens.format import significant
from rooflens.model.source.banks import SharedArray, shared_arrays, subscripts
from rooflens.model.source.expressions import UnknownError
from rooflens.model.source.names import WARP_THREADS, Definitions, Site, closing
from rooflens.model.source.place import (
    END_OF,
    MOST_LINES,
    MoveLine,
    Sketch,
    loop_around,
    pointed_type,
    pointers_of,
)
from rooflens.model.source.text import Scope, SourceText, Statement, name_of_function

_ACCESS = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\[")
_ASSUMED = 1 << 12
"""What an unknown size is taken for: a row of it is longer than a warp's access."""
_SECTOR_BYTES = 32


def coalesced(place: MoveLine) -> Sketch | None:
    """Swap the roles of `threadIdx.x` and `threadIdx.y`, where that makes fewer sectors of all accesses."""
    kernel, source, function = place.kernel, place.source, place.function
    if kernel.block is None or kernel.block[0] != kernel.block[1] or kernel.block[2] != 1:
        return None
    askers = [
        one
        for one in source.statements
        if function.start < one.start < function.end and re.search(r"\bthreadIdx\s*\.\s*[xy]\b", source.code(one))
    ]
    if not 0 < len(askers) <= MOST_LINES or not all(one.closes in END_OF for one in askers):
        return None
    if _BY_LANES.search(source.clean[function.start : function.end]) or _asks_elsewhere(source, function):
        return None
    site = Site(Definitions(source), kernel, function, _ASSUMED)
    turned = Site(Definitions(source), kernel, function, _ASSUMED, is_turned=True)
    before, after = (_sectors(one, place) for one in (site, turned))
    if not before or after is None or after >= before:
        return None
    first, last = askers[0], askers[-1]
    together = [one for one in source.statements if first.start <= one.start <= last.start]
    if len(together) > MOST_LINES:
        lines = tuple(f"{_swapped(source, one)}  // line {source.line_of(one.start)}" for one in askers)
        changed = first
    else:
        lines = tuple(_swapped(source, one) for one in together)
        changed = Statement(first.start, last.end, last.closes, first.scope)
    note = (
        f"`threadIdx.x` then walks along the rows: a warp's accesses touch {significant(after)} sectors instead of "
        f"{significant(before)}, by their indices"
    )
    return Sketch(lines, note, changed)


_BY_LANES = re.compile(
    r"__(?:shfl|ballot|any|all|match|reduce|syncwarp|activemask)\w*|\bwmma\b|\basm\b|tiled_partition|coalesced_threads"
)
"""What depends on which threads make up a warp."""


def _asks_elsewhere(source: SourceText, function: Scope) -> bool:
    """Return whether a macro or another function that a function calls asks which thread it runs in."""
    body = source.clean[function.start : function.end]
    macros = [name for name, macro in Definitions(source).macros.items() if "threadIdx" in macro.body]
    called = frozenset(re.findall(r"[A-Za-z_]\w*", body))
    end = 0
    for scope in source.scopes:
        if scope.start > end and (name := name_of_function(source.code(scope.head))) is not None:
            end = scope.end
            if scope is not function and name in called and "threadIdx" in source.clean[scope.start : end]:
                return True
    return not called.isdisjoint(macros)


def _swapped(source: SourceText, statement: Statement) -> str:
    """Return a statement on one line, with the two directions of a block swapped."""
    other = {"x": "y", "y": "x"}
    text = " ".join(source.code(statement).split()) + END_OF.get(statement.closes, "")
    return re.sub(r"\bthreadIdx\s*\.\s*([xy])\b", lambda found: f"threadIdx.{other[found[1]]}", text)


def _sectors(site: Site, place: MoveLine) -> float | None:
    """Return the sectors that a warp's accesses of a function touch; None if those of the place are not known."""
    total, known = 0.0, False
    for one in site.source.statements:
        if not site.function.start < one.start < site.function.end or one.closes == "#":
            continue
        for element_bytes, index in _global_accesses(site, one):
            try:
                lanes = site.value(index, one.start + 1).lanes
            except UnknownError:
                if one == place.statement:
                    return None
                continue
            total += len({lane * element_bytes // _SECTOR_BYTES for lane in lanes[:WARP_THREADS]})
            known = known or one == place.statement
    return total if known else None


def _global_accesses(site: Site, statement: Statement) -> Iterator[tuple[int, str]]:
    """Yield size and index of each access of a statement to an array that a parameter points to."""
    code = site.source.code(statement)
    pointed = pointers_of(site.source.code(site.function.head))
    for found in _ACCESS.finditer(code):
        if found[1] in pointed:
            try:
                yield pointed[found[1]], code[found.end() : closing(code, found.end() - 1)]
            except UnknownError:
                continue


def copied_asynchronously(place: MoveLine) -> Sketch | None:
    """Copy an element from global to shared memory past registers."""
    if place.kernel.capability < (8, 0):
        return None
    site = Site(Definitions(place.source), place.kernel, place.function)
    arrays = {one.name: one for one in shared_arrays(site)}
    pattern = r"([A-Za-z_]\w*)\s*(\[.*\])\s*=\s*([A-Za-z_]\w*)\s*(\[.*\])\s*\Z"
    for one in _around_line(place):
        found = re.match(pattern, place.source.code(one), re.DOTALL)
        pointed = pointers_of(place.source.code(place.function.head))
        if found is None or found[1] not in arrays or found[3] not in pointed:
            continue
        if arrays[found[1]].element_bytes not in {4, 8, 16} or len(subscripts(found[4])) != 1:
            continue
        if _element_type(place, arrays[found[1]]) != pointed_type(place.source.code(place.function.head), found[3]):
            continue  # what is converted on the way goes through registers
        target = f"{found[1]}{' '.join(found[2].split())}"
        lines = (
            f"__pipeline_memcpy_async(&{target}, &{found[3]}{' '.join(found[4].split())}, sizeof({target}));",
            "__pipeline_commit();  // into a second buffer, while this one is used",
            "__pipeline_wait_prior(0);  // before the barrier behind which it is read",
        )
        return Sketch(lines, "needs `<cuda_pipeline.h>`, and a second tile to load ahead into", one)
    return None


def _element_type(place: MoveLine, array: SharedArray) -> str:
    words = re.findall(r"[A-Za-z_][\w:]*", place.source.clean[array.statement.start : array.at])
    return next(iter(words[words.index("__shared__") + 1 :]), "")


def _around_line(place: MoveLine) -> Iterator[Statement]:
    """Yield the statement of a place, and those of the loop around it."""
    yield place.statement
    head = loop_around(place)
    if head is not None:
        scope = next((one for one in place.source.scopes if one.head == head), None)
        yield from (one for one in place.source.statements if scope is not None and scope.start < one.start < scope.end)
