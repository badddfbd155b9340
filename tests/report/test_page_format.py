from __future__ import annotations

import pytest

from rooflens.model import units
from rooflens.report import format as fmt


@pytest.mark.parametrize(
    ("value", "unit", "text"),
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
    """A quantity has three significant digits and the prefix that its rounded value asks for; None is no zero."""
    assert fmt.si(value, unit).replace(fmt.NBSP, " ") == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
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
    """A time carries the unit that keeps three digits readable."""
    assert fmt.duration(nanoseconds).replace(fmt.NBSP, " ") == text


@pytest.mark.parametrize(
    ("share", "decimals", "text"),
    [
        (0.8134, 1, "81.3 %"),
        (0.0001, 0, "<1 %"),
        (0.0, 0, "0 %"),
        (0.9999, 0, ">99 %"),
        (1.0, 0, "100 %"),
        (1.07, 1, "107.0 %"),
    ],
)
def test_percent_never_rounds_something_to_nothing(share: float, decimals: int, text: str) -> None:
    """Only none is 0 per cent, only all of it is 100 per cent."""
    assert fmt.percent(share, decimals).replace(fmt.NBSP, " ") == text


@pytest.mark.parametrize(
    ("value", "text"), [(2.61, "2.6x"), (640.4, "640x"), (1000, "1,000x"), (1001, ">1000x"), (None, fmt.MISSING)]
)
def test_factors_over_a_thousand_are_told_by_their_order(value: float | None, text: str) -> None:
    """A speed-up of many thousands is no promise: it is capped."""
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
    """An intensity over 1e5 FLOP/B has an SI prefix, also below a heading that names the unit."""
    assert fmt.intensity(value).replace(fmt.NBSP, " ") == text
    assert fmt.bare_intensity(value).replace(fmt.NBSP, " ") == bare


@pytest.mark.parametrize(("percent", "text"), [(2.0, "2 %"), (0.0, "0 %"), (8.1, "8.1 %"), (39.0, "39 %")])
def test_per_cents_of_others_keep_their_digits(percent: float, text: str) -> None:
    """What NVIDIA writes as 2% is 2 %."""
    assert fmt.given_percent(percent).replace(fmt.NBSP, " ") == text


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
    """Numbers and truth values of templates stand without their casts; everything else of a name stays."""
    assert units.plain_name(name) == shown


def test_names_are_cut_in_the_middle() -> None:
    """A long name keeps its beginning and its end and has exactly the width asked for."""
    cut = units.cut_middle("void kernel<" + "float, " * 600 + "true>(int)", 40)
    assert len(cut) == 40
    assert cut.startswith("void kernel<")
    assert cut.endswith("true>(int)")
    assert units.cut_middle("short", 40) == "short"
