from __future__ import annotations

import pytest
from support.loops import for_all

from rooflens.errors import InputError, UsageError
from rooflens.model.predict.expectations import parse_prediction, parse_rules, rule_of


def test_a_prediction_is_an_operation_with_its_sizes() -> None:
    """FLOPs and bytes come from the table of operations; omitted sizes have their default."""
    found = parse_prediction("gemm:m=4096,n=1024,k=512,dtype=fp32,iterations=3")
    assert found.flop == 2 * 4096 * 1024 * 512
    assert found.moved_bytes == 4 * (4096 * 512 + 512 * 1024 + 4096 * 1024)
    assert (found.operation, found.dtype, found.iterations) == ("gemm", "fp32", 3)
    assert found.parameters["batch"] == 1


def test_copies_have_no_flops() -> None:
    """An operation that computes nothing predicts no FLOPs, rather than 0, by which something could be divided."""
    assert parse_prediction("embedding:tokens=8,width=4").flop is None


@for_all(
    "text",
    ["gem:m=1", "gemm", "gemm:m=1,n=1", "gemm:m=1,n=1,k=1,q=2", "gemm:m,n=1,k=1", "gemm:m=1:8:x2,n=1,k=1", "gemm:m=-1"],
)
def test_what_is_no_prediction_is_refused(text: str) -> None:
    """Unknown operations and sizes, missing sizes and sweeps are usage errors."""
    with pytest.raises(UsageError):
        parse_prediction(text)


def test_rules_find_kernels_by_name() -> None:
    """The first pattern that covers the whole name is used."""
    rules = parse_rules(
        """
        [[kernel]]
        match = "*gemm*64*"
        predict = "gemm:m=64,n=64,k=64"
        [[kernel]]
        match = "*gemm*"
        predict = "gemm:m=8,n=8,k=8"
        """,
        "p.toml",
    )
    found = [rule_of(name, rules) for name in ("sgemm_64x64", "sgemm_8", "softmax")]
    assert [rule and rule.prediction.parameters["m"] for rule in found] == [64, 8, None]


@for_all(
    "text",
    [
        "=",
        "x = 1",
        "kernel = 1",
        "[kernel]\nmatch = 'a'",
        "[[kernel]]\nmatch = 'a'",
        "[[kernel]]\nmatch='a'\npredict='b'",
        "[[kernel]]\nmatch='a'\npredict='saxpy:n=1'\niterations=3",
        "[[kernel]]\nmatch='a'\npredict='saxpy:n=1,n=2'",
    ],
)
def test_a_file_that_holds_no_predictions_is_named(text: str) -> None:
    """The error names the file, and the hint shows what a prediction file looks like."""
    with pytest.raises(InputError, match=r"p\.toml"):
        parse_rules(text, "p.toml")
