"""What is done with several reports at once, in this process or by a worker that may die.

All functions can be pickled by their names. What a task for the store returns is small whatever it read: the worker
writes the part files, and the process that holds the store commits them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import chain, groupby
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.ingest.children.memory import MAX_CHILDREN, usable_cores
from rooflens.ingest.reports.encoded import UnknownContentError
from rooflens.ingest.reports.pool import Job, Outcome, end_children, said
from rooflens.ingest.reports.read import read_parts, read_report
from rooflens.ingest.reports.remote import bytes_of, fetched
from rooflens.ingest.reports.report import Held, ReadOptions, Report
from rooflens.ingest.reports.spans import Span, finish_spans, read_span
from rooflens.model.failed import BUG_HINT, bug_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from rooflens.model.records import Kernel, Run
    from rooflens.model.store.parts import PartSummary, PartWriter
    from rooflens.model.store.place import Place
    from rooflens.model.unprofiled import Unprofiled

_SECONDS_PER_PART = 20.0
"""After so long what was read becomes a part: a process that is killed loses no more."""

Item: TypeAlias = Job | Span
"""What tasks consist of."""

_MOST_JOBS, _LEAST_BYTES, _MOST_BYTES = 2_000, 4 << 20, 128 << 20
_TASKS_PER_WORKER = 4
_LARGE_BYTES, _KERNELS_AT_ONCE = 64 << 20, 2_000
"""A report of more bytes is stored in pieces of so many kernels."""

_ONCE = ("runs", "unprofiled")
"""Tables that are about the whole report, and written with its first piece only."""
_STOP_SECONDS = 0.05


class Written(Struct, frozen=True):
    """What became of some jobs on their way to the store.

    Attributes:
        jobs: The jobs.
        failures: The source of each report that could not be read, and why.
        part: The other reports, written but not committed; None where there are none.
        warnings: The source of each report that was stored without its un-profiled run, and why.
        notes: The source, and what a user should know about how that report was read.
    """

    jobs: tuple[Job, ...]
    failures: tuple[tuple[str, InputError], ...]
    part: PartSummary | None
    warnings: tuple[tuple[str, InputError], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


class SpanDone(Struct, frozen=True):
    """What became of a span of a report, without the span itself, which the process that planned it still has.

    Attributes:
        job, number: As in the span.
        run: The run of its report; None where the span could not be read.
        held: Kernels whose instructions may still get their text.
        kernels: The other kernels, if they are wanted in memory.
        part: The other kernels and their values, written, if they are wanted in the store.
        warnings: As for `Written`.
        failure: Why the span could not be read; another reader may still read the whole report.
        lost: The error, where reading it kills workers.
    """

    job: Job
    number: int
    run: Run | None
    held: Held = field(default_factory=Held)
    kernels: tuple[Kernel, ...] = ()
    part: PartSummary | None = None
    warnings: tuple[tuple[str, InputError], ...] = ()
    failure: str = ""
    lost: InputError | None = None


class IngestTask(Struct, frozen=True):
    """Reads some reports into the store: a function of the jobs that can be sent to a worker.

    Attributes:
        place: The store.
        options: What is wanted of each report.
        unprofiled_of: Finds a report's un-profiled run.
        run: Tells one ingest from the next, for executors that know a task by its arguments.
    """

    place: Place
    options: ReadOptions
    unprofiled_of: Callable[[Path], Unprofiled | None]
    run: str = ""

    def _wanted(self) -> ReadOptions:
        """Return what is wanted of reports for the store: kernels as rows, unless values by instance are kept."""
        if self.options.raw == "all":
            return self.options
        from rooflens.ingest.columns.reading import read_rows  # noqa: PLC0415 - numpy and pyarrow, as below

        return replace(self.options, read_rows=read_rows)

    def __call__(self, items: tuple[Item, ...]) -> list[Written | SpanDone]:
        """Read reports, or spans; return what can be committed, and spans that are to be put together first."""
        jobs = [item for item in items if not isinstance(item, Span)]
        try:
            done: list[Written | SpanDone] = [self._span(item) for item in items if isinstance(item, Span)]
            return [*done, *self.written(jobs, children=1)]
        except OSError as error:  # of the store: those of readers count as errors of their reports
            raise InputError(f"cannot write to the store `{self.place}`: {error.strerror or error}") from error

    def written(self, jobs: Iterable[Job], children: int | None = None) -> Iterator[Written]:
        """Read reports and write them: many small ones into one part, a large one piece by piece into its own.

        Raises:
            OSError: The store cannot be written to.
        """
        for are_large, group in groupby(jobs, key=is_large):
            if are_large:
                yield from map(self._in_pieces, group)
            else:
                yield from self.parts(read_reports(group, self._wanted(), children=children))

    def _in_pieces(self, job: Job) -> Written:
        """Write a report while it is read, so that only a piece of it is in memory at a time."""
        from rooflens.model.store.parts import PartWriter  # noqa: PLC0415 - as below

        batch = _Batch([job])
        try:
            with fetched(job) as path, PartWriter(self.place) as writer:
                for number, piece in enumerate(read_parts(path, job.source, self._wanted(), _KERNELS_AT_ONCE)):
                    self._add_piece(writer, batch, job, piece, is_first=not number)
        except UnknownContentError:  # late in the file: what was written is dropped, and NVIDIA's module reads it
            return next(self.parts(read_reports((job,), self._wanted())))
        except InputError as error:
            return Written((job,), ((job.source, error),), None, tuple(batch.warnings))
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - a value that no table takes
            return self._refused(job, error)
        return batch.written(writer.summary)

    def _add_piece(self, writer: PartWriter, batch: _Batch, job: Job, piece: Report, *, is_first: bool) -> None:
        from rooflens.model.store.rows import ReportRows, report_tables  # noqa: PLC0415 - as below

        unprofiled = self._unprofiled(job, batch) if is_first else None
        tables = report_tables(ReportRows(piece.run, piece.kernels, unprofiled, piece.raw, piece.instances, piece.rows))
        writer.add({name: tables[name] for name in tables if is_first or name not in _ONCE})
        batch.notes += ((job.source, note) for note in piece.notes)

    def _span(self, span: Span) -> SpanDone:
        """Write a span of a report as a part that does not count by itself."""
        from rooflens.model.store.parts import PartWriter, group_of  # noqa: PLC0415 - as below

        batch, held, run = _Batch(), Held(), None
        try:
            with PartWriter(self.place, group=group_of(span.container.digest)) as writer:
                for number, piece in enumerate(read_span(span, self._wanted(), held, _KERNELS_AT_ONCE)):
                    run = piece.run
                    self._add_piece(writer, batch, span.job, piece, is_first=not span.number and not number)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is: reading the whole report will say it
            return SpanDone(span.job, span.number, None, failure=str(error))
        return SpanDone(span.job, span.number, run, held, part=writer.summary, warnings=tuple(batch.warnings))

    def refused(self, job: Job, error: InputError) -> Written:
        """Return the result of a report that kills its workers."""
        return Written((job,), ((job.source, error),), None)

    def whole(self, spans: Sequence[Span], done: Sequence[SpanDone]) -> Iterator[Written]:
        """Make one part of all spans of a report, or read it again if one of them could not be read.

        Raises:
            OSError: The store cannot be written to.
        """
        from rooflens.model.store.parts import joined  # noqa: PLC0415 - as below

        job = spans[0].job
        parts = [one.part for one in done if one.part is not None]
        lost = next((one.lost for one in done if one.lost is not None), None)
        if len(parts) == len(spans):
            try:
                last, notes = self._last_piece(spans, done)
            except InputError as error:
                lost = error
            else:
                said_notes = tuple((job.source, note) for note in notes)
                yield Written((job,), (), joined([*parts, *last]), done[0].warnings, said_notes)
                return
        for part in parts:
            for table, key, _ in part.all_files():
                self.place.remove(table, f"{key}.parquet")
        if lost is not None:
            yield self.refused(job, lost)
        else:
            yield from self.written([job])

    def _last_piece(self, spans: Sequence[Span], done: Sequence[SpanDone]) -> tuple[list[PartSummary], tuple[str, ...]]:
        """Write the kernels that were held back when the spans were read, with the text of their instructions."""
        from rooflens.model.store.parts import PartWriter, group_of  # noqa: PLC0415 - as below

        job, digest, run = spans[0].job, spans[0].container.digest, done[0].run
        kernels, notes = finish_spans(spans, self.options, [one.held for one in done])
        if not kernels or run is None:
            return [], notes
        with PartWriter(self.place, group=group_of(digest)) as writer:
            self._add_piece(writer, _Batch(), job, Report(run, kernels), is_first=False)
        return [writer.summary], notes

    def parts(self, outcomes: Iterable[Outcome]) -> Iterator[Written]:
        """Write reports as they are read, and yield each part when it is large enough or took long enough.

        Raises:
            OSError: The store cannot be written to.
        """
        from rooflens.model.store.parts import PartWriter  # noqa: PLC0415 - pyarrow: only where it is needed

        waiting = iter(outcomes)
        for first in waiting:
            batch = _Batch()
            try:
                with PartWriter(self.place) as writer:
                    self._fill(writer, batch, chain([first], waiting))
            except (OSError, InputError):
                raise
            except Exception as error:  # noqa: BLE001 - a value that no table takes: whose it is shows when each is alone
                if len(batch.jobs) > 1:
                    yield from self._one_by_one(batch.jobs)
                else:
                    yield self._refused(first.job, error)
            else:
                yield batch.written(writer.summary)

    def _fill(self, writer: PartWriter, batch: _Batch, outcomes: Iterator[Outcome]) -> None:
        """Write reports until the part is large enough or took long enough."""
        from rooflens.model.store.parts import PART_BYTES  # noqa: PLC0415 - as above

        started_s = time.monotonic()
        for outcome in outcomes:
            batch.jobs.append(outcome.job)
            self._write(writer, batch, outcome)
            if writer.byte_count > PART_BYTES or time.monotonic() - started_s > _SECONDS_PER_PART:
                return

    def _write(self, writer: PartWriter, batch: _Batch, outcome: Outcome) -> None:
        """Write a report, without its un-profiled run if that is damaged; or note why it could not be read."""
        from rooflens.model.store.rows import ReportRows  # noqa: PLC0415 - as above

        report = outcome.result
        if isinstance(report, InputError):
            batch.failures.append((outcome.job.source, report))
            return
        unprofiled = self._unprofiled(outcome.job, batch)
        batch.notes += ((outcome.job.source, note) for note in report.notes)
        rows = ReportRows(report.run, report.kernels, unprofiled, report.raw, report.instances, report.rows)
        writer.add_report(rows)

    def _unprofiled(self, job: Job, batch: _Batch) -> Unprofiled | None:
        """Find the un-profiled run of a report; warn of one that is damaged."""
        try:
            with said():
                return self.unprofiled_of(job.path)
        except InputError as error:
            batch.warnings.append((job.source, error))
            return None

    def _one_by_one(self, jobs: Iterable[Job]) -> Iterator[Written]:
        """Read reports again, each into a part of its own."""
        for job in jobs:
            yield from self.parts(read_reports([job], self._wanted(), children=1))

    def _refused(self, job: Job, cause: Exception) -> Written:
        why = f"it holds a value that the store cannot take: {bug_place(cause)}: {cause}"
        return Written((job,), ((job.source, InputError(why, BUG_HINT)),), None)


class _Batch(Struct):
    """What went into one part."""

    jobs: list[Job] = field(default_factory=list)
    failures: list[tuple[str, InputError]] = field(default_factory=list)
    warnings: list[tuple[str, InputError]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def written(self, part: PartSummary) -> Written:
        kept = part if part.files else None
        return Written(tuple(self.jobs), tuple(self.failures), kept, tuple(self.warnings), tuple(self.notes))


class LoadTask(Struct, frozen=True):
    """Reads some reports into memory: a function of the jobs that can be sent to a worker."""

    options: ReadOptions
    run: str = ""

    def __call__(self, items: tuple[Item, ...]) -> list[Outcome | SpanDone]:
        """Read reports, or spans of one; return them all."""
        jobs = [item for item in items if not isinstance(item, Span)]
        done: list[Outcome | SpanDone] = [self._span(item) for item in items if isinstance(item, Span)]
        return [*done, *read_reports(jobs, self.options, children=1)]

    def _span(self, span: Span) -> SpanDone:
        held = Held()
        try:
            (piece,) = read_span(span, self.options, held)
        except InputError as error:
            return SpanDone(span.job, span.number, None, failure=str(error))
        return SpanDone(span.job, span.number, piece.run, held, kernels=piece.kernels)

    def refused(self, job: Job, error: InputError) -> Outcome:
        """Return the result of a report that kills its workers."""
        return Outcome(job, error)

    def whole(self, spans: Sequence[Span], done: Sequence[SpanDone]) -> Iterator[Outcome]:
        """Make one report of all spans, or read it again if one of them could not be read."""
        job, run = spans[0].job, done[0].run
        lost = next((one.lost for one in done if one.lost is not None), None)
        if lost is not None:
            yield self.refused(job, lost)
            return
        if run is None or any(one.failure for one in done):
            yield from read_reports([job], self.options)
            return
        try:
            rest, notes = finish_spans(spans, self.options, [one.held for one in done])
        except InputError as error:
            yield self.refused(job, error)
            return
        kernels = sorted([*chain.from_iterable(one.kernels for one in done), *rest], key=lambda one: one.index)
        yield Outcome(job, Report(run, tuple(kernels), notes=notes))


def is_large(job: Job) -> bool:
    """Return whether a report is read in pieces, or by several workers, if there are any."""
    return bytes_of(job) > _LARGE_BYTES


def grouped(jobs: Iterable[Job], most_bytes: int) -> Iterator[tuple[Job, ...]]:
    """Group reports up to so many bytes, unpacked, and at most 2,000 reports; a larger one stays alone."""
    group: list[Job] = []
    group_bytes = 0
    for job in jobs:
        job_bytes = bytes_of(job)
        if group and (group_bytes + job_bytes > most_bytes or len(group) >= _MOST_JOBS):
            yield tuple(group)
            group, group_bytes = [], 0
        group.append(job)
        group_bytes += job_bytes
    if group:
        yield tuple(group)


def task_bytes(total_bytes: int, workers: int) -> int:
    """Return how much one task reads: each worker gets several, of at most 128 MB."""
    return max(_LEAST_BYTES, min(_MOST_BYTES, total_bytes // (_TASKS_PER_WORKER * workers)))


def read_reports(
    jobs: Iterable[Job],
    options: ReadOptions | None = None,
    *,
    children: int | None = None,
    read: Callable[[Path, str, ReadOptions], Report] = read_report,
) -> Iterator[Outcome]:
    """Read reports in this process and yield each outcome as it comes, in no fixed order.

    Args:
        jobs: Files to read.
        options: What is wanted of them.
        children: How many to read at once. By default 1, but one for each core with NVIDIA's reader, which works in
            children anyway.
        read: Reads one file; tests give one that hangs or dies.
    """
    wanted = options or ReadOptions()
    if children is None:
        children = min(usable_cores(), MAX_CHILDREN) if wanted.reader == "ncu-report" else 1
    try:
        if children == 1:
            for job in jobs:
                yield read_one(job, wanted, read)
        else:
            yield from _side_by_side(jobs, wanted, read, children)
    finally:
        end_children()


def _side_by_side(
    jobs: Iterable[Job], options: ReadOptions, read: Callable[[Path, str, ReadOptions], Report], count: int
) -> Iterator[Outcome]:
    """Read in threads: they wait for children most of the time."""
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait  # noqa: PLC0415 - 5 ms: only for children

    threads: set[int] = set()

    def outcome(job: Job) -> Outcome:
        threads.add(threading.get_ident())
        return read_one(job, options, read)

    waiting = deque(jobs)
    executor = ThreadPoolExecutor(count)
    running: set[Future[Outcome]] = set()
    try:
        while waiting or running:
            while waiting and len(running) <= count:
                running.add(executor.submit(outcome, waiting.popleft()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        while wait(running, timeout=_STOP_SECONDS).not_done:
            end_children(threads)


def read_one(job: Job, options: ReadOptions, read: Callable[[Path, str, ReadOptions], Report] = read_report) -> Outcome:
    """Read a report; return what became of it."""
    try:
        with said(), fetched(job) as path:
            return Outcome(job, read(path, job.source, options))
    except InputError as error:
        return Outcome(job, error)
