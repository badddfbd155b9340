"""Dot product: two numbers are read for one multiply-add, and nothing is ever used again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9); operands are positive, so that no terms cancel, and summed in float32."""


@dataclass(frozen=True, slots=True)
class State:
    """Two vectors."""

    left: torch.Tensor
    right: torch.Tensor


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> State:
    """Make two vectors of numbers from 0 to 1."""
    left, right = (torch.rand(parameters["elements"], dtype=dtype, device=device) for _ in range(2))
    return State(left, right)


def run(state: State) -> torch.Tensor:
    """Multiply and add up."""
    return torch.dot(state.left, state.right)


def reference(state: State) -> torch.Tensor:
    """Do it in float64."""
    return torch.dot(state.left.double(), state.right.double())
