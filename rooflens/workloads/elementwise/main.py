"""One operation per element: two trips through memory, whatever it computes; fusing two saves two of four trips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOLERANCE = {"fp32": 2e-6}
"""A few units in the last place of float32 (2**-24 of the largest value each)."""


def _cos_cos(x: torch.Tensor) -> torch.Tensor:
    return x.cos().cos()


OPERATIONS = (F.relu, F.gelu, _cos_cos)
"""The operations that the parameter `operation` selects from."""


@dataclass(frozen=True, slots=True)
class ElementwiseInputs:
    """Elements, the plain operation, and the operation that runs: the same, or compiled into one kernel."""

    elements: torch.Tensor
    plain: Callable[[torch.Tensor], torch.Tensor]
    operation: Callable[[torch.Tensor], torch.Tensor]


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> ElementwiseInputs:
    """Make the elements; compiling waits for the first run."""
    plain = OPERATIONS[parameters["operation"]]
    elements = torch.randn(parameters["elements"], dtype=dtype, device=device)
    return ElementwiseInputs(elements, plain, torch.compile(plain) if parameters["fused"] else plain)


def run(state: ElementwiseInputs) -> torch.Tensor:
    """Apply the operation."""
    return state.operation(state.elements)


def reference(state: ElementwiseInputs) -> torch.Tensor:
    """Apply it in float64, uncompiled."""
    return state.plain(state.elements.double())
