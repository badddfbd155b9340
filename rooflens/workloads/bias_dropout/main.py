"""A bias and dropout: as two kernels that store a mask, or as one that stores nothing else.

Dropout is random, so the reference repeats it with the same random numbers on ones, which shows what is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

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


Operation: TypeAlias = "Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]"


def prepare(
    parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, float, Operation]:
    """Make rows of tokens x width and a bias of width; take the operation: two kernels, or both compiled into one.

    Compiling waits for the first run.
    """
    rows = torch.randn(parameters["tokens"], parameters["width"], dtype=dtype, device=device)
    bias = torch.randn(parameters["width"], dtype=dtype, device=device)
    operation = torch.compile(_joined) if parameters["fused"] else _separate
    return rows, bias, parameters["percent"] / 100, operation


def run(rows: torch.Tensor, bias: torch.Tensor, probability: float, operation: Operation) -> torch.Tensor:
    """Add the bias and drop `percent` of 100, the same elements each time."""
    torch.manual_seed(SEED)
    return operation(rows, bias, probability)


def reference(rows: torch.Tensor, bias: torch.Tensor, probability: float, operation: Operation) -> torch.Tensor:
    """Add in float64 and scale the kept elements; NaN if the number of kept elements is implausible."""
    torch.manual_seed(SEED)
    stays = operation(torch.ones_like(rows), torch.zeros_like(bias), probability) != 0
    spread = (probability * (1 - probability) / stays.numel()) ** 0.5
    is_fair = abs(stays.double().mean() + probability - 1) < _SIGMAS * spread
    scaled = (rows.double() + bias.double()) / (1 - probability) * stays
    return torch.where(is_fair, scaled, torch.nan)
