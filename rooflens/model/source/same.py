"""Whether a file is the one that a kernel was compiled from: by its size, and what stands on its lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rooflens.model.keys import function_of
from rooflens.model.records import Kernel, SourceFile
from rooflens.model.source.text import SourceText, is_c_like, name_of_function

_NAMED_LINES = 3


def compiled_as(data: bytes, compiled: SourceFile) -> bool | None:
    """Return whether data may be those that were compiled, by their size; None if the report does not say it.

    Line ends may have changed on the way: a checkout on another system changes all of them.
    """
    if compiled.compiled_bytes is None:
        return None
    plain = data.replace(b"\r\n", b"\n")
    forms = (data, plain, plain.replace(b"\n", b"\r\n"))
    return any(len(form) == compiled.compiled_bytes for form in forms)


class Difference(NamedTuple):
    """How a file differs from the one that was compiled.

    Attributes:
        words: What shows it; empty if nothing does.
        moves_lines: Its lines are known to be others.
    """

    words: str = ""
    moves_lines: bool = False


def difference(kernel: Kernel, file: str, compiled: SourceFile, data: bytes, text: str) -> Difference:
    """Say what shows that a file is not the one that was compiled.

    Args:
        kernel: The kernel, whose instructions name lines of the file.
        file: Its name in the line table.
        compiled: What the report says of it.
        data: The bytes of the file found.
        text: The same as text.
    """
    is_same = compiled_as(data, compiled)
    if is_same:
        return Difference()
    if words := _other_lines(kernel, file, text):
        return Difference(words, moves_lines=True)
    if is_same is None:
        return Difference()
    return Difference(f"it has {len(data):,} bytes, the one compiled had {compiled.compiled_bytes:,}")


def _other_lines(kernel: Kernel, file: str, text: str) -> str:
    """Say why a file's lines cannot be those of a kernel's instructions; empty if they can."""
    lines = sorted(lines_of(kernel, file))
    amount = len(text.splitlines())
    if lines and lines[-1] > amount:
        return f"it has {amount:,} lines, and instructions are of line {lines[-1]:,}"
    source = SourceText(text)
    has_code = source.has_code if is_c_like(file) else source.has_text
    if empty := [line for line in lines if not has_code(line)]:
        named = ", ".join(map(str, empty[:_NAMED_LINES]))
        return f"instructions are of line {named}, where no code stands"
    return _other_kernel(kernel, source, lines) if is_c_like(file) else ""


def lines_of(kernel: Kernel, file: str) -> set[int]:
    """Return the lines of a file that instructions of a kernel were compiled from."""
    inside = kernel.inside.pcs if kernel.inside is not None else {}
    found = {line for name, line in inside if name == file}
    return found | {spot.line for spot in kernel.hotspots if spot.file == file and spot.line is not None}


def _other_kernel(kernel: Kernel, source: SourceText, lines: Iterable[int]) -> str:
    """Say that a line is in the body of another kernel: what is inlined into this one is no kernel itself."""
    bodies = [
        (name, source.line_of(scope.start), source.line_of(scope.end))
        for scope in source.scopes
        if "__global__" in (head := source.code(scope.head)) and (name := name_of_function(head)) is not None
    ]
    own = function_of(kernel.function_name)
    for line in lines:
        for name, first, last in bodies:
            if first < line < last and name != own:
                return f"line {line} is in kernel `{name[:80]}` there"
    return ""
