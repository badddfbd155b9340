"""Two linear layers with an activation in between: every weight that is read serves the whole batch.

So in bf16 the intensity is about the batch size, and batching alone moves the same layers across the ridge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The hidden layer, the activation and the result are each rounded to 8 bits (2**-9)."""


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Make tokens of batch x width; weights of hidden x width and of width x hidden that keep their spread near 1."""
    width, hidden = parameters["width"], parameters["hidden"]
    tokens = torch.randn(parameters["batch"], width, dtype=dtype, device=device)
    up = torch.randn(hidden, width, dtype=dtype, device=device) / width**0.5
    down = torch.randn(width, hidden, dtype=dtype, device=device) / hidden**0.5
    return tokens, up, down


def run(tokens: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Apply both layers."""
    return F.linear(F.gelu(F.linear(tokens, up)), down)


def reference(tokens: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Apply both layers in float64."""
    return F.gelu(tokens.double() @ up.double().t()) @ down.double().t()
