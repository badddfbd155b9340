"""`rooflens profile`: collect, analyze and draw in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflens.cli.commands.collect import (
    OUTPUT_FOLDER,
    ProgramCommand,
    keep,
    reset_clocks,
    take_profiles,
    targets_of,
    with_options,
)
from rooflens.cli.usage import examples


@click.command(
    cls=ProgramCommand,
    epilog=examples(
        "rooflens profile attention",
        "rooflens profile -- python train.py",
        'rooflens profile --kernel "regex:gemm" --nvtx-include step -- ./app',
    ),
)
@with_options
@click.option(
    "--output-folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=OUTPUT_FOLDER,
    show_default=True,
    help="Folder for the report and the page.",
)
@click.pass_context
def profile(ctx: click.Context, /, output_folder: Path, **options: Any) -> None:
    """Collect, analyze and draw a bundled workload or your own program in one go.

    Each case of a workload makes a report of its own; one page shows them all.
    """
    if options["clock_control"] == "reset":
        reset_clocks(options)
        return
    targets = targets_of(ctx, options)
    name = targets[0].name if len(targets) == 1 else options["workload"]
    page = output_folder / f"{name}.html"
    keep(page, options)
    reports = [output_folder / f"{target.name}.ncu-rep" for target in targets]
    taken, exit_code = take_profiles(targets, reports, options)
    if taken:
        from rooflens.cli.commands.report import report as report_command

        given = {"store": None, "thresholds": None, "output": page, "title": name, "force": True, "table": True}
        ctx.invoke(report_command, paths=tuple(map(str, taken)), **given)
    ctx.exit(exit_code)
