"""`rooflens gpus`: the datasheets of GPUs."""

from __future__ import annotations

import click

from rooflens.cli.console import show
from rooflens.cli.usage import GPUS, examples


@click.command(
    epilog=examples(
        "rooflens gpus",
        "rooflens gpus h100-sxm",
        "rooflens gpus a100",
    ),
)
@click.argument("name", required=False, shell_complete=GPUS)
def gpus(name: str | None) -> None:
    """List the GPUs with known datasheets, or show one."""
    from rooflens.model.roofline.datasheets import load_datasheets, matching_datasheets
    from rooflens.report.text.listings import gpu_details, gpu_table

    if name is None:
        show((gpu_table(load_datasheets()),))
        return
    found = matching_datasheets(name)
    show((gpu_details(found[0]) if len(found) == 1 else gpu_table(found),))
