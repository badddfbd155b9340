"""Limit how long a kernel's machine code is looked into, by counted steps: the same answer on any machine.

Code comes from strangers. Every pass takes time in proportion to the code, but for one: with hundreds of loops within
one another, blocks are gone through again for each loop around them.
"""

from __future__ import annotations

_STEPS_AN_INSTRUCTION = 100
"""Real code takes 2 to 4, and the shapes of `tests/support/code_shapes.py` up to 19."""

_LEAST = 10_000


class TooManyStepsError(Exception):
    """Looking into this code takes more steps than real code ever does."""


class StepBudget:
    """How many steps may be taken: an instruction, an edge or a block that is visited is one.

    Args:
        most: How many.

    Attributes:
        steps: How many were taken so far.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.steps = 0

    @classmethod
    def of(cls, instruction_count: int) -> StepBudget:
        """Return the budget of steps for so much code, in instructions."""
        return cls(_LEAST + _STEPS_AN_INSTRUCTION * instruction_count)

    def take(self, steps: int = 1) -> None:
        """Count steps before they are taken.

        Raises:
            TooManyStepsError: There are not so many left.
        """
        self.steps += steps
        if self.steps > self.most:
            raise TooManyStepsError

    def came_to(self, so_far: int, whole: int) -> str:
        """Say how many instructions were gone through when the steps ended."""
        return f"only the first {so_far:,} of {whole:,} instructions were gone through in {self.most:,} steps"
