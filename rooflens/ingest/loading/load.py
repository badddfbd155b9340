"""Load reports into memory or into a store: the two things the command line asks of ingest.

Few reports are read in this very process, many by processes of this machine, or wherever an executor has them read.
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
"""From here on several processes start: what they save is more than the second that they take to begin."""

_WORTH_SHARING_BYTES = 16 << 20
"""From here on one more process reads beside us: it begins in a quarter of the time that so much takes to read."""

_FAILURES_AT_ONCE = 1_000


class Loaded(Struct):
    """Reports in the order they were asked for, and the errors of those that could not be read.

    Attributes:
        reports: Each run with its kernels.
        failures: Path as it was given, and error.
        skipped_count: Reports that were there already under another name among those asked for.
        digests: Of the reports read.
        notes: Path, and what a user should know of how that report was read.
    """

    reports: list[tuple[Run, tuple[Kernel, ...]]] = field(default_factory=list)
    failures: list[tuple[str, InputError]] = field(default_factory=list)
    skipped_count: int = 0
    digests: set[str] = field(default_factory=set)
    notes: list[tuple[str, str]] = field(default_factory=list)


class Ingested(Struct):
    """What became of the reports that were to be stored.

    Attributes:
        report_count: Of those stored now.
        kernel_count: Of their kernels.
        failures: Path as it was given, and error, of those that could not be read.
        skipped_count: Reports that were there already: in the store, or under another name among those asked for.
        warnings: Path of a report, and why what lies beside it is not stored with it.
        notes: Path, and what a user should know of how that report was read.
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
        on_outcome: Hears of each report as it is read.
        options: What is wanted of them.
        executor: Where to read them; by default here, or where there is much to read in processes of this machine.
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
    """Return whether one more process is to read beside us; NVIDIA's reader works in several of its own."""
    is_much = total_bytes >= _WORTH_SHARING_BYTES and len(jobs) > 1
    return is_much and options.reader != "ncu-report" and usable_cores() > 1


def _sort_in(loaded: Loaded, outcome: Outcome) -> None:
    """Put an outcome where it belongs; a report that came under another name already counts as skipped."""
    if isinstance(outcome.result, InputError):
        loaded.failures.append((outcome.job.source, outcome.result))
    elif outcome.result.run.digest in loaded.digests:
        loaded.skipped_count += 1
    else:
        loaded.digests.add(outcome.result.run.digest)
        loaded.reports.append((outcome.result.run, outcome.result.kernels))
        loaded.notes += ((outcome.job.source, note) for note in outcome.result.notes)


def _no_unprofiled(_: Path) -> None:
    """Find no run without the profiler."""


def ingest_reports(  # noqa: PLR0913 - the last three say how, and have their defaults
    jobs: Sequence[Job],
    store: Store,
    on_read: Callable[[Job], None] = lambda _: None,
    unprofiled_of: Callable[[Path], Unprofiled | None] = _no_unprofiled,
    *,
    options: ReadOptions | None = None,
    executor: ExecutorChoice | None = None,
) -> Ingested:
    """Read reports into a store; what it holds already is skipped, and parts of many are committed as they come.

    Whoever reads the reports writes them, on any machine that sees the store; here they are committed, one after the
    other, so that memory does not grow with their number.

    Args:
        jobs: Files to read.
        store: Where to.
        on_read: Hears of each report that was read.
        unprofiled_of: Finds the run without the profiler that belongs to a report, to be kept with it; a function of a
            module. Raises InputError where what is there is none: the report is stored without.
        options: What is wanted of each report; its values, by default.
        executor: Where to read them; by default here, or where there is much to read in processes of this machine.
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
    """Return how many bytes there are to read, and by whom; None for this process."""
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
    """Yield the reports that are to be read, and count the others; an empty store spares reading each file twice."""
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
    """Make what was written visible, and count it."""
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
    """Reports that could not be read, on their way to the store's table: each once, however often it was tried."""

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
        """Commit what there is."""
        from rooflens.model.store.parts import write_part  # noqa: PLC0415 - pyarrow: only where there are some
        from rooflens.model.store.rows import failure_table  # noqa: PLC0415

        if self._rows:
            self._store.commit(write_part(self._store.place, {"failures": failure_table(self._rows)}))
            self._rows = []


def _is_stored(job: Job, store: Store, unprofiled_of: Callable[[Path], Unprofiled | None]) -> bool:
    """Return whether a report is stored with its un-profiled run: that may have been written since."""
    try:
        with fetched(job) as path:
            if not path.is_file() or not store.is_current(digest := _digest(path)):
                return False
        found = unprofiled_of(job.path)
        return found is None or found == store.unprofiled(digest)
    except (OSError, InputError):
        return False  # the reader says why it cannot be read


def _digest(path: Path) -> str:
    """Return the digest that the reader gives a report: plain and compressed it is one."""
    if is_packed(path):
        digest = hashlib.sha256()
        for chunk in chunks(path):
            digest.update(chunk)
        return digest.hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
