"""What an analysis adds to the parts of a store: the tables of `VERDICTS`, stamped with what made them."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.parquet as pq

from rooflens.errors import InputError
from rooflens.model.analyze import MODEL_VERSION
from rooflens.model.store.index import open_all_checked
from rooflens.model.store.parts import writer_of
from rooflens.model.store.schema import TABLES, VERDICTS
from rooflens.model.store.tables.findings import finding_table
from rooflens.model.store.tables.roofline import roofline_table
from rooflens.model.store.tables.totals import total_table, totals_from_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflens.model.records import Analysis
    from rooflens.model.store.index import Index, Part
    from rooflens.model.store.place import Place
    from rooflens.model.totals import Total
    from rooflens.model.verdict.thresholds import Thresholds

_AT_ONCE = 4096
"""Kernels whose rows are made together."""

_MAKERS: dict[str, Callable[[Sequence[Analysis], int, str], pa.Table]] = {
    "roofline": roofline_table,
    "findings": finding_table,
}
_STAMP = b"rooflens_verdicts"


def verdict_tables(analyses: Sequence[Analysis], thresholds_digest: str) -> dict[str, pa.Table]:
    """Make the rows of analyzed kernels for the tables that are written as they come, wherever they are analyzed."""
    return {table: make(analyses, MODEL_VERSION, thresholds_digest) for table, make in _MAKERS.items()}


def stamp_of(limits: Thresholds, known: str) -> bytes:
    """Return what verdicts depend on: the model, the thresholds, and `known` from outside the store."""
    return f"{MODEL_VERSION} {limits.digest} {known}".encode()


class VerdictWriter:
    """Write positions, verdicts and findings beside their parts, as they come; what is current is left alone.

    Reports come in the order of the store, large ones in pieces. A part of which not all reports come is left as it is.
    Within `with`; the caller has locked the store.
    """

    def __init__(self, place: Place, index: Index, stamp: bytes, thresholds_digest: str) -> None:
        self._place = place
        self._index = index
        self._stamp = stamp
        self._thresholds_digest = thresholds_digest
        self._part: _PartVerdicts | None = None
        self._done: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._close(is_whole=kind is None)

    def add(self, digests: Sequence[str], tables: Mapping[str, pa.Table], kernel_count: int) -> None:
        """Take some reports of a part, or a piece of one.

        Args:
            digests: The reports.
            tables: As `verdict_tables` makes them; none where none are needed.
            kernel_count: How many kernels these are.

        Raises:
            OSError: The store cannot be written to.
        """
        part = self._part_of(digests[0]) if digests else None
        if part is not None:
            part.given.update(digests)
            part.add(tables, kernel_count)

    def add_totals(self, digest: str, totals: Sequence[Total]) -> None:
        """Take the totals of a report, after its last piece."""
        part = self._part_of(digest)
        if part is not None:
            part.totals += totals

    def leave_totals(self, digest: str) -> None:
        """Leave out the totals of a report's part, so that it is analyzed again."""
        part = self._part_of(digest)
        if part is not None and "totals" in part.needed:
            part.needed.remove("totals")

    def leave(self, digest: str) -> None:
        """Leave a report's part as it is."""
        part = self._part_of(digest)
        if part is not None:
            part.is_left = True

    def _part_of(self, digest: str) -> _PartVerdicts | None:
        """Return the writer of a report's part; None where it has none, or where the part is done."""
        key = self._index.owner.get(digest)
        if self._part is not None and self._part.key == key:
            return self._part
        if key is None or key in self._done:
            return None
        self._close(is_whole=True)
        self._done.add(key)
        digests = frozenset(self._index.digests_of(self._index.parts[key]))
        self._part = _PartVerdicts(self._place, key, digests, self._stamp, self._thresholds_digest)
        return self._part

    def _close(self, *, is_whole: bool) -> None:
        if self._part is not None:
            part, self._part = self._part, None
            part.close(is_whole=is_whole)


class _Abandoned(Exception):  # noqa: N818 - it says that a file is not to be, and is no error
    """What was written does not take its place."""


class _PartVerdicts:
    """The files of one part while they are written."""

    def __init__(self, place: Place, key: str, digests: frozenset[str], stamp: bytes, thresholds_digest: str) -> None:
        self.key = key
        self.given: set[str] = set()
        self.totals: list[Total] = []
        self.is_left = False
        self._place = place
        self._digests = digests
        self._stamp = stamp
        self._thresholds_digest = thresholds_digest
        self.needed = missing_verdicts(place, key, stamp)
        self._held: list[Mapping[str, pa.Table]] = []
        self._held_count = 0
        self._kernel_count = 0
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._stack = ExitStack()

    def add(self, tables: Mapping[str, pa.Table], kernel_count: int) -> None:
        self._kernel_count += kernel_count
        if tables and self.needed:
            self._held.append(tables)
            self._held_count += kernel_count
            if self._held_count >= _AT_ONCE:
                self._flush()

    def close(self, *, is_whole: bool) -> None:
        """Put the files in their place, if all reports came; else nothing was."""
        if not (is_whole and self._kernel_count and not self.is_left and self.given == self._digests):
            self._abandon()
            return
        try:
            self._flush()
            if "totals" in self.needed:
                self._write("totals", total_table(self.totals, MODEL_VERSION, self._thresholds_digest))
            for writer in self._writers.values():
                writer.add_key_value_metadata({_STAMP: self._stamp})
        except BaseException:
            self._abandon()
            raise
        self._stack.close()

    def _flush(self) -> None:
        held, self._held, self._held_count = self._held, [], 0
        for table in _MAKERS:
            if table in self.needed and held:
                self._write(table, pa.concat_tables([tables[table] for tables in held]).unify_dictionaries())

    def _write(self, table: str, rows: pa.Table) -> None:
        if table not in self._writers:
            self._place.make(table)
            sink = self._stack.enter_context(self._place.writing(table, f"{self.key}.parquet"))
            self._writers[table] = self._stack.enter_context(writer_of(table, sink, rows))
        self._writers[table].write_table(rows)

    def _abandon(self) -> None:
        error = _Abandoned()
        self._stack.__exit__(_Abandoned, error, None)
        if self._place.is_remote:
            for table in self._writers:
                self._place.remove(table, f"{self.key}.parquet")


def read_totals(place: Place, part: Part, digests: frozenset[str], stamp: bytes) -> list[Total] | None:
    """Return the totals of reports of a part; None where they are not stored so, or the part must be read.

    That is so where a file of it is damaged, and where a program ran without the profiler, which tells more.
    """
    if any(_stamp_of(place, table, part.key) != stamp for table in (*_MAKERS, "totals")):
        return None
    try:
        for table in ("kernels", "hotspots", "unprofiled"):
            for file in open_all_checked(place, part, table):
                file.close()
        if "unprofiled" in part.commit.files and part.commit.files["unprofiled"].rows:
            return None
        with place.open("totals", f"{part.key}.parquet") as file:
            sources = {digest: run.source for digest, run in part.runs.items()}
            stored = totals_from_table(pq.ParquetFile(file).read(), sources)
            return [total for total in stored if total.digest in digests]
    except (InputError, OSError, ValueError, TypeError, KeyError):
        return None


def merge_verdicts(place: Place, keys: Sequence[str], into: str) -> None:
    """Merge the verdicts of merged parts where all have the same stamp; else the next analysis writes them.

    Raises:
        OSError: The store cannot be written to.
    """
    for table in VERDICTS:
        stamps = {_stamp_of(place, table, key) for key in keys}
        (stamp, *others) = stamps
        if stamp is not None and not others:
            _write(place, f"{table}/{into}.parquet", stamp, _stored(place, table, keys))


def _stored(place: Place, table: str, keys: Sequence[str]) -> Iterator[pa.Table]:
    for key in keys:
        with place.open(table, f"{key}.parquet") as file:
            for batch in pq.ParquetFile(file).iter_batches(65_536):
                yield pa.Table.from_batches([batch]).cast(TABLES[table])


def _write(place: Place, file: str, stamp: bytes, tables: Iterator[pa.Table]) -> None:
    table, _, name = file.partition("/")
    first = next(tables, TABLES[table].empty_table())
    place.make(table)
    with place.writing(table, name) as sink, writer_of(table, sink, first) as writer:
        for rows in chain([first], tables):
            writer.write_table(rows)
        writer.add_key_value_metadata({_STAMP: stamp})


def missing_verdicts(place: Place, key: str, stamp: bytes) -> list[str]:
    """Return the tables of a part that are missing or have another stamp."""
    return [table for table in (*_MAKERS, "totals") if _stamp_of(place, table, key) != stamp]


def _stamp_of(place: Place, table: str, key: str) -> bytes | None:
    """Return the stamp of a file of verdicts; None where the file is missing or damaged."""
    try:
        with place.open(table, f"{key}.parquet") as file:
            return (pq.ParquetFile(file).metadata.metadata or {}).get(_STAMP)
    except (OSError, ValueError):
        return None
