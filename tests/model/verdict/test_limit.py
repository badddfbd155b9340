"""Limits by hand: the floor of a kernel, the side that sets it, and where none can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from support.kernels import make_case, make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.records import Bottleneck, Level, Limit, Outside, Pipe
from rooflens.model.roofline.flops import Flops, Work
from rooflens.model.verdict.limit import find_limit, local_part

if TYPE_CHECKING:
    from rooflens.model.verdict.facts import Facts

PEAK = 1e12
"""Of DRAM: 1 GB takes 1 ms."""


def case(
    math_ns: float | None, counters: dict[str, float], *, shares: dict[str, float] | None = None, **kernel: Any
) -> Facts:
    """Make a kernel of 10 ms whose fp32 arithmetic takes so long at its peak; None where it is not counted."""
    known = {"duration_ns": 1e7, "dram_peak_bytes_per_s": PEAK, **counters}
    facts = make_case({"dram": 0.5, **(shares or {})}, kernel=make_kernel(known, **kernel))
    work = () if math_ns is None else (Work("fp32", "fp32", math_ns, "opcode", 1e9, "report"),)
    return replace(facts, flops=Flops(work, complete=math_ns is not None, flags=frozenset()))


def limit(math_ns: float | None, counters: dict[str, float], **kernel: Any) -> Limit:
    """Find the limit of such a kernel."""
    return find_limit(case(math_ns, counters, **kernel))


def test_the_floor_is_the_larger_of_arithmetic_and_needed_bytes() -> None:
    """1 ms of arithmetic and 4 GB at 1 TB/s: 10 ms could become 4; with 6 ms of arithmetic 6."""
    found = limit(1e6, {"dram_bytes": 4e9})
    assert (found.factor, found.floor_ns, found.by) == (pytest.approx(2.5), pytest.approx(4e6), "DRAM traffic")
    busy = limit(6e6, {"dram_bytes": 4e9})
    assert (busy.floor_ns, busy.by) == (pytest.approx(6e6), "FP32 arithmetic")


def test_no_more_is_needed_than_the_accesses_ask_for() -> None:
    """Of 4 GB the sectors of all accesses would fill 2: the floor is 2 ms."""
    assert limit(1e6, {"dram_bytes": 4e9, "global_ideal_sectors": 2e9 / 32}).factor == pytest.approx(5)


def test_published_bandwidth_is_a_floor_where_the_report_has_none() -> None:
    """An A100 of 40 GB moves 1.555 TB/s by its datasheet: 3.11 GB take 2 of the 10 ms."""
    kernel = make_kernel({"duration_ns": 1e7, "dram_bytes": 3.11e9}, gpu="NVIDIA A100-PCIE-40GB")
    found = analyze(kernel).verdict.limit
    assert (found.factor, found.by) == (pytest.approx(5), "DRAM traffic")
    nameless = analyze(replace(kernel, gpu=None)).verdict.limit
    assert nameless.factor is None


def test_accesses_that_nobody_looked_at_prove_nothing() -> None:
    """A kernel that also loads by TMA may need more than the sectors of its other accesses."""
    found = limit(1e6, {"dram_bytes": 4e9, "global_ideal_sectors": 1e6}, warp_opcodes={"UTMALDG.2D": 5})
    assert found.factor == pytest.approx(2.5)


def test_local_memory_is_waste() -> None:
    """Three quarters of the sectors are local memory: a quarter of the bytes is needed."""
    sectors = {"local_load_sectors": 2e6, "local_store_sectors": 1e6, "global_load_sectors": 1e6}
    found = limit(1e5, {"dram_bytes": 4e9, **sectors, "global_store_sectors": 0.0})
    assert local_part(make_kernel({**sectors, "global_store_sectors": 0.0})) == pytest.approx(0.75)
    assert found.floor_ns == pytest.approx(1e6)


@pytest.mark.parametrize(("stores", "floor_ns"), [(10.0, 1e6), (90.0, 4e6)])
def test_unused_sectors_of_bytes_that_are_read_again_are_waste(stores: float, floor_ns: float) -> None:
    """A quarter of the sectors is asked for. Reading each byte once or twice a result, no fetch of it was in vain."""
    totals = {"load_sectors": 400.0 - stores, "load_excess_sectors": 300.0}
    totals |= {"store_sectors": stores, "store_excess_sectors": 0.0}
    assert limit(1e5, {"dram_bytes": 4e9}, code_totals=totals).floor_ns == pytest.approx(floor_ns)


def test_output_that_stayed_in_l2_is_needed_too() -> None:
    """Writes that DRAM has not seen yet count among the bytes, where that is flagged."""
    facts = case(1e5, {"dram_bytes": 1e9, "l2_write_bytes": 3e9})
    for flags, floor_ns in (((), 1e6), (("dram_writes_stay_in_l2",), 4e6)):
        assert find_limit(replace(facts, flags=flags)).floor_ns == pytest.approx(floor_ns)


def test_compulsory_bytes_are_enough() -> None:
    """A workload whose inputs and outputs are 1 GB needs no more of the 4 GB it moves."""
    facts = replace(case(1e5, {"dram_bytes": 4e9}), outside=Outside(compulsory_bytes=1e9))
    assert find_limit(facts).floor_ns == pytest.approx(1e6)


def test_a_share_of_dram_stands_for_bytes_that_are_not_known() -> None:
    """DRAM half busy for 10 ms: its bytes take 5 at its peak."""
    assert limit(1e5, {}).floor_ns == pytest.approx(5e6)


@pytest.mark.parametrize(("l2_bytes", "by"), [(4e9, "DRAM traffic"), (9e9, "FP32 arithmetic")])
def test_traffic_that_a_tile_would_spare_is_no_floor(l2_bytes: float, by: str) -> None:
    """A product by nothing but multiply-adds, whose L2 is asked twice for what DRAM delivers, can be tiled."""
    products = {"fadd_threads": 0.0, "fmul_threads": 0.0, "ffma_threads": 1e6}
    facts = case(1e6, {"dram_bytes": 4e9, **products})
    levels = {**facts.levels, "l2": Level(amount_bytes=l2_bytes), "dram": Level(share=0.5, amount_bytes=4e9)}
    assert find_limit(replace(facts, levels=levels)).by == by


def test_no_more_is_needed_than_all_of_memory_read_and_written_once() -> None:
    """A T4 holds 16 GB behind 320 GB/s: whatever keeps its DRAM half busy for a second needs a tenth of one at most."""
    for counters in ({}, {"dram_bytes": 160e9, "dram_peak_bytes_per_s": 320e9}):
        found = limit(1e5, {"duration_ns": 1e9, **counters}, gpu="Tesla T4")
        assert (found.floor_ns, found.by) == (pytest.approx(1e8), "all of DRAM once")


@pytest.mark.parametrize(("moved_bytes", "by"), [(15e9, "DRAM traffic"), (17e9, "FP32 arithmetic")])
def test_a_product_that_moves_more_than_memory_holds_reads_it_again(moved_bytes: float, by: str) -> None:
    """A T4 has 16 GB: what crosses it beyond that was there before, however seldom L2 is asked."""
    products = {"fadd_threads": 0.0, "fmul_threads": 0.0, "ffma_threads": 1e6}
    facts = case(1e6, {"dram_bytes": moved_bytes, "dram_peak_bytes_per_s": 1e13, **products}, gpu="Tesla T4")
    levels = {**facts.levels, "l2": Level(amount_bytes=moved_bytes), "dram": Level(share=0.5, amount_bytes=moved_bytes)}
    assert find_limit(replace(facts, levels=levels)).by == by


def test_a_pipe_that_only_computes_stands_for_operations_that_are_not_counted() -> None:
    """A tensor pipe 40 % busy leaves 4 of 10 ms; of the cycles in which SMs work, about."""
    facts = case(None, {"tensor_busy_share": 0.4, "dram_bytes": 1e9}, shares={"tensor_pipe": 0.4})
    found = find_limit(facts)
    assert (found.floor_ns, found.by, found.about) == (pytest.approx(4e6), "tensor arithmetic", False)
    of_active = find_limit(case(None, {"tensor_active_share": 0.4, "dram_bytes": 1e9}))
    assert (of_active.floor_ns, of_active.by, of_active.about) == (pytest.approx(4e6), "tensor arithmetic", True)


def test_a_seventh_of_the_fp64_pipe_is_left_without_divisions() -> None:
    """A division takes seven instructions at least: 70 % of 10 ms leave 1 where nothing tells how many there are."""
    assert find_limit(case(None, {"dram_bytes": 1e8}, shares={"fp64_pipe": 0.7})).floor_ns == pytest.approx(1e6)


def test_the_pipe_that_nvidia_names_counts_as_well() -> None:
    """Where only NVIDIA's sentence tells of tensor work, its per cent is the arithmetic."""
    facts = replace(case(None, {"dram_bytes": 1e9}), compute=Bottleneck("tensor_pipe", 0.9))
    assert find_limit(facts).factor == pytest.approx(1 / 0.9)


def test_integer_work_on_data_is_a_floor_of_a_kernel_without_other_arithmetic() -> None:
    """Half of the integer instructions of an ALU that is 80 % busy add and mask; the rest compares."""
    opcodes = {"IADD3": 30, "LOP3.LUT": 20, "ISETP.GE.AND": 50}
    threads = {opcode: 32 * count for opcode, count in opcodes.items()}
    facts = case(None, {"dram_bytes": 1e8}, warp_opcodes=opcodes, thread_opcodes=threads)
    found = find_limit(replace(facts, pipes={"alu": Pipe(None, "inst", "counter", share=0.8)}))
    assert (found.floor_ns, found.by, found.about) == (pytest.approx(4e6), "integer arithmetic", True)


def test_no_kernel_is_shorter_than_a_launch() -> None:
    """A kernel of 5 us that moves nothing to speak of can win four fifths of it at most."""
    found = find_limit(case(1.0, {"duration_ns": 5000.0, "dram_bytes": 100.0}))
    assert (found.factor, found.by) == (pytest.approx(5), "the shortest launch")


@pytest.mark.parametrize(
    ("counters", "missing"),
    [({"duration_ns": 0.0}, "`gpu__time_duration.sum`"), ({"dram_bytes": 1e6}, "counts of its arithmetic")],
)
def test_where_it_cannot_be_told_it_names_the_counter(counters: dict[str, float], missing: str) -> None:
    """Without a time there is no factor; a bound of ten thousand says only that the arithmetic is not counted."""
    found = limit(None, counters)
    assert found.factor is None
    assert (found.missing or "").startswith(missing)
