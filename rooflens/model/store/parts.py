"""Parts: the tables of many reports in one file each, written by whoever read them.

A part is known by its key, 64 hex digits: `<table>/<key>.parquet`. Its files mean nothing until the one in `runs` is
there: it comes last, and its metadata holds what the others must be (`Committed`). So a worker on any machine can
write a part (`write_part`, `PartWriter`), hand the little `PartSummary` back, and whoever holds the store commits it.

A part of a store written before 24 November 2026 may have more files than one a table: several workers each wrote a
part of their own, whose keys begin alike, and one commit names them all.
"""

from __future__ import annotations

import json
import re
import secrets
from contextlib import ExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import msgspec.json
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct, field

from rooflens.model.store.place import Place
from rooflens.model.store.rows import ReportRows, report_tables
from rooflens.model.store.schema import DATA, RUNS, SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rooflens.model.store.place import Hashing

FILE_NAME = re.compile(r"([0-9a-f]{64})\.parquet")
"""The names that we write, and the only ones that are ever removed."""

PART_BYTES = 128 << 20
"""A part that has grown to this, in all of its files, is closed; the next report goes into another."""

_ALWAYS = ("kernels", "hotspots", "unprofiled")
"""Tables that a part has even without rows, so that queries over the folders find one."""

_ROWS = {"kernels": 16_384, "metrics": 1 << 19, "instances": 1 << 19}
_ROWS_OF_OTHERS = 65_536
"""Rows of a row group: what is held in memory before it is written."""

_KERNELS_AT_ONCE, _RAW_BYTES_AT_ONCE = 512, 64 << 20
"""What is gathered of reports before tables are made of it."""

_SORTED = {"metrics": ("name", "digest", "kernel_index"), "instances": ("name", "digest", "kernel_index", "instance")}
"""Tables that are sorted within each row group: values of one metric stand together, and pack well."""

_POSITION = "kernel_index"
"""A column in ascending runs: what is packed is how far each value is from the one before."""

_VALUES_AT_ONCE = 1 << 16
"""So many values of a column are handed to its encoder together; Arrow's own 1,024 cost a third more time."""

_REPEATS = 0.5
"""A column of numbers of which more are distinct is not packed as one of numbers that repeat."""

_META = b"rooflens"
_GROUP_DIGITS = 32
"""Keys of parts that were written to be one begin with the same so many digits."""

LEVEL, COMPACT_LEVEL = 3, 12
"""Compression levels of zstd, for a part that is read in and for one that is compacted."""


class FileSummary(Struct, frozen=True):
    """What one file of a part must be.

    Attributes:
        sha256: Of its bytes, in hex.
    """

    rows: int
    sha256: str
    byte_count: int


class PartSummary(Struct, frozen=True):
    """A part that is written and not committed.

    Attributes:
        key: Its name, 64 hex digits.
        files: Its files by table.
        runs: Its rows of `runs`, in the order in which the reports stand in it.
        more: Files that come after these, by their own key and table: other workers wrote them.
    """

    key: str
    files: Mapping[str, FileSummary]
    runs: pa.Table
    more: Mapping[str, Mapping[str, FileSummary]] = field(default_factory=dict)

    @property
    def digests(self) -> tuple[str, ...]:
        """The reports it holds."""
        return tuple(self.runs["digest"].to_pylist())

    def all_files(self) -> Iterator[tuple[str, str, FileSummary]]:
        """Yield table, key and summary of each file."""
        return _all_files(self)


class Committed(Struct, frozen=True):
    """What the metadata of a file in `runs` says of its part.

    Attributes:
        replaces: Keys of the parts whose reports stand in this one: readers leave them out, a writer removes them.
        committed_unix_ns: When it was committed: of a report in two parts the later one counts.
        is_compact: Whether compaction made it, at the higher compression level.
    """

    key: str
    files: Mapping[str, FileSummary]
    replaces: tuple[str, ...]
    committed_unix_ns: int
    is_compact: bool = False
    schema_version: int = SCHEMA_VERSION
    more: Mapping[str, Mapping[str, FileSummary]] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its files, its own first."""
        return (self.key, *self.more)

    def all_files(self) -> Iterator[tuple[str, str, FileSummary]]:
        """Yield table, key and summary of each file."""
        return _all_files(self)

    def to_metadata(self) -> dict[bytes, bytes]:
        """Write it as the metadata of a Parquet schema."""
        return {_META: msgspec.json.encode(self)}

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None) -> Committed:
        """Read what `to_metadata` wrote.

        Raises:
            ValueError: It is missing, or not in that form.
        """
        try:
            values = json.loads((metadata or {})[_META])
            files = _files_from(values.pop("files"))
            more = {key: _files_from(found) for key, found in values.pop("more", {}).items()}
            return cls(**{**values, "files": files, "more": more, "replaces": tuple(values["replaces"])})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("it has no metadata of a store") from error


def _files_from(values: Mapping[str, Mapping[str, Any]]) -> dict[str, FileSummary]:
    return {name: FileSummary(**file) for name, file in values.items() if name in DATA}


def _all_files(part: PartSummary | Committed) -> Iterator[tuple[str, str, FileSummary]]:
    for key, files in {part.key: part.files, **part.more}.items():
        for table, file in files.items():
            yield table, key, file


def group_of(key: str) -> str:
    """Return the prefix that a key shares with the parts that it is joined with."""
    return key[:_GROUP_DIGITS]


class PartWriter:
    """Write a part report by report, in bounded memory.

    with PartWriter(place) as writer:
        for report in reports:
            writer.add_report(ReportRows(report.run, report.kernels, metrics=report.raw))
    store.commit(writer.summary)
    """

    def __init__(self, place: Place, *, level: int = LEVEL) -> None:
        self.key = secrets.token_hex(_GROUP_DIGITS)
        self._place = place
        self._level = level
        self._stack = ExitStack()
        self._files: dict[str, _TableFile] = {}
        self._runs: list[pa.Table] = []
        self._digests: set[str] = set()
        self._reports: list[ReportRows] = []
        self._kernel_count = self._raw_bytes = 0
        self._summary: PartSummary | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, trace: object) -> None:
        with self._stack:  # which syncs and renames the files, or removes them
            if failure is not None:
                self._abandon()
                raise failure
            try:
                self._finish()
            except BaseException:
                self._abandon()
                raise
        files = {name: file.summary() for name, file in self._files.items()}
        self._summary = PartSummary(self.key, files, pa.concat_tables(self._runs) if self._runs else RUNS.empty_table())

    @property
    def byte_count(self) -> int:
        """Bytes written so far; of what is held in memory, what it takes there."""
        return self._raw_bytes + sum(file.byte_count for file in self._files.values())

    @property
    def summary(self) -> PartSummary:
        """What was written, once the writer is closed."""
        if self._summary is None:
            raise RuntimeError("the part is not written yet")
        return self._summary

    def add_report(self, report: ReportRows) -> None:
        """Add one report, unless the part has it already.

        Raises:
            OSError: The place cannot be written to.
        """
        self._reports.append(report)
        self._kernel_count += max(1, report.kernel_count)
        self._raw_bytes += sum(int(raw.nbytes) for raw in (report.metrics, report.instances) if raw is not None)
        if self._kernel_count >= _KERNELS_AT_ONCE or self._raw_bytes >= _RAW_BYTES_AT_ONCE:
            self._add_reports()

    def _add_reports(self) -> None:
        reports, self._reports, self._kernel_count, self._raw_bytes = self._reports, [], 0, 0
        if reports:
            self.add(report_tables(*{report.run.digest: report for report in reports}.values()))

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Add the tables of one report, or of several, `runs` among them; reports that it has already are left out.

        Raises:
            OSError: The place cannot be written to.
        """
        known = self._digests & {*tables["runs"]["digest"].to_pylist()} if "runs" in tables else frozenset[str]()
        for name, table in tables.items():
            rows = _without(table, known)
            if name == "runs":
                self._runs.append(rows)
                self._digests |= {*rows["digest"].to_pylist()}
            elif rows.num_rows:
                self._file(name).add(rows)

    def _file(self, table: str) -> _TableFile:
        if table not in self._files:
            self._place.make(table)
            sink = self._stack.enter_context(self._place.writing(table, f"{self.key}.parquet"))
            self._files[table] = _TableFile(table, sink, self._level)
        return self._files[table]

    def _finish(self) -> None:
        self._add_reports()
        if self._runs:
            for name in _ALWAYS:
                self._file(name)
        for file in self._files.values():
            file.close()

    def _abandon(self) -> None:
        """Close the writers of files that are about to be removed; when collected, they would close with errors."""
        for file in self._files.values():
            with suppress(Exception):
                file.abandon()


def write_part(place: Place | str, tables: Mapping[str, pa.Table]) -> PartSummary:
    """Write the tables of some reports as one part; nothing shows before `Store.commit` has its summary.

    Args:
        place: The store. It need not be open here: another process may hold it.
        tables: As `report_tables` makes them, those of several reports one after the other.

    Raises:
        OSError: The place cannot be written to.
    """
    with PartWriter(Place(place)) as writer:
        writer.add(tables)
    return writer.summary


def _without(rows: pa.Table, digests: Collection[str]) -> pa.Table:
    if not digests or "digest" not in rows.column_names:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["digest"].cast(pa.string()), pa.array(digests, pa.string()))))


class _TableFile:
    """One file of a part that is being written, row group by row group."""

    def __init__(self, table: str, sink: Hashing, level: int) -> None:
        self._table = table
        self._sink = sink
        self._level = level
        self._writer: pq.ParquetWriter | None = None
        self._rows_per_group = _ROWS.get(table, _ROWS_OF_OTHERS)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._rows = 0

    @property
    def byte_count(self) -> int:
        return self._sink.byte_count + sum(int(table.nbytes) for table in self._waiting)

    def add(self, table: pa.Table) -> None:
        self._waiting.append(table.select(TABLES[self._table].names))
        self._waiting_rows += table.num_rows
        while self._waiting_rows >= self._rows_per_group:
            self._flush(self._rows_per_group)

    def _flush(self, rows: int) -> None:
        if not rows:
            return
        whole = pa.concat_tables(self._waiting)
        group, rest = whole.slice(0, rows).unify_dictionaries(), whole.slice(rows)
        keys = _SORTED.get(self._table)
        if self._writer is None:
            self._writer = writer_of(self._table, self._sink, group, self._level)
        self._writer.write_table(sorted_by(group, keys) if keys else group, row_group_size=self._rows_per_group)
        self._rows += group.num_rows
        self._waiting, self._waiting_rows = ([rest], rest.num_rows) if rest.num_rows else ([], 0)

    def close(self) -> None:
        if self._waiting_rows:
            self._flush(self._waiting_rows)
        if self._writer is None:
            self._writer = writer_of(self._table, self._sink, TABLES[self._table].empty_table(), self._level)
        self._writer.close()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def summary(self) -> FileSummary:
        return FileSummary(self._rows, self._sink.sha256, self._sink.byte_count)


def writer_of(table: str, sink: Any, sample: pa.Table, level: int = LEVEL) -> pq.ParquetWriter:
    """Open a Parquet writer for a table, encoded for values like those of a sample of its rows.

    Numbers that repeat are packed as places in a list of them, others byte by byte: the first bytes of one quantity are
    alike where the last are not. Positions of kernels are packed as steps, for rows stand in their order. The sample
    may have its texts packed, as all rows have them then.
    """
    numbers = [field.name for field in TABLES[table] if field.type == pa.float64()]
    varied = [name for name in numbers if len(sample[name].unique()) > sample.num_rows * _REPEATS]
    return pq.ParquetWriter(
        sink,
        sample.schema,
        compression="zstd",
        compression_level=level,
        write_batch_size=_VALUES_AT_ONCE,
        use_dictionary=[path for path in _leaves(table) if path not in {*varied, _POSITION}],
        column_encoding={_POSITION: "DELTA_BINARY_PACKED", **dict.fromkeys(varied, "BYTE_STREAM_SPLIT")},
        store_schema=table
        in _SORTED,  # keeps texts that repeat packed when they are read; costs 20 KB with 200 columns
    )


@cache
def _leaves(table: str) -> tuple[str, ...]:
    """Return the columns of the Parquet file: those of nested ones by their path in it."""
    buffer = pa.BufferOutputStream()
    pq.write_table(TABLES[table].empty_table(), buffer)
    found = pq.ParquetFile(pa.BufferReader(buffer.getvalue())).schema
    return tuple(found.column(position).path for position in range(len(found)))


def sorted_by(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Sort by columns, of which texts are packed: by their text, not by its number.

    Texts are sorted by their rank, which costs next to nothing; mostly what has one name is then in order already.
    """
    whole = table.unify_dictionaries().combine_chunks()
    if _is_sorted([_ranks(whole[name]) for name in keys]):
        return whole
    for name in reversed(keys):
        if pa.types.is_dictionary(whole[name].type):
            ranks = _ranks(whole[name])
            if len(ranks) and pc.min(ranks) != pc.max(ranks):
                whole = whole.take(pc.sort_indices(ranks))
    columns = {name: _ranks(whole[name]) for name in keys}
    return whole.take(pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in keys]))


def _ranks(column: pa.ChunkedArray) -> pa.Array:
    """Return the places of packed texts among all of them, and another column as it is, of one chunk at most."""
    if not column.num_chunks:
        return pa.nulls(0, pa.int32())
    (chunk,) = column.chunks
    if not pa.types.is_dictionary(chunk.type):
        return chunk
    ranks = pc.sort_indices(pc.sort_indices(chunk.dictionary)).cast(pa.int32())
    return chunk.indices if _is_sorted([ranks]) else ranks.take(chunk.indices)


def _is_sorted(columns: Sequence[pa.Array]) -> bool:
    """Return whether rows are in ascending order of some columns."""
    is_equal: Any = True
    for column in columns:
        numbers = column.to_numpy(zero_copy_only=False)
        before, after = numbers[:-1], numbers[1:]
        if (is_equal & (before > after)).any():
            return False
        is_equal &= before == after
    return True


def write_commit(place: Place, runs: pa.Table, commit: Committed) -> None:
    """Write the file in `runs`: from then on the part is there.

    Raises:
        OSError: The place cannot be written to.
    """
    buffer = pa.BufferOutputStream()
    table = runs.replace_schema_metadata(commit.to_metadata())
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    place.make("runs")
    place.write_bytes(buffer.getvalue().to_pybytes(), "runs", f"{commit.key}.parquet")


def read_commit(place: Place, key: str) -> tuple[Committed, pa.Table]:
    """Read a file in `runs`.

    Raises:
        OSError: It cannot be read.
        ValueError: It is damaged, or of another part; Arrow's errors are such.
    """
    with place.open("runs", f"{key}.parquet") as stream:
        file = pq.ParquetFile(stream, page_checksum_verification=True)
        commit = Committed.from_metadata(file.schema_arrow.metadata)
        if commit.key != key:
            raise ValueError("it is the file of another part")
        if commit.schema_version != SCHEMA_VERSION:
            raise ValueError(f"it has schema version {commit.schema_version}, this is {SCHEMA_VERSION}")
        return commit, file.read().select(RUNS.names)
