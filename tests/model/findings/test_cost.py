"""What a waste costs, and what its removal wins, by the units that it keeps busy and the warps that wait for it."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, make_facts

from rooflens.model.findings.cost import Waste, speedup


@pytest.mark.parametrize(
    ("waste", "gain"),
    [
        # Three quarters of L1's work, which takes a fifth of the time, and nobody knows what for the rest.
        (Waste({"l1": 0.75}), 1.25),
        # Warps wait half of their time for it: the waits go with three quarters of the work.
        (Waste({"l1": 0.75}, waits=0.75, stalls=("long_scoreboard",)), 2.0),
        # Paths of a branch, one after the other: the time is theirs, whatever the units do.
        (Waste({"l1": 0.75}, serial=True), 4.0),
        # A unit that was not measured may be busy all the time.
        (Waste({"l1": 0.75, "smem": 0.75}), 4.0),
    ],
)
def test_a_kernel_that_waits_wins_the_time_of_the_unit_or_of_the_wait(waste: Waste, gain: float) -> None:
    """L1 is the busiest unit, a fifth of the time, and half of the waiting is for global memory."""
    kernel = {"stalls": {"long_scoreboard": 0.5, "wait": 0.5}}
    assert speedup(make_facts({}, {"l1": 0.2}, kernel=kernel), waste) == pytest.approx(gain)


def test_a_full_unit_ends_with_the_next_one() -> None:
    """Of an L1 at 80 % a half is waste: then DRAM, at 60 %, takes as long as it does today."""
    facts = make_facts({}, {"l1": 0.8, "dram": 0.6}, **at_limiter("l1", 0.8))
    assert speedup(facts, Waste({"l1": 0.5})) == pytest.approx(0.8 / 0.6)
