"""What the commands print: data on stdout; errors, progress and the last line on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from rooflens.errors import UsageError
from rooflens.format import count, harmless, printable
from rooflens.writing.outputs import check_place, format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from rooflens.analyzing import Analyzed
    from rooflens.errors import RooflensError
    from rooflens.ingest.load import Ingested
    from rooflens.model.records import Analysis, AnalyzedReport
    from rooflens.report.document import Document

FORMAT_HELP = "What to write; by default the table, or what the file's extension says."


def echo(text: str, *, nl: bool = True) -> None:
    """Print data of any origin to stdout: no control character in it reaches the terminal."""
    click.echo(harmless(text), nl=nl)


def say(line: str) -> None:
    """Print one line to stderr, and one it stays, whatever names are in it."""
    click.echo(printable(line), err=True)


def show_error(error: RooflensError, about: str = "") -> None:
    """Print one error and its hint to stderr."""
    line = f"error: {f'{about}: ' if about else ''}{error}"
    say(line)
    if error.hint:
        click.echo(err=True)
        say(f"hint: {error.hint}")


class progress:  # noqa: N801 - a context manager used like a function
    """Show a bar on stderr while reports are read; nothing where stderr is not a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total

    def __enter__(self) -> Callable[[object], None]:
        self._progress: Any = None
        if not sys.stderr.isatty():
            return lambda _: None
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("reading reports"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress.start()
        task = self._progress.add_task("", total=self._total)
        return lambda _: self._progress.advance(task)

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def show_failures(read: Ingested | Analyzed) -> None:
    """Name every report that could not be read."""
    for source, error in read.failures:
        show_error(error, source)


def finish(read: Ingested | Analyzed, last_line: str) -> None:
    """Name every report that could not be read; print the last line; set the exit code."""
    show_failures(read)
    if read.failures:
        lost = sum(error.report_count or 0 for _, error in read.failures)
        untold = sum(error.report_count is None for _, error in read.failures)
        more = [f"all in {count(untold, 'file')} of the store"] if untold else []
        told = [f"{lost} of {count(lost + read.report_count + read.skipped_count, 'report')}"] if lost else []
        say(f"{' and '.join((*told, *more))} could not be read")
    if last_line:
        say(last_line)
    if read.failures:
        click.get_current_context().exit(1)


def show_bugs(reports: Sequence[AnalyzedReport]) -> None:
    """Name every kernel that is left out because rooflens failed on it."""
    from rooflens.model.failed import is_bug

    for kernel in (analysis.kernel for analysis in analyses_of(reports)):
        if is_bug(kernel):
            say(f"warning: result {kernel.index} of {kernel.source} is left out: {kernel.status_reason}")


def terminal_width() -> int | None:
    """Return the columns of the terminal that stdout is; None where it is none, so that lines stay whole for `grep`."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show(document: Document) -> None:
    """Print a document on stdout."""
    from rooflens.report.writers.terminal import to_terminal

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    click.echo(to_terminal(document, terminal_width(), colour=colour), nl=False)


def analyses_of(reports: Sequence[AnalyzedReport]) -> list[Analysis]:
    """Return the analyses of all kernels, in order."""
    return [analysis for report in reports for analysis in report.analyses]


def print_parts(parts: Iterable[str], at_once: int = 256) -> None:
    """Print a long text that comes in parts, some of them at once."""
    coming = iter(parts)
    while some := list(islice(coming, at_once)):
        echo("".join(some), nl=False)


def show_table(
    found: Analyzed,
    top: int | None = None,
    *,
    each_launch: bool = False,
    place: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> None:
    """Print the table of each GPU, what to do next, and what the marks mean.

    Args:
        found: The reports.
        top: Rows of each GPU; all by default.
        each_launch: Print a row for each launch, instead of one for each kernel.
        place: What to give to a command that says more: paths, or a store; empty where a page is being written.
        columns: Quantities to show instead of the usual columns.
    """
    from rooflens.model.summary import summarize
    from rooflens.report.text.table import LEGEND, kernels_document, steps

    analyses = analyses_of(found.reports)
    kernels = summarize(analyses)
    rows = summarize(analyses, each_launch=True) if each_launch else kernels
    show((*kernels_document(rows, top, columns), *steps(kernels, place)))
    if analyses and not columns:
        say(LEGEND)
    if synthetic := sum(analysis.kernel.synthetic for analysis in analyses):
        say(f"note: {count(synthetic, 'kernel')} from synthetic reports: written by a generator")


def print_programs(reports: Sequence[AnalyzedReport]) -> None:
    """Print the facts of each program: its gaps without the profiler."""
    from rooflens.report.program import program_lines

    for line in program_lines(reports):
        say(line)


def check_output(output: Path | None, style: str | None, formats: Sequence[str], page: str, *, force: bool) -> str:
    """Find the format; refuse a page without a file, a table in one, and what `check_place` refuses.

    Args:
        output: The file that was asked for; None for stdout.
        style: What --format says; None for the table on stdout, and for what a file's ending says.
        formats: What the command can write.
        page: What a page would be called, for the hint.
        force: Whether to write over a file.

    Returns:
        The format, one of `formats`.

    Raises:
        UsageError: Output and format do not go together, or the place is taken.
    """
    if style != "table":
        style = format_of(output, style, formats) if output is not None else style or "table"
    if output is None and style == "html":
        raise UsageError("a page needs a file", f"name it with -o, for example -o {page}")
    if output is not None and style == "table":
        raise UsageError("a table is for the terminal", "choose another --format for a file, for example json")
    if output is not None:
        check_place(output, force=force)
    return style
