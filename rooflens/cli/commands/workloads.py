"""`rooflens workloads`: what is bundled."""

from __future__ import annotations

import click

from rooflens.cli.console import console


@click.command()
@click.argument("name", required=False)
def workloads(name: str | None) -> None:
    """List the bundled workloads, or show the cases of one."""
    from rooflens.report.text.listings import case_table, workload_table
    from rooflens.workloads.registry import find_workload, load_workloads

    console().print(case_table(find_workload(name).cases) if name else workload_table(load_workloads()))
