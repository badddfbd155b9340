"""Dot product: reads two numbers per multiply-add, and never reuses any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9); positive operands cannot cancel, and are summed in float32."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Two vectors."""

    left: torch.Tensor
    right: torch.Tensor


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> Vectors:
    """Make two vectors of numbers from 0 to 1."""
    left, right = (torch.rand(parameters["elements"], dtype=dtype, device=device) for _ in range(2))
    return Vectors(left, right)


def run(state: Vectors) -> torch.Tensor:
    """Multiply and sum."""
    return torch.dot(state.left, state.right)


def reference(state: Vectors) -> torch.Tensor:
    """Multiply and sum in float64."""
    return torch.dot(state.left.double(), state.right.double())
