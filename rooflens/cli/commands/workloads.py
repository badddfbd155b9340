"""`rooflens workloads`: the bundled workloads."""

from __future__ import annotations

import click

from rooflens.cli.console import show
from rooflens.cli.usage import WORKLOADS, examples


@click.command(
    epilog=examples(
        "rooflens workloads",
        "rooflens workloads attention",
    ),
)
@click.argument("name", required=False, shell_complete=WORKLOADS)
def workloads(name: str | None) -> None:
    """List the bundled workloads, or show the cases of one workload."""
    from rooflens.report.text.workloads import case_table, workload_table
    from rooflens.workloads.registry import find_workload, load_workloads

    show((case_table(find_workload(name).cases) if name else workload_table(load_workloads()),))
