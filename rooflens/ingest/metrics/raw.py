"""Rows of the tables `metrics` and `instances`: values as stored, packed block by block to save memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import compress, repeat
from typing import Any

import pyarrow as pa

from rooflens.ingest.metrics.stored import Stored, Value
from rooflens.model.store.tables import INSTANCES, METRICS

ROWS_PER_BLOCK = 250_000
"""Values gathered before they are packed: some 15 MB as Python lists, a third of that packed."""


_COLUMN_KINDS: Mapping[type, Callable[[], Any]] = {
    float: lambda: array("d"),
    int: lambda: array("Q"),
    str: list,
    type(None): list,
}
"""Kinds of values, and their collectors."""

_MOST_KNOWN = 256
"""Cached sets of metric names: a report has a handful."""


class RawTable:
    """Collect the values of a report, and pack them block by block.

    Args:
        digest: SHA-256 of the report, in hex.
        with_instances: Whether to keep the values of instances too.
    """

    def __init__(self, digest: str, *, with_instances: bool = True) -> None:
        self._metrics = _Values(digest)
        self._instances = _Instances(digest) if with_instances else None
        self.with_instances = with_instances

    def add(self, kernel_index: int, values: Mapping[str, Value | None], instances: Mapping[str, Stored]) -> None:
        """Add all values of a result.

        Args:
            kernel_index: Its position in the report.
            values: Value by metric; None for a metric without an own value.
            instances: Metrics with instances, whose own values are in `values`.
        """
        bare = [name for name, stored in instances.items() if stored.values and values[name] is None]
        own = {name: value for name, value in values.items() if name not in bare} if bare else values
        self._metrics.add(kernel_index, own)
        if self._instances is not None:
            for name, stored in instances.items():
                self._instances.add(kernel_index, name, stored)

    def finish(self) -> tuple[pa.Table, pa.Table | None]:
        """Return the rows of both tables added since the last call."""
        return self._metrics.finish(), self._instances.finish() if self._instances else None


class _Values:
    """Rows of `metrics`, collected by the kind of their value.

    Results mostly store the same metrics with the same kinds of values, so the kinds of a set of names are found once.
    """

    def __init__(self, digest: str) -> None:
        self._digest = digest
        self._codes: dict[str, int] = {}
        self._known: dict[tuple[Any, ...], list[tuple[type, list[bool], array[int]]]] = {}
        self._blocks: list[pa.RecordBatch] = []
        self._start()

    def _start(self) -> None:
        self._rows = {kind: (array("i"), array("i"), start()) for kind, start in _COLUMN_KINDS.items()}

    def add(self, kernel_index: int, values: Mapping[str, Value | None]) -> None:
        """Add the values of a result."""
        found = tuple(values.values())
        for kind, are_of_kind, codes in self._kinds((*values,), (*map(type, found),)):
            indices, names, rows = self._rows[kind]
            indices.extend(array("i", [kernel_index]) * len(codes))
            names.extend(codes)
            rows.extend(compress(found, are_of_kind))
        if sum(len(rows) for *_, rows in self._rows.values()) >= ROWS_PER_BLOCK:
            self._pack()

    def _kinds(self, names: tuple[str, ...], types: tuple[type, ...]) -> list[tuple[type, list[bool], array[int]]]:
        """Return, for each kind of value, a mask of the metrics of that kind, and the codes of their names."""
        key = (*names, *types)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            masks = {kind: [one is kind for one in types] for kind in _COLUMN_KINDS if kind in types}
            self._known[key] = [
                (kind, mask, array("i", [self._codes.setdefault(n, len(self._codes)) for n in compress(names, mask)]))
                for kind, mask in masks.items()
            ]
        return self._known[key]

    def _pack(self) -> None:
        names = pa.array(list(self._codes), pa.string())
        for kind, (indices, codes, rows) in self._rows.items():
            if not rows:
                continue
            columns: dict[str, Any] = {
                "digest": _repeated_text(self._digest, len(rows)),
                "kernel_index": _as_arrow(indices, pa.int32()),
                "name": pa.DictionaryArray.from_arrays(_as_arrow(codes, pa.int32()), names),
                "value_double": _as_arrow(rows, pa.float64()) if kind is float else None,
                "value_uint64": _as_arrow(rows, pa.uint64()) if kind is int else None,
                "value_string": _encoded(rows) if kind is str else None,
            }
            arrays = [
                pa.nulls(len(rows), field.type) if columns[field.name] is None else columns[field.name]
                for field in METRICS
            ]
            self._blocks.append(pa.RecordBatch.from_arrays(arrays, schema=METRICS))
        self._start()

    def finish(self) -> pa.Table:
        """Return the rows added since the last call."""
        self._pack()
        blocks, self._blocks = self._blocks, []
        return pa.Table.from_batches(blocks, schema=METRICS)


class _Instances:
    """Rows of `instances` on their way into Arrow columns."""

    def __init__(self, digest: str) -> None:
        self._digest = digest
        self._blocks: list[pa.RecordBatch] = []
        self._start()

    def _start(self) -> None:
        self._indices, self._places = array("i"), array("i")
        self._names: list[str] = []
        self._values: list[Value | None] = []
        self._keys: list[str | None] = []

    def add(self, kernel_index: int, name: str, stored: Stored) -> None:
        """Add the instances of a result's metric."""
        count = len(stored.values)
        self._indices.extend(array("i", [kernel_index]) * count)
        self._names.extend(repeat(name, count))
        self._values.extend(stored.values)
        self._places.extend(range(count))
        self._keys.extend(repeat(None, count) if stored.keys is None else map(str, stored.keys))
        if len(self._values) >= ROWS_PER_BLOCK:
            self._pack()

    def _pack(self) -> None:
        values = self._values
        columns = {
            "digest": _repeated_text(self._digest, len(values)),
            "kernel_index": _as_arrow(self._indices, pa.int32()),
            "name": _encoded(self._names),
            "instance": _as_arrow(self._places, pa.int32()),
            "instance_key": _encoded(self._keys),
            "value_double": pa.array([value if type(value) is float else None for value in values], pa.float64()),
            "value_uint64": pa.array([value if type(value) is int else None for value in values], pa.uint64()),
            "value_string": _encoded([value if type(value) is str else None for value in values]),
        }
        arrays = [columns[name] for name in INSTANCES.names]
        self._blocks.append(pa.RecordBatch.from_arrays(arrays, schema=INSTANCES))
        self._start()

    def finish(self) -> pa.Table:
        """Return the rows added since the last call."""
        self._pack()
        blocks, self._blocks = self._blocks, []
        return pa.Table.from_batches(blocks, schema=INSTANCES)


def _as_arrow(values: array[Any], kind: pa.DataType) -> pa.Array:
    """Wrap an array's memory as an Arrow array; the array can no longer grow."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _repeated_text(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(_as_arrow(array("i", [0]) * count, pa.int32()), pa.array([text]))


def _encoded(texts: Sequence[str | None]) -> pa.DictionaryArray:
    codes: dict[str, int] = {}
    indices = [None if text is None else codes.setdefault(text, len(codes)) for text in texts]
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(list(codes), pa.string()))
