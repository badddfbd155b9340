"""`rooflens profile`: collect, analyze and draw in one go."""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path
from typing import Any

import click

from rooflens.cli.collecting import (
    OUTPUT_FOLDER,
    check_gpu,
    keep,
    refuse_one_name,
    reset_clocks,
    take_profiles,
    targets_of,
)
from rooflens.cli.commands.collect import ProgramCommand, line_of, with_options
from rooflens.cli.console import say
from rooflens.cli.usage import examples
from rooflens.errors import EnvironmentMissingError, RooflensError, lacking_package

_DRAWS = ("rooflens.report.page.page", "altair", "google.protobuf.message")
"""Packages that `report` needs for a page and its table."""


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

    Each case of a workload makes its own report; one page shows them all.
    """
    if options["clock_control"] == "reset":
        reset_clocks(options)
        return
    line = line_of(ctx, options)
    targets = targets_of(line)
    name = targets[0].name if len(targets) == 1 else options["workload"]
    refuse_one_name(line, output_folder / f"{options['workload'] or name}.ncu-rep")
    page = output_folder / f"{name}.html"
    keep(page, options)
    reports = [output_folder / f"{target.name}.ncu-rep" for target in targets]
    check_gpu(targets[0], reports[0], options)
    if not options["dry_run"]:
        _import_what_draws()
    taken, exit_code = take_profiles(targets, reports, options)
    if taken:
        _draw(ctx, taken, page, name)
    ctx.exit(exit_code)


def _import_what_draws() -> None:
    """Import the packages that draw the page now: otherwise a missing package would show hours later.

    Raises:
        EnvironmentMissingError: A package is not installed or is broken.
    """
    try:
        for module in _DRAWS:
            importlib.import_module(module)
    except ImportError as error:
        lacking = lacking_package(error)
        if lacking is None:
            raise
        instead = "`rooflens collect` does without, and the report can be drawn elsewhere"
        raise EnvironmentMissingError(str(lacking), f"{lacking.hint}; {instead}") from error


def _draw(ctx: click.Context, reports: list[Path], page: Path, title: str) -> None:
    """Draw the page; if that fails, name the collected reports before the error."""
    from rooflens.cli.commands.report import report as report_command

    paths = tuple(map(str, reports))
    given = {"store": None, "thresholds": None, "output": page, "title": title, "force": True, "table": True}
    try:
        ctx.invoke(report_command, paths=paths, **given)
    except (RooflensError, ImportError, OSError, MemoryError):
        say(f"the page could not be drawn; what was collected is kept: `{shlex.join(['rooflens', 'report', *paths])}`")
        raise
