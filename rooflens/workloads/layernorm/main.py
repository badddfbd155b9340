"""Layer normalisation: a row is read once, its mean and spread stay on chip, and the row is written once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 5e-3}
"""The result is rounded to 8 bits (2**-9); sums are kept in float32."""

EPSILON = 1e-5


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Make rows of rows x width, and a weight and a bias per column.

    Their mean is not zero, so that an error in subtracting it shows.
    """
    width = parameters["width"]
    rows = torch.randn(parameters["rows"], width, dtype=dtype, device=device) + 1
    weight, bias = (torch.randn(width, dtype=dtype, device=device) for _ in range(2))
    return rows, weight, bias


def run(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Normalise every row."""
    return F.layer_norm(rows, weight.shape, weight, bias, EPSILON)


def reference(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Normalise in float64, from the definition."""
    rows = rows.double()
    centred = rows - rows.mean(dim=1, keepdim=True)
    normal = centred / (centred.square().mean(dim=1, keepdim=True) + EPSILON).sqrt()
    return normal * weight.double() + bias.double()
