"""`rooflens workloads`: what is bundled."""

from __future__ import annotations

import click

from rooflens.cli.console import console
from rooflens.cli.usage import completed_by, examples


def _names() -> list[str]:
    from rooflens.workloads.registry import load_workloads

    return [workload.name for workload in load_workloads()]


@click.command(
    epilog=examples(
        "rooflens workloads",
        "rooflens workloads attention",
    ),
)
@click.argument("name", required=False, shell_complete=completed_by(_names))
def workloads(name: str | None) -> None:
    """List the bundled workloads, or show the cases of one."""
    from rooflens.report.text.listings import case_table, workload_table
    from rooflens.workloads.registry import find_workload, load_workloads

    console().print(case_table(find_workload(name).cases) if name else workload_table(load_workloads()))
