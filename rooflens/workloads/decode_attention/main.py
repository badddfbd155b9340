"""Attention of one new token over a cache of keys and values shared by groups of query heads (GQA).

Every cached number that is read serves `query_heads / cache_heads` products: sharing raises the intensity, a longer
cache does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 2e-2}
"""Probabilities and result are each rounded to 8 bits (2**-9); parts of a split cache are rescaled when joined."""


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Make one query token of batch x query heads x 1 x width, and cached keys and values.

    The cache is full: batch x cache heads x length x width.
    """
    batch, width = parameters["batch"], parameters["width"]
    cached = (batch, parameters["cache_heads"], parameters["length"], width)
    query = torch.randn(batch, parameters["query_heads"], 1, width, dtype=dtype, device=device)
    key, value = (torch.randn(cached, dtype=dtype, device=device) for _ in range(2))
    return query, key, value


def run(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Attend to the whole cache; there is no mask, since nothing in the cache is in the future."""
    return F.scaled_dot_product_attention(query, key, value, enable_gqa=True)


def reference(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Apply attention in float64, one sequence at a time, with a group's heads side by side."""
    return torch.stack([_attend(*operands) for operands in zip(query, key, value, strict=True)])


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    grouped = query.double().reshape(key.shape[0], -1, query.shape[-1])
    scores = grouped @ key.double().transpose(-2, -1) / math.sqrt(query.shape[-1])
    return (torch.softmax(scores, dim=-1) @ value.double()).reshape(query.shape)
