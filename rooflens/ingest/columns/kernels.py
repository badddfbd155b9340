"""Rows of the table `kernels`, made a column at a time from what kernels of one layout store."""

from __future__ import annotations

from itertools import compress
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from rooflens.ingest.columns.resolving import find_beyond, resolve_columns
from rooflens.ingest.reports.container import KERNEL
from rooflens.ingest.reports.results import (
    GPU,
    IDENTITY,
    LONGEST_RANGE,
    identity,
    is_measured,
    is_wanted,
    shortened,
    stall_names,
    stalls_of,
)
from rooflens.model.counters.table import MEASURED
from rooflens.model.keys import short_name
from rooflens.model.store.rows import kernel_rows
from rooflens.model.store.schema import KERNELS_TO_WRITE
from rooflens.model.store.tables.columns import reals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from rooflens.ingest.columns.alike import Alike
    from rooflens.ingest.columns.resolving import Column, Columns
    from rooflens.ingest.columns.walking import Offsets
    from rooflens.ingest.metrics.stored import Value

_NOT_THERE = inf
"""Stands for a number that is not stored; an infinite one counts as missing anyway (`sort_values`)."""


def kernel_tables(alike: Alike, digest: str, *, synthetic: bool) -> tuple[list[pa.Table], NDArray[np.bool_]]:
    """Make rows of the kernels that are plain.

    Returns:
        The rows, and a mask of the kernels that they hold: the others failed, or hold an impossible value.
    """
    names, numbers = _numbers(alike)
    nan_counts = np.isnan(numbers[[is_measured(name) for name in names]]).sum(axis=0)
    are_read = np.zeros(len(alike.heads), np.bool_)
    tables = []
    for are_known, which in _patterns(np.isfinite(numbers)):
        stored = dict(zip(compress(names, are_known), numbers[np.ix_(are_known, which)], strict=True))
        columns = resolve_columns(stored, len(which))
        has_nan = nan_counts[which] > 0
        is_plain = ~find_beyond(stored, columns, len(which)) & ~(has_nan & ~_any_known(columns, MEASURED))
        if is_plain.any():
            is_partial = has_nan | ~_any_known(columns, {"duration_ns"})
            group = _Group(alike, which, is_plain, stored, columns)
            tables.append(group.table(digest, is_partial, synthetic=synthetic))
        are_read[which[is_plain]] = True
    return tables, are_read


def _numbers(alike: Alike) -> tuple[list[str], Column]:
    """Return the names of the metrics that a kernel record needs, and a row of numbers for each."""
    values = alike.values
    found: dict[str, Sequence[Any]] = dict(zip(values.double_names, values.doubles, strict=True))
    found |= zip(values.count_names, values.counts, strict=True)
    others = dict(zip(values.other_names, values.others, strict=True))
    names = [name for name in (*values.double_names, *alike.later) if name and is_wanted(name)]
    numbers = np.empty((len(names), len(alike.heads)))
    for row, name in zip(numbers, names, strict=True):
        row[:] = found[name] if name in found else [*map(_as_number, others[name])]
    return names, numbers


def _as_number(value: Value | None) -> float:
    return float(value) if isinstance(value, (float, int)) else _NOT_THERE


def _patterns(are_finite: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], Offsets]]:
    """Group kernels by which numbers they have; yield each mask of numbers with the places of its kernels."""
    if are_finite.all():
        yield np.ones(len(are_finite), np.bool_), np.arange(are_finite.shape[1])
        return
    packed = np.ascontiguousarray(np.packbits(are_finite, axis=0).T)
    _, firsts, places = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    for number, first in enumerate(firsts.tolist()):
        yield are_finite[:, first], np.nonzero(places.ravel() == number)[0]


def _any_known(columns: Columns, names: Collection[str]) -> NDArray[np.bool_]:
    """Return which kernels have a value of any of these names."""
    known = np.zeros(len(columns.sources), np.bool_)
    for name, values in columns.values.items():
        if name in names:
            known |= ~np.isnan(values)
    return known


class _Group:
    """Kernels that have the same numbers, of which some become rows."""

    def __init__(
        self, alike: Alike, which: Offsets, is_plain: NDArray[np.bool_], stored: Mapping[str, Column], columns: Columns
    ) -> None:
        self._alike = alike
        self._which = which[is_plain]
        self._is_plain = is_plain
        self._stored = stored
        self._columns = columns

    def table(self, digest: str, is_partial: NDArray[np.bool_], *, synthetic: bool) -> pa.Table:
        """Make the rows."""
        count = len(self._which)
        heads = [self._alike.heads[place] for place in self._which.tolist()]
        nothing: list[Mapping[str, Any]] = [{}] * count
        capabilities, devices, grids, blocks = zip(*map(identity, *map(self._numbers, IDENTITY)), strict=True)
        return kernel_rows(
            {
                "digest": [digest] * count,
                "kernel_index": self._alike.values.indices[self._which].tolist(),
                "name": [short_name(head.signature) for head in heads],
                "function_name": [head.function_name for head in heads],
                "status": ["partial" if one else "ok" for one in is_partial[self._is_plain].tolist()],
                "status_reason": [None] * count,
                "workload": [KERNEL] * count,
                "gpu": [*map(shortened, self._texts(GPU))],
                "compute_capability": capabilities,
                "device": devices,
                "process": [shortened(head.process) for head in heads],
                "nvtx_range": [shortened(head.nvtx_range, LONGEST_RANGE) for head in heads],
                "synthetic": [synthetic] * count,
                "grid": grids,
                "block": blocks,
                "rules": [head.rules for head in heads],
                "series": [None] * count,
                "counter_sources": [*compress(self._columns.sources, self._is_plain)],
                "thread_opcodes": nothing,
                "warp_opcodes": nothing,
                "tensor_ops": self._maps(self._columns.tensor_ops),
                "tensor_peaks_per_s": self._maps(self._columns.tensor_peaks_per_s),
                "stalls": self._stalls(),
                "code_totals": nothing,
                **{name: reals(values[self._is_plain]) for name, values in self._columns.values.items()},
            },
            KERNELS_TO_WRITE,
        )

    def _numbers(self, name: str) -> list[float] | list[None]:
        if name not in self._stored:
            return [None] * len(self._which)
        numbers: list[float] = self._stored[name][self._is_plain].tolist()
        return numbers

    def _texts(self, name: str) -> list[str | None]:
        values = self._alike.values
        if name not in values.other_names:
            return [None] * len(self._which)
        found = values.others[values.other_names.index(name)]
        return [value if isinstance(value := found[place], str) else None for place in self._which.tolist()]

    def _maps(self, columns: Mapping[str, Column]) -> list[Mapping[str, float]]:
        """Turn columns into one mapping for each kernel, of the values that it has."""
        if not columns:
            return [{}] * len(self._which)
        rows = zip(*(values[self._is_plain].tolist() for values in columns.values()), strict=True)
        return [{name: value for name, value in zip(columns, row, strict=True) if value == value} for row in rows]  # noqa: PLR0124 - NaN differs from itself

    def _stalls(self) -> list[Mapping[str, float]]:
        names = [name for reasons in stall_names(tuple(self._stored)) for name in reasons.values()]
        if not names:
            return [{}] * len(self._which)
        return [stalls_of(dict(zip(names, row, strict=True))) for row in zip(*map(self._numbers, names), strict=True)]
