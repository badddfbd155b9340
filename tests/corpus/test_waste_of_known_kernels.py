"""Compare findings about waste in published kernels with NVIDIA's numbers and with reasons known from the source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import ncu_report
import pytest
from support.findings import unsaid

from rooflens.model.records import Analysis, Finding

MINE = (
    "uncoalesced_",
    "local_memory",
    "bank_conflicts",
    "thread_divergence",
    "partial_warps",
    "contended_",
    "unfused_",
    "fp64_",
    "slow_fp64",
    "tensor_cores_",
)
_EXCESS = re.compile(r"total of (\d+) excessive sectors \((\d+)% of the total (\d+) sectors\)")
_UNFUSED = re.compile(r"executes (\d+) fused and (\d+) non-fused (FP32|FP64) instructions")


def _findings(analyses: list[Analysis], report: str, kernel: str) -> Mapping[str, Finding]:
    """Return the findings of the first kernel with this name in this report, by ID."""
    fitting = (one for one in analyses if report in one.kernel.source and kernel in one.kernel.name)
    return {finding.id: finding for finding in next(fitting).findings}


def _said(analyses: list[Analysis], pattern: re.Pattern[str]) -> Iterator[tuple[Analysis, re.Match[str]]]:
    for one in analyses:
        for rule in one.kernel.rules:
            if match := pattern.search(rule.message):
                yield one, match


def test_every_number_of_the_evidence_stands_in_the_move(analyses: list[Analysis]) -> None:
    """A reader cannot check a move that has no numbers, or others than its evidence.

    For a library's kernel one number is enough, as its callers can change none of them.
    """
    found = [finding for one in analyses for finding in one.findings if finding.id.startswith(MINE)]
    assert len(found) >= 40
    for finding in found:
        left_out = unsaid(finding.evidence, finding.move)
        assert len(left_out) < len(finding.evidence) if finding.kind == "library" else not left_out, finding.move


def test_excess_sectors_are_those_of_nvidias_rule(analyses: list[Analysis]) -> None:
    """Loads and stores together have the excess of NVIDIA's rule; a side with a tenth of it has a finding."""
    seen = 0
    for one, match in _said(analyses, _EXCESS):
        totals, findings = one.kernel.code_totals, {finding.id for finding in one.findings}
        excess = {side: totals[f"{side}_excess_sectors"] for side in ("load", "store")}
        assert sum(excess.values()) == float(match[1])
        assert sum(totals[f"{side}_sectors"] for side in excess) == float(match[3])
        if int(match[2]) >= 20:
            seen += 1
            assert f"uncoalesced_global_{max(excess, key=lambda side: excess[side])}" in findings
    assert seen >= 5


def test_the_unfused_part_is_that_of_nvidias_rule(analyses: list[Analysis]) -> None:
    """NVIDIA counts warp instructions, we thread instructions: they agree to six points where we have a finding."""
    seen = 0
    for one, match in _said(analyses, _UNFUSED):
        finding = next((finding for finding in one.findings if finding.id == "unfused_arithmetic"), None)
        if finding is None or match[3].lower() not in finding.move:
            continue
        seen += 1
        share = next(item.value for item in finding.evidence if item.name == "unfused_share")
        assert share == pytest.approx(int(match[2]) / (int(match[1]) + int(match[2])), abs=0.06)
    assert seen >= 5


def test_divisions_that_the_next_version_replaced_limit_the_kernel(analyses: list[Analysis]) -> None:
    """Its authors replaced them by multiplications, which made it 1.78x faster; after that they limit it no longer."""
    before = _findings(analyses, "MW_Baseline", "compute_tendencies_x_279")["fp64_divisions"]
    assert before.severity == "limiter"
    after = _findings(analyses, "MW_DivToMult", "compute_tendencies_x_279")["fp64_divisions"]
    assert after.severity == "note"


def test_wmma_fragments_loaded_from_global_memory_are_half_used(analyses: list[Analysis]) -> None:
    """It loads 16-byte pieces of strided rows, at the lines of `load_matrix_sync`, and its memory is full."""
    loads = _findings(analyses, "cuda-fused-linear-layer", "wmma_gemm")["uncoalesced_global_load"]
    assert loads.severity == "limiter"
    assert "50 %" in loads.move
    assert sum(place.share for place in loads.where) > 0.9
    assert all(place.hotspot.line for place in loads.where)


def test_strided_float4_loads_at_the_roof_of_dram_are_a_note(analyses: list[Analysis]) -> None:
    """Caches use the other half of each sector: at 89 %, HBM moves nothing in vain."""
    loads = _findings(analyses, "v2-float4", "rms_norm_matrix")["uncoalesced_global_load"]
    assert (loads.severity, loads.gain) == ("note", None)


def test_a_naive_product_reads_one_value_for_a_warp_and_is_not_called_scattered(analyses: list[Analysis]) -> None:
    """Each of its instructions touches the fewest sectors possible."""
    loads = _findings(analyses, "CudaCode__naive", "naive_gemm")["uncoalesced_global_load"]
    assert loads.severity == "note"
    assert "neighbouring" not in loads.move


def test_a_kernel_of_768_threads_that_spills_is_limited_by_local_memory(analyses: list[Analysis]) -> None:
    """95 % of its sectors are local memory; its block leaves 80 registers per thread, and it uses them all."""
    local = _findings(analyses, "IndexSpaces.jl__profile.", "julia_frb")["local_memory"]
    assert local.severity == "limiter"
    assert "768 threads leave 80 registers" in local.move


def test_a_coalesced_optimizer_step_is_not_told_to_coalesce(analyses: list[Analysis]) -> None:
    """At 92 % of memory bandwidth no access of AdamW is at fault, and its findings are notes."""
    findings = _findings(analyses, "llm.c__adamw", "adamw")
    assert not [key for key in findings if key.startswith(("uncoalesced", "local", "bank", "thread", "partial"))]
    assert {finding.severity for finding in findings.values()} == {"note"}


def test_a_tree_search_diverges_and_blocks_of_one_thread_do_not_fill_warps(analyses: list[Analysis]) -> None:
    """17 of 32 threads diverge at branches in the first; 1 of 32 is the block's size in the second."""
    search = _findings(analyses, "profileBIGCROSS3", "searchKernel")["thread_divergence"]
    assert "branches" in search.move
    single = _findings(analyses, "GPU-MMS__profile", "testSortedSegments")
    assert "3.1 %" in single["partial_warps"].move
    assert "blocks of 1" in single["thread_divergence"].move


def test_only_the_kernel_that_reads_pinned_memory_is_told_of_the_host(analyses: list[Analysis]) -> None:
    """Its eight launches fill L2 from the host alone, at 29 to 32 % of PCIe 3 x8, which single sectors can reach."""
    told = [one for one in analyses if "host_memory" in {finding.id for finding in one.findings}]
    assert {one.kernel.function_name for one in told} == {"hd_enc_lvid_packed_cuda"}
    assert len(told) == 8
    for one in told:
        found = one.findings[0]
        numbers = {evidence.name: evidence.value for evidence in found.evidence}
        assert (found.id, found.severity) == ("host_memory", "limiter")
        assert 0.28 < numbers["host_read_share"] < 0.33
        assert numbers["host_part_of_fills"] > 0.99
        assert unsaid(found.evidence, found.move) == []


@pytest.mark.parametrize("name", ["CudaCode__naive", "cs599k__2025-04-21-77_06-MT", "cs599k__2025-04-21_v2-float4"])
def test_a_slice_of_l2_takes_in_a_sector_a_cycle(corpus: Path, name: str) -> None:
    """The fill path's per cent x the cycles of all slices gives the sectors read from DRAM, to 2.5 %."""
    report = ncu_report.load_report(str(corpus / f"{name}.ncu-rep"))
    kernels = report.range_by_idx(0)
    for kernel in map(kernels.action_by_idx, range(kernels.num_actions())):
        stored = {
            key: kernel.metric_by_name(metric).as_double()
            for key, metric in {
                "part": "lts__d_sectors_fill_device.avg.pct_of_peak_sustained_elapsed",
                "cycles": "lts__cycles_elapsed.sum",
                "read_bytes": "dram__bytes_read.sum",
            }.items()
        }
        filled = stored["part"] / 100 * stored["cycles"]
        assert filled == pytest.approx(stored["read_bytes"] / 32, rel=0.025)
