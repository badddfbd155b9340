"""Limits calculated by hand: the floor of a kernel, the side that sets it, and cases without a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from support.kernels import make_case, make_kernel
from support.roofs import own_roof

from rooflens.model.analyze import analyze
from rooflens.model.records import Bottleneck, Level, Limit, Outside, Pipe, Rule
from rooflens.model.roofline.flops import Flops, PipeWork
from rooflens.model.verdict.limit import find_limit, local_part

if TYPE_CHECKING:
    from rooflens.model.verdict.facts import Facts

PER_SECTOR = ("global_load_bytes_per_sector", "global_store_bytes_per_sector")
PEAK = 1e12
"""Of DRAM: 1 GB takes 1 ms."""


def case(
    math_ns: float | None, counters: dict[str, float], *, shares: dict[str, float] | None = None, **kernel: Any
) -> Facts:
    """Make a kernel of 10 ms whose fp32 arithmetic takes this long at its peak; None if it is not counted."""
    known = {"duration_ns": 1e7, "dram_bus_peak_bytes_per_s": PEAK, **counters}
    facts = make_case({"dram": 0.5, **(shares or {})}, kernel=make_kernel(known, **kernel))
    work = () if math_ns is None else (PipeWork("fp32", "fp32", math_ns, "opcode", own_roof(1e9)),)
    return replace(facts, flops=Flops(work, complete=math_ns is not None, flags=frozenset()))


def limit(math_ns: float | None, counters: dict[str, float], **kernel: Any) -> Limit:
    """Return the limit of such a kernel."""
    return find_limit(case(math_ns, counters, **kernel))


def test_the_floor_is_the_larger_of_arithmetic_and_needed_bytes() -> None:
    """1 ms of arithmetic and 4 GB at 1 TB/s: 10 ms could become 4; with 6 ms of arithmetic 6."""
    found = limit(1e6, {"dram_bytes": 4e9})
    assert (found.factor, found.floor_ns, found.by) == (pytest.approx(2.5), pytest.approx(4e6), "DRAM traffic")
    busy = limit(6e6, {"dram_bytes": 4e9})
    assert (busy.floor_ns, busy.by) == (pytest.approx(6e6), "FP32 arithmetic")


def test_no_more_is_needed_than_the_accesses_ask_for() -> None:
    """Of 4 GB, the sectors of all accesses would fill 2: the floor is 2 ms."""
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
    """Three quarters of the sectors are local memory, so a quarter of the bytes is needed."""
    sectors = {"local_load_sectors": 2e6, "local_store_sectors": 1e6, "global_load_sectors": 1e6}
    found = limit(1e5, {"dram_bytes": 4e9, **sectors, "global_store_sectors": 0.0})
    assert local_part(make_kernel({**sectors, "global_store_sectors": 0.0})) == pytest.approx(0.75)
    assert found.floor_ns == pytest.approx(1e6)


@pytest.mark.parametrize(("stores", "floor_ns"), [(10.0, 1e6), (90.0, 4e6)])
def test_unused_sectors_of_bytes_that_are_read_again_are_waste(stores: float, floor_ns: float) -> None:
    """A quarter of the sectors is requested; if each byte is read at most twice per result, no fetch was wasted."""
    totals = {"load_sectors": 400.0 - stores, "load_excess_sectors": 300.0}
    totals |= {"store_sectors": stores, "store_excess_sectors": 0.0}
    assert limit(1e5, {"dram_bytes": 4e9}, code_totals=totals).floor_ns == pytest.approx(floor_ns)


def test_output_that_stayed_in_l2_is_needed_too() -> None:
    """Writes that have not reached DRAM yet count among the bytes, if they are flagged."""
    facts = case(1e5, {"dram_bytes": 1e9, "l2_write_bytes": 3e9})
    for flags, floor_ns in (((), 1e6), (("dram_writes_stay_in_l2",), 4e6)):
        assert find_limit(replace(facts, flags=flags)).floor_ns == pytest.approx(floor_ns)


def test_compulsory_bytes_are_enough() -> None:
    """A workload whose inputs and outputs are 1 GB needs no more of the 4 GB it moves."""
    facts = replace(case(1e5, {"dram_bytes": 4e9}), outside=Outside(compulsory_bytes=1e9))
    found = find_limit(facts)
    assert (found.floor_ns, found.by, found.proven) == (pytest.approx(1e6), "compulsory bytes", True)


def test_a_share_of_dram_stands_for_bytes_that_are_not_known() -> None:
    """With DRAM half busy for 10 ms, its bytes take 5 ms at its peak."""
    assert limit(1e5, {}).floor_ns == pytest.approx(5e6)


@pytest.mark.parametrize(("l2_bytes", "by"), [(4e9, "DRAM traffic"), (9e9, "FP32 arithmetic")])
def test_traffic_that_a_tile_would_spare_is_no_floor(l2_bytes: float, by: str) -> None:
    """A product of plain multiply-adds, whose L2 delivers twice what DRAM does, can be tiled."""
    products = {"fadd_threads": 0.0, "fmul_threads": 0.0, "ffma_threads": 1e6}
    facts = case(1e6, {"dram_bytes": 4e9, **products})
    levels = {**facts.levels, "l2": Level(amount_bytes=l2_bytes), "dram": Level(share=0.5, amount_bytes=4e9)}
    assert find_limit(replace(facts, levels=levels)).by == by


def test_what_moves_more_than_memory_holds_reads_it_again() -> None:
    """A T4 has 16 GB: nobody needs to read more, or to move twice that, so such traffic gives no floor."""
    for moved_bytes, by in ((31e9, "DRAM traffic"), (33e9, "FP32 arithmetic")):
        counters = {"duration_ns": 5e8, "dram_bytes": moved_bytes, "dram_bus_peak_bytes_per_s": 320e9}
        assert limit(1e7, counters, gpu="Tesla T4").by == by
    read_again = {"duration_ns": 5e8, "dram_bytes": 20e9, "dram_read_bytes": 17e9, "dram_bus_peak_bytes_per_s": 320e9}
    assert limit(1e7, read_again, gpu="Tesla T4").by == "FP32 arithmetic"
    of_a_share = limit(None, {"duration_ns": 1e9}, gpu="Tesla T4")  # half busy for a second: 160 GB
    assert (of_a_share.factor, of_a_share.missing is None) == (None, False)


def test_a_gpu_without_a_name_is_any_of_its_capability() -> None:
    """GPUs of 8.0 hold 24 to 80 GB: 100 GB may be little more than one of them holds, 500 GB is beyond all."""
    for time_ns, by in ((2e8, "DRAM traffic"), (1e9, "FP32 arithmetic")):
        assert limit(1e7, {"duration_ns": time_ns}, compute_capability="8.0").by == by


def test_a_pipe_that_only_computes_stands_for_operations_that_are_not_counted() -> None:
    """A tensor pipe 40 % busy leaves 4 of 10 ms, approximately if per cents are of active cycles."""
    facts = case(None, {"tensor_busy_share": 0.4, "dram_bytes": 1e9}, shares={"tensor_pipe": 0.4})
    found = find_limit(facts)
    assert (found.floor_ns, found.by, found.proven) == (pytest.approx(4e6), "tensor arithmetic", True)
    active = {"tensor_active_share": 0.4, "dram_bytes": 1e9}
    of_active = find_limit(case(None, active))
    assert (of_active.floor_ns, of_active.by, of_active.proven) == (pytest.approx(4e6), "tensor arithmetic", False)
    of_time = find_limit(case(None, {**active, "sm_cycles_active_avg": 750.0, "elapsed_cycles": 1000.0}))
    assert (of_time.floor_ns, of_time.proven) == (pytest.approx(3e6), True)


def test_a_seventh_of_the_fp64_pipe_is_left_without_divisions() -> None:
    """A division takes at least seven instructions: without its count, 70 % of 10 ms leave 1 ms."""
    assert find_limit(case(None, {"dram_bytes": 1e8}, shares={"fp64_pipe": 0.7})).floor_ns == pytest.approx(1e6)


def test_the_pipe_that_nvidia_names_counts_as_well() -> None:
    """If only NVIDIA's sentence mentions tensor work, its per cent is the arithmetic."""
    facts = replace(case(None, {"dram_bytes": 1e9}), compute=Bottleneck("tensor_pipe", 0.9))
    assert find_limit(facts).factor == pytest.approx(1 / 0.9)


@pytest.mark.parametrize(("share", "factor"), [(0.86, None), (0.5, 10.0)])
def test_a_unit_that_nobody_names_may_be_the_arithmetic_that_nothing_counts(share: float, factor: float | None) -> None:
    """With an SM 86 % busy DRAM's tenth of the time is no limit: the tensor cores may be what is full."""
    facts = replace(case(None, {"dram_bytes": 1e9}), compute=Bottleneck(None, share))
    found = find_limit(facts)
    assert found.over_floor == (None if factor is None else pytest.approx(factor))
    assert (found.missing or "").startswith("counts of its arithmetic") == (factor is None)


def test_integer_work_on_data_is_a_floor_of_a_kernel_without_other_arithmetic() -> None:
    """Half of the integer instructions of an ALU at 80 % add and mask; the rest compares."""
    opcodes = {"IADD3": 30, "LOP3.LUT": 20, "ISETP.GE.AND": 50}
    threads = {opcode: 32 * count for opcode, count in opcodes.items()}
    facts = case(None, {"dram_bytes": 1e8}, warp_opcodes=opcodes, thread_opcodes=threads)
    found = find_limit(replace(facts, pipes={"alu": Pipe(None, "inst", "counter", share=0.8)}, shares={"alu": 0.8}))
    assert (found.floor_ns, found.by, found.proven) == (pytest.approx(4e6), "integer arithmetic", False)


def test_no_kernel_is_shorter_than_a_launch() -> None:
    """A kernel of 5 us with hardly any traffic can save at most four fifths of its time."""
    found = find_limit(case(1.0, {"duration_ns": 5000.0, "dram_bytes": 100.0}))
    assert (found.factor, found.by) == (pytest.approx(5), "the shortest launch")


@pytest.mark.parametrize(
    ("counters", "has_shares", "missing"),
    [
        ({"duration_ns": 0.0}, False, "`gpu__time_duration.sum`"),
        ({"dram_bytes": 1e6}, True, "counts of its arithmetic"),
    ],
)
def test_where_it_cannot_be_told_it_names_the_counter(
    counters: dict[str, float], *, has_shares: bool, missing: str
) -> None:
    """Without time and shares there is no factor; one of ten thousand only says that arithmetic was not counted."""
    facts = case(None, counters)
    found = find_limit(facts if has_shares else replace(facts, shares={}, memory=None))
    assert found.factor is None
    assert (found.missing or "").startswith(missing)


def test_without_a_time_shares_of_it_give_a_factor_and_no_floor() -> None:
    """DRAM is half full: nothing that moves as much is over twice as fast, however long the kernel takes."""
    found = limit(None, {"duration_ns": 0.0})
    assert (found.factor, found.floor_ns, found.by) == (pytest.approx(2), None, "DRAM traffic")


def test_sectors_of_both_sides_tell_of_rereading_as_those_of_each_do() -> None:
    """Accesses ask for 6.4 GB and DRAM moves 4 GB: bytes are read again, and half of each sector is not used."""
    sectors = {"global_touched_sectors": 4e8, "global_ideal_sectors": 2e8, **dict.fromkeys(PER_SECTOR, 16.0)}
    both = {"dram_bytes": 4e9, **sectors}
    assert limit(1e6, both).factor == pytest.approx(5)
    for others in ({"global_touched_sectors": 2e8}, {PER_SECTOR[1]: 32.0}):
        assert limit(1e6, {**both, **others}).factor == pytest.approx(2.5)


def test_only_traffic_is_marked() -> None:
    """Counted work is proven; DRAM traffic is not, as some of it may be reread."""
    assert not limit(1e6, {"dram_bytes": 4e9}).proven
    assert limit(6e6, {"dram_bytes": 4e9}).proven


def test_traffic_that_says_nothing_gives_way_to_what_is_proven() -> None:
    """DRAM at a hundredth of the time adds nothing to arithmetic at two hundredths: only the proven part is given."""
    found = limit(5e4, {"dram_bytes": 1e8})
    assert (found.over_floor, found.by, found.proven) == (pytest.approx(200), "FP32 arithmetic", True)
    assert (found.factor, found.far, found.floor_ns) == (None, True, pytest.approx(5e4))


def test_pipes_work_at_the_same_time() -> None:
    """4 ms of fp32 beside 3 ms of fp64 may take 4 ms: their sum is not a floor."""
    facts = case(4e6, {"dram_bytes": 1e8})
    double = PipeWork("fp64", "fp64", 3e6, "opcode", own_roof(1e9))
    assert find_limit(replace(facts, flops=replace_work(facts, double))).floor_ns == pytest.approx(4e6)


def replace_work(facts: Facts, *more: PipeWork) -> Flops:
    """Add operations to those of a kernel."""
    return Flops((*facts.flops.work, *more), complete=True, flags=frozenset())


@pytest.mark.parametrize(("said", "floor_ns"), [("19", 1.85e6), ("0", None)])
def test_a_rounded_per_cent_of_nvidia_s_is_taken_at_its_least(said: str, floor_ns: float | None) -> None:
    """19 % of the fp32 peak are at least 18.5 %, and 0 % may be nothing."""
    words = f"The workload achieved {said}% of this device's FP32 peak performance and 0% of its FP64 peak performance."
    found = limit(None, {"dram_bytes": 5e8}, rules=(Rule("SOLFPRoofline", "", "", words),))
    assert found.proven is (floor_ns is not None)
    assert found.floor_ns == pytest.approx(floor_ns or 5e5)


def test_a_cache_speaks_where_dram_has_nothing_to_do() -> None:
    """With DRAM 1 % and L2 30 % busy, the limit at today's traffic is 3.3x; a full cache is what a change relieves."""
    counters = {"dram_bytes": 1e8}
    for shares, by in (({"l2": 0.3}, "L2 traffic"), ({"l2": 0.02, "l1": 0.5}, "L1 traffic")):
        found = find_limit(case(None, counters, shares=shares))
        assert (found.by, found.proven) == (by, False)
        assert found.factor == pytest.approx(1 / max(shares.values()))
    assert find_limit(case(None, counters, shares={"l2": 0.9})).factor is None
    assert find_limit(case(None, counters, shares={"l2": 0.02, "l1": 0.5}, block=(9, 1, 1))).by != "L1 traffic"
    counted = find_limit(case(2e5, counters, shares={"l2": 0.3}))
    assert (counted.by, counted.proven) == ("L2 traffic", False)
