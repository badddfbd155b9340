"""The operands of one call of an operator, and what the call must compute and move."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from rooflens.model.program.timeline import Operands

TYPES: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "double": ("fp64", 8),
        "float": ("fp32", 4),
        "c10::half": ("fp16", 2),
        "half": ("fp16", 2),
        "c10::bfloat16": ("bf16", 2),
        "bfloat16": ("bf16", 2),
        "c10::float8_e4m3fn": ("fp8", 1),
        "c10::float8_e5m2": ("fp8", 1),
        "c10::float8_e8m0fnu": ("", 1),
        "c10::float4_e2m1fn_x2": ("", 1),
        "long": ("", 8),
        "long int": ("", 8),
        "int": ("", 4),
        "short": ("", 2),
        "short int": ("", 2),
        "signed char": ("int8", 1),
        "unsigned char": ("", 1),
        "char": ("int8", 1),
        "bool": ("", 1),
        "byte": ("", 1),
        "float8_e4m3fn": ("fp8", 1),
        "float8_e5m2": ("fp8", 1),
        "uint16": ("", 2),
        "uint32": ("", 4),
        "uint64": ("", 8),
        "complexhalf": ("", 4),
        "complexfloat": ("", 8),
        "complexdouble": ("", 16),
    }
)
"""PyTorch's name of a type in lower case -> our name for its arithmetic, empty if it has no peak; its bytes."""

FLOATS = ("fp64", "fp32", "bf16", "fp16", "fp8")

RESULT_BYTES: Mapping[int, int] = MappingProxyType({5: 2, 6: 4, 15: 2})
"""Number of a result type as a trace has it -> its bytes (PyTorch, c10/core/ScalarType.h: Half, Float, BFloat16)."""

_NO_TENSOR = frozenset({"", "Scalar", "ScalarList"})
_MOST_CALL_BYTES = 10**15


class UnknownWorkError(Exception):
    """The sizes of a call do not tell its work."""


class Tensor(Struct, frozen=True):
    """One operand: sizes, type and distinct elements; an expanded tensor repeats some."""

    dims: tuple[int, ...]
    dtype: str
    element_bytes: int
    elements: int

    @property
    def moved_bytes(self) -> int:
        """Bytes of its distinct elements."""
        return self.elements * self.element_bytes

    def like(self, *dims: int, element_bytes: int | None = None) -> Tensor:
        """Return a tensor of the same type, or of another width, with other sizes."""
        return Tensor(dims, self.dtype, element_bytes or self.element_bytes, prod(dims))


class Work(Struct, frozen=True):
    """What one call must compute and move.

    FLOPs are those of the operation. Bytes are those of the tensors that it reads and writes, each once and in its own
    type, which the one type of an operation does not tell.

    Attributes:
        operation: The operation of `predict` that has its formula.
        sizes: The sizes of that operation.
        dtype: Type of its arithmetic.
        read, written: Its tensors.
        is_product: Whether its FLOPs may run on tensor cores.
        extra_bytes: Bytes of tensors of which only a part is known to be read or written.
        may_be_fp8: Its operands may be converted to eight bits before they are multiplied.
        counted_bytes: What the compiler that made the kernel counted; in place of the tensors' bytes.
    """

    operation: str
    sizes: Mapping[str, int]
    dtype: str
    read: tuple[Tensor, ...]
    written: tuple[Tensor, ...]
    is_product: bool = False
    extra_bytes: float = 0
    may_be_fp8: bool = False
    counted_bytes: float | None = None

    @property
    def moved_bytes(self) -> float:
        """Every operand read once, and every result written once."""
        if self.counted_bytes is not None:
            return self.counted_bytes
        return sum(one.moved_bytes for one in (*self.read, *self.written)) + self.extra_bytes

    @property
    def computes(self) -> bool:
        """Whether it is more than a copy."""
        return self.sizes.get("flops", 1) > 0

    def checked(self) -> Work:
        """Return it.

        Raises:
            UnknownWorkError: It moves nothing, or more than there can be.
        """
        if not 0 < self.moved_bytes <= _MOST_CALL_BYTES:
            raise UnknownWorkError
        return self


class RequestSums(Struct, frozen=True):
    """Requests of a step of a server: what attention sees, summed over them.

    Attributes:
        queries: New tokens.
        keys: Tokens that are seen, cached and new; None if the annotation does not say.
        pairs: Pairs of a new token and one that it sees; a lower bound if `keys` is None.
    """

    queries: int
    keys: int | None
    pairs: int


_ARGUMENT_NUMBER = r"(\d{1,15})"
_SUMS = rf"\(sq{_ARGUMENT_NUMBER}sk{_ARGUMENT_NUMBER}sqsq{_ARGUMENT_NUMBER}sqsk{_ARGUMENT_NUMBER}\)"
_VLLM_SUMS = re.compile(rf"execute_\d+_context_\d+{_SUMS}_generation_\d+{_SUMS}")
_VLLM = re.compile(
    rf"execute_context_{_ARGUMENT_NUMBER}\({_ARGUMENT_NUMBER}\)_generation_{_ARGUMENT_NUMBER}\({_ARGUMENT_NUMBER}\)"
)
_SGLANG = re.compile(r"step\[(EXTEND|DECODE|MIXED)\b([^\]]{0,300})\]")
_PAIR = re.compile(rf"\b(\w{{1,8}})={_ARGUMENT_NUMBER}\b")
_STEPS_KEPT = 1 << 12


@lru_cache(maxsize=_STEPS_KEPT)
def sums_of_step(ranges: str | None) -> RequestSums | None:
    """Read how many tokens a step of vLLM or SGLang attends to; None if no open range says so.

    `execute_context_2(14721)_generation_0(0)` (vLLM, vllm/v1/worker/gpu_worker.py) tells new tokens only, as does
    `step[EXTEND bs=2 toks=14721]` of SGLang; with the sums of both lengths and their products they are
    `execute_64_context_0(sq0sk0sqsq0sqsk0)_generation_64(sq64sk131072sqsq64sqsk131072)` and
    `step[DECODE bs=64 g_sq=64 g_sqsq=64 g_sqsk=131072 g_sk=131072]` (TraceLens,
    TraceLens/TraceUtils/annotation_utils.py).
    """
    if not ranges:
        return None
    if found := _VLLM_SUMS.search(ranges):
        numbers = [int(one) for one in found.groups()]
        return _request_sums(numbers[:4], numbers[4:])
    if found := _VLLM.search(ranges):
        requests, queries, _, generated = (int(one) for one in found.groups())
        return _at_least(requests, queries, generated)
    if found := _SGLANG.search(ranges):
        told = {key: int(value) for key, value in _PAIR.findall(found[2])}
        names = ("sq", "sk", "sqsq", "sqsk")
        if any(f"{part}_sqsk" in told for part in "cg"):
            return _request_sums(*([told.get(f"{part}_{name}", 0) for name in names] for part in "cg"))
        return _at_least(told.get("bs", 0), told.get("toks", 0), 0) if found[1] == "EXTEND" else None
    return None


def _request_sums(context: list[int], generation: list[int]) -> RequestSums | None:
    """Add up the requests that take in a prompt and those that generate.

    A request of q new among k tokens has q k - q (q - 1) / 2 pairs: its new tokens do not see later ones.
    """
    queries, keys, squares, products = (sum(both) for both in zip(context, generation, strict=True))
    pairs = products - (squares - queries) // 2
    return RequestSums(queries, keys, pairs) if queries > 0 and pairs > 0 and keys > 0 else None


def _at_least(requests: int, queries: int, generated: int) -> RequestSums | None:
    """Count the pairs within the prompts, the fewest if all are equally long; cached tokens are not told."""
    if not requests or not queries:
        return None
    return RequestSums(queries + generated, None, (queries * queries // requests + queries) // 2)


class CallOperands:
    """The operands of one call, for recipes.

    Attributes:
        sums: What attention sees in the step around it; None if the trace does not say.
        cache_bytes: Bytes of an element of the cache of keys and values; None if the trace does not say.
    """

    def __init__(self, operands: Operands, sums: RequestSums | None = None, cache_bytes: int | None = None) -> None:
        self._of = operands
        self.sums, self.cache_bytes = sums, cache_bytes

    @property
    def amount(self) -> int:
        """How many arguments it has."""
        return len(self._of.dims)

    def tensor(self, at: int) -> Tensor:
        """Return a tensor of a known type.

        Raises:
            UnknownWorkError: The operand is not a tensor, or its type is unknown.
        """
        found = self.maybe(at)
        if found is None:
            raise UnknownWorkError
        return found

    def tensors(self, *places: int) -> tuple[Tensor, ...]:
        """Return several tensors; those that are none are left out."""
        return tuple(one for at in places if (one := self.maybe(at)) is not None)

    def maybe(self, at: int) -> Tensor | None:
        """Return a tensor; None if the operand is not one.

        Raises:
            UnknownWorkError: Its type is unknown.
        """
        operands = self._of
        if at >= len(operands.dims) or operands.types[at] in _NO_TENSOR:
            return None
        known = TYPES.get(operands.types[at].lower())
        if known is None:
            raise UnknownWorkError
        dims = operands.dims[at]
        strides = operands.strides[at] if operands.strides else ()
        repeats = zip(dims, strides, strict=True) if len(strides) == len(dims) else ((size, 1) for size in dims)
        return Tensor(dims, *known, prod(size for size, stride in repeats if stride))

    def only(self, operands: int) -> None:
        """Check that only the first arguments are tensors, besides an output: a fused group has more.

        Raises:
            UnknownWorkError: There are more tensors.
        """
        if sum(one not in _NO_TENSOR for one in self._of.types[operands:]) > 1:
            raise UnknownWorkError

    def value(self, at: int) -> object:
        """Return an argument that is not a tensor: a number, a Boolean or a list; None if the trace lacks it."""
        text = self._of.values[at] if at < len(self._of.values) else ""
        try:
            return ast.literal_eval(text) if text else None
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None

    def whole(self, at: int) -> tuple[int, ...]:
        """Return a list of integers.

        Raises:
            UnknownWorkError: The argument is not one, or the trace lacks it.
        """
        found = self.value(at)
        if isinstance(found, (list, tuple)) and all(type(one) is int for one in found):
            return tuple(found)
        raise UnknownWorkError

    def number(self, at: int) -> int | None:
        """Return an integer; None if the trace lacks it."""
        found = self.value(at)
        return found if type(found) is int else None
