"""`rooflens explain`: all that matters of one kernel."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import deliver, echo, finish, say
from rooflens.cli.expectations import PREDICT, check_expected, find_expected, print_expected, read_stated
from rooflens.cli.loading import PATHS, STORE, THRESHOLDS, TIMELINE, load_analyzed, with_reading, with_selection
from rooflens.cli.usage import Command, examples
from rooflens.errors import InputError
from rooflens.format import count

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.model.selecting import Selection


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens explain report.ncu-rep",
        "rooflens explain report.ncu-rep --kernel x_279",
    ),
)
@PATHS
@STORE
@with_selection
@THRESHOLDS
@TIMELINE
@with_reading
@PREDICT
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "md", "json"]),
    help="By default Markdown, and on a terminal a table; JSON holds every launch that matches, loops included.",
)
def explain(
    paths: tuple[str, ...],
    store: str | None,
    thresholds: Path | None,
    *,
    selection: Selection | None,
    timeline: Path | None,
    reading: ReadOptions,
    predict: str | None,
    style: str | None,
) -> None:
    """Explain one kernel: what limits it, why, where, and what to try first, with the counters behind it.

    Where several kernels or launches match, it explains the one with the most to win. A prediction is compared with
    that launch alone.
    """
    from msgspec.structs import replace

    from rooflens.model.ranking import most_at_stake
    from rooflens.report.text.digest import explain_document
    from rooflens.writing.answers import Answer, of_kernels

    stated = read_stated(predict)
    found = load_analyzed(paths, store, thresholds=thresholds, reading=reading, selection=selection, timeline=timeline)
    analyses = found.analyses
    chosen = most_at_stake(analyses)
    if chosen is None and found.failures:
        finish(found, "")
    if chosen is None:
        raise InputError("there is no kernel to explain", "give a report with at least one")
    report = found.whole_of(chosen)
    answer = Answer(lambda: explain_document(report, chosen), of_kernels(found).data)
    deliver(answer, style or ("table" if sys.stdout.isatty() else "md"))
    if stated is not None:
        alone = [replace(report, analyses=(chosen,))]
        echo("")
        print_expected(alone, check_expected(alone, find_expected(alone, stated)))
    others = {(one.kernel.digest, one.kernel.name) for one in analyses} - {(chosen.kernel.digest, chosen.kernel.name)}
    if others and style != "json":
        say(f"{count(len(others), 'other kernel')} left out: choose with `--kernel NAME`")
    finish(found, "")
