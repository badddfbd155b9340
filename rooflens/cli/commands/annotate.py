"""`rooflens annotate`: put the verdicts of reports into a trace of the program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import finish, say, show_bugs
from rooflens.cli.loading import GPU, KERNEL, NVTX, PATHS, READER, STORE, THRESHOLDS, load_analyzed, with_wanted
from rooflens.cli.usage import Command, examples
from rooflens.errors import UsageError
from rooflens.writing.outputs import check_free

if TYPE_CHECKING:
    from rooflens.cli.wanted import Wanted


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens annotate trace.json.gz report.ncu-rep -o annotated.json.gz",
        "rooflens annotate trace.json reports/ -o step.json --force",
    ),
)
@click.argument("trace", type=click.Path(path_type=Path, dir_okay=False))
@PATHS
@STORE
@KERNEL
@NVTX
@THRESHOLDS
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write: `.json`, or `.json.gz` for a compressed file.",
)
@READER
@GPU
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@with_wanted
def annotate(*, trace: Path, wanted: Wanted, output: Path, force: bool) -> None:
    """Write a copy of TRACE with the verdicts of reports in its kernels' arguments.

    TRACE is written by the PyTorch profiler's export_chrome_trace(). Each kernel that is in a report gets verdict,
    limiter, gain and first move; samples taken during a kernel become counter tracks. Open the copy in Perfetto or
    chrome://tracing.
    """
    from rooflens.writing.annotating import annotate as write
    from rooflens.writing.annotating import check_files

    check_files(trace, output)
    check_free(output, force=force)
    if not wanted.paths and wanted.store is None:
        raise UsageError("no report given", f"`rooflens annotate {trace} report.ncu-rep -o {output}`")
    found = load_analyzed(wanted)
    show_bugs(found.analyses)
    if not found.analyses:
        finish(found, "")
        return
    annotated = write(trace, found.reports, output)
    for note in annotated.notes:
        say(f"note: {note}")
    say(annotated.words)
    finish(found, f"wrote {output}")
