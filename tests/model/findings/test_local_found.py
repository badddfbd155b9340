"""Findings about local memory: its amount, spills or arrays, and the move for each number of registers."""

from __future__ import annotations

import pytest
from support.findings import at_limiter, found_by, make_facts, unsaid
from support.kernels import make_kernel
from support.loops import for_all

from rooflens.model.findings.memory import local_memory, register_cap

SECTORS = {"local_load_sectors": 300.0, "local_store_sectors": 100.0, "global_load_sectors": 500.0}


@pytest.mark.parametrize(("local", "said"), [(0.0, False), (9.0, False), (11.0, True)])
def test_local_memory_is_said_from_a_hundredth_of_the_sectors_on(local: float, *, said: bool) -> None:
    """Registers saved at a call are not worth mentioning."""
    found = found_by(local_memory, make_facts({"local_load_sectors": local, "global_load_sectors": 1000.0 - local}))
    assert (found is not None) is said


def test_half_filled_sectors_are_said_of_any_local_memory() -> None:
    """With 1 of 32 bytes used, each access moves a whole sector."""
    counters = {**SECTORS, "local_load_sectors": 1.0, "local_store_sectors": 0.0, "local_load_bytes_per_sector": 1.0}
    found = found_by(local_memory, make_facts(counters))
    assert found is not None
    assert "1 of 32 bytes of each sector is used" in found.move
    assert unsaid(found.evidence, found.move) == []


def test_local_memory_that_fills_dram_limits_the_kernel() -> None:
    """400 of 900 sectors are four ninths of the limiter's work: 1 / (5 / 9)."""
    found = found_by(local_memory, make_facts(SECTORS, {"dram": 0.9}, **at_limiter("dram", 0.9)))
    assert found is not None
    assert (found.severity, found.gain) == ("limiter", pytest.approx(1.8))


def test_what_dram_moves_beyond_global_accesses_is_local_memory_where_nothing_counts_it() -> None:
    """All global sectors hold 1 GB and DRAM moves 10: nine tenths are of local memory, or of TMA on later chips."""
    counters = {"global_touched_sectors": 1e9 / 32, "dram_bytes": 1e10}
    chip = {"compute_capability": "8.6"}

    def find(more: dict[str, float], kernel: dict[str, str]) -> str:
        facts = make_facts({**counters, **more}, {"dram": 0.9}, kernel=kernel, **at_limiter("dram", 0.9))
        found = found_by(local_memory, facts)
        return found.move if found is not None else ""

    assert "90 % of its bytes go to local memory" in find({}, chip)
    others = ({"dram_bytes": 3e9}, chip), ({}, {"compute_capability": "9.0"}), ({"local_load_inst": 0.0}, chip)
    assert [find(*other) for other in others] == ["", "", ""]


@pytest.mark.parametrize(
    ("block", "registers", "words"),
    [
        (128.0, 255.0, "at 255 registers per thread, the most"),
        (1024.0, 64.0, "use smaller blocks"),
        (1024.0, 57.0, "leave 64 registers per thread, of which 57 are in use"),
        (1024.0, 56.0, "if they cap the 56 registers per thread"),
        (128.0, 40.0, "index arrays with constants"),
    ],
)
def test_registers_tell_spills_from_arrays_where_spills_are_not_counted(
    block: float, registers: float, words: str
) -> None:
    """65,536 registers are 64 for each of 1,024 threads, allocated in eights: from 57 on all are in use."""
    found = found_by(local_memory, make_facts({**SECTORS, "block_size": block, "registers_per_thread": registers}))
    assert found is not None
    assert words in found.move
    assert found.confidence == "medium"
    assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize(
    ("spills", "registers", "words"),
    [
        (5000.0, 40.0, "raise launch bounds or `-maxrregcount`, which cap the 40 registers"),
        (5000.0, 255.0, "keep fewer values"),
        (0.0, 255.0, "index arrays with constants"),
    ],
)
def test_counted_spills_decide(spills: float, registers: float, words: str) -> None:
    """If spills are counted, 0 means an array even at 255 registers."""
    counters = {**SECTORS, "spill_inst": spills, "block_size": 128.0, "registers_per_thread": registers}
    found = found_by(local_memory, make_facts(counters))
    assert found is not None
    assert words in found.move
    assert found.confidence == "high"
    assert ("5.00 k instructions are spills" in found.move) is bool(spills)
    assert unsaid(found.evidence, found.move) == []


def test_opcodes_tell_where_sectors_are_not_counted() -> None:
    """One of four memory instructions is local; shared memory is not counted."""
    kernel = {"warp_opcodes": {"LDL.64": 10, "LDG.E": 20, "STG.E": 10, "LDS": 100}}
    found = found_by(local_memory, make_facts(kernel=kernel))
    assert found is not None
    assert "25 % of its memory instructions go to local memory" in found.move
    assert found.confidence == "low"


def test_nothing_is_said_where_only_one_kind_is_counted() -> None:
    """Local sectors without global ones give no share."""
    assert local_memory(make_facts({"local_load_sectors": 5.0})) is None


@for_all("threads, registers", [(1024, 64), (768, 80), (512, 128), (256, 255), (100, 255), (None, None)])
def test_a_block_leaves_its_threads_so_many_registers(threads: int | None, registers: int | None) -> None:
    """As limited by `-Xptxas`: 65,536 over the threads of whole warps, in eights, at most 255."""
    assert register_cap(make_kernel({"block_size": threads})) == registers  # type: ignore[dict-item]
