"""Findings about passes through L1 without counted addresses, in words suited to the default set."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, found_by, make_facts, unsaid

from rooflens.model.findings.memory import many_wavefronts
from rooflens.model.records import LEVELS, Level

_NO_SHARED = {"smem_static_per_block_bytes": 0.0, "smem_dynamic_per_block_bytes": 0.0}
_SHARED = {"smem_static_per_block_bytes": 4096.0, "smem_dynamic_per_block_bytes": 0.0}


@pytest.mark.parametrize(
    ("capability", "data", "taken", "each"),
    [("7.5", 0.42, 0.07, "12.0"), ("8.0", 0.42, 0.07, "6.00"), ("8.6", 0.4, 0.2, None), ("13.0", 0.42, 0.07, None)],
)
def test_shares_tell_the_passes_of_an_instruction(capability: str, data: float, taken: float, each: str | None) -> None:
    """The LSU takes an instruction every second cycle, on HPC chips every cycle; four passes may be wide loads."""
    counters = {"l1_data_share": data, "l1_lsu_input_share": taken, **_NO_SHARED}
    found = found_by(many_wavefronts, make_facts(counters, {"l1": data}, kernel={"compute_capability": capability}))
    assert (found is not None) is (each is not None)
    if found is not None:
        assert f"takes {each} L1 passes" in found.move.replace("\u00a0", " ")
        assert unsaid(found.evidence, found.move) == []
        assert found.severity == "contributes"


def test_sums_tell_it_of_any_chip_and_shared_memory_may_be_the_reason() -> None:
    """8,000 wavefronts for 1,000 instructions: half of the passes can go, and only L1 is busy."""
    counters = {"l1_data_bytes": 8000.0 * 128, "lsu_inst": 1000.0, **_SHARED}
    found = found_by(many_wavefronts, make_facts(counters, {"l1": 0.5}))
    assert found is not None
    assert found.move.startswith("pad or swizzle shared memory")
    assert found.gain == pytest.approx(2.0)


@pytest.mark.parametrize("counted", ["global_load_sectors", "smem_conflict_bytes"])
def test_counted_addresses_say_more(counted: str) -> None:
    """Then sectors and conflicts are distinguished."""
    counters = {"l1_data_bytes": 8000.0 * 128, "lsu_inst": 1000.0, counted: 1.0}
    assert many_wavefronts(make_facts(counters, {"l1": 0.5})) is None


def test_operands_of_matrix_instructions_are_no_replays() -> None:
    """They pass through the data stage without an LSU instruction."""
    counters = {"l1_data_bytes": 8000.0 * 128, "lsu_inst": 1000.0}
    assert many_wavefronts(make_facts(counters, {"l1": 0.5, "tensor_pipe": 0.3})) is None


@pytest.mark.parametrize(("l1", "severity"), [(0.4, "limiter"), (0.2, "note")])
def test_a_kernel_that_waits_beside_a_busy_l1_waits_for_its_passes(l1: float, severity: str) -> None:
    """DRAM is as busy, so no gain can be modelled; without stalls the wait has no better explanation."""
    counters = {"l1_data_bytes": 12000.0 * 128, "lsu_inst": 1000.0, **_NO_SHARED}
    found = found_by(many_wavefronts, make_facts(counters, {"l1": l1, "dram": 0.4}))
    assert found is not None
    assert (found.severity, found.gain) == (severity, pytest.approx(1.0))


@pytest.mark.parametrize(
    ("capability", "sm", "each"), [("8.6", 0.12, "16.7"), ("8.6", 0.9, None), ("9.0", 0.12, None), ("13.0", 0.12, None)]
)
def test_the_per_cent_of_the_sm_bounds_the_instructions_that_fill_l1(
    capability: str, sm: float, each: str | None
) -> None:
    """L1 is full while the SM, including the LSU with an instruction every second cycle, is 12 % busy."""
    levels = {name: Level() for name in LEVELS} | {"l1": Level(share=1.0, stages={"throughput": 1.0})}
    counters = {"sol_compute": sm, **_NO_SHARED}
    facts = make_facts(counters, levels=levels, kernel={"compute_capability": capability}, **at_limiter("l1", 1.0))
    found = found_by(many_wavefronts, facts)
    assert (found is not None) is (each is not None)
    if found is not None:
        assert f"takes {each} L1 passes" in found.move.replace("\u00a0", " ")
        assert (found.kind, found.severity) == ("coalesce", "limiter")


@pytest.mark.parametrize(("sm", "each"), [(0.05, "9.00"), (0.2, None)])
def test_the_per_cent_of_l1_bounds_them_where_it_may_count_requests_twice(sm: float, each: str | None) -> None:
    """Half of L1's 90 % are passes for certain, and the LSU takes no more than an instruction a cycle."""
    counters = {
        "sol_l1_active_share": 0.9, "sol_compute": sm, "sm_cycles_active_avg": 1000.0, "sm_cycles_elapsed_avg": 1000.0,
        **_NO_SHARED,
    }  # fmt: skip
    found = found_by(
        many_wavefronts, make_facts(counters, kernel={"compute_capability": "8.0"}, **at_limiter("l1", 0.9))
    )
    assert (found is not None) is (each is not None)
    if found is not None:
        assert f"takes {each} L1 passes" in found.move.replace("\u00a0", " ")


@pytest.mark.parametrize(("hits", "kind"), [(0.9, "coalesce"), (0.01, "pad"), (None, "coalesce")])
def test_what_passes_are_of_shows_in_the_hits(hits: float | None, kind: str) -> None:
    """Where the launch was not printed: shared memory has no hits in L1; addresses come first where nothing tells."""
    counters = {"l1_data_bytes": 12000.0 * 128, "lsu_inst": 1000.0} | ({} if hits is None else {"l1_hit_rate": hits})
    found = found_by(many_wavefronts, make_facts(counters, {"l1": 0.4}))
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(("taken", "said"), [(0.0002, False), (0.009, False), (0.02, True)])
def test_nothing_is_divided_by_a_per_cent_of_one_digit(taken: float, *, said: bool) -> None:
    """A print has hundredths: `0.02 %` may be half as much again, and a unit that idles tells nothing of accesses."""
    counters = {"sol_compute": taken, "sol_l1_active_share": 0.3, "sm_cycles_active_avg": 1.0, "elapsed_cycles": 2.0}
    facts = make_facts(counters, {"l1": 0.1}, kernel={"compute_capability": "7.5"})
    assert (many_wavefronts(facts) is not None) is said


@pytest.mark.parametrize(
    ("blocks", "gain"),
    [
        # Half of the passes can go, and L1 works 20 % of the time: at most those 20 % are won.
        (None, 1 / 0.8),
        (10.0, 1 / 0.8),
        # Of 10 SMs four have a block: L1 of these works half of the time.
        (4.0, 2.0),
    ],
)
def test_no_more_is_won_than_the_time_its_unit_works(blocks: float | None, gain: float) -> None:
    """Where nothing is full and no wait is known, the rest of the time goes to something else."""
    counters = {"l1_data_bytes": 16000.0 * 128, "lsu_inst": 1000.0, "sm_count": 10.0, "grid_size": blocks, **_SHARED}
    known = {name: value for name, value in counters.items() if value is not None}
    found = found_by(many_wavefronts, make_facts(known, {"l1": 0.2, "smem": 0.0}))
    assert found is not None
    assert found.gain == pytest.approx(gain)
