"""The parts of a cubin, which is a 64-bit ELF file: code by function, line tables, targets of relocations."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

from rooflens.ingest.cubin.budget import NAME_BYTES, RELOCATIONS, CodeBudget

_MAGIC = b"\x7fELF\x02\x01"
"""ELF, 64 bits, little-endian: what every cubin is."""

_HEADER = Struct("<18xH20xQI6xHHH")
"""Machine, offset of the section table, flags, row size, row count, and the row that holds the section names."""

_SECTION = Struct("<II16xQQ24x")
"""Name, type, offset and length. Links between sections are not read: in loaded cubins they are wrong."""

_SYMBOL = Struct("<I20x")
_RELOCATION = Struct("<Q4xI")
"""Offset of the place to relocate, and index of its symbol."""

_RELOCATION_BYTES = ((b".rel", 16), (b".rela", 24))
"""Prefixes of the names of relocation sections, and how many bytes a relocation takes in each."""

_NVIDIA = 190
_TEXT = b".text."
_ABI, _OLD_ABI = 7, 51
"""Offset of the ABI version, and the last version of CUDA 12; later versions keep the GPU elsewhere in the flags."""


class ElfSection(NamedTuple):
    """Offset and length of a section, in bytes from the start of the cubin."""

    start: int
    end: int


class Cubin:
    """One cubin.

    Args:
        data: All of it.
        budget: Limit on what may be read: overlapping names can turn a few bytes into many.

    Raises:
        TooMuchError: The budget is exceeded; other methods raise it too.
        ValueError, LookupError, struct.error: The data is no cubin, or damaged; other methods raise these too.
    """

    def __init__(self, data: bytes, budget: CodeBudget) -> None:
        machine, offset, flags, row_bytes, count, names = _HEADER.unpack_from(data)
        if not data.startswith(_MAGIC) or machine != _NVIDIA or offset > len(data):
            raise ValueError("not a cubin")
        self._data = data
        self._budget = budget
        self.capability = flags & 0xFF if data[_ABI] == _OLD_ABI else flags >> 8 & 0xFF
        """Compute capability that the code is compiled for: 90 for 9.0."""
        rows = [_SECTION.unpack_from(data, offset + number * row_bytes) for number in range(count)]
        texts = rows[names][2]
        self._sections = {
            self._string_at(texts + name): ElfSection(start, start + length) for name, _, start, length in rows
        }

    def section(self, name: bytes) -> bytes | None:
        """Return the bytes of a section; None if the file has no such section."""
        found = self._sections.get(name)
        return self._data[found.start : found.end] if found else None

    def functions(self) -> list[bytes]:
        """Return the names of all functions."""
        return [name.removeprefix(_TEXT) for name in self._sections if name.startswith(_TEXT)]

    def code(self, function: bytes) -> ElfSection | None:
        """Return where the instructions of a function are; None if the file has no code for it."""
        return self._sections.get(_TEXT + function)

    def bytes_of(self, section: ElfSection, offset: int, count: int) -> bytes:
        """Return `count` bytes of a section from an offset; fewer at its end."""
        start = section.start + offset
        return self._data[start : min(start + count, section.end)]

    def symbols_in(self, section: bytes) -> Mapping[int, bytes]:
        """Return the symbols that are relocated into a section: offset -> name."""
        found: dict[int, bytes] = {}
        names: dict[int, bytes] = {}
        for prefix, row_bytes in _RELOCATION_BYTES:
            relocations = self.section(prefix + section) or b""
            self._budget.take(RELOCATIONS, len(relocations) // row_bytes)
            for row in range(0, len(relocations), row_bytes):
                place, number = _RELOCATION.unpack_from(relocations, row)
                if number not in names:
                    names[number] = self._symbol(number)
                found[place] = names[number]
        return found

    def _symbol(self, number: int) -> bytes:
        (name,) = _SYMBOL.unpack_from(self._data, self._sections[b".symtab"].start + number * _SYMBOL.size)
        return self._string_at(self._sections[b".strtab"].start + name)

    def _string_at(self, start: int) -> bytes:
        end = self._data.index(0, start)
        self._budget.take(NAME_BYTES, end - start)
        return self._data[start:end]
