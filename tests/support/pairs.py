"""Two sides of a program side by side, as most tests of comparisons need them."""

from __future__ import annotations

from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Side
from rooflens.model.compare.ladder import Ladder, ladder


def compare(base: Side, head: Side, threshold: float = DEFAULT_THRESHOLD, program: str = "") -> Ladder:
    """Make a ladder of two sides."""
    return ladder(program, (base, head), threshold)
