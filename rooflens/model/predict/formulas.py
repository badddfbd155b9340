"""What the formulas of `operations.toml` are made of, and the steps of composite operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rooflens.model.predict.communication import share_of
from rooflens.model.predict.rows import Part, Sizes

SOFTMAX_FLOP = 5
LAYERNORM_FLOP = 7
RMSNORM_FLOP = 4
"""FLOPs an element by convention; exponentials, comparisons and divisions count one each."""

INDEX_BYTES = 8

SCALE_BYTES = 2
"""A scale of packed weights is a number of 16 bits."""

ADAM_FLOP = 16
"""FLOPs a parameter of AdamW: 3 for the mean, 4 for the variance, 2 to correct both, 3 for the quotient, 4 for the
rest.

The rest is the decay of the weight and the step; a root and a division count one each.
"""

WIDE_BYTES = 4
"""Numbers that training keeps in fp32 whatever the type: moments, master weights, losses, sums of a row."""

LOSS_BYTES = INDEX_BYTES + WIDE_BYTES
"""A label and a loss."""

UNPACK_INSTRUCTIONS = 2
"""Instructions a thread takes to unpack, convert and scale one packed weight, by convention.

Eight weights of four bits take about five to mask and shift, four to convert and four to scale, two weights each.
"""


def tiles(amount: int, tile: int) -> int:
    """Count the tiles along a side of the result; 1 without tiling."""
    return -(-amount // tile) if tile else 1


def tiled(m: int, n: int, k: int, tile: int, weight_bits: int) -> int:
    """Count elements if each row or column of tiles loads its operands; packed weights count as bytes instead."""
    return m * k * tiles(n, tile) + k * n * tiles(m, tile) * (weight_bits == 0) + m * n


def packed(n: int, k: int, bits: int, group: int, zeros: int) -> float:
    """Count the bytes of packed weights; each column of a group has a scale and maybe a zero point."""
    scaled = -(-k // group) * n * (bits != 0)
    return k * n * bits / 8 + scaled * (SCALE_BYTES + zeros * bits / 8)


def attended(length: int, causal: int) -> float:
    """Count the pairs of query and key that attention looks at in one head: a causal mask leaves the lower triangle."""
    return length * (length + 1) / 2 if causal else length**2


def tiles_seen(length: int, tile: int, causal: int) -> float:
    """Count the tiles of keys that a tile of queries loads.

    Under a causal mask it sees half of the keys on average, and the tile that it is in.
    """
    return (tiles(length, tile) + 1) / 2 if causal else tiles(length, tile)


def conv_side(side: int, kernel: int, stride: int, padding: int) -> int:
    """Return the side of a convolution's result, from that of the image."""
    return max((side + 2 * padding - kernel) // stride + 1, 0)


def _cached(s: Sizes) -> int:
    return s["batch"] * 2 * _kv_heads(s) * s["length"] * s["width"]


def _kv_heads(s: Sizes) -> int:
    return s["kv_heads"] or s["heads"]


def _product(  # noqa: PLR0913 - sizes of a product
    m: int, n: int, k: int, label: str, count: int = 1, *, gpus: int = 1, packed: Sizes | None = None
) -> Part:
    sizes = {"m": m, "n": n, "k": k, "batch": 1, "tile": 0, "l2_tile": 0, "tensor_parallel": gpus}
    return Part("gemm", {**sizes, **(packed or WIDE)}, label, count)


WIDE: Sizes = {"weight_bits": 0, "weight_group": 128, "zeros": 0}
"""Weights stored in the operands' type."""


def _packed(s: Sizes) -> Sizes:
    return {name: s[name] for name in WIDE}


def _sum_of(n: int, label: str, count: int = 1) -> Part:
    return Part("elementwise", {"n": n, "reads": 2, "writes": 1, "flops": 1}, label, count)


def _decoder_block(s: Sizes, rows: int, attention: Part, layers: int) -> Iterator[Part]:
    """List the steps of decoder blocks over `rows` tokens; every step reads its operands and writes its result.

    GPUs that share a block split its heads and its feed-forward layer: the two products that come before a residual sum
    are split along k and end in an all-reduce, the others along n. Norms and sums are done by every GPU.
    """
    hidden, gpus = s["hidden"], s["tensor_parallel"]
    heads, kv_heads = _heads_of_one(s)
    qkv = (heads + 2 * kv_heads) * (hidden // s["heads"])
    norm = Part("rmsnorm", {"rows": rows, "width": hidden}, "norms", 2 * layers)
    yield norm
    packed = _packed(s)
    yield _product(rows, qkv, hidden, "query, key and value", layers, packed=packed)
    yield attention
    yield _product(rows, hidden, hidden, "output projection", layers, gpus=gpus, packed=packed)
    yield _sum_of(rows * hidden, "residual sums", 2 * layers)
    yield from _experts(s, rows, layers) if s["experts"] else _feed_forward(s, rows, layers)


def _feed_forward(s: Sizes, rows: int, layers: int) -> Iterator[Part]:
    """List the steps of dense feed-forward layers, which GPUs share by their width."""
    hidden, gpus, packed = s["hidden"], s["tensor_parallel"], _packed(s)
    ffn = share_of(s["ffn"], gpus)
    halves = 2 if s["gated"] else 1
    yield _product(rows, ffn * halves, hidden, "up projection", layers, packed=packed)
    # A gated activation multiplies two halves: four FLOPs an element by convention, as for a plain one.
    yield Part("elementwise", {"n": rows * ffn, "reads": halves, "writes": 1, "flops": 4}, "activation", layers)
    yield _product(rows, hidden, s["ffn"], "down projection", layers, gpus=gpus, packed=packed)


def _experts(s: Sizes, tokens: int, layers: int) -> Iterator[Part]:
    """List the steps of feed-forward layers of experts, of each of which GPUs share the width."""
    hidden, gpus = s["hidden"], s["tensor_parallel"]
    ffn, rows = share_of(s["ffn"], gpus), tokens * s["top_k"]
    yield from _routed(s, tokens, rows, ffn, _touched(s, tokens), layers)
    sums = {"tokens": tokens, "width": hidden, "top_k": s["top_k"], "tensor_parallel": gpus}
    yield Part("expert-sum", sums, "weighted sum", layers)


def _touched(s: Sizes, tokens: int) -> float:
    return s["experts"] * touched_share(s["experts"], s["top_k"], tokens)


def _routed(  # noqa: PLR0913, PLR0917 - what a GPU has of a layer
    s: Sizes,
    tokens: int,
    rows: int,
    ffn: int,
    touched: float,
    layers: int = 1,
    gpus: int = 1,
    labels: tuple[str, str] = ("up projection", "down projection"),
) -> Iterator[Part]:
    """List the steps from the router to the second product of experts.

    Args:
        s: Sizes of the layer.
        tokens: Tokens of a GPU.
        rows: Rows that its experts get.
        ffn: Its part of an expert's width.
        touched: Experts that get a row.
        layers: How many such layers.
        gpus: GPUs among which experts are split, whole.
        labels: Of the two products.
    """
    hidden, halves = s["hidden"], 2 if s["gated"] else 1
    weights = {"m": rows, "groups": touched, **_packed(s)}
    yield _product(tokens, s["experts"], hidden, "router", layers)
    yield Part("softmax", {"rows": tokens, "width": s["experts"]}, "router's softmax", layers)
    up = {**weights, "n": ffn * halves, "k": hidden, "dispatch": gpus, "combine": 1}
    yield Part("grouped-gemm", up, labels[0], layers)
    yield Part("elementwise", {"n": rows * ffn, "reads": halves, "writes": 1, "flops": 4}, "activation", layers)
    down = {**weights, "n": hidden, "k": ffn, "dispatch": 1, "combine": gpus}
    yield Part("grouped-gemm", down, labels[1], layers)


def _heads_of_one(s: Sizes) -> tuple[int, int]:
    """Return the query and key heads of one GPU; key heads are copied if there are more GPUs than heads."""
    return share_of(s["heads"], s["tensor_parallel"]), share_of(_kv_heads(s), s["tensor_parallel"])


def _whole_sequence(s: Sizes, layers: int) -> Part:
    heads, kv_heads = _heads_of_one(s)
    sizes = {
        "batch": s["batch"],
        "heads": heads,
        "kv_heads": kv_heads,
        "length": s["length"],
        "width": s["hidden"] // s["heads"],
        "causal": s["causal"],
        "l2_tile": 0,
    }
    return Part("attention-flash", sizes, "attention", layers)


def block_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of one decoder block over a sequence."""
    return _decoder_block(s, s["batch"] * s["length"], _whole_sequence(s, 1), 1)


def prefill_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of a model that takes in a prompt."""
    rows = s["batch"] * s["length"]
    yield Part("embedding", {"tokens": rows, "width": s["hidden"]}, "embedding")
    yield from _decoder_block({**s, "causal": 1}, rows, _whole_sequence({**s, "causal": 1}, s["layers"]), s["layers"])
    yield Part("rmsnorm", {"rows": rows, "width": s["hidden"]}, "last norm")
    yield _product(s["batch"], _columns_of_one(s), s["hidden"], "logits of the last token")


def decode_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of a model that produces one token for each sequence."""
    rows = s["batch"]
    heads, kv_heads = _heads_of_one(s)
    cached = {"batch": rows, "heads": heads, "kv_heads": kv_heads, "length": s["length"], "kv_bits": s["kv_bits"]}
    attention = Part(
        "attention-decode", {**cached, "width": s["hidden"] // s["heads"]}, "attention over the cache", s["layers"]
    )
    yield Part("embedding", {"tokens": rows, "width": s["hidden"]}, "embedding")
    yield from _decoder_block(s, rows, attention, s["layers"])
    yield Part("rmsnorm", {"rows": rows, "width": s["hidden"]}, "last norm")
    yield _product(rows, _columns_of_one(s), s["hidden"], "logits")


def _columns_of_one(s: Sizes) -> int:
    """Return one GPU's part of the vocabulary, whose logits it keeps."""
    return share_of(s["vocabulary"], s["tensor_parallel"])


def touched_share(experts: int, top_k: int, tokens: int) -> float:
    """Return the expected fraction of experts that at least one token chooses, if each chooses `top_k` at random.

    A token skips an expert with probability 1 - top_k / experts; all tokens skip it with that to the power of tokens.
    """
    return 1 - (1 - top_k / experts) ** tokens


def moe_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of a feed-forward layer of experts, for the tokens of one GPU.

    If experts are on several GPUs, each GPU receives as many rows as it sends. The busiest one, for which all wait,
    gets `imbalance_percent` of that. A token is sent once for each of its experts.
    """
    tokens, hidden, ffn, gpus = s["tokens"], s["hidden"], s["ffn"], s["expert_parallel"]
    rows = tokens * s["top_k"]
    if gpus > 1:
        rows = share_of(rows * s["imbalance_percent"], 100)
    touched = share_of(s["experts"], gpus) * touched_share(s["experts"], s["top_k"], tokens * gpus)
    labels = "dispatch and up projection", "down projection and combine"
    yield from _routed(s, tokens, rows, ffn, touched, gpus=gpus, labels=labels)
    sums = {"tokens": tokens, "width": hidden, "top_k": s["top_k"], "tensor_parallel": 1}
    yield Part("expert-sum", sums, "weighted sum")


def weight_elements(parts: Iterable[Part]) -> float:
    """Count the weights that products read, each once; packed ones count as bytes instead."""
    unpacked = (part for part in parts if part.operation in _PRODUCTS and part.sizes["weight_bits"] == 0)
    return sum(map(_weights, unpacked))


def weight_bytes(parts: Iterable[Part]) -> float:
    """Count the bytes of packed weights."""
    return sum(part.count * _packed_bytes(part.sizes) for part in parts if part.operation in _PRODUCTS)


def _weights(part: Part) -> float:
    s = part.sizes
    return float(part.count * s.get("groups", 1) * s["n"] * share_of(s["k"], s.get("tensor_parallel", 1)))


def _packed_bytes(s: Sizes) -> float:
    k = share_of(s["k"], s.get("tensor_parallel", 1))
    groups: float = s.get("groups", 1)  # those that are expected to get a row
    return groups * packed(s["n"], k, s["weight_bits"], s["weight_group"], s["zeros"])


_PRODUCTS = frozenset({"gemm", "grouped-gemm"})
"""Steps with weights."""


def norm_elements(parts: Iterable[Part]) -> float:
    """Count the weights of norms."""
    return float(sum(part.count * part.sizes["width"] for part in parts if part.operation == "rmsnorm"))


def block_kept(s: Sizes) -> float:
    """Count what a block must read and write besides the weights of its products: its tokens, and norms."""
    return 2 * s["batch"] * s["length"] * s["hidden"] + norm_elements(block_parts(s))


def prefill_kept(s: Sizes) -> float:
    """Count what a prefill must read and write besides weights: rows of tokens, norms, the cache, the last logits."""
    rows = s["batch"] * s["length"]
    table, logits = rows * s["hidden"], s["batch"] * _columns_of_one(s)
    return table + norm_elements(prefill_parts(s)) + rows * _cached_of_token(s) + logits


def decode_kept(s: Sizes) -> float:
    """Count what a decode step must read and write besides weights and cache: rows, norms, new keys, logits."""
    table, logits = s["batch"] * s["hidden"], s["batch"] * _columns_of_one(s)
    return table + norm_elements(decode_parts(s)) + s["batch"] * _cached_of_token(s) + logits


def _cached_of_token(s: Sizes) -> int:
    """Count the elements that the layers cache of a token, on one GPU."""
    return s["layers"] * 2 * _heads_of_one(s)[1] * (s["hidden"] // s["heads"])


def _cache_part(s: Sizes) -> Part:
    return next(part for part in decode_parts(s) if part.operation == "attention-decode")


def decode_elements(s: Sizes) -> float:
    """Count weights, cached elements unless the cache has a type of its own, and what else a decode step keeps."""
    part = _cache_part(s)
    return weight_elements(decode_parts(s)) + part.count * _cached(part.sizes) * (s["kv_bits"] == 0) + decode_kept(s)


def decode_bytes(s: Sizes) -> float:
    """Count the bytes of packed weights, and of a cache that has a type of its own."""
    part = _cache_part(s)
    return weight_bytes(decode_parts(s)) + part.count * (_cached(part.sizes) * s["kv_bits"] / 8)


def attention_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of attention in kernels of their own, queries that share keys as rows of one product.

    A causal mask saves the products nothing: it is applied by the softmax.
    """
    together = s["heads"] // _kv_heads(s)
    rows, length, width = together * s["length"], s["length"], s["width"]
    shared = {"batch": s["batch"] * _kv_heads(s), "tile": 0, "l2_tile": 0, "tensor_parallel": 1}
    yield Part("batched-gemm", {**shared, "m": rows, "n": length, "k": width}, "scores")
    yield Part("softmax", {"rows": s["batch"] * s["heads"] * length, "width": length}, "softmax")
    yield Part("batched-gemm", {**shared, "m": rows, "n": width, "k": length}, "weighted values")


def as_flash(s: Sizes) -> Iterator[Part]:
    """Return attention in one kernel that keeps its scores on chip."""
    yield Part("attention-flash", {**s, "l2_tile": 0}, "attention")


def mlp_parts(s: Sizes) -> Iterator[Part]:
    """List the steps of a dense feed-forward layer."""
    yield from _feed_forward(s, s["tokens"], 1)


def layernorm_after_sum(s: Sizes) -> Iterator[Part]:
    """List a residual sum and the layernorm of it."""
    return _after_sum("layernorm", s)


def rmsnorm_after_sum(s: Sizes) -> Iterator[Part]:
    """List a residual sum and the rmsnorm of it."""
    return _after_sum("rmsnorm", s)


def _after_sum(norm: str, s: Sizes) -> Iterator[Part]:
    yield _sum_of(s["rows"] * s["width"], "residual sum")
    yield Part(norm, s, "norm")


def as_fused_loss(s: Sizes) -> Iterator[Part]:
    """Return a loss in one kernel that keeps its logits on chip."""
    yield Part("cross-entropy-fused", s, "loss")


def backward_parts(s: Sizes) -> Iterator[Part]:
    """List the two products of a gradient: with the right operand, and with the left one."""
    yield _product(s["m"], s["k"], s["n"], "gradient of the left operand")
    yield _product(s["k"], s["n"], s["m"], "gradient of the right operand")


def cross_entropy_parts(s: Sizes) -> Iterator[Part]:
    """List the product that writes the logits, and the loss that reads them."""
    yield _product(s["tokens"], s["vocabulary"], s["hidden"], "logits")
    yield Part("cross-entropy-loss", {"rows": s["tokens"], "width": s["vocabulary"]}, "loss")
