"""`rooflens doctor`: what this machine can do."""

from __future__ import annotations

import click

from rooflens.cli.console import show


@click.command()
def doctor() -> None:
    """Check what this machine can do: each line is ok, optional, warn or fail, with the fix."""
    from rooflens.collect.doctor import run_checks
    from rooflens.report.document import Column, Table

    checks = run_checks()
    rows: list[tuple[str, ...]] = []
    for check in checks:
        rows += [
            (check.state, check.name, check.finding),
            *([("", "", f"hint: {check.fix}")] if check.fix else []),
        ]
    show((Table((Column("state"), Column("check"), Column("found", fit="wrap")), tuple(rows)),))
    if any(check.state == "fail" for check in checks):
        click.get_current_context().exit(3)
