from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loops import for_all

from rooflens.ingest.exports.numbers import PrintedValue, Style, instance_counts, parse, split_instances, style_of

POINT, COMMA = Style("."), Style(",")


@for_all(
    "text, style, expected",
    [
        ("1.024", POINT, 1.024),
        ("32,746,880", POINT, 32_746_880),
        ("1,024", POINT, 1024),
        ("4,963,609,951.19", POINT, 4_963_609_951.19),
        ("27.595.520", COMMA, 27_595_520),
        ("1.024", COMMA, 1024),
        ("65,77", COMMA, 65.77),
        ("1.234.567,89", COMMA, 1_234_567.89),
        ("0,123", POINT, 0.123),
        ("65,77", POINT, 65.77),
        ("27.595.520", POINT, 27_595_520),
        ("32\u00a0746\u202f880,50", COMMA, 32_746_880.5),
        ("32'746'880.50", POINT, 32_746_880.5),
        ("3,27,46,880", POINT, 32_746_880),
        ("-1,5", COMMA, -1.5),
        ("1.5e+09", POINT, 1.5e9),
        ("1,5E+09", COMMA, 1.5e9),
        (" 12 ", POINT, 12),
        ("(!) 12", POINT, 12),
    ],
)
def test_a_number_is_read_in_the_style_of_its_table(text: str, style: Style, expected: float) -> None:
    """Points and commas group digits or mark the fraction, depending on the style and the digits around them."""
    assert parse(text, style) == expected


@pytest.mark.parametrize("text", ["", "n/a", "(!) n/a", "PolicySpread", "1.2.3,4.5", "12 ms", "..", "-", "1e", "0x10"])
@pytest.mark.parametrize("style", [POINT, COMMA])
def test_what_is_no_number_is_none(text: str, style: Style) -> None:
    """A missing value or a word never becomes 0."""
    assert parse(text, style) is None


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "(!) nan", "-nan(ind)"])
@pytest.mark.parametrize("style", [POINT, COMMA])
def test_nan_stays_nan(text: str, style: Style) -> None:
    """A failed measurement differs from a missing one, in any unit."""
    assert math.isnan(parse(text, style) or 0)
    assert math.isnan(parse(text, style, 6) or 0)


def test_units_are_applied_with_one_rounding() -> None:
    """A scaled value becomes exactly the integer that it was scaled from."""
    assert parse("4.789792", POINT, 6) == 4_789_792
    assert parse("1,024.33", POINT, 3) == 1_024_330
    assert parse("0,001573", COMMA, 9) == 1_573_000


@for_all(
    "values, decimal",
    [
        (["12", "65,77"], ","),
        (["27.595.520"], ","),
        (["32,746,880"], "."),
        (["1.234,5"], ","),
        (["1,234.5"], "."),
        (["0,123"], ","),
        (["12345,678"], ","),
        (["n/a", "nan", "void f(1.5, 2,5)"], "."),
    ],
)
def test_one_telling_value_shows_the_style(values: list[str], decimal: str) -> None:
    """A value with only one reading decides how all others are read."""
    assert style_of([PrintedValue(value) for value in values], POINT).decimal == decimal


def test_a_count_has_no_fraction() -> None:
    """`32.768` alone is ambiguous: as a count it is 32,768, otherwise it is undecided."""
    assert style_of([PrintedValue("32.768", is_count=True)], POINT).decimal == ","
    assert style_of([PrintedValue("32.768")], POINT).decimal == "."
    assert style_of([PrintedValue("32.768", is_count=True), PrintedValue("1.50")], POINT).decimal == "."


def test_the_rounding_of_per_cents_is_known() -> None:
    """Only percentages decide the number of digits after the decimal mark."""
    values = [PrintedValue("1.23456", is_pct=False), PrintedValue("41.20", is_pct=True), PrintedValue("7", is_pct=True)]
    assert style_of(values, POINT).pct_digits == 2
    assert style_of([PrintedValue("0.497353", is_pct=True)], POINT).pct_digits == 6


def test_instances_stand_behind_their_value() -> None:
    """`--print-metric-instances` adds instances in brackets; a name with brackets is no value."""
    assert split_instances("1,024 (512; 512)") == ("1,024", "512; 512")
    assert split_instances("10 (BRA.U: 1; HFMA2.MMA: 9)") == ("10", "BRA.U: 1; HFMA2.MMA: 9")
    assert split_instances("GeForce (laptop)") == ("GeForce (laptop)", None)
    assert instance_counts("BRA.U: 1; HFMA2.MMA: 9,000", POINT) == {"BRA.U": 1, "HFMA2.MMA": 9000}
    assert instance_counts("512; 512", POINT) == {}


def grouped(digits: str, mark: str) -> str:
    """Group digits by three from the right."""
    return mark.join(part[::-1] for part in reversed([digits[::-1][i : i + 3] for i in range(0, len(digits), 3)]))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.decimals(0, 10**15, places=2), min_size=1, max_size=20),
    st.sampled_from([(".", ","), (",", "."), (",", "\u202f"), (".", "'"), (".", ""), (",", "")]),
)
def test_every_locale_gives_the_numbers_back(numbers: list, marks: tuple[str, str]) -> None:
    """Numbers with two decimals, as ncu prints them, are read back in every locale."""
    decimal, group = marks
    texts = []
    for number in numbers:
        whole, _, fraction = f"{number:.2f}".partition(".")
        texts.append(f"{grouped(whole, group)}{decimal}{fraction}")
    style = style_of([PrintedValue(text) for text in texts], POINT)
    assert [parse(text, style) for text in texts] == [float(number) for number in numbers]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30), st.sampled_from([POINT, COMMA]), st.sampled_from([-3, 0, 6]))
def test_no_text_is_an_error(text: str, style: Style, power: int) -> None:
    """Any cell is a number or none, without an exception."""
    found = parse(text, style, power)
    assert found is None or isinstance(found, float)
    split_instances(text)
    instance_counts(text, style)
