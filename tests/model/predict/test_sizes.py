from __future__ import annotations

import math

import pytest
from support.loops import for_all

from rooflens.errors import UsageError
from rooflens.model.predict.forecast import crossings, forecast
from rooflens.model.predict.operations import OPERATIONS, _formula
from rooflens.model.predict.sizes import checked_sizes, parse_values, sweep_sizes
from rooflens.model.roofline.datasheets import load_datasheets


@for_all(
    "text, values",
    [
        ("4096", (4096,)),
        ("1,2,4", (1, 2, 4)),
        ("128:1024:x2", (128, 256, 512, 1024)),
        ("128:1000:x2", (128, 256, 512)),
        ("64:256:+64", (64, 128, 192, 256)),
        ("1_000", (1000,)),
        ("64e9", (64_000_000_000,)),
        ("1.5e3", (1500,)),
        ("2E+3,64G", (2000, 64_000_000_000)),
        ("4Ki,1.5k,1K,1Mi", (4096, 1500, 1000, 1 << 20)),
        ("1e3:1e6:x10", (1000, 10_000, 100_000, 1_000_000)),
        ("1Ki:4Ki:x2", (1024, 2048, 4096)),
    ],
)
def test_sizes_are_written_as_numbers_lists_and_sweeps(text: str, values: tuple[int, ...]) -> None:
    """A sweep continues until it would pass its end."""
    assert parse_values(text) == values


@for_all(
    "text",
    [
        "",
        "a",
        "1:2",
        "8:4:x2",
        "1:9:x1",
        "0:8:x2",
        "1:9:+0",
        "1;2",
        "1:99999999:+1",
        "٣",
        "9" * 5000,
        "1.5",
        "1e99",
        "1e-3",
        "64X",
        "e9",
        "1..5",
        "1.0005k",
    ],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    """Other text, a sweep that never ends and a sweep of too many steps are usage errors."""
    with pytest.raises(UsageError):
        parse_values(text)


def test_swept_sizes_walk_together() -> None:
    """A size that refers to another has its value at each step."""
    assert sweep_sizes({"m": "n", "n": "1,2", "k": "7"}) == ({"m": 1, "n": 1, "k": 7}, {"m": 2, "n": 2, "k": 7})
    with pytest.raises(UsageError, match="different numbers of steps"):
        sweep_sizes({"m": "1,2", "n": "1,2,3"})
    with pytest.raises(UsageError, match="which never gets a value"):
        sweep_sizes({"m": "n", "n": "m"})


def test_a_size_may_name_one_that_names_another() -> None:
    """References are resolved in any order, and may be written as on the command line."""
    assert sweep_sizes({"m": "k", "k": "in-n", "in_n": "3"}) == ({"m": 3, "k": 3, "in_n": 3},)
    with pytest.raises(UsageError, match="which never gets a value"):
        sweep_sizes({"m": "n", "n": "k", "k": "n"})


def test_sizes_may_be_named_in_capitals() -> None:
    """M means the m of a product, unless both are given."""
    gemm = OPERATIONS["gemm"]
    assert checked_sizes(gemm, {"M": 1, "N": 2, "k": 3}) == checked_sizes(gemm, {"m": 1, "n": 2, "k": 3})
    with pytest.raises(UsageError, match="given a size twice"):
        checked_sizes(gemm, {"M": 1, "m": 1, "n": 2, "k": 3})


def changes(operation: str, dtype: str, **written: str) -> list[tuple[int, str]]:
    """Sweep n on an H100, and list where each regime begins."""
    gpu = next(gpu for gpu in load_datasheets() if gpu.id == "h100-sxm")
    steps = [checked_sizes(OPERATIONS[operation], sizes) for sizes in sweep_sizes(written)]
    found = crossings(steps, lambda sizes: forecast(OPERATIONS[operation], sizes, dtype, gpu))
    return [(sizes["n"], regime) for sizes, regime in found]


SQUARES = {"batch": "1000", "m": "n", "k": "n"}
"""So many products at once that the smallest of them is longer than a launch."""


def test_a_falling_sweep_finds_the_crossing_too() -> None:
    """In a falling sweep, the new regime begins one size below where it begins in a rising sweep."""
    assert changes("batched-gemm", "bf16", n="8192,128", **SQUARES) == [(886, "memory")]


def test_the_crossing_is_the_first_size_right_of_the_ridge() -> None:
    """A square bf16 product on an H100 crosses at N = 887: N / 3 > 989.4 / 3.35."""
    assert changes("batched-gemm", "bf16", n="128:8192:x2", **SQUARES) == [(887, "compute")]


def test_every_crossing_is_found() -> None:
    """Up to 5 us a launch takes longer: 5e-6 x 3.35e12 / 6 elements of 16 products, whose ridge is 887."""
    first = math.ceil((5e-6 * 3.35e12 / (16 * 6)) ** 0.5)
    swept = {**SQUARES, "batch": "16"}
    assert changes("batched-gemm", "bf16", n="64:8192:x2", **swept) == [(first, "memory"), (887, "compute")]


def test_a_sweep_on_one_side_has_no_crossing() -> None:
    """SAXPY stays left of every ridge, and small vectors take less time than a launch."""
    assert changes("saxpy", "fp32", n="1000000000:8000000000:x2") == []
    assert changes("saxpy", "fp32", n="1:1024:x2") == []


def test_a_formula_names_sizes_of_its_row_alone() -> None:
    """A name in a formula of the table that is neither a size nor known is an error, and not one of some sizes only."""
    with pytest.raises(NameError, match="no size wdth"):
        _formula("rows * wdth", {"rows", "width"}, {"rows": 1})
