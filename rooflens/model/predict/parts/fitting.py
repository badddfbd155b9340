"""Whether the data of an operation fits into a GPU's memory at once, where that is certain."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from rooflens.model.predict.forecast import work_of
from rooflens.model.predict.operations import OPERATIONS

if TYPE_CHECKING:
    from rooflens.model.predict.formulas import Sizes
    from rooflens.model.predict.rows import Operation
    from rooflens.model.roofline.datasheets import Datasheet

_EACH_ONCE = frozenset({"gemv", "gemm", "quantized-gemm", "batched-gemm", "attention-flash", "attention-decode"})
"""Operations that move each operand once, which must all be there at once."""


def held_bytes(operation: Operation, sizes: Sizes, dtype: str, out_dtype: str | None = None) -> float | None:
    """Return the bytes that one GPU must hold at once; None for operations where that is not known.

    Of a whole model it is the weights of its products and the cache, a lower bound; activations come on top.

    Args:
        operation: A row of the table.
        sizes: All its sizes.
        dtype: Type of the operands.
        out_dtype: Type of the results; None for the usual one.
    """
    if operation.name in _EACH_ONCE:
        return work_of(operation, {**sizes, "tile": 0}, dtype, out_dtype)[1]
    if operation.tokens is None or operation.parts is None:
        return None
    held = 0.0
    for part in operation.parts(sizes):
        one, empty = OPERATIONS[part.operation], {"gemm": "m", "attention-decode": "length"}.get(part.operation)
        if empty is None:
            continue
        without = work_of(one, {**part.sizes, empty: 0}, dtype)[1]
        whole = work_of(one, part.sizes, dtype)[1]
        held += part.count * (without if part.operation == "gemm" else whole - without)
    return held


def gpus_to_hold(
    operation: Operation, sizes: Sizes, dtype: str, gpu: Datasheet, out_dtype: str | None = None
) -> int | None:
    """Return how many GPUs it takes to hold the data; None where its size or the memory's is not known."""
    held = held_bytes(operation, sizes, dtype, out_dtype)
    if held is None or gpu.dram_size is None:
        return None
    return max(1, ceil(held * operation.group(sizes) / gpu.dram_size.value))
