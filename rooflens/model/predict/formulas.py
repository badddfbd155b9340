"""Formulas of the napkin: FLOPs, elements moved and steps of each operation, over its sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Sizes: TypeAlias = Mapping[str, int]

SOFTMAX_FLOP = 5
LAYERNORM_FLOP = 7
RMSNORM_FLOP = 4
"""FLOPs an element by convention; exponentials, comparisons and divisions count one each."""

INDEX_BYTES = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a composite operation, `count` times over."""

    operation: str
    sizes: Sizes
    label: str
    count: int = 1


def elementwise_elements(s: Sizes) -> float:
    """Count every array that is read or written."""
    return (s["reads"] + s["writes"]) * s["n"]


def gemm_flop(s: Sizes) -> float:
    """Count a multiply-add for each m, n and k."""
    return 2 * s["batch"] * s["m"] * s["n"] * s["k"]


def gemm_elements(s: Sizes) -> float:
    """Count what a product moves: operands once, or once for each row or column of tiles of the result."""
    m, n, k, tile = s["m"], s["n"], s["k"], s["tile"]
    tiles_down, tiles_across = (-(-m // tile), -(-n // tile)) if tile else (1, 1)
    return s["batch"] * (m * k * tiles_across + k * n * tiles_down + m * n)


def _pairs(s: Sizes) -> float:
    """Count the pairs of query and key that attention looks at in one head: a causal mask leaves the lower triangle."""
    length = s["length"]
    return length * (length + 1) / 2 if s["causal"] else length**2


def attention_flop(s: Sizes) -> float:
    """Count both products and the softmax of every head."""
    return s["batch"] * s["heads"] * _pairs(s) * (4 * s["width"] + SOFTMAX_FLOP)


def flash_elements(s: Sizes) -> float:
    """Count query and result of every head, and keys and values of every key head."""
    return s["batch"] * s["length"] * s["width"] * 2 * (s["heads"] + _kv_heads(s))


def naive_elements(s: Sizes) -> float:
    """Add the matrix of scores, written once and read once; a mask is applied to it and saves no traffic."""
    return flash_elements(s) + 2 * s["batch"] * s["heads"] * s["length"] ** 2


def decode_elements(s: Sizes) -> float:
    """Count the cache once, and query and result of every head."""
    cache = 2 * _kv_heads(s) * s["length"] * s["width"]
    return s["batch"] * (cache + 2 * s["heads"] * s["width"])


def _kv_heads(s: Sizes) -> int:
    return s["kv_heads"] or s["heads"]


def _conv_output(s: Sizes) -> tuple[int, int]:
    high = (s["height"] + 2 * s["padding"] - s["kernel"]) // s["stride"] + 1
    wide = (s["image_width"] + 2 * s["padding"] - s["kernel"]) // s["stride"] + 1
    return max(high, 0), max(wide, 0)


def conv_flop(s: Sizes) -> float:
    """Count a multiply-add for each result, input channel and kernel element."""
    high, wide = _conv_output(s)
    return 2 * s["batch"] * s["out_channels"] * high * wide * s["in_channels"] * s["kernel"] ** 2


def conv_elements(s: Sizes) -> float:
    """Count images, weights and results."""
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


def block_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of one decoder block over a sequence."""
    return _block(s, s["batch"] * s["length"], _whole_sequence(s, 1), 1)


def prefill_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of a model that takes in a prompt."""
    rows = s["batch"] * s["length"]
    yield Part("embedding", {"tokens": rows, "width": s["hidden"]}, "embedding")
    yield from _block({**s, "causal": 1}, rows, _whole_sequence({**s, "causal": 1}, s["layers"]), s["layers"])
    yield Part("rmsnorm", {"rows": rows, "width": s["hidden"]}, "last norm")
    yield _product(s["batch"], s["vocabulary"], s["hidden"], "logits of the last token")


def decode_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of a model that produces one token for each sequence."""
    rows = s["batch"]
    cached = {name: s[name] for name in ("batch", "heads", "kv_heads", "length")}
    attention = Part(
        "attention-decode", {**cached, "width": s["hidden"] // s["heads"]}, "attention over the cache", s["layers"]
    )
    yield Part("embedding", {"tokens": rows, "width": s["hidden"]}, "embedding")
    yield from _block(s, rows, attention, s["layers"])
    yield Part("rmsnorm", {"rows": rows, "width": s["hidden"]}, "last norm")
    yield _product(rows, s["vocabulary"], s["hidden"], "logits")
