"""Read reports into memory or into a store, in this process or by workers.

There is one way: reports in groups, an executor, and what became of each report. Workers read, and make the tables for
the store; this process alone writes it.
"""

from __future__ import annotations

import hashlib
import time
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import as_unicode
from rooflens.ingest.reports.jobs import MEMORY, Outcome, said
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.remote import bytes_of, fetched
from rooflens.ingest.reports.report import ReadOptions, Report
from rooflens.ingest.reports.texts import add_texts
from rooflens.ingest.reports.unpacking import chunks, is_packed
from rooflens.machine import usable_cores
from rooflens.model.failed import BUG_HINT, MEMORY_HINT, bug_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from rooflens.ingest.reports.jobs import Job
    from rooflens.ingest.running import ExecutorChoice, Workers
    from rooflens.model.records import Kernel, Run
    from rooflens.model.store.rows import ReportRows
    from rooflens.model.store.store import Store
    from rooflens.model.unprofiled import Unprofiled

_MUCH_BYTES = 256 << 20
"""From here on several processes save more than the second that they take to start."""

_MOST_JOBS, _LEAST_BYTES, _MOST_BYTES = 2_000, 4 << 20, 128 << 20
_GROUPS_PER_WORKER = 4

_SECONDS_PER_PART = 20.0
"""After so long what was read becomes a part: a process that is killed loses no more."""

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


class Batch(Struct, frozen=True):
    """What became of a group of reports.

    Attributes:
        outcomes: One for each report; those for the store come without their kernels and values.
        tables: Rows for the store by table, of all reports together or of each.
        warnings: The source of each report whose un-profiled run cannot be stored with it, and why.
    """

    outcomes: Sequence[Outcome]
    tables: Sequence[Mapping[str, pa.Table]] = ()
    warnings: Sequence[tuple[str, InputError]] = ()


def load_reports(
    jobs: Sequence[Job],
    on_outcome: Callable[[Outcome], None] = lambda _: None,
    options: ReadOptions | None = None,
    executor: ExecutorChoice | Workers | None = None,
) -> Loaded:
    """Read reports into memory.

    Args:
        jobs: Files to read.
        on_outcome: Called for each report as it is read.
        options: What is wanted of them.
        executor: Where to read them; by default in this process.
    """
    loaded = Loaded()
    for batch in _batches(partial(read_group, options or ReadOptions()), jobs, jobs, executor):
        for outcome in batch.outcomes:
            on_outcome(outcome)
            _sort_in(loaded, outcome)
    return loaded


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
        if outcome.result.loss is not None:
            loaded.failures.append((outcome.job.source, outcome.result.loss))


def read_group(options: ReadOptions, jobs: Sequence[Job]) -> Batch:
    """Read some reports, here or on a worker; NVIDIA's disassembler, which is slow to start, tells of all at once."""
    outcomes = [read_one(job, replace(options, texts_later=not job.address)) for job in jobs]
    lacking = [
        (place, outcome.job.path, outcome.result)
        for place, outcome in enumerate(outcomes)
        if isinstance(outcome.result, Report) and (outcome.result.untold or outcome.result.unlisted)
    ]
    told = add_texts([(path, report) for _, path, report in lacking], options) if lacking else []
    for (place, _, _), report in zip(lacking, told, strict=True):
        outcomes[place] = Outcome(outcomes[place].job, report)
    return Batch(outcomes)


def read_one(job: Job, options: ReadOptions) -> Outcome:
    """Read a report; return what became of it."""
    try:
        with said(), fetched(job) as path:
            return Outcome(job, read_report(path, job.source, options))
    except InputError as error:
        # Without the frames in which it was raised: they hold what had been read.
        error.__cause__ = error.__context__ = None
        return Outcome(job, error.with_traceback(None))


def _no_unprofiled(_: Path) -> None:
    """Find no un-profiled run."""


def ingest_reports(  # noqa: PLR0913 - the last three say how, and have their defaults
    jobs: Sequence[Job],
    store: Store,
    on_read: Callable[[Job], None] = lambda _: None,
    unprofiled_of: Callable[[Path], Unprofiled | None] = _no_unprofiled,
    *,
    options: ReadOptions | None = None,
    executor: ExecutorChoice | Workers | None = None,
) -> Ingested:
    """Read reports into a store; those that it holds already are skipped, and parts are committed as they come.

    Memory does not grow with the number of reports.

    Args:
        jobs: Files to read.
        store: Where to.
        on_read: Called for each report that was read.
        unprofiled_of: Finds a report's un-profiled run, to be stored with it; it can be imported by its name. If it
            raises InputError, the report is stored without.
        options: What is wanted of each report; by default also its values.
        executor: Where to read them; by default in this process.
    """
    from rooflens.model.store.parts import PART_BYTES, PartWriter  # noqa: PLC0415 - pyarrow: only where it is needed

    tabulate = partial(tabulate_group, options or ReadOptions(raw="values"), unprofiled_of)
    with store.writing():
        ingested, failures = Ingested(), _Failures(store)
        batches = _batches(tabulate, jobs, _new(jobs, store, unprofiled_of, ingested), executor)
        for first in batches:
            read_count, started_s = 0, time.monotonic()
            with PartWriter(store.place) as writer:
                for batch in chain([first], batches):
                    for tables in batch.tables:
                        writer.add(tables)
                    read_count += _count(batch, ingested, failures, on_read)
                    if writer.byte_count > PART_BYTES or time.monotonic() - started_s > _SECONDS_PER_PART:
                        break
            runs = writer.summary.runs
            stored = store.commit(writer.summary) if writer.summary.files else frozenset()
            counts = zip(runs["digest"].to_pylist(), runs["kernel_count"].to_pylist(), strict=True)
            ingested.kernel_count += sum(count for digest, count in counts if digest in stored)
            ingested.report_count += len(stored)
            ingested.skipped_count += read_count - len(stored)
        failures.write()
    ingested.failures.sort(key=lambda failure: failure[0])
    return ingested


def _count(batch: Batch, ingested: Ingested, failures: _Failures, on_read: Callable[[Job], None]) -> int:
    """Add what is to be said of a batch; return how many of its reports were read."""
    read_count = 0
    for outcome in batch.outcomes:
        source = outcome.job.source
        if isinstance(outcome.result, InputError):
            ingested.failures.append((source, outcome.result))
            failures.add(source, outcome.result)
        else:
            read_count += 1
            ingested.notes += ((source, note) for note in outcome.result.notes)
            if outcome.result.loss is not None:
                ingested.failures.append((source, outcome.result.loss))
        on_read(outcome.job)
    ingested.warnings += batch.warnings
    return read_count


def tabulate_group(
    options: ReadOptions, unprofiled_of: Callable[[Path], Unprofiled | None], jobs: Sequence[Job]
) -> Batch:
    """Read some reports, here or on a worker, and make their tables."""
    from rooflens.model.store.rows import ReportRows  # noqa: PLC0415 - pyarrow: only where it is needed

    outcomes = list(read_group(options, jobs).outcomes)
    rows: dict[int, ReportRows] = {}
    warnings: list[tuple[str, InputError]] = []
    for number, (job, report) in enumerate((outcome.job, outcome.result) for outcome in outcomes):
        if isinstance(report, Report):
            unprofiled = None
            try:
                with said():
                    unprofiled = unprofiled_of(job.path)
            except InputError as error:
                warnings.append((job.source, error))
            rows[number] = ReportRows(report.run, report.kernels, unprofiled, report.raw, report.instances)
            outcomes[number] = Outcome(job, Report(report.run, (), notes=report.notes, loss=report.loss))
    tables, refused = _tables(rows)
    for number, why in refused.items():
        outcomes[number] = Outcome(outcomes[number].job, why)
    return Batch(outcomes, tables, warnings)


def _tables(rows: Mapping[int, ReportRows]) -> tuple[list[Mapping[str, pa.Table]], dict[int, InputError]]:
    """Make the tables of reports together, or of each by itself where one holds what no table takes."""
    from rooflens.model.store.rows import report_tables  # noqa: PLC0415 - as above

    if not rows:
        return [], {}
    try:
        return [report_tables(*{report.run.digest: report for report in rows.values()}.values())], {}
    except Exception as error:  # noqa: BLE001 - a value of any kind, or memory
        if len(rows) == 1:
            return [], dict.fromkeys(rows, _refusal(error))
    each = [_tables({number: report}) for number, report in rows.items()]
    refused = {number: error for _, some in each for number, error in some.items()}
    return [table for tables, _ in each for table in tables], refused


def _refusal(error: Exception) -> InputError:
    if isinstance(error, MemoryError):
        return InputError(MEMORY, MEMORY_HINT)
    return InputError(f"it holds a value that the store cannot take: {bug_place(error)}: {error}", BUG_HINT)


def _batches(
    read: Callable[[Sequence[Job]], Batch],
    all_jobs: Sequence[Job],
    jobs: Iterable[Job],
    executor: ExecutorChoice | Workers | None,
) -> Iterator[Batch]:
    """Read reports in groups where it was asked for; each of the jobs comes out, with an outcome."""
    total_bytes = sum(map(bytes_of, all_jobs))
    without_answer: dict[Job, None] = {}

    def groups(workers: int) -> Iterator[tuple[Job, ...]]:
        for group in grouped(jobs, group_bytes(total_bytes, workers)):
            without_answer.update(dict.fromkeys(group))
            yield group

    results: Iterable[tuple[tuple[Job, ...], Batch | InputError]]
    if executor is None:
        results = ((group, read(group)) for group in groups(1))
    else:
        from rooflens.ingest.running import Workers, find_workers, run  # noqa: PLC0415 - 20 ms: only where it is wanted

        workers = executor if isinstance(executor, Workers) else find_workers(executor)
        results = run(read, groups(workers.count), workers)
    for group, result in results:
        batch = Batch([Outcome(job, result) for job in group]) if isinstance(result, InputError) else result
        for outcome in batch.outcomes:
            without_answer.pop(outcome.job, None)
        yield batch
    if without_answer:
        yield Batch([Outcome(job, InputError("no answer came back for it", BUG_HINT)) for job in without_answer])


def processes_for(jobs: Sequence[Job], options: ReadOptions | None) -> Workers | None:
    """Return processes of this machine where there is so much to read that they save time; else None.

    NVIDIA's reader takes so long that two reports are enough.
    """
    if len(jobs) < 2 or usable_cores() == 1:
        return None
    is_slow = options is not None and options.reader == "ncu-report"
    if not is_slow and sum(map(bytes_of, jobs)) < _MUCH_BYTES:
        return None
    from rooflens.ingest.running import processes  # noqa: PLC0415 - as above

    return processes()


def grouped(jobs: Iterable[Job], most_bytes: int) -> Iterator[tuple[Job, ...]]:
    """Group reports up to so many bytes, unpacked, and at most 2,000 reports; a larger one stays alone."""
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
    """Return how many bytes are read together: each worker gets several groups, of at most 128 MB."""
    return max(_LEAST_BYTES, min(_MOST_BYTES, total_bytes // (_GROUPS_PER_WORKER * workers)))


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


class _Failures:
    """Reports that could not be read, to be stored in the table `failures`: each once, however often it was tried."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told = {*store.failures()}
        self._rows: list[tuple[str, str, str]] = []

    def add(self, source: str, error: InputError) -> None:
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
