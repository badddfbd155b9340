"""What a report stores of a result, independent of the reader that decoded it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from rooflens.model.records import SourceFile

Value: TypeAlias = "float | int | str"
"""Measured amounts are floats, ncu's own counts are ints, names and attributes are texts."""

THREAD_TABLES = (
    "sass__thread_inst_executed_true_per_opcode_with_modifier_all",
    "sass__thread_inst_executed_true_per_opcode",
)
WARP_TABLE = "sass__inst_executed_per_opcode_with_modifier_all"
OPCODE_TABLES = (*THREAD_TABLES, WARP_TABLE)
"""Metrics with instances that the model needs: opcode -> count."""


class Stored(Struct, frozen=True):
    """One metric of a result.

    Attributes:
        value: Its own value, over all instances; None without an own value.
        keys: The key of each instance, such as an address or an opcode; None if instances have no keys.
        values: One for each instance.
    """

    value: Value | None = None
    keys: Sequence[Value] | None = None
    values: Sequence[Value] = ()

    @property
    def is_zero(self) -> bool:
        """Whether its own value is 0: its instances are then zeros, or left out."""
        return not isinstance(self.value, str) and self.value == 0


def opcode_tables(metrics: Metrics) -> dict[str, dict[str, int]]:
    """Return the counts by opcode of each table that a result stores; empty for a table without keys."""
    return {name: _counts(stored) for name in OPCODE_TABLES if (stored := metrics.metric(name)) is not None}


def _counts(stored: Stored) -> dict[str, int]:
    pairs = zip(stored.keys or (), stored.values, strict=False)
    return {str(key): int(count) for key, count in pairs if not isinstance(count, str) and isfinite(count)}


class Metrics(Protocol):
    """The metrics of a result by name."""

    def names(self) -> Iterable[str]:
        """Return the names of metrics that may have instances."""

    def metric(self, name: str) -> Stored | None:
        """Return the value stored under a name; None without one."""


Kind: TypeAlias = Literal["load", "store", "computes", "constant", "other"]
"""What an instruction is: a load of global memory, a store or an atomic, a packed fp16 multiply-add that computes, one
that only loads a constant, or another."""


class Texts(Protocol):
    """Kinds and source lines of a result's instructions, from its code or from published figures."""

    def kind(self, address: int) -> Kind | None:
        """Return the kind of an instruction; None if it is unknown."""

    def sass(self, address: int) -> str | None:
        """Return the opcode of the instruction at an address; None where only a disassembler tells it."""

    def line(self, address: int) -> tuple[str, int] | None:
        """Return file and line, from 1, that an instruction was compiled from; None if unknown."""

    def source(self, file: str) -> SourceFile:
        """Return what is known of a source file, with its text if it is embedded."""
