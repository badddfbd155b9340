from __future__ import annotations

import math
import re

import pytest
from support.loops import for_all

from rooflens import format as fmt
from rooflens.format import cut_apart, cut_middle, duration, percent, si, significant


@for_all(
    "value, expected",
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
    """A number has three significant digits, no exponent, its sign, and `n/a` if missing."""
    assert significant(value) == expected


@pytest.mark.parametrize(
    ("value", "digits", "expected"), [(0.347, 2, "0.35"), (12.3, 2, "12"), (1.25, 1, "1"), (0.5, 2, "0.50")]
)
def test_digits_can_be_fewer(value: float, digits: int, expected: str) -> None:
    """Fewer digits can be requested."""
    assert significant(value, digits) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(9.996, "10.0"), (99.96, "100"), (0.9996, "1.00"), (-9.996, "-10.0"), (0.099996, "0.100")]
)
def test_rounding_up_to_the_next_decade_keeps_three_digits(value: float, expected: str) -> None:
    """A number that rounds up to a power of ten has three digits too."""
    assert significant(value) == expected


@pytest.mark.parametrize("value", [1.23e-7, -4.0e-9])
def test_a_small_number_is_not_written_as_zero(value: float) -> None:
    """A nonzero number shows a nonzero digit."""
    assert float(significant(value)) != 0


@for_all(
    "value, expected",
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
    """A prefix leaves one to three digits before the point, also for negative numbers."""
    assert si(value, "B/s") == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(999.7, "1.00 kB"), (999.7e3, "1.00 MB"), (-999.7e9, "-1.00 TB"), (999.96e12, "1.00 PB")]
)
def test_values_just_under_a_prefix_round_up_into_it(value: float, expected: str) -> None:
    """999.7 would round to 1,000, so it takes the next prefix, with three digits."""
    assert si(value, "B") == expected


@for_all(
    "share, expected",
    [
        (0.812, "81 %"),
        (0.082, "8.2 %"),
        (0.004, "0.4 %"),
        (1.0, "100 %"),
        (1.234, "123 %"),
        (0, "0 %"),
        (0.0004, "<0.1 %"),
        (0.9951, ">99 %"),
        (0.9949, "99 %"),
        (1.07, "107 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
    ],
)
def test_per_cents_have_two_digits(share: float, expected: str) -> None:
    """Percentages are whole from 10 % on, with one decimal below; only exact 0 and 1 are 0 % and 100 %."""
    assert percent(share) == expected


@for_all(
    "ns, expected",
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
    """Nanoseconds are written as ns, us, ms or s."""
    assert duration(ns) == expected


def test_a_duration_just_under_a_unit_rounds_up_into_it() -> None:
    """999.7 ns rounds to 1.00 µs."""
    assert duration(999.7) == "1.00 µs"


@for_all(
    "text, width, expected",
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
    """A long name keeps its start and end."""
    assert cut_middle(text, width) == expected


@for_all("width", range(41))
def test_a_cut_is_no_wider_than_asked_and_leaves_numbers_whole(width: int) -> None:
    """A name longer than the width is cut to it, and never within a number."""
    name = "kernel<float, 128, 128, 32, true, false, 4>"
    cut = cut_middle(name, width)
    assert width - 5 < len(cut) <= width
    assert set(re.findall(r"\d+", cut)) <= {"128", "32", "4"}
    assert not re.search(r"\d…|…\d", cut)


@for_all("width", range(12, 90))
def test_names_are_cut_apart(width: int) -> None:
    """Cut names keep what distinguishes them, also in the middle; namespaces are dropped first."""
    names = [f"cub::DeviceRadixSort{what}Kernel" for what in ("Onesweep", "Histogram", "ExclusiveSum")]
    names += [f"gemm<float, {rows}, {rows // 2}, true, false, true, RowMajor>" for rows in (64, 128, 256)]
    cut = cut_apart(dict.fromkeys(names, width))
    assert len(set(cut.values())) == len(names)
    assert max(map(len, cut.values())) <= width
    assert not any(re.search(r"\d…|…\d", text) for text in cut.values())
    assert all(
        text.startswith(("D", "gemm", "…") if width > 12 else text[0]) for text in cut.values() if "::" not in text
    )


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "k\u202e<é\x00>"]
)
def test_hostile_names_are_only_shortened(name: str) -> None:
    """Cutting adds only an ellipsis: pages do the escaping."""
    cut = cut_middle(name, 5)
    assert cut == f"{name[:2]}…{name[-2:]}"
    assert cut_middle(name, 100) == name


@for_all(
    "value, unit, text",
    [
        (1.555e12, "B/s", "1.56 TB/s"),
        (999.6e9, "B/s", "1.00 TB/s"),
        (585e6, "Hz", "585 MHz"),
        (8_858_370_048, "FLOP", "8.86 GFLOP"),
        (0, "B", "0 B"),
        (0.0042, "FLOP/s", "0.00420 FLOP/s"),
        (None, "B", fmt.MISSING),
    ],
)
def test_si_numbers(value: float | None, unit: str, text: str) -> None:
    """A quantity has three significant digits and the prefix of its rounded value; None is not zero."""
    assert fmt.si(value, unit) == text


@for_all(
    "nanoseconds, text",
    [
        (4.31e6, "4.31 ms"),
        (999_999, "1.00 ms"),
        (3200, "3.20 \u00b5s"),
        (12, "12.0 ns"),
        (1.8e11, "180 s"),
        (0, "0 ns"),
    ],
)
def test_durations(nanoseconds: float, text: str) -> None:
    """A time has the unit that keeps three digits readable."""
    assert fmt.duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(2.61, "2.6x"), (640.4, "640x"), (1000, "1,000x"), (1001, ">1000x"), (None, fmt.MISSING)]
)
def test_factors_over_a_thousand_are_told_by_their_order(value: float | None, text: str) -> None:
    """A speed-up of many thousands is capped, as it is no promise."""
    assert fmt.factor(value) == text


@pytest.mark.parametrize(
    ("value", "text", "bare"),
    [
        (1.219, "1.22 FLOP/B", "1.22"),
        (11_617, "11,600 FLOP/B", "11,600"),
        (99_960, "100 kFLOP/B", "100 kFLOP/B"),
        (2_083_000, "2.08 MFLOP/B", "2.08 MFLOP/B"),
        (None, fmt.MISSING, fmt.MISSING),
    ],
)
def test_intensities_of_almost_no_traffic_take_a_prefix(value: float | None, text: str, bare: str) -> None:
    """An intensity over 1e5 FLOP/B has an SI prefix, also under a heading with the unit."""
    assert fmt.intensity(value) == text
    assert fmt.bare_intensity(value) == bare


@pytest.mark.parametrize(("percent", "text"), [(2.0, "2 %"), (0.0, "0 %"), (8.1, "8.1 %"), (39.0, "39 %")])
def test_per_cents_of_others_keep_their_digits(percent: float, text: str) -> None:
    """NVIDIA's 2% is written 2 %."""
    assert fmt.given_percent(percent) == text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gemm<(int)64, (bool)1>", "gemm<64, true>"),
        ("k<(int)-1, (bool)0, (unsigned int)4, (unsigned long)8>(int, float)", "k<-1, false, 4, 8>(int, float)"),
        ("k<(cutlass::Layout)1>(bool)", "k<(cutlass::Layout)1>(bool)"),
        ("k(int)7", "k(int)7"),
        ("k<(int)N, (bool)10>", "k<(int)N, (bool)10>"),
    ],
)
def test_casts_of_demanglers_are_dropped(name: str, shown: str) -> None:
    """Casts of numbers and booleans in template arguments are dropped; the rest of a name stays."""
    assert fmt.plain_name(name) == shown


def test_names_are_cut_in_the_middle() -> None:
    """A long name keeps its start and end, and has exactly the requested width."""
    cut = fmt.cut_middle("void kernel<" + "float, " * 600 + "true>(int)", 40)
    assert len(cut) == 40
    assert cut.startswith("void kernel<")
    assert cut.endswith("true>(int)")
    assert fmt.cut_middle("short", 40) == "short"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.84 ms, 81 % of 4.80 TB/s", "3.84_ms, 81_% of 4.80_TB/s"),
        ("12.0 M inst in 5 blocks", "12.0_M_inst in 5 blocks"),
        ("CC 8.0 on SM 1.41 GHz", "CC 8.0 on SM 1.41_GHz"),
    ],
)
def test_numbers_keep_their_units_in_html(text: str, expected: str) -> None:
    """A line of HTML never breaks between a number and its unit, but elsewhere as usual."""
    assert fmt.unbroken(text) == expected.replace("_", fmt.NBSP)


@pytest.mark.parametrize(("ends", "text"), [(("3", "7"), "3 to 7"), (("7", "7"), "7")])
def test_a_span_of_one_value_is_that_value(ends: tuple[str, str], text: str) -> None:
    """Both ends of a span are written; equal ends once."""
    assert fmt.span(*ends) == text


def test_names_are_ordered_as_people_count() -> None:
    """Runs of digits sort as numbers, anywhere and at any length; a prefix sorts first."""
    names = ["v10", "v2", "v1", "v", "v1_b", "v01", "w0", "v9" + "9" * 5000, "v10_x2", "v10_x10", ""]
    ordered = ["", "v", "v01", "v1", "v1_b", "v2", "v10", "v10_x2", "v10_x10", "v9" + "9" * 5000, "w0"]
    assert sorted(names, key=fmt.natural) == ordered


def test_several_names_are_three_and_dots() -> None:
    """Up to three names are listed; dots show that there are more."""
    assert [fmt.some("abcd"[:length]) for length in range(5)] == ["", "a", "a, b", "a, b, c", "a, b, c, ..."]


def test_harmless_text_can_be_written_and_steers_nothing() -> None:
    """Escapes, marks of direction and halves of characters are replaced; letters and line ends stay."""
    text = fmt.harmless("a\x1b[31m\u202e\ud800é\n\t日")
    assert text == "a?[31m??é\n\t日"
    assert text.encode()


@for_all(
    "name, plural",
    [
        ("fp64 divisions", True),
        ("waits for global memory", True),
        ("bank conflicts in shared memory", True),
        ("values passed on through global memory", True),
        ("too few blocks", True),
        ("low occupancy", False),
        ("no access", False),
        ("queue to shared memory and special functions full", False),
        ("load/store queue full", False),
        ("a reduction that ends in shared memory", False),
    ],
)
def test_a_verb_follows_the_noun_of_a_name(name: str, plural: bool) -> None:  # noqa: FBT001 - a parameter
    """`fp64 divisions matter`, `low occupancy matters`: the noun before `of`, `for` or `that` decides."""
    assert fmt.is_plural(name) is plural


def test_text_that_cannot_be_encoded_is_replaced() -> None:
    """Bytes that are no UTF-8 become one sign each, as do halves of characters, which JSON may hold."""
    text = b"a\xffb".decode("utf-8", "surrogateescape") + "\ud800c\udfff"
    assert fmt.as_unicode(text) == "a\ufffdb\ufffdc\ufffd"
