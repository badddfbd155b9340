"""The command `history`: each kernel over the runs of a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import check_output, deliver, finish, show_bugs, with_output
from rooflens.cli.loading import load_analyzed, with_selection
from rooflens.cli.usage import Command, examples

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.model.selecting import Selection

FORMATS = ("table", "json", "html")


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens history --store runs",
        'rooflens history --store runs --kernel "gemm*" -o history.html',
    ),
)
@click.option("--store", type=click.Path(file_okay=False), metavar="DIR", required=True, help="Store to read.")
@with_selection
@with_output(FORMATS)
def history(store: str, *, selection: Selection | None, style: str | None, output: Path | None, force: bool) -> None:
    """Show time, share and verdict of each kernel over the runs of a store, oldest first.

    With --kernel, show them run by run.
    """
    from rooflens.model.compare.ladder import histories
    from rooflens.model.selecting import Selection, select
    from rooflens.report.ladder import BLOCKS, PLAIN_BLOCKS
    from rooflens.writing.answers import of_history

    style = check_output(output, style, FORMATS, "history.html", force=force)
    found = load_analyzed((), store, selection=Selection(nvtx=selection.nvtx) if selection else None)
    series = histories(found.reports)
    if selection and found.reports:  # the kernels that are wanted, through all names that they had
        chosen = select(found.reports, selection)
        wanted = {analysis.kernel.name for report in chosen for analysis in report.analyses}
        series = tuple(one for one in series if any(point.analysis.kernel.name in wanted for point in one.points))
    show_bugs(found.analyses)
    blocks = BLOCKS if (sys.stdout.encoding or "").lower().startswith("utf") else PLAIN_BLOCKS
    deliver(of_history(series, by_run=bool(selection and selection.kernel), blocks=blocks), style, output)
    finish(found, "")
