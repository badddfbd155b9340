"""Limit how much is looked at inside of a kernel, by counted steps: the same code gets the same answer on any machine.

Code comes from strangers. All passes are linear in practice, yet a nest of loops can make the forward pass visit each
block once for every loop around it.
"""

from __future__ import annotations

MOST_STEPS = 4_000_000
"""Real code takes 7 to 12 steps an instruction, and kernels have at most 20,000; some 0.5 us each."""


class TooManyStepsError(Exception):
    """Looking into this code takes more steps than real code ever does."""


class Budget:
    """How many steps are left: an instruction, an edge or a block that is visited is one.

    Args:
        most: How many there are in all.

    Attributes:
        steps: How many were taken.
    """

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.most = most
        self.steps = 0

    def take(self, steps: int = 1) -> None:
        """Count steps before they are taken.

        Raises:
            TooManyStepsError: None are left.
        """
        self.steps += steps
        if self.steps > self.most:
            raise TooManyStepsError

    def reached(self, so_far: int, whole: int) -> str:
        """Say how many of the instructions were gone through before the steps ended."""
        return f"known of {so_far:,} of {whole:,} instructions: more take over {self.most:,} steps"
