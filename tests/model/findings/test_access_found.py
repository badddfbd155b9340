"""Findings about the addresses of global loads and stores: which measure is used, and the cost."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, found_by, make_facts, unsaid
from support.loops import for_all

from rooflens.model.findings.memory import access_bytes, uncoalesced_global_load, uncoalesced_global_store
from rooflens.model.records import LEVELS, Hotspot, Level


def _totals(excess: float, side: str = "load", sectors: float = 1e6) -> dict[str, float]:
    other = "store" if side == "load" else "load"
    return {
        f"{side}_sectors": sectors,
        f"{side}_excess_sectors": excess,
        f"{other}_sectors": 0.0,
        f"{other}_excess_sectors": 0.0,
    }


@pytest.mark.parametrize(("excess", "said"), [(99_000, False), (101_000, True)])
def test_loads_are_uncoalesced_from_a_tenth_of_the_sectors_on(excess: float, *, said: bool) -> None:
    """The sectors of each load instruction are compared with those its bytes would fill; stores are not counted."""
    facts = make_facts(kernel={"code_totals": _totals(excess)})
    found = found_by(uncoalesced_global_load, facts)
    assert (found is not None) is said
    assert uncoalesced_global_store(facts) is None
    if found is not None:
        assert "global loads waste 10 % of their 1.00 M sectors" in found.move
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(
    ("more", "accesses", "threads", "shifted"),
    [
        (125_000, 125_000.0, 32.0, True),
        (125_000, 118_000.0, 32.0, False),
        (125_000, 125_000.0, 23.0, False),
        (125_000, 600_000.0, 32.0, False),
    ],
)
def test_rows_that_start_within_a_sector_are_told_to_start_at_one(
    more: float, accesses: float, threads: float, *, shifted: bool
) -> None:
    """A whole warp with one sector more than the 8 it fills is shifted; with more sectors, or fewer filled, not."""
    counters = {"global_load_requests": accesses, "threads_per_inst": threads}
    kernel = {"code_totals": _totals(more, sectors=1_125_000.0)}
    found = found_by(uncoalesced_global_load, make_facts(counters, {"l2": 0.7}, kernel=kernel))
    assert found is not None
    assert found.move.startswith("start rows on 32-byte boundaries") is shifted
    assert ("neighbouring addresses" in found.move) is not shifted


@for_all(
    "load, store, excess, said",
    [
        ((29_821.0, 2048.0), (16_384.0, 2048.0), 16_384.0, "global loads waste 55 % of their 29.8 k sectors"),
        (
            (75_500_000.0, 8_388_608.0),
            (262_144.0, 8192.0),
            50_000_000.0,
            "global loads waste 66 % of their 75.5 M sectors",
        ),
        ((16_384.0, 2048.0), (16_000.0, 2048.0), 8_000.0, ""),
    ],
)
def test_what_one_side_cannot_have_wasted_is_the_others(
    load: tuple[float, float], store: tuple[float, float], excess: float, said: str
) -> None:
    """Raw counters have one sum over loads and stores, and sectors and requests for each."""
    counters = {"global_touched_sectors": load[0] + store[0], "global_ideal_sectors": load[0] + store[0] - excess}
    for side, (sectors, requests) in {"load": load, "store": store}.items():
        counters |= {f"global_{side}_sectors": sectors, f"global_{side}_requests": requests}
    found = found_by(uncoalesced_global_load, make_facts(counters))
    assert (found.move.replace("\u00a0", " ") if found else "").count(said) >= (1 if said else 0)
    assert (found is not None) is bool(said)


@pytest.mark.parametrize(("limiter", "severity"), [("dram", "note"), ("l2", "contributes")])
def test_shifted_rows_cost_time_where_the_cache_is_the_wall(limiter: str, severity: str) -> None:
    """A ninth of L2's sectors is a ninth of the time if L2 is the limiter; if DRAM is, it costs nothing."""
    kernel = {"code_totals": _totals(125_000, sectors=1_125_000.0), "warp_opcodes": {"LDG.E.64": 125_000}}
    shares = {"l2": 0.7, "dram": 0.5, limiter: 0.75}
    facts = make_facts({}, shares, kernel=kernel, **at_limiter(limiter, 0.75))
    found = found_by(uncoalesced_global_load, facts)
    assert found is not None
    assert found.severity == severity


def test_the_instructions_that_waste_most_tell_shifted_rows_from_few_scattered_ones() -> None:
    """On average one sector more per access, but one instruction in thirty takes 30 of them alone."""
    spot = {"load_sectors": 150_000.0, "load_excess_sectors": 125_000.0, "warp_inst": 5_000.0, "thread_inst": 160_000.0}
    kernel = {"code_totals": _totals(125_000), "hotspots": (Hotspot("sass", "LDG", 0, measures=spot),)}
    found = found_by(uncoalesced_global_load, make_facts({"global_load_requests": 125_000.0}, kernel=kernel))
    assert found is not None
    assert "let neighbouring threads read neighbouring addresses" in found.move


def test_stores_are_told_from_loads() -> None:
    """Three quarters of the sectors touched by stores are unnecessary: only stores are named, with their line."""
    hot = Hotspot("line", "a.cu", 7, measures={"store_excess_sectors": 600_000.0})
    facts = make_facts(kernel={"code_totals": _totals(750_000, "store"), "hotspots": (hot,)})
    found = found_by(uncoalesced_global_store, facts)
    assert found is not None
    assert "write" in found.move
    assert "75 %" in found.move
    assert [(place.hotspot, place.share) for place in found.where] == [(hot, 0.8)]
    assert uncoalesced_global_load(facts) is None


def test_the_wall_that_does_half_of_its_work_in_vain_is_limited_by_it() -> None:
    """Half of what fills L2 is wasted: 2x, unless the next unit is the limit, 68 % busy beside 70 %."""
    kernel = {"code_totals": _totals(500_000)}
    found = found_by(
        uncoalesced_global_load, make_facts({}, {"l2": 0.7, "l1": 0.3}, kernel=kernel, **at_limiter("l2", 0.7))
    )
    assert found is not None
    assert (found.severity, found.gain) == ("limiter", pytest.approx(2.0))
    held = found_by(
        uncoalesced_global_load, make_facts({}, {"l2": 0.7, "fma": 0.68}, kernel=kernel, **at_limiter("l2", 0.7))
    )
    assert held is not None
    assert held.gain == pytest.approx(0.70 / 0.68)


def test_a_full_memory_that_moves_nothing_in_vain_makes_it_a_note() -> None:
    """Caches use the rest of each sector, and DRAM moves only what is requested."""
    counters = {"dram_bytes": 16e6, "global_ideal_sectors": 500_000.0}
    kernel = {"code_totals": _totals(500_000)}
    facts = make_facts(counters, {"dram": 0.9, "l2": 0.5}, kernel=kernel, **at_limiter("dram", 0.9))
    found = found_by(uncoalesced_global_load, facts)
    assert found is not None
    assert found.severity == "note"
    assert "dram" not in found.bears_on


def test_a_full_memory_that_moves_twice_what_is_asked_is_limited_by_it() -> None:
    """Half of DRAM's bytes are wasted, and the rest of the time scales with the busiest unit: 2x."""
    counters = {"dram_bytes": 32e6, "global_ideal_sectors": 500_000.0}
    kernel = {"code_totals": _totals(500_000)}
    found = found_by(
        uncoalesced_global_load, make_facts(counters, {"dram": 0.9}, kernel=kernel, **at_limiter("dram", 0.9))
    )
    assert found is not None
    assert (found.severity, found.gain) == ("limiter", pytest.approx(2.0))


@pytest.mark.parametrize(("stalled", "severity"), [(0.3, "contributes"), (0.5, "limiter")])
def test_a_kernel_that_waits_for_memory_is_limited_where_a_fifth_of_its_time_goes_with_the_waste(
    stalled: float, severity: str
) -> None:
    """Half of the sectors are wasted: 15 % of the time if 30 % is waiting, a quarter if 50 %; at most 2x."""
    kernel = {"code_totals": _totals(500_000), "stalls": {"long_scoreboard": stalled, "wait": 1 - stalled}}
    found = found_by(uncoalesced_global_load, make_facts({}, {"l2": 0.1}, kernel=kernel))
    assert found is not None
    assert (found.severity, found.gain) == (severity, pytest.approx(2.0))


def test_bytes_a_sector_stand_in_where_instructions_are_not_told_apart() -> None:
    """8 of 32 bytes are used; without figures by instruction the access counts as scattered."""
    found = found_by(uncoalesced_global_load, make_facts({"global_load_bytes_per_sector": 8.0}))
    assert found is not None
    assert "8.00 of the 32 bytes of each sector" in found.move
    assert "neighbouring" in found.move
    assert unsaid(found.evidence, found.move) == []
    assert uncoalesced_global_load(make_facts({"global_load_bytes_per_sector": 29.0})) is None


@pytest.mark.parametrize(("hits", "gain"), [(0.0, 2.0), (0.25, 1.5), (0.6, None)])
def test_sectors_that_l1_has_are_no_waste_of_l2(hits: float, gain: float | None) -> None:
    """Of 100 sectors 50 are asked for: L2 is asked for what L1 lacks, 100, 75 or 40 of them."""
    counters = {"global_touched_sectors": 100.0, "global_ideal_sectors": 50.0, "l1_hit_rate": hits}
    facts = make_facts(counters, {"l2": 0.7, "l1": 0.1}, **at_limiter("l2", 0.7))
    found = found_by(uncoalesced_global_load, facts)
    assert found is not None
    assert found.gain == (None if gain is None else pytest.approx(gain))


def test_values_that_a_whole_warp_reads_are_not_called_scattered() -> None:
    """One sector per load is the minimum; using only 4 bytes of it is not the addresses' fault."""
    counters, kernel = {"global_load_bytes_per_sector": 4.0}, {"code_totals": _totals(0.0)}
    found = found_by(uncoalesced_global_load, make_facts(counters, {"l1": 0.9}, kernel=kernel, **at_limiter("l1", 0.9)))
    assert found is not None
    assert found.severity == "note"
    assert "neighbouring" not in found.move


def test_the_width_of_the_opcodes_bounds_what_is_used_where_nothing_else_is_stored() -> None:
    """1,000 threads that load 8 bytes each use at most 8,000 of the 32,000 bytes of 1,000 sectors."""
    kernel = {"thread_opcodes": {"LDG.E.64": 1000, "STG.E": 1000}}
    counters = {"global_load_sectors": 1000.0, "global_store_sectors": 125.0}
    facts = make_facts(counters, kernel=kernel)
    found = found_by(uncoalesced_global_load, facts)
    assert found is not None
    assert "at most 8.00 of the 32 bytes" in found.move
    assert found.confidence == "medium"
    assert unsaid(found.evidence, found.move) == []
    assert uncoalesced_global_store(facts) is None


@pytest.mark.parametrize(("sectors", "said"), [(16_000.0, False), (18_000.0, True)])
def test_sectors_a_request_tell_only_above_what_the_widest_access_takes(sectors: float, *, said: bool) -> None:
    """16 sectors per request may be 16 bytes per thread, as nothing says how wide these loads are."""
    found = found_by(
        uncoalesced_global_load, make_facts({"global_load_sectors": sectors, "global_load_requests": 1000.0})
    )
    assert (found is not None) is said
    if found is not None:
        assert "18.0 sectors per request" in found.move
        assert unsaid(found.evidence, found.move) == []


@for_all(
    "opcode, width_bytes",
    [
        ("LDG.E", 4),
        ("LDG.E.64.CONSTANT.SYS", 8),
        ("LDG.E.LTC128B.128", 16),
        ("STG.E.U16", 2),
        ("LDG.E.U8.CONSTANT", 1),
        ("LDG.E.ENL2.256", 32),
    ],
)
def test_an_opcode_says_how_wide_its_access_is(opcode: str, width_bytes: int) -> None:
    """Sizes of a prefetch (`LTC128B`) are ignored."""
    assert access_bytes(opcode) == width_bytes


def test_nothing_is_said_without_any_measure() -> None:
    """A report without memory counters has no finding about coalescing."""
    assert uncoalesced_global_load(make_facts({}, {"l1": 0.9}, **at_limiter("l1", 0.9))) is None


@pytest.mark.parametrize(
    ("block", "shape"),
    [
        *(((1, 32, 1), "1 x 32"), ((4, 8, 2), "4 x 8 x 2"), ((3, 3, 1), "3 x 3"), ((4, 4, 1), "4 x 4")),
        *(((8, 32, 1), ""), ((4, 3, 1), ""), ((1, 1, 1), ""), ((32, 8, 1), "")),
    ],
)
def test_upright_blocks_are_told_to_turn(block: tuple[int, int, int], shape: str) -> None:
    """With fewer threads along x than the 8 values of a sector, and no fewer along y, a warp's rows lie along y.

    A square block turned is the same.
    """
    kernel = {"code_totals": _totals(750_000), "block": block}
    found = found_by(uncoalesced_global_load, make_facts(kernel=kernel))
    assert found is not None
    is_square = block[0] == block[1]
    assert found.move.startswith("turn the block shape") is (shape != "" and not is_square)
    assert found.move.startswith("choose a block shape that is wide along x") is (shape != "" and is_square)
    assert f"lie along y in blocks of {shape}:" in found.move or not shape


def test_stores_of_unknown_number_are_no_more_of_l1_than_passes_l2() -> None:
    """What is stored goes on to L2: where that is 4 % busy and L1 80, a twentieth of L1's work is stores at most."""
    busy = {"l1": 0.8, "l2": 0.04}
    counters = {"global_store_bytes_per_sector": 4.0}
    found = found_by(uncoalesced_global_store, make_facts(counters, busy, **at_limiter("l1", 0.8)))
    assert found is not None
    assert found.waste is not None
    assert found.waste.parts["l1"] == pytest.approx(0.05)
    assert found.gain == pytest.approx(1 / (1 - 0.05))


def test_sectors_of_atomics_are_no_stores() -> None:
    """A kernel that writes only with atomics has no stores to coalesce."""
    totals = {"store_sectors": 1000.0, "store_excess_sectors": 500.0}
    for opcode, said in (("RED.E.ADD", False), ("STG.E", True)):
        facts = make_facts(kernel={"code_totals": totals, "warp_opcodes": {opcode: 10}})
        assert (uncoalesced_global_store(facts) is not None) is said


@pytest.mark.parametrize(("request_share", "factor"), [(0.9, None), (0.45, 2.0), (0.6, 1.5)])
def test_unused_sectors_do_not_pass_the_input_of_l1(request_share: float, factor: float | None) -> None:
    """An instruction passes L1's input once, whatever it touches: half the sectors relieve only half the data path."""
    stages = {"lsu_input": request_share, "data": 0.9}
    levels = {name: Level() for name in LEVELS} | {"l1": Level(share=0.9, stages=stages)}
    facts = make_facts({"global_load_bytes_per_sector": 16.0}, levels=levels, top_share=0.9, **at_limiter("l1", 0.9))
    found = found_by(uncoalesced_global_load, facts)
    assert found is not None
    assert found.gain == (factor and pytest.approx(factor))
    assert (found.severity == "note") is (factor is None)


@pytest.mark.parametrize(("ideal", "severity"), [(985.0, "note"), (500.0, "limiter")])
def test_one_side_wastes_no_more_than_both_do(ideal: float, severity: str) -> None:
    """Stores use 16 of 32 bytes, but of all 1,000 sectors only 15 are unnecessary, so stores are few."""
    counters = {
        "global_store_bytes_per_sector": 16.0,
        "global_touched_sectors": 1000.0,
        "global_ideal_sectors": ideal,
    }
    found = found_by(uncoalesced_global_store, make_facts(counters, {"l2": 0.9}, **at_limiter("l2", 0.9)))
    assert found is not None
    assert found.severity == severity


def test_waste_of_busy_units_counts_where_no_stall_was_measured() -> None:
    """Half the sectors at a third of L2 are part of an unmeasured wait; measured waits have their own findings."""
    counters = {"global_load_bytes_per_sector": 16.0}
    shares = {"l2": 0.33, "issue": 0.4}
    unmeasured = found_by(uncoalesced_global_load, make_facts(counters, shares))
    measured = found_by(uncoalesced_global_load, make_facts({**counters, "stall_wait_cycles": 1.0}, shares))
    assert unmeasured is not None
    assert measured is not None
    assert (unmeasured.severity, measured.severity) == ("contributes", "note")
