"""Line tables of cubins: which source line an instruction was compiled from.

They have the form of DWARF 2, with two opcodes more of NVIDIA's, which say what was inlined where. One address then has
several rows, from the function itself to the innermost that was inlined into it; the first one counts, as it does in
NVIDIA's tools.
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
"""Bytes of the shortest instruction, smallest line step, number of line steps, and the first special opcode."""
_VERSION = 2
_ADDRESS = Struct("<Q")
_ADVANCE = Struct("<H")

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_LAST_SHORT = 255
_MOST_BITS = 64
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
        """Add a row of the table, which holds from this offset on; the first row at an offset counts."""
        self._places.setdefault(offset, place)

    def at(self, offset: int) -> tuple[str, int] | None:
        """Return the file and the line of an instruction; None where they are not known."""
        if not self._starts:
            self._starts = sorted(self._places)
        index = bisect_right(self._starts, offset) - 1
        return self._places[self._starts[index]] if index >= 0 else None


def read_lines(cubin: Cubin) -> Mapping[bytes, Lines]:
    """Read the line table of each function, by its mangled name; empty where the cubin has no table.

    Raises:
        ValueError, IndexError, struct.error: The table is damaged, or holds something unknown.
    """
    found: dict[bytes, Lines] = {}
    data = cubin.section(_TABLE) or b""
    functions = cubin.symbols_in(_TABLE)
    start = 0
    while start < len(data):
        unit = _unit(data, start)
        for function, offset, place in _Program(data, unit, functions).rows():
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


class _Program:
    """The state machine that runs a table's program."""

    def __init__(self, data: bytes, unit: _Unit, functions: Mapping[int, bytes]) -> None:
        self._data = data
        self._unit = unit
        self._functions = functions
        self._at = unit.program
        self._begin()

    def _begin(self) -> None:
        self._function, self._offset, self._file, self._line = b"", 0, 1, 1

    def rows(self) -> Iterator[tuple[bytes, int, tuple[str, int] | None]]:
        """Yield function, offset in it, and file and line from there on; None at the end of a function."""
        data, unit = self._data, self._unit
        while self._at < unit.end:
            code = data[self._at]
            self._at += 1
            if code >= unit.first_short:
                steps, line_step = divmod(code - unit.first_short, unit.line_range)
                self._offset += steps * unit.least_bytes
                self._line += unit.line_base + line_step
                yield self._function, self._offset, (unit.files[self._file], self._line)
            elif code == _COPY:
                yield self._function, self._offset, (unit.files[self._file], self._line)
            elif code != _EXTENDED:
                self._step(code)
            elif self._ends():
                yield self._function, self._offset, None
                self._begin()

    def _step(self, code: int) -> None:
        """Carry out an opcode that makes no row."""
        unit = self._unit
        if code == _ADVANCE_PC:
            self._offset += self._unsigned() * unit.least_bytes
        elif code == _ADVANCE_LINE:
            self._line += self._signed()
        elif code == _SET_FILE:
            self._file = self._unsigned()
        elif code == _CONST_ADD_PC:
            self._offset += (_LAST_SHORT - unit.first_short) // unit.line_range * unit.least_bytes
        elif code == _FIXED_ADVANCE_PC:
            self._offset += _ADVANCE.unpack_from(self._data, self._at)[0]
            self._at += _ADVANCE.size
        else:
            for _ in range(unit.operands[code - 1]):
                self._unsigned()

    def _ends(self) -> bool:
        """Carry out an extended opcode, which states its length; return whether a function ends there."""
        length = self._unsigned()
        start, code = self._at, self._data[self._at]
        self._at += length
        if code == _SET_ADDRESS:
            if self._function or self._offset:
                raise ValueError("a function in two parts")
            self._function = self._functions[start + 1]  # the address itself is where it was loaded to, or zero
        elif code == _DEFINE_FILE:
            raise ValueError("a file that the header does not name")
        return code == _END_SEQUENCE

    def _unsigned(self) -> int:
        number, self._at = _unsigned(self._data, self._at)
        return number

    def _signed(self) -> int:
        start = self._at
        number = self._unsigned()
        bits = 7 * (self._at - start)
        return number - (1 << bits) if number >> (bits - 1) else number


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(errors="surrogateescape"), end + 1


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Read a LEB128 number, and return where the next thing begins."""
    number = shift = 0
    while data[at] & 0x80:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if shift > _MOST_BITS:
            raise ValueError("a number too large")
    return number | data[at] << shift, at + 1


def _skipped(data: bytes, at: int) -> int:
    return _unsigned(data, at)[1]
