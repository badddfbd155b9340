"""Findings about bank conflicts: from addresses, from counters, and collisions that are not conflicts."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, found_by, make_facts, unsaid

from rooflens.model.findings.memory import bank_conflicts
from rooflens.model.records import Hotspot


def _addresses(excess: float) -> dict[str, float]:
    return {"smem_access_wavefronts": 1000.0, "smem_ideal_wavefronts": 1000.0 - excess}


@pytest.mark.parametrize(("excess", "said"), [(99.0, False), (100.0, True)])
def test_conflicts_are_said_from_a_tenth_of_the_wavefronts_on(excess: float, *, said: bool) -> None:
    """The wavefronts that the addresses need are compared with those that their bytes would fill."""
    found = found_by(bank_conflicts, make_facts(_addresses(excess)))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []


def test_conflicts_say_how_many_passes_an_access_takes_and_where() -> None:
    """1,000 wavefronts where 125 would suffice: 8-way, at one line."""
    hot = Hotspot("line", "a.cu", 3, measures={"shared_excess_wavefronts": 875.0})
    totals = {"shared_wavefronts": 1000.0, "shared_excess_wavefronts": 875.0}
    found = found_by(bank_conflicts, make_facts(kernel={"code_totals": totals, "hotspots": (hot,)}))
    assert found is not None
    assert "8.00 per access" in found.move
    assert "88 % of the passes" in found.move
    assert found.where[0].hotspot is hot
    assert unsaid(found.evidence, found.move) == []


def test_shared_memory_at_its_peak_is_limited_by_conflicts() -> None:
    """Half of the limiter's wavefronts are replays: 2x."""
    found = found_by(bank_conflicts, make_facts(_addresses(500.0), {"smem": 0.8}, **at_limiter("smem", 0.8)))
    assert found is not None
    assert (found.severity, found.gain) == ("limiter", pytest.approx(2.0))


def test_conflicts_of_a_kernel_bound_elsewhere_are_a_note() -> None:
    """At 90 % of DRAM, 3 % of the time in shared memory cost nothing."""
    found = found_by(
        bank_conflicts, make_facts(_addresses(500.0), {"smem": 0.06, "dram": 0.9}, **at_limiter("dram", 0.9))
    )
    assert found is not None
    assert found.severity == "note"


def test_replays_are_counted_for_the_side_that_has_more() -> None:
    """A fifth of the stores' wavefronts, none of the loads'; stores are a fifth of all wavefronts: 4 % of the work."""
    counters = {
        "smem_load_conflict_wavefronts": 0.0,
        "smem_load_wavefronts": 800.0,
        "smem_store_conflict_wavefronts": 40.0,
        "smem_store_wavefronts": 200.0,
        "l1_shared_data_bytes": 128_000.0,
    }
    found = found_by(bank_conflicts, make_facts(counters, {"smem": 0.8}, **at_limiter("smem", 0.8)))
    assert found is not None
    assert "20 % of the passes, 1.25 per access" in found.move
    assert (found.severity, found.gain) == ("note", pytest.approx(1 / 0.96))
    assert found.confidence == "medium"


def test_replays_without_conflicting_addresses_are_collisions_and_no_reason_to_pad() -> None:
    """The hardware counts replays that padding cannot remove."""
    counters = {**_addresses(0.0), "smem_load_conflict_wavefronts": 300.0, "smem_load_wavefronts": 1000.0}
    found = found_by(bank_conflicts, make_facts(counters, {"smem": 0.9}, **at_limiter("smem", 0.9)))
    assert found is not None
    assert (found.severity, found.confidence) == ("note", "low")
    assert "pad" not in found.move
    assert unsaid(found.evidence, found.move) == []


def test_nothing_is_said_of_kernels_without_shared_memory() -> None:
    """Without wavefronts there is no share."""
    assert bank_conflicts(make_facts({"smem_access_wavefronts": 0.0, "smem_ideal_wavefronts": 0.0})) is None
    assert bank_conflicts(make_facts({"smem_conflict_bytes": 0.0, "l1_shared_data_bytes": 0.0})) is None


@pytest.mark.parametrize(
    ("counters", "said"),
    [
        ({"sm_count": 10.0, "elapsed_cycles": 1000.0}, "take 31 % of the cycles of an SM"),
        ({"sm_count": 10.0, "elapsed_cycles": 1e6}, None),
        ({"grid_size": 10.0, "block_size": 320.0}, "each warp meets 31.0 bank conflicts"),
        ({"grid_size": 1000.0, "block_size": 320.0}, None),
        ({}, None),
    ],
)
def test_conflicts_count_without_the_accesses(counters: dict[str, float], said: str | None) -> None:
    """3,100 of them are much for 10 SMs in 1,000 cycles, or for 100 warps, and nothing for 10,000."""
    found = found_by(bank_conflicts, make_facts({"smem_load_conflict_wavefronts": 3100.0, **counters}))
    assert (found is not None) is (said is not None)
    if found is not None:
        assert said in found.move.replace("\u00a0", " ")
        assert found.severity == "contributes"
        assert found.gain is None
        assert unsaid(found.evidence, found.move) == []
