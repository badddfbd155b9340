"""Attention over a whole prompt: three kernels that pass scores through memory, or one that keeps them on chip.

The arithmetic is the same. The difference is that scores, `length` x `length` per head, are written and read.
The kernels are PyTorch's; `attention_ladder` has some of our own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 2e-2}
"""Scores, probabilities and result are each rounded to 8 bits (2**-9); large scores magnify their error."""


@dataclass(frozen=True, slots=True)
class AttentionInputs:
    """Operands of shape batch x heads x length x width, and a mask of the keys in each query's future."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    future: torch.Tensor | None
    fused: bool


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[AttentionInputs]:
    """Make the operands; the query is already divided by the root of the width, so that no kernel has to do it."""
    length, width = parameters["length"], parameters["width"]
    shape = (parameters["batch"], parameters["heads"], length, width)
    query, key, value = (torch.randn(shape, dtype=dtype, device=device) for _ in range(3))
    future = torch.ones(length, length, dtype=torch.bool, device=device).triu(1) if parameters["causal"] else None
    return (AttentionInputs(query / math.sqrt(width), key, value, future, fused=bool(parameters["fused"])),)


def run(state: AttentionInputs) -> torch.Tensor:
    """Apply attention."""
    if state.fused:
        causal = state.future is not None
        return F.scaled_dot_product_attention(state.query, state.key, state.value, is_causal=causal, scale=1.0)
    return _attend(state.query, state.key, state.value, state.future)


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, future: torch.Tensor | None) -> torch.Tensor:
    scores = query @ key.transpose(-2, -1)
    if future is not None:
        scores = scores.masked_fill(future, -math.inf)
    return torch.softmax(scores, dim=-1) @ value


def reference(state: AttentionInputs) -> torch.Tensor:
    """Apply attention in float64, one head at a time: the scores of all heads at once could fill the memory."""
    heads = zip(*(tensor.flatten(0, 1) for tensor in (state.query, state.key, state.value)), strict=True)
    results = [_attend(query.double(), key.double(), value.double(), state.future) for query, key, value in heads]
    return torch.stack(results).reshape(state.query.shape)
