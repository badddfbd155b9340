"""`rooflens doctor`: what this machine can do."""

from __future__ import annotations

import click

from rooflens.cli.console import show


@click.command()
def doctor() -> None:
    """Check what this machine can do: each line is ok, warn or fail, with the fix."""
    from rooflens.doctor import run_checks
    from rooflens.report.document import Paragraph

    checks = run_checks()
    lines: list[str] = []
    for check in checks:
        lines += [
            f"{check.state:<5} {check.name}: {check.finding}",
            *([f"      hint: {check.fix}"] if check.fix else []),
        ]
    show((Paragraph(tuple(lines)),))
    if any(check.state == "fail" for check in checks):
        click.get_current_context().exit(3)
