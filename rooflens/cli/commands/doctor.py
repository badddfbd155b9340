"""`rooflens doctor`: what this machine can do."""

from __future__ import annotations

import click


@click.command(help="Check what this machine can do: each line is ok, optional, warn or fail, with the fix.")
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Run `machine_checks.show_checks`."""
    from rooflens.cli.machine_checks import show_checks

    ctx.exit(show_checks())
