"""Rows of the table for training: gradients of products and of attention, the loss over a vocabulary, the optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.predict.formulas import (
    INDEX_BYTES,
    SOFTMAX_FLOP,
    WIDE,
    Part,
    attention_exponentials,
    attention_gradients,
    flash_elements,
)
from rooflens.model.predict.rows import Operation, Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflens.model.predict.formulas import Sizes

ADAM_FLOP = 16
"""FLOPs a parameter of AdamW: 3 for the mean, 4 for the variance, 2 to correct both, 3 for the quotient, 4 for the
rest.

The rest is the decay of the weight and the step; a root and a division count one each.
"""

WIDE_BYTES = 4
"""Numbers that training keeps in fp32 whatever the type: moments, master weights, losses, sums of a row."""


def _product(m: int, n: int, k: int, label: str) -> Part:
    sizes = {"m": m, "n": n, "k": k, "batch": 1, "tile": 0, "l2_tile": 0, "tensor_parallel": 1}
    return Part("gemm", {**sizes, **WIDE}, label)


def backward_parts(s: Sizes) -> Iterator[Part]:
    """List the two products of a gradient: with the right operand, and with the left one."""
    yield _product(s["m"], s["k"], s["n"], "gradient of the left operand")
    yield _product(s["k"], s["n"], s["m"], "gradient of the right operand")


def _flash_backward_flop(s: Sizes) -> float:
    """Count five products of 2 x width a pair, the scores among them once more, and the softmax once more."""
    return attention_exponentials(s) * (10 * s["width"] + SOFTMAX_FLOP)


def cross_entropy_parts(s: Sizes) -> Iterator[Part]:
    """List the product that writes the logits, and the loss that reads them."""
    yield _product(s["tokens"], s["vocabulary"], s["hidden"], "logits")
    yield Part("cross-entropy-loss", {"rows": s["tokens"], "width": s["vocabulary"]}, "loss")


_LOSS_BYTES = INDEX_BYTES + WIDE_BYTES
_OF_A_VOCABULARY = (
    Size("tokens", "tokens of the batch"),
    Size("hidden", "width of the model", 4096),
    Size("vocabulary", "size of the vocabulary", 128256),
)

TRAINING = (
    Operation(
        "gemm-backward",
        "the gradients of both operands of a product",
        "matrix",
        (Size("m", "rows of the result"), Size("n", "columns of the result"), Size("k", "length of the dot products")),
        "two products, each of as many FLOPs as the one forward",
        "each product reads the gradient of the result and the other operand, and writes a gradient",
        parts=backward_parts,
    ),
    Operation(
        "attention-flash-backward",
        "the gradients of attention in one kernel that recomputes its scores",
        "matrix",
        (
            Size("batch", "batch size", 1),
            Size("heads", "query heads", 32),
            Size("kv_heads", "heads of keys and values, for grouped queries; 0: as many as query heads", 0),
            Size("length", "tokens of the sequence"),
            Size("width", "elements of a head", 128),
            Size("causal", "1: a token sees only those before it", 0, most=1),
        ),
        f"five products of 2 x width per pair of tokens, and {SOFTMAX_FLOP} for its softmax",
        f"query, key, value, result and its gradient read, three gradients written, {WIDE_BYTES} bytes per query "
        "and head read for the sum of its row",
        _flash_backward_flop,
        lambda s: 2 * flash_elements(s),
        lambda s: WIDE_BYTES * s["batch"] * s["heads"] * s["length"],
        results=attention_gradients,
        special=attention_exponentials,
        extra_costs="one exponential per pair of tokens",
    ),
    Operation(
        "cross-entropy",
        "the loss over a vocabulary, with the logits written to memory and read again",
        "matrix",
        _OF_A_VOCABULARY,
        "the sum of its parts",
        "every part reads its operands and writes its result: the logits travel twice",
        parts=cross_entropy_parts,
    ),
    Operation(
        "cross-entropy-fused",
        "the loss over a vocabulary in one kernel that keeps the logits on chip",
        "matrix",
        _OF_A_VOCABULARY,
        f"a multiply-add for each token, element and word, and {SOFTMAX_FLOP} for each logit",
        f"tokens and weights read, {_LOSS_BYTES} bytes per token for its label and its loss",
        lambda s: s["tokens"] * s["vocabulary"] * (2 * s["hidden"] + SOFTMAX_FLOP),
        lambda s: (s["tokens"] + s["vocabulary"]) * s["hidden"],
        lambda s: _LOSS_BYTES * s["tokens"],
        special=lambda s: s["tokens"] * s["vocabulary"],
        extra_costs="one exponential per logit",
    ),
    Operation(
        "cross-entropy-loss",
        "the loss of each row of logits",
        "vector",
        (Size("rows", "rows of logits"), Size("width", "size of the vocabulary", 128256)),
        f"{SOFTMAX_FLOP} per element, by convention",
        f"logits read, {_LOSS_BYTES} bytes per row for its label and its loss",
        lambda s: SOFTMAX_FLOP * s["rows"] * s["width"],
        lambda s: s["rows"] * s["width"],
        lambda s: _LOSS_BYTES * s["rows"],
        special=lambda s: s["rows"] * s["width"],
        extra_costs="one exponential per logit",
    ),
    Operation(
        "adamw",
        "one step of the optimizer AdamW",
        "vector",
        (
            Size("n", "parameters"),
            Size("moment_bytes", "bytes of a mean and of a variance; 1 in optimizers of 8 bits", WIDE_BYTES),
            Size("master", "1: fp32 copies of the weights are kept beside those of the type", 0, most=1),
        ),
        f"{ADAM_FLOP} per parameter, by convention",
        "gradient read; mean, variance and weight read and written; with master copies these instead of the weight, "
        "which is only written",
        lambda s: ADAM_FLOP * s["n"],
        lambda s: (3 - s["master"]) * s["n"],
        lambda s: (4 * s["moment_bytes"] + 2 * WIDE_BYTES * s["master"]) * s["n"],
        special=lambda s: 2 * s["n"],
        extra_costs="a root and a reciprocal per parameter",
    ),
)
