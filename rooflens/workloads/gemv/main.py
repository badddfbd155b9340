"""A matrix times a vector: every weight that is read serves a single multiply-add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9), and so may be the partial sums of a split row."""


@dataclass(frozen=True, slots=True)
class GemvOperands:
    """Weights of rows x columns, and one token of 1 x columns."""

    weights: torch.Tensor
    token: torch.Tensor


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> GemvOperands:
    """Make the weights and the token."""
    rows, columns = parameters["rows"], parameters["columns"]
    weights = torch.randn(rows, columns, dtype=dtype, device=device)
    return GemvOperands(weights, torch.randn(1, columns, dtype=dtype, device=device))


def run(state: GemvOperands) -> torch.Tensor:
    """Multiply as a linear layer does for a batch of one."""
    return F.linear(state.token, state.weights)


def reference(state: GemvOperands) -> torch.Tensor:
    """Multiply in float64."""
    return state.token.double() @ state.weights.double().t()
