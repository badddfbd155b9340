"""A convolution over channels-last images: the number of channels per group decides its limiter.

Every pixel that is read serves `kernel`^2 products per channel of its group: thousands in a full convolution, a few in
a pointwise convolution, nine in a depthwise one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 1e-2}
"""The result is rounded to 8 bits (2**-9), and so may be the partial sums of a split sum."""


def prepare(
    parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Make images of batch x channels x height x width, and weights of filters x channels per group x kernel x kernel.

    Their layout is that of tensor cores: the channels of a pixel are adjacent.
    """
    channels, kernel, groups = parameters["channels"], parameters["kernel"], parameters["groups"]
    images = torch.randn(
        parameters["batch"], channels, parameters["height"], parameters["width"], dtype=dtype, device=device
    )
    weights = torch.randn(parameters["filters"], channels // groups, kernel, kernel, dtype=dtype, device=device)
    last = torch.channels_last
    return images.contiguous(memory_format=last), weights.contiguous(memory_format=last), groups


def run(images: torch.Tensor, weights: torch.Tensor, groups: int) -> torch.Tensor:
    """Convolve; the result is as large as the images."""
    return F.conv2d(images, weights, padding=weights.shape[-1] // 2, groups=groups)


def reference(images: torch.Tensor, weights: torch.Tensor, groups: int) -> torch.Tensor:
    """Convolve in float64, one image at a time."""
    exact = weights.double()
    return torch.cat([run(image.double()[None], exact, groups) for image in images])
