"""Kernels that only fill or copy memory, or wait for other GPUs, by the names that libraries and compilers give them.

A kernel that fills makes the inputs of others: whoever profiles a few launches of a program often gets no more than
that. A user's own names, such as `init_data`, tell nothing for sure.
"""

from __future__ import annotations

import re

from rooflens.model.keys import function_of

FILLS = re.compile(
    r"""
      distribution_elementwise_grid_stride_kernel | distribution_nullary_kernel | \bFillFunctor<       # PyTorch
    | \b(?:arange|range|linspace|logspace|eye|randperm\w*)_cuda(?:_out)?\b | \brandperm_handle_duplicate_keys
    | \b(?:random_from_to|normal_and_transform|uniform_and_transform|exponential_and_transform)\b
    | \bgen_sequenced<curandState | \bgenerate_seed_pseudo(?:_mrg)?< | \bgen_sobol\w*<                 # cuRAND
    | \b__(?:uninitialized_)?fill::functor | \buninitialized_fill_functor<                             # Thrust
    | ^triton_(?:poi|per|red)_fused_(?:(?:rand|randn|randint|full|zeros|ones|fill|arange|uniform|normal|like)_)+\d+\w*$
    | ^cupy_(?:fill|arange|ones|zeros|random)\w* | \bFillPhiloxRandomKernel\w* | \bViewFill< | \bthreefry2x32\b
    | ^\[?(?:CUDA\ )?memset\b
    """,
    re.VERBOSE | re.MULTILINE,
)
"""What fills memory with constants, counts or random numbers."""

COPIES = re.compile(
    r"""
      \b(?:direct|bfloat16|float16|float8|bfloat16tofloat32)_copy_kernel_cuda\b | \bCatArrayBatchedCopy\w*  # PyTorch
    | \b__(?:uninitialized_)?copy::functor | ^cupy_copy\w* | \bViewCopy<
    | ^\[?(?:CUDA\ )?memcpy\b
    """,
    re.VERBOSE | re.MULTILINE,
)
"""What moves memory as it is, or to another type."""

_REDUCES = ("cross_device_reduce", "one_shot_all_reduce", "two_shot_all_reduce", "multimem_all_reduce")
WAITING = ("nccl", "nvshmem", *_REDUCES)
"""How the functions of kernels begin that wait for other ranks: replayed alone, they would hang."""


def waits_for_ranks(kernel: str) -> bool:
    """Return whether a kernel is known to wait for other ranks."""
    return function_of(kernel).startswith(WAITING)
