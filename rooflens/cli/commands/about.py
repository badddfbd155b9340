"""`rooflens about`: explain a verdict, finding, flag, stall reason, counter or term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import show
from rooflens.cli.usage import completed_by, examples

if TYPE_CHECKING:
    from collections.abc import Iterable


def _about_names() -> Iterable[str]:
    from rooflens.model.about import named
    from rooflens.model.knowledge.items import KINDS, words

    return dict.fromkeys([*(name for kind in KINDS for name in named(kind)), *words()])


@click.command(
    epilog=examples(
        "rooflens about",
        "rooflens about small_grid",
        "rooflens about latency",
        "rooflens about ridge",
        "rooflens about arithmetic intensity",
        "rooflens about flags/bank_conflicts",
        "rooflens about long_scoreboard",
        "rooflens about dram__bytes.sum",
        "rooflens about columns",
        "rooflens about ERR_NVGPUCTRPERM",
    ),
)
@click.argument("words", nargs=-1, metavar="[NAME]", shell_complete=completed_by(_about_names))
def about(words: tuple[str, ...]) -> None:
    """Explain a verdict, finding, flag, stall reason, counter or term: how to confirm it, and what to try.

    NAME is a name in JSON (`small_grid`, `latency`, `clocks_moved`); the words on a card or in a table (`cause not
    measured`); a counter, to learn what it counts and what is read from it; a term (`ridge`, `arithmetic intensity`); a
    column head, or `columns` for all of them; a GPU (`H100`); or what ncu printed when it failed (`ERR_NVGPUCTRPERM`,
    or a whole `==ERROR==` line). Without NAME it lists everything but counters, columns, GPUs and errors.
    """
    from rooflens.writing.about import explained

    show(explained(" ".join(words)))
