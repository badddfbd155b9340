"""The store: parts of many reports each (`parts.py`), committed by their files in `runs`, under one lock.

    with Store(folder).writing() as store:          whoever holds the store
        store.commit(write_part(place, tables))     and whoever reads reports, on any machine

A killed writer leaves nothing visible; the next one sweeps what it left. Readers need no lock. Pandas, Polars and
DuckDB read the folders as they are.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from rooflens.errors import InputError
from rooflens.model.store.index import Index, Part, damaged, open_checked, part_of, read_index
from rooflens.model.store.lock import locked, writer_of_store
from rooflens.model.store.marker import check_free, check_marker, mark
from rooflens.model.store.merging import Piece, merge
from rooflens.model.store.parts import FILE_NAME, Committed, group_of, write_commit
from rooflens.model.store.place import Place, is_partial
from rooflens.model.store.reading import Choice, read_chunks, read_reports, undecodable, unprofiled_of
from rooflens.model.store.schema import TABLES
from rooflens.model.store.verdicts import VerdictWriter, missing_verdicts, read_totals, stamp_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from rooflens.model.store.parts import PartSummary
    from rooflens.model.store.reading import Chunk, Failure, StoredReport
    from rooflens.model.totals import Total
    from rooflens.model.unprofiled import Unprofiled
    from rooflens.model.verdict.thresholds import Thresholds

_STALE_AFTER_S = 24 * 3600
"""On object storage, which has no lock, a file that was not committed for this long belongs to no running writer."""


class Store:
    """A store, opened for reading, or for writing within `writing`."""

    def __init__(self, place: str | Path | Place, on_wait: Callable[[str], None] = lambda _: None) -> None:
        """Take a place; `on_wait` is called with the process that is writing to it, before a writer waits for that."""
        self.place = Place(place)
        self._on_wait = on_wait
        self._held: Index | None = None
        self._fresh: set[str] = set()
        self._checked: dict[str, InputError | None] = {}

    @classmethod
    def existing(cls, place: str | Path | Place) -> Store:
        """Open a store that must be there.

        Raises:
            InputError: It is not a store, or one of another schema version.
        """
        store = cls(place)
        check_marker(store.place)
        return store

    @contextlib.contextmanager
    def writing(self, *, wait: bool = True) -> Iterator[Store]:
        """Hold the store's lock, make an empty folder a store, and sweep what a killed writer left.

        Args:
            wait: Wait for another writer to finish.

        Raises:
            InputError: The folder is neither empty nor a store of this version, it cannot be written, or another
                process is writing it and `wait` is False.
        """
        try:
            self.place.make()
            check_free(self.place)
            with locked(self.place, wait=wait, on_wait=self._on_wait):
                mark(self.place)
                for table in TABLES:
                    self.place.make(table)
                self._held, self._fresh, self._checked = read_index(self.place), set(), {}
                self._sweep()
                yield self
        except BlockingIOError as error:
            who = writer_of_store(self.place) or "another process"
            raise InputError(f"the store `{self.place}` is being written by {who}", "try again") from error
        except OSError as error:
            message = f"cannot write to the store `{self.place}`: {error.strerror or error}"
            raise InputError(message, "give a folder that can be written with --store") from error
        finally:
            self._held = None

    def index(self) -> Index:
        """Return what the store holds; while writing, with what was committed since."""
        return self._held or read_index(self.place)

    def digests(self) -> frozenset[str]:
        """Return the digests of the committed reports."""
        return frozenset(self.index().owner)

    def is_current(self, digest: str) -> bool:
        """Return whether a report is stored whole: all files of its part are what was committed."""
        index = self.index()
        key = index.owner.get(digest)
        return key is not None and self._damage(index.parts[key]) is None

    def unprofiled(self, digest: str) -> Unprofiled | None:
        """Return the un-profiled run kept with a report; None where there was none.

        Raises:
            InputError: Its file is damaged.
        """
        index = self.index()
        key = index.owner.get(digest)
        return None if key is None else unprofiled_of(self.place, index.parts[key]).get(digest)

    def reports(
        self, choice: Choice | None = None, known: Callable[[Index], Collection[str]] = lambda _: ()
    ) -> Iterator[StoredReport | Failure]:
        """Read reports, part by part, in bounded memory; a damaged part gives its file and what is wrong.

        Args:
            choice: Which kernels are wanted; all by default.
            known: Chooses the parts that are not read.

        Raises:
            InputError: The store holds no report.
        """
        index = self._filled()
        return read_reports(self.place, index, choice or Choice(), known(index))

    def chunks(self, choice: Choice, known: Callable[[Index], Collection[str]]) -> Iterator[Chunk | Failure]:
        """Read reports as rows, from which the caller makes the records; otherwise as `reports`."""
        index = self._filled()
        return read_chunks(self.place, index, choice, known(index))

    def undecodable(self, chunk: Chunk, why: str) -> Failure:
        """Return the failure of a chunk whose rows cannot be decoded."""
        return undecodable(self.place, chunk, why)

    def _filled(self) -> Index:
        """Return what the store holds, which must be something."""
        index = self.index()
        if not index.owner and not index.unreadable:
            who = writer_of_store(self.place)
            if who:
                raise InputError(f"the store `{self.place}` is being written by {who}", "try again when it is done")
            hint = f"fill it with `rooflens ingest REPORT --store {self.place}`"
            raise InputError(f"the store `{self.place}` is empty", hint)
        return index

    def failures(self) -> list[tuple[str, str]]:
        """Return the source and the message of each report that could not be read; damaged files are left out."""
        found: list[tuple[str, str]] = []
        for part in self.index().parts.values():
            with contextlib.suppress(InputError):
                file = open_checked(self.place, part, "failures")
                if file is not None:
                    with file:
                        rows = pq.ParquetFile(file).read(["source", "message"])
                    found += zip(rows["source"].to_pylist(), rows["message"].to_pylist(), strict=True)
        return found

    def commit(self, part: PartSummary) -> frozenset[str]:
        """Commit a part that was written, within `writing`; from then on its reports are there, all or none.

        A report that this writer has committed already is left out: it came under two names. One that stood in the
        store before is replaced.

        Returns:
            The digests of the reports that were stored.

        Raises:
            InputError: What was written is gone or damaged: nothing is committed.
            OSError: The store cannot be written to.
        """
        index = self.index()
        for table, key, file in part.all_files():
            if self.place.size_of(table, f"{key}.parquet") != file.byte_count:
                message = f"`{self.place.text_of(table, key)}.parquet` is not there as it was written"
                raise InputError(message, "ingest the reports again, with no other writer")
        new = frozenset(part.digests) - self._fresh
        older = {index.owner[digest] for digest in new if digest in index.owner}
        whole = [key for key in older if self._damage(index.parts[key]) is None]
        emptied = [key for key in older if key not in whole and {*index.digests_of(index.parts[key])} <= new]
        if whole or len(new) < len(part.digests):
            kept = [Piece(index.parts[key], {*index.digests_of(index.parts[key])} - new) for key in whole]
            found = (*kept, Piece(part_of(_commit_of(part), part.runs), new))
            pieces = [piece for piece in found if piece.digests or "failures" in piece.part.commit.files]
            merged = merge(self.place, pieces)
            self._remove(part.key, *part.more)
            part = merged
        if part.files:
            self.replace((*whole, *emptied), part)
        self._fresh |= new
        return new

    def replace(self, keys: Collection[str], part: PartSummary, *, is_compact: bool = False) -> None:
        """Commit a part that replaces others, within `writing`, and remove those.

        Args:
            keys: The parts to remove.
            part: What was written of their reports, and maybe of more.
            is_compact: Whether it was made by compaction.

        Raises:
            OSError: The store cannot be written to.
        """
        index = self.index()
        commit = _commit_of(part, tuple(sorted({*keys, *index.replaced})), time.time_ns(), is_compact=is_compact)
        write_commit(self.place, part.runs, commit)
        self._remove(*_keys(index, commit.replaces))
        self._held = index.with_part(part_of(commit, part.runs))

    def drop(self, keys: Iterable[str]) -> None:
        """Remove parts, within `writing`."""
        self._remove(*_keys(self.index(), keys))
        self._held = read_index(self.place)

    def foreign(self) -> tuple[str, ...]:
        """Return the names of files in `runs` that no writer of a store put there: they are left alone."""
        names = (entry.name for entry in self.place.list("runs"))
        return tuple(name for name in names if not FILE_NAME.fullmatch(name) and not is_partial(name, FILE_NAME))

    def damage(self) -> dict[str, InputError]:
        """Return what is wrong with each damaged part, by its key."""
        index = self.index()
        found = {key: damaged(self.place, f"runs/{key}.parquet", why) for key, why in index.unreadable.items()}
        checked = {key: self._damage(part) for key, part in index.parts.items()}
        return found | {key: error for key, error in checked.items() if error is not None}

    @contextlib.contextmanager
    def keeping(self, limits: Thresholds, known: str = "") -> Iterator[VerdictWriter]:
        """Give a writer of verdicts, which takes reports in the store's order; nobody else writes meanwhile.

        Args:
            limits: Thresholds the verdicts were reached with.
            known: What else the verdicts depend on, from outside the store, as a short text.

        Raises:
            InputError: The store cannot be written, or another process is writing it.
        """
        stamp = stamp_of(limits, known)
        with self.writing(wait=False), VerdictWriter(self.place, self.index(), stamp, limits.digest) as writer:
            yield writer

    def missing_verdicts(self, key: str, limits: Thresholds, known: str = "") -> tuple[str, ...]:
        """Return the tables that `keeping` would write for a part."""
        return tuple(missing_verdicts(self.place, key, stamp_of(limits, known)))

    def totals(self, index: Index, limits: Thresholds, known: str = "") -> dict[str, list[Total]]:
        """Return the totals of kernels that were stored with the same thresholds and the same `known`.

        Returns:
            The totals by key of the part. Left out are parts without stored totals, and those that must be read:
            damaged ones, and those with a run without the profiler.
        """
        stamp = stamp_of(limits, known)
        found = {
            key: read_totals(self.place, part, frozenset(index.digests_of(part)), stamp)
            for key, part in index.parts.items()
        }
        return {key: totals for key, totals in found.items() if totals is not None}

    def _damage(self, part: Part) -> InputError | None:
        """Say what is wrong with a part; each is checked once while writing."""
        if self._held is None or part.key not in self._checked:
            self._checked[part.key] = self._check(part)
        return self._checked[part.key]

    def _check(self, part: Part) -> InputError | None:
        try:
            for table, key, _ in part.commit.all_files():
                open_checked(self.place, part, table, key).close()
        except InputError as error:
            return error
        return None

    def _remove(self, *keys: str) -> None:
        """Remove the files of some keys, for each first the one that makes it visible."""
        for key in keys:
            for table in TABLES:
                self.place.remove(table, f"{key}.parquet")

    def _sweep(self) -> None:
        """Remove what was never committed, and what was replaced: only files that a writer of ours named."""
        index = self.index()
        committed = {*index.unreadable, *_keys(index, index.parts)}
        unknown = {group_of(key) for key in index.unreadable}  # which may have more files: nobody can read their names
        stale_unix_s = time.time() - (_STALE_AFTER_S if self.place.is_remote else 0)
        for table in TABLES:
            for entry in self.place.list(table):
                key = FILE_NAME.fullmatch(entry.name)
                is_left = (
                    key is not None
                    and key[1] not in committed
                    and group_of(key[1]) not in unknown
                    and (table != "runs" or key[1] in index.replaced)
                )
                is_old = not self.place.is_remote or (entry.changed_unix_s or stale_unix_s) < stale_unix_s
                if is_old and (is_left or is_partial(entry.name, FILE_NAME)):
                    self.place.remove(table, entry.name)


def _commit_of(
    part: PartSummary, replaces: tuple[str, ...] = (), committed_unix_ns: int = 0, *, is_compact: bool = False
) -> Committed:
    return Committed(part.key, part.files, replaces, committed_unix_ns, is_compact, more=part.more)


def _keys(index: Index, parts: Iterable[str]) -> Iterator[str]:
    """Yield the keys of all files of some parts, each part's own first."""
    for key in parts:
        yield from index.parts[key].commit.keys if key in index.parts else (key,)
