"""The command `check`: hold recordings of kernels to a checklist, and end with 5 where it is not met."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflens.cli.commands.compare import GATE_FAILED
from rooflens.cli.console import echo, finish, say, show, show_failures
from rooflens.cli.loading import PATHS, STORE, THRESHOLDS, load_analyzed, with_reading, with_selection
from rooflens.cli.usage import Command, examples

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.model.selecting import Selection


@click.command(
    cls=Command,
    short_help="Check kernels against a checklist: best run, stability, plateau.",
    epilog=examples(
        "rooflens check saxpy_1.ncu-rep saxpy_2.ncu-rep --best-of 2 --min-share 60%",
        "rooflens check ladder/ --plateau 3% --steps 2",
        "rooflens check report.ncu-rep --kernel x_279 --level dram --min-share 30%",
    ),
)
@PATHS
@STORE
@with_selection
@click.option("--min-share", metavar="PER_CENT", help="The best run of each kernel must reach this share of its roof.")
@click.option(
    "--level",
    metavar="UNIT",
    help="Which roof to measure against: dram, l2, fp32; by default that of the busiest unit.",
)
@click.option("--best-of", type=click.IntRange(1), metavar="N", help="Each kernel must have at least N runs.")
@click.option("--stable", metavar="PER_CENT", help="The slowest run must reach this share of the best run's rate.")
@click.option(
    "--plateau", metavar="PER_CENT", help="The last steps from version to version must not have gained more than this."
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="How many of the last steps --plateau looks at.",
)
@click.option("--format", "style", type=click.Choice(("table", "json")), default="table", show_default=True)
@with_reading
@THRESHOLDS
def check(
    paths: tuple[str, ...],
    *,
    store: str | None,
    selection: Selection | None,
    min_share: str | None,
    level: str | None,
    best_of: int | None,
    stable: str | None,
    plateau: str | None,
    steps: int,
    style: str,
    reading: ReadOptions,
    thresholds: Path | None,
) -> None:
    """Rate kernels by the share of their roof, and exit with code 5 if one misses what you ask for.

    Launches of the same name, shape and version that do the same FLOPs are runs of one kernel. If you ask for
    nothing, it only prints the table.
    """
    from rooflens.model.compare import checklist
    from rooflens.report.ci.checklist import checklist_document, to_json

    asked = checklist.Asked(
        level=level,
        min_share=_share(min_share, "--min-share"),
        best_of=best_of,
        stable=_share(stable, "--stable"),
        plateau=_share(plateau, "--plateau"),
        steps=steps,
    )
    analyzed = load_analyzed(paths, store, thresholds=thresholds, reading=reading, selection=selection)
    if not analyzed.reports:
        finish(analyzed, "")
    found = checklist.check(analyzed.reports, asked, analyzed.limits)
    if style == "json":
        echo(to_json(found))
    else:
        show(checklist_document(found))
    for line in found.unmet:
        say(f"not met: {line}")
    if found.unmet and asked != checklist.Asked(level=level, steps=steps):
        show_failures(analyzed)
        click.get_current_context().exit(GATE_FAILED)
    finish(analyzed, "")


def _share(text: str | None, option: str) -> float | None:
    from rooflens.model.compare.gate import parse_per_cent

    return None if text is None else parse_per_cent(text, option)
