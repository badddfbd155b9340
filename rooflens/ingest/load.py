"""Read reports into memory or into a store, in this process or with workers.

Every way works alike: reports in groups, an executor, and an outcome per report. Workers read and make the tables for
the store; only this process writes them.
"""

from __future__ import annotations

import hashlib
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import as_unicode, count
from rooflens.ingest.reports.jobs import MEMORY, Job, JobOutcome, bytes_of, fetched, said
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions, ReadReport
from rooflens.ingest.reports.unpacking import MAGIC, chunks, first_bytes, is_packed
from rooflens.machine import usable_cores
from rooflens.model.failed import BUG_HINT, MEMORY_HINT, bug_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from rooflens.ingest.running import ExecutorChoice, Workers
    from rooflens.model.records import Kernel, Run
    from rooflens.model.store.dataset import ReportFiles, Store, StoreListing
    from rooflens.model.store.tables import ReportRows
    from rooflens.model.unprofiled import Unprofiled

_MUCH_WORK = 10_000
"""Kernels from which on workers save more than the second that they take to start: they take 3 s here."""

_OF_A_REPORT, _OF_CODE = 8, 20
"""What a report takes to open, and a kernel whose machine code it holds, in kernels without code."""

_OF_A_KERNEL_BYTES, _OF_A_ROW_BYTES = 20 << 10, 1 << 10
"""Bytes of a kernel where the outline cannot tell, as of a compressed report, and of a launch in an export."""

_MOST_JOBS, _LEAST_BYTES, _MOST_BYTES = 500, 4 << 20, 128 << 20
_GROUPS_PER_WORKER = 4


class Remarks(Struct, kw_only=True):
    """What to tell the user about the requested reports.

    Attributes:
        failures: Path as given, and error, of each report that could not be read in full.
        skipped_count: Reports that repeat another report under a different name, or are already stored.
        notes: Path, and what a user should know about the reading of that report.
    """

    failures: list[tuple[str, InputError]] = field(default_factory=list)
    skipped_count: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)

    def take(self, outcome: JobOutcome) -> ReadReport | None:
        """Keep the remarks of an outcome; return its report, if there is one."""
        source, report = outcome.job.source, outcome.result
        if isinstance(report, InputError):
            self.failures.append((source, report))
            return None
        self.notes += ((source, note) for note in report.notes)
        if report.loss is not None:
            self.failures.append((source, report.loss))
        return report


class Loaded(Remarks, kw_only=True):
    """Reports in the order requested, with the errors of those that could not be read.

    Attributes:
        reports: Each run with its kernels.
        digests: Digests of the reports read.
    """

    reports: list[tuple[Run, tuple[Kernel, ...]]] = field(default_factory=list)
    digests: set[str] = field(default_factory=set)


class Ingested(Remarks, kw_only=True):
    """The outcome of an ingest.

    Attributes:
        report_count: Reports stored.
        kernel_count: Kernels stored.
        warnings: Path of a report, and why its un-profiled run is not stored with it.
    """

    report_count: int = 0
    kernel_count: int = 0
    warnings: list[tuple[str, InputError]] = field(default_factory=list)


class Batch(Struct, frozen=True):
    """The outcome of a group of reports.

    Attributes:
        outcomes: One per report; for a store, without kernels and values.
        files: The files of each report for a store.
        warnings: The source of each report whose un-profiled run cannot be stored with it, and why.
    """

    outcomes: Sequence[JobOutcome]
    files: Sequence[ReportFiles] = ()
    warnings: Sequence[tuple[str, InputError]] = ()


def load_reports(
    jobs: Sequence[Job],
    on_outcome: Callable[[JobOutcome], None] = lambda _: None,
    options: ReadOptions | None = None,
    executor: ExecutorChoice | Workers | None = None,
    on_read: Callable[[float], None] = lambda _: None,
) -> Loaded:
    """Read reports into memory.

    Args:
        jobs: Files to read.
        on_outcome: Called with each report's outcome.
        options: What to read.
        executor: Where to read them; by default in this process.
        on_read: Called with parts of the work as they are done: they add up to 1 for each report.
    """
    loaded = Loaded()
    for batch in _batches(partial(read_group, options or ReadOptions()), jobs, jobs, executor, on_read):
        for outcome in batch.outcomes:
            on_outcome(outcome)
            if isinstance(outcome.result, ReadReport) and outcome.result.run.digest in loaded.digests:
                loaded.skipped_count += 1
            elif (report := loaded.take(outcome)) is not None:
                loaded.digests.add(report.run.digest)
                loaded.reports.append((report.run, report.kernels))
    return loaded


def read_group(options: ReadOptions, jobs: Sequence[Job], on_read: Callable[[float], None] = lambda _: None) -> Batch:
    """Read some reports, here or on a worker; NVIDIA's disassembler starts slowly, so it runs once for all."""
    outcomes = []
    for job in jobs:
        parts: list[float] = []

        def heard(part: float, parts: list[float] = parts) -> None:
            parts.append(part)
            on_read(part)

        outcomes.append(read_one(job, replace(options, texts_later=not job.address), heard))
        on_read(1.0 - sum(parts))
    lacking = [
        (place, outcome.job.path, outcome.result)
        for place, outcome in enumerate(outcomes)
        if isinstance(outcome.result, ReadReport) and options.texts and outcome.result.untold
    ]
    if lacking:
        from rooflens.ingest.reports.texts import add_texts  # noqa: PLC0415 - a child: only where it is asked

        told = add_texts([(path, report) for _, path, report in lacking], options)
        for (place, _, _), report in zip(lacking, told, strict=True):
            outcomes[place] = JobOutcome(outcomes[place].job, report)
    return Batch(outcomes)


def read_one(job: Job, options: ReadOptions, on_read: Callable[[float], None] = lambda _: None) -> JobOutcome:
    """Read a report, or say why that failed; `on_read` is called with parts of the work, which add up to 1 at most."""
    try:
        with said(), fetched(job) as path:
            return JobOutcome(job, read_report(path, job.source, options, on_read))
    except InputError as error:
        # Drop the traceback: its frames hold the data that was read, and would keep it in memory.
        error.__cause__ = error.__context__ = None
        return JobOutcome(job, error.with_traceback(None))


def _no_unprofiled(_: Path) -> None:
    """Find no un-profiled run."""


def ingest_reports(  # noqa: PLR0913 - the last four say how, and have their defaults
    jobs: Sequence[Job],
    store: Store,
    on_read: Callable[[float], None] = lambda _: None,
    unprofiled_of: Callable[[Path], Unprofiled | None] = _no_unprofiled,
    *,
    options: ReadOptions | None = None,
    executor: ExecutorChoice | Workers | None = None,
    on_stored: Callable[[Ingested], None] = lambda _: None,
) -> Ingested:
    """Read reports into a store, skipping those that it already holds.

    Each group of reports is stored as soon as it is read, and stays even if a later one fails. Memory does not grow
    with the number of reports.

    Args:
        jobs: Files to read.
        store: Where to store them.
        on_read: Called with parts of the work as they are done: they add up to 1 for each report.
        unprofiled_of: Finds a report's un-profiled run, to be stored with it; must be importable by name. If it raises
            InputError, the report is stored without.
        options: What to read of each report; by default including its stored values.
        executor: Where to read them; by default in this process.
        on_stored: Called with the outcome so far after each group of reports but the last.

    Raises:
        InputError: The store cannot be written; the message says how much was stored before.
    """
    make = partial(make_files, options or ReadOptions(raw="values"), unprofiled_of)
    ingested = Ingested()
    store.prepare()
    held = _Held(store, unprofiled_of)
    for batch in _batches(make, jobs, _new(jobs, held, ingested), executor, on_read):
        if ingested.report_count:
            on_stored(ingested)
        try:
            _store(batch, held, ingested)
        except InputError as error:
            if ingested.report_count:
                kept = f"{count(ingested.report_count, 'report')} of this ingest were stored before that, and stay"
                raise InputError(f"{error}; {kept}", error.hint) from error
            raise
    # Workers finish in any order; two ingests of the same files must print the same.
    ingested.failures.sort(key=lambda failure: failure[0])
    return ingested


def _store(batch: Batch, held: _Held, ingested: Ingested) -> None:
    """Store a group of reports, and why others could not be read."""
    unread: list[tuple[str, InputError]] = []
    for outcome in batch.outcomes:
        if ingested.take(outcome) is not None:
            ingested.skipped_count += 1  # unless it is stored now
        else:
            unread.append(ingested.failures[-1])
    new = held.put(batch.files)
    ingested.report_count += len(new)
    ingested.kernel_count += sum(run.kernel_count for run in new)
    ingested.skipped_count -= len(new)
    ingested.warnings += batch.warnings
    held.put_failures(unread)


def make_files(
    options: ReadOptions,
    unprofiled_of: Callable[[Path], Unprofiled | None],
    jobs: Sequence[Job],
    on_read: Callable[[float], None] = lambda _: None,
) -> Batch:
    """Read some reports, here or on a worker, and make their files for a store."""
    from rooflens.model.store.tables import ReportRows  # noqa: PLC0415 - pyarrow: only where it is needed

    outcomes, warnings = list(read_group(options, jobs, on_read).outcomes), list[tuple[str, InputError]]()
    files: dict[str, ReportFiles] = {}
    for number, (job, report) in enumerate((outcome.job, outcome.result) for outcome in outcomes):
        if not isinstance(report, ReadReport):
            continue
        unprofiled = None
        try:
            with said():
                unprofiled = unprofiled_of(job.path)
        except InputError as error:
            warnings.append((job.source, error))
        # Sending the kernels back to the parent beside their files would double what is pickled.
        outcomes[number] = JobOutcome(job, ReadReport(report.run, (), notes=report.notes, loss=report.loss))
        if report.run.digest not in files:
            made = _files_of_report(ReportRows(report.run, report.kernels, unprofiled, report.raw, report.instances))
            if isinstance(made, InputError):
                outcomes[number] = JobOutcome(job, made)
            else:
                files[report.run.digest] = made
    return Batch(outcomes, [*files.values()], warnings)


def _files_of_report(report: ReportRows) -> ReportFiles | InputError:
    """Make the files of a report, or say that a value fits no table."""
    from rooflens.model.store.dataset import report_files  # noqa: PLC0415 - as above

    try:
        return report_files(report)
    except Exception as error:  # noqa: BLE001 - a value of any kind, or memory
        return _refusal(error)


def _refusal(error: Exception) -> InputError:
    if isinstance(error, MemoryError):
        return InputError(MEMORY, MEMORY_HINT)
    return InputError(f"it holds a value that the store cannot take: {bug_place(error)}: {error}", BUG_HINT)


def _batches(
    read: Callable[..., Batch],
    all_jobs: Sequence[Job],
    jobs: Iterable[Job],
    executor: ExecutorChoice | Workers | None,
    on_read: Callable[[float], None],
) -> Iterator[Batch]:
    """Read reports in groups on the chosen executor; every job comes out with an outcome."""
    # Counts all jobs: which of them are new turns out only while they are read.
    total_bytes = sum(map(bytes_of, all_jobs))
    # A dict, not a set: jobs without an answer are named in the order requested.
    without_answer: dict[Job, None] = {}

    def groups(workers: int) -> Iterator[tuple[Job, ...]]:
        for group in grouped(jobs, group_bytes(total_bytes, workers)):
            without_answer.update(dict.fromkeys(group))
            yield group

    results: Iterable[tuple[tuple[Job, ...], Batch | InputError]]
    if executor is None:
        results = ((group, read(group, on_read)) for group in groups(1))
    else:
        from rooflens.ingest.running import Workers, find_workers, run  # noqa: PLC0415 - 20 ms: only where it is wanted

        workers = executor if isinstance(executor, Workers) else find_workers(executor)
        results = run(read, groups(workers.count), workers)
    for group, result in results:
        batch = Batch([JobOutcome(job, result) for job in group]) if isinstance(result, InputError) else result
        for outcome in batch.outcomes:
            without_answer.pop(outcome.job, None)
            if executor is not None:
                on_read(1.0)
        yield batch
    if without_answer:
        yield Batch([JobOutcome(job, InputError("the reader gave no answer", BUG_HINT)) for job in without_answer])


def processes_for(jobs: Sequence[Job]) -> Workers | None:
    """Return local worker processes if the reports hold enough kernels for them to save time; else None."""
    if len(jobs) < 2 or usable_cores() == 1:
        return None
    if not any(done >= _MUCH_WORK for done in accumulate(map(_work_of, jobs))):
        return None
    from rooflens.ingest.running import processes  # noqa: PLC0415 - as above

    return processes()


def _work_of(job: Job) -> int:
    """Estimate what a report takes to read, in kernels without machine code."""
    magic = b"" if job.address else first_bytes(job.path, len(MAGIC))
    if magic != MAGIC:
        is_text = not job.address and not is_packed(job.path)
        return _OF_A_REPORT + bytes_of(job) // (_OF_A_ROW_BYTES if is_text else _OF_A_KERNEL_BYTES)
    from rooflens.ingest.reports.container import counts_of  # noqa: PLC0415 - only where there are several

    held = counts_of(job.path)
    return _OF_A_REPORT + held.results * (_OF_CODE if held.modules else 1)


def grouped(jobs: Iterable[Job], most_bytes: int) -> Iterator[tuple[Job, ...]]:
    """Group reports up to an unpacked size in bytes, at most 2,000 each; a larger report stays alone."""
    group: list[Job] = []
    held_bytes = 0
    for job in jobs:
        job_bytes = bytes_of(job)
        if group and (held_bytes + job_bytes > most_bytes or len(group) >= _MOST_JOBS):
            yield tuple(group)
            group, held_bytes = [], 0
        group.append(job)
        held_bytes += job_bytes
    if group:
        yield tuple(group)


def group_bytes(total_bytes: int, workers: int) -> int:
    """Return how many bytes to read per group: at most 128 MB, and several groups per worker."""
    return max(_LEAST_BYTES, min(_MOST_BYTES, total_bytes // (_GROUPS_PER_WORKER * workers)))


def _new(jobs: Sequence[Job], held: _Held, ingested: Ingested) -> Iterator[Job]:
    """Yield the reports that are not in the store yet and count those that are; an empty store reads no file."""
    for job in jobs:
        if held.has(job, ingested.notes):
            ingested.skipped_count += 1
        else:
            yield job


class _Held:
    """What a store held before an ingest, and what the ingest adds."""

    def __init__(self, store: Store, unprofiled_of: Callable[[Path], Unprofiled | None]) -> None:
        self._store = store
        self._unprofiled_of = unprofiled_of
        self._there: StoreListing = store.listing()
        self._before = self._there.digests("runs")
        self._done: set[str] = set()
        self._kept: dict[str, Unprofiled] = {}

    def has(self, job: Job, notes: list[tuple[str, str]]) -> bool:
        """Return whether a report is stored; if so, store an un-profiled run that was written since.

        Raises:
            InputError: A file of the store cannot be reached at the moment, or not be written.
        """
        if not self._before:
            return False
        try:
            with fetched(job) as path:
                digest = _digest(path) if path.is_file() else ""
            if digest not in self._before:
                return False
            found = self._unprofiled_of(job.path)
        except (OSError, InputError):
            return False  # the reader will report the error
        if digest in self._done:
            return True
        stored, kept = self._store.run(digest, self._there), self._store.unprofiled(digest, self._there)
        is_whole = stored is not None and not stored.lacks and (kept is not None or "unprofiled" not in stored.files)
        if stored is None or not (is_whole or (found and stored.lacks.keys() <= {"unprofiled"})):
            if kept is not None and found is None:
                self._kept[digest] = kept
            return False
        if found is not None and (found != kept or "unprofiled" not in stored.files):
            self._store.put_unprofiled(stored, found)
            notes.append((job.source, "is stored already; its run without the profiler is new, and stored too"))
        self._done.add(digest)
        return True

    def put(self, reports: Iterable[ReportFiles]) -> list[Run]:
        """Store those reports that are not stored yet, and return them."""
        new = [one for one in reports if one.run.digest not in self._done]
        if new:
            from rooflens.model.store.dataset import with_unprofiled  # noqa: PLC0415 - pyarrow: only where it is needed

            self._store.put([with_unprofiled(one, self._kept.get(one.run.digest)) for one in new])
        self._done.update(one.run.digest for one in new)
        return [one.run for one in new]

    def put_failures(self, unread: Iterable[tuple[str, InputError]]) -> None:
        """Store why reports could not be read."""
        self._store.put_failures(
            [(as_unicode(source), as_unicode(str(error)), as_unicode(error.hint)) for source, error in unread]
        )


def _digest(path: Path) -> str:
    """Return a report's digest as a reader computes it, the same compressed or not."""
    if is_packed(path):
        digest = hashlib.sha256()
        for chunk in chunks(path):
            digest.update(chunk)
        return digest.hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
