"""Stored values of many results that store the same metrics, and the rows of the table `metrics` they make."""

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


class _Absent:
    """Stands where a metric has instances and no value of its own: it makes no row."""


ABSENT: Any = _Absent()


class ValueColumns(NamedTuple):
    """Values of results that store the same metrics; names are empty where a metric is not wanted.

    Attributes:
        indices: Numbers of the results in their report.
        double_names, doubles: Names, and a row for each with a column for each result.
        count_names, counts: The same of whole numbers.
        other_names, others: The same of values of any kind, as lists.
    """

    indices: NDArray[np.int64]
    double_names: tuple[str, ...]
    doubles: NDArray[np.float64]
    count_names: tuple[str, ...]
    counts: NDArray[np.uint64]
    other_names: tuple[str, ...]
    others: list[list[Value | None]]

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The names of all, by kind."""
        return self.double_names, self.count_names, self.other_names

    def some(self, chosen: NDArray[np.bool_]) -> ValueColumns:
        """Return those of some results."""
        others = [list(compress(values, chosen)) for values in self.others]
        return self._replace(
            indices=self.indices[chosen], doubles=self.doubles[:, chosen], counts=self.counts[:, chosen], others=others
        )


def metric_rows(digest: str, parts: Sequence[ValueColumns]) -> pa.RecordBatch:
    """Make rows of `metrics`, sorted by name and result, of values under the same names."""
    names = sorted(name for some in parts[0].names for name in some if name)
    places = {name: place for place, name in enumerate(names)}
    indices = np.concatenate([part.indices for part in parts]).astype(np.int32)
    columns = _Columns(len(names), len(indices))
    for row, name in enumerate(parts[0].double_names):
        if name:
            columns.doubles.put(places[name], [part.doubles[row] for part in parts])
    for row, name in enumerate(parts[0].count_names):
        if name:
            columns.counts.put(places[name], [part.counts[row] for part in parts])
    for row, name in enumerate(parts[0].other_names):
        if name:
            columns.put_any(places[name], [value for part in parts for value in part.others[row]])
    return columns.batch(digest, names, indices)


class _Column:
    """Values of one kind, a row for each metric."""

    def __init__(self, shape: tuple[int, int], kind: pa.DataType) -> None:
        self._kind = kind
        self._values = np.zeros(shape, kind.to_pandas_dtype())
        self._are_there = np.zeros(shape, np.bool_)

    def put(self, place: int, values: Sequence[NDArray[Any]]) -> None:
        """Put the values of a metric."""
        np.concatenate(values, out=self._values[place])
        self._are_there[place] = True

    def put_some(self, place: int, which: NDArray[np.intp], values: Sequence[Any]) -> None:
        """Put for each result one of some values of a metric, or nothing where that is None."""
        are_there = np.array([value is not None for value in values], np.bool_)
        self._values[place] = np.array([value or 0 for value in values], self._values.dtype)[which]
        self._are_there[place] = are_there[which]

    def array(self) -> pa.Array:
        """Return them one after the other, null where there is none."""
        return _array(self._values, self._kind, self._are_there)


class _Columns:
    """The columns of values, a row for each metric."""

    def __init__(self, names: int, results: int) -> None:
        shape = (names, results)
        self.doubles, self.counts = _Column(shape, pa.float64()), _Column(shape, pa.uint64())
        self._codes, self._texts = _Column(shape, pa.int32()), dict[str, int]()
        self._are_rows = np.ones(shape, np.bool_)

    def put_any(self, place: int, values: Sequence[Value | None]) -> None:
        """Put values of any kind of a metric."""
        _, firsts, which = np.unique(np.fromiter(map(id, values), np.uint64), return_index=True, return_inverse=True)
        distinct = [values[first] for first in firsts.tolist()]
        self.doubles.put_some(place, which, [value if isinstance(value, float) else None for value in distinct])
        self.counts.put_some(place, which, [value if isinstance(value, int) else None for value in distinct])
        codes = [self._texts.setdefault(value, len(self._texts)) if isinstance(value, str) else None for value in distinct]
        self._codes.put_some(place, which, codes)
        self._are_rows[place] = np.array([value is not ABSENT for value in distinct], np.bool_)[which]

    def batch(self, digest: str, names: Sequence[str], indices: NDArray[np.int32]) -> pa.RecordBatch:
        """Make rows of them."""
        places = np.repeat(np.arange(len(names), dtype=np.int32), len(indices))
        columns = {
            "digest": pa.DictionaryArray.from_arrays(_array(np.zeros_like(places), pa.int32()), pa.array([digest])),
            "kernel_index": _array(np.tile(indices, len(names)), pa.int32()),
            "name": pa.DictionaryArray.from_arrays(_array(places, pa.int32()), pa.array(names, pa.string())),
            "value_double": self.doubles.array(),
            "value_uint64": self.counts.array(),
            "value_string": pa.DictionaryArray.from_arrays(
                self._codes.array(), pa.array(list(self._texts), pa.string())
            ),
        }
        batch = pa.RecordBatch.from_arrays([columns[name] for name in METRICS.names], schema=METRICS)
        return batch if self._are_rows.all() else batch.filter(pa.array(self._are_rows.ravel()))


def _array(values: NDArray[Any], kind: pa.DataType, are_there: NDArray[np.bool_] | None = None) -> pa.Array:
    """Take numbers over as they are."""
    bits = None if are_there is None else pa.py_buffer(np.packbits(are_there, bitorder="little"))
    return pa.Array.from_buffers(kind, values.size, [bits, pa.py_buffer(values)])
