"""Dot product: reads two numbers per multiply-add, and never reuses any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9); positive operands cannot cancel, and are summed in float32."""


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Make two vectors of numbers from 0 to 1."""
    left, right = (torch.rand(parameters["elements"], dtype=dtype, device=device) for _ in range(2))
    return left, right


def run(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply and sum."""
    return torch.dot(left, right)


def reference(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply and sum in float64."""
    return torch.dot(left.double(), right.double())
