"""Root-mean-square normalisation: layer normalisation without the mean, but no faster, as its traffic is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9), twice if a separate kernel applies the weight."""

EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class RmsnormInputs:
    """Rows of rows x width, and a weight per column."""

    rows: torch.Tensor
    weight: torch.Tensor


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> RmsnormInputs:
    """Make rows and weights."""
    width = parameters["width"]
    rows = torch.randn(parameters["rows"], width, dtype=dtype, device=device)
    return RmsnormInputs(rows, torch.randn(width, dtype=dtype, device=device))


def run(state: RmsnormInputs) -> torch.Tensor:
    """Normalise every row."""
    return F.rms_norm(state.rows, state.weight.shape, state.weight, EPSILON)


def reference(state: RmsnormInputs) -> torch.Tensor:
    """Normalise in float64, from the definition."""
    rows = state.rows.double()
    return rows / (rows.square().mean(dim=1, keepdim=True) + EPSILON).sqrt() * state.weight.double()
