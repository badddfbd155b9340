"""The statements of moves that are about no line: the launch and its grid, a thread's place in it, and constants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from rooflens.model.keys import function_of
from rooflens.model.records import Edit, Kernel
from rooflens.model.source.names import divided
from rooflens.model.source.place import edit_of, kernel_place, sets_an_index, sources_naming
from rooflens.model.source.text import SourceText, Statement

_MOST_HOPS = 4
_MOST_LAUNCHES = 8
"""Launches of a kernel that are looked at."""


def launch(kernel: Kernel) -> Edit | None:
    """Return the statement that launches a kernel; None if it is not in sight, or there are several."""
    edits = {edit_of(source, file, one) for file, source, one, _ in _launch_statements(kernel)}
    return edits.pop() if len(edits) == 1 else None


def grid(kernel: Kernel) -> Edit | None:
    """Return the statement that sets the grid of a kernel's launches; None if they are not in sight, or differ."""
    setters = {
        edit_of(source, file, _set_by(source, one, configuration[0]))
        for file, source, one, configuration in _launch_statements(kernel)
        if configuration
    }
    return setters.pop() if len(setters) == 1 else None


def _launch_statements(kernel: Kernel) -> Iterator[tuple[str, SourceText, Statement, list[str]]]:
    """Yield the first statements that launch a kernel, with what stands between `<<<` and `>>>`."""
    name = re.escape(function_of(kernel.function_name))
    pattern = re.compile(rf"\b{name}\s*(?:<[^;{{}}]{{0,200}}?>\s*)?<<<(?P<configuration>[^;]{{0,400}}?)>>>")
    launches = (
        (file, source, one, divided(match["configuration"]))
        for file, source in sources_naming(kernel)
        for one in source.statements
        if one.closes != "#"
        for match in pattern.finditer(source.code(one))
    )
    yield from islice(launches, _MOST_LAUNCHES)


def _set_by(source: SourceText, statement: Statement, value: str) -> Statement:
    """Return the statement that gives a value its size: where it is a variable, that which sets it, and so on."""
    for _ in range(_MOST_HOPS):
        if re.fullmatch(r"[A-Za-z_]\w*", name := value.strip()) is None:
            break
        setting = re.compile(rf"\bdim3\s+(?:[^;=(]{{0,200}},\s*)?{name}\s*\(|(?<![\w.>])\b{name}\s*=(?!=)")
        around = {-1, *source.scopes_around(statement)}
        before = [one for one in source.statements if one.start < statement.start and one.scope in around]
        setters = [(one, match) for one in before if (match := setting.search(source.code(one))) is not None]
        if not setters:
            break
        statement, match = setters[-1]
        rest = source.code(statement)[match.end() :]
        value = rest.rpartition(")")[0] if match[0].endswith("(") else rest
    return statement


def index(kernel: Kernel) -> Edit | None:
    """Return the statement that gives a thread its place in the grid."""
    if (place := kernel_place(kernel)) is None:
        return None
    source, function = place.source, place.function
    inside = (one for one in source.statements if function.start < one.start < function.end)
    return next((place.edit(one) for one in inside if _is_place_in_grid(source.code(one))), None)


def _is_place_in_grid(code: str) -> bool:
    return sets_an_index(code) and "blockIdx" in code and "threadIdx" in code


_CONSTANT_ARRAY = re.compile(r"\b__constant__\b[^=;]*?\b([A-Za-z_]\w*)\s*\[")


def indexed_constant(kernel: Kernel) -> Edit | None:
    """Return the hottest statement of a kernel that reads an array of constants by an index."""
    if (place := kernel_place(kernel)) is None:
        return None
    source, function = place.source, place.function
    declared = (source.code(one) for one in source.statements if one.scope < 0)
    names = [found[1] for code in declared if (found := _CONSTANT_ARRAY.search(code)) is not None]
    read = re.compile(rf"(?<![\w.>])(?:{'|'.join(names)})\s*\[[^\]]*[A-Za-z_]")
    for spot in kernel.hotspots if names else ():
        statement = source.statement_at(spot.line) if spot.file == place.file and spot.line is not None else None
        is_inside = statement is not None and function.start < statement.start < function.end
        if statement is not None and is_inside and read.search(source.code(statement)):
            return place.edit(statement)
    return None
