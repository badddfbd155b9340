from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from truth import Measured, Row, read_measured, rows

from rooflens.model.records import Kernel

FLOP = 2.0 * 4096**3
COUNT = int(FLOP / (2 * 64 * 256 * 16))
"""Warpgroup instructions of 64 x 256 x 16 that a product of 4096 takes."""

PRODUCT = Kernel(
    digest="",
    source="",
    index=0,
    name="sm90_gemm",
    function_name="sm90_gemm",
    status="ok",
    compute_capability="9.0",
    nvtx_range="rooflens/gemm.bf16_4096",
    counters={"l1_shared_data_bytes": 1.1e9, "smem_useful_bytes": 1e9, "l2_return_bytes": 4e8, "ffma_threads": 0.0},
    thread_opcodes={"IADD3": 32},
    warp_opcodes={"HGMMA.64x256x16.F32.BF16": 4 * COUNT},
    tensor_ops={"src_bf16_dst_fp32": FLOP},
)


def _rows(kernel: Kernel, numbers: Mapping[str, float] | None = None, case: str = "gemm.bf16_4096") -> dict[str, Row]:
    return {row.name: row for row in rows({case: [Measured(kernel, numbers or {})]})}


def test_a_warpgroup_instruction_is_counted_by_each_of_its_warps() -> None:
    """With a count of four per instruction, tables, counters and formula agree, and nothing deviates."""
    found = _rows(PRODUCT)
    assert found["gemm.bf16_4096: counts of one warpgroup instruction"].measured == 4
    for what in ("opcode tables against the formula", "operation counters against the formula"):
        assert found[f"gemm.bf16_4096: {what}"].ratio == 1
    assert not any(row.is_off for row in found.values())


def test_a_warpgroup_instruction_that_is_counted_once_is_off() -> None:
    """If the table counts once per warpgroup, the formula differs by a factor of four, and the row gives the count."""
    found = _rows(replace(PRODUCT, warp_opcodes={"HGMMA.64x256x16.F32.BF16": COUNT}))
    assert found["gemm.bf16_4096: counts of one warpgroup instruction"].measured == 1
    off = [row.name.partition(": ")[2] for row in found.values() if row.is_off]
    assert off == [
        "opcode tables against the formula",
        "operation counters against opcode tables",
        "counts of one warpgroup instruction",
    ]


def test_what_crossed_the_levels_is_found_not_demanded() -> None:
    """Operand bytes of wgmma, requested bytes and TMA's part are shown beside the counts, without a tolerance."""
    names = ("l1tex__m_xbar2l1tex_read_bytes.sum", "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum")
    found = _rows(PRODUCT, dict(zip(names, (5e8, 4.5e8), strict=True)))
    on_chip = {name.partition(": ")[2]: row for name, row in found.items() if row.kind == "finding"}
    assert {name: row.ratio for name, row in on_chip.items()} == {
        "bytes returned by L2 against bytes that reached the SMs": pytest.approx(0.8),
        "shared-memory bytes against wgmma's operands": pytest.approx(1.1e9 / (COUNT * (64 + 256) * 16 * 2)),
        "shared-memory bytes against those asked for": pytest.approx(1.1),
        "bytes loaded by TMA against all that reached the SMs": pytest.approx(0.9),
    }
    assert not any(row.is_off for row in on_chip.values())


@pytest.mark.parametrize(("dram_bytes", "is_off"), [(11.8 * 2**28, False), (13.3 * 2**28, True)])
def test_saxpy_moves_what_it_must(dram_bytes: float, is_off: bool) -> None:  # noqa: FBT001 - a table
    """Some DRAM bytes may stay in L2; FLOPs of both sources are compared with the formula and with each other."""
    counters = {"dram_bytes": dram_bytes, "ffma_threads": 2.0**28, "fadd_threads": 0.0, "fmul_threads": 0.0}
    saxpy = replace(PRODUCT, nvtx_range="rooflens", counters=counters, thread_opcodes={"FFMA": 2**28}, tensor_ops={})
    found = _rows(replace(saxpy, warp_opcodes={}), case="saxpy.n28")
    assert found["saxpy.n28: DRAM bytes against the compulsory ones"].is_off == is_off
    assert [row.ratio for name, row in found.items() if "DRAM" not in name] == [1, 1, 1]


def test_what_is_not_measured_is_no_row() -> None:
    """A report without counters gives no rows."""
    assert _rows(replace(PRODUCT, counters={}, thread_opcodes={}, warp_opcodes={}, tensor_ops={})) == {}


@pytest.mark.corpus
def test_a_published_product_of_4096_has_its_flops(corpus: Path) -> None:
    """A T4's matrix product with sides of 4096 gives a ratio of 1 by opcode tables and by operation counters."""
    (report,) = corpus.rglob("cuda-fused-linear-layer*(1).ncu-rep")
    product = next(one for one in read_measured(report) if one.kernel.name == "wmma_gemm")
    found = rows({"gemm_ladder.08_tensor_core": [product]})
    assert [row.ratio for row in found if row.kind == "must"] == [1, 1, 1]
    assert product.counts["sass__inst_executed_per_opcode_with_modifier_all/HMMA.1688.F32"] == 67_108_864
