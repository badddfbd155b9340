"""The command `history`: each kernel over the runs of a store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import FORMAT_HELP, check_output, echo, finish, show, show_bugs
from rooflens.cli.loading import load_analyzed
from rooflens.cli.selecting import with_selection
from rooflens.cli.usage import examples
from rooflens.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.analyzing import Analyzed
    from rooflens.model.compare.history import Series
    from rooflens.model.records import AnalyzedReport
    from rooflens.model.selecting import Selection
    from rooflens.report.document import Document

FORMATS = ("table", "json", "html")


@click.command(
    epilog=examples(
        "rooflens history --store runs",
        'rooflens history --store runs --kernel "gemm*" -o history.html',
    ),
)
@click.option("--store", type=click.Path(file_okay=False), metavar="DIR", required=True, help="Store to read.")
@with_selection
@click.option("--format", "style", type=click.Choice(FORMATS), help=FORMAT_HELP)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file instead of stdout."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def history(store: str, *, selection: Selection | None, style: str | None, output: Path | None, force: bool) -> None:
    """Show time, share and verdict of each kernel over the runs of a store, oldest first.

    With --kernel, show them run by run.
    """
    style = check_output(output, style, FORMATS, "history.html", force=force)
    found, wanted = _wanted(store, selection)
    series = _histories(found.reports, wanted)
    document = _document(series, by_run=bool(selection and selection.kernel)) if style == "table" else ()
    text = "" if style == "table" else _text(series, style)
    show_bugs(found.reports)
    if style == "table":
        show(document)
    elif output is None:
        echo(text, nl=False)
    else:
        write_whole(output, text)
    finish(found, f"wrote {output}" if output else "")


def _wanted(store: str, selection: Selection | None) -> tuple[Analyzed, frozenset[str] | None]:
    """Load a store, and name the kernels that are wanted; None for all.

    Raises:
        NoMatchError: No kernel is wanted.
    """
    from rooflens.model.selecting import Selection, select

    found = load_analyzed((), store, selection=Selection(nvtx=selection.nvtx) if selection else None)
    if not selection or not found.reports:
        return found, None
    chosen = select(found.reports, selection)
    return found, frozenset(analysis.kernel.name for one in chosen for analysis in one.analyses)


def _histories(reports: Sequence[AnalyzedReport], wanted: frozenset[str] | None) -> tuple[Series, ...]:
    """Follow the kernels: those that are wanted through all names that they had."""
    from rooflens.model.compare.history import histories

    series = histories(reports)
    if wanted is None:
        return series
    return tuple(one for one in series if any(point.analysis.kernel.name in wanted for point in one.points))


def _document(series: tuple[Series, ...], *, by_run: bool) -> Document:
    from rooflens.report.text.history import BLOCKS, PLAIN_BLOCKS, overview_document, runs_document

    if by_run:
        return runs_document(series)
    return overview_document(series, BLOCKS if (sys.stdout.encoding or "").lower().startswith("utf") else PLAIN_BLOCKS)


def _text(series: tuple[Series, ...], style: str) -> str:
    """Write kernels over the runs as JSON or a page."""
    if style == "json":
        from rooflens.report.text.history import to_json

        return to_json(series) + "\n"
    from rooflens.report.history.page import render_history

    return render_history(series) + "\n"
