"""A matrix product: its intensity grows with its size, so the same code meets every limiter.

`left` is m x k; `right` is n x k and used transposed, as a linear layer stores its weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2, "fp16": 2e-3, "tf32": 2e-3, "fp8": 3e-2}
"""bf16: the result is rounded to 8 bits (2**-9), and so may be partial sums of a split k. fp16: the same with 11 bits
(2**-12). tf32: operands are rounded to 11 bits (2**-12) before the product. fp8: operands are exact, but Hopper adds
products in about 14 bits."""


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Make the operands, and the scale that an fp8 product needs; fp8 operands are rounded from float32."""
    m, n, k = parameters["m"], parameters["n"], parameters["k"]
    left, right = (torch.randn(rows, k, device=device).to(dtype) for rows in (m, n))
    return left, right, torch.ones((), device=device)


def run(left: torch.Tensor, right: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Multiply; fp8 operands give a bf16 result."""
    if left.dtype != torch.float8_e4m3fn:
        return left @ right.t()
    return torch._scaled_mm(  # noqa: SLF001 - the only product of fp8 that PyTorch's own counter counts
        left, right.t(), scale, scale, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def reference(left: torch.Tensor, right: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    """Multiply the rounded operands in float64."""
    return left.double() @ right.double().t()
