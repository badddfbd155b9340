"""Look up scattered short rows of a table too large for any cache: each look-up waits for memory separately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 0.0}
"""Rows are copied: not a bit may differ."""


@dataclass(frozen=True, slots=True)
class EmbeddingInputs:
    """A table of rows x width, and the row of each token."""

    table: torch.Tensor
    tokens: torch.Tensor


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> EmbeddingInputs:
    """Make a table and tokens scattered over it."""
    rows = parameters["rows"]
    table = torch.randn(rows, parameters["width"], dtype=dtype, device=device)
    return EmbeddingInputs(table, torch.randint(rows, (parameters["tokens"],), device=device))


def run(state: EmbeddingInputs) -> torch.Tensor:
    """Look up the tokens."""
    return F.embedding(state.tokens, state.table)


def reference(state: EmbeddingInputs) -> torch.Tensor:
    """Gather the rows by index; higher precision cannot improve a copy."""
    return state.table[state.tokens].double()
