"""Recipes: from the operands of a call to an operation of `predict`, its sizes, and the tensors read and written.

Nothing is guessed: a call with too few sizes has no work. If a trace does not tell whether attention is causal, which
sizes a reduction keeps, which gradients are wanted or which experts got a token, the smaller amount counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from rooflens.model.program.call import FLOATS, RESULT_BYTES, CallOperands, Tensor, UnknownWorkError, Work

Recipe = Callable[[CallOperands], Work]

_PRODUCT_TYPES = frozenset({*FLOATS, "int8"})
_NARROW = ("fp8", "int8", "fp16", "bf16", "fp32", "fp64")
"""Types of products, narrow ones first."""


# --- elementwise functions, copies and reductions


def _elementwise(n: int, flops: int, dtype: str, read: Sequence[Tensor], written: Sequence[Tensor]) -> Work:
    sizes = {"n": n, "flops": flops, "reads": len(read), "writes": len(written)}
    return Work("elementwise", sizes, dtype, tuple(read), tuple(written)).checked()


def pointwise(operands: int, flops: int = 1, *, result: str = "") -> Recipe:
    """Make the recipe of an elementwise function of tensors that may be broadcast.

    Args:
        operands: How many first arguments may be tensors to read.
        flops: FLOPs per element.
        result: `bool` if it writes Booleans; `real` if integers become fp32.
    """

    def recipe(call: CallOperands) -> Work:
        call.only(operands)
        found = call.tensors(*range(operands))
        wide = _promoted(found)
        width = 1 if result == "bool" else 4 if result == "real" and not wide.dtype else wide.element_bytes
        written = wide.like(*_broadcast([one.dims for one in found]), element_bytes=width)
        return _elementwise(written.elements, flops, _arithmetic(wide), found, [written])

    return recipe


def in_place(operands: int, flops: int = 1) -> Recipe:
    """Make the recipe of a function that overwrites its first operand."""

    def recipe(call: CallOperands) -> Work:
        call.only(operands)
        first, *others = call.tensor(0), *call.tensors(*range(1, operands))
        if _broadcast([one.dims for one in (first, *others)]) != first.dims:
            raise UnknownWorkError
        return _elementwise(first.elements, flops, _arithmetic(first), [first, *others], [first])

    return recipe


def into(source: int, target: int, flops: int = 1, *also: int) -> Recipe:
    """Make the recipe of a function that reads one tensor and writes another one that its caller made.

    Args:
        source: The argument to read.
        target: The argument to write.
        flops: FLOPs per element read.
        also: More arguments that are written, such as scales.
    """

    def recipe(call: CallOperands) -> Work:
        read, written = call.tensor(source), call.tensor(target)
        return _elementwise(read.elements, flops, _arithmetic(read), [read], [written, *call.tensors(*also)])

    return recipe


def copy(call: CallOperands) -> Work:
    """Read a tensor, and write it into another one."""
    written, source = call.tensor(0), call.tensor(1)
    return _elementwise(written.elements, 0, "fp32", [source], [written])


def chosen(call: CallOperands) -> Work:
    """Choose elements by a condition: of two operands only one is read for each, at least the smaller one."""
    condition, *both = (call.tensor(at) for at in range(3))
    sizes = _broadcast([condition.dims, *(one.dims for one in both)])
    fewer = min(both, key=lambda one: one.moved_bytes)
    return _elementwise(prod(sizes), 0, "fp32", [condition, fewer], [_promoted(both).like(*sizes)])


def fill(call: CallOperands) -> Work:
    """Write a tensor."""
    written = call.tensor(0)
    return _elementwise(written.elements, 0, "fp32", [], [written])


def scan(call: CallOperands) -> Work:
    """Read every element and write as many."""
    source = call.maybe(0) or call.tensor(1)  # `out=` of old traces stands first
    written = source.like(source.elements, element_bytes=source.element_bytes if source.dtype else 8)
    return _elementwise(source.elements, 1, _arithmetic(source), [source], [written])


def dropout(call: CallOperands) -> Work:
    """Read every element; write it and its mask."""
    source = call.tensor(0)
    written = [source.like(source.elements), source.like(source.elements, element_bytes=1)]
    return _elementwise(source.elements, 1, _arithmetic(source), [source], written)


def reduction(call: CallOperands) -> Work:
    """Read every element once; write the result if the trace tells which dimensions are reduced."""
    source = call.tensor(0)
    if call.maybe(1) is not None:
        raise UnknownWorkError  # `max` and `min` of two tensors
    kept: tuple[int, ...] = ()
    try:
        gone = {at % len(source.dims) for at in call.whole(1)} if source.dims else set()
        kept = tuple(size for at, size in enumerate(source.dims) if at not in gone) if gone else ()
    except UnknownWorkError:
        pass
    result = source.like(*kept)
    sizes = {"n": source.elements, "left": result.elements}
    return Work("reduction", sizes, _arithmetic(source), (source,), (result,)).checked()


def looked_up(call: CallOperands) -> Work:
    """Read an index for each row, and write the row; rows that recur may be read once, so none counts as read."""
    table, indices = call.tensor(0), call.tensor(1)
    if len(table.dims) != 2 or not indices.elements:
        raise UnknownWorkError
    written = table.like(*indices.dims, table.dims[1])
    sizes = {"tokens": indices.elements, "width": table.dims[1]}
    return Work("embedding", sizes, "fp32", (indices,), (written,)).checked()


def quantized_rows(call: CallOperands) -> Work:
    """Write each row of a tensor in bytes, a multiple of four of them, and two numbers of fp32 behind them."""
    source = call.tensor(0)
    if not source.dims or not source.dtype:
        raise UnknownWorkError
    *rows, columns = source.dims
    written = source.like(*rows, -(-columns // 4) * 4 + 8, element_bytes=1)
    return _elementwise(source.elements, 1, _arithmetic(source), [source], [written])


def restored_rows(call: CallOperands) -> Work:
    """Read rows as `quantized_rows` writes them, and write their elements; in two bytes at least if it may choose."""
    source = call.tensor(0)
    if not source.dims or source.element_bytes != 1 or source.dims[-1] <= 8:
        raise UnknownWorkError
    *rows, columns = source.dims
    written = source.like(*rows, columns - 8, element_bytes=4 if call.amount < 3 else 2)
    return _elementwise(written.elements, 1, "fp32", [source], [written])


def converted(element_bytes: int) -> Recipe:
    """Make the recipe of a type conversion: as many elements written as read, of another size."""

    def recipe(call: CallOperands) -> Work:
        source = call.tensor(0)
        written = source.like(*source.dims, element_bytes=element_bytes)
        return _elementwise(source.elements, 1, "fp32", [source], [written])

    return recipe


def moved(call: CallOperands) -> Work:
    """Read a tensor, and write as many elements in another order."""
    source = call.tensor(0)
    return _elementwise(source.elements, 0, "fp32", [source], [source.like(source.elements)])


def accumulated(more: int) -> Recipe:
    """Make the recipe of sums of all elements so far, of which there are `more` than elements."""

    def recipe(call: CallOperands) -> Work:
        source = call.tensor(0)
        return _elementwise(source.elements, 1, "fp32", [source], [source.like(source.elements + more)])

    return recipe


def checked_indices(call: CallOperands) -> Work:
    """Read the indices of embeddings, and where those of each bag begin; only what is wrong is written."""
    indices, offsets = call.tensor(1), call.tensor(2)
    return _elementwise(indices.elements, 0, "fp32", [indices, offsets], [])


def pooled_embeddings(call: CallOperands) -> Work:
    """Add up the rows of each bag of several tables: 6 is where their columns begin, 11 and 12 indices and bags.

    Rows that recur may be read once, so none counts as read, as of `looked_up`. A bag of all tables is as wide as 7
    says; a trace without values tells that of a single table alone, from its elements and its rows, which are those of
    the optimizer's state, 20. Not all versions have an argument for the type of the result: one byte at least.
    """
    weights, columns, indices, offsets = (call.tensor(at) for at in (1, 6, 11, 12))
    tables, bags = columns.elements - 1, offsets.elements - 1
    if tables < 1 or bags < 1 or bags % tables:
        raise UnknownWorkError
    width = call.number(7)
    if width is None:
        rows = call.tensor(20).elements
        if tables > 1 or not rows or not weights.elements or weights.elements % rows:
            raise UnknownWorkError
        width = weights.elements // rows
    written = weights.like(bags // tables, width, element_bytes=1)
    sizes = {"tokens": bags // tables, "width": width}
    return Work("embedding", sizes, "fp32", (indices, offsets, *call.tensors(14)), (written,)).checked()


def gated(source: int = 1, target: int = 0) -> Recipe:
    """Make the recipe of an activation whose operand holds gate and value side by side: four FLOPs, by convention."""

    def recipe(call: CallOperands) -> Work:
        read, written = call.tensor(source), call.tensor(target)
        if read.elements != 2 * written.elements:
            raise UnknownWorkError
        return _elementwise(written.elements, 4, _arithmetic(read), [read], [written])

    return recipe


def rotary(read: tuple[int, int], written: tuple[int, int]) -> Recipe:
    """Make the recipe of rotary embedding of queries and keys: three FLOPs an element.

    Its table of angles is as long as the model's context, and only the rows of the tokens are read: they are not
    counted.
    """

    def recipe(call: CallOperands) -> Work:
        turned, results = call.tensors(*read), call.tensors(*written)
        return _elementwise(sum(one.elements for one in turned), 3, "fp32", turned, results)

    return recipe


def cached(call: CallOperands) -> Work:
    """Write new keys and values into a cache, in its type: key, value, caches, slots."""
    key, value, keys, values, slots = (call.tensor(at) for at in range(5))
    if not key.dims or not slots.dims or key.dims[0] != value.dims[0] or not key.dims[0]:
        raise UnknownWorkError
    tokens = min(key.dims[0], slots.dims[0])  # a padded batch has more rows than slots
    read = [one.like(tokens, *one.dims[1:]) for one in (key, value)]
    written = [
        one.like(*one.dims, element_bytes=into.element_bytes) for one, into in zip(read, (keys, values), strict=True)
    ]
    return _elementwise(read[0].elements + read[1].elements, 0, "fp32", [*read, slots], written)


def inductor(call: CallOperands) -> Work:
    """Read or write each tensor of a kernel of Inductor once: a pointwise one, or a reduction.

    The last numbers are the elements that it goes through (torch/_inductor/codegen/triton.py: `xnumel`, `r0_numel`); of
    a longer tensor no more is counted.
    """
    numbers = [one for at in range(call.amount) if (one := call.number(at)) is not None]
    tensors = call.tensors(*range(call.amount))
    most = prod(numbers)
    if not numbers or not tensors or most <= 0:
        raise UnknownWorkError
    moved = [one.like(min(one.elements, most)) for one in tensors]
    return _elementwise(most, 0, "fp32", moved, [])


# --- norms


def norm(operation: str, rows: int, weight: int | None, *, target: int | None = None) -> Recipe:
    """Make the recipe of a norm of rows.

    Args:
        operation: `layernorm`, `rmsnorm` or `softmax`.
        rows: The argument that is normalised.
        weight: That of its weights, which tell the width; None for the last dimension of the rows.
        target: The one that is written, if its caller made it.
    """

    def recipe(call: CallOperands) -> Work:
        source = call.tensor(rows)
        scale = None if weight is None else call.tensor(weight)
        width = scale.elements if scale else source.dims[-1] if source.dims else 0
        if source.dtype not in FLOATS or not width or not source.elements or source.elements % width:
            raise UnknownWorkError
        written = source.like(*source.dims) if target is None else call.tensor(target)
        bias = call.tensors(weight + 1) if operation == "layernorm" and weight is not None else ()
        read = (source, *([scale] if scale else ()), *bias)
        sizes = {"rows": source.elements // width, "width": width}
        return Work(operation, sizes, source.dtype, read, (written,)).checked()

    return recipe


def softmax(call: CallOperands) -> Work:
    """Turn rows into probabilities; a conversion at once is not known."""
    if call.value(2) not in {None, False}:
        raise UnknownWorkError
    return norm("softmax", 0, None)(call)


def added_norm(rows: int, residual: int, weight: int, target: int | None = None) -> Recipe:
    """Make the recipe of a residual sum and its norm: both are read, and both the sum and the norm written."""

    def recipe(call: CallOperands) -> Work:
        source, sums, scale = (call.tensor(at) for at in (rows, residual, weight))
        width = scale.elements
        if source.dtype not in FLOATS or not width or source.elements % width or sums.elements != source.elements:
            raise UnknownWorkError
        sizes = {"rows": source.elements // width, "width": width}
        written = source if target is None else call.tensor(target)
        return Work("rmsnorm", sizes, source.dtype, (source, sums, scale), (written, sums)).checked()

    return recipe


def layer_norm_backward(call: CallOperands) -> Work:
    """Read gradient and rows; write the gradient of the rows if the trace says that it is wanted."""
    return _norm_backward(call, "layernorm", (0, 1), 7)


def rms_norm_backward(call: CallOperands) -> Work:
    """Read gradient and rows, as for a layer norm."""
    return _norm_backward(call, "rmsnorm", (0, 1), 5)


def batch_norm_backward(call: CallOperands) -> Work:
    """Read gradient and rows, as for a layer norm; which gradients are wanted is the last argument."""
    return _norm_backward(call, "layernorm", (0, 1), 9)


def _norm_backward(call: CallOperands, operation: str, places: tuple[int, int], wanted_at: int) -> Work:
    gradient, rows = (call.tensor(at) for at in places)
    if gradient.dims != rows.dims or not rows.elements:
        raise UnknownWorkError
    wanted = call.value(wanted_at)
    is_wanted = isinstance(wanted, list) and wanted[:1] == [True]
    sizes = {"rows": rows.elements // rows.dims[-1], "width": rows.dims[-1]}
    return Work(operation, sizes, _arithmetic(rows), (gradient, rows), (rows,) if is_wanted else ()).checked()


def normalized(call: CallOperands) -> Work:
    """Normalize by statistics of channels or groups: each element read once and written once."""
    rows = call.tensor(0)
    return _elementwise(rows.elements, 4, _arithmetic(rows), [rows], [rows.like(rows.elements)])


def loss(call: CallOperands) -> Work:
    """Read logits and labels for their loss; a gradient in place of the logits is not known to be wanted."""
    logits, labels = call.tensor(0), call.tensor(1)
    if len(logits.dims) != 2 or not logits.elements:
        raise UnknownWorkError
    sizes = {"rows": logits.dims[0], "width": logits.dims[1]}
    return Work("cross-entropy-loss", sizes, "fp32", (logits, labels), ()).checked()


# --- products


def _product(  # noqa: PLR0913 - a product and its tensors
    sizes: tuple[int, int, int],
    operands: tuple[Tensor, Tensor],
    written: Tensor,
    also: Sequence[Tensor] = (),
    *,
    batch: int = 1,
    dtype: str | None = None,
    may_be_fp8: bool = False,
) -> Work:
    known = dtype or _product_type(*operands)
    of_gemm = dict(zip("mnk", sizes, strict=True)) | {"batch": batch}
    read = (*operands, *also)
    return Work("gemm", of_gemm, known, read, (written,), is_product=True, may_be_fp8=may_be_fp8).checked()


def _product_type(*operands: Tensor) -> str:
    """Return the type of a product: of several the narrowest, which is multiplied fastest."""
    types = {one.dtype for one in operands}
    if not types <= _PRODUCT_TYPES:
        raise UnknownWorkError
    return min(types, key=_NARROW.index)


def _multiplied(left: Tensor, right: Tensor, also: Sequence[Tensor] = (), result_bytes: int | None = None) -> Work:
    *batches, m, k = left.dims if len(left.dims) > 1 else (1, *left.dims)
    n = right.dims[-1] if len(right.dims) > 1 else 1
    inner = right.dims[-2] if len(right.dims) > 1 else right.dims[-1] if right.dims else 0
    if inner != k or not k:
        raise UnknownWorkError
    written = left.like(*batches, m, n, element_bytes=result_bytes)
    return _product((m, n, k), (left, right), written, also, batch=prod(batches))


def multiplied(left_rank: int, right_rank: int, *, added: bool = False) -> Recipe:
    """Make the recipe of a product; batches must have equal sizes.

    Args:
        left_rank: Dimensions of the left operand.
        right_rank: Those of the right one.
        added: Argument 0 is added to the product; it is not read if its factor is 0.
    """

    def recipe(call: CallOperands) -> Work:
        call.only(2 + added)
        left, right = call.tensor(int(added)), call.tensor(1 + added)
        if (len(left.dims), len(right.dims)) != (left_rank, right_rank) or left.dims[:-2] != right.dims[:-2]:
            raise UnknownWorkError
        return _multiplied(left, right, [call.tensor(0)] if added and call.value(3) != 0 else [])

    return recipe


def matmul(call: CallOperands) -> Work:
    """Multiply matrices or equal batches; a batch times one matrix is a single product of all its rows."""
    call.only(2)
    left, right = call.tensor(0), call.tensor(1)
    if not (len(right.dims) == 2 and len(left.dims) > 2) and (
        len(left.dims) < 2 or len(left.dims) != len(right.dims) or left.dims[:-2] != right.dims[:-2]
    ):
        raise UnknownWorkError
    return _multiplied(left, right)


def linear(call: CallOperands) -> Work:
    """Multiply rows by a matrix of weights, and add a bias."""
    call.only(3)
    return _projected(call.tensor(0), call.tensor(1), call.tensors(2))


def _projected(rows: Tensor, weight: Tensor, also: Sequence[Tensor] = (), *, may_be_fp8: bool = False) -> Work:
    if len(weight.dims) != 2 or not rows.dims or rows.dims[-1] != weight.dims[1]:
        raise UnknownWorkError
    m, (n, k) = prod(rows.dims[:-1]), weight.dims
    written = rows.like(*rows.dims[:-1], n)
    dtype = rows.dtype if may_be_fp8 and rows.dtype in FLOATS else None
    return _product((m, n, k), (rows, weight), written, also, dtype=dtype, may_be_fp8=may_be_fp8)


def scaled_mm(call: CallOperands) -> Work:
    """Multiply scaled matrices; a result of unknown type is as narrow as the operands."""
    left, right = call.tensor(0), call.tensor(1)
    if (len(left.dims), len(right.dims)) != (2, 2):
        raise UnknownWorkError
    return _multiplied(left, right, call.tensors(2, 3, 4), RESULT_BYTES.get(call.number(6) or 0))


def int_mm(call: CallOperands) -> Work:
    """Multiply matrices of eight bits into sums of 32."""
    left, right = call.tensor(0), call.tensor(1)
    if (len(left.dims), len(right.dims)) != (2, 2):
        raise UnknownWorkError
    return _multiplied(left, right, (), 4)


def scaled_into(left: int, right: int, target: int | None, *also: int, packed: bool = False) -> Recipe:
    """Make the recipe of a scaled product of two matrices.

    Args:
        left: The argument [m, k]; where packed, [m, k / 2], with two elements of four bits in a byte.
        right: That of [k, n]; where packed, of [n, k / 2].
        target: The result, if its caller made it; else its type is the argument after the scales.
        also: More tensors that are read: scales, a bias.
        packed: The operands are nvfp4.
    """

    def recipe(call: CallOperands) -> Work:
        rows, weights = call.tensor(left), call.tensor(right)
        if (len(rows.dims), len(weights.dims)) != (2, 2):
            raise UnknownWorkError
        m, k = rows.dims
        n = weights.dims[0] if packed else weights.dims[1]
        if not k or k != weights.dims[1 if packed else 0]:
            raise UnknownWorkError
        read = call.tensors(*also)
        if target is None:
            width = RESULT_BYTES.get(call.number(max(also) + 1 if not packed else 0) or 0)
            written = rows.like(m, n, element_bytes=width)
        else:
            written = call.tensor(target)
        dtype = "nvfp4" if packed else None
        return _product((m, n, 2 * k if packed else k), (rows, weights), written, read, dtype=dtype)

    return recipe


def grouped_mm(call: CallOperands) -> Work:
    """Multiply rows by the matrix of their group; of the matrices one at least is read."""
    rows, weights = call.tensor(0), call.tensor(1)
    if (len(rows.dims), len(weights.dims)) != (2, 3) or rows.dims[1] != weights.dims[1] or not weights.dims[0]:
        raise UnknownWorkError
    (m, k), (_, _, n) = rows.dims, weights.dims
    return _product((m, n, k), (rows, weights.like(k, n)), rows.like(m, n), call.tensors(2))


def grouped_into(left: int, right: int, target: int, *, packed: bool = False) -> Recipe:
    """Make the recipe of a product of rows and the matrices of their groups, of which one at least is read.

    Args:
        left: The rows; where packed, two elements of four bits in a byte.
        right: The matrices, [groups, k, n] or [groups, n, k].
        target: The result.
        packed: The operands are nvfp4.
    """

    def recipe(call: CallOperands) -> Work:
        rows, weights, written = (call.tensor(at) for at in (left, right, target))
        if (len(rows.dims), len(weights.dims), len(written.dims)) != (2, 3, 2) or rows.dims[0] != written.dims[0]:
            raise UnknownWorkError
        (m, k), n = rows.dims, written.dims[1]
        if sorted(weights.dims[1:]) != sorted((k, n)) or not weights.dims[0]:
            raise UnknownWorkError
        dtype = "nvfp4" if packed else None
        return _product((m, n, 2 * k if packed else k), (rows, weights.like(k, n)), written, dtype=dtype)

    return recipe


def quantized(weights: int, also: Sequence[int], sizes_at: int) -> Recipe:
    """Make the recipe of rows times packed weights, in the type of the rows; sizes m, n and k are arguments.

    Args:
        weights: The packed weights.
        also: Scales, zero points and the like, read once.
        sizes_at: The first of the sizes.
    """

    def recipe(call: CallOperands) -> Work:
        rows, packed = call.tensor(0), call.tensor(weights)
        m, n, k = (call.number(sizes_at + at) for at in range(3))
        if not m or not n or not k or rows.elements != m * k or rows.dtype not in FLOATS:
            raise UnknownWorkError
        return _product((m, n, k), (rows, packed), rows.like(m, n), call.tensors(*also), dtype=rows.dtype)

    return recipe


def transformer_engine_gemm(call: CallOperands) -> Work:
    """Multiply as `te_gemm_ts` does: A and whether it is transposed are 0 and 4, B is 5, the result 10."""
    a, b, d = call.tensor(0), call.tensor(5), call.tensor(10)
    if {len(one.dims) for one in (a, b, d)} != {2} or call.number(4) is None:
        raise UnknownWorkError
    m, n = d.dims
    k = a.dims[1] if call.number(4) else a.dims[0]
    if a.elements != n * k or b.elements != m * k:
        raise UnknownWorkError
    dtype = "fp8" if a.element_bytes == 1 and b.element_bytes == 1 else None
    return _product((m, n, k), (a, b), d, call.tensors(14), dtype=dtype)


def transformer_engine_linear(call: CallOperands) -> Work:
    """Multiply as `_Linear` does: weights, perhaps copies of them in eight bits, then rows."""
    weight = call.tensor(0)
    width = weight.dims[-1:]
    rows = [one for one in _typed_tensors(call, 1, 5) if len(one.dims) > 1 and one.dims[-1:] == width]
    if not rows:
        raise UnknownWorkError
    return _projected(rows[-1], weight, may_be_fp8=True)


def transformer_engine_normed(call: CallOperands) -> Work:
    """Normalize rows and multiply them, as `_LayerNormLinear` does: rows, norm, then weights."""
    rows = call.tensor(0)
    first = next(
        (one for one in _typed_tensors(call, 2, 8) if len(one.dims) == 2 and one.dims[1] == rows.dims[-1]), None
    )
    if first is None:
        raise UnknownWorkError
    return _projected(rows, first, call.tensors(1), may_be_fp8=True)


def transformer_engine_mlp(call: CallOperands) -> Work:
    """Normalize rows and multiply them twice, as `_LayerNormMLP` does: rows, norm, weights of both, biases between.

    The first product may be twice as wide, as it holds gates beside values; what lies between both is not counted.
    """
    rows = call.tensor(0)
    hidden = rows.dims[-1] if rows.dims else 0
    weights = [one for one in _typed_tensors(call, 2, 11) if len(one.dims) == 2]
    first = next((one for one in weights if one.dims[1] == hidden), None)
    if first is None or not hidden:
        raise UnknownWorkError
    wide = first.dims[0]
    later = weights[weights.index(first) + 1 :]
    second = next((one for one in later if one.dims[0] == hidden and wide in {one.dims[1], 2 * one.dims[1]}), None)
    if second is None:
        raise UnknownWorkError
    m, n = prod(rows.dims[:-1]), second.dims[1]
    dtype = rows.dtype if rows.dtype in FLOATS else None
    return _product((m, n, hidden), (rows, first), rows, [second], batch=wide // n + 1, dtype=dtype, may_be_fp8=True)


def _typed_tensors(call: CallOperands, first: int, end: int) -> list[Tensor]:
    """Return those of some arguments that are tensors of a known type."""
    found: list[Tensor] = []
    for at in range(first, end):
        try:
            found += call.tensors(at)
        except UnknownWorkError:
            continue
    return found


def experts(call: CallOperands) -> Work:
    """Multiply tokens by the matrices of their experts: tokens, first and second weights, factors, experts' numbers.

    The least number of experts got a token: as many as one token has.
    """
    tokens, first, second, _, chosen_experts = (call.tensor(at) for at in range(5))
    if (len(tokens.dims), len(first.dims), len(second.dims), len(chosen_experts.dims)) != (2, 3, 3, 2):
        raise UnknownWorkError
    (rows, hidden), (amount, wide, inner), ffn = tokens.dims, first.dims, second.dims[2]
    top_k = chosen_experts.dims[1]
    if inner != hidden or second.dims[:2] != (amount, hidden) or wide not in {ffn, 2 * ffn} or not 0 < top_k <= amount:
        raise UnknownWorkError
    sizes = {
        "tokens": rows,
        "hidden": hidden,
        "ffn": ffn,
        "top_k": top_k,
        "touched": top_k,
        "gated": int(wide != ffn),
    }
    read = (tokens, first.like(top_k, wide, hidden), second.like(top_k, hidden, ffn), chosen_experts)
    dtype = _product_type(tokens, first)
    return Work("experts", sizes, dtype, read, (tokens,), is_product=True).checked()


def convolution(call: CallOperands) -> Work:
    """Convolve images by the arguments of `aten::convolution`: stride, padding, dilation, ..., groups."""
    return _convolved(call, stride_at=3, padding_at=4, dilation_at=5, groups_at=8, transposed_at=6)


def cudnn_convolution(call: CallOperands) -> Work:
    """Convolve images by the arguments of `aten::cudnn_convolution`: padding, stride, dilation, groups."""
    return _convolved(call, stride_at=3, padding_at=2, dilation_at=4, groups_at=5, has_bias=False)


def _convolved(  # noqa: PLR0913 - where the arguments stand
    call: CallOperands,
    *,
    stride_at: int,
    padding_at: int,
    dilation_at: int,
    groups_at: int,
    transposed_at: int | None = None,
    has_bias: bool = True,
) -> Work:
    """Multiply as an implicit product: results of a group, its channels, and the weights of a result.

    Depthwise convolutions multiply no matrices, but the tensor peak is a bound for them too.
    """
    images, weights = call.tensor(0), call.tensor(1)
    if len(images.dims) < 3 or len(images.dims) != len(weights.dims) or images.dtype not in FLOATS:
        raise UnknownWorkError
    if transposed_at is not None and call.value(transposed_at) is not False:
        raise UnknownWorkError
    several = [call.whole(at) for at in (stride_at, padding_at, dilation_at)]
    space = len(images.dims) - 2
    stride, padding, dilation = (one * space if len(one) == 1 else one for one in several)
    groups = call.value(groups_at)
    if any(len(one) != space for one in (stride, padding, dilation)) or not isinstance(groups, int) or groups < 1:
        raise UnknownWorkError
    if weights.dims[1] * groups != images.dims[1] or min(stride) < 1 or weights.dims[0] % groups:
        raise UnknownWorkError
    out = [
        (size + 2 * pad - dilated * (side - 1) - 1) // step + 1
        for size, pad, dilated, side, step in zip(
            images.dims[2:], padding, dilation, weights.dims[2:], stride, strict=True
        )
    ]
    if min(out) < 1:
        raise UnknownWorkError
    written = images.like(images.dims[0], weights.dims[0], *out)
    bias = call.tensors(2) if has_bias else ()
    m, n, k = images.dims[0] * prod(out), weights.dims[0] // groups, prod(weights.dims[1:])
    return _product((m, n, k), (images, weights), written, bias, batch=groups)


def convolution_backward(call: CallOperands) -> Work:
    """Multiply once per wanted gradient; once if the trace does not say which are wanted."""
    gradient, images, weights = (call.tensor(at) for at in range(3))
    if call.value(7) is not False or gradient.dtype not in FLOATS or len(images.dims) < 3:
        raise UnknownWorkError
    if len(images.dims) != len(weights.dims) or len(gradient.dims) != len(images.dims):
        raise UnknownWorkError
    if gradient.dims[0] != images.dims[0] or gradient.dims[1] != weights.dims[0]:
        raise UnknownWorkError
    wanted = call.value(10)
    of_images, of_weights = wanted[:2] if isinstance(wanted, list) and len(wanted) == 3 else (True, False)
    products = bool(of_images) + bool(of_weights)
    if not products:
        raise UnknownWorkError
    # The gradient of the images is made from the weights, that of the weights from the images.
    read = (gradient, *([weights] if of_images else ()), *([images] if of_weights else ()))
    written = (*([images] if of_images else ()), *([weights] if of_weights else ()))
    m, n, k = gradient.elements // gradient.dims[1], gradient.dims[1], prod(weights.dims[1:])
    sizes = {"m": m, "n": n, "k": k, "batch": products}
    return Work("gemm", sizes, gradient.dtype, read, written, is_product=True).checked()


# --- attention


def attention(
    layout: str,
    causal_at: int,
    *,
    lengths_at: int | None = None,
    window_at: int | None = None,
    is_end_aligned: bool = False,
) -> Recipe:
    """Make the recipe of attention over sequences of one length.

    Args:
        layout: `bhld` or `blhd` for the order of batch, heads, length and width.
        causal_at: The argument that says whether it is causal; if the trace lacks it, it may be.
        lengths_at: The bounds of sequences of several lengths, which are packed one after another.
        window_at: The tokens to the left that are seen; negative: all.
        is_end_aligned: The last query sees the last key, as in FlashAttention since 2.1; else the first sees the first.
    """

    def recipe(call: CallOperands) -> Work:
        if lengths_at is not None and call.maybe(lengths_at) is not None:
            return _packed(call, lengths_at, causal_at, window_at)
        query, key, value = (call.tensor(at) for at in range(3))
        if any(len(one.dims) != 4 for one in (query, key, value)):
            raise UnknownWorkError
        places = [layout.index(letter) for letter in "bhld"]
        batch, heads, length, width = (query.dims[at] for at in places)
        _, kv_heads, keys, _ = (key.dims[at] for at in places)
        wide = value.dims[places[3]]
        is_causal, window = _is_causal(call, causal_at), _window(call, window_at)
        fewer = min(length, keys)
        if not is_causal and window is None:
            pairs = length * keys
        elif is_end_aligned and keys >= length and window is None:
            pairs = length * keys - length * (length - 1) // 2
        else:
            pairs = _within(fewer, is_causal=True, window=window)
        heads_of = heads, kv_heads, width, wide
        written = query.like(batch, heads, length, wide)
        amounts = batch * pairs, batch * length, batch * keys
        return _attended(heads_of, amounts, query.dtype, (query, key, value), (written,))

    return recipe


def attention_packed(
    lengths_at: int,
    causal_at: int,
    *,
    table_at: int | None = None,
    window_at: int | None = None,
    longest_at: int | None = None,
) -> Recipe:
    """Make the recipe of attention over sequences of several lengths, packed, or cached in pages.

    Args:
        lengths_at: The bounds of the sequences.
        causal_at: As in `attention`.
        window_at: As in `attention`.
        table_at: The pages of each sequence, where keys are cached.
        longest_at: The most tokens of a sequence of keys.
    """

    def recipe(call: CallOperands) -> Work:
        if table_at is not None and call.maybe(table_at) is not None:
            window = _window(call, window_at), call.number(longest_at) if longest_at is not None else None
            return _from_cache(call, call.tensor(0), call.tensor(1).dims[-2:], call.tensor(1).element_bytes, window)
        return _packed(call, lengths_at, causal_at, window_at)

    return recipe


def attention_of_server(call: CallOperands) -> Work:
    """Attend to the cache of a server, whose lengths only the annotation of the step tells: query, key, value.

    A cache whose type the trace does not tell has elements of one byte, the narrowest.
    """
    query, key = call.tensor(0), call.tensor(1)
    return _from_cache(call, query, key.dims[-2:], call.cache_bytes or 1)


def flash_attention_3(call: CallOperands) -> Work:
    """Attend as `fwd` of FlashAttention 3 does.

    Bounds are 7 and 8, the most keys of a sequence 13, the table of pages 14, causal 24, a window 25.
    """
    if call.maybe(14) is not None:
        window = _window(call, 25), call.number(13)
        return _from_cache(call, call.tensor(0), call.tensor(1).dims[-2:], call.tensor(1).element_bytes, window)
    if call.maybe(7) is not None:
        return _packed(call, 7, 24, 25)
    return attention("blhd", 24, window_at=25, is_end_aligned=True)(call)


def _from_cache(
    call: CallOperands,
    query: Tensor,
    of_keys: tuple[int, ...],
    cache_bytes: int,
    windowed: tuple[int | None, int | None] = (None, None),
) -> Work:
    """Attend to cached tokens; the step around the call tells how many.

    `windowed` has the tokens to the left that are seen, None for all, and the most keys of a sequence, None if unknown.
    The step tells sums without a window. With one, of the s tokens that a query would see, at most `longest`, at least
    1 + (s - 1) (seen - 1) / (longest - 1) are left, where `seen` is the most within the window: the least of two
    numbers is concave. So it is with the keys of a sequence.

    Raises:
        UnknownWorkError: It does not, or there is a window and nobody says how long sequences are.
    """
    sums, (window, longest) = call.sums, windowed
    if sums is None or len(query.dims) != 3 or len(of_keys) != 2:
        raise UnknownWorkError
    (tokens, heads, width), (kv_heads, wide) = query.dims, of_keys
    queries = min(tokens, sums.queries)  # a batch may be padded
    keys, pairs = sums.queries if sums.keys is None else sums.keys, sums.pairs
    if window is not None:
        if longest is None or longest < 1:
            raise UnknownWorkError
        seen = min(window + 1, longest)
        if seen < longest:
            pairs = queries + max(0, pairs - queries) * (seen - 1) // (longest - 1)
            keys = max(1, keys * seen // longest)
    asked = query.like(queries, heads, width)
    extra = keys * kv_heads * 2 * wide * cache_bytes
    heads_of = heads, kv_heads, width, wide
    return _attended(heads_of, (pairs, queries, keys), query.dtype, (asked,), (asked,), extra_bytes=extra)


def paged_attention(call: CallOperands) -> Work:
    """Attend to cached tokens as `paged_attention_v1` and `_v2` do: as many as the annotation of the step says."""
    places = (0, 1, 2) if len(call.tensor(1).dims) == 3 and len(call.tensor(2).dims) > 3 else (0, 4, 5)
    written, query, keys = (call.tensor(at) for at in places)
    if written.dims != query.dims or len(keys.dims) < 4:
        raise UnknownWorkError
    return _from_cache(call, query, (keys.dims[1], query.dims[2]), keys.element_bytes)


def _packed(call: CallOperands, lengths_at: int, causal_at: int, window_at: int | None) -> Work:
    """Attend within packed sequences, whose lengths a trace does not hold: the fewest pairs count.

    If queries and keys are as many, the squares of the lengths add up to at least tokens ^ 2 / sequences (Cauchy and
    Schwarz); else each query sees at least one key.
    """
    query, key, value = (call.tensor(at) for at in range(3))
    if any(len(one.dims) != 3 for one in (query, key, value)):
        raise UnknownWorkError
    sequences = call.tensor(lengths_at).elements - 1
    (tokens, heads, width), (keys, kv_heads, _), wide = query.dims, key.dims, value.dims[2]
    if sequences < 1:
        raise UnknownWorkError
    pairs = tokens
    if tokens == keys and _window(call, window_at) is None:
        pairs = sequences * _within(tokens // sequences, is_causal=_is_causal(call, causal_at))
    heads_of = heads, kv_heads, width, wide
    written = query.like(tokens, heads, wide)
    return _attended(heads_of, (max(pairs, tokens), tokens, keys), query.dtype, (query, key, value), (written,))


def attention_backward(
    layout: str, causal_at: int, *, lengths_at: int | None = None, window_at: int | None = None, result_at: int = 4
) -> Recipe:
    """Make the recipe of the gradients of attention: gradient, query, key, value, ..., result and sums of its rows."""

    def recipe(call: CallOperands) -> Work:
        gradient, query, key, value = (call.tensor(at) for at in range(4))
        ranks = {len(one.dims) for one in (query, key, value)}
        read = (gradient, query, key, value, *call.tensors(result_at, result_at + 1))
        if ranks == {3} and lengths_at is not None:
            sequences = call.tensor(lengths_at).elements - 1
            (tokens, heads, width), (keys, kv_heads, _), wide = query.dims, key.dims, value.dims[2]
            if sequences < 1 or tokens != keys:
                raise UnknownWorkError
            batch, length = sequences, tokens // sequences
        elif ranks == {4}:
            batch, heads, length, width = (query.dims[layout.index(letter)] for letter in "bhld")
            kv_heads, keys = (key.dims[layout.index(letter)] for letter in "hl")
            wide, tokens = value.dims[3], batch * length
            if length != keys:
                raise UnknownWorkError
        else:
            raise UnknownWorkError
        window = _window(call, window_at)
        if window is not None and ranks == {3}:
            raise UnknownWorkError
        pairs = batch * _within(length, is_causal=_is_causal(call, causal_at), window=window)
        heads_of, amounts = (heads, kv_heads, width, wide), (pairs, tokens, tokens)
        return _attended(heads_of, amounts, query.dtype, read, (query, key, value), operation=_BACKWARD)

    return recipe


_BACKWARD = "attention-varlen-backward"


def _attended(  # noqa: PLR0913 - sizes and tensors of attention
    heads_of: tuple[int, int, int, int],
    amounts: tuple[int, int, int],
    dtype: str,
    read: tuple[Tensor, ...],
    written: tuple[Tensor, ...],
    *,
    extra_bytes: float = 0,
    operation: str = "attention-varlen",
) -> Work:
    heads, kv_heads, width, wide = heads_of
    pairs, queries, keys = amounts
    if dtype not in FLOATS or not kv_heads or heads % kv_heads or not width or not pairs:
        raise UnknownWorkError
    sizes = {"pairs": pairs, "queries": queries, "keys": keys, "heads": heads, "kv_heads": kv_heads}
    sizes |= {"width": width, "value_width": wide}
    return Work(operation, sizes, dtype, read, written, is_product=True, extra_bytes=extra_bytes).checked()


def _within(length: int, *, is_causal: bool, window: int | None = None) -> int:
    """Count the pairs of a sequence with itself; a window counts those to the left alone."""
    if window is not None:
        seen = min(window + 1, length)
        return seen * (seen + 1) // 2 + (length - seen) * seen
    return length * (length + 1) // 2 if is_causal else length * length


def _is_causal(call: CallOperands, at: int) -> bool:
    given = call.value(at)
    return given is None or bool(given)


def _window(call: CallOperands, at: int | None) -> int | None:
    """Return how many tokens to the left a query sees; None for all."""
    given = None if at is None else call.number(at)
    return given if given is not None and given >= 0 else None


# --- types and sizes


def _broadcast(several: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    if not several:
        raise UnknownWorkError
    most = max(map(len, several))
    padded = [(1,) * (most - len(one)) + one for one in several]
    found = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise UnknownWorkError
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def _promoted(tensors: Sequence[Tensor]) -> Tensor:
    """Return an operand with the result's type: tensors with dimensions take precedence over those without."""
    among = [one for one in tensors if one.dims] or list(tensors)
    real = [one for one in among if one.dtype in FLOATS]
    if not among or {"fp16", "bf16"} <= {one.dtype for one in real}:
        raise UnknownWorkError
    return max(real or among, key=lambda one: one.element_bytes)


def _arithmetic(tensor: Tensor) -> str:
    """Return the type of elementwise arithmetic: fp64, or else fp32."""
    return "fp64" if tensor.dtype == "fp64" else "fp32"
