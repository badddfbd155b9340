"""Make the table of docs/reference/messages/collecting.md: how ncu fails, with exit code and next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generators.texts import table
from rooflens.failures import FAILURES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def tables() -> Mapping[str, Sequence[str]]:
    """Return the table by its name; equal messages are one row, and `...` stands for what ncu names."""
    rows = {
        failure.message.replace("{}", "..."): (str(failure.error.exit_code), failure.hint.replace("{}", "..."))
        for failure in FAILURES
    }
    return {
        "failures": table(
            ("message", "exit code", "what to do"), ((message, *rest) for message, rest in sorted(rows.items()))
        )
    }
