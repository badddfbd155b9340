"""`rooflens profile`: collect, analyze and draw in one go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflens.cli.commands.collect import OUTPUT_FOLDER, ProgramCommand, keep, take_profile, target_of, with_options
from rooflens.cli.usage import examples

if TYPE_CHECKING:
    from rooflens.collecting import Target


@click.command(
    cls=ProgramCommand,
    epilog=examples(
        "rooflens profile attention",
        "rooflens profile -- python train.py",
        'rooflens profile --kernel "regex:gemm" --nvtx-include step -- ./app --size 4096',
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
    """Collect, analyze and draw a bundled workload, or a program of yours, in one go."""
    target = target_of(ctx, options)
    report, page = (output_folder / f"{target.name}.{ending}" for ending in ("ncu-rep", "html"))
    keep(page, options)
    written = take_profile(target, report, options)
    if written is not None:
        _draw(ctx, target, written, page)


def _draw(ctx: click.Context, target: Target, report: Path, page: Path) -> None:
    from rooflens.cli.commands.report import report as report_command

    given = {"store": None, "thresholds": None, "output": page, "title": target.name, "force": True, "table": True}
    ctx.invoke(report_command, paths=(str(report),), **given)
