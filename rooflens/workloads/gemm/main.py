"""A matrix product: its intensity grows with its size, so the same code meets every limiter.

`left` is m x k; `right` is n x k and used transposed, as a linear layer stores its weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2, "fp16": 2e-3, "tf32": 2e-3, "fp8": 3e-2}
"""bf16: the result is rounded to 8 bits (2**-9), and so may be partial sums of a split k. fp16: the same with 11 bits
(2**-12). tf32: operands are rounded to 11 bits (2**-12) before the product. fp8: operands are exact, but Hopper adds
products in about 14 bits."""


@dataclass(frozen=True, slots=True)
class GemmOperands:
    """Operands, and the scale that an fp8 product needs."""

    left: torch.Tensor
    right: torch.Tensor
    scale: torch.Tensor


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> GemmOperands:
    """Make the operands; fp8 operands are rounded from float32."""
    m, n, k = parameters["m"], parameters["n"], parameters["k"]
    left, right = (torch.randn(rows, k, device=device).to(dtype) for rows in (m, n))
    return GemmOperands(left, right, torch.ones((), device=device))


def run(state: GemmOperands) -> torch.Tensor:
    """Multiply; fp8 operands give a bf16 result."""
    if state.left.dtype != torch.float8_e4m3fn:
        return state.left @ state.right.t()
    return torch._scaled_mm(  # noqa: SLF001 - the only product of fp8 that PyTorch's own counter counts
        state.left, state.right.t(), state.scale, state.scale, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def reference(state: GemmOperands) -> torch.Tensor:
    """Multiply the rounded operands in float64."""
    return state.left.double() @ state.right.double().t()
