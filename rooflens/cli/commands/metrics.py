"""`rooflens metrics`: what a tier collects, and what that costs."""

from __future__ import annotations

import click

from rooflens.cli.console import console


@click.command()
@click.option("--chip", required=True, metavar="CHIP", help="Chip as `gh100`, or compute capability as `9.0`.")
@click.option("--detail", type=click.Choice(["quick", "standard", "deep"]), default="standard", show_default=True)
@click.option("--names", is_flag=True, help="Print the bare ncu names, one a line.")
def metrics(chip: str, detail: str, *, names: bool) -> None:
    """List what a tier collects on a chip and how many passes that takes, with no GPU."""
    from rooflens.ingest.ncu.passes import count_passes
    from rooflens.ingest.ncu.tiers import hardware_names, metrics_for
    from rooflens.model.counters.chips import check_chip, chip_of
    from rooflens.report.text.listings import metric_names, metrics_table, passes_text

    chip = chip_of(chip).chip if "." in chip else check_chip(chip)
    rows = metrics_for(chip, detail)
    if names:
        click.echo(metric_names(rows))
        return
    passes = count_passes(chip, hardware_names(chip, detail)).hardware_passes
    console().print(metrics_table(chip, detail, rows, passes))
    click.echo(passes_text(rows, passes), err=True)
