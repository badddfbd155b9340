"""Distances by hand: headroom, potential, potential by reuse, and where none of them can be told."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.kernels import make_case, make_kernel
from support.loops import for_all

from rooflens.model.records import Distances, Level, Outside, Pipe
from rooflens.model.verdict.distances import find_distances, local_part

PEAK = 1e12
"""Of DRAM: 1 GB takes 1 ms."""


def distances(math_ns: float | None, counters: dict[str, float], bound: str = "memory", **changes: Any) -> Distances:
    """Find the distances of a kernel of 10 ms that does 1 GFLOP and whose busiest unit is half full."""
    known = {"duration_ns": 1e7, "dram_peak_bytes_per_s": PEAK, **counters}
    case = make_case({"dram": 0.5}, known, kernel=make_kernel(known, **changes))
    pipes = {"fp32": Pipe(amount=1e9, unit="FLOP", source="opcode", share=0.1)}
    return find_distances(replace(case, pipes=pipes, bound=bound, top_share=0.5), math_ns)


def test_the_floor_is_the_larger_of_arithmetic_and_needed_bytes() -> None:
    """1 ms of arithmetic and 4 GB at 1 TB/s: 10 ms could become 4, and 1 with the operands on chip."""
    found = distances(1e6, {"dram_bytes": 4e9})
    assert (found.headroom, found.potential, found.potential_by_reuse) == pytest.approx((2, 2.5, 10))
    assert found.floor_ns == pytest.approx(4e6)


def test_no_more_is_needed_than_the_accesses_ask_for() -> None:
    """Of 4 GB the sectors of all accesses would fill 2: the floor is 2 ms."""
    assert distances(1e6, {"dram_bytes": 4e9, "global_ideal_sectors": 2e9 / 32}).potential == pytest.approx(5)


def test_accesses_that_nobody_looked_at_prove_nothing() -> None:
    """A kernel that also loads by TMA may need more than the sectors of its other accesses."""
    found = distances(1e6, {"dram_bytes": 4e9, "global_ideal_sectors": 1e6}, warp_opcodes={"UTMALDG.2D": 5})
    assert found.potential == pytest.approx(2.5)


def test_local_memory_is_waste() -> None:
    """Three quarters of the sectors are local memory: a quarter of the bytes is needed."""
    sectors = {"local_load_sectors": 2e6, "local_store_sectors": 1e6, "global_load_sectors": 1e6}
    found = distances(1e5, {"dram_bytes": 4e9, **sectors, "global_store_sectors": 0.0})
    assert local_part(make_kernel({**sectors, "global_store_sectors": 0.0})) == pytest.approx(0.75)
    assert found.floor_ns == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("math_ns", "bound", "why"),
    [(None, "memory", "floating-point operations are not counted"), (1e6, "overhead", "its launch takes longer")],
)
def test_where_it_cannot_be_told_it_says_why(math_ns: float | None, bound: str, why: str) -> None:
    """Uncounted work has no floor, and of a launch as short as its own cost no factor means anything."""
    found = distances(math_ns, {"dram_bytes": 4e9}, bound)
    assert found.potential is None
    assert (found.why_null or "").startswith(why)


def test_output_that_stayed_in_l2_is_needed_too() -> None:
    """Writes that DRAM has not seen yet count among the bytes, where that is flagged."""
    kernel = make_kernel({"duration_ns": 1e7, "dram_peak_bytes_per_s": PEAK, "dram_bytes": 1e9, "l2_write_bytes": 3e9})
    pipes = {"fp32": Pipe(amount=1e9, unit="FLOP", source="opcode", share=0.1)}
    levels = {name: Level(share=0.4) for name in ("dram", "l2", "l1", "smem")}
    facts = make_case({}, kernel=kernel, levels=levels, pipes=pipes, bound="memory", top_share=0.4)
    for flags, floor_ns in (((), 1e6), (("dram_writes_stay_in_l2",), 4e6)):
        assert find_distances(replace(facts, flags=flags), 1e5).floor_ns == pytest.approx(floor_ns)


@pytest.mark.parametrize(("share", "headroom"), [(0.06, 1 / 0.06), (0.04, None)])
def test_a_waiting_kernel_has_no_headroom_above_twenty(share: float, headroom: float | None) -> None:
    """With no unit above 5 % a factor of its units says nothing."""
    facts = make_case({"dram": share}, bound="latency", top_share=share)
    found = find_distances(facts, None).headroom
    assert found == (None if headroom is None else pytest.approx(headroom))
    assert find_distances(replace(facts, bound="memory"), None).headroom == pytest.approx(1 / share)


def test_integer_kernels_have_no_potential() -> None:
    """Under one operation in a hundred instructions, with DRAM idle: no roof is known for the work."""
    kernel = make_kernel({"dram_bytes": 1e6, "dram_peak_bytes_per_s": PEAK}, thread_opcodes={"IADD3": 10_000})
    pipes = {"fp32": Pipe(amount=99.0, unit="FLOP", source="opcode", share=0.001)}
    levels = {name: Level(share=0.1) for name in ("dram", "l2", "l1", "smem")}
    facts = make_case({}, kernel=kernel, levels=levels, pipes=pipes, bound="latency", top_share=0.1)
    found = find_distances(facts, 1.0)
    assert (found.potential, found.why_null) == (None, "integer work: bound not known")


def test_compulsory_bytes_are_enough() -> None:
    """A workload whose inputs and outputs are 1 GB needs no more of the 4 GB it moves."""
    kernel = make_kernel({"duration_ns": 1e7, "dram_peak_bytes_per_s": PEAK, "dram_bytes": 4e9})
    pipes = {"fp32": Pipe(amount=1e9, unit="FLOP", source="opcode", share=0.1)}
    levels = {name: Level(share=0.4) for name in ("dram", "l2", "l1", "smem")}
    facts = make_case(
        {}, kernel=kernel, levels=levels, pipes=pipes, bound="memory", outside=Outside(compulsory_bytes=1e9)
    )
    assert find_distances(facts, 1e5).floor_ns == pytest.approx(1e6)


INTEGERS = {"IMAD.WIDE.U32": 30, "LOP3.LUT": 25, "FFMA": 20, "STG.E": 5}
"""55 integer instructions beside 20 of arithmetic."""


def of_busy(issue: float, dram: float, math: float, opcodes: dict[str, int], alu: float | None = None) -> Distances:
    """Find the distances of a kernel of 10 ms by the shares of issue, DRAM, FLOPs and ALU."""
    known = {"duration_ns": 1e7, "dram_peak_bytes_per_s": PEAK, "dram_bytes": dram * 1e10}
    kernel = make_kernel(known, warp_opcodes=opcodes)
    case = make_case({"dram": dram, "issue": issue, "alu": alu}, kernel=kernel)  # type: ignore[dict-item]
    pipes = {**case.pipes, "fp32": Pipe(amount=1e9, unit="FLOP", source="opcode", share=math)}
    return find_distances(replace(case, pipes=pipes, bound="compute", top_share=issue), math * 1e7)


@for_all(
    "issue, dram, math, opcodes, potential",
    [
        (0.7, 0.2, 0.1, INTEGERS, None),
        (0.7, 0.5, 0.1, INTEGERS, None),
        (0.7, 0.2, 0.29, INTEGERS, 1 / 0.29),
        (0.7, 0.2, 0.1, {**INTEGERS, "FMUL": 40}, 5.0),
        (0.25, 0.2, 0.1, INTEGERS, 5.0),
        (0.7, 0.8, 0.1, INTEGERS, 1.25),
    ],
)
def test_issue_slots_full_of_integers_have_no_potential(
    issue: float, dram: float, math: float, opcodes: dict[str, int], potential: float | None
) -> None:
    """A generator of random numbers at 70 % of issue: 2 ms of bytes and 1 of FLOPs are no floor of it.

    FLOPs explain a busy unit from four tenths of its share on: 0.28 of 0.7.
    """
    found = of_busy(issue, dram, math, opcodes)
    assert found.potential == (None if potential is None else pytest.approx(potential))
    assert found.why_null == ("integer work: bound not known" if potential is None else None)


@pytest.mark.parametrize(("alu", "potential"), [(0.6, None), (0.05, 5.0), (None, 5.0)])
def test_without_opcodes_the_alu_tells_of_integers(alu: float | None, potential: float | None) -> None:
    """An ALU busier than the FLOPs need; where it was not measured nothing is assumed."""
    assert of_busy(0.7, 0.2, 0.1, {}, alu).potential == potential
