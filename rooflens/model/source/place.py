"""The line that a move is about, in its function, and what a rule makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from rooflens.model.keys import function_of
from rooflens.model.records import Edit, Hotspot, Kernel
from rooflens.model.source.banks import type_bytes
from rooflens.model.source.names import loop_parts, parameters_of
from rooflens.model.source.text import Scope, SourceText, Statement, is_c_like

MOST_LINES = 3
FULL_WARP = "0xffffffff"
END_OF = {";": ";", "{": " {"}
"""What ends a statement -> how a line with it goes on."""


class MoveLine(Struct, frozen=True):
    """The line that a move is about.

    Attributes:
        spot: The hot spot there.
        function: The body of the function around it.
    """

    kernel: Kernel
    file: str
    source: SourceText
    spot: Hotspot
    statement: Statement
    function: Scope

    @property
    def code(self) -> str:
        """The statement, comments blanked."""
        return self.source.code(self.statement)

    def edit(self, statement: Statement | None = None) -> Edit:
        """Return a statement, by default that of the line, without a sketch."""
        return edit_of(self.source, self.file, statement or self.statement)


class Sketch(Struct, frozen=True):
    """What a rule makes of a place.

    Attributes:
        statement: The one that changes, where that is not the one of the place.
        after: What it becomes; empty for none.
    """

    after: tuple[str, ...] = ()
    note: str = ""
    statement: Statement | None = None
    ways: tuple[float, float | None] | None = None


@lru_cache(maxsize=64)
def parsed(text: str) -> SourceText:
    """Return a file's text divided into statements."""
    return SourceText(text)


def edit_of(source: SourceText, file: str, statement: Statement) -> Edit:
    """Return a statement without a sketch."""
    first, last = source.line_of(statement.start), source.line_of(max(statement.start, statement.end - 1))
    end = statement.end + (statement.closes in {";", "{"})
    shown = source.text[statement.start : end].splitlines()[:MOST_LINES]
    return Edit(file, first, last, tuple(line.strip() for line in shown))


def sources_naming(kernel: Kernel) -> Iterator[tuple[str, SourceText]]:
    """Yield the C++ files of a kernel that name its function, as far as their text is at hand."""
    name = function_of(kernel.function_name)
    for file, held in kernel.sources.items():
        if held.text is not None and name in held.text and is_c_like(file):
            yield file, parsed(held.text)


def kernel_place(kernel: Kernel) -> MoveLine | None:
    """Return the head of a kernel, where a file of its hot lines defines it."""
    for file, source in sources_naming(kernel):
        if (function := source.kernel(function_of(kernel.function_name))) is not None:
            return MoveLine(kernel, file, source, Hotspot("line", file), function.head, function)
    return None


_INTEGER = r"(?:const|constexpr|unsigned|signed|int|uint|auto|size_t|u?int(?:32|64)_t|long|short)"


def sets_an_index(code: str) -> bool:
    """Return whether a statement declares an integer and sets it."""
    return re.match(rf"(?:{_INTEGER}\s+)+\w+\s*=(?!=)", code) is not None


def loop_around(place: MoveLine) -> Statement | None:
    """Return the head of the innermost loop around a place; None if there is none in its function."""
    source = place.source
    if loop_parts(place.code) is not None:
        return place.statement
    for scope in source.around(place.statement):
        if scope.start <= place.function.start:
            return None
        if loop_parts(source.code(scope.head)) is not None:
            return scope.head
    return None


def body_of(source: SourceText, head: Statement) -> str:
    """Return the text of what a head of a scope is about, comments blanked."""
    scope = next((one for one in source.scopes if one.head == head), None)
    return source.clean[scope.start : scope.end] if scope is not None else source.code(head)


def pointed_type(head: str, name: str) -> str | None:
    """Return the type that a parameter of a function points to; None for one that is no pointer."""
    declared = re.search(rf"([\w:]+)\s*(?:const\s*)?\*\s*(?:(?:const|__restrict__|__restrict)\s*)*{name}\b", head)
    return None if declared is None else declared[1]


def pointers_of(head: str) -> dict[str, int]:
    """Return the pointers among the parameters of a function, with the size of what each points to."""
    found: dict[str, int] = {}
    for name in parameters_of(head):
        if (kind := pointed_type(head, name)) is not None:
            found[name] = type_bytes(kind) or 4
    return found


def unused(place: MoveLine, name: str) -> str:
    """Return a name for a new variable that the function does not use."""
    body = place.source.clean[place.function.start : place.function.end]
    while re.search(rf"\b{name}\b", body):
        name += "_"
    return name


def if_none_returned(place: MoveLine, statement: Statement) -> str:
    """Say what a sketch relies on, where threads of a block may have returned before a statement."""
    before = place.source.clean[place.function.start : statement.start]
    return "; holds where no thread of the block has returned before" if re.search(r"\breturn\b", before) else ""
