"""What a published report says about single instructions, instead of the code that was removed from it.

Such a report has no machine code and no source text (`fixtures/README.md`). Facts about them are stored as metrics of
our own, by address like ncu's own metrics: the kind of each instruction, the opcodes of the hottest instructions, and
the source line of each instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast, get_args

from rooflens.ingest.metrics.stored import Kind, Metrics, Value
from rooflens.model.records import SourceFile

PREFIX = "rooflens__"
"""Prefix of our own metrics, which none of NVIDIA's has."""

KIND = f"{PREFIX}instruction_kind"
"""Address -> kind; instructions not listed are of kind `other`."""

OPCODE = f"{PREFIX}opcode"
"""Address -> opcode with modifiers, without operands."""

LINE_IN = f"{PREFIX}line_in:"
"""Prefix to a source file's name; the metric maps address -> line number."""

_INSTRUCTION_KINDS = frozenset(get_args(Kind))


class Figures:
    """The instructions of a result, as far as a published report describes them.

    Args:
        kinds: Kind by address; instructions not listed are `other`.
        opcodes: Opcode by address, for the hottest instructions.
        lines: File and line by address.
    """

    def __init__(
        self, kinds: Mapping[int, Kind], opcodes: Mapping[int, str], lines: Mapping[int, tuple[str, int]]
    ) -> None:
        self._kinds = kinds
        self._opcodes = opcodes
        self._lines = lines

    def kind(self, address: int) -> Kind:
        """Return the kind of an instruction."""
        return self._kinds.get(address, "other")

    def sass(self, address: int) -> str | None:
        """Return the opcode of an instruction; None if it is not stored."""
        return self._opcodes.get(address)

    def line(self, address: int) -> tuple[str, int] | None:
        """Return the file and the line that an instruction was compiled from."""
        return self._lines.get(address)

    def source(self, file: str) -> SourceFile:  # noqa: ARG002 - as the code itself takes it
        """Return nothing: source text was removed."""
        return SourceFile()


def uses(name: str) -> bool:
    """Return whether a metric is one of ours."""
    return name.startswith(PREFIX)


def read_figures(metrics: Metrics) -> Figures | None:
    """Read the facts about instructions that a result stores under our names; None if there are none."""
    names = [name for name in metrics.names() if uses(name)]
    if not names:
        return None
    kinds = {
        address: cast("Kind", kind) for address, kind in _text_instances(metrics, KIND) if kind in _INSTRUCTION_KINDS
    }
    lines = {
        address: (name.removeprefix(LINE_IN), line)
        for name in names
        if name.startswith(LINE_IN)
        for address, line in _instances(metrics, name)
        if isinstance(line, int)
    }
    return Figures(kinds, dict(_text_instances(metrics, OPCODE)), lines)


def _text_instances(metrics: Metrics, name: str) -> Iterator[tuple[int, str]]:
    return ((address, text) for address, text in _instances(metrics, name) if isinstance(text, str))


def _instances(metrics: Metrics, name: str) -> Iterator[tuple[int, Value]]:
    stored = metrics.metric(name)
    if stored is not None:
        for address, value in zip(stored.keys or (), stored.values, strict=False):
            if isinstance(address, int):
                yield address, value
