"""Sums over the verdicts of a store, made batch by batch: their memory does not grow with its launches."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

_KEYS = ("gpu", "verdict_class", "function")
_SUMMED = ("launches", "gpu_time_ns", "winnable_ns")

COLUMNS = (*_KEYS, *_SUMMED, "status")
"""Columns of `verdicts` that are read for sums."""

_PARTS = 32
"""Batches whose sums are kept apart."""


class Sum(Struct, frozen=True):
    """Launches that have a GPU, and a class or a function, in common.

    Attributes:
        gpu, verdict_class, function: What they have in common; None of what the sum is not by, or is not known.
        launches: How many they stand for.
        gpu_time_ns: Their GPU time.
        winnable_ns: What can be won of it, where that is known.
    """

    gpu: str | None
    verdict_class: str | None
    function: str | None
    launches: int
    gpu_time_ns: float
    winnable_ns: float


class Sums:
    """Sums of all rows that were added; failed launches count in none."""

    def __init__(self) -> None:
        """Begin with none."""
        self._parts: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Add rows of `verdicts`, the columns `COLUMNS` of them."""
        counted = rows.filter(pc.field("status") != "failed").select([*_KEYS, *_SUMMED])
        self._parts.append(_grouped_sums(counted, _KEYS))
        if len(self._parts) > _PARTS:
            self._parts = [_grouped_sums(pa.concat_tables(self._parts), _KEYS)]

    def by(self, *keys: str) -> list[Sum]:
        """Return the sums by some of GPU, class and function, most GPU time first."""
        if not self._parts:
            return []
        rows = _grouped_sums(pa.concat_tables(self._parts), keys).sort_by([("gpu_time_ns", "descending")])
        return [Sum(**dict.fromkeys(_KEYS) | row) for row in rows.to_pylist()]


def _grouped_sums(rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    columns = [one.cast(one.type.value_type) if pa.types.is_dictionary(one.type) else one for one in rows.columns]
    plain = pa.Table.from_arrays(columns, rows.column_names)
    found = plain.group_by([*keys]).aggregate([(name, "sum") for name in _SUMMED])
    filled = [pc.fill_null(found[f"{name}_sum"], 0) for name in _SUMMED]
    return pa.Table.from_arrays([*(found[key] for key in keys), *filled], [*keys, *_SUMMED])
