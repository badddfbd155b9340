"""What `doctor` shows of this machine. Standard library only: it runs on bare GPU machines."""

from __future__ import annotations

from rooflens.cli.console import show
from rooflens.collect.doctor import run_checks
from rooflens.report.document import Column, Table

_FAILED = 3


def show_checks() -> int:
    """Run all checks and show them; return the exit code."""
    checks = run_checks()
    rows: list[tuple[str, ...]] = []
    for check in checks:
        rows += [
            (check.state, check.name, check.finding),
            *([("", "", f"hint: {check.fix}")] if check.fix else []),
        ]
    show((Table((Column("state"), Column("check"), Column("found", fit="wrap")), tuple(rows)),))
    return _FAILED if any(check.state == "fail" for check in checks) else 0
