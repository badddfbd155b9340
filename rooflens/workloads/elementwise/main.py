"""One operation per element: two trips through memory, whatever it computes; fusing two saves two of four trips."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

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


Operation: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"


def prepare(
    parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device
) -> tuple[torch.Tensor, Operation, Operation]:
    """Make the elements; take the plain operation, and the one that runs: the same, or compiled into one kernel.

    Compiling waits for the first run.
    """
    plain = OPERATIONS[parameters["operation"]]
    elements = torch.randn(parameters["elements"], dtype=dtype, device=device)
    return elements, plain, torch.compile(plain) if parameters["fused"] else plain


def run(elements: torch.Tensor, _: Operation, operation: Operation) -> torch.Tensor:
    """Apply the operation."""
    return operation(elements)


def reference(elements: torch.Tensor, plain: Operation, _: Operation) -> torch.Tensor:
    """Apply it in float64, uncompiled."""
    return plain(elements.double())
