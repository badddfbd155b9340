"""Line tables of cubins: which source line an instruction was compiled from.

They are in the form of DWARF 2, with two instructions of NVIDIA's more, which say what was inlined where. At one
address stand several rows then, from the function itself to the innermost that was inlined into it; the first one
counts, as it does for NVIDIA's tools.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflens.ingest.cubin.elf import Cubin

_TABLE = b".debug_line"
_UNIT = Struct("<IHI")
"""Bytes that follow, version, and bytes of the header that follow."""
_HEADER = Struct("<BxbBB")
"""Bytes of the shortest instruction, least step of the line, number of such steps, and the first short code."""
_VERSION = 2
_ADDRESS = Struct("<Q")
_ADVANCE = Struct("<H")

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_EXTENDED, _END_SEQUENCE, _SET_ADDRESS, _DEFINE_FILE = 0, 1, 2, 3


class _Unit(NamedTuple):
    """One table, as its header describes it."""

    program: int
    end: int
    least_bytes: int
    line_base: int
    line_range: int
    first_short: int
    operands: bytes
    files: tuple[str, ...]


class Lines:
    """Source lines of one function's instructions, by their offset in it."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[str, int] | None] = {}
        self._starts: list[int] = []

    def add(self, offset: int, place: tuple[str, int] | None) -> None:
        """Add a row of the table: from there on; the first row at an offset counts."""
        self._places.setdefault(offset, place)

    def at(self, offset: int) -> tuple[str, int] | None:
        """Return the file and the line of an instruction; None where they are not known."""
        if not self._starts:
            self._starts = sorted(self._places)
        index = bisect_right(self._starts, offset) - 1
        return self._places[self._starts[index]] if index >= 0 else None


def read_lines(cubin: Cubin) -> Mapping[bytes, Lines]:
    """Read the line table of each function, by its mangled name; none where the cubin has no table.

    Raises:
        ValueError, IndexError, struct.error: The table is damaged, or holds what nobody knows.
    """
    found: dict[bytes, Lines] = {}
    data = cubin.section(_TABLE) or b""
    functions = cubin.symbols_in(_TABLE)
    start = 0
    while start < len(data):
        unit = _unit(data, start)
        for function, offset, place in _rows(data, unit, functions):
            found.setdefault(function, Lines()).add(offset, place)
        start = unit.end
    return found


def _unit(data: bytes, start: int) -> _Unit:
    length, version, header_bytes = _UNIT.unpack_from(data, start)
    if version != _VERSION:
        raise ValueError("another version of line tables")
    at = start + _UNIT.size
    least_bytes, line_base, line_range, first_short = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    operands = data[at : at + first_short - 1]
    at += first_short - 1
    folders = [""]
    while data[at]:
        folder, at = _text(data, at)
        folders.append(folder)
    at += 1
    files = [""]
    while data[at]:
        name, at = _text(data, at)
        folder_number, at = _unsigned(data, at)
        at = _skipped(data, _skipped(data, at))
        files.append(posixpath.normpath(posixpath.join(folders[folder_number], name)))
    return _Unit(
        program=start + _UNIT.size + header_bytes,
        end=start + _UNIT.size - 6 + length,
        least_bytes=least_bytes,
        line_base=line_base,
        line_range=line_range,
        first_short=first_short,
        operands=operands,
        files=tuple(files),
    )


def _rows(
    data: bytes, unit: _Unit, functions: Mapping[int, bytes]
) -> Iterator[tuple[bytes, int, tuple[str, int] | None]]:
    """Run the program of a table, and yield its rows: function, offset in it, file and line."""
    at, function, offset, file, line = unit.program, b"", 0, 1, 1
    while at < unit.end:
        code = data[at]
        at += 1
        if code >= unit.first_short:
            steps, line_step = divmod(code - unit.first_short, unit.line_range)
            offset += steps * unit.least_bytes
            line += unit.line_base + line_step
            yield function, offset, (unit.files[file], line)
        elif code == _COPY:
            yield function, offset, (unit.files[file], line)
        elif code == _ADVANCE_PC:
            steps, at = _unsigned(data, at)
            offset += steps * unit.least_bytes
        elif code == _ADVANCE_LINE:
            step, at = _signed(data, at)
            line += step
        elif code == _SET_FILE:
            file, at = _unsigned(data, at)
        elif code == _CONST_ADD_PC:
            offset += (255 - unit.first_short) // unit.line_range * unit.least_bytes
        elif code == _FIXED_ADVANCE_PC:
            (step,) = _ADVANCE.unpack_from(data, at)
            offset += step
            at += _ADVANCE.size
        elif code == _EXTENDED:
            length, at = _unsigned(data, at)
            extended = data[at]
            if extended == _END_SEQUENCE:
                yield function, offset, None
                function, offset, file, line = b"", 0, 1, 1
            elif extended == _SET_ADDRESS:
                if function or offset:
                    raise ValueError("a function in two parts")
                function = functions[at + 1]  # what stands there is where the function was loaded, or zero
            elif extended == _DEFINE_FILE:
                raise ValueError("a file that the header does not name")
            at += length
        else:
            for _ in range(unit.operands[code - 1]):
                at = _skipped(data, at)


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(errors="surrogateescape"), end + 1


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, and return where the next thing begins."""
    number = shift = 0
    while data[at] & 0x80:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return number | data[at] << shift, at + 1


def _signed(data: bytes, at: int) -> tuple[int, int]:
    number, end = _unsigned(data, at)
    bits = 7 * (end - at)
    return (number - (1 << bits) if number >> (bits - 1) else number), end


def _skipped(data: bytes, at: int) -> int:
    return _unsigned(data, at)[1]
