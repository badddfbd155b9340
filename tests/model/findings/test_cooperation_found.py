"""Findings about threads of a block: values passed through global memory, and reductions that end in one thread."""

from __future__ import annotations

from typing import Any

import pytest
from support.findings import at_limiter, found_by, make_facts, unsaid

from rooflens.model.findings.cooperation import (
    barriers_in_last_warp,
    few_bytes_in_flight,
    few_elements,
    passed_through_global,
    reduction_without_shuffles,
)
from rooflens.model.records import LEVELS, Bottleneck, Level
from rooflens.model.verdict.facts import Facts

_NO_SHARED = {"smem_static_per_block_bytes": 0.0, "smem_dynamic_per_block_bytes": 0.0}
_IN_PLACE = {
    **_NO_SHARED,
    "global_load_sectors": 1000.0,
    "global_store_requests": 250.0,
    "l2_read_miss_bytes": 8000.0,
    "warp_latency_cycles": 40.0,
    "stall_barrier_cycles": 10.0,
}
"""32,000 bytes that loads touch, a quarter of them fetched; a warp waits at barriers for a quarter of its time."""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, True),
        ({"smem_static_per_block_bytes": 1024.0}, False),
        ({"stall_barrier_cycles": 0.4}, False),
        ({"l2_read_miss_bytes": 26_000.0}, False),
        ({"l2_read_miss_bytes": None}, False),
        ({"l2_read_miss_bytes": None, "dram_read_bytes": 8000.0}, True),
        ({"l2_read_miss_bytes": None, "l2_bytes": 32_000.0, "l2_hit_rate": 0.75}, True),
    ],
)
def test_what_is_loaded_again_between_barriers_goes_through_global_memory(
    changes: dict[str, float | None], *, said: bool
) -> None:
    """Three quarters are reloaded; shared memory, no waits, or few reloaded bytes mean something else."""
    facts = make_facts({**_IN_PLACE, **changes}, {"l2": 0.3}, kernel={"stalls": {"long_scoreboard": 0.6}})
    found = found_by(passed_through_global, facts)
    assert (found is not None) is said
    if found is not None:
        assert "75 % of the bytes loaded were loaded before" in found.move
        assert found.gain == pytest.approx(1 / (1 - 0.75 * 0.6))
        assert unsaid(found.evidence, found.move) == []


_SUM = {
    "block_size": 256.0,
    "grid_size": 1000.0,
    "smem_static_per_block_bytes": 1024.0,
    "smem_dynamic_per_block_bytes": 0.0,
    "global_store_requests": 1000.0,
    "dram_read_bytes": 256_000.0 * 4,
    "executed_inst": 8000.0 * 100,
}
"""A thousand blocks of 256 threads, each with one value in shared memory, one element and 100 instructions a warp."""


def _sum(changes: dict[str, float | None], **kernel: Any) -> Facts:
    level = {"kernel": kernel, **at_limiter("l1", 0.7)}
    return make_facts({**_SUM, **changes}, {"l1": 0.7, "issue": 0.3}, **level)


def test_a_reduction_is_told_its_elements_its_shuffles_and_its_barriers() -> None:
    """One element per thread for 8 steps, 5 of them within a warp, in 100 instructions per warp."""
    facts = _sum({})
    elements, shuffles, barriers = (
        found_by(rule, facts) for rule in (few_elements, reduction_without_shuffles, barriers_in_last_warp)
    )
    assert elements is not None
    assert shuffles is not None
    assert barriers is not None
    assert "a thread loads 1.00 elements for 8 steps in blocks of 256 threads" in elements.move
    assert elements.gain == pytest.approx(2.0)  # half as many blocks, and nothing else is as busy
    assert "5 of the 8 steps are within one warp, 62 %" in shuffles.move
    assert "each warp executes 100 instructions" in barriers.move
    # Seven of eight warps leave five steps of four instructions out of their hundred: 0.175 of all.
    assert barriers.gain == pytest.approx(1 / (1 - 0.175))
    for found in (elements, shuffles, barriers):
        assert unsaid(found.evidence, found.move) == []
        assert found.severity != "note"


@pytest.mark.parametrize(
    ("changes", "elements", "tree"),
    [
        ({"dram_read_bytes": 256_000.0 * 16}, False, True),  # four elements a thread
        ({"executed_inst": 8000.0 * 60}, True, False),  # fewer than 8 instructions a step: unrolled or shuffles
        ({"global_store_requests": 8000.0}, False, False),  # every warp stores
        ({"smem_static_per_block_bytes": 8192.0}, False, False),  # a tile
        ({"block_size": 32.0}, False, False),  # one warp
        ({"global_store_requests": None}, False, False),
    ],
)
def test_a_block_that_keeps_a_tile_or_stores_more_is_no_reduction(
    changes: dict[str, float | None], *, elements: bool, tree: bool
) -> None:
    """A reduction keeps one value per thread and stores one per block; several elements or few steps need no move."""
    facts = _sum(changes)
    assert (few_elements(facts) is not None) is elements
    assert (reduction_without_shuffles(facts) is not None) is tree
    assert (barriers_in_last_warp(facts) is not None) is tree


@pytest.mark.parametrize(("filled", "l2", "said"), [(4.0, 0.05, True), (4.0, 0.4, False), (32.0, 0.05, False)])
def test_a_print_tells_a_reduction_by_the_one_value_of_its_sectors(filled: float, l2: float, *, said: bool) -> None:
    """Stores by all threads would fill their sectors, or keep L2 busier than DRAM."""
    counters = {**_SUM, "global_store_requests": None, "global_store_bytes_per_sector": filled}
    shares = {"l1": 0.7, "l2": l2, "dram": 0.2}
    assert (few_elements(make_facts(counters, shares)) is not None) is said


def test_shuffles_and_spared_barriers_are_not_advised_again() -> None:
    """A kernel with shuffles, or with fewer barriers than steps, already does what the move advises."""
    assert reduction_without_shuffles(_sum({}, warp_opcodes={"SHFL.DOWN": 40_000, "IADD3": 760_000})) is None
    few = {"BAR.SYNC": 8000 * 4, "IADD3": 800_000}
    assert barriers_in_last_warp(_sum({}, warp_opcodes=few)) is None
    assert barriers_in_last_warp(_sum({}, warp_opcodes={**few, "BAR.SYNC": 8000 * 8})) is not None


@pytest.mark.parametrize(
    ("changes", "share", "said"),
    [
        ({}, 0.6, True),
        ({"global_load_sectors": 5000.0}, 0.6, False),
        ({"waves": 1.5}, 0.6, False),
        ({"warp_latency_cycles": 10.0, "stall_wait_cycles": 2.0}, 0.6, False),
        ({}, 0.2, False),
    ],
)
def test_threads_that_load_little_keep_dram_waiting(changes: dict[str, float], share: float, *, said: bool) -> None:
    """8 of 16 bytes each in ten waves; more bytes, few waves, measured waits or an idle DRAM say otherwise."""
    counters = {"grid_size": 80.0, "block_size": 100.0, "global_load_sectors": 2000.0, "waves": 10.0, **changes}
    levels = {name: Level() for name in LEVELS} | {"dram": Level(share=share, source="dram__throughput")}
    facts = make_facts(counters, {"dram": share}, levels=levels, memory=Bottleneck("dram", share))
    found = found_by(few_bytes_in_flight, facts)
    assert (found is not None) is said
    if found is not None:
        assert "a thread loads 8.00 bytes, in 10.0 waves, and DRAM is only 60 % busy" in found.move
        assert found.gain == pytest.approx(1 / (1 - (1 - 0.6 / 0.9) / 2))
