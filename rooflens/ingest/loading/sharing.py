"""Reports read by this process and by one more, which takes another core.

NVIDIA's disassembler takes most of a second to start for a generation of GPUs, in every process. So reports are first
read without SASS text, and then those of one generation are disassembled together.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from rooflens.ingest.children.beside import Shared, kept
from rooflens.ingest.loading.tasks import read_one
from rooflens.ingest.reports.pool import Job, Outcome, end_children
from rooflens.ingest.reports.read import disassembled
from rooflens.ingest.reports.remote import bytes_of
from rooflens.ingest.reports.report import ReadOptions, Report, with_codes
from rooflens.ingest.reports.unpacking import is_incomplete, is_packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rooflens.ingest.reports.report import Codes

Generation: TypeAlias = "str | None"
"""Compute capability of a GPU; None where a report does not say it."""


class _Untold(Struct, frozen=True):
    """Code of a report that still lacks its text."""

    path: Path
    digest: str
    codes: Codes


def read_beside(jobs: Iterable[Job], options: ReadOptions) -> Iterator[Outcome]:
    """Read reports in this process and in one more, large ones first, and yield each outcome as it comes.

    Args:
        jobs: Files to read, under paths that the other process sees too.
        options: What is wanted of them.
    """
    untold: defaultdict[Generation, list[tuple[Job, Report]]] = defaultdict(list)
    try:
        with kept():
            with Shared(partial(_read, options), sorted(jobs, key=bytes_of, reverse=True)) as reading:
                for job, outcome in reading.results():
                    if isinstance(outcome.result, Report) and outcome.result.untold:
                        untold[_generation(outcome.result)].append((job, outcome.result))
                    else:
                        yield outcome
            with Shared(partial(_disassembled, options), _asked(untold)) as telling:
                for (generation, _), told in telling.results():
                    for (job, report), (codes, notes) in zip(untold[generation], told, strict=True):
                        yield Outcome(job, _whole(report, codes, notes))
    finally:
        end_children()


def _read(options: ReadOptions, job: Job) -> Outcome:
    """Read a report, without text if its file can be read again later."""
    is_there = not (job.address or is_packed(job.path) or is_incomplete(job.path))
    return read_one(job, replace(options, texts_later=is_there))


def _generation(report: Report) -> Generation:
    """Return the generation of the GPU whose instructions still lack their text."""
    return next(kernel.compute_capability for kernel in report.kernels if kernel.index in report.untold)


def _asked(
    untold: Mapping[Generation, Sequence[tuple[Job, Report]]],
) -> Iterator[tuple[Generation, tuple[_Untold, ...]]]:
    """Yield what is to be disassembled by generation, those with most reports first."""
    for generation, reports in sorted(untold.items(), key=lambda one: len(one[1]), reverse=True):
        yield generation, tuple(_Untold(job.path, report.run.digest, report.untold) for job, report in reports)


def _disassembled(
    options: ReadOptions, asked: tuple[Generation, tuple[_Untold, ...]]
) -> list[tuple[Codes, tuple[str, ...]]]:
    """Add text to the code of each report; return it with notes for the user."""
    return [disassembled(one.path, one.digest, one.codes, options) for one in asked[1]]


def _whole(report: Report, codes: Codes, notes: Sequence[str]) -> Report:
    """Put the code with its text into a report."""
    kernels = tuple(with_codes(report.kernels, codes))
    return replace(report, kernels=kernels, notes=(*report.notes, *notes), untold={})
