"""What a PyTorch operator must compute and move, by the sizes and types of its call.

Nothing is guessed: an operator without a row here, or a call with too few sizes, has no work. FLOPs are those of the
algorithm; bytes are every operand read once and every result written once. If a trace does not tell whether attention
is causal, which sizes a reduction keeps, or which gradients are wanted, the smaller amount counts.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
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

_FLOATS = ("fp64", "fp32", "bf16", "fp16", "fp8")
_NO_TENSOR = frozenset({"", "Scalar", "ScalarList"})
_MOST_SIZES = 10**15


class Work(Struct, frozen=True):
    """What one call must compute and move.

    Attributes:
        operation: The operation of `predict` that forecasts it; `custom` if FLOPs and bytes are counted here.
        sizes: The sizes of that operation.
        dtype: Type of its arithmetic.
        is_product: Whether its FLOPs may run on tensor cores.
    """

    operation: str
    sizes: Mapping[str, int]
    dtype: str
    is_product: bool = False


class _Tensor(Struct, frozen=True):
    """One operand: sizes, type and distinct elements; an expanded tensor repeats some."""

    dims: tuple[int, ...]
    dtype: str
    element_bytes: int
    elements: int

    @property
    def moved_bytes(self) -> int:
        return self.elements * self.element_bytes


class _UnknownError(Exception):
    """The sizes of a call do not tell its work."""


class _Call:
    """The operands of one call, for recipes."""

    def __init__(self, operands: Operands) -> None:
        self._of = operands

    def tensor(self, at: int) -> _Tensor:
        """Return a tensor of a known type.

        Raises:
            _UnknownError: The operand is not a tensor, or its type is unknown.
        """
        found = self.maybe(at)
        if found is None:
            raise _UnknownError
        return found

    def maybe(self, at: int) -> _Tensor | None:
        """Return a tensor; None if the operand is not one."""
        operands = self._of
        if at >= len(operands.dims) or operands.types[at] in _NO_TENSOR:
            return None
        known = TYPES.get(operands.types[at].lower())
        if known is None:
            raise _UnknownError
        dims = operands.dims[at]
        strides = operands.strides[at] if operands.strides else ()
        repeats = zip(dims, strides, strict=True) if len(strides) == len(dims) else ((size, 1) for size in dims)
        return _Tensor(dims, *known, prod(size for size, stride in repeats if stride))

    def only(self, operands: int) -> None:
        """Check that only the first arguments are tensors, besides an output: a fused group has more.

        Raises:
            _UnknownError: There are more tensors.
        """
        if sum(one not in _NO_TENSOR for one in self._of.types[operands:]) > 1:
            raise _UnknownError

    def pair(self, first: int, *ranks: int) -> tuple[_Tensor, _Tensor]:
        """Return an operand and the next one.

        Raises:
            _UnknownError: They do not have as many dimensions as `ranks` says.
        """
        left, right = self.tensor(first), self.tensor(first + 1)
        if (len(left.dims), len(right.dims)) != ranks:
            raise _UnknownError
        return left, right

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
            _UnknownError: The argument is not one, or the trace lacks it.
        """
        found = self.value(at)
        if isinstance(found, (list, tuple)) and all(type(one) is int for one in found):
            return tuple(found)
        raise _UnknownError


def _custom(flop: int, moved_bytes: int, dtype: str, *, is_product: bool = False) -> Work:
    if not 0 < moved_bytes <= _MOST_SIZES or flop > _MOST_SIZES * 1000:
        raise _UnknownError
    return Work("custom", {"flop": flop, "bytes": moved_bytes}, dtype, is_product)


def _product(left: _Tensor, right: _Tensor, added: _Tensor | None = None, result_bytes: int | None = None) -> Work:
    """Multiply matrices, or batches of them; `added` is read once."""
    *batches, m, k = left.dims if len(left.dims) > 1 else (1, *left.dims)
    n = right.dims[-1] if len(right.dims) > 1 else 1
    inner = right.dims[-2] if len(right.dims) > 1 else right.dims[-1] if right.dims else 0
    if inner != k or left.dtype not in {*_FLOATS, "int8"}:
        raise _UnknownError
    batch = prod(batches)
    width = left.element_bytes if result_bytes is None else result_bytes
    moved = left.moved_bytes + right.moved_bytes + batch * m * n * width + (added.moved_bytes if added else 0)
    return _custom(2 * batch * m * n * k, moved, left.dtype, is_product=True)


def _multiplied(left_rank: int, right_rank: int, *, added: bool = False) -> Callable[[_Call], Work]:
    """Make the recipe of a product; batches must have equal sizes.

    Args:
        left_rank: Dimensions of the left operand.
        right_rank: Those of the right one.
        added: Argument 0 is added to the product; it is not read if its factor is 0.
    """

    def recipe(call: _Call) -> Work:
        call.only(2 + added)
        left, right = call.pair(int(added), left_rank, right_rank)
        if left.dims[:-2] != right.dims[:-2]:
            raise _UnknownError
        return _product(left, right, call.tensor(0) if added and call.value(3) != 0 else None)

    return recipe


def _linear(call: _Call) -> Work:
    call.only(3)
    rows, weight = call.tensor(0), call.tensor(1)
    if len(weight.dims) != 2 or not rows.dims or rows.dims[-1] != weight.dims[1]:
        raise _UnknownError
    m, (n, k) = prod(rows.dims[:-1]), weight.dims
    bias = call.maybe(2)
    moved = rows.moved_bytes + weight.moved_bytes + m * n * rows.element_bytes + (bias.moved_bytes if bias else 0)
    return _custom(2 * m * n * k, moved, rows.dtype, is_product=True)


def _matmul(call: _Call) -> Work:
    """Multiply matrices or equal batches; a batch times one matrix is a single product of all its rows."""
    call.only(2)
    left, right = call.tensor(0), call.tensor(1)
    if len(right.dims) == 2 and len(left.dims) > 2:
        return _product(left, right)
    if len(left.dims) < 2 or len(left.dims) != len(right.dims) or left.dims[:-2] != right.dims[:-2]:
        raise _UnknownError
    return _product(left, right)


def _scaled_mm(call: _Call) -> Work:
    return _product(*call.pair(0, 2, 2))  # the result may be wider: as narrow as the operands bounds it


def _attention(layout: str, causal_at: int, lengths_at: int | None = None) -> Callable[[_Call], Work]:
    """Make the recipe of attention: `bhld` or `blhd` for the order of batch, heads, length and width."""

    def recipe(call: _Call) -> Work:
        query, key, value = (call.tensor(at) for at in range(3))
        if any(len(one.dims) != 4 for one in (query, key, value)):
            raise _UnknownError
        if lengths_at is not None and call.maybe(lengths_at) is not None:
            raise _UnknownError  # sequences of several lengths: the trace does not hold them
        places = [layout.index(letter) for letter in "bhld"]
        batch, heads, length, width = (query.dims[at] for at in places)
        _, kv_heads, keys, _ = (key.dims[at] for at in places)
        wide = value.dims[places[3]]
        if query.dtype not in _FLOATS or not kv_heads or heads % kv_heads:
            raise _UnknownError
        given = call.value(causal_at)
        is_causal = given is None or bool(given)
        if length == keys and width == wide and heads * length * width:
            sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "length": length, "width": width}
            return Work("attention-flash", {**sizes, "causal": int(is_causal)}, query.dtype, is_product=True)
        fewer = min(length, keys)
        pairs = length * keys - (fewer * (fewer - 1) // 2 if is_causal else 0)
        moved = query.moved_bytes + key.moved_bytes + value.moved_bytes
        moved += batch * heads * length * wide * query.element_bytes
        return _custom(2 * batch * heads * pairs * (width + wide), moved, query.dtype, is_product=True)

    return recipe


def _attention_backward(layout: str) -> Callable[[_Call], Work]:
    """Make the recipe of the gradients of attention: gradient, query, key, value, ...; causal is argument 11."""

    def recipe(call: _Call) -> Work:
        query, key, value = (call.tensor(at) for at in (1, 2, 3))
        if any(len(one.dims) != 4 for one in (query, key, value)) or query.dtype not in _FLOATS:
            raise _UnknownError
        batch, heads, length, width = (query.dims[layout.index(letter)] for letter in "bhld")
        kv_heads, keys = (key.dims[layout.index(letter)] for letter in "hl")
        is_alike = length == keys and value.dims == key.dims
        if not is_alike or not heads * length * width * kv_heads or heads % kv_heads:
            raise _UnknownError
        given = call.value(11)
        sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "length": length, "width": width}
        is_causal = int(given is None or bool(given))
        return Work("attention-flash-backward", {**sizes, "causal": is_causal}, query.dtype, is_product=True)

    return recipe


def _layer_norm_backward(call: _Call) -> Work:
    """Read gradient and rows; write the gradient of the rows if the trace says that it is wanted."""
    gradient, rows = call.tensor(0), call.tensor(1)
    if gradient.dims != rows.dims:
        raise _UnknownError
    wanted = call.value(7)
    is_wanted = isinstance(wanted, list) and wanted[:1] == [True]
    moved = gradient.moved_bytes + rows.moved_bytes * (2 if is_wanted else 1)
    return _custom(7 * rows.elements, moved, _arithmetic(rows))


def _convolution_backward(call: _Call) -> Work:
    """Multiply once per wanted gradient; once if the trace does not say which are wanted."""
    gradient, images, weights = (call.tensor(at) for at in range(3))
    is_transposed = call.value(7)
    if is_transposed is not False or gradient.dtype not in _FLOATS or len(images.dims) < 3:
        raise _UnknownError
    if len(images.dims) != len(weights.dims) or len(gradient.dims) != len(images.dims):
        raise _UnknownError
    if gradient.dims[0] != images.dims[0] or gradient.dims[1] != weights.dims[0]:
        raise _UnknownError
    wanted = call.value(10)
    of_images, of_weights = wanted[:2] if isinstance(wanted, list) and len(wanted) == 3 else (True, False)
    if not of_images and not of_weights:
        raise _UnknownError
    products = bool(of_images) + bool(of_weights)
    moved = gradient.moved_bytes + (images.moved_bytes + weights.moved_bytes) * products
    return _custom(products * 2 * gradient.elements * prod(weights.dims[1:]), moved, gradient.dtype, is_product=True)


def _dropout(call: _Call) -> Work:
    """Read every element; write it and its mask."""
    source = call.tensor(0)
    return _custom(source.elements, 2 * source.moved_bytes + source.elements, _arithmetic(source))


def _layer_norm(call: _Call) -> Work:
    rows, weight = call.tensor(0), call.maybe(2)
    if weight is None or not weight.elements or rows.elements % weight.elements:
        raise _UnknownError
    sizes = {"rows": rows.elements // weight.elements, "width": weight.elements}
    return Work("layernorm", sizes, _real(rows.dtype))


def _rms_norm(call: _Call) -> Work:
    rows, weight = call.tensor(0), call.maybe(2)
    if weight is None or not weight.elements or rows.elements % weight.elements:
        raise _UnknownError
    return Work("rmsnorm", {"rows": rows.elements // weight.elements, "width": weight.elements}, _real(rows.dtype))


def _normalized(call: _Call) -> Work:
    """Normalize by statistics of channels or groups: each element read once and written once."""
    rows = call.tensor(0)
    return _custom(4 * rows.elements, rows.moved_bytes + rows.elements * rows.element_bytes, _arithmetic(rows))


def _softmax(call: _Call) -> Work:
    rows = call.tensor(0)
    if not rows.dims or not rows.elements or call.value(2) not in {None, False}:
        raise _UnknownError
    width = rows.dims[-1]
    return Work("softmax", {"rows": rows.elements // width, "width": width}, _real(rows.dtype))


def _convolution(call: _Call) -> Work:
    """Convolve images by the arguments of `aten::convolution`: stride, padding, dilation, ..., groups."""
    return _convolved(call, stride_at=3, padding_at=4, dilation_at=5, groups_at=8, transposed_at=6)


def _cudnn_convolution(call: _Call) -> Work:
    """Convolve images by the arguments of `aten::cudnn_convolution`: padding, stride, dilation, groups."""
    return _convolved(call, stride_at=3, padding_at=2, dilation_at=4, groups_at=5, has_bias=False)


def _convolved(  # noqa: PLR0913 - where the arguments stand
    call: _Call,
    *,
    stride_at: int,
    padding_at: int,
    dilation_at: int,
    groups_at: int,
    transposed_at: int | None = None,
    has_bias: bool = True,
) -> Work:
    images, weights = call.tensor(0), call.tensor(1)
    if len(images.dims) < 3 or len(images.dims) != len(weights.dims) or images.dtype not in _FLOATS:
        raise _UnknownError
    if transposed_at is not None and call.value(transposed_at) is not False:
        raise _UnknownError
    several = [call.whole(at) for at in (stride_at, padding_at, dilation_at)]
    space = len(images.dims) - 2
    stride, padding, dilation = (one * space if len(one) == 1 else one for one in several)
    groups = call.value(groups_at)
    if any(len(one) != space for one in (stride, padding, dilation)) or not isinstance(groups, int) or groups < 1:
        raise _UnknownError
    if weights.dims[1] * groups != images.dims[1] or min(stride) < 1:
        raise _UnknownError
    out = [
        (size + 2 * pad - dilated * (side - 1) - 1) // step + 1
        for size, pad, dilated, side, step in zip(
            images.dims[2:], padding, dilation, weights.dims[2:], stride, strict=True
        )
    ]
    results = images.dims[0] * weights.dims[0] * prod(out)
    bias = call.maybe(2) if has_bias else None
    moved = images.moved_bytes + weights.moved_bytes + results * images.element_bytes
    flop = 2 * results * prod(weights.dims[1:])
    if min(out) < 1:
        raise _UnknownError
    # Depthwise convolutions multiply no matrices, but the tensor peak is a bound for them too.
    return _custom(flop, moved + (bias.moved_bytes if bias else 0), images.dtype, is_product=True)


def _pointwise(operands: int, flops: int = 1, *, result: str = "") -> Callable[[_Call], Work]:
    """Make the recipe of an elementwise function of tensors that may be broadcast.

    Args:
        operands: How many first arguments may be tensors to read.
        flops: FLOPs per element.
        result: `bool` if it writes Booleans; `real` if integers become fp32.
    """

    def recipe(call: _Call) -> Work:
        call.only(operands)
        found = [one for at in range(operands) if (one := call.maybe(at)) is not None]
        sizes = _broadcast([one.dims for one in found])
        wide = _promoted(found)
        element_bytes = 1 if result == "bool" else 4 if result == "real" and not wide.dtype else wide.element_bytes
        elements = prod(sizes)
        moved = sum(one.moved_bytes for one in found) + elements * element_bytes
        return _custom(flops * elements, moved, _arithmetic(wide))

    return recipe


def _in_place(operands: int, flops: int = 1) -> Callable[[_Call], Work]:
    """Make the recipe of a function that overwrites its first operand."""

    def recipe(call: _Call) -> Work:
        call.only(operands)
        first = call.tensor(0)
        others = [one for at in range(1, operands) if (one := call.maybe(at)) is not None]
        if _broadcast([one.dims for one in (first, *others)]) != first.dims:
            raise _UnknownError
        moved = 2 * first.moved_bytes + sum(one.moved_bytes for one in others)
        return _custom(flops * first.elements, moved, _arithmetic(first))

    return recipe


def _copy(call: _Call) -> Work:
    into, source = call.tensor(0), call.tensor(1)
    return _custom(0, into.moved_bytes + source.moved_bytes, "fp32")


def _where(call: _Call) -> Work:
    condition, *chosen = (call.tensor(at) for at in range(3))
    elements = prod(_broadcast([condition.dims, *(one.dims for one in chosen)]))
    # `where` reads only one of the two for each element: at least the smaller one.
    moved = condition.moved_bytes + min(one.moved_bytes for one in chosen) + elements * _promoted(chosen).element_bytes
    return _custom(0, moved, "fp32")


def _fill(call: _Call) -> Work:
    return _custom(0, call.tensor(0).moved_bytes, "fp32")


def _reduction(call: _Call) -> Work:
    """Read every element once; write the result if the trace tells which dimensions are reduced."""
    source = call.tensor(0)
    if call.maybe(1) is not None:
        raise _UnknownError  # `max` and `min` of two tensors
    left = 1
    try:
        gone = {at % len(source.dims) for at in call.whole(1)} if source.dims else set()
        left = prod(size for at, size in enumerate(source.dims) if at not in gone) if gone else 1
    except _UnknownError:
        pass
    return _custom(source.elements, source.moved_bytes + left * source.element_bytes, _arithmetic(source))


def _scan(call: _Call) -> Work:
    """Read every element and write as many."""
    source = call.maybe(0) or call.tensor(1)  # `out=` of old traces stands first
    width = source.element_bytes if source.dtype else 8
    return _custom(source.elements, source.moved_bytes + source.elements * width, _arithmetic(source))


def _broadcast(several: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sizes of operands after broadcasting."""
    if not several:
        raise _UnknownError
    most = max(map(len, several))
    padded = [(1,) * (most - len(one)) + one for one in several]
    found = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise _UnknownError
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def _promoted(tensors: Sequence[_Tensor]) -> _Tensor:
    """Return an operand with the result's type: tensors with dimensions take precedence over those without."""
    among = [one for one in tensors if one.dims] or list(tensors)
    real = [one for one in among if one.dtype in _FLOATS]
    if {"fp16", "bf16"} <= {one.dtype for one in real}:
        raise _UnknownError
    return max(real or among, key=lambda one: one.element_bytes)


def _real(dtype: str) -> str:
    """Return a floating-point type.

    Raises:
        _UnknownError: The type holds integers.
    """
    if dtype not in _FLOATS:
        raise _UnknownError
    return dtype


def _arithmetic(tensor: _Tensor) -> str:
    """Return the type of elementwise arithmetic: fp64, or else fp32."""
    return "fp64" if tensor.dtype == "fp64" else "fp32"


_UNARY = [
    "abs",
    "neg",
    "relu",
    "gelu",
    "silu",
    "leaky_relu",
    "elu",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "mish",
    "softplus",
    "clamp",
    "clamp_min",
    "clamp_max",
    "square",
    "sign",
    "round",
    "floor",
    "ceil",
    "trunc",
    "nan_to_num",
    "threshold",
    "bitwise_not",
]
_UNARY_REAL = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sigmoid",
    "erf",
    "erfc",
    "atan",
    "logit",
]
_BINARY = [
    "add",
    "sub",
    "rsub",
    "mul",
    "pow",
    "maximum",
    "minimum",
    "remainder",
    "fmod",
    "sigmoid_backward",
    "tanh_backward",
    "gelu_backward",
    "silu_backward",
    "threshold_backward",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
]
_COMPARED = ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"]
_IN_PLACE = [*_UNARY, *_UNARY_REAL, "add", "sub", "mul", "div", "pow", "remainder", "maximum", "minimum"]

OPERATORS: Mapping[str, Callable[[_Call], Work]] = MappingProxyType(
    {
        "mm": _multiplied(2, 2),
        "addmm": _multiplied(2, 2, added=True),
        "_addmm_activation": _multiplied(2, 2, added=True),
        "bmm": _multiplied(3, 3),
        "baddbmm": _multiplied(3, 3, added=True),
        "matmul": _matmul,
        "mv": _multiplied(2, 1),
        "dot": _multiplied(1, 1),
        "linear": _linear,
        "_scaled_mm": _scaled_mm,
        "_scaled_dot_product_flash_attention": _attention("bhld", 4),
        "_scaled_dot_product_efficient_attention": _attention("bhld", 6),
        "_scaled_dot_product_cudnn_attention": _attention("bhld", 6),
        "_flash_attention_forward": _attention("blhd", 8, lengths_at=3),
        "_efficient_attention_forward": _attention("blhd", 9, lengths_at=4),
        "_scaled_dot_product_flash_attention_backward": _attention_backward("bhld"),
        "_scaled_dot_product_efficient_attention_backward": _attention_backward("bhld"),
        "_flash_attention_backward": _attention_backward("blhd"),
        "native_layer_norm": _layer_norm,
        "native_layer_norm_backward": _layer_norm_backward,
        "native_dropout": _dropout,
        "native_dropout_backward": _pointwise(2),
        "_fused_rms_norm": _rms_norm,
        "native_group_norm": _normalized,
        "native_batch_norm": _normalized,
        "cudnn_batch_norm": _normalized,
        "_softmax": _softmax,
        "_log_softmax": _softmax,
        "_softmax_backward_data": _pointwise(2, 3),
        "_log_softmax_backward_data": _pointwise(2, 3),
        "convolution": _convolution,
        "_convolution": _convolution,
        "cudnn_convolution": _cudnn_convolution,
        "convolution_backward": _convolution_backward,
        **{name: _pointwise(1) for name in _UNARY},
        **{name: _pointwise(1, result="real") for name in _UNARY_REAL},
        **{name: _pointwise(2) for name in _BINARY},
        "div": _pointwise(2, result="real"),
        **{name: _pointwise(2, result="bool") for name in _COMPARED},
        "logical_not": _pointwise(1, result="bool"),
        "isnan": _pointwise(1, result="bool"),
        "addcmul": _pointwise(3, 3),
        "addcdiv": _pointwise(3, 3),
        "lerp": _pointwise(3, 3),
        "where": _where,
        **{f"{name}_": _in_place(2) for name in _IN_PLACE},
        "addcmul_": _in_place(3, 3),
        "addcdiv_": _in_place(3, 3),
        "lerp_": _in_place(3, 3),
        "copy_": _copy,
        "fill_": _fill,
        "zero_": _fill,
        "cumsum": _scan,
        "cumprod": _scan,
        **dict.fromkeys(
            (
                "sum",
                "mean",
                "amax",
                "amin",
                "max",
                "min",
                "prod",
                "logsumexp",
                "std",
                "var",
                "norm",
                "linalg_vector_norm",
            ),
            _reduction,
        ),
    }
)
"""Operator without `aten::` -> what a call must compute and move."""


class OddOperandsError(Exception):
    """A call has operands that PyTorch does not write."""


def work_of_call(operator: str | None, operands: Operands | None) -> Work | None:
    """Return what one call must compute and move; None if operator or sizes do not tell.

    Raises:
        OddOperandsError: A trace may hold any operands, and a recipe cannot deal with these.
    """
    if operator is None or operands is None or not operator.startswith("aten::"):
        return None
    recipe = OPERATORS.get(operator.removeprefix("aten::"))
    if recipe is None:
        return None
    try:
        return recipe(_Call(operands))
    except _UnknownError:
        return None
    except Exception as error:
        raise OddOperandsError from error
