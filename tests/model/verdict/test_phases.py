"""A kernel's run divided by its series: ramp, plateau and tail."""

from __future__ import annotations

import pytest

from rooflens.model.records import RESIDENT, Series
from rooflens.model.verdict.phases import find_phases


def series(**shares: list[float | None]) -> Series:
    """Make a series of samples a microsecond apart."""
    return Series(1000.0, {unit: tuple(values) for unit, values in shares.items()})


def test_a_run_divides_into_ramp_plateau_and_tail() -> None:
    """Two samples of ramp, twelve at the top and six that fall off are a tenth, six tenths and three tenths."""
    falling = [0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    found = find_phases(series(tensor_pipe=[0.1, 0.4, *[0.8] * 12, *falling], dram=[0.1] * 20))
    assert found is not None
    assert (found.resource, found.share) == ("tensor_pipe", pytest.approx(0.8))
    assert (found.ramp, found.plateau, found.tail) == pytest.approx((0.1, 0.6, 0.3))


def test_the_unit_with_the_highest_plateau_names_it() -> None:
    """A unit that is higher only for a moment is not the limiter; the one that stays high is."""
    found = find_phases(series(dram=[*[0.6] * 20], l2=[0.1] * 9 + [1.0] + [0.1] * 10))
    assert found is not None
    assert found.resource == "dram"


def test_a_short_dip_does_not_end_a_plateau() -> None:
    """Two low samples between high ones are noise."""
    found = find_phases(series(dram=[*[0.9] * 8, 0.2, 0.3, *[0.9] * 10]))
    assert found is not None
    assert found.plateau == pytest.approx(1.0)


def test_warps_that_are_left_in_the_tail_are_told() -> None:
    """The figure is the mean of resident warps after the plateau, divided by that on it."""
    found = find_phases(series(fma=[0.8] * 10 + [0.2] * 10, **{RESIDENT: [1.0] * 10 + [0.25] * 10}))
    assert found is not None
    assert found.warps_in_tail == pytest.approx(0.25)


@pytest.mark.parametrize("given", [None, series(), series(dram=[0.0] * 20), series(**{RESIDENT: [1.0] * 20})])
def test_without_a_busy_unit_there_are_no_phases(given: Series | None) -> None:
    """Without samples, without a unit that has a roof, or with only zeros there are no phases."""
    assert find_phases(given) is None
