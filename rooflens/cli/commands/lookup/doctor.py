"""`rooflens doctor`: what this machine can do."""

from __future__ import annotations

import click

from rooflens.cli.console import echo


@click.command()
def doctor() -> None:
    """Check what this machine can do: each line is ok, warn or fail, with the fix."""
    from rooflens.doctor import run_checks

    checks = run_checks()
    for check in checks:
        echo(f"{check.state:<5} {check.name}: {check.finding}" + (f"\n      hint: {check.fix}" if check.fix else ""))
    if any(check.state == "fail" for check in checks):
        click.get_current_context().exit(3)
