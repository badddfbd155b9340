"""Load reports into memory or into a store: the two things the command line asks of ingest."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.reports.pool import read_reports
from rooflens.ingest.reports.unpacking import chunks, is_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rooflens.ingest.reports.pool import Job, Outcome
    from rooflens.ingest.reports.reader import Report
    from rooflens.model.records import Kernel, Run
    from rooflens.model.store.store import Store


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


def ingest_reports(jobs: Sequence[Job], store: Store, on_outcome: Callable[[Outcome], None] = lambda _: None) -> Loaded:
    """Read reports into a store; what it holds already is skipped, and each report is committed as it comes."""
    with store.writing():
        new = [job for job in jobs if not _is_stored(job, store)]
        loaded = Loaded(skipped_count=len(jobs) - len(new))
        for outcome in read_reports(new, with_raw=True):
            if not isinstance(outcome.result, InputError):
                _commit(outcome.result, store)
            on_outcome(outcome)
            _sort_in(loaded, outcome)
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


def _is_stored(job: Job, store: Store) -> bool:
    try:
        return job.path.is_file() and store.is_current(_digest(job.path))
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


def _commit(report: Report, store: Store) -> None:
    from rooflens.model.store.findings import hotspot_table  # noqa: PLC0415 - pyarrow: only where a store is written
    from rooflens.model.store.schema import kernel_table, run_table  # noqa: PLC0415

    tables = {
        "kernels": kernel_table(report.kernels),
        "hotspots": hotspot_table(report.kernels),
        "runs": run_table(report.run, int(time.time())),
    }
    if report.raw is not None:
        tables["metrics"] = report.raw
    store.put(report.run.digest, tables)
