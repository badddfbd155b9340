"""Make the content of a Parquet file, packed and sorted to be small."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rooflens.model.store.tables import TABLES

_GROUP_BYTES = 32 << 20
"""Bytes of a table in memory that become a row group."""

_SORTED = ("metrics", "instances")
"""Tables whose row groups are sorted by `name`: values of a metric are then neighbours, and compress well."""

_POSITION = "kernel_index"
"""An ascending column: its differences are packed."""

_VALUES_AT_ONCE = 1 << 16
"""Values of a column per call of its encoder; Arrow's default of 1,024 takes a third more time."""

_REPEATS = 0.5
"""A column with more distinct numbers is not dictionary-encoded."""

_FEW = 8
"""In a table with fewer rows, dictionaries and the least and greatest values take more room than they save."""


def file_of(table: str, rows: pa.Table) -> bytes:
    """Return the content of a Parquet file with some rows of a table."""
    if table in _SORTED:
        rows = rows.unify_dictionaries().combine_chunks()
    elif not rows.schema.equals(TABLES[table]):
        rows = rows.cast(TABLES[table])
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, **_encodings(table, rows)) as writer:
        row_count = max(1, _GROUP_BYTES * rows.num_rows // max(1, rows.nbytes))
        for start in range(0, rows.num_rows, row_count):
            group = rows.slice(start, row_count)
            if table in _SORTED:
                # Sorted by name, each column has runs of similar values, which compress better.
                group = group.take(pc.array_sort_indices(group["name"].combine_chunks().indices))
            writer.write_table(group, row_group_size=group.num_rows)
    return bytes(sink.getvalue())


def _encodings(table: str, rows: pa.Table) -> dict[str, Any]:
    """Choose encodings that suit the values.

    Repeating numbers are dictionary-encoded, others byte by byte: numbers of a quantity share their first bytes.
    Positions of kernels are stored as differences, because rows are in order.
    """
    common = {"compression": "zstd", "write_batch_size": _VALUES_AT_ONCE, "write_page_checksum": True}
    if rows.num_rows < _FEW:
        return {**common, "use_dictionary": False, "write_statistics": False, "store_schema": False}
    numbers = [field.name for field in TABLES[table] if field.type == pa.float64()]
    varied = [name for name in numbers if len(rows[name].unique()) > rows.num_rows * _REPEATS]
    steps: dict[str, Any] = {_POSITION: "DELTA_BINARY_PACKED"} if _POSITION in rows.column_names else {}
    return {
        **common,
        "compression_level": 3,
        "use_dictionary": [leaf for leaf in leaves(table) if leaf not in {*varied, _POSITION}],
        "column_encoding": {**steps, **dict.fromkeys(varied, "BYTE_STREAM_SPLIT")},
        "store_schema": False,
    }


@cache
def leaves(table: str) -> Mapping[str, str]:
    """Return the physical types of a Parquet file's columns; nested columns are named by their path."""
    buffer = pa.BufferOutputStream()
    pq.write_table(TABLES[table].empty_table(), buffer)
    schema = pq.ParquetFile(pa.BufferReader(buffer.getvalue())).schema
    return {schema.column(at).path: schema.column(at).physical_type for at in range(len(schema))}
