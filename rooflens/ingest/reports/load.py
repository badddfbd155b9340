"""Load reports into memory or into a store: the two things the command line asks of ingest."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from rooflens.errors import InputError
from rooflens.ingest.reports.pool import read_reports
from rooflens.ingest.reports.unpacking import chunks, is_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rooflens.ingest.reports.pool import Job, Outcome
    from rooflens.ingest.reports.reader import Report
    from rooflens.model.records import Kernel, Run
    from rooflens.model.store.parts import PartWriter
    from rooflens.model.store.store import Store
    from rooflens.model.unprofiled import Unprofiled


Raw = Literal["none", "values", "all"]
"""Which of a report's own values are kept: none, those of metrics, or those of their instances too."""

_SECONDS_PER_PART = 20.0
"""What was read for so long is committed: whoever is killed loses no more."""


@dataclass(slots=True)
class Loaded:
    """Reports in the order they were asked for, and the errors of those that could not be read.

    Attributes:
        reports: Each run with its kernels.
        failures: Path as it was given, and error.
        skipped_count: Reports that were there already: in the store, or under another name among those asked for.
        digests: Of the reports read.
    """

    reports: list[tuple[Run, tuple[Kernel, ...]]] = field(default_factory=list)
    failures: list[tuple[str, InputError]] = field(default_factory=list)
    skipped_count: int = 0
    digests: set[str] = field(default_factory=set)


def load_reports(jobs: Sequence[Job], on_outcome: Callable[[Outcome], None] = lambda _: None) -> Loaded:
    """Read reports into memory."""
    order = {job: position for position, job in enumerate(jobs)}
    outcomes: list[Outcome] = []
    for outcome in read_reports(jobs, with_raw=False):
        on_outcome(outcome)
        outcomes.append(outcome)
    loaded = Loaded()
    for outcome in sorted(outcomes, key=lambda done: order[done.job]):
        _sort_in(loaded, outcome)
    return loaded


def ingest_reports(
    jobs: Sequence[Job],
    store: Store,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
    unprofiled_of: Callable[[Path], Unprofiled | None] = lambda _: None,
    *,
    raw: Raw = "values",
) -> Loaded:
    """Read reports into a store; what it holds already is skipped, and parts of many are committed as they fill.

    Args:
        jobs: Files to read.
        store: Where to.
        on_outcome: Hears of each report as it is read.
        unprofiled_of: Finds the run without the profiler that belongs to a report, to be kept with it; raises
            InputError where what is there is none.
        raw: Which of the reports' own values to keep.
    """
    from rooflens.model.store.parts import PART_BYTES, PartWriter  # noqa: PLC0415 - pyarrow: only where it is written
    from rooflens.model.store.rows import failure_table  # noqa: PLC0415

    with store.writing():
        new = [job for job in jobs if not _is_stored(job, store, unprofiled_of)]
        loaded = Loaded(skipped_count=len(jobs) - len(new))
        told = {*store.failures()}
        outcomes = iter(read_reports(new, with_raw=raw != "none"))
        ended = False
        while not ended:
            ended, failed, started_s = True, [], time.monotonic()
            with PartWriter(store.place) as writer:
                for outcome in outcomes:
                    kept = _kept(outcome, writer, unprofiled_of, raw)
                    on_outcome(kept)
                    _sort_in(loaded, kept)
                    if isinstance(kept.result, InputError) and (kept.job.source, str(kept.result)) not in told:
                        failed.append((kept.job.source, str(kept.result), kept.result.hint))
                    if writer.byte_count > PART_BYTES or time.monotonic() - started_s > _SECONDS_PER_PART:
                        ended = False
                        break
                if failed:
                    writer.add({"failures": failure_table(failed)})
            store.commit(writer.summary)
    loaded.failures.sort(key=lambda failure: failure[0])
    return loaded


def _sort_in(loaded: Loaded, outcome: Outcome) -> None:
    """Put an outcome where it belongs; a report that came under another name already counts as skipped."""
    if isinstance(outcome.result, InputError):
        loaded.failures.append((outcome.job.source, outcome.result))
    elif outcome.result.run.digest in loaded.digests:
        loaded.skipped_count += 1
    else:
        loaded.digests.add(outcome.result.run.digest)
        loaded.reports.append((outcome.result.run, outcome.result.kernels))


def _is_stored(job: Job, store: Store, unprofiled_of: Callable[[Path], Unprofiled | None]) -> bool:
    """Return whether a report is stored with its un-profiled run: that may have been written since."""
    try:
        if not job.path.is_file() or not store.is_current(digest := _digest(job.path)):
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


def _kept(
    outcome: Outcome, writer: PartWriter, unprofiled_of: Callable[[Path], Unprofiled | None], raw: Raw
) -> Outcome:
    """Write a report that could be read; return why not where its un-profiled run is damaged."""
    if not isinstance(outcome.result, InputError):
        try:
            _write(outcome.result, writer, unprofiled_of(outcome.job.path), raw)
        except InputError as error:
            return replace(outcome, result=error)
    return outcome


def _write(report: Report, writer: PartWriter, unprofiled: Unprofiled | None, raw: Raw) -> None:
    import pyarrow.compute as pc  # noqa: PLC0415 - pyarrow: only where a store is written

    from rooflens.model.store.rows import ReportRows  # noqa: PLC0415

    values = None if report.raw is None else report.raw.filter(pc.is_null(report.raw["instance"]))
    instances = None
    if report.raw is not None and raw == "all":
        instances = report.raw.filter(pc.is_valid(report.raw["instance"]))
    writer.add_report(ReportRows(report.run, report.kernels, unprofiled, values, instances))
