"""Root-mean-square normalisation: layer normalisation without the mean, but no faster, as its traffic is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9), twice if a separate kernel applies the weight."""

EPSILON = 1e-5


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Make rows of rows x width, and a weight per column."""
    width = parameters["width"]
    rows = torch.randn(parameters["rows"], width, dtype=dtype, device=device)
    return rows, torch.randn(width, dtype=dtype, device=device)


def run(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Normalise every row."""
    return F.rms_norm(rows, weight.shape, weight, EPSILON)


def reference(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Normalise in float64, from the definition."""
    rows = rows.double()
    return rows / (rows.square().mean(dim=1, keepdim=True) + EPSILON).sqrt() * weight.double()
