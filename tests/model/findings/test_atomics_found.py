"""Findings about atomics: by L2's unit, by traffic, and by instructions that warps wait for."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, make_facts, unsaid

from rooflens.model.findings.memory import contended_atomics

SOME = {"thread_opcodes": {"RED.E.ADD.STRONG.GPU": 3200, "ATOMG.E.ADD": 800, "ATOMS.ADD": 9999}}


@pytest.mark.parametrize(("busy", "said"), [(0.09, False), (0.10, True)])
def test_atomics_are_said_from_a_tenth_of_their_unit_on(busy: float, *, said: bool) -> None:
    """Atomics in shared memory do not reach L2 and are not counted."""
    found = contended_atomics(make_facts({"l2_atomic_share": busy}, kernel=SOME))
    assert (found is not None) is said
    if found is not None:
        assert "4.00 k atomic operations keep L2's atomic unit 10 % busy" in found.move
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(("busy", "severity"), [(0.59, "contributes"), (0.61, "limiter")])
def test_the_atomic_unit_is_a_wall_from_60_percent_on(busy: float, severity: str) -> None:
    """As for any unit, its share of the time is what can be saved."""
    found = contended_atomics(make_facts({"l2_atomic_share": busy}, kernel=SOME))
    assert found is not None
    assert (found.severity, found.gain) == (severity, pytest.approx(1 / (1 - busy)))


def test_atomics_cross_twice_in_the_traffic_of_a_full_l2() -> None:
    """100 of 1,000 sectors are atomics; with their return they are 200 of 1,100."""
    counters = {"atomic_inst": 50.0, "l2_atomic_sectors": 100.0, "l2_bytes": 32_000.0}
    found = contended_atomics(make_facts(counters, {"l2": 0.7}, **at_limiter("l2", 0.7)))
    assert found is not None
    assert "50.0 atomic instructions are 18 % of the traffic between SMs and L2" in found.move
    assert (found.severity, found.confidence) == ("contributes", "medium")
    assert found.gain == pytest.approx(1 / (1 - 0.7 * 200 / 1100))
    assert unsaid(found.evidence, found.move) == []


def test_few_instructions_count_where_warps_wait_for_memory() -> None:
    """Half of the accesses are atomics: with 60 % of the time in waits that is 30 %; without waits nothing."""
    opcodes = {"thread_opcodes": {"RED.E.ADD": 640}, "warp_opcodes": {"RED.E.ADD": 20, "LDG.E": 20, "FADD": 500}}
    waits = contended_atomics(make_facts(kernel={**opcodes, "stalls": {"long_scoreboard": 0.6, "wait": 0.4}}))
    assert waits is not None
    assert "are 50 % of its accesses to global memory" in waits.move
    assert waits.gain == pytest.approx(1 / 0.7)
    assert unsaid(waits.evidence, waits.move) == []
    assert contended_atomics(make_facts(kernel={**opcodes, "stalls": {"wait": 1.0}})) is None


def test_kernels_without_atomics_are_told_nothing() -> None:
    """A count of 0 means no atomics, whatever the unit's load."""
    assert contended_atomics(make_facts({"atomic_inst": 0.0, "l2_atomic_share": 0.5})) is None
    assert contended_atomics(make_facts({"l2_atomic_share": 0.5})) is None


_ALL_AT_WORK = {
    "sol_compute": 0.01, "sol_l1_active_share": 0.005, "grid_size": 4096.0, "sm_cycles_active_avg": 990.0,
    "sm_cycles_elapsed_avg": 1000.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("counters", "l2", "said"),
    [
        ({}, 0.04, True),
        ({}, 0.01, False),
        ({}, 0.3, False),
        ({"sm_cycles_active_avg": 500.0}, 0.04, False),
        ({"atomic_inst": 0.0}, 0.04, False),
    ],
)
def test_work_that_only_l2_sees_may_be_atomics(counters: dict[str, float], l2: float, *, said: bool) -> None:
    """All SMs wait, and L2 does four times what L1 and DRAM do: that is said as a guess, unless they were counted."""
    shares = {"l2": l2, "l1": 0.005, "dram": 0.005}
    found = contended_atomics(make_facts({**_ALL_AT_WORK, **counters}, shares))
    assert (found is not None) is said
    if found is not None:
        assert (found.confidence, found.severity, found.gain) == ("low", "contributes", None)
        assert found.move.startswith("if it uses atomics")
        assert unsaid(found.evidence, found.move) == []
