"""What a waste costs, and what its removal wins, by the units that it keeps busy and the warps that wait for it."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, make_facts
from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.findings.cost import Waste, next_unit, speedup, weigh
from rooflens.model.records import Bottleneck


@pytest.mark.parametrize(
    ("waste", "gain"),
    [
        # Three quarters of L1's work, which takes a fifth of the time, and nobody knows what for the rest.
        (Waste({"l1": 0.75}), 1.25),
        # Warps wait half of their time for it: the waits go with three quarters of the work.
        (Waste({"l1": 0.75}, waits=0.75, stalls=("long_scoreboard",)), 2.0),
        # Paths of a branch, one after the other: the time is theirs, whatever the units do.
        (Waste({"l1": 0.5}, serial=0.6), 2.5),
        # A unit that was not measured may be busy all the time.
        (Waste({"l1": 0.75, "smem": 0.75}), 4.0),
    ],
)
def test_a_kernel_that_waits_wins_the_time_of_the_unit_or_of_the_wait(waste: Waste, gain: float) -> None:
    """L1 is the busiest unit, a fifth of the time, and half of the waiting is for global memory."""
    kernel = {"stalls": {"long_scoreboard": 0.5, "wait": 0.5}}
    assert speedup(make_facts({}, {"l1": 0.2}, kernel=kernel), waste) == pytest.approx(gain)


def test_waits_that_nobody_measured_leave_the_gain_of_a_waste_open() -> None:
    """DRAM is the busiest unit of a kernel that waits: what L1 does in vain may be what it waits for, or not."""
    waste, shares = Waste({"l1": 0.75}, waits=0.75, stalls=("long_scoreboard",)), {"l1": 0.2, "dram": 0.3}
    assert speedup(make_facts({}, shares), waste) is None
    assert speedup(make_facts({}, shares, kernel={"stalls": {"long_scoreboard": 0.4}}), waste) == pytest.approx(1 / 0.7)


def test_a_full_unit_ends_with_the_next_one() -> None:
    """Of an L1 at 80 % a half is waste: then DRAM, at 60 %, takes as long as it does today."""
    facts = make_facts({}, {"l1": 0.8, "dram": 0.6}, **at_limiter("l1", 0.8))
    assert speedup(facts, Waste({"l1": 0.5})) == pytest.approx(0.8 / 0.6)


def test_a_side_that_is_known_by_its_bytes_stays_busy_beside_a_waste() -> None:
    """DRAM at 73 % has no share of its own: half of L1's work, at a tenth of the time, wins the waits for it alone."""
    full = at_limiter("dram", 0.73)
    facts = make_facts({}, {"l1": 0.1}, stall_shares={"barrier": 0.1}, sides=(Bottleneck("dram", 0.73),), **full)
    assert speedup(facts, Waste({"l1": 0.5}, waits=0.5, stalls=("barrier",))) == pytest.approx(1 / 0.95)


@pytest.mark.parametrize(
    ("l1", "limiter", "near"),
    [(0.92, "l2", "l1"), (0.86, "l2", "l1"), (0.84, "l2", None), (0.92, "dram", None), (0.92, "l1", None)],
)
def test_waste_of_the_next_unit_is_not_minor(l1: float, limiter: str, near: str | None) -> None:
    """Within 10 points of a limiter at 95 % the kernel is near two limits: relieved of L2's work it is at L1's."""
    waste = Waste({"l1": 0.7})
    facts = make_facts({}, {limiter: 0.95, "l1": 0.95 if limiter == "l1" else l1}, **at_limiter(limiter, 0.95))
    assert next_unit(facts, waste) == near
    if limiter == "l2":
        assert weigh(facts, waste) == ("contributes" if near else "note")


def test_waste_of_the_next_unit_says_whose_turn_is_next() -> None:
    """Shared memory passes 4,000 wavefronts where 1,000 do; L2 is at 95 %, it at 92: padding alone wins little."""
    counters = {
        "smem_access_wavefronts": 4000.0,
        "smem_ideal_wavefronts": 1000.0,
        "l2_internal_share": 0.95,
        "sol_memory": 0.95,
        "l1_data_share": 0.92,
        "l1_shared_data_share": 0.92,
        "issue_active_share": 0.2,
    }
    finding = next(one for one in analyze(make_kernel(counters)).findings if one.id == "bank_conflicts")
    assert (finding.severity, finding.gain and finding.gain.factor > 1.05) == ("contributes", None)
    assert finding.move.replace("\u00a0", " ").endswith("SMEM is 92 % busy, and next once L2 is relieved")
