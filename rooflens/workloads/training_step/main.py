"""A training step of a small network, eager or as a CUDA graph: forward, backward and update.

It has some forty kernels of a few microseconds. Launched one by one, they make the GPU wait for the host; a graph
submits them all at once. Updated weights go into new tensors, so every step does the same work on the same operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

from rooflens.workloads.torch_measure import WARM_UP_RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 3e-2}
"""Each layer's result, and each gradient on the way back, is rounded to 8 bits (2**-9)."""

LEARNING_RATE = 0.5


@dataclass(frozen=True, slots=True)
class TrainingInputs:
    """Operands and, if a graph was captured, the graph and its output tensors.

    Attributes:
        inputs: Batch x width, as `target`.
        weights: Width x width for each layer.
        results: What the graph's replays write: losses, gradients and new weights.
    """

    inputs: torch.Tensor
    target: torch.Tensor
    weights: tuple[torch.Tensor, ...]
    graph: torch.cuda.CUDAGraph | None = None
    results: tuple[torch.Tensor, ...] = ()


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[TrainingInputs]:
    """Make a batch and weights that keep its spread; capture the step if requested and if there is a GPU."""
    batch, width = parameters["batch"], parameters["width"]
    inputs, target = (torch.randn(batch, width, dtype=dtype, device=device) for _ in range(2))
    weights = [torch.randn(width, width, dtype=dtype, device=device) for _ in range(parameters["layers"])]
    state = TrainingInputs(inputs, target, tuple((one * (2 / width) ** 0.5).requires_grad_() for one in weights))
    return (_captured(state) if parameters["graph"] and device.type == "cuda" else state,)


def _captured(state: TrainingInputs) -> TrainingInputs:
    # Libraries initialise in the first runs, which a capture must not contain; PyTorch wants these on another stream.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP_RUNS):
            _step(state.inputs, state.target, state.weights)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = _step(state.inputs, state.target, state.weights)
    return TrainingInputs(state.inputs, state.target, state.weights, graph, results)


def run(state: TrainingInputs) -> tuple[torch.Tensor, ...]:
    """Take the step; return the loss, the gradients and the new weights."""
    if state.graph is None:
        return _step(state.inputs, state.target, state.weights)
    state.graph.replay()
    return state.results


def _step(inputs: torch.Tensor, target: torch.Tensor, weights: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    values = inputs
    for weight in weights[:-1]:
        values = F.gelu(F.linear(values, weight))
    loss = F.mse_loss(F.linear(values, weights[-1]), target)
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():  # like PyTorch's optimizers: all weights in as few kernels as possible
        updated = torch._foreach_add(weights, gradients, alpha=-LEARNING_RATE)  # noqa: SLF001
    return (loss, *gradients, *updated)


def reference(state: TrainingInputs) -> tuple[torch.Tensor, ...]:
    """Take the same step in float64."""
    weights = tuple(weight.detach().double().requires_grad_() for weight in state.weights)
    return _step(state.inputs.double(), state.target.double(), weights)
