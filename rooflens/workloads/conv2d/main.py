"""A convolution over channels-last images: the number of channels per group decides its limiter.

Every pixel that is read serves `kernel`^2 products per channel of its group: thousands in a full convolution, a few in
a pointwise convolution, nine in a depthwise one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9), and so may be the partial sums of a split sum."""


@dataclass(frozen=True, slots=True)
class ConvolutionInputs:
    """Images of batch x channels x height x width; weights of filters x channels per group x kernel x kernel."""

    images: torch.Tensor
    weights: torch.Tensor
    groups: int


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> ConvolutionInputs:
    """Make images and weights in the layout of tensor cores: the channels of a pixel are adjacent."""
    channels, kernel, groups = parameters["channels"], parameters["kernel"], parameters["groups"]
    images = torch.randn(
        parameters["batch"], channels, parameters["height"], parameters["width"], dtype=dtype, device=device
    )
    weights = torch.randn(parameters["filters"], channels // groups, kernel, kernel, dtype=dtype, device=device)
    last = torch.channels_last
    return ConvolutionInputs(images.contiguous(memory_format=last), weights.contiguous(memory_format=last), groups)


def run(state: ConvolutionInputs) -> torch.Tensor:
    """Convolve; the result is as large as the images."""
    return F.conv2d(state.images, state.weights, padding=state.weights.shape[-1] // 2, groups=state.groups)


def reference(state: ConvolutionInputs) -> torch.Tensor:
    """Convolve in float64, one image at a time."""
    weights, padding = state.weights.double(), state.weights.shape[-1] // 2
    each = (F.conv2d(image.double()[None], weights, padding=padding, groups=state.groups) for image in state.images)
    return torch.cat(tuple(each))
