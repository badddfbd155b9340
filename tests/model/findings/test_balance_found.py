"""Findings about idle units: grids, waves, SMs and slices, near their thresholds, and their largest gains."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, findings_of, make_facts, unsaid

from rooflens.model.findings.launch import load_imbalance, low_occupancy, partition_imbalance, small_grid, tail_wave
from rooflens.model.records import Phases
from rooflens.model.verdict.decide import make_verdict


def _severity(facts_id: str, **parts: object) -> str:
    findings = findings_of(make_facts(**parts))  # type: ignore[arg-type]
    return next(finding.severity for finding in findings if finding.id == facts_id)


@pytest.mark.parametrize(
    ("waves", "blocks", "said"),
    [
        (1.0, 108.0, False),
        (0.99, 108.0, True),
        (2.0, 107.0, True),
        (0.5, None, True),
        (None, 3.0, True),
        (None, 108.0, False),
    ],
)
def test_a_grid_is_small_below_one_wave_or_one_block_an_sm(
    waves: float | None, blocks: float | None, *, said: bool
) -> None:
    """108 SMs are filled by as many blocks in one wave."""
    found = small_grid(make_facts({"waves": waves, "grid_size": blocks, "sm_count": 108.0}))
    assert (found is not None) is said
    if found is not None and blocks is not None:
        assert unsaid(found.evidence, found.move) == []


def test_a_third_of_a_wave_promises_three_times_and_no_more_than_the_busiest_unit_allows() -> None:
    """A third of a wave gives 3x, or 2x with a unit at half its peak."""
    counters = {"waves": 1 / 3, "grid_size": 36.0, "sm_count": 108.0}
    free, held = small_grid(make_facts(counters, {"l2": 0.2})), small_grid(make_facts(counters, {"l2": 0.5}))
    assert free is not None
    assert held is not None
    assert (free.gain, held.gain) == (pytest.approx(3), 2)


def test_nothing_is_promised_to_a_kernel_as_short_as_its_launch() -> None:
    """One block that runs for 2 us would not run 224 times faster in a full grid."""
    found = small_grid(make_facts({"duration_ns": 2000.0, "waves": 1 / 224, "grid_size": 1.0, "sm_count": 14.0}))
    assert found is not None
    assert found.gain is None


def test_a_waste_of_a_fiftieth_of_the_time_is_no_move() -> None:
    """Of 148 SMs at most 7 blocks each, 1,024 blocks leave 1.2 % of the time idle, and 957 leave 7.6 %."""
    for blocks, severity in ((1024.0, "note"), (957.0, "contributes")):
        few = {"waves": 0.86, "grid_size": blocks, "sm_count": 148.0}
        assert _severity("small_grid", counters=few, shares={"alu": 0.7}, **at_limiter("alu", 0.7)) == severity


def test_a_small_grid_limits_where_sms_are_empty_or_half_empty() -> None:
    """If each SM has half of its blocks, work is everywhere, and the small grid only contributes."""
    few = {"waves": 0.8, "grid_size": 54.0, "sm_count": 108.0}
    some = {"waves": 0.51, "grid_size": 216.0, "sm_count": 108.0}
    assert _severity("small_grid", counters=few) == "limiter"
    assert _severity("small_grid", counters=some) == "contributes"
    assert _severity("small_grid", counters={**some, "waves": 0.5}) == "limiter"


def test_a_factor_that_no_unit_bounds_is_not_promised() -> None:
    """One thread that runs for a millisecond would not run a thousand times faster: the code is serial."""
    counters = {"waves": 0.001, "grid_size": 1.0, "sm_count": 82.0}
    found = small_grid(make_facts(counters, {"l2": 0.001}, top_share=None))
    assert found is not None
    assert found.gain is None


@pytest.mark.parametrize(
    ("blocks", "threads", "time_ns", "first"),
    [
        (1.0, 1.0, 5e4, "spread the work over the GPU, as all of it runs in 1 thread: 1 block for 82 SMs"),
        (1.0, 32.0, 5e4, "spread the work over the GPU, as all of it runs in 32 threads: 1 block for 82 SMs"),
        (8.0, 256.0, 5e4, "launch more blocks: split the work finer, split the reduction, or batch: 8 blocks for 82"),
        (1.0, 1.0, 4.9e4, "keep more loads in flight"),
    ],
)
def test_a_launch_that_leaves_nearly_the_whole_gpu_idle_is_spread_first(
    blocks: float, threads: float, time_ns: float, first: str
) -> None:
    """Applies below a tenth of the SMs and from ten times a launch on; its effect is unknown, so it has no figure."""
    stall = {"stall_long_scoreboard_cycles": 24.0, "stall_long_scoreboard_share": 0.8, "warp_latency_cycles": 30.0}
    grid = {"waves": blocks / 1312, "grid_size": blocks, "sm_count": 82.0, "block_size": threads}
    idle = {"eligible_warps_per_cycle": 0.03, "issue_active_per_cycle": 0.03, "duration_ns": time_ns}
    facts = make_facts({**stall, **grid, **idle}, {"l2": 0.001}, confidence="high")
    moves = make_verdict(facts, findings_of(facts)).moves
    assert moves[0].text.startswith(first), [move.text for move in moves]
    assert (moves[0].gain is None) is (moves[0].kind == "blocks")
    assert ("a block on every SM makes it at most" in moves[0].text) is (moves[0].kind == "blocks")


TAIL = {"waves": 1.5, "elapsed_cycles": 1000.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sm_cycles_active_avg": 901.0}, False),
        ({"sm_cycles_active_avg": 899.0}, True),
        ({"sm_cycles_active_avg": 600.0, "waves": 2.0}, False),
        ({"sm_cycles_active_avg": 600.0, "waves": 0.5}, False),
        ({}, False),
    ],
)
def test_a_tail_needs_a_partial_wave_and_10_percent_measured_idle(changes: dict[str, float], *, said: bool) -> None:
    """The computed tail, here a quarter, is not evidence."""
    found = tail_wave(make_facts({**TAIL, **changes}))
    assert (found is not None) is said
    if found is not None:
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(("active", "speedup"), [(850.0, 1 / 0.85), (500.0, 2 / 1.5)])
def test_a_tail_promises_the_smaller_of_the_measured_and_the_computed(active: float, speedup: float) -> None:
    """1.5 waves take the time of two, so whole waves can give at most 4/3."""
    found = tail_wave(make_facts({**TAIL, "sm_cycles_active_avg": active}))
    assert found is not None
    assert "of 1.50 waves (a wave fills all SMs once) the last is 50 % full" in found.move
    assert found.gain == pytest.approx(speedup)


def test_idle_sms_after_many_waves_are_imbalance_and_the_tail_is_a_note() -> None:
    """4.74 waves leave a twentieth idle; 27 % idle come from blocks that take longer than others."""
    counters = {"waves": 4.74, "elapsed_cycles": 1000.0, "sm_cycles_active_avg": 730.0}
    assert _severity("tail_wave", counters=counters) == "note"
    found = load_imbalance(make_facts(counters))
    assert found is not None
    assert found.confidence == "medium"
    assert found.gain == pytest.approx(1 / (1 - (0.27 - 0.052)), rel=1e-3)
    assert unsaid(found.evidence, found.move) == []
    assert load_imbalance(make_facts({**counters, "duration_ns": 19000.0})) is None


UNEVEN = {"sm_cycles_active_avg": 700.0, "sm_cycles_elapsed_avg": 1000.0}


@pytest.mark.parametrize(("busiest", "said"), [(750.0, False), (760.0, True)])
def test_imbalance_is_said_where_evenness_would_save_5_percent(busiest: float, *, said: bool) -> None:
    """(1 - 700/750) x 0.7 = 4.7 %; (1 - 700/760) x 0.7 = 5.5 %."""
    found = load_imbalance(make_facts({**UNEVEN, "sm_cycles_active_max": busiest}))
    assert (found is not None) is said


@pytest.mark.parametrize(
    ("busiest", "ratio", "is_note"), [(840.0, 4.2, True), (880.0, 1.1, True), (950.0, 1.1875, False)]
)
def test_sms_that_never_have_a_block_are_a_note_and_the_others_count(
    busiest: float, ratio: float, *, is_note: bool
) -> None:
    """27 blocks on 108 SMs: 200 cycles of the mean SM are 800 of a working SM; up to 840 is even enough."""
    counters = {"grid_size": 27.0, "sm_count": 108.0, "sm_cycles_elapsed_avg": 1000.0}
    counters |= {"sm_cycles_active_avg": 200.0, "sm_cycles_active_max": busiest}
    found = load_imbalance(make_facts(counters))
    assert found is not None
    assert found.evidence[0].value == pytest.approx(ratio)
    assert (found.severity == "note") is is_note
    assert ("launch a block for every SM" in found.move) is (ratio > 2)
    assert unsaid(found.evidence, found.move) == []


def test_the_most_uneven_kind_of_unit_is_the_one_that_is_said() -> None:
    """Sub-partitions of an SM can be uneven while the SMs are even."""
    counters = {
        **UNEVEN,
        "sm_cycles_active_max": 760.0,
        "smsp_cycles_active_avg": 500.0,
        "smsp_cycles_active_max": 1000.0,
        "smsp_cycles_elapsed_avg": 1000.0,
    }
    found = load_imbalance(make_facts(counters))
    assert found is not None
    assert "the busiest SM sub-partition works 2.00x" in found.move
    assert found.gain == pytest.approx(1 / (1 - 0.5 * 0.5))
    assert unsaid(found.evidence, found.move) == []


def test_imbalance_worth_less_than_a_tenth_is_a_note() -> None:
    """A gain of half a tenth is worth a note only."""
    assert _severity("load_imbalance", counters={**UNEVEN, "sm_cycles_active_max": 760.0}) == "note"
    assert _severity("load_imbalance", counters={**UNEVEN, "sm_cycles_active_max": 1000.0}) == "limiter"


def test_a_tail_in_the_time_series_is_imbalance() -> None:
    """Half of the run with a third of the warps wastes a third of it."""
    facts = make_facts(phases=Phases("tensor_pipe", 0.76, 0.1, 0.4, 0.5, warps_in_tail=1 / 3))
    found = load_imbalance(facts)
    assert found is not None
    assert found.gain == pytest.approx(1.5)
    assert unsaid(found.evidence, found.move) == []


def test_uneven_slices_count_by_the_time_in_which_they_work() -> None:
    """With hardly any DRAM traffic, one channel with six times as much is noise; a busy L2 at 1.23x is not."""
    noise = {"dram_cycles_active_avg": 1.0, "dram_cycles_active_max": 6.0, "dram_cycles_elapsed_avg": 1000.0}
    assert partition_imbalance(make_facts(noise)) is None
    real = {"l2_cycles_active_avg": 600.0, "l2_cycles_active_max": 738.0, "l2_cycles_elapsed_avg": 1000.0}
    found = partition_imbalance(make_facts({**noise, **real}))
    assert found is not None
    assert "the busiest L2 slice works 1.23x" in found.move
    assert unsaid(found.evidence, found.move) == []
    assert partition_imbalance(make_facts({"l2_cycles_active_avg": 600.0, "l2_cycles_active_max": 738.0})) is None


def test_uneven_slices_limit_a_kernel_that_the_same_level_bounds() -> None:
    """If L2 is the limiter, its uneven slices are too."""
    counters = {"l2_cycles_active_avg": 600.0, "l2_cycles_active_max": 900.0, "l2_cycles_elapsed_avg": 1000.0}
    parts = {"counters": counters, "shares": {"l2": 0.7}, **at_limiter("l2", 0.7)}
    assert _severity("partition_imbalance", **parts) == "limiter"


def test_a_grid_of_one_block_leads_although_its_factor_cannot_be_told() -> None:
    """One block on 82 SMs precedes its wait for memory, half of 23.7 of 30.1 cycles: 1 / (1 - 0.394) = 1.65x."""
    counters = {"waves": 0.00076, "grid_size": 1.0, "sm_count": 82.0, "duration_ns": 249e6}
    counters |= {"stall_long_scoreboard_cycles": 23.7, "warp_latency_cycles": 30.1, "issue_active_per_cycle": 0.033}
    facts = make_facts(counters, {"l2": 0.0003}, top_share=None)
    limiters = [finding for finding in findings_of(facts) if finding.severity == "limiter"]
    assert [finding.id for finding in limiters] == ["small_grid", "stall_long_scoreboard"]
    assert limiters[0].gain is None
    assert limiters[1].gain is not None
    assert limiters[1].gain.factor == pytest.approx(1.65, rel=0.01)


_SHORT_OF_ONE_WAVE = {
    "waves": 1.1,
    "sm_cycles_active_avg": 700.0,
    "sm_cycles_elapsed_avg": 1000.0,
    "grid_size": 128.0,
    "sm_count": 58.0,
    "block_size": 512.0,
    "registers_per_thread": 62.0,
    "blocks_limit_registers": 2.0,
    "blocks_limit_smem": 2.0,
    "blocks_limit_warps": 3.0,
    "smem_static_per_block_bytes": 40_000.0,
    "smem_dynamic_per_block_bytes": 0.0,
    "smem_driver_bytes": 1024.0,
}
"""128 blocks on 58 SMs that hold two each: three each would be one wave."""


@pytest.mark.parametrize(
    ("changes", "capability", "kind"),
    [
        ({}, "8.9", "occupancy"),
        ({"blocks_limit_warps": 2.0}, "8.9", "balance"),  # no more warps fit
        ({"smem_static_per_block_bytes": 90_000.0}, "8.9", "balance"),  # a third of the tile would be left
        ({}, "9.9", "balance"),  # the shared memory of its SMs is unknown
        ({"waves": 2.6, "grid_size": 300.0}, "8.9", "occupancy"),  # three each make two waves of three
    ],
)
def test_a_last_wave_goes_where_sms_can_hold_as_many_blocks_as_spare_it(
    changes: dict[str, float], capability: str, kind: str
) -> None:
    """Three blocks of 512 threads leave 40 registers per thread, and 33 kB of an SM's 102 kB per block."""
    found = tail_wave(
        make_facts({**_SHORT_OF_ONE_WAVE, **changes}, {"l1": 0.3}, kernel={"compute_capability": capability})
    )
    assert found is not None
    assert found.kind == kind
    assert ("let SMs hold 3 blocks at once instead of 2" in found.move) is (kind == "occupancy")
    if not changes and kind == "occupancy":
        assert "at most 40 registers per thread, now 62" in found.move
        assert "at most 33.0 kB of shared memory per block, now 40.0 kB" in found.move


@pytest.mark.parametrize("opcode", ["HGMMA.64x128x16.F32", "UTMALDG.2D", "UBLKCP"])
def test_kernels_of_warpgroups_and_tma_are_not_told_to_raise_occupancy(opcode: str) -> None:
    """A few such warps fill an SM by design, so neither low occupancy nor a last wave calls for more."""
    counters = {**_SHORT_OF_ONE_WAVE, "theoretical_occupancy": 0.25}
    kernel = {"compute_capability": "8.9", "warp_opcodes": {opcode: 100, "IADD3": 900}}
    facts = make_facts(counters, {"l1": 0.3}, kernel=kernel)
    tail = tail_wave(facts)
    assert low_occupancy(facts) is None
    assert tail is not None
    assert tail.kind == "balance"
    plain = make_facts(counters, {"l1": 0.3}, kernel={**kernel, "warp_opcodes": {"HMMA.16816.F32": 100}})
    assert low_occupancy(plain) is not None


@pytest.mark.parametrize(
    ("blocks", "time_ns", "said"), [(1.0, 1_000_000, True), (1.0, 5_000, False), (2.0, 1_000_000, False)]
)
def test_one_block_leaves_all_sms_but_one_idle_on_any_gpu(blocks: float, time_ns: float, *, said: bool) -> None:
    """No print need say how many SMs there are; a kernel as short as its launch may be one block by right."""
    found = small_grid(make_facts({"grid_size": blocks, "duration_ns": time_ns}))
    assert (found is not None) is said
    if found is not None:
        assert "1 block, on one SM" in found.move
        assert found.gain is None
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(
    ("atomics", "kind", "gain"),
    [
        # The busiest slice works 900 of 1,000 cycles, the average one 300: 60 % of the time goes with the queue.
        ({"l2_atomic_sectors": 500.0, "l2_bytes": 32000.0}, "atomics", 2.5),
        ({"l2_atomic_sectors": 10.0, "l2_bytes": 32000.0}, None, 1 / 0.8),
        ({}, None, 1 / 0.8),
    ],
)
def test_atomics_that_queue_up_at_one_slice(atomics: dict[str, float], kind: str | None, gain: float) -> None:
    """Many threads that update few addresses keep one slice of L2 busy; strides that do are spread by padding."""
    cycles = {"l2_cycles_active_avg": 300.0, "l2_cycles_active_max": 900.0, "l2_cycles_elapsed_avg": 1000.0}
    found = partition_imbalance(make_facts({**cycles, **atomics}, {"l2": 0.1}))
    assert found is not None
    assert (found.kind, found.gain) == (kind, pytest.approx(gain))
    assert ("atomics" in found.move) is (kind == "atomics")
