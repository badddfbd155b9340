"""A kernel's run by its series: ramp, plateau and tail."""

from __future__ import annotations

import pytest

from rooflens.model.records import RESIDENT, Series
from rooflens.model.verdict.phases import find_phases


def series(**shares: list[float | None]) -> Series:
    """Make a series of samples a microsecond apart."""
    return Series(1000.0, {unit: tuple(values) for unit, values in shares.items()})


def test_a_run_divides_into_ramp_plateau_and_tail() -> None:
    """Two samples of ramp, twelve at the top and six that fall off are a tenth, six tenths and three."""
    falling = [0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    found = find_phases(series(tensor_pipe=[0.1, 0.4, *[0.8] * 12, *falling], dram=[0.1] * 20))
    assert found is not None
    assert (found.resource, found.share) == ("tensor_pipe", pytest.approx(0.8))
    assert (found.ramp, found.plateau, found.tail) == pytest.approx((0.1, 0.6, 0.3))


def test_the_unit_with_the_highest_plateau_names_it() -> None:
    """A unit that peaks higher for a moment is no limiter; the one that stays up is."""
    found = find_phases(series(dram=[*[0.6] * 20], l2=[0.1] * 9 + [1.0] + [0.1] * 10))
    assert found is not None
    assert found.resource == "dram"


def test_a_short_dip_does_not_end_a_plateau() -> None:
    """Two low samples between high ones are flicker."""
    found = find_phases(series(dram=[*[0.9] * 8, 0.2, 0.3, *[0.9] * 10]))
    assert found is not None
    assert found.plateau == pytest.approx(1.0)


def test_warps_that_are_left_in_the_tail_are_told() -> None:
    """The mean of resident warps after the plateau over that on it."""
    found = find_phases(series(fma=[0.8] * 10 + [0.2] * 10, **{RESIDENT: [1.0] * 10 + [0.25] * 10}))
    assert found is not None
    assert found.warps_in_tail == pytest.approx(0.25)


@pytest.mark.parametrize("given", [None, series(), series(dram=[0.0] * 20), series(**{RESIDENT: [1.0] * 20})])
def test_without_a_busy_unit_there_are_no_phases(given: Series | None) -> None:
    """No samples, none of a unit with a roof, or nothing but zeros."""
    assert find_phases(given) is None
