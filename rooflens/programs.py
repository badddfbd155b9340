"""The entry point to timelines without a report: it does not import what only reports need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.timelines.read import opened_timeline
from rooflens.model.program.program import read_program
from rooflens.model.program.summed import summed_program
from rooflens.model.program.totals import Totals

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from rooflens.model.program.program import Program
    from rooflens.model.records import AnalyzedReport
    from rooflens.model.selecting import Selection


def read_programs(
    files: Sequence[str | os.PathLike[str] | Job],
    gpu: str | None = None,
    *,
    selection: Selection | None = None,
    reports: Sequence[AnalyzedReport] = (),
    on_read: Callable[[float], None] = lambda _: None,
) -> tuple[Program, ...]:
    """Read timelines without a report, and rank their kernels by what can be won.

    Args:
        files: Traces of the PyTorch profiler, exports or reports of Nsight Systems, or texts with the tables that both
            print; a job is named by its source.
        gpu: The GPU of timelines that name no GPU with known peaks.
        selection: Which kernels are wanted, by name and by NVTX range; all by default.
        reports: Reports on their kernels.
        on_read: Called with parts of the work as they are done: they add up to 1 for each file.

    Raises:
        InputError: A timeline is unreadable or cut, or has no kernels.
        UsageError: No GPU has that name, or several have it; or a pattern cannot be parsed.
        NoMatchError: No kernel matches.
        EnvironmentMissingError: A file is a Nsight Systems report, and nsys is not installed.
    """
    chooser = None
    if selection:
        from rooflens.model.selecting import Chooser  # noqa: PLC0415 - only where something is chosen

        chooser = Chooser(selection)
    found = []
    for file in files:
        job = file if isinstance(file, Job) else Job(Path(file), str(file))
        parts: list[float] = []

        def heard(part: float, parts: list[float] = parts) -> None:
            parts.append(part)
            on_read(part)

        try:
            with opened_timeline(job.path, heard) as timeline:
                if isinstance(timeline, Totals):
                    program = summed_program(timeline, gpu, chooser)
                else:
                    program = read_program(timeline, gpu, chooser)
            heard(1.0 - sum(parts))
        except InputError as error:
            raise InputError(str(error).replace(str(job.path), job.source), error.hint) from error
        found.append(replace(program, source=job.source))
    if chooser is not None:
        chooser.check()
    if not reports:
        return tuple(found)
    from rooflens.model.program.beside import refined  # noqa: PLC0415 - only where there is a report

    analyses = [analysis for report in reports for analysis in report.analyses]
    return tuple(refined(one, analyses) for one in found)
