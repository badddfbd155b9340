"""The napkin: what each operation must compute and move, as one table of formulas over its sizes.

FLOPs are those of the algorithm. Bytes are compulsory traffic to device memory: every operand read once, every result
written once, unless a row says otherwise. A composite operation is a sequence of simple ones that run one by one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rooflens.errors import UnknownNameError
from rooflens.model.predict.communication import all_reduced, exchanged, gathered
from rooflens.model.predict.formulas import (
    INDEX_BYTES,
    LAYERNORM_FLOP,
    RMSNORM_FLOP,
    SOFTMAX_FLOP,
    attention_flop,
    block_parts,
    conv_elements,
    conv_flop,
    decode_elements,
    decode_parts,
    elementwise_elements,
    flash_elements,
    gemm_elements,
    gemm_flop,
    gemm_sent,
    grouped_elements,
    grouped_sent,
    moe_parts,
    naive_elements,
    prefill_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflens.model.predict.formulas import Part, Sizes

    Amount = Callable[[Sizes], float]
    Parts = Callable[[Sizes], Iterator[Part]]
    Group = Callable[[Sizes], int]
    Share = Callable[[float, int], float]

Unit = Literal["matrix", "vector"]
"""Where the FLOPs run: on the tensor cores of the operands' type, or on the CUDA cores."""


class Size(Struct, frozen=True):
    """One size of an operation; `default` None means that it must be given."""

    name: str
    meaning: str
    default: int | None = None


class Operation(Struct, frozen=True):
    """One row of the table.

    Attributes:
        unit: Where its FLOPs run.
        flop: FLOPs over the sizes.
        elements: Elements of the operands' type moved to and from device memory, over the sizes.
        flop_source: How the FLOPs are counted.
        bytes_source: What is moved.
        extra_bytes: Bytes moved that do not depend on the type, such as indices.
        parts: The simple operations of a composite one, in order; its own amounts are their sums.
        tokens: Tokens that one run produces or takes in, for operations of a whole model.
        group: GPUs that share it; all its amounts are those of one of them.
        sent: Elements of the operands' type that a GPU must send to others.
        sent_bytes: Bytes that a GPU must send to others, whatever the type.
        sent_source: What is sent; empty where it is always one GPU's.
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
    parts: Parts | None = None
    tokens: Amount | None = None
    group: Group = lambda _: 1
    sent: Amount = lambda _: 0.0
    sent_bytes: Amount = lambda _: 0.0
    sent_source: str = ""


_BATCH = Size("batch", "how many at once", 1)
_HEADS = (
    Size("heads", "query heads", 32),
    Size("kv_heads", "heads of keys and values, for grouped queries; 0: as many as query heads", 0),
)
_ATTENTION = (
    _BATCH,
    *_HEADS,
    Size("length", "tokens of the sequence"),
    Size("width", "elements of a head", 128),
)
_CAUSAL = Size("causal", "1: a token sees only those before it", 0)
_MODEL = (
    Size("hidden", "width of the model", 4096),
    Size("heads", "query heads", 32),
    Size("kv_heads", "heads of keys and values", 8),
    Size("ffn", "width of the feed-forward layer", 14336),
    Size("gated", "1: the feed-forward layer has a gate", 1),
    _BATCH,
    Size("tensor_parallel", "GPUs that split heads, feed-forward layer and vocabulary: two all-reduces a block", 1),
)
_WHOLE_MODEL = (
    *_MODEL,
    Size("layers", "decoder blocks", 32),
    Size("vocabulary", "size of the vocabulary", 128256),
)
"""Defaults are the sizes of Llama 3 8B (its published configuration): a decoder most readers know."""

_ROWS = (Size("rows", "rows, normalised one by one", 1), Size("width", "elements of a row"))
_PRODUCT = (Size("m", "rows of the result"), Size("n", "columns of the result"), Size("k", "length of the sums"))
_TILE = Size("tile", "side of a tile of results that shares its loads; 1: naive, 0: every operand is read once", 0)
_TENSOR_PARALLEL = Size("tensor_parallel", "GPUs that split k and add up their results by an all-reduce", 1)
_GPUS = Size("gpus", "GPUs that take part", 8)
_ALL_REDUCED = "2 (N - 1) / N of"
_EXCHANGED = "(N - 1) / N of"
_BY_BLOCK = f"{_ALL_REDUCED} the results of output projection and down projection"
_ONCE = "every operand read once, the result written once"

_TABLE = (
    Operation(
        "elementwise",
        "a function of each element, such as y = x + 1",
        "vector",
        (
            Size("n", "elements"),
            Size("reads", "arrays read", 1),
            Size("writes", "arrays written", 1),
            Size("flops", "FLOPs an element", 1),
        ),
        "`flops` for each element",
        "each array once",
        lambda s: s["flops"] * s["n"],
        elementwise_elements,
    ),
    Operation(
        "saxpy",
        "y = a x + y",
        "vector",
        (Size("n", "elements"),),
        "a multiplication and an addition an element",
        "x and y read, y written",
        lambda s: 2 * s["n"],
        lambda s: 3 * s["n"],
    ),
    Operation(
        "dot",
        "the sum of x times y",
        "vector",
        (Size("n", "elements"),),
        "n multiplications and n - 1 additions",
        "both vectors read, one number written",
        lambda s: 2 * s["n"] - 1,
        lambda s: 2 * s["n"] + 1,
    ),
    Operation(
        "gemv",
        "a matrix times a vector",
        "matrix",
        (Size("m", "rows of the matrix"), Size("k", "columns of the matrix")),
        "a multiply-add for each weight",
        "weights and vector read, result written",
        lambda s: 2 * s["m"] * s["k"],
        lambda s: s["m"] * s["k"] + s["k"] + s["m"],
    ),
    Operation(
        "gemm",
        "a matrix times a matrix",
        "matrix",
        (*_PRODUCT, _BATCH, _TILE, _TENSOR_PARALLEL),
        "a multiply-add for each m, n and k",
        f"{_ONCE}; with a tile, 2 m n k / tile operand elements, whole tiles at the edges",
        gemm_flop,
        gemm_elements,
        group=lambda s: s["tensor_parallel"],
        sent=gemm_sent,
        sent_source=f"{_ALL_REDUCED} the result",
    ),
    Operation(
        "batched-gemm",
        "many products of matrices of one shape",
        "matrix",
        (Size("batch", "how many products"), *_PRODUCT, _TILE, _TENSOR_PARALLEL),
        "a multiply-add for each product, m, n and k",
        f"{_ONCE}; with a tile, 2 m n k / tile operand elements, whole tiles at the edges",
        gemm_flop,
        gemm_elements,
        group=lambda s: s["tensor_parallel"],
        sent=gemm_sent,
        sent_source=f"{_ALL_REDUCED} the result",
    ),
    Operation(
        "grouped-gemm",
        "rows times the one of several matrices that each belongs to, as of experts",
        "matrix",
        (
            Size("m", "rows, of all matrices together"),
            *_PRODUCT[1:],
            Size("groups", "matrices of weights"),
            Size("dispatch", "GPUs that first send the rows to the GPU of their matrix by an all-to-all", 1),
            Size("combine", "GPUs that afterwards send the results back by an all-to-all", 1),
        ),
        "a multiply-add for each m, n and k",
        "rows and every matrix read once, the result written once",
        lambda s: 2 * s["m"] * s["n"] * s["k"],
        grouped_elements,
        group=lambda s: max(s["dispatch"], s["combine"]),
        sent=grouped_sent,
        sent_source=f"{_EXCHANGED} the rows before the product, and of its result",
    ),
    Operation(
        "layernorm",
        "rows centred, scaled, weighted and shifted",
        "vector",
        _ROWS,
        f"{LAYERNORM_FLOP} an element by convention",
        "rows, weight and bias read, rows written",
        lambda s: LAYERNORM_FLOP * s["rows"] * s["width"],
        lambda s: 2 * s["rows"] * s["width"] + 2 * s["width"],
    ),
    Operation(
        "rmsnorm",
        "rows scaled and weighted",
        "vector",
        _ROWS,
        f"{RMSNORM_FLOP} an element by convention",
        "rows and weight read, rows written",
        lambda s: RMSNORM_FLOP * s["rows"] * s["width"],
        lambda s: 2 * s["rows"] * s["width"] + s["width"],
    ),
    Operation(
        "softmax",
        "rows turned into probabilities",
        "vector",
        _ROWS,
        f"{SOFTMAX_FLOP} an element by convention",
        "rows read, rows written",
        lambda s: SOFTMAX_FLOP * s["rows"] * s["width"],
        lambda s: 2 * s["rows"] * s["width"],
    ),
    Operation(
        "attention-naive",
        "attention that writes its matrix of scores to memory",
        "matrix",
        (*_ATTENTION, _CAUSAL),
        f"two products of 2 x width a pair of tokens, and {SOFTMAX_FLOP} for its softmax",
        "query, key, value read, result written, the scores written once and read once",
        attention_flop,
        naive_elements,
    ),
    Operation(
        "attention-flash",
        "attention in one kernel that keeps its scores on chip",
        "matrix",
        (*_ATTENTION, _CAUSAL),
        f"two products of 2 x width a pair of tokens, and {SOFTMAX_FLOP} for its softmax",
        "query, key, value read, result written",
        attention_flop,
        flash_elements,
    ),
    Operation(
        "attention-decode",
        "attention of one new token over the cache",
        "matrix",
        _ATTENTION,
        "two products of 2 x width for each cached token and query head; softmax not counted",
        "cache and query read, result written",
        lambda s: 4 * s["batch"] * s["heads"] * s["length"] * s["width"],
        decode_elements,
    ),
    Operation(
        "conv2d",
        "a convolution of images",
        "matrix",
        (
            _BATCH,
            Size("in_channels", "channels of the images"),
            Size("out_channels", "channels of the result"),
            Size("height", "height of the images"),
            Size("image_width", "width of the images"),
            Size("kernel", "side of the kernel", 3),
            Size("stride", "step of the kernel", 1),
            Size("padding", "rows and columns of zeros around an image", 1),
        ),
        "a multiply-add for each result, input channel and kernel element",
        "images and weights read, result written",
        conv_flop,
        conv_elements,
    ),
    Operation(
        "embedding",
        "a row of a table for each token",
        "vector",
        (Size("tokens", "tokens looked up"), Size("width", "elements of a row", 4096)),
        "none: it copies",
        f"an index of {INDEX_BYTES} bytes and a row read, a row written, for each token",
        elements=lambda s: 2 * s["tokens"] * s["width"],
        extra_bytes=lambda s: INDEX_BYTES * s["tokens"],
    ),
    Operation(
        "transformer-block",
        "one decoder block over a sequence",
        "matrix",
        (*_MODEL, Size("length", "tokens of the sequence", 2048), Size("causal", "1: with a causal mask", 1)),
        "the sum of its parts",
        "every part reads its operands and writes its result",
        parts=block_parts,
        tokens=lambda s: s["batch"] * s["length"],
        group=lambda s: s["tensor_parallel"],
        sent_source=_BY_BLOCK,
    ),
    Operation(
        "moe",
        "a feed-forward layer of experts, for the tokens of one GPU",
        "matrix",
        (
            Size("tokens", "tokens of one GPU"),
            Size("hidden", "width of the model", 4096),
            Size("ffn", "width of an expert", 14336),
            Size("experts", "experts of the layer, on all GPUs together", 8),
            Size("top_k", "experts of a token", 2),
            Size("gated", "1: an expert has a gate", 1),
            Size("expert_parallel", "GPUs that split the experts, with an all-to-all before and after them", 1),
        ),
        "the sum of its parts; tokens go to experts evenly",
        "every part reads its operands and writes its result; weights of each expert once",
        parts=moe_parts,
        group=lambda s: s["expert_parallel"],
        sent_source=f"{_EXCHANGED} tokens x top_k rows to their experts, and of the results back",
    ),
    Operation(
        "prefill",
        "a decoder-only model takes in a prompt",
        "matrix",
        (*_WHOLE_MODEL, Size("length", "tokens of the prompt", 2048)),
        "the sum of its parts; logits of the last token only",
        "every part reads its operands and writes its result",
        parts=prefill_parts,
        tokens=lambda s: s["batch"] * s["length"],
        group=lambda s: s["tensor_parallel"],
        sent_source=_BY_BLOCK,
    ),
    Operation(
        "decode",
        "a decoder-only model produces one token for each sequence",
        "matrix",
        (*_WHOLE_MODEL, Size("length", "tokens in the cache", 2048)),
        "the sum of its parts",
        "every part reads its operands and writes its result; weights once for the whole batch",
        parts=decode_parts,
        tokens=lambda s: s["batch"],
        group=lambda s: s["tensor_parallel"],
        sent_source=_BY_BLOCK,
    ),
)


def _collective(  # noqa: PLR0913, PLR0917 - one column each
    name: str, summary: str, buffer: str, words: tuple[str, str], sent: Share, moved: Share, *, pair: bool = False
) -> Operation:
    """Make a row of what GPUs do with one another's data.

    Args:
        name: What it is called.
        summary: What it does.
        buffer: What the size `bytes` is.
        words: What goes to and from device memory, and what is sent.
        sent: Bytes that a GPU must send, over those bytes and the number of GPUs.
        moved: Bytes that a GPU must read and write, over the same.
        pair: Two GPUs take part, no more.
    """
    sizes = (Size("bytes", buffer),) if pair else (Size("bytes", buffer), _GPUS)

    def group(s: Sizes) -> int:
        return 2 if pair else s["gpus"]

    return Operation(
        name,
        summary,
        "vector",
        sizes,
        "none counted: one addition for each element received hides behind its link",
        words[0],
        extra_bytes=lambda s: moved(s["bytes"], group(s)),
        group=group,
        sent_bytes=lambda s: sent(s["bytes"], group(s)),
        sent_source=words[1],
    )


_COLLECTIVES = (
    _collective(
        "all-reduce",
        "GPUs add up their buffers, and each has the sums",
        "bytes of the buffer that each GPU has",
        ("buffer read, sums written", f"{_ALL_REDUCED} the buffer"),
        all_reduced,
        lambda size, _: 2 * size,
    ),
    _collective(
        "all-gather",
        "each GPU has what all have, one after the other",
        "bytes of the whole, gathered",
        ("own part read, the parts of the others written", f"{_EXCHANGED} the whole"),
        gathered,
        lambda size, _: size,
    ),
    _collective(
        "reduce-scatter",
        "GPUs add up their buffers, and each has a part of the sums",
        "bytes of the whole buffer that each GPU has",
        ("buffer read, own part of the sums written", f"{_EXCHANGED} the buffer"),
        gathered,
        lambda size, gpus: size + size / gpus,
    ),
    _collective(
        "all-to-all",
        "each GPU gives every other one a part of its buffer, as experts need it",
        "bytes of the buffer that each GPU has",
        ("what goes to others read, what comes from others written", f"{_EXCHANGED} the buffer"),
        exchanged,
        lambda size, gpus: 2 * exchanged(size, gpus),
    ),
    _collective(
        "broadcast",
        "each GPU has the buffer of one",
        "bytes of the buffer",
        ("buffer read by the GPU that has it, written by each other one", "the buffer"),
        lambda size, _: size,
        lambda size, _: size,
    ),
    _collective(
        "send",
        "one GPU gives another one its buffer",
        "bytes of the buffer",
        ("buffer read by one, written by the other", "the buffer"),
        lambda size, _: size,
        lambda size, _: size,
        pair=True,
    ),
)

_CUSTOM = Operation(
    "custom",
    "FLOPs and bytes counted by yourself",
    "matrix",
    (Size("flop", "FLOPs"), Size("bytes", "bytes to and from device memory")),
    "as given",
    "as given",
    lambda s: s["flop"],
    extra_bytes=lambda s: s["bytes"],
)

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {operation.name: operation for operation in (*_TABLE, *_COLLECTIVES, _CUSTOM)}
)
"""The table by name; adding a row adds the operation everywhere."""


def the_operation(name: str) -> Operation:
    """Find an operation by its name.

    Raises:
        UsageError: None is called so; the hint has the names that come close.
    """
    if name not in OPERATIONS:
        raise UnknownNameError("operation", name, OPERATIONS, "rooflens predict")
    return OPERATIONS[name]
