"""A transformer block, forward, or forward and backward: big products with short memory-bound kernels in between.

Backward kernels are launched from autograd's own thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

TOLERANCE = {"bf16": 3e-2}
"""About ten results in sequence, and as many gradients, are each rounded to 8 bits (2**-9)."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The learned parameters; linear weights are outputs x inputs."""

    first_norm: torch.Tensor
    attention_in: torch.Tensor
    attention_out: torch.Tensor
    second_norm: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor

    def all(self) -> tuple[torch.Tensor, ...]:
        """Return them in the order of the fields."""
        return (self.first_norm, self.attention_in, self.attention_out, self.second_norm, self.up, self.down)


@dataclass(frozen=True, slots=True)
class BlockInputs:
    """Tokens of batch x length x width, the weights, and the gradient of the result, which is None for forward only."""

    tokens: torch.Tensor
    weights: Weights
    gradient: torch.Tensor | None
    heads: int


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[BlockInputs]:
    """Make tokens, weights that keep their spread near 1, and a gradient to start from."""
    width, hidden, backward = parameters["width"], parameters["hidden"], bool(parameters["backward"])

    def leaf(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return (torch.randn(shape, dtype=dtype, device=device) * scale).requires_grad_(backward)

    shape = (parameters["batch"], parameters["length"], width)
    weights = Weights(
        first_norm=leaf(width),
        attention_in=leaf(3 * width, width, scale=width**-0.5),
        attention_out=leaf(width, width, scale=width**-0.5),
        second_norm=leaf(width),
        up=leaf(hidden, width, scale=width**-0.5),
        down=leaf(width, hidden, scale=hidden**-0.5),
    )
    gradient = torch.randn(shape, dtype=dtype, device=device) if backward else None
    return (BlockInputs(leaf(*shape), weights, gradient, parameters["heads"]),)


def run(state: BlockInputs) -> tuple[torch.Tensor, ...]:
    """Return the block's result and, if there is a gradient to start from, the gradients of tokens and weights."""
    return _run_block(state, F.scaled_dot_product_attention)


def _run_block(state: BlockInputs, attend: Attend) -> tuple[torch.Tensor, ...]:
    result = _block(state, attend)
    if state.gradient is None:
        return (result,)
    return (result, *torch.autograd.grad(result, (state.tokens, *state.weights.all()), state.gradient))


def _block(state: BlockInputs, attend: Attend) -> torch.Tensor:
    tokens, weights = state.tokens, state.weights
    tokens = tokens + _self_attention(_norm(tokens, weights.first_norm), state, attend)
    hidden = F.gelu(F.linear(_norm(tokens, weights.second_norm), weights.up))
    return tokens + F.linear(hidden, weights.down)


def _norm(tokens: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(tokens, weight.shape, weight)


def _self_attention(tokens: torch.Tensor, state: BlockInputs, attend: Attend) -> torch.Tensor:
    projected = F.linear(tokens, state.weights.attention_in).chunk(3, dim=-1)
    query, key, value = (part.view(*part.shape[:2], state.heads, -1).transpose(1, 2) for part in projected)
    return F.linear(attend(query, key, value).transpose(1, 2).flatten(2), state.weights.attention_out)


def reference(state: BlockInputs) -> tuple[torch.Tensor, ...]:
    """Do the same in float32 with attention by definition; float64 would need twice the memory."""
    weights = Weights(*(_raised(weight) for weight in state.weights.all()))
    gradient = None if state.gradient is None else state.gradient.float()
    return _run_block(BlockInputs(_raised(state.tokens), weights, gradient, state.heads), _attend)


def _raised(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().float().requires_grad_(tensor.requires_grad)


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return torch.softmax(query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]), dim=-1) @ value
