"""Divide large reports into spans for workers to read, and put the results together again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from rooflens.ingest.executors.running import Lost, run_tasks
from rooflens.ingest.loading.tasks import SpanDone, grouped, is_large, task_bytes
from rooflens.ingest.reports.spans import Span, plan_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflens.errors import InputError
    from rooflens.ingest.executors.opening import Workers
    from rooflens.ingest.loading.tasks import Item
    from rooflens.ingest.reports.pool import Job
    from rooflens.ingest.reports.report import ReadOptions

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Task(Protocol[Result_co]):
    """What workers do with reports, and with spans of them."""

    def __call__(self, items: tuple[Item, ...]) -> Sequence[Result_co | SpanDone]:
        """Read them; return the result of each report, and each span, which are still to be put together."""

    def whole(self, spans: Sequence[Span], done: Sequence[SpanDone]) -> Iterator[Result_co]:
        """Make one result from all spans of a report, given what became of each."""

    def refused(self, job: Job, error: InputError) -> Result_co:
        """Return the result of a report that kills its workers."""


def by_workers(
    workers: Workers, task: Task[Result], jobs: Iterable[Job], options: ReadOptions, total_bytes: int
) -> Iterator[Result]:
    """Have workers read reports, and yield the results as they come."""
    planned: dict[Job, tuple[Span, ...]] = {}
    tasks = tasks_of(jobs, options, task_bytes(total_bytes, workers.count), planned)
    yield from gathered(run_tasks(workers, task, tasks), task, planned)


def tasks_of(
    jobs: Iterable[Job], options: ReadOptions, most_bytes: int, planned: dict[Job, tuple[Span, ...]]
) -> Iterator[tuple[Item, ...]]:
    """Group reports into tasks of so many bytes, and divide larger ones into spans, which are added to `planned`."""
    for group in grouped(jobs, most_bytes):
        spans = plan_spans(group[0], options, most_bytes) if len(group) == 1 and is_large(group[0]) else ()
        if spans:
            planned[group[0]] = spans
            yield from ((span,) for span in spans)
        else:
            yield group


def gathered(
    results: Iterable[Sequence[Result | SpanDone] | Lost[Item]],
    task: Task[Result],
    planned: dict[Job, tuple[Span, ...]],
) -> Iterator[Result]:
    """Yield the results of tasks; a report's spans once all are there, as one, after which it leaves `planned`."""
    waiting: dict[Job, dict[int, SpanDone]] = {}
    for result in results:
        items: Sequence[Result | SpanDone]
        if not isinstance(result, Lost):
            items = result
        elif isinstance(result.item, Span):
            items = [SpanDone(result.item.job, result.item.number, None, lost=result.error)]
        else:
            items = [task.refused(result.item, result.error)]
        for done in items:
            if not isinstance(done, SpanDone):
                yield done
                continue
            of_report = waiting.setdefault(done.job, {})
            of_report[done.number] = done
            spans = planned[done.job]
            if len(of_report) == len(spans):
                del waiting[done.job], planned[done.job]
                yield from task.whole(spans, [of_report[span.number] for span in spans])
