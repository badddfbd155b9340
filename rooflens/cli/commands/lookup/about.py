"""`rooflens about`: what a verdict, a finding, a flag or a stall reason means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import echo
from rooflens.cli.usage import completed_by, examples

if TYPE_CHECKING:
    from collections.abc import Iterable


def _names() -> Iterable[str]:
    from rooflens.model.about.pages import every_page

    return dict.fromkeys(page.name for page in every_page().values())


@click.command(
    epilog=examples(
        "rooflens about",
        "rooflens about small_grid",
        "rooflens about latency",
        "rooflens about flags/bank_conflicts",
        "rooflens about long_scoreboard",
    ),
)
@click.argument("name", required=False, shell_complete=completed_by(_names))
def about(name: str | None) -> None:
    """Explain a verdict, a finding, a flag or a stall reason: how to confirm it, and what to try.

    NAME is as in JSON (`small_grid`, `latency`, `clocks_moved`) or the words of a card. Without it all are listed.
    """
    from rooflens.model.about.pages import find_pages
    from rooflens.report.about import about_list, about_page

    echo(about_list() if name is None else "\n".join(about_page(page) for page in find_pages(name)), nl=False)
