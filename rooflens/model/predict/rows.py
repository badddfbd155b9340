"""A row of the table of operations: its sizes, formulas and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from rooflens.errors import UnknownNameError, UsageError

Sizes: TypeAlias = Mapping[str, int]
Amount = Callable[[Sizes], float]

LARGEST_SIZE = 10**15
"""Larger sizes are taken for typing errors."""

Unit = Literal["matrix", "vector", "counted"]
"""Where the FLOPs run: on the tensor cores of the operands' type, or on the CUDA cores; FLOPs that were counted
elsewhere run as products do, but for fp64: few kernels of that type use tensor cores."""

UNITS: tuple[Unit, ...] = get_args(Unit)


def pipes_for(unit: Unit, dtype: str) -> tuple[str, ...]:
    """Name the pipes that can run FLOPs of a type, best first; a GPU uses the first that it has."""
    if unit == "vector":
        return ("fp64",) if dtype == "fp64" else ("fp32",)
    if dtype == "fp32":
        return ("fp32",)
    pipes = (f"tensor_{dtype}", dtype)
    return pipes[::-1] if unit == "counted" and dtype == "fp64" else pipes


class Size(Struct, frozen=True):
    """One size of an operation.

    Attributes:
        default: None if it must be given.
        least: The smallest allowed value; None for 1, or for 0 if the default is 0.
        most: The largest; 1 makes it a switch.
    """

    name: str
    meaning: str
    default: int | None = None
    least: int | None = None
    most: int = LARGEST_SIZE

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest allowed value; a size from 0 to 1 is a switch."""
        least = (0 if self.default == 0 else 1) if self.least is None else self.least
        return least, self.most


class Part(Struct, frozen=True):
    """One step of a composite operation, run `count` times; a size may be an expected value with a fraction."""

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
        parts: The steps of a composite operation, in order; its own amounts are their sums.
        tokens: Tokens that one run produces or takes in, for whole models.
        group: GPUs that share it; all amounts are those of one GPU.
        results: How many of the elements are results of a product, which may have a wider type; None if none are.
        sent: Elements of the operands' type that a GPU must send to others.
        sent_results: Elements of the result's type that it must send.
        sent_bytes: Bytes that a GPU must send to others, whatever the type.
        sent_source: What is sent; empty if GPUs never share it.
        special: Special functions, such as exponentials; None if none are counted.
        issued: Instructions besides the products, each of which takes an issue slot; None if none are counted.
        l2_bytes: Bytes between the SMs and L2, over the sizes and the bytes of an element; None if equal to those at
            DRAM.
        extra_costs: How special functions, instructions and L2 bytes are counted; empty if none are.
        dtype: The default type of its operands.
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
"""Result type of products of 8 and 4 bits: their sums do not fit the operands' type."""


class Widths(Struct, frozen=True):
    """Bytes of an element of the operands, and of the results of a product."""

    operand: float
    result: float


def result_type(operation: Operation, dtype: str, out_dtype: str | None = None) -> str:
    """Name the type of an operation's results: the operands', or 16 bits for products of narrower ones.

    Raises:
        UsageError: A type is unknown, or one is given although the operation's results cannot have another.
    """
    for name in (dtype, out_dtype or dtype):
        if name not in ELEMENT_BYTES:
            raise UnknownNameError("type", name, ELEMENT_BYTES)
    if operation.results is None and operation.parts is None:
        if out_dtype not in {None, dtype}:
            raise UsageError(f"`{operation.name}` cannot have results of another type", "leave out_dtype out")
        return dtype
    return out_dtype or (dtype if ELEMENT_BYTES[dtype] >= ELEMENT_BYTES[USUAL_RESULT] else USUAL_RESULT)


def widths_of(operation: Operation, dtype: str, out_dtype: str | None = None) -> Widths:
    """Return the bytes of an operand and of a result.

    Raises:
        UsageError: As `result_type` does.
    """
    result = result_type(operation, dtype, out_dtype)
    return Widths(ELEMENT_BYTES[dtype], ELEMENT_BYTES[result])
