"""Causes of a change between two versions of a kernel, each shown by its own counter."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples

from rooflens.model.compare.causes import causes, causes_words
from rooflens.model.records import Analysis


def kernel(time_us: float, *, block: tuple[int, int, int] = (256, 1, 1), **counters: float) -> Analysis:
    """Make a launch with counters."""
    made = samples.analysis(samples.Sample("k", "memory", round(time_us), "dram", {"dram": 1e8}, {"fp32": 1e9}))
    own = {**made.kernel.counters, **counters}
    return replace(made, kernel=replace(made.kernel, block=block, counters=own))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"executed_inst": 100.0}, {"executed_inst": 40.0}, "60 % fewer instructions"),
        ({"executed_inst": 100.0}, {"executed_inst": 104.0}, ""),
        (
            {"smem_static_per_block_bytes": 0.0, "smem_dynamic_per_block_bytes": 0.0},
            {"smem_static_per_block_bytes": 4096.0, "smem_dynamic_per_block_bytes": 0.0},
            "now uses shared memory",
        ),
        (
            {"local_load_inst": 5.0, "local_store_inst": 5.0},
            {"local_load_inst": 0.0, "local_store_inst": 0.0},
            "no more local memory",
        ),
        ({"threads_per_inst": 16.0}, {"threads_per_inst": 32.0}, "16.0 to 32.0 of 32 lanes at work"),
        ({"achieved_occupancy": 0.25}, {"achieved_occupancy": 0.5}, "occupancy 25 % to 50 %"),
        ({"tensor_busy_share": 0.0}, {"tensor_busy_share": 0.4}, "now uses tensor cores"),
        (
            {"stall_barrier_cycles": 9.0, "warp_latency_cycles": 20.0},
            {"stall_barrier_cycles": 1.0, "warp_latency_cycles": 12.0},
            "waits at barriers: 9.00 to 1.00 cycles an instruction",
        ),
    ],
)
def test_a_cause_is_one_number_on_both_sides(before: dict[str, float], after: dict[str, float], words: str) -> None:
    """Each cause has its counter; differences that one kernel shows from run to run are not causes."""
    assert causes_words(kernel(2e6, **before), kernel(1e6, **after)) == words


def test_coalescing_is_told_from_width() -> None:
    """More sectors per request, all needed, are wider loads; fewer, with a larger needed share, are coalescing."""
    strided = {"global_load_sectors": 800.0, "global_load_requests": 100.0}
    packed = {"global_load_sectors": 400.0, "global_load_requests": 100.0}
    wide = {"global_load_sectors": 400.0, "global_load_requests": 25.0}
    used = {"global_ideal_sectors": 400.0, "global_touched_sectors": 400.0}
    half = {"global_ideal_sectors": 400.0, "global_touched_sectors": 800.0}
    coalesced = causes_words(kernel(2e6, **strided, **half), kernel(1e6, **packed, **used))
    assert coalesced == "loads better coalesced (8.00 to 4.00 sectors a request)"
    assert causes_words(kernel(2e6, **packed, **used), kernel(1e6, **wide, **used)) == "loads 4.00x as wide"


def test_what_explains_the_time_comes_first() -> None:
    """If a kernel is faster despite many more instructions, these come after the reason."""
    before, after = (
        kernel(2e6, executed_inst=1.0, threads_per_inst=28.0),
        kernel(1e6, executed_inst=9.0, threads_per_inst=32.0),
    )
    assert [cause.topic for cause in causes(before, after)] == ["lanes", "instructions"]
    assert [cause.helps for cause in causes(after, before)] == [False, True]


def test_blocks_and_the_work_of_a_thread() -> None:
    """A different block size is named; a quarter of the threads for the same work do four times as much each."""
    assert causes_words(kernel(2e6), kernel(1e6, block=(32, 2, 1))) == (
        "blocks of 64 instead of 256 threads, 4.0x work per thread"
    )


def test_another_shape_of_as_many_threads_is_no_cause() -> None:
    """256 threads in a row count as the same block as 16 by 16: effects of the shape show in other counters."""
    assert not any(cause.topic == "block" for cause in causes(kernel(2e6), kernel(1e6, block=(16, 16, 1))))


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.002, "no counter says why (128 registers per thread instead of 64)"),
        (0.4, "50 % fewer HBM2 bytes, 128 registers per thread instead of 64"),
    ],
)
def test_a_unit_that_was_hardly_busy_explains_nothing(share: float, words: str) -> None:
    """Half the bytes of a DRAM at 0.2 % are no reason; of one at 40 % they are, whatever bounds the kernel."""
    sides = []
    for time_us, dram, registers in ((2e6, 2e8, 64.0), (1e6, 1e8, 128.0)):
        made = samples.analysis(samples.Sample("k", "latency", round(time_us), None, {"dram": dram}))
        level = replace(made.levels["dram"], share=share)
        others = {name: replace(one, share=None, amount_bytes=None) for name, one in made.levels.items()}
        own = {**made.kernel.counters, "registers_per_thread": registers}
        sides.append(replace(made, levels={**others, "dram": level}, kernel=replace(made.kernel, counters=own)))
    assert causes_words(*sides) == words


def test_what_a_block_takes_comes_after_what_explains_the_time() -> None:
    """Padding takes more shared memory: it is told, last, and alone explains nothing."""
    tile = {"smem_static_per_block_bytes": 23_100.0, "smem_dynamic_per_block_bytes": 0.0}
    padded = tile | {"smem_static_per_block_bytes": 31_040.0}
    said = "31.0 kB of shared memory per block instead of 23.1 kB"
    assert causes_words(kernel(1e6, **tile), kernel(1.13e6, **padded)) == f"no counter says why ({said})"
    more = causes_words(kernel(1e6, executed_inst=100.0, **tile), kernel(1.13e6, executed_inst=110.0, **padded))
    assert more == f"10 % more instructions, {said}"
