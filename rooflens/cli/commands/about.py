"""`rooflens about`: what a verdict, a finding, a flag, a stall reason, a counter or a word of the subject means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import show
from rooflens.cli.usage import completed_by, examples

if TYPE_CHECKING:
    from collections.abc import Iterable


def _names() -> Iterable[str]:
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
@click.argument("words", nargs=-1, metavar="[NAME]", shell_complete=completed_by(_names))
def about(words: tuple[str, ...]) -> None:
    """Explain a verdict, finding, flag, stall reason, counter or word: how to confirm it, and what to try.

    NAME is as in JSON (`small_grid`, `latency`, `clocks_moved`) or the words of a card or of a table (`cause not
    measured`); or it is a counter, of which it says what is counted and what is read from it; or a word of the subject
    (`ridge`, `arithmetic intensity`); or the head of a column, and `columns` explains all of them; or a GPU (`H100`);
    or what ncu printed when it failed (`ERR_NVGPUCTRPERM`, a whole `==ERROR==` line). Without NAME all but counters,
    columns, GPUs and errors are listed.
    """
    from rooflens.writing.about import explained

    show(explained(" ".join(words)))
