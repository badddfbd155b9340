"""`rooflens gpus`: the datasheets."""

from __future__ import annotations

import click

from rooflens.cli.console import console
from rooflens.errors import InputError


@click.command()
@click.argument("name", required=False)
def gpus(name: str | None) -> None:
    """List the GPUs with datasheet numbers, or show one."""
    from rooflens.model.roofline.datasheets import load_datasheets, matching_datasheets
    from rooflens.report.text.listings import gpu_details, gpu_table

    if name is None:
        console().print(gpu_table(load_datasheets()))
        return
    found = matching_datasheets(name)
    if not found:
        raise InputError(f"no GPU is called `{name}`", "`rooflens gpus` lists the names")
    console().print(gpu_details(found[0]) if len(found) == 1 else gpu_table(found))
