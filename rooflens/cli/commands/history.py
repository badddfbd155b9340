"""The command `history`: each kernel over the runs of a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import FORMAT_HELP, check_output, console, echo, finish
from rooflens.cli.loading import load_analyzed
from rooflens.errors import InputError
from rooflens.files import write_whole

if TYPE_CHECKING:
    from rooflens.analyzing import Analyzed
    from rooflens.model.compare.history import Series

FORMATS = ("table", "json", "html")


@click.command()
@click.option("--store", type=click.Path(file_okay=False), metavar="DIR", required=True, help="Store to read.")
@click.option("--kernel", "wanted", metavar="TEXT", help="Only kernels with this in their name, run by run.")
@click.option("--format", "style", type=click.Choice(FORMATS), help=FORMAT_HELP)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file, not to stdout.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
def history(store: str, *, wanted: str | None, style: str | None, output: Path | None, force: bool) -> None:
    """Show time, share and verdict of each kernel over the runs of a store, oldest first."""
    style = check_output(output, style, FORMATS, "history.html", force=force)
    found, series = _histories(store, wanted)
    if style == "table":
        from rooflens.report.text.history import print_overview, print_runs

        (print_runs if wanted else print_overview)(console(), series)
    else:
        text = _text(series, style)
        if output is None:
            echo(text)
        else:
            write_whole(output, f"{text}\n")
    finish(found, f"wrote {output}" if output else "")


def _histories(store: str, wanted: str | None) -> tuple[Analyzed, tuple[Series, ...]]:
    """Load a store and follow its kernels.

    Raises:
        InputError: No kernel has the wanted text in its name.
    """
    from rooflens.model.compare.history import histories

    found = load_analyzed((), store)
    series = histories(found.reports)
    chosen = tuple(one for one in series if wanted is None or wanted.casefold() in one.name.casefold())
    if wanted is not None and not chosen and series:
        from rooflens.model.store.address import shown

        raise InputError(
            f"no kernel of `{shown(store)}` has `{wanted}` in its name", "leave --kernel out to see them all"
        )
    return found, chosen


def _text(series: tuple[Series, ...], style: str) -> str:
    if style == "json":
        from rooflens.report.text.history import to_json

        return to_json(series)
    from rooflens.report.history.page import render_history

    return render_history(series)
