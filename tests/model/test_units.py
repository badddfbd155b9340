from __future__ import annotations

import math

import pytest

from rooflens.model.units import cut_middle, duration, percent, si, significant


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.9412, "3.94"),
        (81.21, "81.2"),
        (812.4, "812"),
        (1240.0, "1,240"),
        (0.16666, "0.167"),
        (0.0123, "0.0123"),
        (1.0, "1.00"),
        (999.4, "999"),
        (-3.9412, "-3.94"),
        (-0.0123, "-0.0123"),
        (0, "0"),
        (-0.0, "0"),
        (math.inf, "n/a"),
        (math.nan, "n/a"),
    ],
)
def test_three_digits_say_a_number(value: float, expected: str) -> None:
    """A number has three significant digits, no exponent, its sign, and `n/a` where it is none."""
    assert significant(value) == expected


@pytest.mark.parametrize(
    ("value", "digits", "expected"), [(0.347, 2, "0.35"), (12.3, 2, "12"), (1.25, 1, "1"), (0.5, 2, "0.50")]
)
def test_digits_can_be_fewer(value: float, digits: int, expected: str) -> None:
    """A caller may ask for fewer digits."""
    assert significant(value, digits) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(9.996, "10.0"), (99.96, "100"), (0.9996, "1.00"), (-9.996, "-10.0"), (0.099996, "0.100")]
)
def test_rounding_up_to_the_next_decade_keeps_three_digits(value: float, expected: str) -> None:
    """A number that rounds up to a power of ten has three digits as every other."""
    assert significant(value) == expected


@pytest.mark.parametrize("value", [1.23e-7, -4.0e-9])
def test_a_small_number_is_not_written_as_zero(value: float) -> None:
    """What is not zero has a digit other than zero."""
    assert float(significant(value)) != 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.94e12, "3.94 TB/s"),
        (989.5e12, "990 TB/s"),
        (12_000, "12.0 kB/s"),
        (1.5e15, "1.50 PB/s"),
        (2.5e18, "2.50 EB/s"),
        (999.4, "999 B/s"),
        (1000, "1.00 kB/s"),
        (1.0e6, "1.00 MB/s"),
        (999.4e6, "999 MB/s"),
        (0.5, "0.500 B/s"),
        (0, "0 B/s"),
        (-2.5e9, "-2.50 GB/s"),
        (-1.0, "-1.00 B/s"),
    ],
)
def test_prefixes_follow_the_size(value: float, expected: str) -> None:
    """The prefix leaves one to three digits before the point, for negative numbers too."""
    assert si(value, "B/s") == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(999.7, "1.00 kB"), (999.7e3, "1.00 MB"), (-999.7e9, "-1.00 TB"), (999.96e12, "1.00 PB")]
)
def test_values_just_under_a_prefix_round_up_into_it(value: float, expected: str) -> None:
    """999.7 would round to 1,000 and so takes the next prefix, with three digits."""
    assert si(value, "B") == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.812, "81 %"),
        (0.082, "8.2 %"),
        (0.004, "0.4 %"),
        (1.0, "100 %"),
        (1.234, "123 %"),
        (0, "0.0 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
    ],
)
def test_per_cents_have_two_digits(share: float, expected: str) -> None:
    """From 10 % on a per cent is whole; below, one decimal is kept."""
    assert percent(share) == expected


@pytest.mark.parametrize(
    ("ns", "expected"),
    [
        (850, "850 ns"),
        (12_300, "12.3 µs"),
        (4.31e6, "4.31 ms"),
        (1.2e9, "1.20 s"),
        (1000, "1.00 µs"),
        (0, "0 ns"),
        (75e9, "75.0 s"),
        (999.4e3, "999 µs"),
    ],
)
def test_durations_take_the_unit_people_say(ns: float, expected: str) -> None:
    """Nanoseconds come out as ns, us, ms or s."""
    assert duration(ns) == expected


def test_a_duration_just_under_a_unit_rounds_up_into_it() -> None:
    """999.7 ns rounds to 1.00 µs."""
    assert duration(999.7) == "1.00 µs"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc…fg"),
        ("abcdefg", 5, "ab…fg"),
        ("abcdefg", 4, "ab…g"),
        ("abcdefg", 3, "a…g"),
        ("abcdefg", 2, "ab"),
        ("abcdefg", 1, "a"),
        ("abcdefg", 0, ""),
        ("", 3, ""),
    ],
)
def test_cuts_leave_both_ends(text: str, width: int, expected: str) -> None:
    """A long name keeps its beginning and its end."""
    assert cut_middle(text, width) == expected


@pytest.mark.parametrize("width", range(41))
def test_a_cut_is_exactly_as_wide_as_asked(width: int) -> None:
    """A name longer than the width comes out at exactly the width."""
    assert len(cut_middle("kernel<float, 128, 128, 32, true, false, 4>", width)) == width


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "k\u202e<é\x00>"]
)
def test_hostile_names_are_only_shortened(name: str) -> None:
    """Cutting adds nothing but the ellipsis: escaping is the pages' work."""
    cut = cut_middle(name, 5)
    assert cut == f"{name[:2]}…{name[-2:]}"
    assert cut_middle(name, 100) == name
