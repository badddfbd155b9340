"""The rows of the tables `metrics` and `instances`: values as stored, packed block by block to keep memory small."""

from __future__ import annotations

from array import array
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rooflens.ingest.metrics.columns import metric_rows
from rooflens.ingest.metrics.layouts import ENCODED
from rooflens.model.store.schema import INSTANCES, METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.ingest.metrics.columns import ValueColumns
    from rooflens.ingest.metrics.stored import Stored, Value

ROWS_PER_BLOCK = 250_000
"""How many values are gathered before they are packed: as Python lists some 15 MB, packed a third of that."""


class RawTable:
    """Gather the values of one report, and pack them block by block.

    Args:
        digest: SHA-256 of the report, in hex.
        with_instances: Whether to keep the values of instances too.
    """

    def __init__(self, digest: str, *, with_instances: bool = True) -> None:
        self._metrics = _Rows(digest, METRICS)
        self._instances = _Rows(digest, INSTANCES) if with_instances else None
        self._packed = _Packed(digest)
        self._columns: list[ValueColumns] = []
        self._digest = digest
        self.with_instances = with_instances

    def add(self, kernel_index: int, values: Mapping[str, Value | None], instances: Mapping[str, Stored]) -> None:
        """Add all values of one result.

        Args:
            kernel_index: Its position in the report.
            values: By metric; None where one has no value of its own.
            instances: Metrics with instances, whose own values are in `values`.
        """
        bare = [name for name, stored in instances.items() if stored.values and values[name] is None]
        own = {name: value for name, value in values.items() if name not in bare} if bare else values
        self._metrics.extend(kernel_index, own.keys(), own.values())
        if self._instances is None:
            return
        for name, stored in instances.items():
            count = len(stored.values)
            keys = repeat(None, count) if stored.keys is None else map(str, stored.keys)
            self._instances.extend(kernel_index, repeat(name, count), stored.values, range(count), keys)

    def remember(self, name: str, value: Value | None) -> int:
        """Return an index for a metric with its value, so that what many results share is kept once."""
        return self._packed.remember(name, value)

    def add_packed(
        self, kernel_index: int, names: tuple[str, ...], doubles: tuple[float, ...], rows: Sequence[int]
    ) -> None:
        """Add values of one result.

        Args:
            kernel_index: Its position in the report.
            names: Names of its doubles.
            doubles: As many values.
            rows: Indices of its other values (`remember`); those that are `ENCODED` are added apart.
        """
        self._packed.add(kernel_index, names, doubles, rows)

    def add_columns(self, values: ValueColumns) -> None:
        """Add values of many results."""
        self._columns.append(values)

    def forget(self) -> None:
        """Make all indices that `remember` returned invalid."""
        self._packed.forget()

    def finish(self) -> tuple[pa.Table, pa.Table | None]:
        """Return the rows of both tables that were added since the last call."""
        columns, self._columns = self._columns, []
        rows = pa.Table.from_batches(metric_rows(self._digest, columns), schema=METRICS)
        values = pa.concat_tables([rows, self._packed.finish(), self._metrics.finish()])
        return values, self._instances.finish() if self._instances else None


class _Packed:
    """Rows of results that store the same metrics: whole columns are copied, not single values."""

    def __init__(self, digest: str) -> None:
        self._digest = digest
        self._codes: dict[str, int] = {}
        self._codes_of: dict[tuple[str, ...], array[int]] = {}
        self._known: list[tuple[int, Value | None]] = []
        self._blocks: list[pa.RecordBatch] = []
        self._start()

    def _start(self) -> None:
        self._indices, self._names, self._doubles = array("i"), array("i"), array("d")
        self._row_indices, self._rows = array("i"), array("i")

    def remember(self, name: str, value: Value | None) -> int:
        self._known.append((self._code(name), value))
        return len(self._known) - 1

    def _code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def add(self, kernel_index: int, names: tuple[str, ...], doubles: tuple[float, ...], rows: Sequence[int]) -> None:
        codes = self._codes_of.get(names)
        if codes is None:
            codes = self._codes_of[names] = array("i", map(self._code, names))
        index = array("i", [kernel_index])
        self._indices.extend(index * len(codes))
        self._names.extend(codes)
        self._doubles.extend(doubles)
        self._row_indices.extend(index * len(rows))
        self._rows.extend(rows)

    def forget(self) -> None:
        self._pack()
        self._known = []

    def finish(self) -> pa.Table:
        self._pack()
        blocks, self._blocks = self._blocks, []
        return pa.Table.from_batches(blocks, schema=METRICS)

    def _pack(self) -> None:
        names = pa.array(list(self._codes), pa.string())
        count, others = len(self._doubles), len(self._rows)
        if count:
            doubles = {"value_double": _as_arrow(self._doubles, pa.float64())}
            self._blocks.append(
                self._block(_as_arrow(self._indices, pa.int32()), _as_arrow(self._names, pa.int32()), names, doubles)
            )
        if others:
            rows, indices = _as_arrow(self._rows, pa.int32()), _as_arrow(self._row_indices, pa.int32())
            is_row = pc.not_equal(rows, ENCODED)
            rows, indices = rows.filter(is_row), indices.filter(is_row)
            values = {name: column.take(rows) for name, column in _value_columns([v for _, v in self._known]).items()}
            codes = pa.array([code for code, _ in self._known], pa.int32()).take(rows)
            self._blocks.append(self._block(indices, codes, names, values))
        self._start()

    def _block(
        self, indices: pa.Array, codes: pa.Array, names: pa.Array, values: Mapping[str, pa.Array]
    ) -> pa.RecordBatch:
        columns = {
            "digest": _repeated(self._digest, len(indices)),
            "kernel_index": indices,
            "name": pa.DictionaryArray.from_arrays(codes, names),
            **values,
        }
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(len(indices), field.type) for field in METRICS
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=METRICS)


class _Rows:
    """Rows on their way into Arrow columns."""

    def __init__(self, digest: str, schema: pa.Schema) -> None:
        self._digest = digest
        self._schema = schema
        self._blocks: list[pa.RecordBatch] = []
        self._start()

    def _start(self) -> None:
        self._indices: list[int] = []
        self._names: list[str] = []
        self._values: list[Value | None] = []
        self._places: list[int] = []
        self._keys: list[str | None] = []

    def extend(
        self,
        kernel_index: int,
        names: Iterable[str],
        values: Iterable[Value | None],
        places: Iterable[int] = (),
        keys: Iterable[str | None] = (),
    ) -> None:
        """Add rows of one result; `places` and `keys` belong to instances."""
        before = len(self._values)
        self._names.extend(names)
        self._values.extend(values)
        self._places.extend(places)
        self._keys.extend(keys)
        self._indices.extend(repeat(kernel_index, len(self._values) - before))
        if len(self._values) >= ROWS_PER_BLOCK:
            self._pack()

    def _pack(self) -> None:
        values = self._values
        rows = len(values)
        columns = {
            "digest": _repeated(self._digest, rows),
            "kernel_index": pa.array(self._indices, pa.int32()),
            "name": _encoded(self._names),
            "instance": pa.array(self._places, pa.int32()),
            "instance_key": _encoded(self._keys),
            **_value_columns(values),
        }
        arrays = [columns[name] for name in self._schema.names]
        self._blocks.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._start()

    def finish(self) -> pa.Table:
        self._pack()
        blocks, self._blocks = self._blocks, []
        return pa.Table.from_batches(blocks, schema=self._schema)


def _value_columns(values: Sequence[Value | None]) -> dict[str, pa.Array]:
    """Return a column for each kind of value; null where a value is of another kind."""
    return {
        "value_double": pa.array([value if type(value) is float else None for value in values], pa.float64()),
        "value_uint64": pa.array([value if type(value) is int else None for value in values], pa.uint64()),
        "value_string": _encoded([value if type(value) is str else None for value in values]),
    }


def _as_arrow(values: array[Any], kind: pa.DataType) -> pa.Array:
    """Make an Arrow array from the memory of an array, which can then no longer grow."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _repeated(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(_as_arrow(array("i", [0]) * count, pa.int32()), pa.array([text]))


def _encoded(texts: Sequence[str | None]) -> pa.DictionaryArray:
    """Encode texts by a dictionary, faster than Arrow does."""
    codes: dict[str, int] = {}
    indices = [None if text is None else codes.setdefault(text, len(codes)) for text in texts]
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(list(codes), pa.string()))
