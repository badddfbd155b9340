"""The rows of the tables `metrics` and `instances`: values as stored, packed block by block to keep memory small."""

from __future__ import annotations

from array import array
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rooflens.model.store.schema import INSTANCES, METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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

    def finish(self) -> tuple[pa.Table, pa.Table | None]:
        """Return the rows of both tables that were added since the last call."""
        return self._metrics.finish(), self._instances.finish() if self._instances else None


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
