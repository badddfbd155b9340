"""Stored values of many results that store the same metrics, and the rows of the table `metrics` made from them."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from rooflens.model.store.schema import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooflens.ingest.metrics.stored import Value


_MOST_MADE = 2
"""How many times more rows than stored may be made and then dropped: results mostly store the same metrics."""


class _Absent:
    """Stands for a metric with instances but no value of its own, which makes no row."""


ABSENT: Any = _Absent()


class ValueColumns(NamedTuple):
    """Values of results that store the same metrics; names are empty where a metric is not wanted.

    Attributes:
        indices: Indices of the results in their report.
        double_names, doubles: Names, and a row for each with a column for each result.
        count_names, counts: The same for whole numbers.
        other_names, others: The same for values of any kind, as lists.
    """

    indices: NDArray[np.int64]
    double_names: tuple[str, ...]
    doubles: NDArray[np.float64]
    count_names: tuple[str, ...]
    counts: NDArray[np.uint64]
    other_names: tuple[str, ...]
    others: list[list[Value | None]]

    @property
    def names(self) -> set[str]:
        """Names of the metrics that make rows."""
        others = (
            name for name, some in zip(self.other_names, self.others, strict=True) if some.count(ABSENT) < len(some)
        )
        return {*self.double_names, *self.count_names, *others} - {""}

    def some(self, chosen: NDArray[np.bool_]) -> ValueColumns:
        """Return the values of some results."""
        others = [list(compress(values, chosen)) for values in self.others]
        return self._replace(
            indices=self.indices[chosen], doubles=self.doubles[:, chosen], counts=self.counts[:, chosen], others=others
        )


def metric_rows(digest: str, parts: Sequence[ValueColumns]) -> list[pa.RecordBatch]:
    """Make rows of `metrics`, sorted by name and result within a batch; one batch, unless results differ too much."""
    names = [part.names for part in parts]
    made = sum(len(part.indices) for part in parts) * len(set[str]().union(*names))
    stored = sum(len(part.indices) * len(some) for part, some in zip(parts, names, strict=True))
    if made > _MOST_MADE * stored:
        return [_rows(digest, [part]) for part in parts]
    return [_rows(digest, parts)] if parts else []


def _rows(digest: str, parts: Sequence[ValueColumns]) -> pa.RecordBatch:
    stored = [part.names for part in parts]
    names = sorted(set[str]().union(*stored))
    places = {name: place for place, name in enumerate(names)}
    indices = np.concatenate([part.indices for part in parts]).astype(np.int32)
    columns = _Columns(len(names), len(indices))
    start = 0
    for part, known in zip(parts, stored, strict=True):
        which = slice(start, start + len(part.indices))
        start = which.stop
        for name, row in zip(part.double_names, part.doubles, strict=True):
            if name:
                columns.doubles.put(places[name], which, row)
        for name, row in zip(part.count_names, part.counts, strict=True):
            if name:
                columns.counts.put(places[name], which, row)
        for name, values in zip(part.other_names, part.others, strict=True):
            if name in known:
                columns.put_any(places[name], which, values)
        columns.leave_out([place for name, place in places.items() if name not in known], which)
    return columns.batch(digest, names, indices)


class _Column:
    """Values of one kind, a row for each metric and a column for each result."""

    def __init__(self, shape: tuple[int, int], kind: pa.DataType) -> None:
        self._kind = kind
        self._values = np.zeros(shape, kind.to_pandas_dtype())
        self._are_there = np.zeros(shape, np.bool_)

    def put(self, place: int, which: slice, values: NDArray[Any], are_there: NDArray[np.bool_] | None = None) -> None:
        """Put values of a metric for some results; by default each of them has one."""
        self._values[place, which] = values
        self._are_there[place, which] = True if are_there is None else are_there

    def put_some(self, place: int, which: slice, values: Sequence[Any], number_of: NDArray[np.intp]) -> None:
        """Put values of a metric: those whose number each result has; None is not a value of this kind."""
        are_there = np.array([value is not None for value in values], np.bool_)
        if are_there.any():
            made = np.array([value or 0 for value in values], self._values.dtype)
            self.put(place, which, made[number_of], are_there[number_of])

    def array(self, order: NDArray[np.intp] | None) -> pa.Array:
        """Return all values as one array, metric by metric, results in this order, null where there is none."""
        values, are_there = (
            rows if order is None else rows.take(order, axis=1) for rows in (self._values, self._are_there)
        )
        return _array(values, self._kind, are_there)


class _Columns:
    """The columns of the table `metrics`."""

    def __init__(self, names: int, results: int) -> None:
        shape = (names, results)
        self.doubles, self.counts = _Column(shape, pa.float64()), _Column(shape, pa.uint64())
        self._codes, self._texts = _Column(shape, pa.int32()), dict[str, int]()
        self._are_rows = np.ones(shape, np.bool_)

    def put_any(self, place: int, which: slice, values: Sequence[Value | None]) -> None:
        """Put values of a metric of any kind; most of them are the same object."""
        ids = np.fromiter(map(id, values), np.uint64)
        _, firsts, number_of = np.unique(ids, return_index=True, return_inverse=True)
        distinct = [values[first] for first in firsts.tolist()]
        codes = [self._texts.setdefault(one, len(self._texts)) if isinstance(one, str) else None for one in distinct]
        doubles = [one if isinstance(one, float) else None for one in distinct]
        counts = [one if isinstance(one, int) else None for one in distinct]
        for column, made in ((self._codes, codes), (self.doubles, doubles), (self.counts, counts)):
            column.put_some(place, which, made, number_of)
        self._are_rows[place, which] = np.array([one is not ABSENT for one in distinct], np.bool_)[number_of]

    def leave_out(self, places: Sequence[int], which: slice) -> None:
        """Drop the rows of metrics that some results do not store."""
        self._are_rows[places, which] = False

    def batch(self, digest: str, names: Sequence[str], indices: NDArray[np.int32]) -> pa.RecordBatch:
        """Make the rows."""
        order = None if (indices[1:] > indices[:-1]).all() else np.argsort(indices)
        places = np.repeat(np.arange(len(names), dtype=np.int32), len(indices))
        columns = {
            "digest": pa.DictionaryArray.from_arrays(_array(np.zeros_like(places), pa.int32()), pa.array([digest])),
            "kernel_index": _array(np.tile(indices if order is None else indices[order], len(names)), pa.int32()),
            "name": pa.DictionaryArray.from_arrays(_array(places, pa.int32()), pa.array(names, pa.string())),
            "value_double": self.doubles.array(order),
            "value_uint64": self.counts.array(order),
            "value_string": pa.DictionaryArray.from_arrays(
                self._codes.array(order), pa.array(list(self._texts), pa.string())
            ),
        }
        batch = pa.RecordBatch.from_arrays([columns[name] for name in METRICS.names], schema=METRICS)
        if self._are_rows.all():
            return batch
        are_rows = self._are_rows if order is None else self._are_rows[:, order]
        return batch.filter(pa.array(are_rows.ravel()))


def _array(values: NDArray[Any], kind: pa.DataType, are_there: NDArray[np.bool_] | None = None) -> pa.Array:
    """Make an Arrow array from the memory of a NumPy array."""
    bits = None if are_there is None else pa.py_buffer(np.packbits(are_there, bitorder="little"))
    return pa.Array.from_buffers(kind, values.size, [bits, pa.py_buffer(np.ascontiguousarray(values))])
