"""The type of results of products: it can be chosen, and has 16 bits if the operands have fewer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from support.loops import for_all

import rooflens
from rooflens.cli.group import main
from rooflens.errors import UsageError
from rooflens.model.predict.expectations import parse_prediction
from rooflens.workloads.registry import find_workload

N = 4096
CUBE = {"m": N, "n": N, "k": N}


def moved(operation: str, dtype: str, out_dtype: str | None = None, **sizes: int) -> float:
    """Count the bytes of an operation on a B200, which supports every type."""
    return rooflens.predict(operation, gpu="b200", dtype=dtype, out_dtype=out_dtype, **sizes).moved_bytes


@for_all(
    "dtype, operand, result",
    [("fp8", 1, 2), ("int8", 1, 2), ("fp4", 0.5, 2), ("bf16", 2, 2), ("tf32", 4, 4), ("fp32", 4, 4), ("fp64", 8, 8)],
)
def test_narrow_operands_have_a_result_of_16_bits(dtype: str, operand: float, result: float) -> None:
    """A product of 4096 cubed: two operands, and a result of at least 2 bytes; 67.1 MB in fp8, not 50.3."""
    assert moved("gemm", dtype, **CUBE) == (2 * operand + result) * N * N


@pytest.mark.parametrize(("out_dtype", "result"), [("fp8", 1), ("bf16", 2), ("fp32", 4)])
def test_the_type_of_the_result_can_be_chosen(out_dtype: str, result: int) -> None:
    """Requantized to 8 bits, the default of 16, or unrounded sums; for bf16 operands too."""
    assert moved("gemm", "fp8", out_dtype, **CUBE) == (2 + result) * N * N
    assert moved("gemm", "bf16", out_dtype, **CUBE) == (4 + result) * N * N


@for_all(
    "operation, sizes, operands, results",
    [
        ("gemv", {"m": 10, "k": 20}, 10 * 20 + 20, 10),
        ("batched-gemm", {"batch": 3, "m": 10, "n": 20, "k": 30}, 3 * (300 + 600), 3 * 200),
        ("grouped-gemm", {"m": 10, "n": 20, "k": 30, "groups": 4}, 300 + 4 * 600, 200),
        ("gemm", {"m": 10, "n": 20, "k": 30, "tile": 10}, 300 * 2 + 600, 200),
        (
            "conv2d",
            {"batch": 2, "in_channels": 3, "out_channels": 5, "height": 8, "image_width": 8},
            2 * 3 * 64 + 5 * 3 * 9,
            2 * 5 * 64,
        ),
        (
            "depthwise-conv2d",
            {"batch": 2, "channels": 3, "height": 8, "image_width": 8},
            2 * 3 * 64 + 3 * 9,
            2 * 3 * 64,
        ),
        ("attention-flash", {"heads": 2, "length": 10, "width": 8}, 3 * 160, 160),
        ("attention-naive", {"heads": 2, "length": 10, "width": 8}, 3 * 160, 160 + 2 * 2 * 100),
        ("attention-decode", {"heads": 2, "length": 10, "width": 8}, 2 * 160 + 16, 16),
    ],
)
def test_every_family_of_products_tells_results_from_operands(
    operation: str, sizes: dict[str, int], operands: int, results: int
) -> None:
    """Manually counted elements, with operands of 1 byte and results of 2, or all of 1 byte if requested."""
    assert moved(operation, "fp8", **sizes) == operands + 2 * results
    assert moved(operation, "fp8", "fp8", **sizes) == operands + results
    assert moved(operation, "bf16", **sizes) == 2 * (operands + results)


def test_gradients_of_attention_are_results() -> None:
    """Five arrays of 160 elements read, three written, and 4 bytes for each of 20 rows; fewer with one key head."""
    assert moved("attention-flash-backward", "fp8", heads=2, length=10, width=8) == 5 * 160 + 3 * 160 * 2 + 80
    grouped = moved("attention-flash-backward", "fp8", heads=2, kv_heads=1, length=10, width=8)
    assert grouped == 3 * 160 + 2 * 80 + (160 + 2 * 80) * 2 + 80


def test_steps_between_products_work_on_results() -> None:
    """Logits of fp8 products are written and read in 2 bytes: 100 tokens of 50 words with 20 elements each."""
    product = 100 * 20 + 20 * 50 + 2 * 100 * 50
    loss = 2 * 100 * 50 + (8 + 4) * 100
    assert moved("cross-entropy", "fp8", tokens=100, hidden=20, vocabulary=50) == product + loss


def test_a_split_product_adds_up_results() -> None:
    """Two GPUs that share k send each other half of the summands twice: 4096 x 4096 of 2 bytes, or 4."""
    for out_dtype, width in ((None, 2), ("fp32", 4)):
        sent = rooflens.predict("gemm", dtype="fp8", out_dtype=out_dtype, tensor_parallel=2, **CUBE).sent_bytes
        assert sent == N * N * width


def test_tiles_write_their_results_through_l2_once() -> None:
    """Tiles of 128 read each operand 32 times in 1 byte and write results once in 2."""
    assert rooflens.predict("gemm", dtype="fp8", l2_tile=128, **CUBE).l2_bytes == 2 * 32 * N * N + 2 * N * N


@pytest.mark.parametrize("operation", ["elementwise", "softmax", "custom", "all-reduce"])
def test_what_is_no_product_has_one_type(operation: str) -> None:
    """A result type other than the operands' is refused."""
    sizes: dict[str, dict[str, int]] = {
        "elementwise": {"n": 8},
        "softmax": {"width": 8},
        "custom": {"flop": 8, "bytes": 8},
        "all-reduce": {"bytes": 8, "gpus": 2},
    }
    with pytest.raises(UsageError, match="cannot have results of another type"):
        moved(operation, "bf16", "fp32", **sizes[operation])
    assert moved(operation, "bf16", "bf16", **sizes[operation]) == moved(operation, "bf16", **sizes[operation])


def test_an_unknown_type_of_results_is_refused() -> None:
    """An unknown result type is refused like an unknown operand type."""
    with pytest.raises(UsageError, match="fp7"):
        moved("gemm", "bf16", "fp7", **CUBE)


def test_bundled_products_of_fp8_agree() -> None:
    """The workload's own formula and the prediction give the same bytes and FLOPs."""
    cases = [case for case in find_workload("gemm").cases if case.dtype == "fp8"]
    assert cases
    for case in cases:
        forecast = rooflens.predict("gemm", dtype="fp8", **case.parameters)
        assert (forecast.flop, forecast.moved_bytes) == (case.flop_count(), case.byte_count())


def test_the_command_takes_and_names_the_type() -> None:
    """The JSON has both types; the table names the result type in a line if it is not the operands'."""

    def asked(*options: str) -> str:
        done = CliRunner().invoke(main, ["predict", "gemm", "--m", "64", "--n", "m", "--k", "m", *options])
        assert done.exit_code == 0, done.output
        return done.output

    numbers: dict[str, Any] = json.loads(asked("--dtype", "fp8", "--out-dtype", "fp32", "--format", "json"))
    assert (numbers["dtype"], numbers["out_dtype"], numbers["bytes"]) == ("fp8", "fp32", (2 + 4) * 64 * 64)
    assert numbers["held_bytes"] == numbers["bytes"]
    assert "results in bf16" in asked("--dtype", "fp8")
    assert "results in" not in asked("--dtype", "fp16")


def test_a_prediction_beside_a_report_takes_it() -> None:
    """`--predict gemm:...,dtype=fp8` uses the default of 16 bits, `out_dtype` another type."""
    text = "gemm:m=64,n=64,k=64,dtype=fp8"
    assert parse_prediction(text).moved_bytes == 4 * 64 * 64
    assert parse_prediction(f"{text},out_dtype=fp32").moved_bytes == 6 * 64 * 64
