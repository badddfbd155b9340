"""`rooflens hotspots`: the lines or instructions that take a kernel's time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.console import deliver, finish, say, show_bugs, show_failures
from rooflens.cli.loading import GPU, KERNEL, NVTX, PATHS, RAW_CELLS, READER, SOURCE, STORE, load_analyzed, with_wanted
from rooflens.cli.usage import Command, examples
from rooflens.errors import InputError
from rooflens.format import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.cli.wanted import Wanted
    from rooflens.model.records import Analysis, Grain

_LINES_HINT = "compile with `-lineinfo` and profile again; `--by sass` shows the instructions"
_NONE_HINT = (
    "collect with `ncu --section SourceCounters --import-source yes`; for source lines compile with `-lineinfo`"
)


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens hotspots report.ncu-rep",
        "rooflens hotspots report.ncu-rep --kernel x_279 --by line --top 10",
    ),
)
@PATHS
@STORE
@click.option(
    "--by",
    type=click.Choice(["line", "sass", "function"]),
    help="What to list.  [default: lines if the report has them, else instructions]",
)
@KERNEL
@NVTX
@SOURCE
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", default=10, show_default=True, help="How many per kernel."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
)
@RAW_CELLS
@READER
@GPU
@with_wanted
def hotspots(*, wanted: Wanted, by: Grain | None, top: int, style: str, raw_cells: bool) -> None:
    """Show the source lines or instructions that take a kernel's time."""
    from rooflens.model.failed import is_bug
    from rooflens.report.text.hotspots import hotspots_document, listings, to_csv, to_json
    from rooflens.writing.answers import Answer

    found = load_analyzed(wanted)
    try:
        shown = listings(found.analyses, by, top)
        show_bugs(found.analyses)
        analyses = [analysis for analysis in found.analyses if not is_bug(analysis.kernel)]
        if analyses and not shown:
            raise _nothing(analyses, by)
    except InputError:
        show_failures(found)
        raise
    data = {"csv": lambda: to_csv(shown, raw_cells=raw_cells), "json": lambda: to_json(shown)}
    deliver(Answer(lambda: hotspots_document(shown), data), style)
    if left := len(analyses) - len(shown):
        say(f"{count(left, 'kernel')} of {len(analyses)} left out: no {_noun(by)} recorded")
    finish(found, "")


def _nothing(analyses: Sequence[Analysis], by: Grain | None) -> InputError:
    if any(analysis.kernel.hotspots for analysis in analyses):
        return InputError(f"no {_noun(by)} recorded, but instructions are", _LINES_HINT)
    subject = "this kernel holds" if len(analyses) == 1 else f"none of these {len(analyses)} kernels holds"
    return InputError(f"{subject} {'no ' if len(analyses) == 1 else ''}samples or counts by instruction", _NONE_HINT)


def _noun(by: Grain | None) -> str:
    return {"line": "source lines", "sass": "instructions", "function": "functions", None: "instructions"}[by]
