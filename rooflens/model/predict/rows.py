"""A row of the table of operations: its sizes, formulas and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from rooflens.errors import UnknownNameError, UsageError
from rooflens.model.roofline.datasheets import ACC16, BLOCK_SCALED

Sizes: TypeAlias = Mapping[str, int]
Amount = Callable[[Sizes], float]
Sent = Callable[[float, int], float]
"""Bytes that each GPU sends, over the size of a buffer and the number of GPUs."""

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
    stored, sums = stored_type(dtype), dtype.partition(":")[2]
    pipes = (f"tensor_{stored}{ACC16 if sums else ''}", stored)
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
        parts: The steps of a composite operation, in order: its amounts are their sums.
        fused: What one kernel for all steps of a composite operation keeps on chip; empty for a simple one. Elements,
            bytes and results are those that such a kernel must move.
        fused_parts: The steps whose FLOPs such a kernel does; None for `parts`.
        tokens: Tokens that one run produces or takes in, for whole models.
        group: GPUs that share it; all amounts are those of one GPU.
        results: How many of the elements are results of a product, which may have a wider type; None if none are.
        sent: Elements of the operands' type that a GPU must send to others.
        sent_results: Elements of the result's type that it must send.
        sent_bytes: Bytes that a GPU must send to others, whatever the type.
        sent_source: What is sent; empty if GPUs never share it.
        vector_flop: Those FLOPs of a product that run on the CUDA cores, such as a softmax; None if none do.
        special: Special functions, such as exponentials; None if none are counted.
        issued: Instructions besides the products, each of which takes an issue slot; None if none are counted.
        l2_bytes: Bytes between the SMs and L2, over the sizes and the bytes of an element; None if equal to those at
            DRAM.
        extra_costs: How special functions, instructions and L2 bytes are counted; empty if none are.
        read_again: Elements that kernels read once more where a row, of the size `width`, is too long for an SM to
            keep; None if rows do not matter. The floor has them once.
        dtype: The default type of its operands.
        algorithms: Of a collective, what each algorithm of libraries sends, by its name; empty for other operations.
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
    fused: str = ""
    fused_parts: Callable[[Sizes], Iterator[Part]] | None = None
    tokens: Amount | None = None
    group: Callable[[Sizes], int] = lambda _: 1
    results: Amount | None = None
    sent: Amount = lambda _: 0.0
    sent_results: Amount = lambda _: 0.0
    sent_bytes: Amount = lambda _: 0.0
    sent_source: str = ""
    vector_flop: Amount | None = None
    special: Amount | None = None
    issued: Amount | None = None
    l2_bytes: Callable[[Sizes, float], float] | None = None
    extra_costs: str = ""
    read_again: Amount | None = None
    dtype: str = "bf16"
    algorithms: Mapping[str, Sent] = MappingProxyType({})


ELEMENT_BYTES: Mapping[str, float] = MappingProxyType(
    {
        "fp64": 8,
        "fp32": 4,
        "tf32": 4,
        "bf16": 2,
        "fp16": 2,
        "fp8": 1,
        "mxfp8": 1 + 1 / 32,
        "int8": 1,
        "fp4": 0.5,
        "mxfp4": 0.5 + 1 / 32,
        "nvfp4": 0.5 + 1 / 16,
    }
)
"""Bytes of one element by type; tf32 is stored as fp32.

Those with a scale of one byte for each block count it: mx types for 32 elements (OCP Microscaling Formats v1.0), nvfp4
for 16.
"""

USUAL_SUMS = "fp32"
"""Type in which tensor cores add up the products of narrow types, unless `TYPE:fp16` asks for another one."""

_SUMS_IN_FP16 = ("fp16", "fp8")

DTYPES: tuple[str, ...] = (*ELEMENT_BYTES, *(f"{name}:fp16" for name in _SUMS_IN_FP16))
"""Types of operands: a type alone, or with that of its sums behind a colon."""


def stored_type(dtype: str) -> str:
    """Name the type as it is in memory, without that of its sums."""
    return dtype.partition(":")[0]


def counted_type(dtype: str) -> str:
    """Name the type as counters do, which tell neither blocks with scales nor, of most types, the sums."""
    pipe = f"tensor_{stored_type(dtype)}"
    return BLOCK_SCALED.get(pipe, pipe).removeprefix("tensor_")


TYPE_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "float64": "fp64",
        "double": "fp64",
        "float32": "fp32",
        "float": "fp32",
        "bfloat16": "bf16",
        "float16": "fp16",
        "half": "fp16",
        "float8_e4m3fn": "fp8",
        "float8_e5m2": "fp8",
        "e4m3": "fp8",
        "e5m2": "fp8",
        "e2m1": "fp4",
    }
)
"""What PyTorch, C++ and PTX call a type -> its name here, which an error suggests."""


def the_dtype(text: str) -> str:
    """Read a type of operands, in capitals or not; sums in fp32 are the usual ones and need no name.

    Raises:
        UnknownNameError: There is no such type.
    """
    folded = text.casefold()
    dtype = folded.removesuffix(f":{USUAL_SUMS}") if stored_type(folded) in _SUMS_IN_FP16 else folded
    if dtype not in DTYPES:
        raise UnknownNameError("type", text, DTYPES, synonyms=TYPE_SYNONYMS)
    return dtype


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
    stored = stored_type(the_dtype(dtype))
    if out_dtype is not None and out_dtype not in ELEMENT_BYTES:
        raise UnknownNameError("type", out_dtype, ELEMENT_BYTES, synonyms=TYPE_SYNONYMS)
    if operation.results is None and (operation.parts is None or operation.unit == "vector"):
        if out_dtype not in {None, stored}:
            raise UsageError(f"`{operation.name}` cannot have results of another type", "leave out_dtype out")
        return stored
    return out_dtype or (stored if ELEMENT_BYTES[stored] >= ELEMENT_BYTES[USUAL_RESULT] else USUAL_RESULT)


def widths_of(operation: Operation, dtype: str, out_dtype: str | None = None) -> Widths:
    """Return the bytes of an operand and of a result.

    Raises:
        UsageError: As `result_type` does.
    """
    result = result_type(operation, dtype, out_dtype)
    return Widths(ELEMENT_BYTES[stored_type(dtype)], ELEMENT_BYTES[result])
