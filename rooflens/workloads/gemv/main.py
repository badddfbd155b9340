"""A matrix times a vector: every weight that is read serves a single multiply-add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9), and so may be the partial sums of a split row."""


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Make weights of rows x columns, and one token of 1 x columns."""
    rows, columns = parameters["rows"], parameters["columns"]
    weights = torch.randn(rows, columns, dtype=dtype, device=device)
    return weights, torch.randn(1, columns, dtype=dtype, device=device)


def run(weights: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Multiply as a linear layer does for a batch of one."""
    return F.linear(token, weights)


def reference(weights: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Multiply in float64."""
    return token.double() @ weights.double().t()
