"""The rows of `metrics` and `instances`: every stored value as it was, packed in blocks to keep large reports small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rooflens.model.store.schema import INSTANCES

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS_PER_BLOCK = 250_000
"""Python lists of so many values take some 50 MB; packed they take a tenth."""


class RawTable:
    """Gather the values of one report, and pack them block by block."""

    def __init__(self, digest: str, clean: Callable[[str], str]) -> None:
        self._digest = digest
        self._clean = clean
        self._blocks: list[pa.RecordBatch] = []
        self._start()

    def _start(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in INSTANCES.names if name != "digest"}

    def add(self, kernel_index: int, name: str, value: Any, instance: int | None = None, key: Any = None) -> None:
        """Add one value under the column of its type.

        Args:
            kernel_index: Position of the result in the report.
            name: Metric as stored.
            value: A float, an int, a text, or None where the metric has instances only.
            instance: Position among the metric's instances; None for its own value.
            key: The instance's correlation key, as an opcode.
        """
        columns = self._columns
        columns["kernel_index"].append(kernel_index)
        columns["name"].append(self._clean(name))
        columns["instance"].append(instance)
        columns["instance_key"].append(None if key is None else self._clean(str(key)))
        columns["value_double"].append(value if isinstance(value, float) else None)
        columns["value_uint64"].append(value if isinstance(value, int) else None)
        columns["value_string"].append(self._clean(value) if isinstance(value, str) else None)
        if len(columns["name"]) >= ROWS_PER_BLOCK:
            self._pack()

    def _pack(self) -> None:
        rows = len(self._columns["name"])
        digests = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), [self._digest])
        arrays = [
            digests if field.name == "digest" else pa.array(self._columns[field.name], type=field.type)
            for field in INSTANCES
        ]
        self._blocks.append(pa.RecordBatch.from_arrays(arrays, schema=INSTANCES))
        self._start()

    def finish(self) -> pa.Table:
        """Return all rows, with the schema `INSTANCES`."""
        self._pack()
        return pa.Table.from_batches(self._blocks, schema=INSTANCES)
