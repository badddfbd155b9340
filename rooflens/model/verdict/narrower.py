"""Whether a narrower type is worth it: one answer for findings, for moves, and for `rooflens predict --from --dtype`.

Sums of products go to the tensor cores of a type. Everything else stays on the CUDA cores, which compute narrow types
in fp32: there a type saves bytes, and no arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflens.model.records import Kernel, Pipe
from rooflens.model.roofline.mix import mix_of
from rooflens.model.roofline.opcodes import uses_tensor_cores
from rooflens.model.roofline.roof import roof
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.thresholds import Thresholds

SCALAR = ("fp64", "fp32")
"""Types that CUDA cores compute; narrower ones are widened when they are loaded."""

_FOR_FP32 = ("tf32", "bf16", "fp16")
"""What can take fp32 products: their own format, then formats with fewer digits."""


def is_product_on_cuda_cores(kernel: Kernel, pipes: Mapping[str, Pipe], limits: Thresholds) -> bool:
    """Return whether the fp32 arithmetic is sums of products, with none of it on tensor cores: what these could do."""
    on_tensor = any(pipe.amount for name, pipe in pipes.items() if name.startswith("tensor_") and name != "tensor_pipe")
    mix = mix_of(kernel, "fp32")
    if mix is None or on_tensor or uses_tensor_cores(kernel.warp_opcodes):
        return False
    special = sum(threads for opcode, threads in kernel.thread_opcodes.items() if opcode.startswith("MUFU"))
    return mix.fma >= limits.nearly_all_share * mix.total and special <= limits.trace_share * mix.fma


def could_use_tensor_cores(kernel: Kernel, pipes: Mapping[str, Pipe], limits: Thresholds) -> bool:
    """Return whether it is a matrix product on CUDA cores that keeps the fp32 pipe busy."""
    fp32 = pipes.get("fp32")
    busy = fp32.share if fp32 is not None else None
    return busy is not None and busy >= limits.matrix_pipe_share and is_product_on_cuda_cores(kernel, pipes, limits)


def peak_of(kernel: Kernel, pipes: Mapping[str, Pipe], key: str) -> float | None:
    """Return the peak of a type, whether the kernel uses it or not; None if unknown."""
    pipe, other = pipes.get(key), roof(key, kernel)
    if pipe is not None and pipe.peak_per_s:
        return pipe.peak_per_s
    return other.value if other is not None else None


def roofs_over_fp32(facts: Facts) -> dict[str, float]:
    """Return the types worth it for an fp32 product on CUDA cores, each with its tensor roof over that of fp32.

    Empty if there is none, or peaks are not known.
    """
    kernel, pipes = facts.kernel, facts.pipes
    fp32 = peak_of(kernel, pipes, "fp32")
    over = {dtype: (peak_of(kernel, pipes, f"tensor_{dtype}") or 0.0) / fp32 for dtype in _FOR_FP32} if fp32 else {}
    return {dtype: factor for dtype, factor in over.items() if factor > facts.limits.limiter_gain}


def pipe_in_type(pipe: str, dtype: str, *, product: bool) -> str:
    """Name the pipe on which arithmetic would run in another type.

    Args:
        pipe: Where it runs.
        dtype: The other type, such as `fp16`.
        product: It is sums of products, which tensor cores could do.
    """
    if pipe.startswith("tensor_") or (product and dtype not in SCALAR):
        return f"tensor_{dtype}"
    return dtype if dtype in SCALAR else "fp32"
