"""Line tables of cubins: which source line an instruction was compiled from.

The format is DWARF 2 plus two opcodes of NVIDIA's that describe inlining: a row names the row that it was inlined at.
An address may have several rows. The line of an instruction is that of the first, as in NVIDIA's `ncu`; its path leads
from the function itself to the innermost that was inlined there, as in `nvdisasm -gi`.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple, TypeAlias

from rooflens.format import as_unicode
from rooflens.ingest.cubin.budget import FILE_NAME_BYTES, FILES, ROWS, TABLE_BYTES, CodeBudget
from rooflens.ingest.cubin.elf import Cubin

_TABLE = b".debug_line"
_UNIT = Struct("<IHI")
"""Length of the rest, version, and length of the rest of the header, in bytes."""
_HEADER = Struct("<BxbBB")
"""Bytes of the shortest instruction, smallest line step, number of line steps, and the first special opcode."""
_LENGTH_BYTES = 4
_LINE_TABLE_VERSION = 2
_ADDRESS_STRUCT = Struct("<Q")
_ADVANCE = Struct("<H")

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_LAST_SHORT = 255
_MOST_BITS, _CONTINUED = 64, 0x80
_MOST_LINE = (1 << 31) - 1
"""Larger line numbers are damage, and would not fit into our tables."""
_LONGEST_NAME = 400
_EXTENDED, _END_SEQUENCE, _SET_ADDRESS, _DEFINE_FILE, _INLINED_AT = 0, 1, 2, 3, 0x90
_MOST_INLINED = 32
"""A path keeps so many calls, the innermost: tables can claim any number."""

Place: TypeAlias = tuple[str, int]
"""File and line."""


class LineTables(NamedTuple):
    """The line table of each function, by its mangled name, and the sizes of files with lines; None where unknown."""

    of: Mapping[bytes, SourceLines]
    file_bytes: Mapping[str, int | None]


class _Unit(NamedTuple):
    """One line table, described by its header.

    Attributes:
        data: The bytes of this table alone, so that no byte is read twice whatever the table claims.
        start: Offset of the table in the section.
        program: Offset of the line program in the table.
        files: Folder and name of each file, as bytes, and its size when it was compiled; None if unknown.
    """

    data: bytes
    start: int
    program: int
    least_bytes: int
    line_base: int
    line_range: int
    first_short: int
    operands: bytes
    files: Sequence[tuple[bytes, bytes, int | None]]


class _LineRow(NamedTuple):
    """A row of a line table.

    Attributes:
        offset: In its function; it holds from there on.
        place: None where the function ends.
        caller: The row that it was inlined at, by its number in the function from 1 on; 0 for none.
    """

    offset: int
    place: Place | None
    caller: int


class SourceLines:
    """Source lines of a function's instructions, by offset in the function."""

    def __init__(self) -> None:
        self._places: dict[int, Place | None] = {}
        self._innermost: dict[int, int] = {}
        self._calls: list[tuple[Place, int]] = []
        self._first = 0
        self._starts: list[int] = []

    def add(self, row: _LineRow) -> None:
        """Add a row of the line table: the first at an offset says the place, later ones the calls inlined there."""
        self._places.setdefault(row.offset, row.place)
        if row.place is None:
            self._first = len(self._calls)
            return
        caller = self._first + row.caller - 1 if row.caller else -1
        if self._innermost.get(row.offset, caller) == caller:
            self._innermost[row.offset] = len(self._calls)
        self._calls.append((row.place, caller))

    def at(self, offset: int) -> Place | None:
        """Return the file and the line of an instruction; None if unknown."""
        place = self._places.get(self._first_row(offset))
        return place if place and 0 < place[1] <= _MOST_LINE else None

    def path(self, offset: int) -> tuple[Place, ...]:
        """Return where an instruction stands: the calls that inlined it, outermost first, and its own place."""
        path: list[Place] = []
        at = self._innermost.get(self._first_row(offset), -1)
        while at >= 0 and len(path) < _MOST_INLINED:
            place, caller = self._calls[at]
            path.append(place)
            at = caller if caller < at else -1  # a caller stands before what was inlined at it
        return tuple(path[::-1]) if all(0 < line <= _MOST_LINE for _, line in path) else ()

    def _first_row(self, offset: int) -> int:
        """Return where the rows begin that hold at an offset; -1 before the first."""
        if not self._starts:
            self._starts = sorted(self._places)
        index = bisect_right(self._starts, offset) - 1
        return self._starts[index] if index >= 0 else -1


def file_name(name: bytes) -> str:
    """Return the name of a source file, cut to the length that pages and tables show."""
    return as_unicode(name.decode("utf-8", "surrogateescape"))[:_LONGEST_NAME]


def read_lines(cubin: Cubin, budget: CodeBudget) -> LineTables:
    """Read the line table of each function; empty if the cubin has no table.

    Raises:
        TooMuchError: The budget is exceeded.
        ValueError, IndexError, struct.error: The table is damaged, or holds something unknown.
    """
    found: dict[bytes, SourceLines] = {}
    file_bytes: dict[str, int | None] = {}
    data = cubin.section(_TABLE) or b""
    # Charged before reading: a section header can claim any size.
    budget.take(TABLE_BYTES, len(data))
    functions = cubin.symbols_in(_TABLE)
    start = 0
    while start < len(data):
        unit = _unit(data, start, budget)
        program = _Program(unit, functions, budget)
        for function, row in program.rows():
            if function not in found:
                found[function] = SourceLines()
            found[function].add(row)
        file_bytes |= program.file_bytes
        start += len(unit.data)
    return LineTables(found, file_bytes)


def _unit(section: bytes, start: int, budget: CodeBudget) -> _Unit:
    length, version, header_bytes = _UNIT.unpack_from(section, start)
    if version != _LINE_TABLE_VERSION:
        raise ValueError("another version of line tables")
    data = section[start : start + _LENGTH_BYTES + length]
    if len(data) != _LENGTH_BYTES + length:
        raise ValueError("a truncated line table")
    at = _UNIT.size
    least_bytes, line_base, line_range, first_short = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    operands = data[at : at + first_short - 1]
    at += first_short - 1
    folders = [b""]
    while data[at]:
        budget.take(FILES)
        folder, at = _string_at(data, at)
        folders.append(folder)
    at += 1
    files: list[tuple[bytes, bytes, int | None]] = [(b"", b"", None)]
    while data[at]:
        budget.take(FILES)
        name, at = _string_at(data, at)
        folder_number, at = _unsigned(data, at)
        byte_count, at = _unsigned(data, _skipped(data, at))  # behind the time of its last change
        files.append((folders[folder_number], name, byte_count or None))
    program = _UNIT.size + header_bytes
    return _Unit(data, start, program, least_bytes, line_base, line_range, first_short, operands, files)


class _Program:
    """The state machine that runs a table's program."""

    def __init__(self, unit: _Unit, functions: Mapping[int, bytes], budget: CodeBudget) -> None:
        self._unit = unit
        self._functions = functions
        self._budget = budget
        self._names: dict[int, str] = {}
        self.file_bytes: dict[str, int | None] = {}

    def rows(self) -> Iterator[tuple[bytes, _LineRow]]:
        """Yield the rows of each function."""
        data, unit, take = self._unit.data, self._unit, self._budget.take
        end, first_short = len(data), unit.first_short
        at, function, offset, file, line, caller = unit.program, b"", 0, 1, 1, 0
        while at < end:
            code = data[at]
            at += 1
            if code >= first_short or code == _COPY:
                # Special opcodes, half of a real table: one byte advances address and line and emits a row.
                if code >= first_short:
                    steps, line_step = divmod(code - first_short, unit.line_range)
                    offset += steps * unit.least_bytes
                    line += unit.line_base + line_step
                take(ROWS)
                yield function, _LineRow(offset, (self._names.get(file) or self._file_name(file), line), caller)
            elif code == _ADVANCE_LINE:
                step, at = _signed(data, at)
                line += step
            elif code == _EXTENDED:
                length, start = _unsigned(data, at)
                at, code = start + length, data[start]
                if code == _END_SEQUENCE:
                    take(ROWS)
                    yield function, _LineRow(offset, None, 0)
                    function, offset, file, line, caller = b"", 0, 1, 1, 0
                elif code == _SET_ADDRESS:
                    function = self._function(start + 1, is_second=bool(function or offset))
                else:
                    caller = self._caller(code, start + 1, caller)
            elif code == _SET_FILE:
                file, at = _unsigned(data, at)
            else:
                step, at = self._advanced(code, at)
                offset += step

    def _caller(self, code: int, at: int, caller: int) -> int:
        """Return the row of the call site if an extended opcode names one, else the current one."""
        if code == _DEFINE_FILE:
            raise ValueError("a file that the header does not name")
        return _unsigned(self._unit.data, at)[0] if code == _INLINED_AT else caller

    def _function(self, at: int, *, is_second: bool) -> bytes:
        """Return the function whose address stands at an offset: it is relocated there, and stored as zero or so."""
        # nvcc writes one sequence per function; rows after a second address would go to the wrong function.
        if is_second:
            raise ValueError("a function in two parts")
        return self._functions[self._unit.start + at]

    def _advanced(self, code: int, at: int) -> tuple[int, int]:
        """Return how far a standard opcode advances the offset, and the position of the next opcode."""
        data, unit = self._unit.data, self._unit
        if code == _ADVANCE_PC:
            steps, at = _unsigned(data, at)
            return steps * unit.least_bytes, at
        if code == _CONST_ADD_PC:
            return (_LAST_SHORT - unit.first_short) // unit.line_range * unit.least_bytes, at
        if code == _FIXED_ADVANCE_PC:
            return _ADVANCE.unpack_from(data, at)[0], at + _ADVANCE.size
        # Unknown standard opcodes are skippable: the header says how many operands each has.
        for _ in range(unit.operands[code - 1]):
            at = _skipped(data, at)
        return 0, at

    def _file_name(self, number: int) -> str:
        """Return folder and name of a file, joined on demand: few files of the header have rows."""
        if number not in self._names:
            folder, name, byte_count = self._unit.files[number]
            self._budget.take(FILE_NAME_BYTES, len(folder) + len(name))
            self._names[number] = file_name(posixpath.normpath(posixpath.join(folder, name))) if name else ""
            self.file_bytes[self._names[number]] = byte_count
        return self._names[number]


def _string_at(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.index(0, at)
    return data[at:end], end + 1


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Read a LEB128 number; return it and the offset after it."""
    if data[at] < _CONTINUED:
        return data[at], at + 1
    number = shift = 0
    while data[at] & _CONTINUED:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if shift > _MOST_BITS:
            raise ValueError("a number too large")
    return number | data[at] << shift, at + 1


def _signed(data: bytes, at: int) -> tuple[int, int]:
    """Read a signed LEB128 number; return it and the offset after it."""
    number, end = _unsigned(data, at)
    bits = 7 * (end - at)
    return (number - (1 << bits) if number >> (bits - 1) else number), end


def _skipped(data: bytes, at: int) -> int:
    return _unsigned(data, at)[1]
