"""Findings about operands that are loaded repeatedly: each step of reuse, and where it does not apply."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.findings import at_limiter, found_by, make_facts, unsaid

from rooflens.model.findings.reuse import low_reuse
from rooflens.model.records import LEVELS, Bottleneck, Level, Pipe

_PRODUCTS = 1_000_000
"""Multiply-adds of each kernel: 2 MFLOP."""
_NO_SHARED = {"smem_static_per_block_bytes": 0.0, "smem_dynamic_per_block_bytes": 0.0}
_SHARED = {"smem_static_per_block_bytes": 4096.0, "smem_dynamic_per_block_bytes": 0.0}


def _facts(
    loads: dict[str, int], counters: dict[str, float], *, arithmetic: float = 0.1, dram_bytes: float = 1e5, **more: int
) -> Any:
    """Make a kernel of a million multiply-adds with this many thread loads, whose L1 is 90 % busy."""
    levels = {name: Level() for name in LEVELS} | {"l1": Level(share=0.9), "dram": Level(amount_bytes=dram_bytes)}
    pipes = {"fp32": Pipe(2.0 * _PRODUCTS, "FLOP", "opcode", share=arithmetic)}
    threads = {**loads, "FFMA": _PRODUCTS, **more}
    kernel = {"thread_opcodes": threads, "warp_opcodes": {name: count // 32 for name, count in threads.items()}}
    return make_facts(counters, kernel=kernel, levels=levels, pipes=pipes, top_share=0.9, **at_limiter("l1", 0.9))


@pytest.mark.parametrize(
    ("loads", "counters", "begins"),
    [
        ({"LDG.E": 2 * _PRODUCTS}, _NO_SHARED, "tile it in shared memory"),
        ({"LDS": 2 * _PRODUCTS}, _SHARED, "let each thread compute several results"),
        ({"LDS": _PRODUCTS * 3 // 4}, _SHARED, "load 16 bytes at once from shared memory"),
        ({"LDS.128": _PRODUCTS // 5}, _SHARED, "let each thread compute several results"),
    ],
    ids=["no tile", "8 bytes each", "3 bytes each, narrow", "3.2 bytes each, wide"],
)
def test_each_kernel_is_told_the_next_step_of_reuse(
    loads: dict[str, int], counters: dict[str, float], begins: str
) -> None:
    """A tile, then several results per thread, then wide loads; each at least halves what L1 delivers: 2x."""
    found = found_by(low_reuse, _facts(loads, counters))
    assert found is not None
    assert found.move.startswith(begins)
    assert unsaid(found.evidence, found.move) == []
    assert (found.severity, found.gain) == ("limiter", pytest.approx(2.0))


@pytest.mark.parametrize(("count", "said"), [(499_000, False), (500_000, True)])
def test_operands_of_two_bytes_a_product_are_reused(count: int, *, said: bool) -> None:
    """With two products per value of four bytes, the next step is tiles with several results."""
    assert (low_reuse(_facts({"LDS": count}, _SHARED)) is not None) is said


@pytest.mark.parametrize(
    ("loads", "counters", "arithmetic", "said"),
    [
        ({"LDS.128": _PRODUCTS // 16}, _SHARED, 0.5, True),
        ({"LDS.128": _PRODUCTS // 16}, _SHARED, 0.7, False),
        ({"LDS": _PRODUCTS // 4}, _SHARED, 0.3, False),
        ({"LDG.E.128": _PRODUCTS // 16}, _NO_SHARED, 0.3, False),
    ],
    ids=["wide", "near its peak", "narrow", "no tile"],
)
def test_the_last_step_of_reuse_is_a_tile_of_each_warp(
    loads: dict[str, int], counters: dict[str, float], arithmetic: float, *, said: bool
) -> None:
    """With wide loads and one byte per product, L1 is still full: a quarter less gives 0.9 / 0.675."""
    found = found_by(low_reuse, _facts(loads, counters, arithmetic=arithmetic, dram_bytes=1e4))
    assert (found is not None) is said
    if found is not None:
        assert found.move.startswith("arrange the threads of a warp as a tile")
        assert unsaid(found.evidence, found.move) == []
        assert found.gain == pytest.approx(1 / 0.75)


def test_matrix_instructions_are_not_told_to_reuse() -> None:
    """Their operands are fragments, whose bytes are not loaded for one multiply-add each."""
    assert low_reuse(_facts({"LDS": 2 * _PRODUCTS}, _SHARED, HMMA=32)) is None


@pytest.mark.parametrize(
    ("arithmetic", "said"), [(0.019, False), (0.02, True), (0.44, True), (0.45, False), (0.8, False)]
)
def test_reuse_is_the_matter_only_where_arithmetic_waits(arithmetic: float, *, said: bool) -> None:
    """At half of the limiter's 90 % arithmetic is close to it; below 2 % the kernel is about moving data."""
    assert (low_reuse(_facts({"LDS": 2 * _PRODUCTS}, _SHARED, arithmetic=arithmetic)) is not None) is said


@pytest.mark.parametrize(("dram_bytes", "said"), [(2e6, True), (2.1e6, False)])
def test_bytes_that_come_from_dram_are_not_fetched_again(dram_bytes: float, *, said: bool) -> None:
    """8 MB are delivered, four times the 2 MB from DRAM; with more from DRAM the ratio is lower."""
    assert (low_reuse(_facts({"LDS": 2 * _PRODUCTS}, _SHARED, dram_bytes=dram_bytes)) is not None) is said


def test_dram_that_limits_is_no_matter_of_delivery() -> None:
    """Reuse relieves only levels and pipes that bring operands to the threads."""
    facts = _facts({"LDS": 2 * _PRODUCTS}, _SHARED)
    assert low_reuse(replace(facts, **at_limiter("dram", 0.9))) is None


@pytest.mark.parametrize(
    ("changes", "shared", "begins"),
    [
        ({}, 0.0, "tile it in shared memory"),
        ({}, 4096.0, "let each thread compute several results"),
        ({"fma": 0.5}, 4096.0, None),
        ({"from_l2": 0.3}, 4096.0, None),
        ({"tensor_pipe": 0.3}, 4096.0, None),
    ],
)
def test_pipes_tell_where_no_operations_are_counted(
    changes: dict[str, float], shared: float, begins: str | None
) -> None:
    """L1 90 % busy at 20 % of the FMA pipe and 5 % of L2; with FMA, L2 or tensor pipe half as busy it is not reuse."""
    stages = {"lsu_input": 0.9, "from_l2": changes.get("from_l2", 0.05)}
    levels = {name: Level() for name in LEVELS} | {"l1": Level(share=0.9, stages=stages)}
    busy = {"fma": 0.2, **{name: share for name, share in changes.items() if name != "from_l2"}}
    facts = make_facts(
        {"smem_static_per_block_bytes": shared, "smem_dynamic_per_block_bytes": 0.0},
        levels=levels,
        pipes={name: Pipe(None, "cycle", "counter", share=share) for name, share in busy.items()},
        flags=("no_flop_counters",),
        **at_limiter("l1", 0.9),
    )
    found = found_by(low_reuse, facts)
    assert (found.move if found else "").startswith(begins or "") is True
    assert (found is not None) is (begins is not None)
    if found is not None:
        assert unsaid(found.evidence, found.move) == []
    assert low_reuse(replace(facts, flags=())) is None  # operations are counted, and the count is zero


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "results"),
        ({"smem_static_per_block_bytes": 0.0, "smem_dynamic_per_block_bytes": 0.0}, "tile"),
        ({"global_store_requests": 1600.0, "global_load_requests": 25_600.0, "global_load_sectors": 102_400.0}, "wide"),
        ({"global_load_requests": 700.0}, None),
        ({"dram_bytes": 1e7}, None),
        ({"global_store_requests": 50.0}, None),
    ],
)
def test_requests_tell_where_only_the_sm_is_known_to_be_busy(changes: dict[str, float], kind: str | None) -> None:
    """100 warps store once each and load 64 times; few loads, new bytes or one store per block are not operands."""
    counters = {
        "global_load_requests": 6400.0,
        "global_load_sectors": 25_600.0,
        "global_store_requests": 100.0,
        "grid_size": 25.0,
        "block_size": 128.0,
        **changes,
    }
    levels = {name: Level() for name in LEVELS} | {"dram": Level(amount_bytes=changes.get("dram_bytes", 20_000.0))}
    facts = make_facts(counters, levels=levels, bound="compute", limiter=Bottleneck(None, 0.9), top_share=0.9)
    found = found_by(low_reuse, facts)
    assert (found and found.kind) == kind
    if found is not None:
        assert "the SM is 90 % busy" in found.move
        assert unsaid(found.evidence, found.move) == []
