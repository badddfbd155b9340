"""The command `history`: each kernel over the runs of a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import FORMAT_HELP, check_output, console, echo, finish
from rooflens.cli.loading import load_analyzed
from rooflens.cli.selecting import with_selection
from rooflens.files import write_whole

if TYPE_CHECKING:
    from rooflens.analyzing import Analyzed
    from rooflens.model.compare.history import Series
    from rooflens.model.selecting import Selection

FORMATS = ("table", "json", "html")


@click.command()
@click.option("--store", type=click.Path(file_okay=False), metavar="DIR", required=True, help="Store to read.")
@with_selection
@click.option("--format", "style", type=click.Choice(FORMATS), help=FORMAT_HELP)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file, not to stdout.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
def history(store: str, *, selection: Selection | None, style: str | None, output: Path | None, force: bool) -> None:
    """Show time, share and verdict of each kernel over the runs of a store, oldest first; with --kernel run by run."""
    style = check_output(output, style, FORMATS, "history.html", force=force)
    found, series = _histories(store, selection)
    if style == "table":
        from rooflens.report.text.history import print_overview, print_runs

        (print_runs if selection and selection.kernel else print_overview)(console(), series)
    else:
        text = _text(series, style)
        if output is None:
            echo(text)
        else:
            write_whole(output, f"{text}\n")
    finish(found, f"wrote {output}" if output else "")


def _histories(store: str, selection: Selection | None) -> tuple[Analyzed, tuple[Series, ...]]:
    """Load a store and follow its kernels: those that are wanted through all names that they had.

    Raises:
        NoMatchError: No kernel is wanted.
    """
    from rooflens.model.compare.history import histories
    from rooflens.model.selecting import Selection, select

    found = load_analyzed((), store, selection=Selection(nvtx=selection.nvtx) if selection else None)
    series = histories(found.reports)
    if not selection or not found.reports:
        return found, series
    wanted = {analysis.kernel.name for one in select(found.reports, selection) for analysis in one.analyses}
    return found, tuple(one for one in series if any(point.analysis.kernel.name in wanted for point in one.points))


def _text(series: tuple[Series, ...], style: str) -> str:
    if style == "json":
        from rooflens.report.text.history import to_json

        return to_json(series)
    from rooflens.report.history.page import render_history

    return render_history(series)
