"""The modules of a report: each has a cubin, the functions loaded from it, and the source files that it names."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Protocol

from rooflens.ingest.cubin.budget import CODE_BYTES, SOURCE_BYTES, CodeBudget, TooMuchCodeError
from rooflens.ingest.cubin.decoding import decode as decode_instruction
from rooflens.ingest.cubin.decoding import is_known, kind_of
from rooflens.ingest.cubin.elf import Cubin, ElfSection
from rooflens.ingest.cubin.lines import LineTables, Place, file_name, read_lines
from rooflens.ingest.messages.messages import decode
from rooflens.ingest.metrics.stored import Kind
from rooflens.model.inside.instruction import INSTRUCTION_BYTES
from rooflens.model.records import SourceFile

_DAMAGE = (ValueError, LookupError, ArithmeticError, struct.error)
"""Exceptions raised by reading a cubin that is damaged or of an unknown form."""

_MOST_NOTES = 10
_LONGEST_NAME = 100
"""Longest part of a kernel name that a note shows."""


class ByteSource(Protocol):
    """The bytes of a report, in memory or in a file."""

    def __getitem__(self, part: slice, /) -> bytes: ...


class Modules:
    """All modules of a report.

    Args:
        data: The whole report.
        places: Start and end of each message about a module, in the order of the file.
    """

    def __init__(self, data: ByteSource, places: Iterable[tuple[int, int]]) -> None:
        self.notes: list[str] = []
        """Why code could not be read: a note per module, with its first kernel; a last note counts those left out."""
        self.budget = CodeBudget()
        self._messages: defaultdict[int, list[Any]] = defaultdict(list)
        self._found: dict[int, Module | TooMuchCodeError | None] = {}
        self._note_count = 0
        self._left_out: TooMuchCodeError | None = None
        for start, end in places:
            try:
                self.budget.take(CODE_BYTES, end - start)
            except TooMuchCodeError as error:
                self._left_out = error
                self._messages.clear()
                break
            if (message := decode("SourceData", data[start:end])) is not None:
                self._messages[message.Reference].append(message)

    def module(self, source: bytes, kernel: str) -> Module | None:
        """Return the module that a result refers to; None if it is missing or unreadable.

        Args:
            source: The encoded reference in the result.
            kernel: The kernel's name, for notes.

        Raises:
            TooMuchError: The code is too large to read: no other reader must try it either.
        """
        message = decode("SourceData", source)
        reference = 0 if message is None else message.Reference
        if reference not in self._found:
            self._found[reference] = self._read_module(reference, kernel)
        found = self._found[reference]
        if isinstance(found, TooMuchCodeError):
            raise found
        return found

    def _read_module(self, reference: int, kernel: str) -> Module | TooMuchCodeError | None:
        """Combine the messages about a module and read it; if that fails, None or the error, mostly with a note."""
        name = kernel if len(kernel) <= _LONGEST_NAME else f"{kernel[: _LONGEST_NAME - 1]}…"
        messages = self._messages.pop(reference, ())
        try:
            if self._left_out:
                raise self._left_out
            binaries = {binary for message in messages if (binary := message.Binary)}
            if len(binaries) != 1:
                return None  # programs profiled together may use one reference for two modules
            cubin = Cubin(binaries.pop(), self.budget)
            lines = read_lines(cubin, self.budget)
        except TooMuchCodeError as error:
            self._add_note(f"the code of kernel `{name}` cannot be read: {error}; source lines are missing")
            return error
        except _DAMAGE:
            self._add_note(
                f"the code of kernel `{name}` is damaged, or of an unknown form: source lines may be missing"
            )
            return None
        functions = {one.Address: one.Name for message in messages for one in message.Functions.Functions}
        try:
            files = self._source_texts(messages)
        except TooMuchCodeError as error:
            self._add_note(f"the source files of kernel `{name}` cannot be read: {error}; text of lines is missing")
            files = {}
        return Module(cubin, lines, functions, files)

    def _add_note(self, note: str) -> None:
        self._note_count += 1
        if self._note_count <= _MOST_NOTES:
            self.notes.append(note)
        else:
            self.notes[_MOST_NOTES:] = [
                f"further code cannot be read; notes left out: {self._note_count - _MOST_NOTES:,}"
            ]

    def _source_texts(self, messages: Iterable[Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for file in chain.from_iterable(message.Files.Files for message in messages):
            text = file.Text
            self.budget.take(SOURCE_BYTES, len(text))
            found[file_name(file.Name)] = text.decode("utf-8", "replace")
        return found


class Module:
    """One module.

    Args:
        cubin: Its code.
        lines: The line table of each function, and what it says of files.
        functions: Names of functions by the address they were loaded to; empty in some reports.
        files: Text of source files by name.
    """

    def __init__(
        self, cubin: Cubin, lines: LineTables, functions: Mapping[int, bytes], files: Mapping[str, str]
    ) -> None:
        self.cubin = cubin
        self.lines = lines
        self._files = files
        self._listing = Listing(self, functions) if functions else None
        self._listings: dict[tuple[bytes, int], Listing] = {}

    def listing(self, function: bytes, start: int | None) -> Listing | None:
        """List the instructions of a function and its callees; None if no address is known.

        Args:
            function: Its mangled name.
            start: Address of its first instruction, for reports without function names; None if unknown.
        """
        if self._listing is not None or start is None:
            return self._listing
        if (function, start) not in self._listings:
            self._listings[function, start] = Listing(self, {start: function})
        return self._listings[function, start]

    def source(self, file: str) -> SourceFile:
        """Return what is known of a source file, with its text if it is embedded."""
        return SourceFile(self._files.get(file), self.lines.file_bytes.get(file))


class Listing:
    """The instructions of a module's functions, read from the report itself: everything but their operands."""

    def __init__(self, module: Module, functions: Mapping[int, bytes]) -> None:
        self._module = module
        self._functions = functions
        self._starts = sorted(functions)
        self._codes: dict[bytes, ElfSection | None] = {}
        self.capability = module.cubin.capability
        """Compute capability that the code is compiled for: 90 for 9.0."""

    def sass(self, address: int) -> str | None:
        """Return the opcode of an instruction with its modifiers; None if its encoding is unknown."""
        code = self.code(address)
        if code is None or len(code) < INSTRUCTION_BYTES or not is_known(self.capability):
            return None
        return decode_instruction(0, code, self.capability).opcode or None

    def kind(self, address: int) -> Kind | None:
        """Return the kind of an instruction; None if its encoding is unknown."""
        code = self.code(address)
        return None if code is None else kind_of(code, self.capability)

    def code(self, address: int) -> bytes | None:
        """Return the bytes of the instruction at an address; fewer at the end of the code, None outside any code."""
        function, offset = self._function_at(address)
        section = self._code(function)
        return self._module.cubin.bytes_of(section, offset, INSTRUCTION_BYTES) if section else None

    def _code(self, function: bytes) -> ElfSection | None:
        if function not in self._codes:
            self._codes[function] = self._module.cubin.code(function)
        return self._codes[function]

    def instructions(self, addresses: range) -> Iterator[tuple[int, bytes | None, Place | None, tuple[Place, ...]]]:
        """Yield some addresses, which must rise, each with the bytes, the line and the path of its instruction.

        As `code` and `line` give them, in a third of the time.
        """
        end = start = 0
        section, lines, bytes_of = None, None, self._module.cubin.bytes_of
        for address in addresses:
            if address >= end:
                function, offset = self._function_at(address)
                start, section, lines = address - offset, self._code(function), self._module.lines.of.get(function)
                following = bisect_right(self._starts, address)
                end = self._starts[following] if following < len(self._starts) else addresses.stop
            offset = address - start
            code = bytes_of(section, offset, INSTRUCTION_BYTES) if section else None
            yield address, code, lines.at(offset) if lines else None, lines.path(offset) if lines else ()

    def line(self, address: int) -> tuple[str, int] | None:
        """Return the file and the line that an instruction was compiled from."""
        function, offset = self._function_at(address)
        lines = self._module.lines.of.get(function)
        return lines.at(offset) if lines else None

    def source(self, file: str) -> SourceFile:
        """Return what is known of a source file, with its text if it is embedded."""
        return self._module.source(file)

    def _function_at(self, address: int) -> tuple[bytes, int]:
        """Return the function that contains an address, and the offset in it; no name before the first function."""
        index = bisect_right(self._starts, address) - 1
        return (self._functions[self._starts[index]], address - self._starts[index]) if index >= 0 else (b"", 0)
