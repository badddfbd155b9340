"""Which options a command was given, and who chose them. Standard library only: every command uses it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from rooflens.errors import MOST_LISTED
from rooflens.format import cut_middle

COMMAND_LINE = "command line"
"""The source of an option that was typed."""

HOW_WRITTEN = frozenset({"format", "output", "force"})
"""Options that change nothing of what a comparison finds."""


class Given(NamedTuple):
    """An option that a command was given.

    Attributes:
        option: Its name, without dashes.
        values: Its values as they are typed; none for a flag, several for an option that was repeated.
        source: `command line`, or the file or environment variable that the value comes from.
    """

    option: str
    values: tuple[str, ...]
    source: str

    @property
    def typed(self) -> str:
        """Write it as on a command line, shortened in the middle: `--kernel a --kernel b`."""
        words = " ".join(f"--{self.option} {shlex.quote(value)}" for value in self.values)
        return cut_middle(words, MOST_LISTED) or f"--{self.option}"

    @property
    def is_typed(self) -> bool:
        """True where it was typed, and is no default from a file or the environment."""
        return self.source == COMMAND_LINE


def defaults_words(given: Sequence[Given]) -> str:
    """Name the options that nobody typed, and what sets them; empty if there are none."""
    by_source: dict[str, list[str]] = {}
    for one in given:
        if not one.is_typed:
            by_source.setdefault(one.source, []).append(one.typed)
    return ", ".join(f"`{source}` sets `{' '.join(typed)}`" for source, typed in by_source.items())
