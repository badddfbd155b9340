"""Train a two-layer transformer for a few steps, marked for a profiler: `rooflens profile -- python FILE`.

One start/end NVTX range, `step`, spans the last step: it applies to every thread, so it contains kernels that autograd
launches from its own thread. The push/pop ranges inside, `forward`, `backward` and `optimizer`, apply to this thread.
"""

# ruff: noqa: INP001, T201 - a script of a user's, no package, and it prints

from __future__ import annotations

import argparse
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VOCABULARY, HEADS, LAYERS = 1024, 8, 2
WARM_UP_STEPS = 3
"""Handles, workspaces and the optimizer's state are made in the first steps: they are not what training costs."""


class Transformer(nn.Module):
    """Embedding, two encoder layers with a causal mask, and logits over the vocabulary."""

    def __init__(self, width: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, HEADS, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.logits = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (batch, length, vocabulary) for tokens of shape (batch, length)."""
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        hidden: torch.Tensor = self.layers(self.embedding(tokens), mask=mask, is_causal=True)
        logits: torch.Tensor = self.logits(hidden)
        return logits


@contextmanager
def marked(name: str, *, everywhere: bool = False) -> Iterator[None]:
    """Mark a part for the profiler: on this thread, or on every thread."""
    if not torch.cuda.is_available():
        yield
        return
    handle = torch.cuda.nvtx.range_start(name) if everywhere else torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        if everywhere:
            torch.cuda.synchronize()  # what the part launched belongs to it
            torch.cuda.nvtx.range_end(handle)
        else:
            torch.cuda.nvtx.range_pop()


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> float:
    """Predict each next token once and learn from it; return the loss."""
    with marked("forward"), torch.autocast(tokens.device.type, torch.bfloat16):
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
    with marked("backward"):
        loss.backward()
    with marked("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def main(arguments: Sequence[str] | None = None) -> None:
    """Warm up, train one marked step, and print its loss."""
    parser = argparse.ArgumentParser(description="Train a two-layer transformer for a few steps.")
    for name, default in (("batch", 8), ("length", 512), ("width", 512)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{default} by default")
    given = parser.parse_args(arguments)
    if given.width % HEADS:
        parser.error(f"--width must be a multiple of {HEADS}, the number of heads")
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Transformer(given.width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(VOCABULARY, (given.batch, given.length + 1), device=device)
    for _ in range(WARM_UP_STEPS):
        train_step(model, optimizer, tokens)
    with marked("step", everywhere=True):
        loss = train_step(model, optimizer, tokens)
    print(f"loss {loss:.4f} after {WARM_UP_STEPS + 1} steps on {device}")


if __name__ == "__main__":
    main()
