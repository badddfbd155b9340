"""The store: Parquet files in a folder or at an address, one for each table and report, named by the report's digest.

    store/kernels/<digest>.parquet, store/metrics/<digest>.parquet, ...    what was measured
    store/runs/<digest>.parquet                                            where it came from; it comes last
    store/verdicts/<digest>.parquet, findings, roofline                    what an analysis found
    store/views.sql                                                        the tables as views, for DuckDB
    store/.writing-<id>/                                                   what is being written

What is stored of a report depends on the report alone: to write it again, or twice at once, changes nothing. Each file
appears complete, and the one in `runs` when all others of the report are there: what it does not name was never stored.
It notes their sizes; a report whose files are missing or cut is named, read as far as possible, and stored again when
it is next ingested. Nothing is locked.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from msgspec import MsgspecError, Struct

from rooflens.errors import InputError
from rooflens.model.analyze import MODEL_VERSION
from rooflens.model.records import Analysis, AnalyzedReport, Kernel, Run
from rooflens.model.store import MARKER
from rooflens.model.store.files import Files
from rooflens.model.store.tables import (
    METRICS,
    SCHEMA_VERSION,
    TABLES,
    ReportRows,
    analysis_of,
    failure_table,
    finding_table,
    hotspots_from_table,
    kernels_from_table,
    report_tables,
    roofline_table,
    run_table,
    runs_from_table,
    unprofiled_from_row,
    unprofiled_table,
    verdict_table,
)
from rooflens.model.store.views import views_of
from rooflens.model.store.writing import file_of, leaves
from rooflens.model.unprofiled import Unprofiled

VIEWS = "views.sql"

_FILE_NAME = re.compile(r"([0-9a-f]{64})\.parquet")

_KERNELS_AT_ONCE, _REPORTS_AT_ONCE = 2048, 256
"""Kernels, some 20 MB, or reports that are read together."""

SUMMED_AT_ONCE = 1 << 17
"""Kernels of which a few columns are read together: the same."""

_REPLACED = frozenset({"unprofiled"})
"""Tables of an ingest whose file a later one replaces: `runs` notes that there is one, but not its size."""

_OF_KERNELS = ("kernels", "hotspots")
"""Tables needed to read any kernel."""

_REPORTS_NAMED = 3
"""Reports or folders named in a hint; there may be thousands."""

_STAMP = ("model_version", "inputs_digest")
"""Columns of `verdicts` that tell what they depend on."""

_OF_ANALYSIS = ("digest", "kernel_index", "analysis", *_STAMP)
"""Columns of `verdicts` that hold an analysis."""

_DAMAGE = (OSError, ValueError, TypeError, KeyError, pa.ArrowException, MsgspecError)
"""Exceptions raised by reading a damaged file; most of Arrow's errors are subclasses of the first ones, too."""


class ReportFiles(Struct, frozen=True):
    """A report as it is stored: the content of its file in each table but `runs`."""

    run: Run
    contents: Mapping[str, bytes]


class StoredRun(Struct, frozen=True):
    """A report of a store, without its kernels.

    Attributes:
        stored_unix_s: When it was stored.
        files: Size in bytes of its file in each table; None of a file that may be replaced.
        lacks: Damage to its files, by table: missing, or of another size.
    """

    run: Run
    stored_unix_s: int
    files: Mapping[str, int | None]
    lacks: Mapping[str, str]

    @property
    def is_read(self) -> bool:
        """Whether its kernels can be read."""
        return not any(table in self.lacks for table in _OF_KERNELS)


class StoredReport(Struct, frozen=True):
    """One report read from a store.

    Attributes:
        unprofiled: Its run without the profiler; None if none was stored.
        stored_unix_s: When it was stored.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    unprofiled: Unprofiled | None = None
    stored_unix_s: int = 0


_ResultT = TypeVar("_ResultT")

Failure: TypeAlias = tuple[str, InputError]
"""A file as messages show it, and its damage."""


class UnreachedError(InputError):
    """A file of the store is not damaged, but unreadable at the moment."""


class Store:
    """A store, which need not exist until something is written."""

    def __init__(self, place: str | Path) -> None:
        """Open a store in a folder or at an address.

        Raises:
            InputError: The address cannot be opened.
        """
        self._files = Files(str(place))

    def __str__(self) -> str:
        return str(self._files)

    @classmethod
    def existing(cls, place: str | Path) -> Store:
        """Open a store that must exist.

        Raises:
            InputError: The place is no store, or has another schema version.
        """
        store = cls(place)
        if not store._is_marked():
            if store._lacks_its_marker():
                message = f"damaged store: `{store.text_of(MARKER)}` is missing"
                raise InputError(message, f"`rooflens ingest REPORT --store {store}` writes it again")
            raise InputError(f"`{store}` is not a store", "make one with `rooflens ingest REPORT --store FOLDER`")
        return store

    def text_of(self, *names: str) -> str:
        """Return a file's path as messages show it."""
        return self._files.text_of(*names)

    # What is written

    def prepare(self) -> None:
        """Make an empty folder a store.

        Raises:
            InputError: The folder is neither empty nor a store of this version, or is not writable.
        """
        if self._is_marked():
            return self._written(self._files.make)
        if not self._lacks_its_marker() and self._files.names() and not self._is_marked():  # by another writer by now
            message = f"`{self}` is neither empty nor a store, so nothing was written"
            raise InputError(message, "give an empty folder, or a new name, with --store")
        self._written(self._files.make)
        return self._put({MARKER: f'{{"schema_version": {SCHEMA_VERSION}}}\n'.encode()})

    def put(self, reports: Sequence[ReportFiles]) -> None:
        """Store reports, the same again if they are there; `prepare` must have been called.

        Raises:
            InputError: The store is not writable. Some of the reports may be stored.
        """
        contents = {
            _parquet_path(table, report.run.digest): content
            for report in reports
            for table, content in report.contents.items()
        }
        now = int(time.time())
        runs = {
            _parquet_path("runs", one.run.digest): _run_file(one.run, now, _file_sizes(one.contents)) for one in reports
        }
        self._put(contents)
        self._put(runs)
        self._put_views()

    def put_unprofiled(self, stored: StoredRun, unprofiled: Unprofiled) -> None:
        """Store the run without the profiler of a report that is stored already, instead of an earlier one.

        Raises:
            InputError: The store is not writable.
        """
        digest = stored.run.digest
        self._put({_parquet_path("unprofiled", digest): file_of("unprofiled", unprofiled_table({digest: unprofiled}))})
        files = {**stored.files, "unprofiled": None}
        self._put({_parquet_path("runs", digest): _run_file(stored.run, stored.stored_unix_s, files)})
        self._put_views()

    def put_failures(self, failures: Iterable[tuple[str, str, str]]) -> None:
        """Store source, message and hint of reports that could not be read, each once however often it was tried.

        Raises:
            InputError: The store is not writable.
        """
        # Named by what was said, as nothing else is known of what cannot be read.
        self._put(
            {
                _parquet_path("failures", hashlib.sha256("\0".join(one[:2]).encode()).hexdigest()): file_of(
                    "failures", failure_table([one])
                )
                for one in failures
            }
        )

    def keep(self, reports: Iterable[AnalyzedReport], inputs: Mapping[str, str]) -> None:
        """Store the verdicts and findings of reports instead of earlier ones.

        Args:
            reports: Reports of the store with all their kernels.
            inputs: By digest of the report, a digest of what its verdicts depend on besides it and the model.

        Raises:
            InputError: The store is not writable.
        """
        found: dict[str, bytes] = {}
        verdicts: dict[str, bytes] = {}
        for report in reports:
            digest = report.run.digest
            found[_parquet_path("findings", digest)] = file_of("findings", finding_table(report.analyses))
            found[_parquet_path("roofline", digest)] = file_of("roofline", roofline_table(report.analyses))
            rows = verdict_table(report.analyses, inputs[digest])
            verdicts[_parquet_path("verdicts", digest)] = file_of("verdicts", rows)
        self._put(found)
        self._put(verdicts)
        self._put_views()

    def _put(self, contents: Mapping[str, bytes]) -> None:
        if contents:
            self._written(lambda: self._files.put(contents))

    def _written(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            why = error.strerror or self._files.said(error)
            raise InputError(f"cannot write to the store `{self}`: {why}", self._files.write_hint) from error

    def _put_views(self) -> None:
        there = self._files.names()
        views = views_of([table for table in TABLES if table in there]).encode()
        try:
            if VIEWS in there and self._files.content(VIEWS) == views:
                return
        except OSError:
            pass
        self._put({VIEWS: views})

    # What is read

    def digests(self) -> set[str]:
        """Return the digests of the reports that `runs` names.

        Raises:
            InputError: The store cannot be listed.
        """
        return self.listing().digests("runs")

    def listing(self) -> StoreListing:
        """Return what files there are, each folder as it is when it is first asked for."""
        return StoreListing(self._files)

    def runs(self, digits: str = "") -> tuple[list[StoredRun], list[Failure]]:
        """Return the reports whose digests begin with some digits, in the order of their sources, and damaged files.

        Raises:
            InputError: The store cannot be listed, or holds no report.
        """
        there, failures = self.listing(), list[Failure]()
        if not there.digests("runs"):
            hint = f"fill it with `rooflens ingest REPORT --store {self}`"
            raise InputError(f"the store `{self}` is empty", hint)
        wanted = sorted(digest for digest in there.digests("runs") if digest.startswith(digits))
        found: list[StoredRun] = []
        for at in range(0, len(wanted), _KERNELS_AT_ONCE):
            found += self._each(wanted[at : at + _KERNELS_AT_ONCE], lambda some: self._runs_of(some, there), failures)
        return sorted(found, key=lambda one: (one.run.source, one.run.digest)), failures

    def run(self, digest: str, there: StoreListing) -> StoredRun | None:
        """Return a report that `runs` names; None if its file there is damaged.

        Raises:
            InputError: The file cannot be reached at the moment.
        """
        failures: list[Failure] = []
        found = self._each((digest,), lambda some: self._runs_of(some, there), failures)
        _raise_unreached(failures)
        return found[0] if found else None

    def kernel_count(self) -> int:
        """Return the number of kernels stored.

        Raises:
            InputError: The store holds no report.
        """
        return sum(one.run.kernel_count for one in self.runs()[0])

    def reports(self, digits: str = "") -> Iterator[StoredReport | Failure]:
        """Read the reports whose digests begin with some digits, one by one, in the order of their sources.

        Instead of reports lost to a damaged file, the damage is yielded.

        Raises:
            InputError: The store holds no report.
        """
        runs, failures = self.runs(digits)
        yield from failures
        for some in together(runs):
            yield from self.read(some)

    def unprofiled(self, digest: str, there: StoreListing) -> Unprofiled | None:
        """Return the run without the profiler of a report; None if there is none, or its file is damaged.

        Raises:
            InputError: The file cannot be reached at the moment.
        """
        if digest not in there.digests("unprofiled"):
            return None
        failures: list[Failure] = []
        found = self._each((digest,), self._unprofiled_of, failures)
        _raise_unreached(failures)
        return found[0][1] if found else None

    def metrics(self, digest: str) -> pa.Table | None:
        """Return the `metrics` rows of a report; None if the store does not hold the report.

        Raises:
            InputError: Its file is damaged.
        """
        there = self.listing()
        stored = self.run(digest, there) if digest in there.digests("runs") else None
        if stored is None or "metrics" not in stored.files:
            return None if stored is None else METRICS.empty_table()
        if "metrics" in stored.lacks:
            raise self._lacking_failure(stored)[1]
        try:
            return self._stored_rows("metrics", [digest]).cast(METRICS)
        except _BrokenFileError as broken:
            raise self._damaged(broken, digest)[1] from broken.why

    def failures(self) -> list[tuple[str, str]]:
        """Return source and message of each report that could not be read; damaged files are skipped."""
        digests = sorted(self.listing().digests("failures"))
        rows = self._each(digests, lambda some: self._stored_rows("failures", some).to_pylist(), [])
        return sorted((row["source"], row["message"]) for row in rows)

    def foreign(self) -> tuple[str, ...]:
        """Return the names of files in `runs` that no writer of a store made: they are left alone."""
        return tuple(name for name in self._files.names("runs") if not _FILE_NAME.fullmatch(name))

    def analyses(self, reports: Sequence[StoredReport], inputs: Mapping[str, str]) -> dict[str, tuple[Analysis, ...]]:
        """Return stored analyses by digest of the report, of those whose verdicts depend on the same as today's.

        Args:
            reports: Reports with their kernels.
            inputs: By digest of the report, a digest of what its verdicts depend on besides it and the model.
        """
        wanted = {one.run.digest: one.kernels for one in reports if one.run.digest in self.judged}

        def of(digests: Sequence[str]) -> list[tuple[str, tuple[Analysis, ...]]]:
            rows = self._stored_rows("verdicts", digests, _OF_ANALYSIS)
            found: dict[str, dict[int, bytes]] = {digest: {} for digest in digests}
            for digest, index, content, *stamp in zip(*(rows[name].to_pylist() for name in _OF_ANALYSIS), strict=True):
                if stamp == [MODEL_VERSION, inputs[digest]]:
                    found[digest][index] = content
            with _reading("verdicts"):
                return [
                    (digest, tuple(analysis_of(packed[one.index], one) for one in wanted[digest]))
                    for digest, packed in found.items()
                    if len(packed) == len(wanted[digest])
                ]

        return dict(self._each([*wanted], of, []))

    @cached_property
    def judged(self) -> frozenset[str]:
        """The digests of reports with verdicts when they were first asked for."""
        return frozenset(self.listing().digests("verdicts"))

    def _each(
        self,
        digests: Sequence[str],
        read: Callable[[Sequence[str]], Sequence[_ResultT]],
        failures: list[Failure],
        runs: Mapping[str, Run] | None = None,
    ) -> list[_ResultT]:
        """Read files of reports together, or one by one if one is damaged, and note which.

        Args:
            digests: The reports.
            read: Reads those of some reports.
            failures: Where to note damage.
            runs: The reports that are lost with a damaged file, by digest.
        """
        if not digests:
            return []
        try:
            return [*read(digests)]
        except _BrokenFileError as broken:
            if len(digests) == 1:
                failures.append(self._damaged(broken, digests[0], runs))
                return []
        return [one for digest in digests for one in self._each((digest,), read, failures, runs)]

    def _runs_of(self, digests: Sequence[str], there: StoreListing) -> list[StoredRun]:
        rows = self._stored_rows("runs", digests)
        with _reading("runs"):
            found = []
            columns = zip(
                digests,
                runs_from_table(rows),
                rows["ingested_unix_s"].to_pylist(),
                rows["files"].to_pylist(),
                strict=True,
            )
            for digest, run, stored_unix_s, files in columns:
                if run.digest != digest:
                    raise ValueError("it is the file of another report")
                noted = dict(files)
                found.append(StoredRun(run, stored_unix_s, noted, there.lacks(digest, noted)))
            return found

    def read(self, runs: Sequence[StoredRun]) -> list[StoredReport | Failure]:
        """Read the kernels of reports, several in one pass; a damaged report is a failure and harms no other."""
        failures = [self._lacking_failure(one) for one in runs if one.lacks]
        whole = {one.run.digest: one for one in runs if one.is_read}
        unprofiled = self.programs([*whole.values()], failures)
        read = self._each(
            [*whole],
            lambda some: [
                StoredReport(whole[digest].run, kernels, unprofiled.get(digest), whole[digest].stored_unix_s)
                for digest, kernels in self._kernels_of({digest: whole[digest] for digest in some}).items()
            ],
            failures,
            {digest: one.run for digest, one in whole.items()},
        )
        return [*failures, *read]

    def programs(self, runs: Iterable[StoredRun], failures: list[Failure]) -> dict[str, Unprofiled]:
        """Return the runs without the profiler of reports, by digest, and note damage."""
        ran = [one.run.digest for one in runs if "unprofiled" in one.files.keys() - one.lacks.keys()]
        return dict(self._each(ran, self._unprofiled_of, failures))

    def verdicts(self, inputs: Mapping[str, str], columns: Sequence[str]) -> tuple[list[pa.Table], set[str]]:
        """Return columns of stored verdicts that depend on the same as today's, and the reports that have none.

        Args:
            inputs: By digest of the report, a digest of what its verdicts depend on besides it and the model.
            columns: The columns.
        """
        judged = [digest for digest in inputs if digest in self.judged]
        read = self._each(judged, lambda some: [self._stored_rows("verdicts", some, (*columns, *_STAMP))], [])
        same = (pc.field("model_version") == MODEL_VERSION) & pc.field("inputs_digest").isin([*inputs.values()])
        found = [rows.filter(same) for rows in read]
        known = {one for rows in found for one in rows["inputs_digest"].unique().to_pylist()}
        return [rows.select(columns) for rows in found], {one for one, of in inputs.items() if of not in known}

    def _kernels_of(self, runs: Mapping[str, StoredRun]) -> dict[str, tuple[Kernel, ...]]:
        hot = [digest for digest, one in runs.items() if "hotspots" in one.files]
        rows = self._stored_rows("hotspots", hot) if hot else None
        with _reading("hotspots"):
            spots = {} if rows is None else hotspots_from_table(rows)
        rows = self._stored_rows("kernels", [*runs])
        with _reading("kernels"):
            found = kernels_from_table(rows, {digest: one.run for digest, one in runs.items()}, spots)
            for digest, kernels in found.items():
                run = runs[digest].run
                # With fewer kernels than noted the file would read well, and give each a wrong share of its program.
                if len(kernels) != run.kernel_count:
                    raise ValueError(f"it holds {len(kernels)} of {run.kernel_count} kernels of `{run.source}`")
            return {digest: tuple(kernels) for digest, kernels in found.items()}

    def _unprofiled_of(self, digests: Sequence[str]) -> list[tuple[str, Unprofiled]]:
        rows = self._stored_rows("unprofiled", digests)
        with _reading("unprofiled"):
            return [(row["digest"], unprofiled_from_row(row)) for row in rows.to_pylist()]

    def _stored_rows(self, table: str, digests: Sequence[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Read the files of reports as one table, in their order.

        Raises:
            _BrokenFileError: One of them is damaged, or cannot be read at the moment.
        """
        # Most texts of a large report repeat in each row; to join the dictionaries of small ones takes longer.
        packed = [leaf for leaf, kind in leaves(table).items() if kind == "BYTE_ARRAY"] if len(digests) == 1 else None
        schema = TABLES[table] if columns is None else pa.schema([TABLES[table].field(name) for name in columns])

        def read(digest: str) -> pa.Table:
            with self._files.system.open_input_file(self._files.path(_parquet_path(table, digest))) as file:
                parquet = pq.ParquetFile(
                    file, read_dictionary=packed, page_checksum_verification=True, pre_buffer=not self._files.is_local
                )
                rows = parquet.read(columns, use_threads=len(digests) == 1)
            there = rows.column_names
            if there == schema.names:
                return rows
            # A file that an earlier version wrote has nulls in what it lacks.
            given = [rows[one.name] if one.name in there else pa.nulls(rows.num_rows, one.type) for one in schema]
            return pa.Table.from_arrays(given, schema.names)

        with _reading(table):
            # Dataset.to_table takes twice as long for small files.
            rows = pa.concat_tables(self._files.read(read, digests)).unify_dictionaries()
            if "digest" in schema.names and not set(pc.unique(rows["digest"]).to_pylist()) <= {*digests}:
                raise ValueError("it holds rows of another report")
            return rows

    def _is_marked(self) -> bool:
        """Return whether the place is a store of this version.

        Raises:
            InputError: The store has another version, or its marker is unreadable.
        """
        try:
            version = json.loads(self._files.content(MARKER))["schema_version"]
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            message = f"cannot read `{self.text_of(MARKER)}`: {self._files.said(error)}"
            raise InputError(message, "give a store that can be read") from error
        except (ValueError, KeyError, TypeError) as error:
            hint = f'write {{"schema_version": {SCHEMA_VERSION}}} into it, if this version wrote the store'
            message = f"damaged store: `{self.text_of(MARKER)}` is not the marker of a store"
            raise InputError(message, hint) from error
        if version != SCHEMA_VERSION:
            message = f"`{self}` holds schema version {version}, this rooflens reads {SCHEMA_VERSION}"
            again = f"`rooflens ingest {self._sources_of_another()} --store {str(self).rstrip('/')}-{SCHEMA_VERSION}`"
            raise InputError(message, f"{again} reads its reports again, into a new store")
        return True

    def _sources_of_another(self) -> str:
        """Return what the reports of a store of another version were read from, for a command."""
        try:
            paths = [self._files.path("runs", name) for name in self._files.names("runs") if name.endswith(".parquet")]
            rows = pads.dataset(paths, filesystem=self._files.system).to_table(columns=["source"])
        except (*_DAMAGE, InputError):
            return "REPORTS"
        sources = [*map(str, rows["source"].unique().to_pylist())]
        folders = sorted({source.rpartition("/")[0] or "." for source in sources})
        most = sources if len(sources) <= _REPORTS_NAMED else folders
        return " ".join(map(shlex.quote, most)) if 0 < len(most) <= _REPORTS_NAMED else "REPORTS"

    def _lacks_its_marker(self) -> bool:
        """Return whether a folder holds only files of this version, and no marker.

        Raises:
            InputError: The folder cannot be listed.
        """
        tables = [name for name in self._files.names() if name != VIEWS]
        if not tables or not all(table in TABLES for table in tables):
            return False
        if not all(_FILE_NAME.fullmatch(name) for table in tables for name in self._files.names(table)):
            return False
        try:
            versions = self._stored_rows("runs", sorted(self.digests()), ("schema_version",))
        except _BrokenFileError:
            return False
        return versions["schema_version"].unique().to_pylist() in ([], [SCHEMA_VERSION])

    def _lacking_failure(self, stored: StoredRun) -> Failure:
        """Return the failure for a report with missing files, with the remedy."""
        (table, why), *others = stored.lacks.items()
        name = self.text_of(_parquet_path(table, stored.run.digest))
        also = ", ".join(f"`{self.text_of(_parquet_path(other, stored.run.digest))}`" for other, _ in others)
        message = f"damaged store file `{name}`: {why}" + (f"; nor are {also} whole" if also else "")
        hint = f"ingest `{stored.run.source}` again into the store: that mends it"
        return name, InputError(message, hint, 0 if stored.is_read else 1)

    def _damaged(self, broken: _BrokenFileError, digest: str, runs: Mapping[str, Run] | None = None) -> Failure:
        """Return the failure for an unread file, with the remedy; without `runs` no report is known to be lost."""
        why, run = broken.why, (runs or {}).get(digest)
        name = self.text_of(_parquet_path(broken.table, digest))
        said = "it is missing" if isinstance(why, FileNotFoundError) else self._files.said(why)
        count = None if broken.table == "runs" else 0 if run is None else 1
        # Advice to delete a file must never come from a network that failed for a moment.
        if isinstance(why, OSError | pa.ArrowException) and self._is_whole(_parquet_path(broken.table, digest)):
            hint = "it is not damaged: try again, and check that it may be read"
            return name, UnreachedError(f"cannot read the store file `{name}`: {said}", hint, count)
        source = "its report" if run is None else f"`{run.source}`"
        first = "" if broken.table == "runs" else f"remove `{self.text_of(_parquet_path('runs', digest))}` and "
        return name, InputError(f"damaged store file `{name}`: {said}", f"{first}ingest {source} again", count)

    def _is_whole(self, name: str) -> bool:
        """Return whether an unreadable file is not damaged, if it can be fetched at all.

        Arrow raises the same errors for a lost connection and for a page that cannot be unpacked.
        """
        try:
            content = self._files.content(name)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read()
        except _DAMAGE:
            return False
        return True


class StoreListing:
    """The files of a store, each folder as it was when it was first asked for."""

    def __init__(self, files: Files) -> None:
        """Take the files of a store."""
        self._files = files
        self._sizes: dict[str, Mapping[str, int | None]] = {}

    def digests(self, table: str) -> set[str]:
        """Return the digests of the reports that have a file in a table.

        Raises:
            InputError: The folder cannot be listed.
        """
        return {match[1] for name in self._sizes_of(table) if (match := _FILE_NAME.fullmatch(name))}

    def lacks(self, digest: str, files: Mapping[str, int | None]) -> dict[str, str]:
        """Return what is wrong with the files of a report, by table, given the size that each should have."""
        found = {}
        for table, byte_count in files.items():
            there, name = self._sizes_of(table), f"{digest}.parquet"
            if name not in there:
                found[table] = "it is missing"
            elif byte_count is not None and there[name] not in {byte_count, None}:
                found[table] = f"it has {there[name]} bytes, and was stored with {byte_count}"
        return found

    def _sizes_of(self, table: str) -> Mapping[str, int | None]:
        if table not in self._sizes:
            self._sizes[table] = self._files.sizes_of(table)
        return self._sizes[table]


class _BrokenFileError(Exception):
    """A file of a table cannot be read, and why."""

    def __init__(self, table: str, why: Exception) -> None:
        super().__init__(table, why)
        self.table = table
        self.why = why


@contextmanager
def _reading(table: str) -> Iterator[None]:
    """Say which table's file is broken."""
    try:
        yield
    except _DAMAGE as error:
        raise _BrokenFileError(table, error) from error


def together(runs: Sequence[StoredRun], most_kernels: int = _KERNELS_AT_ONCE) -> Iterator[list[StoredRun]]:
    """Group reports that are read together; a large one stays alone."""
    some: list[StoredRun] = []
    kernel_count = 0
    for one in runs:
        if some and (kernel_count + one.run.kernel_count > most_kernels or len(some) >= _REPORTS_AT_ONCE):
            yield some
            some, kernel_count = [], 0
        some.append(one)
        kernel_count += one.run.kernel_count
    if some:
        yield some


def report_files(report: ReportRows) -> ReportFiles:
    """Make the files of a report."""
    return ReportFiles(report.run, {table: file_of(table, rows) for table, rows in report_tables(report).items()})


def with_unprofiled(report: ReportFiles, kept: Unprofiled | None) -> ReportFiles:
    """Add a run without the profiler that a store holds already to the files of its report, unless it has one."""
    if kept is None or "unprofiled" in report.contents:
        return report
    content = file_of("unprofiled", unprofiled_table({report.run.digest: kept}))
    return ReportFiles(report.run, {**report.contents, "unprofiled": content})


def _parquet_path(table: str, digest: str) -> str:
    return f"{table}/{digest}.parquet"


def _run_file(run: Run, stored_unix_s: int, files: Mapping[str, int | None]) -> bytes:
    return file_of("runs", run_table(run, stored_unix_s, files))


def _file_sizes(contents: Mapping[str, bytes]) -> dict[str, int | None]:
    return {table: None if table in _REPLACED else len(content) for table, content in contents.items()}


def _raise_unreached(failures: Iterable[Failure]) -> None:
    """Raise the first error of a file that is unreadable at the moment: its content is not lost."""
    for _, error in failures:
        if isinstance(error, UnreachedError):
            raise error
