"""The napkin: what each operation must compute and move, as one table of formulas over its sizes.

FLOPs are those of the algorithm. Bytes are compulsory traffic to device memory: every operand read once, every result
written once, unless a row says otherwise. A composite operation is a sequence of simple ones that run one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

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
    naive_elements,
    prefill_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflens.model.predict.formulas import Part, Sizes

    Amount = Callable[[Sizes], float]
    Parts = Callable[[Sizes], Iterator[Part]]

Unit = Literal["matrix", "vector"]
"""Where the FLOPs run: on the tensor cores of the operands' type, or on the CUDA cores."""


@dataclass(frozen=True, slots=True)
class Size:
    """One size of an operation; `default` None means that it must be given."""

    name: str
    meaning: str
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
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
        (*_PRODUCT, _BATCH, _TILE),
        "a multiply-add for each m, n and k",
        f"{_ONCE}; with a tile, 2 m n k / tile operand elements, whole tiles at the edges",
        gemm_flop,
        gemm_elements,
    ),
    Operation(
        "batched-gemm",
        "many products of matrices of one shape",
        "matrix",
        (Size("batch", "how many products"), *_PRODUCT, _TILE),
        "a multiply-add for each product, m, n and k",
        f"{_ONCE}; with a tile, 2 m n k / tile operand elements, whole tiles at the edges",
        gemm_flop,
        gemm_elements,
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

OPERATIONS: Mapping[str, Operation] = MappingProxyType({operation.name: operation for operation in (*_TABLE, _CUSTOM)})
"""The table by name; adding a row adds the operation everywhere."""
