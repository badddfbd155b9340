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


def test_names_are_cut_in_the_middle() -> None:
    """A long name keeps its beginning and its end and has exactly the width asked for."""
    cut = units.cut_middle("void kernel<" + "float, " * 600 + "true>(int)", 40)
    assert len(cut) == 40
    assert cut.startswith("void kernel<")
    assert cut.endswith("true>(int)")
    assert units.cut_middle("short", 40) == "short"
