"""The table of operations: what each must compute and move, by formulas over its sizes.

FLOPs are those of the algorithm. Bytes are compulsory DRAM traffic: every operand is read once and every result
written once, unless a row says otherwise. The steps of a composite operation run one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from rooflens.errors import UnknownNameError
from rooflens.model.predict import formulas
from rooflens.model.predict.communication import ALL_REDUCED, COLLECTIVES, EXCHANGED
from rooflens.model.predict.rows import Amount, Operation, Part, Size, Sizes

_BATCH = Size("batch", "batch size", 1)
_HEADS = (
    Size("heads", "query heads", 32),
    Size("kv_heads", "heads of keys and values, for grouped queries; 0: as many as query heads", 0),
)
_ATTENTION = (
    _BATCH,
    *_HEADS,
    Size("length", "tokens of the sequence", 2048),
    Size("width", "elements of a head", 128),
)
_VARLEN = (
    Size("pairs", "pairs of a query and a key that it sees, of all sequences"),
    Size("queries", "tokens of the queries, of all sequences"),
    Size("keys", "tokens of the keys, of all sequences"),
    *_HEADS,
    Size("width", "elements of a head of queries and keys", 128),
    Size("value_width", "elements of a head of values; 0: as many as of keys", 0),
)
_CAUSAL = Size("causal", "1: a token sees only those before it", 0, most=1)
_KV_BITS = Size("kv_bits", "bits of a cached element, 8 for fp8 and int8; 0: as wide as the operands", 0, most=64)
_WEIGHT_GROUP = Size("weight_group", "packed weights of a column that share a scale", 128)
_ZEROS = Size("zeros", "1: each scale of packed weights has a zero point beside it", 1, least=0, most=1)
_WEIGHTS = (
    Size("weight_bits", "bits of a weight, packed; 0: stored like the other operands", 0, most=16),
    _WEIGHT_GROUP,
    _ZEROS,
)
_MODEL = (
    Size("hidden", "width of the model", 4096),
    Size("heads", "query heads", 32),
    Size("kv_heads", "heads of keys and values", 8),
    Size("ffn", "width of the feed-forward layer", 14336),
    Size("gated", "1: the feed-forward layer has a gate", 1, least=0, most=1),
    _BATCH,
    *_WEIGHTS,
    Size("tensor_parallel", "GPUs that split heads, feed-forward layer and vocabulary: two all-reduces a block", 1),
    Size("experts", "experts of each feed-forward layer, of the width ffn each; 0: a dense layer", 0),
    Size("top_k", "experts chosen for each token", 2),
)
_WHOLE_MODEL = (
    *_MODEL,
    Size("layers", "decoder blocks", 32),
    Size("vocabulary", "size of the vocabulary", 128256),
)
"""Defaults are the sizes of Llama 3 8B (its published configuration): a decoder most readers know."""

_ROWS = (Size("rows", "rows, normalised one by one", 1), Size("width", "elements of a row"))
_PRODUCT = (
    Size("m", "rows of the result"),
    Size("n", "columns of the result"),
    Size("k", "length of the dot products"),
)
_TILE = Size(
    "tile",
    "side of a tile of results that shares its loads from DRAM, as if L2 caught none; where it catches most, "
    "give l2_tile instead; 1: naive, 0: every operand is read once",
    0,
)
_TENSOR_PARALLEL = Size("tensor_parallel", "GPUs that split k and add up their results by an all-reduce", 1)
_BY_BLOCK = f"{ALL_REDUCED} the results of output projection and down projection"
_IMAGE = (
    Size("height", "height of the images"),
    Size("image_width", "width of the images"),
    Size("kernel", "side of the kernel", 3),
    Size("stride", "step of the kernel", 1),
)
_OF_A_VOCABULARY = (
    Size("tokens", "tokens of the batch"),
    Size("hidden", "width of the model", 4096),
    Size("vocabulary", "size of the vocabulary", 128256),
)
_PADDING = Size("padding", "rows and columns of zeros around an image", 1, least=0)
_ONE_PRODUCT = {"batch": 1, "tile": 0}
_L2_TILE = Size("l2_tile", "side of a tile of results that loads its operands from L2; 0: each goes through L2 once", 0)
_L2_TILES = "L2: an operand element once for each row or column of tiles of l2_tile x l2_tile results"
_UNPACKED = f"a packed weight takes {formulas.UNPACK_INSTRUCTIONS} instructions for each row of these tiles"
_EXPONENTIALS = "one exponential per pair of tokens"
_ONCE = "every operand read once, the result written once"


def _all_rows(s: Sizes) -> float:
    return s["rows"] * s["width"]


def _tokens_in_and_out(s: Sizes) -> float:
    return 2 * s["tokens"] * s["hidden"]


def _with_weights(parts: Callable[[Sizes], Iterator[Part]], kept: Amount) -> Amount:
    """Count what one kernel for all parts moves: their weights, each once, and what it keeps of the rest."""
    return lambda s: formulas.weight_elements(parts(s)) + kept(s)


def _packed_weights(parts: Callable[[Sizes], Iterator[Part]]) -> Amount:
    return lambda s: formulas.weight_bytes(parts(s))


def _with_residual(norm: str, weights: int) -> Operation:
    """Make the row of a residual sum and the norm of it.

    Args:
        norm: The norm.
        weights: Rows of its weights.
    """
    return Operation(
        f"add-{norm}",
        f"a residual sum, and its {norm}",
        "vector",
        _ROWS,
        "the sum of its parts",
        "every part reads its operands and writes its result",
        elements=lambda s: 4 * s["rows"] * s["width"] + weights * s["width"],
        parts=partial(formulas.residual_parts, norm=norm),
        fused="the sum is normalised before it leaves the chip",
    )


_TABLE = (
    Operation(
        "elementwise",
        "a function of each element, such as y = x + 1",
        "vector",
        (
            Size("n", "elements"),
            Size("reads", "arrays read", 1, least=0),
            Size("writes", "arrays written", 1, least=0),
            Size("flops", "FLOPs per element", 1, least=0),
        ),
        "`flops` for each element",
        "each array once",
        lambda s: s["flops"] * s["n"],
        formulas.elementwise_elements,
    ),
    Operation(
        "saxpy",
        "y = a x + y",
        "vector",
        (Size("n", "elements"),),
        "a multiplication and an addition per element",
        "x and y read, y written",
        lambda s: 2 * s["n"],
        lambda s: 3 * s["n"],
        dtype="fp32",
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
        results=lambda s: s["m"],
    ),
    Operation(
        "gemm",
        "a matrix times a matrix",
        "matrix",
        (*_PRODUCT, _BATCH, _TILE, _L2_TILE, _TENSOR_PARALLEL),
        "a multiply-add for each m, n and k",
        f"{_ONCE}; with a tile, 2 m n k / tile operand elements, whole tiles at the edges, as if L2 caught none",
        formulas.gemm_flop,
        formulas.gemm_elements,
        formulas.gemm_packed,
        group=lambda s: s["tensor_parallel"],
        results=formulas.gemm_results,
        sent_results=formulas.gemm_sent,
        sent_source=f"{ALL_REDUCED} the result",
        issued=formulas.gemm_unpacked,
        l2_bytes=formulas.gemm_l2,
        extra_costs=_L2_TILES,
    ),
    Operation(
        "quantized-gemm",
        "a matrix times packed weights, such as W4A16: unpacked on the way to the tensor cores",
        "matrix",
        (
            *_PRODUCT,
            Size("weight_bits", "bits of a weight", 4, most=16),
            _WEIGHT_GROUP,
            _ZEROS,
            _L2_TILE,
            _TENSOR_PARALLEL,
        ),
        "a multiply-add for each m, n and k, in the type of the rows",
        f"rows read, packed weights, a scale of {formulas.SCALE_BYTES} bytes and a zero point of weight_bits for each "
        "group and column read, the result written",
        lambda s: formulas.gemm_flop({**s, **_ONE_PRODUCT}),
        lambda s: formulas.gemm_elements({**s, **_ONE_PRODUCT}),
        lambda s: formulas.gemm_packed({**s, **_ONE_PRODUCT}),
        group=lambda s: s["tensor_parallel"],
        results=lambda s: s["m"] * s["n"],
        sent_results=lambda s: formulas.gemm_sent({**s, **_ONE_PRODUCT}),
        sent_source=f"{ALL_REDUCED} the result",
        issued=formulas.gemm_unpacked,
        l2_bytes=lambda s, element_bytes: formulas.gemm_l2({**s, **_ONE_PRODUCT}, element_bytes),
        extra_costs=f"{_L2_TILES}; {_UNPACKED}",
    ),
    Operation(
        "batched-gemm",
        "many matrix products of the same shape",
        "matrix",
        (Size("batch", "how many products"), *_PRODUCT, _TILE, _L2_TILE, _TENSOR_PARALLEL),
        "a multiply-add for each product, m, n and k",
        f"{_ONCE}; with a tile, 2 m n k / tile operand elements, whole tiles at the edges, as if L2 caught none",
        formulas.gemm_flop,
        formulas.gemm_elements,
        group=lambda s: s["tensor_parallel"],
        results=formulas.gemm_results,
        sent_results=formulas.gemm_sent,
        sent_source=f"{ALL_REDUCED} the result",
        l2_bytes=formulas.gemm_l2,
        extra_costs=_L2_TILES,
    ),
    Operation(
        "grouped-gemm",
        "each row times one of several matrices, such as those of experts",
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
        formulas.grouped_elements,
        formulas.packed_bytes,
        group=lambda s: max(s["dispatch"], s["combine"]),
        results=lambda s: s["m"] * s["n"],
        sent=formulas.grouped_sent,
        sent_results=formulas.grouped_sent_back,
        sent_source=f"{EXCHANGED} the rows before the product, and of its result",
    ),
    Operation(
        "layernorm",
        "rows centred, scaled, weighted and shifted",
        "vector",
        _ROWS,
        f"{formulas.LAYERNORM_FLOP} per element, by convention",
        "rows, weight and bias read, rows written",
        lambda s: formulas.LAYERNORM_FLOP * s["rows"] * s["width"],
        lambda s: 2 * s["rows"] * s["width"] + 2 * s["width"],
        read_again=_all_rows,
    ),
    Operation(
        "rmsnorm",
        "rows scaled and weighted",
        "vector",
        _ROWS,
        f"{formulas.RMSNORM_FLOP} per element, by convention",
        "rows and weight read, rows written",
        lambda s: formulas.RMSNORM_FLOP * s["rows"] * s["width"],
        lambda s: 2 * s["rows"] * s["width"] + s["width"],
        read_again=_all_rows,
    ),
    _with_residual("layernorm", 2),
    _with_residual("rmsnorm", 1),
    Operation(
        "softmax",
        "rows turned into probabilities",
        "vector",
        _ROWS,
        f"{formulas.SOFTMAX_FLOP} per element, by convention",
        "rows read, rows written",
        lambda s: formulas.SOFTMAX_FLOP * s["rows"] * s["width"],
        lambda s: 2 * s["rows"] * s["width"],
        special=lambda s: s["rows"] * s["width"],
        extra_costs="one exponential per element",
        read_again=_all_rows,
    ),
    Operation(
        "reduction",
        "rows summed up, or their largest found",
        "vector",
        (Size("n", "elements"), Size("left", "results", 1)),
        "1 for each element",
        "elements read, results written",
        lambda s: s["n"],
        lambda s: s["n"] + s["left"],
    ),
    Operation(
        "attention",
        "attention in three kernels: scores, softmax, weighted values",
        "matrix",
        (*_ATTENTION, _CAUSAL),
        "the sum of its parts, of which a causal mask saves the products nothing",
        "every part reads its operands and writes its result: the scores travel four times",
        elements=formulas.flash_elements,
        parts=formulas.attention_parts,
        fused="scores stay on chip",
        fused_parts=formulas.as_flash,
        results=formulas.attention_results,
    ),
    Operation(
        "attention-naive",
        "attention that writes its matrix of scores to memory",
        "matrix",
        (*_ATTENTION, _CAUSAL),
        f"two products of 2 x width per pair of tokens, and {formulas.SOFTMAX_FLOP} on CUDA cores for its softmax",
        "query, key, value read, result written, the scores written once and read once",
        formulas.attention_flop,
        formulas.naive_elements,
        results=formulas.naive_results,
        vector_flop=formulas.softmax_of_attention,
        special=formulas.attention_exponentials,
        extra_costs=_EXPONENTIALS,
    ),
    Operation(
        "attention-flash",
        "attention in one kernel that keeps its scores on chip",
        "matrix",
        (*_ATTENTION, _CAUSAL, Size("l2_tile", "queries that load keys and values from L2 together; 0: all", 0)),
        f"two products of 2 x width per pair of tokens, and {formulas.SOFTMAX_FLOP} on CUDA cores for its softmax",
        "query, key, value read, result written",
        formulas.attention_flop,
        formulas.flash_elements,
        results=formulas.attention_results,
        vector_flop=formulas.softmax_of_attention,
        special=formulas.attention_exponentials,
        l2_bytes=formulas.flash_l2,
        extra_costs=f"{_EXPONENTIALS}; L2: keys and values once for every l2_tile queries of a head",
    ),
    Operation(
        "attention-varlen",
        "attention over sequences of several lengths, new tokens and cached ones, in one kernel",
        "matrix",
        _VARLEN,
        f"two products of 2 x width per pair of tokens, and {formulas.SOFTMAX_FLOP} on CUDA cores for its softmax",
        "query, key, value read, result written",
        formulas.varlen_flop,
        formulas.varlen_elements,
        results=lambda s: s["queries"] * s["heads"] * (s["value_width"] or s["width"]),
        vector_flop=formulas.varlen_softmax,
        special=formulas.varlen_exponentials,
        extra_costs=_EXPONENTIALS,
    ),
    Operation(
        "attention-decode",
        "attention of a new token to the cached tokens",
        "matrix",
        (*_ATTENTION, _KV_BITS),
        "two products of 2 x width for each cached token and query head; softmax not counted",
        "cache and query read, result written",
        lambda s: 4 * s["batch"] * s["heads"] * s["length"] * s["width"],
        formulas.decode_elements,
        formulas.decode_cache_bytes,
        results=lambda s: s["batch"] * s["heads"] * s["width"],
        special=lambda s: s["batch"] * s["heads"] * s["length"],
        extra_costs="one exponential for each cached token and query head",
    ),
    Operation(
        "conv2d",
        "a convolution of images",
        "matrix",
        (
            _BATCH,
            Size("in_channels", "channels of the images"),
            Size("out_channels", "channels of the result"),
            *_IMAGE,
            _PADDING,
            Size("groups", "groups of channels, each convolved by itself; as many as channels: depthwise", 1),
        ),
        "a multiply-add for each result, kernel element and input channel of its group",
        "images and weights read, result written",
        formulas.conv_flop,
        formulas.conv_elements,
        results=formulas.conv_results,
    ),
    Operation(
        "depthwise-conv2d",
        "a convolution of each channel by itself, with no matrix products",
        "vector",
        (
            _BATCH,
            Size("channels", "channels of the images"),
            Size("multiplier", "channels of the result for each of them", 1),
            *_IMAGE,
            _PADDING,
        ),
        "a multiply-add for each result and kernel element",
        "images and weights read, result written",
        lambda s: formulas.conv_flop(formulas.of_each_channel(s)),
        lambda s: formulas.conv_elements(formulas.of_each_channel(s)),
        results=lambda s: formulas.conv_results(formulas.of_each_channel(s)),
    ),
    Operation(
        "embedding",
        "a row of a table for each token",
        "vector",
        (Size("tokens", "tokens looked up"), Size("width", "elements of a row", 4096)),
        "none: it copies",
        f"an index of {formulas.INDEX_BYTES} bytes and a row read, a row written, for each token",
        elements=lambda s: 2 * s["tokens"] * s["width"],
        extra_bytes=lambda s: formulas.INDEX_BYTES * s["tokens"],
    ),
    Operation(
        "transformer-block",
        "one decoder block over a sequence",
        "matrix",
        (
            *_MODEL,
            Size("length", "tokens of the sequence", 2048),
            Size("causal", "1: with a causal mask", 1, least=0, most=1),
        ),
        "the sum of its parts",
        "every part reads its operands and writes its result",
        parts=formulas.block_parts,
        tokens=lambda s: s["batch"] * s["length"],
        group=lambda s: s["tensor_parallel"],
        sent_source=_BY_BLOCK,
        elements=_with_weights(formulas.block_parts, formulas.block_kept),
        extra_bytes=_packed_weights(formulas.block_parts),
        fused="all between the tokens and its result stays on chip",
        results=formulas.block_kept,
    ),
    Operation(
        "mlp",
        "a dense feed-forward layer",
        "matrix",
        (
            Size("tokens", "tokens of the batch"),
            Size("hidden", "width of the model", 4096),
            Size("ffn", "width of the layer", 14336),
            Size("gated", "1: the layer has a gate", 1, least=0, most=1),
            *_WEIGHTS,
            Size("tensor_parallel", "GPUs that split the width of the layer, with an all-reduce after it", 1),
        ),
        "the sum of its parts",
        "every part reads its operands and writes its result",
        parts=formulas.mlp_parts,
        group=lambda s: s["tensor_parallel"],
        sent_source=f"{ALL_REDUCED} the result",
        elements=_with_weights(formulas.mlp_parts, _tokens_in_and_out),
        extra_bytes=_packed_weights(formulas.mlp_parts),
        fused="gate, activation and what is between both products stay on chip",
        results=lambda s: s["tokens"] * s["hidden"],
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
            Size("top_k", "experts chosen for each token", 2),
            Size("gated", "1: an expert has a gate", 1, least=0, most=1),
            *_WEIGHTS,
            Size("imbalance_percent", "rows of the busiest GPU, in per cent of the mean", 100, least=100),
            Size("expert_parallel", "GPUs that split the experts, with an all-to-all before and after them", 1),
        ),
        "the sum of its parts, on the busiest GPU",
        "every part reads its operands and writes its result; weights once, of the experts that a token is expected to "
        "choose: experts x (1 - (1 - top_k / experts) ^ tokens)",
        parts=formulas.moe_parts,
        group=lambda s: s["expert_parallel"],
        sent_source=f"{EXCHANGED} tokens x top_k rows to their experts, and of the results back",
        elements=_with_weights(formulas.moe_parts, _tokens_in_and_out),
        extra_bytes=_packed_weights(formulas.moe_parts),
        fused="activation and rows between router, products and weighted sum stay on chip",
        results=lambda s: s["tokens"] * s["hidden"],
    ),
    Operation(
        "experts",
        "both products of a layer of experts, whose tokens are routed already",
        "matrix",
        (
            Size("tokens", "tokens of the batch"),
            Size("hidden", "width of the model", 4096),
            Size("ffn", "width of an expert", 14336),
            Size("top_k", "experts of a token", 2),
            Size("touched", "experts that got a token", 8),
            Size("gated", "1: an expert has a gate", 1, least=0, most=1),
        ),
        "a multiply-add for each row of an expert, element and weight of it",
        "tokens read, weights of the experts that got one read, result written",
        formulas.experts_flop,
        formulas.experts_elements,
        results=lambda s: s["tokens"] * s["hidden"],
    ),
    Operation(
        "expert-sum",
        "the results of each token's experts, weighted and added up",
        "vector",
        (
            Size("tokens", "tokens of the batch"),
            Size("width", "elements of a row", 4096),
            Size("top_k", "experts of a token", 2),
            Size("tensor_parallel", "GPUs that share each expert and add up their results by an all-reduce", 1),
        ),
        "2 x top_k - 1 for each element",
        "a row of each expert read, their sum written, for each token",
        formulas.expert_sum_flop,
        formulas.expert_sum_elements,
        group=lambda s: s["tensor_parallel"],
        sent=formulas.expert_sum_sent,
        sent_source=f"{ALL_REDUCED} the sums",
    ),
    Operation(
        "prefill",
        "a decoder-only model takes in a prompt",
        "matrix",
        (*_WHOLE_MODEL, Size("length", "tokens of the prompt", 2048)),
        "the sum of its parts; logits of the last token only",
        "every part reads its operands and writes its result",
        parts=formulas.prefill_parts,
        tokens=lambda s: s["batch"] * s["length"],
        group=lambda s: s["tensor_parallel"],
        sent_source=_BY_BLOCK,
        elements=_with_weights(formulas.prefill_parts, formulas.prefill_kept),
        extra_bytes=_packed_weights(formulas.prefill_parts),
        fused="all but weights, cache and logits stays on chip",
        results=formulas.prefill_kept,
    ),
    Operation(
        "decode",
        "a decoder-only model produces one token for each sequence",
        "matrix",
        (*_WHOLE_MODEL, Size("length", "tokens in the cache", 2048), _KV_BITS),
        "the sum of its parts",
        "every part reads its operands and writes its result; weights once for the whole batch",
        parts=formulas.decode_parts,
        tokens=lambda s: s["batch"],
        group=lambda s: s["tensor_parallel"],
        sent_source=_BY_BLOCK,
        elements=lambda s: (
            formulas.weight_elements(formulas.decode_parts(s))
            + formulas.decode_cache_elements(s)
            + formulas.decode_kept(s)
        ),
        extra_bytes=formulas.decode_bytes,
        fused="all but weights, cache and logits stays on chip",
        results=formulas.decode_kept,
    ),
    Operation(
        "gemm-backward",
        "the gradients of both operands of a product",
        "matrix",
        _PRODUCT,
        "two products, each with as many FLOPs as the forward product",
        "each product reads the gradient of the result and the other operand, and writes a gradient",
        parts=formulas.backward_parts,
        elements=lambda s: s["m"] * s["n"] + 2 * s["k"] * (s["m"] + s["n"]),
        fused="the gradient of the result is read once",
        results=lambda s: s["k"] * (s["m"] + s["n"]),
    ),
    Operation(
        "attention-flash-backward",
        "the gradients of attention in one kernel that recomputes its scores",
        "matrix",
        (*_ATTENTION, _CAUSAL),
        f"five products of 2 x width per pair of tokens, and {formulas.SOFTMAX_FLOP} on CUDA cores for its softmax",
        f"query, key, value, result and its gradient read, three gradients written, {formulas.WIDE_BYTES} bytes per "
        "query and head read for the sum of its row",
        formulas.flash_backward_flop,
        lambda s: 2 * formulas.flash_elements(s),
        lambda s: formulas.WIDE_BYTES * s["batch"] * s["heads"] * s["length"],
        results=formulas.attention_gradients,
        vector_flop=formulas.softmax_of_attention,
        special=formulas.attention_exponentials,
        extra_costs=_EXPONENTIALS,
    ),
    Operation(
        "attention-varlen-backward",
        "the gradients of attention over sequences of several lengths",
        "matrix",
        _VARLEN,
        f"three products of 2 x width per pair of tokens and two of 2 x value_width, and {formulas.SOFTMAX_FLOP} on "
        "CUDA cores for its softmax",
        f"query, key, value, result and its gradient read, three gradients written, {formulas.WIDE_BYTES} bytes per "
        "query and head read for the sum of its row",
        formulas.varlen_backward_flop,
        lambda s: 2 * formulas.varlen_elements(s),
        lambda s: formulas.WIDE_BYTES * s["heads"] * s["queries"],
        results=lambda s: formulas.varlen_elements(s) - s["queries"] * s["heads"] * (s["value_width"] or s["width"]),
        vector_flop=formulas.varlen_softmax,
        special=formulas.varlen_exponentials,
        extra_costs=_EXPONENTIALS,
    ),
    Operation(
        "cross-entropy",
        "the loss over a vocabulary, with the logits written to memory and read again",
        "matrix",
        _OF_A_VOCABULARY,
        "the sum of its parts",
        "every part reads its operands and writes its result: the logits travel twice",
        parts=formulas.cross_entropy_parts,
        elements=lambda s: (s["tokens"] + s["vocabulary"]) * s["hidden"],
        extra_bytes=lambda s: formulas.LOSS_BYTES * s["tokens"],
        fused="logits stay on chip",
        fused_parts=formulas.as_fused_loss,
    ),
    Operation(
        "cross-entropy-fused",
        "the loss over a vocabulary in one kernel that keeps the logits on chip",
        "matrix",
        _OF_A_VOCABULARY,
        f"a multiply-add for each token, element and word, and {formulas.SOFTMAX_FLOP} on CUDA cores for each logit",
        f"tokens and weights read, {formulas.LOSS_BYTES} bytes per token for its label and its loss",
        lambda s: s["tokens"] * s["vocabulary"] * (2 * s["hidden"] + formulas.SOFTMAX_FLOP),
        lambda s: (s["tokens"] + s["vocabulary"]) * s["hidden"],
        lambda s: formulas.LOSS_BYTES * s["tokens"],
        vector_flop=lambda s: formulas.SOFTMAX_FLOP * s["tokens"] * s["vocabulary"],
        special=lambda s: s["tokens"] * s["vocabulary"],
        extra_costs="one exponential per logit",
    ),
    Operation(
        "cross-entropy-loss",
        "the loss of each row of logits",
        "vector",
        (Size("rows", "rows of logits"), Size("width", "size of the vocabulary", 128256)),
        f"{formulas.SOFTMAX_FLOP} per element, by convention",
        f"logits read, {formulas.LOSS_BYTES} bytes per row for its label and its loss",
        lambda s: formulas.SOFTMAX_FLOP * s["rows"] * s["width"],
        lambda s: s["rows"] * s["width"],
        lambda s: formulas.LOSS_BYTES * s["rows"],
        special=lambda s: s["rows"] * s["width"],
        extra_costs="one exponential per logit",
    ),
    Operation(
        "adamw",
        "one step of the optimizer AdamW",
        "vector",
        (
            Size("n", "parameters"),
            Size("moment_bytes", "bytes of a mean and of a variance; 1 in optimizers of 8 bits", formulas.WIDE_BYTES),
            Size("master", "1: fp32 copies of the weights are kept beside those of the type", 0, most=1),
        ),
        f"{formulas.ADAM_FLOP} per parameter, by convention",
        "gradient read; mean, variance and weight read and written; with master copies these instead of the weight, "
        "which is only written",
        lambda s: formulas.ADAM_FLOP * s["n"],
        lambda s: (3 - s["master"]) * s["n"],
        lambda s: (4 * s["moment_bytes"] + 2 * formulas.WIDE_BYTES * s["master"]) * s["n"],
        special=lambda s: 2 * s["n"],
        extra_costs="a root and a reciprocal per parameter",
    ),
    *COLLECTIVES,
    Operation(
        "custom",
        "FLOPs and bytes that you counted yourself",
        "counted",
        (Size("flop", "FLOPs", least=0), Size("bytes", "bytes to and from DRAM")),
        "as given, on tensor cores; on the CUDA cores in fp32 and fp64",
        "as given",
        lambda s: s["flop"],
        extra_bytes=lambda s: s["bytes"],
    ),
)

OPERATIONS: Mapping[str, Operation] = MappingProxyType({operation.name: operation for operation in _TABLE})
"""The table by name; adding a row adds the operation everywhere."""


_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "add": "elementwise",
        "copy": "elementwise",
        "gelu": "elementwise",
        "map": "elementwise",
        "relu": "elementwise",
        "axpy": "saxpy",
        "daxpy": "saxpy",
        "matvec": "gemv",
        "mv": "gemv",
        "dense": "gemm",
        "linear": "gemm",
        "matmul": "gemm",
        "mm": "gemm",
        "bmm": "batched-gemm",
        "flash": "attention-flash",
        "flash-attention": "attention-flash",
        "feed-forward": "mlp",
        "mha": "attention-flash",
        "sdpa": "attention-flash",
        "paged-attention": "attention-decode",
        "loss": "cross-entropy",
    }
)
"""Other names of operations, for hints."""


def the_operation(name: str) -> Operation:
    """Find an operation by its name, or by another word for it.

    Raises:
        UsageError: No operation has that name; the hint lists similar names, or all.
    """
    known = name if name in OPERATIONS else _SYNONYMS.get(name.casefold(), "")
    if known not in OPERATIONS:
        raise UnknownNameError("operation", name, OPERATIONS)
    return OPERATIONS[known]
