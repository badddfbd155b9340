"""What a row of the table of operations is: its sizes, what is counted over them, and in which types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from rooflens.errors import UnknownNameError, UsageError

Sizes: TypeAlias = Mapping[str, int]
Amount = Callable[[Sizes], float]

LARGEST_SIZE = 10**15
"""Sizes above this are taken for typing errors."""

Unit = Literal["matrix", "vector", "counted"]
"""Where the FLOPs run: on the tensor cores of the operands' type, or on the CUDA cores; FLOPs that were counted
elsewhere run as products do, but for fp64: few kernels of that type use tensor cores."""

UNITS: tuple[Unit, ...] = get_args(Unit)


def pipes_for(unit: Unit, dtype: str) -> tuple[str, ...]:
    """Name the pipes that may run FLOPs of a type; the first one that a GPU has is used."""
    if unit == "vector":
        return ("fp64",) if dtype == "fp64" else ("fp32",)
    if dtype == "fp32":
        return ("fp32",)
    pipes = (f"tensor_{dtype}", dtype)
    return pipes[::-1] if unit == "counted" and dtype == "fp64" else pipes


class Size(Struct, frozen=True):
    """One size of an operation.

    Attributes:
        default: Its usual value; None if it must be given.
        least: The smallest value that it may have; None if it is 1, or 0 for a size that is 0 by default.
        most: The largest; 1 makes it a switch.
    """

    name: str
    meaning: str
    default: int | None = None
    least: int | None = None
    most: int = LARGEST_SIZE

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest value that it may have; one from 0 to 1 is a switch."""
        least = (0 if self.default == 0 else 1) if self.least is None else self.least
        return least, self.most


class Part(Struct, frozen=True):
    """One step of a composite operation, `count` times over; a size may be an expected value, not a whole number."""

    operation: str
    sizes: Mapping[str, Any]
    label: str
    count: int = 1


class Operation(Struct, frozen=True):
    """One row of the table.

    Attributes:
        unit: Where its FLOPs run.
        flop: FLOPs over the sizes.
        elements: Elements of the operands' type moved to and from DRAM, over the sizes.
        flop_source: How the FLOPs are counted.
        bytes_source: What is moved.
        extra_bytes: Bytes moved that do not depend on the type, such as indices.
        parts: The simple operations of a composite one, in order; its own amounts are their sums.
        tokens: Tokens that one run produces or takes in, for operations of a whole model.
        group: GPUs that share it; all its amounts are those of one of them.
        results: Those of the elements that are results of a product, whose type may be wider; None if none is.
        sent: Elements of the operands' type that a GPU must send to others.
        sent_results: Elements of the result's type that it must send.
        sent_bytes: Bytes that a GPU must send to others, whatever the type.
        sent_source: What is sent; empty if one GPU always does it alone.
        special: Special functions, such as exponentials; None if none are counted.
        issued: Instructions besides the products that each take a slot to issue; None if none are counted.
        l2_bytes: Bytes between the SMs and L2, over the sizes and the bytes of an element; None if they are those
            of DRAM.
        extra_costs: How special functions, instructions and L2 bytes are counted; empty if none are.
        dtype: The usual type of its operands.
    """

    name: str
    summary: str
    unit: Unit
    sizes: tuple[Size, ...]
    flop_source: str
    bytes_source: str
    flop: Amount = lambda _: 0.0
    elements: Amount = lambda _: 0.0
    extra_bytes: Amount = lambda _: 0.0
    parts: Callable[[Sizes], Iterator[Part]] | None = None
    tokens: Amount | None = None
    group: Callable[[Sizes], int] = lambda _: 1
    results: Amount | None = None
    sent: Amount = lambda _: 0.0
    sent_results: Amount = lambda _: 0.0
    sent_bytes: Amount = lambda _: 0.0
    sent_source: str = ""
    special: Amount | None = None
    issued: Amount | None = None
    l2_bytes: Callable[[Sizes, float], float] | None = None
    extra_costs: str = ""
    dtype: str = "bf16"


ELEMENT_BYTES: Mapping[str, float] = MappingProxyType(
    {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp4": 0.5}
)
"""Bytes of one element by type; tf32 is stored as fp32. Scales of block formats are not counted."""

USUAL_RESULT = "bf16"
"""Type of what products of 8 and 4 bits write: their sums are too long for the type of the operands."""


class Widths(Struct, frozen=True):
    """Bytes of an element of the operands, and of the results of a product."""

    operand: float
    result: float


def result_type(operation: Operation, dtype: str, out_dtype: str | None = None) -> str:
    """Name the type of an operation's results: that of the operands, or 16 bits of products of narrower ones.

    Raises:
        UsageError: A type is unknown, or one is given for an operation whose results have none of their own.
    """
    for name in (dtype, out_dtype or dtype):
        if name not in ELEMENT_BYTES:
            raise UnknownNameError("type", name, ELEMENT_BYTES)
    if operation.results is None and operation.parts is None:
        if out_dtype not in {None, dtype}:
            raise UsageError(f"`{operation.name}` has no result of a type of its own", "leave it out")
        return dtype
    return out_dtype or (dtype if ELEMENT_BYTES[dtype] >= ELEMENT_BYTES[USUAL_RESULT] else USUAL_RESULT)


def widths_of(operation: Operation, dtype: str, out_dtype: str | None = None) -> Widths:
    """Say how wide operands and results of an operation are.

    Raises:
        UsageError: As `result_type` does.
    """
    result = result_type(operation, dtype, out_dtype)
    return Widths(ELEMENT_BYTES[dtype], ELEMENT_BYTES[result])
