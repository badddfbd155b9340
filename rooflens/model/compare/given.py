"""Which options a command was given. Standard library only: every command uses it."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from rooflens.errors import MOST_LISTED
from rooflens.format import cut_middle

HOW_WRITTEN = frozenset({"format", "output", "force"})
"""Options that change nothing of what a comparison finds."""


class Given(NamedTuple):
    """An option that a command was given.

    Attributes:
        option: Its name, without dashes.
        values: Its values as they are typed; none for a flag, several for an option that was repeated.
    """

    option: str
    values: tuple[str, ...]

    @property
    def typed(self) -> str:
        """Write it as on a command line, shortened in the middle: `--kernel a --kernel b`."""
        words = " ".join(f"--{self.option} {shlex.quote(value)}" for value in self.values)
        return cut_middle(words, MOST_LISTED) or f"--{self.option}"
