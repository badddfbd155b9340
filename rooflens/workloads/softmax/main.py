"""Softmax of rows: three passes over a row, of which only the first reads memory, as the row stays on chip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 5e-3}
"""The result is rounded to 8 bits (2**-9); exponentials and their sum are kept in float32."""


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor]:
    """Make the input, `rows` x `width`: softmax is taken of each row."""
    return (torch.randn(parameters["rows"], parameters["width"], dtype=dtype, device=device),)


def run(rows: torch.Tensor) -> torch.Tensor:
    """Turn every row into a distribution."""
    return torch.softmax(rows, dim=1)


def reference(rows: torch.Tensor) -> torch.Tensor:
    """Compute it in float64, from the definition."""
    rows = rows.double()
    powers = (rows - rows.amax(dim=1, keepdim=True)).exp()
    return powers / powers.sum(dim=1, keepdim=True)
