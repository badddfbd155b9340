"""Load reports into memory or into a store: the two things the command line asks of ingest."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.reports.pool import read_reports
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.reports.unpacking import chunks, is_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rooflens.ingest.reports.pool import Job, Outcome
    from rooflens.ingest.reports.report import Report
    from rooflens.model.records import Kernel, Run
    from rooflens.model.store.store import Store
    from rooflens.model.unprofiled import Unprofiled


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


def load_reports(
    jobs: Sequence[Job],
    on_outcome: Callable[[Outcome], None] = lambda _: None,
    options: ReadOptions | None = None,
) -> Loaded:
    """Read reports into memory."""
    order = {job: position for position, job in enumerate(jobs)}
    outcomes: list[Outcome] = []
    for outcome in read_reports(jobs, options):
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
) -> Loaded:
    """Read reports into a store; what it holds already is skipped, and each report is committed as it comes.

    Args:
        jobs: Files to read.
        store: Where to.
        on_outcome: Hears of each report as it is read.
        unprofiled_of: Finds the run without the profiler that belongs to a report, to be kept with it; raises
            InputError where what is there is none.
    """
    with store.writing():
        new = [job for job in jobs if not _is_stored(job, store, unprofiled_of)]
        loaded = Loaded(skipped_count=len(jobs) - len(new))
        for outcome in read_reports(new, ReadOptions(raw="all")):
            kept = _kept(outcome, store, unprofiled_of)
            on_outcome(kept)
            _sort_in(loaded, kept)
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


def _kept(outcome: Outcome, store: Store, unprofiled_of: Callable[[Path], Unprofiled | None]) -> Outcome:
    """Commit a report that could be read; return why not where its un-profiled run is damaged."""
    if not isinstance(outcome.result, InputError):
        try:
            _commit(outcome.result, store, unprofiled_of(outcome.job.path))
        except InputError as error:
            return replace(outcome, result=error)
    return outcome


def _commit(report: Report, store: Store, unprofiled: Unprofiled | None) -> None:
    import pyarrow as pa  # noqa: PLC0415

    from rooflens.model.store.findings import hotspot_table  # noqa: PLC0415 - pyarrow: only where a store is written
    from rooflens.model.store.schema import kernel_table, run_table  # noqa: PLC0415
    from rooflens.model.store.unprofiled import unprofiled_table  # noqa: PLC0415

    tables = {
        "kernels": kernel_table(report.kernels),
        "hotspots": hotspot_table(report.kernels),
        "unprofiled": unprofiled_table(report.run.digest, unprofiled),
        "runs": run_table(report.run, int(time.time())),
    }
    if report.raw is not None and report.instances is not None:
        tables["metrics"] = pa.concat_tables([report.raw, report.instances], promote_options="permissive")
    store.put(report.run.digest, tables)
