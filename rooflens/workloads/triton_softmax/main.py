"""Softmax of rows by our own Triton kernel: what PyTorch's kernel does, in seven lines that the counters point to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from rooflens.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 5e-3}
"""The result is rounded to 8 bits (2**-9); exponentials and their sum are kept in float32."""

WARPS = 8
"""Warps per row: 16 of 4096 elements per thread."""


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor]:
    """Make rows of rows x width.

    Raises:
        EnvironmentMissingError: The device is a CPU, and Triton does not interpret.
    """
    if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        raise EnvironmentMissingError("Triton compiles for GPUs only", "set TRITON_INTERPRET=1 to try it on a CPU")
    return (torch.randn(parameters["rows"], parameters["width"], dtype=dtype, device=device),)


def softmax_row(result: tl.tensor, rows: tl.tensor, width: tl.tensor, block: tl.constexpr) -> None:
    """Turn one row into a distribution; `block`, a power of two, is at least its width."""
    start = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, block)
    is_inside = column < width
    row = tl.load(rows + start + column, mask=is_inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(result + start + column, powers / tl.sum(powers, axis=0), mask=is_inside)


_KERNEL = triton.jit(softmax_row)


def run(rows: torch.Tensor) -> torch.Tensor:
    """Turn every row into a distribution, each in a program instance that holds it in registers."""
    count, width = rows.shape
    result = torch.empty_like(rows)
    _KERNEL[(count,)](result, rows, width, block=triton.next_power_of_2(width), num_warps=WARPS)
    return result


def reference(rows: torch.Tensor) -> torch.Tensor:
    """Compute it in float64, from the definition."""
    rows = rows.double()
    powers = (rows - rows.amax(dim=1, keepdim=True)).exp()
    return powers / powers.sum(dim=1, keepdim=True)
