"""The store: an append-only dataset of Parquet files, a file per table and ingest, in a folder or at an address.

    store/runs/<id>.parquet, store/kernels/<id>.parquet, ...    what an ingest stored; `runs` comes last and commits it
    store/findings/<id>.parquet, store/roofline/<id>.parquet    what an analysis found; `roofline` commits it
    store/.writing-<id>/                                        what is being written, or was when its writer was killed

Nothing is locked, and files in place never change. Readers use what `runs` names; if a report was stored twice, its
first run counts. So an ingest that was killed or doubled never shows anything half or twice. Of two analyses of a run,
and of two runs without the profiler, the later counts.

A file that commits others notes their sizes. An ingest with missing files counts only for reports that no other ingest
holds: they are read as far as possible, and stored again when they are next ingested.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from rooflens.addresses import opened, shown, without_secrets
from rooflens.errors import InputError
from rooflens.model.analyze import MODEL_VERSION
from rooflens.model.records import Analysis, AnalyzedReport, Kernel, Run
from rooflens.model.store import MARKER
from rooflens.model.store.tables import (
    RUN_ID,
    SCHEMA_VERSION,
    TABLES,
    finding_table,
    hotspots_from_table,
    kernels_from_batch,
    roofline_table,
    runs_from_table,
    unprofiled_from_row,
)
from rooflens.model.store.writing import (
    ALWAYS,
    COMMITTING,
    FILES,
    STAMP,
    Writer,
    begun_unix_ns,
    leaves,
    new_id,
)
from rooflens.model.unprofiled import Unprofiled
from rooflens.model.verdict.thresholds import Thresholds

_FILE_NAME = re.compile(r"([0-9a-f]{24})\.parquet")
_WRITING = ".writing-"
_LEFT_AFTER_NS = 24 * 3600 * 1_000_000_000
"""A folder still being written after a day belongs to a dead writer."""

_ROWS_AT_ONCE = 2048
"""Kernels decoded at a time: some 20 MB."""

_KEPT_AT_ONCE = 4096
"""Kernels whose verdicts become rows at a time."""

_SENT_AT_ONCE = 32 << 20
"""Bytes read before sending. Files in `runs` are smaller, so each arrives completely or not at all."""

_OF_KERNELS = ("kernels", "hotspots")
"""Tables needed to read any kernel."""

_NAMED = 3
"""Reports named in a hint; there may be thousands."""

_DAMAGE = (OSError, ValueError, TypeError, KeyError, pa.ArrowException)
"""Exceptions raised by reading a damaged file; most of Arrow's errors are subclasses of the first ones, too."""


class StoredReport(Struct, frozen=True):
    """One report read from a store.

    Attributes:
        unprofiled: Its run without the profiler; None if none was stored.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    unprofiled: Unprofiled | None = None


Failure: TypeAlias = tuple[str, InputError]
"""A file as messages show it, and its damage."""


class UnreachedError(InputError):
    """A file of the store is not damaged, but unreadable at the moment."""


class Commit(Struct, frozen=True):
    """One ingest.

    Attributes:
        id: The ID that names its files.
        runs: Its reports by `run_id`, without those counted for another ingest.
        lacks: Damage to its files, by table: missing, or of another size.
    """

    id: str
    runs: Mapping[str, Run]
    lacks: Mapping[str, str]


class Store:
    """A store, which need not exist until something is written."""

    def __init__(self, place: str | Path) -> None:
        """Open a store in a folder or at an address.

        Raises:
            InputError: The address cannot be opened.
        """
        self._given = str(place)
        self._files, self._root = opened(self._given)
        self._is_local = isinstance(self._files, pafs.LocalFileSystem)

    def __str__(self) -> str:
        return shown(self._given)

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

    @contextmanager
    def writing(self, stored: Collection[str] = ()) -> Iterator[Writer]:
        """Give a writer; its files are put in place together when the block ends, or not at all.

        Args:
            stored: Digests of reports to leave out.

        Raises:
            InputError: The folder is neither empty nor a store of this version, or is not writable.
        """
        try:
            file_id = new_id()
            with self._scratch(file_id) as folder:
                writer = Writer(folder, file_id, stored)
                yield writer
                self._put_all(writer.close(), file_id)
        except OSError as error:
            why = without_secrets(error.strerror or error, self._given)
            raise InputError(f"cannot write to the store `{self}`: {why}", self._write_hint()) from error

    def commits(self) -> tuple[list[Commit], list[Failure]]:
        """Return the ingests in order, and the damage to files in `runs`.

        Raises:
            InputError: The store cannot be listed.
        """
        found: list[Commit] = []
        failures: list[Failure] = []
        sizes = _Sizes(self)
        # A commit exists once its file is in `runs`; files in other folders without a commit are never read.
        for file_id in self._ids("runs"):  # list `runs` before the other folders, as ingests write it last
            try:
                rows, notes = self._noted("runs", file_id)
                runs = dict(zip(rows[RUN_ID.name].to_pylist(), runs_from_table(rows), strict=True))
                found.append(Commit(file_id, runs, sizes.lacks(file_id, notes, ALWAYS)))
            except _DAMAGE as error:
                failures.append(self._damaged("runs", file_id, error))
        whole = {run.digest for commit in found if not commit.lacks for run in commit.runs.values()}
        known: set[str] = set()
        for at, commit in enumerate(found):
            # A complete ingest of a report beats one with missing files, even an earlier one: ingesting again repairs.
            others = known | whole if commit.lacks else known
            found[at] = replace(commit, runs={i: run for i, run in commit.runs.items() if run.digest not in others})
            known.update(run.digest for run in found[at].runs.values())
        return found, failures

    def held(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return by digest the run of each report that is stored completely, and of each report with missing files.

        Raises:
            InputError: The store, or a file of it, cannot be reached at the moment.
        """
        commits, failures = self.commits()
        _raise_unreached(failures)
        whole, lacking = (
            {run.digest: i for one in commits if bool(one.lacks) is lacks for i, run in one.runs.items()}
            for lacks in (False, True)
        )
        return whole, lacking

    def remove_replaced(self) -> list[str]:
        """Remove each incomplete ingest from `runs` if other ingests hold all of its reports; name those that stay.

        Until then SQL, which cannot know this, counts its rows.
        """
        left = []
        for commit in self.commits()[0]:
            if commit.lacks and not commit.runs:
                try:
                    self._files.delete_file(self._path("runs", f"{commit.id}.parquet"))
                except FileNotFoundError:
                    continue  # another ingest has removed it already
                except OSError:
                    left.append(self.text_of("runs", f"{commit.id}.parquet"))
        return left

    def run_ids(self) -> dict[str, str]:
        """Return the run that counts for each report, by digest.

        Raises:
            InputError: The store, or a file of it, cannot be reached at the moment.
        """
        whole, lacking = self.held()
        return whole | lacking

    def kernel_count(self) -> int:
        """Return the number of kernels stored."""
        return sum(run.kernel_count for commit in self.commits()[0] for run in commit.runs.values())

    def reports(self, digits: str = "") -> Iterator[StoredReport | Failure]:
        """Read the reports whose digests begin with some digits, ingest by ingest.

        Instead of reports lost to a damaged file, the damage is yielded.

        Raises:
            InputError: The store holds no report.
        """
        commits, failures = self.commits()
        if not commits and not failures:
            hint = f"fill it with `rooflens ingest REPORT --store {self}`"
            raise InputError(f"the store `{self}` is empty", hint)
        unprofiled, unreadable = self._unprofiled()
        yield from (*failures, *unreadable)
        for commit in commits:
            wanted = {run_id: run for run_id, run in commit.runs.items() if run.digest.startswith(digits)}
            if not wanted:
                continue
            is_read = not any(table in commit.lacks for table in _OF_KERNELS)
            if commit.lacks:
                yield self._lacking(commit, tuple(wanted.values()), is_read=is_read)
            if is_read:
                yield from self._reports_of(commit.id, wanted, unprofiled)

    def unprofiled(self) -> dict[str, Unprofiled]:
        """Return the runs without the profiler, by `run_id` of their reports.

        Raises:
            InputError: Their files cannot be reached at the moment.
        """
        found, failures = self._unprofiled()
        _raise_unreached(failures)
        return found

    def metrics(self, digest: str) -> pa.Table | None:
        """Return the `metrics` rows of a report; None if the store does not hold the report.

        Raises:
            InputError: Its file is damaged.
        """
        for commit in self.commits()[0]:
            for run_id, run in commit.runs.items():
                if run.digest == digest:
                    return self._metrics_of(commit, run_id, run)
        return None

    def _metrics_of(self, commit: Commit, run_id: str, run: Run) -> pa.Table:
        if "metrics" in commit.lacks:
            raise self._lacking(commit, (run,), is_read=False)[1]
        if f"{commit.id}.parquet" not in self._names("metrics"):
            return TABLES["metrics"].empty_table()
        try:
            return self._table("metrics", commit.id, [run_id])
        except _DAMAGE as error:
            raise self._damaged("metrics", commit.id, error)[1] from error

    def failures(self) -> list[tuple[str, str]]:
        """Return source and message of each report that could not be read; damaged files are skipped."""
        found: list[tuple[str, str]] = []
        for file_id in self._ids("failures"):
            with suppress(*_DAMAGE):
                rows = self._table("failures", file_id)
                found += zip(rows["source"].to_pylist(), rows["message"].to_pylist(), strict=True)
        return found

    def foreign(self) -> tuple[str, ...]:
        """Return the names of files in `runs` that no writer of a store made: they are left alone."""
        return tuple(name for name in self._names("runs") if not _FILE_NAME.fullmatch(name))

    def text_of(self, *names: str) -> str:
        """Return a file's path as messages show it."""
        return "/".join((str(self).rstrip("/"), *names))

    def keep(self, reports: Sequence[AnalyzedReport], limits: Thresholds, known: str) -> None:
        """Write the verdicts and findings of reports, unless the stored ones depend on the same inputs.

        Args:
            reports: Reports of the store with all their kernels.
            limits: Thresholds of the verdicts.
            known: A short text that identifies what else the verdicts depend on outside the store.

        Raises:
            InputError: The store is not writable.
        """
        stamp = f"{MODEL_VERSION} {limits.digest} {known}"
        run_ids, stamps = self.run_ids(), self._stamps()
        new = {digest: run_id for digest, run_id in run_ids.items() if stamps.get(run_id) != stamp}
        analyses = [one for report in reports if report.run.digest in new for one in report.analyses]
        if not analyses:
            return
        with self.writing() as writer:
            writer.stamp(stamp)
            for at in range(0, len(analyses), _KEPT_AT_ONCE):
                some: Sequence[Analysis] = analyses[at : at + _KEPT_AT_ONCE]
                writer.add("findings", finding_table(some, MODEL_VERSION, limits.digest), new)
                writer.add("roofline", roofline_table(some, MODEL_VERSION, limits.digest), new)

    def _stamps(self) -> dict[str, str]:
        """Return what the last verdicts of each run depend on; unreadable files are skipped, and so written again."""
        found: dict[str, str] = {}
        sizes = _Sizes(self)
        for file_id in self._ids("roofline"):
            with suppress(*_DAMAGE):
                rows, notes = self._noted("roofline", file_id, [RUN_ID.name])
                stamp = "" if sizes.lacks(file_id, notes) else notes.get(STAMP, b"").decode()
                found |= dict.fromkeys(rows[RUN_ID.name].unique().to_pylist(), stamp)
        return found

    def _reports_of(
        self, file_id: str, wanted: Mapping[str, Run], unprofiled: Mapping[str, Unprofiled]
    ) -> Iterator[StoredReport | Failure]:
        """Read reports of an ingest in order."""
        left = dict(wanted)
        table = "hotspots"
        try:
            spots = hotspots_from_table(self._table(table, file_id, [*wanted]))
            table = "kernels"
            batches = self._scanner(table, file_id, [*wanted]).to_batches()
            kernels = chain.from_iterable(kernels_from_batch(batch, wanted, spots) for batch in batches)
            by_report = groupby(kernels, key=attrgetter("digest"))
            ahead = next(by_report, None)
            for run_id, run in wanted.items():
                own: tuple[Kernel, ...] = ()
                if ahead is not None and ahead[0] == run.digest:
                    own = tuple(ahead[1])
                    ahead = next(by_report, None)
                # With fewer kernels than noted the file would read well, and give each a wrong share of its program.
                if len(own) != run.kernel_count:
                    raise ValueError(f"it holds {len(own)} of {run.kernel_count} kernels of `{run.source}`")
                del left[run_id]
                yield StoredReport(run, own, unprofiled.get(run_id))
        except _DAMAGE as error:
            yield self._damaged(table, file_id, error, tuple(left.values()))

    def _unprofiled(self) -> tuple[dict[str, Unprofiled], list[Failure]]:
        """Return the runs without the profiler by `run_id`, and the damage to their files."""
        found: dict[str, Unprofiled] = {}
        failures: list[Failure] = []
        for file_id in self._ids("unprofiled"):  # later files have later rows
            try:
                rows = self._table("unprofiled", file_id).to_pylist()
                found |= {row[RUN_ID.name]: unprofiled_from_row(row) for row in rows}
            except _DAMAGE as error:
                failures.append(self._damaged("unprofiled", file_id, error))
        return found, failures

    def _noted(
        self, table: str, file_id: str, columns: Sequence[str] | None = None
    ) -> tuple[pa.Table, Mapping[bytes, bytes]]:
        """Read a file that commits others, or some of its columns, with its notes."""
        with self._files.open_input_file(self._path(table, f"{file_id}.parquet")) as file:
            parquet = pq.ParquetFile(
                file, read_dictionary=columns, page_checksum_verification=True, pre_buffer=not self._is_local
            )
            return parquet.read(columns), parquet.metadata.metadata or {}

    def _table(self, table: str, file_id: str, wanted: Collection[str] | None = None) -> pa.Table:
        """Read a file, or its rows of some runs."""
        return self._scanner(table, file_id, wanted).to_table()

    def _scanner(self, table: str, file_id: str, wanted: Collection[str] | None) -> Any:
        """Scan a file with packed texts, since most texts repeat in each row."""
        packed = [leaf for leaf, kind in leaves(table).items() if kind == "BYTE_ARRAY"]
        kind = pads.ParquetFileFormat(
            read_options=pads.ParquetReadOptions(dictionary_columns=packed),
            default_fragment_scan_options=pads.ParquetFragmentScanOptions(page_checksum_verification=True),
        )
        fragment = kind.make_fragment(self._path(table, f"{file_id}.parquet"), self._files)
        condition = None if wanted is None else pc.field(RUN_ID.name).isin(pa.array(wanted, pa.string()))
        return fragment.scanner(filter=condition, batch_size=_ROWS_AT_ONCE)

    def _ids(self, table: str) -> list[str]:
        """Return the IDs of a table's files, earliest first."""
        return [match[1] for name in self._names(table) if (match := _FILE_NAME.fullmatch(name))]

    def _names(self, *folder: str) -> list[str]:
        """List the names in a folder; empty if the folder does not exist.

        Raises:
            InputError: The folder cannot be listed.
        """
        return sorted(self.sizes_of(*folder))

    def sizes_of(self, *folder: str) -> dict[str, int | None]:
        """Return the names in a folder, with their sizes in bytes.

        Raises:
            InputError: The folder cannot be listed.
        """
        path = self._path(*folder)
        try:
            if self._is_local:  # Arrow fails on names that are not UTF-8, which foreign files may have
                with os.scandir(path) as entries:
                    return {entry.name: _size_of(entry) for entry in entries}
            selector = pafs.FileSelector(path, allow_not_found=True)
            return {info.base_name: info.size for info in self._files.get_file_info(selector)}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            why = without_secrets(error, self._given)
            raise InputError(f"cannot read the store `{self}`: {why}", "give a store that can be read") from error

    def _path(self, *names: str) -> str:
        return "/".join((self._root, *names))

    def _content(self, *names: str) -> bytes:
        """Read a file; if an S3 response breaks off within its header, Arrow returns an empty file.

        Raises:
            OSError: The file cannot be read to its end.
        """
        with self._files.open_input_file(self._path(*names)) as file:
            content: bytes = file.read()
            # An object store may end a transfer early without an error; a short read must not pass for a short file.
            if len(content) != file.size() or not (content or self._is_local):
                raise OSError(f"only {len(content)} bytes of it came")
            return content

    def _is_marked(self) -> bool:
        """Return whether the place is a store of this version.

        Raises:
            InputError: The store has another version, or its marker is unreadable.
        """
        try:
            version = json.loads(self._content(MARKER))["schema_version"]
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            why = without_secrets(error, self._given)
            raise InputError(f"cannot read `{self.text_of(MARKER)}`: {why}", "give a store that can be read") from error
        except (ValueError, KeyError, TypeError) as error:
            hint = f'write {{"schema_version": {SCHEMA_VERSION}}} into it, if this version wrote the store'
            message = f"damaged store: `{self.text_of(MARKER)}` is not the marker of a store"
            raise InputError(message, hint) from error
        if version != SCHEMA_VERSION:
            message = f"`{self}` holds schema version {version}, this rooflens reads {SCHEMA_VERSION}"
            raise InputError(message, "ingest its reports into a new store, or use the rooflens that wrote it")
        return True

    @contextmanager
    def _scratch(self, file_id: str) -> Iterator[Path]:
        """Make a folder to write in; an empty folder becomes a store; remove what killed writers left.

        Raises:
            InputError: The folder is neither empty nor a store of this version.
            OSError: The folder is not writable.
        """
        is_new = not self._is_marked()
        holds_others = (
            is_new and not self._lacks_its_marker() and any(not name.startswith(_WRITING) for name in self._names())
        )
        if holds_others and not self._is_marked():  # check again: another ingest may have made it a store meanwhile
            message = f"`{self}` is neither empty nor a store, so nothing was written"
            raise InputError(message, "give an empty folder, or a new name, with --store")
        if self._is_local:
            if not (parent := Path(self._root).parent).exists():
                raise InputError(f"there is no folder `{parent}` for the store", "make it first, or give another place")
            Path(self._root).mkdir(exist_ok=True)
            self._sweep()
            folder = Path(self._root, f"{_WRITING}{file_id}")
            folder.mkdir()
        else:
            folder = Path(tempfile.mkdtemp(prefix="rooflens-"))
        try:
            if is_new:
                marker = folder / MARKER
                marker.write_text(f'{{"schema_version": {SCHEMA_VERSION}}}\n', encoding="utf-8")
                self._put(marker, MARKER)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove leftovers of writers that were killed more than a day ago."""
        for name in self._names():
            file_id = name.removeprefix(_WRITING)
            is_ours = name.startswith(_WRITING) and _FILE_NAME.fullmatch(f"{file_id}.parquet")
            # The name tells the age, not the disk: clocks of file servers differ, and copies get new times.
            if is_ours and time.time_ns() - begun_unix_ns(file_id) > _LEFT_AFTER_NS:
                shutil.rmtree(self._path(name), ignore_errors=True)

    def _put_all(self, files: Mapping[str, Path], file_id: str) -> None:
        """Put complete files in place; the committing file comes last, once the others are there in full size.

        Raises:
            InputError: A file is not there, or that cannot be checked.
            OSError: A file could not be put in place.
        """
        sent: dict[str, int] = {}
        for table, path in files.items():
            if table in COMMITTING:
                self._check_sent(sent)
            byte_count = path.stat().st_size
            self._put(path, table, f"{file_id}.parquet")
            sent = {**({} if table in COMMITTING else sent), self._path(table, f"{file_id}.parquet"): byte_count}
        self._check_sent(sent)

    def _check_sent(self, sent: Mapping[str, int]) -> None:
        """Check that the sent files have the same size at the address as here."""
        if self._is_local or not sent:
            return
        try:
            there = {info.path: info.size for info in self._files.get_file_info([*sent])}
        except OSError as error:
            why = without_secrets(error, self._given)
            raise InputError(f"cannot check what was written to `{self}`: {why}", self._write_hint()) from error
        for path, byte_count in sent.items():
            if there.get(path) != byte_count:
                name = self.text_of(path[len(self._root) + 1 :])
                message = f"`{name}` was sent with {byte_count} bytes, and has {there.get(path) or 0} there"
                raise InputError(message, self._write_hint())

    def _write_hint(self) -> str:
        if self._is_local:
            return "give a folder that can be written with --store"
        return "check its address, keys and room, and run this again: what is stored already is skipped"

    def _put(self, path: Path, *names: str) -> None:
        """Put a complete file in place: move it, or send it to an object store, where it appears only when complete."""
        place = self._path(*names)
        if not self._is_local:
            self._send(path, place)
            return
        Path(place).parent.mkdir(exist_ok=True)
        # Content before name: after a power cut, a file in its place must not be empty.
        _sync(str(path))
        os.replace(path, place)  # noqa: PTH105 - places of this class are texts
        # The rename is itself a change of the folder, and would be lost without this.
        _sync(os.path.dirname(place))  # noqa: PTH120 - as above

    def _send(self, path: Path, place: str) -> None:
        """Send a file to an object store.

        `pyarrow.fs.copy_files` reports success even if S3 refuses the file, whereas a stream raises. But a stream
        cannot be aborted: what was written so far appears when it is closed, which happens in any case.
        """
        with path.open("rb") as source:
            # Read before opening the stream: an unreadable source must not leave an empty object.
            first = source.read(_SENT_AT_ONCE)
            try:
                with self._files.open_output_stream(place) as target:
                    target.write(first)
                    shutil.copyfileobj(source, target, _SENT_AT_ONCE)
            except BaseException:
                with suppress(OSError):
                    self._files.delete_file(place)
                raise

    def _lacks_its_marker(self) -> bool:
        """Return whether a folder holds only files of ingests of this version, and no marker.

        Raises:
            InputError: The folder cannot be listed.
        """
        tables = [name for name in self._names() if not name.startswith(_WRITING)]
        if not tables or not all(table in TABLES for table in tables):
            return False
        if not all(_FILE_NAME.fullmatch(name) for table in tables for name in self._names(table)):
            return False
        try:
            versions = [self._noted("runs", file_id, ["schema_version"])[0] for file_id in self._ids("runs")]
        except _DAMAGE:
            return False
        return all(rows["schema_version"].unique().to_pylist() == [SCHEMA_VERSION] for rows in versions)

    def _lacking(self, commit: Commit, runs: Sequence[Run], *, is_read: bool) -> Failure:
        """Return the failure for an ingest with missing files, with the remedy."""
        (table, why), *_ = commit.lacks.items()
        name = self.text_of(table, f"{commit.id}.parquet")
        others = [self.text_of(other, f"{commit.id}.parquet") for other in [*commit.lacks][1:]]
        also = f"; nor are {', '.join(f'`{other}`' for other in others)} whole" if others else ""
        hint = f"ingest {_sources(runs)} again into the store: that mends it"
        return name, InputError(f"damaged store file `{name}`: {why}{also}", hint, 0 if is_read else len(runs))

    def _damaged(self, table: str, file_id: str, why: Exception, runs: Sequence[Run] = ()) -> Failure:
        """Return the failure for an unread file, with the remedy; without `runs` its content is unknown."""
        name, runs_file = (self.text_of(part, f"{file_id}.parquet") for part in (table, "runs"))
        said = "it is missing" if isinstance(why, FileNotFoundError) else without_secrets(why, self._given)
        # Advice to delete a file must never come from a network that failed for a moment.
        if isinstance(why, OSError | pa.ArrowException) and self._is_whole(table, file_id):
            hint = "it is not damaged: try again, and check that it may be read"
            return name, UnreachedError(f"cannot read the store file `{name}`: {said}", hint, len(runs) or None)
        hint = f"remove `{runs_file if runs else name}` and ingest {_sources(runs)} again"
        return name, InputError(f"damaged store file `{name}`: {said}", hint, len(runs) or None)

    def _is_whole(self, table: str, file_id: str) -> bool:
        """Return whether an unreadable file is not damaged, if it can be fetched at all.

        Arrow raises the same errors for a lost connection and for a page that cannot be unpacked.
        """
        try:
            content = self._content(table, f"{file_id}.parquet")
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read()
        except _DAMAGE:
            return False
        return True


class _Sizes:
    """Sizes of a store's files; each folder is listed at most once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sizes: dict[str, Mapping[str, int | None]] = {}

    def lacks(self, file_id: str, notes: Mapping[bytes, bytes], always: Sequence[str] = ()) -> dict[str, str]:
        """Return the damage to the files that a commit names, by table.

        Args:
            file_id: The ID of the files.
            notes: The commit's notes; without sizes, an earlier rooflens wrote it.
            always: Tables that always had files.
        """
        noted = notes.get(FILES)
        wanted: Mapping[str, int | None] = dict.fromkeys(always) if noted is None else json.loads(noted)
        found = {}
        for table, byte_count in wanted.items():
            if table not in self._sizes:
                self._sizes[table] = self._store.sizes_of(table)
            there = self._sizes[table]
            if (name := f"{file_id}.parquet") not in there:
                found[table] = "it is missing"
            elif byte_count is not None and there[name] not in {byte_count, None}:
                found[table] = f"it has {there[name]} bytes, and was stored with {byte_count}"
        return found


def _raise_unreached(failures: Iterable[Failure]) -> None:
    """Raise the first error of a file that is unreadable at the moment: its content is not lost."""
    for _, error in failures:
        if isinstance(error, UnreachedError):
            raise error


def _size_of(entry: os.DirEntry[str]) -> int | None:
    """Return a file's size in bytes; None for a broken link."""
    try:
        return entry.stat().st_size
    except OSError:
        return None


def _sources(runs: Sequence[Run]) -> str:
    """Name some reports for a hint."""
    others = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    return " ".join(f"`{run.source}`" for run in runs[:_NAMED]) + others or "its reports"


def _sync(path: str) -> None:
    """Wait until a file, or a folder's names, are on disk; Windows cannot open folders."""
    if os.path.isfile(path) or hasattr(os, "O_DIRECTORY"):  # noqa: PTH113 - paths here are texts
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
