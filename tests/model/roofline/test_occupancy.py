from __future__ import annotations

import pytest
from support.kernels import make_kernel

from rooflens.model.roofline.occupancy import LIMITERS, Occupancy, find_occupancy, tail_share

LIMITED = {
    "achieved_occupancy": 0.36,
    "theoretical_occupancy": 0.5,
    "blocks_limit_registers": 2.0,
    "blocks_limit_smem": 2.0,
    "blocks_limit_warps": 4.0,
    "blocks_limit_blocks": 32.0,
    "waves": 1.25,
}


def test_occupancy_of_a_limited_launch() -> None:
    """Both per cents, the limits from the scarcest on, those that tie, and the idle part of the last wave."""
    found = find_occupancy(make_kernel(LIMITED))
    assert (found.achieved, found.theoretical) == (0.36, 0.5)
    assert found.block_limits[0] == ("registers", 2.0)
    assert [blocks for _, blocks in found.block_limits] == [2.0, 2.0, 4.0, 32.0]
    assert found.limiters == ("registers", "shared memory")
    assert found.tail_share == pytest.approx(0.375)


def test_a_launch_that_fills_every_slot_is_not_limited() -> None:
    """With a theoretical occupancy of 100 % the scarcest resource limits nothing."""
    assert find_occupancy(make_kernel({**LIMITED, "theoretical_occupancy": 1.0})).limiters == ()


def test_nothing_stored_is_nothing_known() -> None:
    """A report without launch counters gives no value, and none is taken as zero."""
    assert find_occupancy(make_kernel()) == Occupancy()


@pytest.mark.parametrize(
    ("waves", "idle"), [(0.0, None), (0.25, 0.75), (1.0, 0.0), (1.25, 0.375), (2.0, 0.0), (9.5, 0.05)]
)
def test_what_the_last_wave_leaves_idle(waves: float, idle: float | None) -> None:
    """A wave that is not full takes as long as a full one."""
    assert tail_share(waves) == (None if idle is None else pytest.approx(idle))


def test_each_limit_has_its_own_name() -> None:
    """No two limits read alike."""
    assert len(set(LIMITERS.values())) == len(LIMITERS)
