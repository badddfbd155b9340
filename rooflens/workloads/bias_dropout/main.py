"""A bias and dropout: as two kernels that store a mask, or as one that stores nothing else.

Dropout is random, so the reference repeats it with the same random numbers on ones, which shows what is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOLERANCE = {"bf16": 1e-2}
"""The sum and the result are each rounded to 8 bits (2**-9)."""

SEED = 1
_SIGMAS = 6


def _separate(x: torch.Tensor, bias: torch.Tensor, probability: float) -> torch.Tensor:
    kept, _ = torch.native_dropout(x + bias, probability, train=True)
    return kept


def _joined(x: torch.Tensor, bias: torch.Tensor, probability: float) -> torch.Tensor:
    return torch.dropout(x + bias, probability, train=True)


@dataclass(frozen=True, slots=True)
class DropoutInputs:
    """Rows of tokens x width, a bias of width, and the function to run: two operations, or both compiled into one."""

    rows: torch.Tensor
    bias: torch.Tensor
    probability: float
    operation: Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> DropoutInputs:
    """Make the operands; compiling waits for the first run."""
    rows = torch.randn(parameters["tokens"], parameters["width"], dtype=dtype, device=device)
    bias = torch.randn(parameters["width"], dtype=dtype, device=device)
    operation = torch.compile(_joined) if parameters["fused"] else _separate
    return DropoutInputs(rows, bias, parameters["percent"] / 100, operation)


def run(state: DropoutInputs) -> torch.Tensor:
    """Add the bias and drop `percent` of 100, the same elements each time."""
    torch.manual_seed(SEED)
    return state.operation(state.rows, state.bias, state.probability)


def reference(state: DropoutInputs) -> torch.Tensor:
    """Add in float64 and scale the kept elements; NaN if the number of kept elements is implausible."""
    torch.manual_seed(SEED)
    stays = state.operation(torch.ones_like(state.rows), torch.zeros_like(state.bias), state.probability) != 0
    probability, count = state.probability, stays.numel()
    spread = (probability * (1 - probability) / count) ** 0.5
    is_fair = abs(stays.double().mean() + probability - 1) < _SIGMAS * spread
    scaled = (state.rows.double() + state.bias.double()) / (1 - probability) * stays
    return torch.where(is_fair, scaled, torch.nan)
