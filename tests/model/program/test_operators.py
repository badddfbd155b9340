"""Test what operators must compute and move, against FLOPs and bytes worked out by hand."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rooflens.model.predict.forecast import work_of
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.sizes import checked_sizes
from rooflens.model.program.call import Work
from rooflens.model.program.operators import OPERATORS, OddOperandsError, work_of_call
from rooflens.model.program.timeline import Operands

F, H, B, D = "float", "c10::Half", "c10::BFloat16", "double"
S, N = "Scalar", ""


def call(*arguments: Any) -> Operands:
    """Write the arguments of a call: a type with sizes, or a value."""
    dims = tuple(tuple(one[1:]) if isinstance(one, tuple) else () for one in arguments)
    types = tuple(one[0] if isinstance(one, tuple) else S for one in arguments)
    values = tuple("" if isinstance(one, tuple) else str(one) for one in arguments)
    return Operands(dims, types, (), values)


BY_HAND: dict[str, tuple[str, Operands, float, float]] = {
    # name: operator, operands, FLOPs, bytes
    "fp32 product": ("mm", call((F, 8, 4), (F, 4, 2)), 2 * 8 * 4 * 2, 4 * (32 + 8 + 16)),
    "fp16 product": ("mm", call((H, 64, 32), (H, 32, 16)), 65_536, 2 * (2048 + 512 + 1024)),
    "bias of a row": ("addmm", call((F, 16), (F, 8, 4), (F, 4, 16), 1, 1), 1024, 4 * (16 + 32 + 64 + 128)),
    "bias that beta drops": ("addmm", call((F, 16), (F, 8, 4), (F, 4, 16), 0, 1), 1024, 4 * (32 + 64 + 128)),
    "batch of products": ("bmm", call((B, 3, 8, 4), (B, 3, 4, 2)), 3 * 128, 2 * 3 * (32 + 8 + 16)),
    "batch added": ("baddbmm", call((B, 3, 8, 2), (B, 3, 8, 4), (B, 3, 4, 2), 1, 1), 384, 2 * 3 * (16 + 32 + 8 + 16)),
    "matrix and vector": ("mv", call((F, 8, 4), (F, 4)), 64, 4 * (32 + 4 + 8)),
    "dot": ("dot", call((F, 1000), (F, 1000)), 2000, 4 * 2001),
    "linear": ("linear", call((H, 2, 8, 4), (H, 16, 4), (H, 16)), 2 * 16 * 16 * 4, 2 * (64 + 64 + 16 + 256)),
    "rows of a batch": ("matmul", call((F, 2, 8, 4), (F, 4, 2)), 2 * 16 * 4 * 2, 4 * (64 + 8 + 32)),
    "fp64 product": ("mm", call((D, 8, 4), (D, 4, 2)), 128, 8 * 56),
    "causal attention": (
        "_flash_attention_forward",
        call((H, 1, 64, 2, 32), (H, 1, 64, 2, 32), (H, 1, 64, 2, 32), (N,), (N,), 64, 64, 0.0, "True"),
        2 * (64 * 65 // 2) * (4 * 32 + 5),
        2 * 4 * 64 * 2 * 32,
    ),
    "full attention": (
        "_scaled_dot_product_flash_attention",
        call((H, 1, 2, 64, 32), (H, 1, 2, 64, 32), (H, 1, 2, 64, 32), 0.0, "False"),
        2 * 64 * 64 * (4 * 32 + 5),
        2 * 4 * 64 * 2 * 32,
    ),
    "attention of other lengths": (
        "_scaled_dot_product_efficient_attention",
        call((H, 1, 2, 16, 32), (H, 1, 2, 64, 32), (H, 1, 2, 64, 32), (N,), "True", 0.0, "False"),
        2 * (16 * 64) * (2 * (32 + 32) + 5),
        2 * 2 * 32 * (16 + 64 + 64 + 16),
    ),
    "layer norm": ("native_layer_norm", call((F, 32, 100), [100], (F, 100), (F, 100)), 7 * 3200, 4 * (6400 + 200)),
    "softmax": ("_softmax", call((F, 32, 100), -1, "False"), 5 * 3200, 4 * 6400),
    "convolution": (
        "convolution",
        call((F, 2, 3, 8, 8), (F, 4, 3, 3, 3), (N,), [2, 2], [1, 1], [1, 1], "False", [0, 0], 1),
        2 * (2 * 4 * 4 * 4) * 27,
        4 * (384 + 108 + 128),
    ),
    "depthwise convolution": (
        "cudnn_convolution",
        call((F, 1, 8, 6, 6), (F, 8, 1, 3, 3), [0, 0], [1, 1], [1, 1], 8, "False", "False", "True"),
        2 * (8 * 4 * 4) * 9,
        4 * (288 + 72 + 128),
    ),
    "gradients of attention": (
        "_flash_attention_backward",
        call(*[(H, 1, 64, 2, 32)] * 5, (F, 1, 2, 64), (N,), (N,), 64, 64, 0.0, "False"),
        2 * 64 * 64 * (10 * 32 + 5),
        2 * 8 * 64 * 2 * 32 + 4 * 2 * 64,
    ),
    "gradient of a norm": (
        "native_layer_norm_backward",
        call(*[(F, 32, 100)] * 2, [100], (F, 32), (F, 32), (F, 100), (F, 100), "[True, True, True]"),
        7 * 3200,
        4 * 3 * 3200,
    ),
    "gradients of a convolution": (
        "convolution_backward",
        call(
            *((F, 2, 4, 4, 4), (F, 2, 3, 8, 8), (F, 4, 3, 3, 3), [4], [2, 2], [1, 1], [1, 1]),
            *("False", [0, 0], 1, "[True, True, False]"),
        ),
        2 * 2 * 128 * 27,
        4 * (128 + 2 * (384 + 108)),
    ),
    "dropout": ("native_dropout", call((H, 1000), 0.1, "True"), 1000, 5000),
    "add": ("add", call((F, 1000), (F, 1000), 1), 1000, 12_000),
    "add a row": ("add", call((F, 100, 10), (F, 10), 1), 1000, 4 * (1000 + 10 + 1000)),
    "add a number": ("add", call((H, 1000), 2.0, 1), 1000, 4000),
    "add in place": ("add_", call((F, 1000), (F, 1000), 1), 1000, 12_000),
    "relu": ("relu", call((B, 4096)), 4096, 4 * 4096),
    "whole numbers divided": ("div", call(("int", 100), ("int", 100)), 100, 100 * (4 + 4 + 4)),
    "compared": ("eq", call((F, 1000), 0), 1000, 5000),
    "gradient of a sigmoid": ("sigmoid_backward", call((F, 1000), (F, 1000)), 1000, 12_000),
    "chosen by a condition": ("where", call(("bool", 1000), (F, 1000), (F,)), 0, 1000 + 4 + 4000),
    "converted": ("copy_", call((H, 1000), (F, 1000), "False"), 0, 6000),
    "filled": ("fill_", call((F, 1000), 0), 0, 4000),
    "summed up": ("sum", call((F, 100, 10)), 1000, 4004),
    "summed by rows": ("sum", call((F, 100, 10), [1], "False"), 1000, 4400),
    "running sum": ("cumsum", call((F, 1000), 0), 1000, 8000),
}


def amounts(work: Work | None) -> tuple[float, float]:
    """Return FLOPs by the operation of `predict`, and bytes by the tensors."""
    assert work is not None
    row = OPERATIONS[work.operation]
    return work_of(row, checked_sizes(row, work.sizes), work.dtype)[0], work.moved_bytes


def test_work_is_what_a_hand_works_out() -> None:
    """FLOPs and bytes of a call follow exactly from its sizes."""
    found = {
        name: amounts(work_of_call(f"aten::{operator}", operands)) for name, (operator, operands, *_) in BY_HAND.items()
    }
    assert found == {name: (flop, moved_bytes) for name, (*_, flop, moved_bytes) in BY_HAND.items()}


def test_an_expanded_operand_is_read_once() -> None:
    """A stride of 0 repeats existing elements."""
    operands = Operands(((100, 10), (100, 10)), (F, F), ((10, 1), (0, 1)))
    assert amounts(work_of_call("aten::add", operands))[1] == 4 * (1000 + 10 + 1000)


ODD = (
    *("[]", "{}", "{[]}", "()", "[[1]]", "[1, []]", "'x'", "b'x'", "1e999", "-1", "True", "None", "...", "1j", "[0]"),
    *("[-9]", "[9999999999999999999999]", "[1.5]", "9" * 400, "[True, False, True]", "lambda: 0", "(", "1+1"),
)


def test_no_operands_cost_more_than_their_own_floor() -> None:
    """Whatever stands in an operator's arguments, its work is known, unknown, or an error of its own."""
    chance = Random(3)  # noqa: S311 - repeatable, not secret
    odd_count = 0
    for operator in OPERATORS:
        for _ in range(60):
            count = chance.randint(0, 13)
            dims = tuple(
                tuple(chance.choice((0, 1, 2, 3, 1 << 61)) for _ in range(chance.randint(0, 5))) for _ in range(count)
            )
            types = tuple(chance.choice((F, H, "Scalar", "", "long", "ScalarList", "odd")) for _ in range(count))
            values = tuple(chance.choice(ODD) for _ in range(count))
            try:
                work_of_call(operator, Operands(dims, types, (), values))
            except OddOperandsError:
                odd_count += 1
    assert odd_count


UNKNOWN = {
    "an operator without a row": ("aten::index_select", call((F, 100, 10), 0, ("long", 10))),
    "another library's": ("fbgemm::mm", call((F, 8, 4), (F, 4, 2))),
    "matrices that do not fit": ("aten::mm", call((F, 8, 4), (F, 5, 2))),
    "a type without a size": ("aten::add", call(("TensorList",), (F, 8))),
    "sizes that do not go together": ("aten::add", call((F, 8), (F, 7))),
    "a convolution without its stride": ("aten::convolution", Operands(((2, 3, 8, 8), (4, 3, 3, 3)), (F, F))),
    "sequences of several lengths": (
        "aten::_flash_attention_forward",
        call((H, 1, 64, 2, 32), (H, 1, 64, 2, 32), (H, 1, 64, 2, 32), ("int", 3), ("int", 3), 64, 64, 0.0, "True"),
    ),
    "a fused group under one operator's name": ("aten::pow", call((F, 8), (F, 8), (F, 8), (F, 8), 2)),
    "nothing": ("aten::relu", call((F, 0))),
    "more than there can be": ("aten::relu", call((F, 1 << 62, 1 << 62))),
    "no operands": ("aten::mm", None),
    "no operator": (None, call((F, 8))),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_the_sizes_do_not_say_is_not_guessed(name: str) -> None:
    """An operator or call with too little information has no work."""
    operator, operands = UNKNOWN[name]
    assert work_of_call(operator, operands) is None
