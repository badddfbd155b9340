"""A mixture of experts: each token goes through `active` of `experts` small networks.

The weights of all experts are read as soon as each has a single token, so a few tokens move as many bytes as many do.
All experts get equally many tokens; a router that favours some experts is not shown here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 2e-2}
"""Hidden layer, activation, each expert's result and their sum are each rounded to 8 bits (2**-9)."""


@dataclass(frozen=True, slots=True)
class ExpertInputs:
    """Tokens of tokens x width; weights of experts x width x hidden and of experts x hidden x width.

    Attributes:
        gates: Weights of each token's experts, tokens x active.
        sent: Token of each row, sorted by expert: experts * rows per expert.
        back: Rows of each token's experts, tokens * active.
    """

    tokens: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor
    gates: torch.Tensor
    sent: torch.Tensor
    back: torch.Tensor


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[ExpertInputs]:
    """Make tokens, experts that keep their spread near 1, and a plan that sends each expert equally many tokens."""
    count, experts, active = parameters["tokens"], parameters["experts"], parameters["active"]
    width, hidden = parameters["width"], parameters["hidden"]
    tokens = torch.randn(count, width, dtype=dtype, device=device)
    up = torch.randn(experts, width, hidden, dtype=dtype, device=device) / width**0.5
    down = torch.randn(experts, hidden, width, dtype=dtype, device=device) / hidden**0.5
    gates = torch.softmax(torch.randn(count, active, device=device), dim=-1).to(dtype)
    # Token t goes to `active` consecutive experts, the next token to the ones after them: all are chosen equally often.
    chosen = (torch.arange(count * active, device=device) % experts).sort(stable=True)
    sent = chosen.indices // active
    back = torch.empty_like(sent)
    back[chosen.indices] = torch.arange(count * active, device=device)
    return (ExpertInputs(tokens, up, down, gates, sent, back),)


def run(state: ExpertInputs) -> torch.Tensor:
    """Send tokens to their experts, apply all experts in two batched products, and add up the results."""
    experts, width = state.up.shape[:2]
    rows = state.tokens.index_select(0, state.sent).reshape(experts, -1, width)
    done = torch.bmm(F.gelu(torch.bmm(rows, state.up)), state.down).reshape(-1, width)
    results = done.index_select(0, state.back).reshape(len(state.tokens), -1, width)
    return torch.bmm(state.gates[:, None], results)[:, 0]


def reference(state: ExpertInputs) -> torch.Tensor:
    """Apply every expert to its tokens in float64, and add its weighted result to each token."""
    total = torch.zeros_like(state.tokens, dtype=torch.float64)
    active = state.gates.shape[1]
    places = torch.argsort(state.back)  # for each row: token * active + index of the expert among the token's experts
    for up, down, mine in zip(state.up, state.down, places.chunk(len(state.up)), strict=True):
        rows = state.tokens[mine // active].double()
        done = F.gelu(rows @ up.double()) @ down.double()
        total.index_add_(0, mine // active, done * state.gates.flatten()[mine, None].double())
    return total
