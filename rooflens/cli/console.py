"""What the commands print: data on stdout; errors, progress and the last line on stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflens.errors import UsageError
from rooflens.format import count, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.analyzing import Analyzed
    from rooflens.errors import RooflensError
    from rooflens.ingest.reports.load import Loaded
    from rooflens.ingest.reports.pool import Outcome
    from rooflens.model.records import Analysis, AnalyzedReport, Run


def show_error(error: RooflensError, about: str = "") -> None:
    """Print one error and its hint to stderr."""
    line = f"error: {f'{about}: ' if about else ''}{error}"
    click.echo(printable(line), err=True)
    if error.hint:
        click.echo(f"\nhint: {error.hint}", err=True)


class progress:  # noqa: N801 - a context manager used like a function
    """Show a bar on stderr while reports are read; nothing where stderr is no terminal."""

    def __init__(self, total: int) -> None:
        self._total = total

    def __enter__(self) -> Callable[[Outcome], None]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("reading reports"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(
            *columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
        )
        self._progress.start()
        task = self._progress.add_task("", total=self._total)
        return lambda _: self._progress.advance(task)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def finish(read: Loaded | Analyzed, last_line: str) -> None:
    """Name every report that could not be read; print the last line; set the exit code."""
    for source, error in read.failures:
        show_error(error, source)
    if read.failures:
        total = len(read.failures) + len(read.reports) + read.skipped_count
        click.echo(f"{len(read.failures)} of {count(total, 'report')} could not be read", err=True)
    if last_line:
        click.echo(last_line, err=True)
    if read.failures:
        click.get_current_context().exit(1)


def analyses_of(reports: Sequence[AnalyzedReport]) -> list[Analysis]:
    """Return the analyses of all kernels, in order."""
    return [analysis for report in reports for analysis in report.analyses]


def print_table(
    found: Analyzed,
    top: int | None = None,
    *,
    plot: bool = False,
    each_launch: bool = False,
    place: Sequence[str] = (),
) -> None:
    """Print the table of each GPU, what to do next, and what the marks mean.

    Args:
        found: The reports.
        top: Rows of each GPU; all by default.
        plot: Draw each roofline below its table.
        each_launch: Print a row for each launch, in place of one for each kernel.
        place: What to give to a command that tells more: paths, or a store; empty where a page is being written.
    """
    from rooflens.guarding import write_all
    from rooflens.report.text.next_steps import caveat_lines, next_lines
    from rooflens.report.text.table import LEGEND, to_sections, to_table

    def written(reports: Sequence[AnalyzedReport]) -> str:
        analyses, out = analyses_of(reports), console()
        with out.capture() as captured:
            for section in to_sections(analyses, top, each_launch=each_launch):
                out.print(section.heading, style="bold", markup=False, highlight=False)
                out.print(to_table(section, out.width))
                out.print()
                if plot:
                    _print_plot(out, section.analyses)
            for title, lines in (("Next", next_lines(analyses, place)), ("Caveats", caveat_lines(analyses))):
                if lines:
                    out.print(f"{title}:", style="bold")
                    for line in lines:
                        out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
                    out.print()
        return str(captured.get())

    click.echo(write_all(found.reports, found.limits, written), nl=False)
    analyses = analyses_of(found.reports)
    if analyses:
        click.echo(LEGEND, err=True)
    synthetic = sum(analysis.kernel.synthetic for analysis in analyses)
    if synthetic:
        click.echo(f"note: {count(synthetic, 'kernel')} from synthetic reports: written by a generator", err=True)


def print_programs(reports: Sequence[AnalyzedReport]) -> None:
    """Print what is said once of each program: its gaps without the profiler."""
    from rooflens.report.program import program_lines

    for line in program_lines(reports):
        click.echo(printable(line), err=True)


def _print_plot(out: Any, analyses: Sequence[Analysis]) -> None:
    from rooflens.report.text.plot import Paper, to_plot

    for line in to_plot(analyses, Paper.of(out.width, out.encoding)):
        out.print(line, highlight=False)
    out.print()


def console() -> Any:
    """Make the console of stdout."""
    from rich.console import Console

    # Without a terminal there is no width to keep to: lines stay whole for grep and logs.
    return Console(width=None if sys.stdout.isatty() else 200, soft_wrap=False)


def default_title(runs: Sequence[Run]) -> str:
    """Name a page after its reports."""
    from rooflens.ingest.reports.inputs import ENDINGS

    names = [Path(run.source).name for run in runs]
    for ending in ENDINGS:
        names = [name.removesuffix(ending) for name in names]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def check_output(output: Path | None, style: str, page: str, *, force: bool) -> None:
    """Refuse a page without a file, a table in one, and to write over a file without being told to.

    Args:
        output: The file that was asked for; None for stdout.
        style: The format, `table` or `html` or one for both terminals and files.
        page: What a page would be called, for the hint.
        force: Whether to write over a file.

    Raises:
        UsageError: Output and format do not go together, or the file exists.
    """
    if output is None and style == "html":
        raise UsageError("a page needs a file", f"name it with -o, for example -o {page}")
    if output is not None and style == "table":
        raise UsageError("a table goes to the terminal", "choose another --format for a file, for example json")
    if output is not None and output.exists() and not force:
        raise UsageError(f"`{output}` exists", "give another name with -o, or --force to write over it")
