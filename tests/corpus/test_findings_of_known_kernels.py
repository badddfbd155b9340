"""Findings about warps, waits and idle units in published kernels whose reasons are known from their source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import ncu_report
import pytest
from support.findings import unsaid

from rooflens.model.records import Analysis, Finding, Kernel
from rooflens.model.roofline.occupancy import blocks_by_registers, find_occupancy, next_step, set_aside_bytes

MINE = ("stall_", "low_occ", "achieved_", "small_", "tail_", "load_", "partition_", "short_", "launch_")


def _findings(analyses: list[Analysis], report: str, kernel: str) -> Mapping[str, Finding]:
    """Return the findings of the first kernel with this name in this report, by ID."""
    fitting = (one for one in analyses if report in one.kernel.source and kernel in one.kernel.name)
    return {finding.id: finding for finding in next(fitting).findings}


def test_every_number_of_the_evidence_stands_in_the_move(analyses: list[Analysis]) -> None:
    """A reader cannot check a move that has no numbers, or others than its evidence.

    For a library's kernel one number is enough, as its callers can change none of them.
    """
    found = [finding for one in analyses for finding in one.findings if finding.id.startswith(MINE)]
    assert len(found) > 400
    for finding in found:
        left_out = unsaid(finding.evidence, finding.move)
        assert len(left_out) < len(finding.evidence) if finding.kind == "library" else not left_out, finding.move


def test_shared_memory_that_limits_is_never_told_as_registers(analyses: list[Analysis]) -> None:
    """The move names only the resources that tie for the fewest blocks."""
    for one in analyses:
        limiters = find_occupancy(one.kernel).limiters
        for finding in one.findings:
            if finding.id == "low_occupancy" and "registers" not in limiters:
                assert "register" not in finding.move


def test_flash_attention_on_blackwell_is_told_the_size_of_a_tile_that_fits_three_times(
    analyses: list[Analysis],
) -> None:
    """Its 40,960 bytes allow two blocks and registers four; its report's table has three blocks up to 33 kB."""
    low = _findings(analyses, "blackwell-kernels", "flash_attn")["low_occupancy"]
    assert "41.0 kB of shared memory per block allow 2 blocks per SM, 33.0 kB would allow 3" in low.move


def test_a_fused_gemm_with_one_warp_a_scheduler_lacks_warps_and_not_chains(analyses: list[Analysis]) -> None:
    """Its largest wait, 1.88 of 5.83 cycles, occurs in every kernel; it has only 96 blocks of 4 warps for 108 SMs.

    It is made of CUTLASS's templates by a program of its own, which can change it.
    """
    found = _findings(analyses, "cutlass__384", "Kernel")
    assert next(iter(found)) == "low_occupancy"
    assert found["low_occupancy"].severity == "limiter"
    assert found["low_occupancy"].gain is not None
    assert found["low_occupancy"].gain.factor == 2.0
    assert found["low_occupancy"].move.startswith("share the work of a block of 128 threads among more warps")
    assert found["stall_wait"].severity == "note"


def test_adamw_waits_for_memory_that_is_full(analyses: list[Analysis]) -> None:
    """At 92 % of DRAM bandwidth waiting for loads is real but costs nothing."""
    wait = _findings(analyses, "llm.c__adamw", "adamw")["stall_long_scoreboard"]
    assert wait.severity == "note"
    assert wait.move.startswith("move fewer bytes through DRAM, 92 % busy")


def test_the_arithmetic_of_occupancy_agrees_with_every_report(kernels: list[Kernel]) -> None:
    """Blocks by registers equal the report's; shared memory is explained by what an SM sets aside or could."""
    checked = 0
    for kernel in kernels:
        counters = kernel.counters
        if {"blocks_limit_registers", "registers_per_thread", "sm_registers", "block_size"} <= counters.keys():
            blocks = blocks_by_registers(
                counters["registers_per_thread"], counters["block_size"], counters["sm_registers"]
            )
            assert blocks == counters["blocks_limit_registers"]
            checked += 1
        if counters.get("smem_per_block_bytes") and "sm_smem_bytes" in counters:
            assert set_aside_bytes(kernel) is not None
    assert checked > 200


def test_the_next_step_is_where_the_tables_of_the_reports_step(kernels: list[Kernel], corpus: Path) -> None:
    """NVIDIA's tables of occupancy by registers rise exactly at the count that is named, and not before."""
    checked = 0
    for kernel in kernels:
        step = next_step(kernel, "registers")
        table = _table(corpus, kernel, "launch__occupancy_per_register_count")
        if step is None or not table or find_occupancy(kernel).limiters != ("registers",):
            continue
        assert table[int(step.to)] > table[int(step.now)]
        assert table[int(step.to) + 1] == table[int(step.now)]
        checked += 1
    assert checked > 10


def _table(corpus: Path, kernel: Kernel, name: str) -> dict[int, float]:
    path = corpus / kernel.source.rpartition("/")[2]
    if not path.exists():
        pytest.skip("the report stands elsewhere")
    action = ncu_report.load_report(str(path)).range_by_idx(0).action_by_idx(kernel.index)
    metric = action.metric_by_name(name) if action is not None else None
    if metric is None or not metric.has_correlation_ids():
        return {}
    keys = metric.correlation_ids()
    return {int(keys.as_double(at)): metric.as_double(at) for at in range(metric.num_instances())}
