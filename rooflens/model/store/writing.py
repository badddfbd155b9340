"""Write the files of an ingest or analysis, row group by row group, packed and sorted to be small."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rooflens.model.store.tables import RUN_ID, TABLES

_GROUP_BYTES = 32 << 20
"""Bytes of a table in memory before it is written as a row group."""

_ROWS_AT_ONCE = 1 << 18
"""Rows of a larger table that are added at a time."""

ALWAYS = ("kernels", "hotspots", "unprofiled")
"""Tables that an ingest writes even without rows, so that queries over their folders find a file."""

_SORTED = ("metrics", "instances")
"""Tables whose row groups are sorted by `name`: values of a metric are then neighbours, and compress well."""

_POSITION = "kernel_index"
"""An ascending column: its differences are packed."""

_VALUES_AT_ONCE = 1 << 16
"""Values of a column per call of its encoder; Arrow's default of 1,024 takes a third more time."""

_REPEATS = 0.5
"""A column with more distinct numbers is not dictionary-encoded."""

STAMP = b"rooflens_analysis"
"""Name of the note in a `roofline` file about what its verdicts depend on."""

FILES = b"rooflens_files"
"""Name of the note in a committing file: the size in bytes of each file that it commits, by table."""

COMMITTING = ("roofline", "runs")
"""Tables whose file commits the files put in place before it."""

_BY_THEMSELVES = ("failures",)
"""Tables that nothing commits: without their file no report is incomplete."""


class Writer:
    """The files of an ingest or analysis while they are written.

    Attributes:
        id: The name of the files; names sort by the time at which writing began.
        started_unix_ns: That time.
        run_ids: The run of each added report, by digest.
    """

    def __init__(self, folder: Path, file_id: str, stored: Collection[str] = ()) -> None:
        """Write to a folder; reports whose digests are in `stored` are not added again."""
        self.id = file_id
        self.started_unix_ns = begun_unix_ns(file_id)
        self.run_ids: dict[str, str] = {}
        self._folder = folder
        self._stored = stored
        self._files: dict[str, _TableFile] = {}

    def add_reports(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Add the tables of some reports, `runs` among them; return the new rows of `runs`."""
        digests = dict.fromkeys(tables["runs"]["digest"].to_pylist())
        unknown = [digest for digest in digests if digest not in self.run_ids and digest not in self._stored]
        new = {digest: f"{self.id}-{len(self.run_ids) + at}" for at, digest in enumerate(unknown)}
        self.run_ids |= new
        if new:
            for table in ALWAYS:
                self._file(table)
        for table, rows in tables.items():
            self.add(table, rows, new)
        return tables["runs"].filter(pc.is_in(tables["runs"]["digest"], pa.array([*new], pa.string())))

    def add(self, table: str, rows: pa.Table, run_ids: Mapping[str, str]) -> None:
        """Add rows of some reports, given the run of each by digest; rows of other reports are left out."""
        made = _of_runs(rows, run_ids)
        for field in TABLES[table]:
            if field.name.endswith("_unix_ns") and field.name not in made.column_names:
                made = made.append_column(field, pa.repeat(pa.scalar(self.started_unix_ns), made.num_rows))
        self.add_rows(table, made)

    def add_rows(self, table: str, rows: pa.Table) -> None:
        """Add rows unchanged."""
        self._file(table).add(rows.select(TABLES[table].names))

    def stamp(self, stamp: str) -> None:
        """Note in the `roofline` file what its verdicts depend on."""
        self._file("roofline").notes[STAMP] = stamp.encode()

    def close(self) -> dict[str, Path]:
        """Complete the files; return them by table, in the order in which to put them in place.

        The committing file notes the sizes of the others.
        """
        files = {table: self._files[table] for table in TABLES if table in self._files}
        byte_counts: dict[str, int] = {}
        for table, file in files.items():
            if table in COMMITTING:
                file.notes[FILES] = json.dumps(byte_counts).encode()
            file.close()
            if table not in _BY_THEMSELVES:
                byte_counts[table] = file.path.stat().st_size
        return {table: file.path for table, file in files.items()}

    def _file(self, table: str) -> _TableFile:
        if table not in self._files:
            self._files[table] = _TableFile(table, self._folder / f"{table}.parquet")
        return self._files[table]


def new_id() -> str:
    """Return a new unique name for files, which begins with the time."""
    return f"{time.time_ns():016x}{secrets.token_hex(4)}"


def begun_unix_ns(file_id: str) -> int:
    """Return the time at which files were begun, from their name."""
    return int(file_id[:16], 16)


class _TableFile:
    """One file, written row group by row group."""

    def __init__(self, table: str, path: Path) -> None:
        self.path = path
        self.notes: dict[bytes, bytes] = {}
        self._table = table
        self._rows: list[pa.Table] = []
        self._byte_count = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: pa.Table) -> None:
        for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
            self._rows.append(rows.slice(start, _ROWS_AT_ONCE))
            self._byte_count += self._rows[-1].nbytes
            if self._byte_count >= _GROUP_BYTES:
                self._flush()

    def close(self) -> None:
        writer = self._flush() if self._rows or self._writer is None else self._writer
        writer.add_key_value_metadata(self.notes)
        writer.close()

    def _flush(self) -> pq.ParquetWriter:
        rows = pa.concat_tables(self._rows) if self._rows else TABLES[self._table].empty_table()
        self._rows, self._byte_count = [], 0
        rows = rows.unify_dictionaries().combine_chunks()
        if self._table in _SORTED and rows.num_rows:
            # Sorted by name, each column has runs of similar values, which compress better.
            names = rows["name"].chunk(0).indices.to_numpy()
            rows = rows.take(pa.array(np.argsort(names, kind="stable")))
        if self._writer is None:
            self._writer = _writer(self._table, self.path, rows)
        if rows.num_rows:
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        return self._writer


def _of_runs(rows: pa.Table, run_ids: Mapping[str, str]) -> pa.Table:
    """Prepend each row's run, and drop the digest, which only `runs` keeps."""
    digests = rows["digest"]
    if not pa.types.is_dictionary(digests.type):
        digests = digests.dictionary_encode()
    packed = digests.unify_dictionaries().combine_chunks()
    known = packed.dictionary.to_pylist()
    # Reports that are stored already, or came twice, have no run here; SQL would count their rows twice.
    if any(digest not in run_ids for digest in known):
        wanted = rows.filter(pc.is_in(packed.cast(pa.string()), pa.array([*run_ids], pa.string())))
        return _of_runs(wanted.set_column(0, "digest", wanted["digest"].cast(pa.string())), run_ids)
    owners = pa.array([run_ids[digest] for digest in known], pa.string())
    column = pa.DictionaryArray.from_arrays(packed.indices.cast(pa.int32()), owners)
    return rows.add_column(0, RUN_ID.name, column)


def _writer(table: str, path: Path, sample: pa.Table) -> pq.ParquetWriter:
    """Open a Parquet writer whose encodings suit values like those in a sample of its rows.

    Repeating numbers are dictionary-encoded, others byte by byte: numbers of a quantity share their first bytes.
    Positions of kernels are stored as differences, because rows are in order.
    """
    numbers = [field.name for field in TABLES[table] if field.type == pa.float64()]
    varied = [name for name in numbers if len(sample[name].unique()) > sample.num_rows * _REPEATS]
    steps: dict[str, Any] = {_POSITION: "DELTA_BINARY_PACKED"} if _POSITION in sample.column_names else {}
    return pq.ParquetWriter(
        path,
        sample.schema,
        compression="zstd",
        compression_level=3,
        write_batch_size=_VALUES_AT_ONCE,
        write_page_checksum=True,
        use_dictionary=[leaf for leaf in leaves(table) if leaf not in {*varied, _POSITION}],
        column_encoding={**steps, **dict.fromkeys(varied, "BYTE_STREAM_SPLIT")},
        store_schema=table in _SORTED,  # texts are read dictionary-encoded; costs 20 KB with 200 columns
    )


@cache
def leaves(table: str) -> Mapping[str, str]:
    """Return the physical types of a Parquet file's columns; nested columns are named by their path."""
    buffer = pa.BufferOutputStream()
    pq.write_table(TABLES[table].empty_table(), buffer)
    schema = pq.ParquetFile(pa.BufferReader(buffer.getvalue())).schema
    return {schema.column(at).path: schema.column(at).physical_type for at in range(len(schema))}
