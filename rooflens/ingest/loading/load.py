"""Load reports into memory or into a store: what the command line asks of ingest.

Few reports are read in this process, many by several processes of this machine, or by an executor if one is given.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING

from msgspec import Struct, field

from rooflens.errors import InputError
from rooflens.format import as_unicode
from rooflens.ingest.children.memory import usable_cores
from rooflens.ingest.loading.tasks import (
    IngestTask,
    LoadTask,
    Written,
    read_reports,
)
from rooflens.ingest.reports.remote import bytes_of, fetched
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.reports.spans import may_be_split
from rooflens.ingest.reports.unpacking import chunks, is_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rooflens.ingest.executors.opening import ExecutorChoice, Workers
    from rooflens.ingest.reports.pool import Job, Outcome
    from rooflens.model.records import Kernel, Run
    from rooflens.model.store.store import Store
    from rooflens.model.unprofiled import Unprofiled

_MUCH_BYTES = 256 << 20
"""From here on several processes start: they save more than the second that they take to start."""

_WORTH_SHARING_BYTES = 16 << 20
"""From here on one more process reads beside us: it starts in a quarter of the time that reading so much takes."""

_FAILURES_AT_ONCE = 1_000


class Loaded(Struct):
    """Reports in the order they were asked for, and the errors of those that could not be read.

    Attributes:
        reports: Each run with its kernels.
        failures: Path as it was given, and error.
        skipped_count: How many reports were the same as another one under a different name.
        digests: Digests of the reports read.
        notes: Path, and what a user should know about how that report was read.
    """

    reports: list[tuple[Run, tuple[Kernel, ...]]] = field(default_factory=list)
    failures: list[tuple[str, InputError]] = field(default_factory=list)
    skipped_count: int = 0
    digests: set[str] = field(default_factory=set)
    notes: list[tuple[str, str]] = field(default_factory=list)


class Ingested(Struct):
    """What became of the reports that were to be stored.

    Attributes:
        report_count: How many reports were stored.
        kernel_count: How many kernels they have.
        failures: Path as it was given, and error, of those that could not be read.
        skipped_count: How many were in the store already, or the same as another one under a different name.
        warnings: Path of a report, and why a file beside it is not stored with it.
        notes: Path, and what a user should know about how that report was read.
    """

    report_count: int = 0
    kernel_count: int = 0
    failures: list[tuple[str, InputError]] = field(default_factory=list)
    skipped_count: int = 0
    warnings: list[tuple[str, InputError]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


def load_reports(
    jobs: Sequence[Job],
    on_outcome: Callable[[Outcome], None] = lambda _: None,
    options: ReadOptions | None = None,
    executor: ExecutorChoice | None = None,
) -> Loaded:
    """Read reports into memory.

    Args:
        jobs: Files to read.
        on_outcome: Called for each report as it is read.
        options: What is wanted of them.
        executor: Where to read them; by default in this process, or in several if there is much to read.
    """
    wanted = options or ReadOptions()
    order = {job: position for position, job in enumerate(jobs)}
    total_bytes, workers = _plan(jobs, wanted, executor)
    outcomes: list[Outcome] = []
    for outcome in _outcomes(jobs, wanted, total_bytes, workers):
        on_outcome(outcome)
        outcomes.append(outcome)
    loaded = Loaded()
    for outcome in sorted(outcomes, key=lambda done: order[done.job]):
        _sort_in(loaded, outcome)
    return loaded


def prepare(jobs: Sequence[Job], options: ReadOptions | None = None) -> None:
    """Start the process that will read beside us, if one will: it begins while exports are still being compared."""
    total_bytes = sum(map(bytes_of, jobs))
    if total_bytes < _MUCH_BYTES and _is_shared(jobs, options or ReadOptions(), total_bytes):
        from rooflens.ingest.children.beside import prepare as have_imported  # noqa: PLC0415 - as in `_outcomes`

        have_imported("rooflens.ingest.loading.sharing", start=True)


def _outcomes(
    jobs: Sequence[Job], options: ReadOptions, total_bytes: int, workers: Workers | None
) -> Iterator[Outcome]:
    if workers is None:
        if _is_shared(jobs, options, total_bytes):
            from rooflens.ingest.loading.sharing import read_beside  # noqa: PLC0415 - only where there is enough

            yield from read_beside(jobs, options)
        else:
            yield from read_reports(jobs, options)
        return
    from rooflens.ingest.loading.gathering import by_workers  # noqa: PLC0415 - only where there are some

    yield from by_workers(workers, LoadTask(options, uuid.uuid4().hex), jobs, options, total_bytes)


def _is_shared(jobs: Sequence[Job], options: ReadOptions, total_bytes: int) -> bool:
    """Return whether one more process should read beside us; NVIDIA's reader has several of its own anyway."""
    is_much = total_bytes >= _WORTH_SHARING_BYTES and len(jobs) > 1
    return is_much and options.reader != "ncu-report" and usable_cores() > 1


def _sort_in(loaded: Loaded, outcome: Outcome) -> None:
    """Add an outcome; a report that came before under another name counts as skipped."""
    if isinstance(outcome.result, InputError):
        loaded.failures.append((outcome.job.source, outcome.result))
    elif outcome.result.run.digest in loaded.digests:
        loaded.skipped_count += 1
    else:
        loaded.digests.add(outcome.result.run.digest)
        loaded.reports.append((outcome.result.run, outcome.result.kernels))
        loaded.notes += ((outcome.job.source, note) for note in outcome.result.notes)


def _no_unprofiled(_: Path) -> None:
    """Find no un-profiled run."""


def ingest_reports(  # noqa: PLR0913 - the last three say how, and have their defaults
    jobs: Sequence[Job],
    store: Store,
    on_read: Callable[[Job], None] = lambda _: None,
    unprofiled_of: Callable[[Path], Unprofiled | None] = _no_unprofiled,
    *,
    options: ReadOptions | None = None,
    executor: ExecutorChoice | None = None,
) -> Ingested:
    """Read reports into a store; those that it holds already are skipped, and parts are committed as they come.

    The process that reads a report writes it, on any machine that sees the store; this one commits what was written, so
    memory does not grow with the number of reports.

    Args:
        jobs: Files to read.
        store: Where to.
        on_read: Called for each report that was read.
        unprofiled_of: Finds a report's un-profiled run, to be stored with it; it can be imported by its name. If it
            raises InputError, the report is stored without.
        options: What is wanted of each report; by default also its values.
        executor: Where to read them; by default in this process, or in several if there is much to read.
    """
    task = IngestTask(store.place, options or ReadOptions(raw="values"), unprofiled_of, uuid.uuid4().hex)
    total_bytes, workers = _plan(jobs, task.options, executor)
    with store.writing():
        ingested = Ingested()
        waiting = _new(jobs, store, unprofiled_of, ingested)
        failures = _Failures(store)
        for written in _written(waiting, task, total_bytes, workers):
            _commit(written, store, ingested)
            failures.add(written.failures)
            for job in written.jobs:
                on_read(job)
        failures.write()
    ingested.failures.sort(key=lambda failure: failure[0])
    return ingested


def _plan(jobs: Sequence[Job], options: ReadOptions, executor: ExecutorChoice | None) -> tuple[int, Workers | None]:
    """Return how many bytes there are to read, and the workers to read them; None for this process."""
    total_bytes = sum(map(bytes_of, jobs))
    if executor is not None:
        from rooflens.ingest.executors.opening import find_workers  # noqa: PLC0415 - only where one is named

        return total_bytes, find_workers(executor)
    is_one = len(jobs) == 1 and not may_be_split(jobs[0], options)
    if total_bytes < _MUCH_BYTES or is_one or usable_cores() == 1:
        return total_bytes, None
    from rooflens.ingest.executors.opening import processes  # noqa: PLC0415 - only where there is much to read

    return total_bytes, processes()


def _new(
    jobs: Sequence[Job], store: Store, unprofiled_of: Callable[[Path], Unprofiled | None], ingested: Ingested
) -> Iterator[Job]:
    """Yield the reports that are not stored yet, and count the others; with an empty store no file is read for that."""
    held = store.digests()
    for job in jobs:
        if held and _is_stored(job, store, unprofiled_of):
            ingested.skipped_count += 1
        else:
            yield job


def _written(jobs: Iterator[Job], task: IngestTask, total_bytes: int, workers: Workers | None) -> Iterator[Written]:
    if workers is None:
        yield from task.written(jobs)
        return
    from rooflens.ingest.loading.gathering import by_workers  # noqa: PLC0415 - only where there are some

    yield from by_workers(workers, task, jobs, task.options, total_bytes)


def _commit(written: Written, store: Store, ingested: Ingested) -> None:
    """Commit what was written, and count it."""
    read_count = len(written.jobs) - len(written.failures)
    ingested.failures += written.failures
    ingested.warnings += written.warnings
    ingested.notes += written.notes
    stored: frozenset[str] = frozenset()
    if written.part is not None:
        runs = written.part.runs
        stored = store.commit(written.part)
        counts = zip(runs["digest"].to_pylist(), runs["kernel_count"].to_pylist(), strict=True)
        ingested.kernel_count += sum(count for digest, count in counts if digest in stored)
    ingested.report_count += len(stored)
    ingested.skipped_count += read_count - len(stored)


class _Failures:
    """Reports that could not be read, to be stored in the table `failures`: each once, however often it was tried."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told = {*store.failures()}
        self._rows: list[tuple[str, str, str]] = []

    def add(self, failures: Sequence[tuple[str, InputError]]) -> None:
        for source, error in failures:
            row = as_unicode(source), as_unicode(str(error)), as_unicode(error.hint)
            if row[:2] not in self._told:
                self._rows.append(row)
        if len(self._rows) >= _FAILURES_AT_ONCE:
            self.write()

    def write(self) -> None:
        """Commit what was added."""
        from rooflens.model.store.parts import write_part  # noqa: PLC0415 - pyarrow: only where there are some
        from rooflens.model.store.rows import failure_table  # noqa: PLC0415

        if self._rows:
            self._store.commit(write_part(self._store.place, {"failures": failure_table(self._rows)}))
            self._rows = []


def _is_stored(job: Job, store: Store, unprofiled_of: Callable[[Path], Unprofiled | None]) -> bool:
    """Return whether a report is stored together with its un-profiled run, which may have been written since."""
    try:
        with fetched(job) as path:
            if not path.is_file() or not store.is_current(digest := _digest(path)):
                return False
        found = unprofiled_of(job.path)
        return found is None or found == store.unprofiled(digest)
    except (OSError, InputError):
        return False  # the reader says why it cannot be read


def _digest(path: Path) -> str:
    """Return the digest that a reader gives a report: the same plain and compressed."""
    if is_packed(path):
        digest = hashlib.sha256()
        for chunk in chunks(path):
            digest.update(chunk)
        return digest.hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
