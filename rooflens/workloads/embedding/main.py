"""Look up scattered short rows of a table too large for any cache: each look-up waits for memory separately."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 0.0}
"""Rows are copied: not a bit may differ."""


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Make a table of rows x width, and tokens scattered over it: the row of each."""
    rows = parameters["rows"]
    table = torch.randn(rows, parameters["width"], dtype=dtype, device=device)
    return table, torch.randint(rows, (parameters["tokens"],), device=device)


def run(table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Look up the tokens."""
    return F.embedding(tokens, table)


def reference(table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Gather the rows by index; higher precision cannot improve a copy."""
    return table[tokens].double()
