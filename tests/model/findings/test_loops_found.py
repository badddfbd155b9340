"""Findings from loops: phases that do not overlap, reuse in the product's body, and gains limited to a loop."""

from __future__ import annotations

from typing import Any

import pytest
from support.findings import at_limiter, make_facts, unsaid
from support.machine_code import control, listed, machine_code

from rooflens.model.findings.find import find_findings
from rooflens.model.findings.loops import main_product, most_of_one_loop, read_twice, unoverlapped_loads
from rooflens.model.findings.reuse import low_reuse
from rooflens.model.findings.stalls import long_scoreboard
from rooflens.model.inside.look import look_inside
from rooflens.model.records import LEVELS, Hotspot, Inside, Level, Pipe, Place
from rooflens.model.verdict.facts import Facts

_FILLS = ("LDG.E R2, [R8.64]", "STS [R9], R2")
_COPIES = ("LDGSTS.E [R9], [R8.64]", "LDGDEPBAR")
_PRODUCT = ("LDS R3, [R10]", "LDS R4, [R11]", "FFMA R5, R3, R4, R5")


def tiles(fills: tuple[str, str] = _FILLS, loading: float = 40.0, multiplying: float = 50.0) -> Inside:
    """Return the inside of a kernel that fills a tile in one loop, and multiplies in another."""
    code = listed(
        "MOV R1, RZ",
        *fills,
        "@P0 BRA ->1",
        "BAR.SYNC 0x0",
        *_PRODUCT,
        "@P1 BRA ->5",
        "EXIT",
        lines=(1, 2, 3, 2, 4, 5, 5, 6, 5, 9),
    )
    runs = [1, 8, 8, 8, 1, 16, 16, 16, 16, 1]
    rest = 100.0 - loading - multiplying
    amounts = {"samples": {0: rest, 1: loading, 7: multiplying}, "shared_wavefronts": {2: 8.0, 5: 16.0, 6: 16.0}}
    return look_inside(machine_code(code, runs, **amounts))


def facts_of(inside: Inside | None, counters: dict[str, float] | None = None, **changes: Any) -> Facts:
    """Make the facts of a waiting kernel on CC 8.6."""
    return make_facts(counters, {"l1": 0.4}, kernel={"inside": inside, "compute_capability": "8.6"}, **changes)


def test_tiles_that_are_loaded_while_nothing_multiplies_are_named() -> None:
    """At best the shorter phase runs behind the longer one, which saves 40 of 100 samples."""
    found = unoverlapped_loads(facts_of(tiles()))
    assert found is not None
    assert "cp.async" in found.move
    assert found.gain == pytest.approx(1 / 0.6)
    assert [place.hotspot.line for place in found.where] == [2]
    assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(
    "inside",
    [None, Inside(), tiles(_COPIES), tiles(loading=5.0), tiles(multiplying=5.0)],
    ids=["not looked into", "no loops", "copies beside", "few loads", "little arithmetic"],
)
def test_nothing_is_said_of_phases_that_overlap_or_cost_little(inside: Inside | None) -> None:
    """Asynchronous copies overlap by design; a phase of a twentieth of the time is not worth two buffers."""
    assert unoverlapped_loads(facts_of(inside)) is None


def test_reuse_is_read_from_the_body_of_the_product() -> None:
    """Two shared values per multiply-add and one result per thread: several results are the next step."""
    inside = tiles(loading=0.0, multiplying=90.0)
    levels = {name: Level(share=0.9 if name == "smem" else 0.1, amount_bytes=4096.0) for name in LEVELS}
    facts = facts_of(
        inside,
        levels={**levels, "dram": Level(amount_bytes=1.0)},
        pipes={"fp32": Pipe(2.0 * 32 * 16, "FLOP", "opcode", share=0.1)},
        **at_limiter("smem", 0.9),
    )
    body = main_product(facts.kernel.inside)
    assert body is not None
    assert (body.shared_operands, body.global_operands, body.results) == (2, 0, 1)
    found = low_reuse(facts)
    assert found is not None
    assert (found.kind, [place.hotspot.line for place in found.where]) == ("results", [5])
    assert "8.00 bytes fetched per multiply-add, one result a thread" in found.move


def test_a_wait_for_memory_says_how_many_loads_are_in_flight() -> None:
    """One load is issued before its value is used; the finding's place is the load, not the use."""
    code = listed(
        "MOV R1, RZ",
        ("LDG.E R2, [R8.64]", control(written=0)),
        ("FADD R3, R2, R3", control(waits=1)),
        "@P0 BRA ->1",
        "EXIT",
        lines=(1, 7, 8, 6, 9),
    )
    waits = {2: 90.0}
    inside = look_inside(machine_code(code, [1, 8, 8, 8, 1], samples=waits, stall_long_scoreboard=waits))
    kernel = {
        "inside": inside,
        "stalls": {"long_scoreboard": 0.9},
        "code_totals": {"samples": 90.0, "stall_long_scoreboard": 90.0},
    }
    found = long_scoreboard(make_facts({"issue_active_per_cycle": 0.1}, {"l1": 0.1}, kernel=kernel))
    assert found is not None
    assert "1 load is in flight per warp" in found.move
    assert [place.hotspot.line for place in found.where] == [7]


def test_a_change_of_one_loop_gains_no_more_than_its_part_of_the_time() -> None:
    """Amdahl's law: without the loop that takes 40 of 100 samples a kernel is 1.67 times as fast."""
    facts = facts_of(tiles())
    at = Hotspot("line", "gemm.cu", 3)
    assert most_of_one_loop(facts, (Place(at, 1.0),)) == pytest.approx(1 / 0.6)
    assert most_of_one_loop(facts, (Place(at, 0.5),)) is None
    assert most_of_one_loop(facts, ()) is None
    assert most_of_one_loop(facts_of(None), (Place(at, 1.0),)) is None


def test_the_finding_stands_among_those_that_cost_time() -> None:
    """It is in the table of findings, and reports with code have its counters."""
    kernel = {"inside": tiles(), "compute_capability": "8.6", "code_totals": {"samples": 100.0, "warp_inst": 84.0}}
    (found,) = find_findings([make_facts({}, {"l1": 0.4}, kernel=kernel)])
    assert "unoverlapped_loads" in {one.id for one in found if one.severity != "note"}


def rows(second: str = "LDG.E.128 R4, [R8.64]", runs: float = 1000.0) -> Inside:
    """Return the inside of a kernel that sums a row in one loop, and scales it in another."""
    code = listed(
        "MOV R1, RZ",
        "LDG.E.128 R4, [R8.64]",
        "FFMA R2, R4, R4, R2",
        "@P0 BRA ->1",
        "BAR.SYNC 0x0",
        second,
        "FMUL R5, R4, R2",
        "@P1 BRA ->5",
        "EXIT",
    )
    samples = {"samples": {2: 40.0, 6: 50.0}, "stall_long_scoreboard": {2: 40.0, 6: 45.0}}
    return look_inside(machine_code(code, [100, 1e3, 1e3, 1e3, 100, runs, runs, runs, 100], **samples))


_PASS_BYTES = 1e3 * 32 * 16
_MOVED = {
    "dram_bytes": 2.8 * _PASS_BYTES,
    "dram_read_bytes": 1.8 * _PASS_BYTES,
    "l2_bytes": 3 * _PASS_BYTES,
    "l2_return_bytes": 2 * _PASS_BYTES,
}


def test_two_loops_that_load_alike_seem_to_read_the_same() -> None:
    """Of 2.8 passes through DRAM 0.8 are reads beyond what one loop needs."""
    full = make_facts(_MOVED, {"dram": 0.9, "l2": 0.8}, kernel={"inside": rows()})
    found = read_twice(full)
    assert found is not None
    assert found.waste is not None
    assert found.waste.parts["dram"] == pytest.approx(0.8 / 2.8)
    assert [place.hotspot.pc for place in found.where] == [0x10, 0x50]
    assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(
    ("inside", "counters"),
    [
        (rows("LDG.E.64 R4, [R8.64]"), {}),
        (rows(runs=700.0), {}),
        (rows(), {"l2_return_bytes": _PASS_BYTES}),
        (rows(), {"l2_bytes": 30 * _PASS_BYTES}),
        (None, {}),
    ],
    ids=["another width", "fewer of them", "L1 holds them", "little of the traffic", "not looked into"],
)
def test_other_loads_of_two_loops_are_no_second_pass(inside: Inside | None, counters: dict[str, float]) -> None:
    """Loads that differ in width or number are of other data, and what L1 holds costs nothing below it."""
    assert read_twice(make_facts(_MOVED | counters, {"dram": 0.9}, kernel={"inside": inside})) is None
