"""The modules of a report: each a cubin, the functions that were loaded from it, and the source files it names."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rooflens.format import as_unicode
from rooflens.ingest.cubin.elf import Cubin
from rooflens.ingest.cubin.instructions import INSTRUCTION_BYTES, kind_of
from rooflens.ingest.cubin.lines import read_lines
from rooflens.ingest.messages.messages import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflens.ingest.cubin.lines import Lines
    from rooflens.ingest.metrics.stored import Kind

_DAMAGE = (ValueError, LookupError, ArithmeticError, struct.error)
"""What reading a cubin raises if it is damaged, or holds something unknown."""


class Modules:
    """All modules of a report.

    Args:
        sources: Encoded messages about modules, in the order of the file.
    """

    def __init__(self, sources: Iterable[bytes]) -> None:
        self._messages: defaultdict[int, list[Any]] = defaultdict(list)
        for encoded in sources:
            if (message := decode("SourceData", encoded)) is not None:
                self._messages[message.Reference].append(message)
        self._found: dict[int, Module | None] = {}

    def module(self, source: bytes) -> Module | None:
        """Return the module that a result refers to; None where it is missing, or its form is not known.

        Args:
            source: The encoded reference in the result.
        """
        message = decode("SourceData", source)
        reference = message.Reference if message is not None else 0
        if reference not in self._found:
            self._found[reference] = _module(self._messages.get(reference, ()))
        return self._found[reference]


class Module:
    """One module.

    Args:
        cubin: Its code.
        lines: The line table of each function.
        functions: Names of functions by the address they were loaded to; empty in some reports.
        files: Text of source files by name.
    """

    def __init__(
        self, cubin: Cubin, lines: Mapping[bytes, Lines], functions: Mapping[int, bytes], files: Mapping[str, str]
    ) -> None:
        self.cubin = cubin
        self.lines = lines
        self.functions = functions
        self.files = files

    def listing(self, function: bytes, start: int | None) -> Listing | None:
        """List the instructions of a function and of those it calls; None where no address is known.

        Args:
            function: Its mangled name.
            start: Address of its first instruction, for reports that do not name functions; None where unknown.
        """
        functions = self.functions or ({} if start is None else {start: function})
        return Listing(self, functions) if functions else None


class Listing:
    """The instructions of one result, from the report itself, which has all but their text."""

    has_sass = False

    def __init__(self, module: Module, functions: Mapping[int, bytes]) -> None:
        self._module = module
        self._functions = functions
        self._starts = sorted(functions)
        self._codes: dict[bytes, bytes] = {}

    def sass(self, address: int) -> str | None:  # noqa: ARG002 - as the disassembler takes it
        """Return None: text takes a disassembler."""
        return None

    def kind(self, address: int) -> Kind | None:
        """Return the kind of an instruction; None where its encoding is not known."""
        function, offset = self._place(address)
        if function not in self._codes:
            self._codes[function] = self._module.cubin.section(b".text." + function) or b""
        return kind_of(self._codes[function][offset : offset + INSTRUCTION_BYTES], self._module.cubin.capability)

    def line(self, address: int) -> tuple[str, int] | None:
        """Return the file and the line that an instruction was compiled from."""
        function, offset = self._place(address)
        lines = self._module.lines.get(function)
        return lines.at(offset) if lines else None

    def source_files(self) -> Mapping[str, str]:
        """Return the embedded source files by name."""
        return self._module.files

    def _place(self, address: int) -> tuple[bytes, int]:
        """Return the function that an address is in, and the offset in it; an empty name before the first one."""
        index = bisect_right(self._starts, address) - 1
        return (self._functions[self._starts[index]], address - self._starts[index]) if index >= 0 else (b"", 0)


def _module(messages: Iterable[Any]) -> Module | None:
    """Combine the messages about one module; None where they contradict each other, or its code is unreadable."""
    binaries = {message.Binary for message in messages if message.Binary}
    if len(binaries) != 1:
        return None  # programs that were profiled together may give two modules one reference
    try:
        cubin = Cubin(binaries.pop())
        lines = read_lines(cubin)
    except _DAMAGE:
        return None
    functions: dict[int, bytes] = {}
    files: dict[str, str] = {}
    for message in messages:
        functions |= {function.Address: function.Name for function in message.Functions.Functions}
        files |= {_text(file.Name): file.Text.decode("utf-8", "surrogateescape") for file in message.Files.Files}
    return Module(cubin, lines, functions, files)


def _text(name: bytes) -> str:
    return as_unicode(name.decode("utf-8", "surrogateescape"))
