"""The napkin: what each operation must compute and move, as one table of formulas over its sizes.

FLOPs are those of the algorithm. Bytes are compulsory traffic to device memory: every operand read once, every result
written once, unless a row says otherwise. A composite operation is a sequence of simple ones that run one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Sizes = Mapping[str, int]
    Amount = Callable[[Sizes], float]
    Parts = Callable[[Sizes], Iterator["Part"]]

Unit = Literal["matrix", "vector"]
"""Where the FLOPs run: on the tensor cores of the operands' type, or on the CUDA cores."""

SOFTMAX_FLOP = 5
LAYERNORM_FLOP = 7
RMSNORM_FLOP = 4
"""FLOPs an element by convention; exponentials, comparisons and divisions count one each."""

INDEX_BYTES = 8


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


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a composite operation, `count` times over."""

    operation: str
    sizes: Sizes
    label: str
    count: int = 1


def _elementwise(s: Sizes) -> float:
    return (s["reads"] + s["writes"]) * s["n"]


def _gemm_flop(s: Sizes) -> float:
    return 2 * s["batch"] * s["m"] * s["n"] * s["k"]


def _gemm_elements(s: Sizes) -> float:
    """Count what a product moves: operands once, or once for each tile of `tile` x `tile` results."""
    m, n, k, tile = s["m"], s["n"], s["k"], s["tile"]
    operands = 2 * m * n * k / tile if tile else m * k + k * n
    return s["batch"] * (operands + m * n)


def _pairs(s: Sizes) -> float:
    """Count the pairs of query and key that attention looks at in one head: a causal mask leaves the lower triangle."""
    length = s["length"]
    return length * (length + 1) / 2 if s["causal"] else length**2


def _attention_flop(s: Sizes) -> float:
    return s["batch"] * s["heads"] * _pairs(s) * (4 * s["width"] + SOFTMAX_FLOP)


def _flash_elements(s: Sizes) -> float:
    """Count query and result of every head, and keys and values of every key head."""
    return s["batch"] * s["length"] * s["width"] * 2 * (s["heads"] + _kv_heads(s))


def _naive_elements(s: Sizes) -> float:
    """Add the matrix of scores, written once and read once; a mask is applied to it and saves no traffic."""
    return _flash_elements(s) + 2 * s["batch"] * s["heads"] * s["length"] ** 2


def _decode_elements(s: Sizes) -> float:
    cache = 2 * _kv_heads(s) * s["length"] * s["width"]
    return s["batch"] * (cache + 2 * s["heads"] * s["width"])


def _kv_heads(s: Sizes) -> int:
    return s["kv_heads"] or s["heads"]


def _conv_output(s: Sizes) -> tuple[int, int]:
    high = (s["height"] + 2 * s["padding"] - s["kernel"]) // s["stride"] + 1
    wide = (s["image_width"] + 2 * s["padding"] - s["kernel"]) // s["stride"] + 1
    return max(high, 0), max(wide, 0)


def _conv_flop(s: Sizes) -> float:
    high, wide = _conv_output(s)
    return 2 * s["batch"] * s["out_channels"] * high * wide * s["in_channels"] * s["kernel"] ** 2


def _conv_elements(s: Sizes) -> float:
    high, wide = _conv_output(s)
    image = s["batch"] * s["in_channels"] * s["height"] * s["image_width"]
    weights = s["out_channels"] * s["in_channels"] * s["kernel"] ** 2
    return image + weights + s["batch"] * s["out_channels"] * high * wide


def _product(m: int, n: int, k: int, label: str, count: int = 1) -> Part:
    return Part("gemm", {"m": m, "n": n, "k": k, "batch": 1, "tile": 0}, label, count)


def _sum_of(n: int, label: str, count: int = 1) -> Part:
    return Part("elementwise", {"n": n, "reads": 2, "writes": 1, "flops": 1}, label, count)


def _block(s: Sizes, rows: int, attention: Part, layers: int) -> Iterator[Part]:
    """List the steps of decoder blocks over `rows` tokens; every step reads its operands and writes its result."""
    hidden, ffn, width = s["hidden"], s["ffn"], s["hidden"] // s["heads"]
    qkv = hidden + 2 * _kv_heads(s) * width
    norm = Part("rmsnorm", {"rows": rows, "width": hidden}, "norms", 2 * layers)
    yield norm
    yield _product(rows, qkv, hidden, "query, key and value", layers)
    yield attention
    yield _product(rows, hidden, hidden, "output projection", layers)
    yield _sum_of(rows * hidden, "residual sums", 2 * layers)
    yield _product(rows, ffn * (2 if s["gated"] else 1), hidden, "up projection", layers)
    # A gated activation multiplies two halves: four FLOPs an element by convention, as for a plain one.
    reads = 2 if s["gated"] else 1
    yield Part("elementwise", {"n": rows * ffn, "reads": reads, "writes": 1, "flops": 4}, "activation", layers)
    yield _product(rows, hidden, ffn, "down projection", layers)


def _whole_sequence(s: Sizes, layers: int) -> Part:
    sizes = {
        "batch": s["batch"],
        "heads": s["heads"],
        "kv_heads": s["kv_heads"],
        "length": s["length"],
        "width": s["hidden"] // s["heads"],
        "causal": s["causal"],
    }
    return Part("attention-flash", sizes, "attention", layers)


def _block_parts(s: Sizes) -> Iterator[Part]:
    return _block(s, s["batch"] * s["length"], _whole_sequence(s, 1), 1)


def _prefill_parts(s: Sizes) -> Iterator[Part]:
    rows = s["batch"] * s["length"]
    yield Part("embedding", {"tokens": rows, "width": s["hidden"]}, "embedding")
    yield from _block({**s, "causal": 1}, rows, _whole_sequence({**s, "causal": 1}, s["layers"]), s["layers"])
    yield Part("rmsnorm", {"rows": rows, "width": s["hidden"]}, "last norm")
    yield _product(s["batch"], s["vocabulary"], s["hidden"], "logits of the last token")


def _decode_parts(s: Sizes) -> Iterator[Part]:
    rows = s["batch"]
    cached = {name: s[name] for name in ("batch", "heads", "kv_heads", "length")}
    attention = Part(
        "attention-decode", {**cached, "width": s["hidden"] // s["heads"]}, "attention over the cache", s["layers"]
    )
    yield Part("embedding", {"tokens": rows, "width": s["hidden"]}, "embedding")
    yield from _block(s, rows, attention, s["layers"])
    yield Part("rmsnorm", {"rows": rows, "width": s["hidden"]}, "last norm")
    yield _product(rows, s["vocabulary"], s["hidden"], "logits")


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
        _elementwise,
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
        f"{_ONCE}; with a tile, 2 m n k / tile operand elements",
        _gemm_flop,
        _gemm_elements,
    ),
    Operation(
        "batched-gemm",
        "many products of matrices of one shape",
        "matrix",
        (Size("batch", "how many products"), *_PRODUCT, _TILE),
        "a multiply-add for each product, m, n and k",
        f"{_ONCE}; with a tile, 2 m n k / tile operand elements",
        _gemm_flop,
        _gemm_elements,
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
        _attention_flop,
        _naive_elements,
    ),
    Operation(
        "attention-flash",
        "attention in one kernel that keeps its scores on chip",
        "matrix",
        (*_ATTENTION, _CAUSAL),
        f"two products of 2 x width a pair of tokens, and {SOFTMAX_FLOP} for its softmax",
        "query, key, value read, result written",
        _attention_flop,
        _flash_elements,
    ),
    Operation(
        "attention-decode",
        "attention of one new token over the cache",
        "matrix",
        _ATTENTION,
        "two products of 2 x width for each cached token and query head; softmax not counted",
        "cache and query read, result written",
        lambda s: 4 * s["batch"] * s["heads"] * s["length"] * s["width"],
        _decode_elements,
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
        _conv_flop,
        _conv_elements,
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
        parts=_block_parts,
        tokens=lambda s: s["batch"] * s["length"],
    ),
    Operation(
        "prefill",
        "a decoder-only model takes in a prompt",
        "matrix",
        (*_WHOLE_MODEL, Size("length", "tokens of the prompt", 2048)),
        "the sum of its parts; logits of the last token only",
        "every part reads its operands and writes its result",
        parts=_prefill_parts,
        tokens=lambda s: s["batch"] * s["length"],
    ),
    Operation(
        "decode",
        "a decoder-only model produces one token for each sequence",
        "matrix",
        (*_WHOLE_MODEL, Size("length", "tokens in the cache", 2048)),
        "the sum of its parts",
        "every part reads its operands and writes its result; weights once for the whole batch",
        parts=_decode_parts,
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
