from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.kernels import make_kernel
from support.loops import for_all

from rooflens.model.analyze import analyze
from rooflens.model.counters.families import OF_ACTIVE
from rooflens.model.failed import failed_kernel
from rooflens.model.knowledge.items import find_item, names_of
from rooflens.model.records import Kernel, Outside
from rooflens.model.roofline import flops
from rooflens.model.summary import cautions, notes
from rooflens.model.verdict import flags
from rooflens.model.verdict.decide import _DOUBTS
from rooflens.model.verdict.flags import changes_verdict

RESIDENT = {"l2_write_bytes": 65536.0, "dram_write_bytes": 0.0}
COUNTED = {"thread_opcodes": {"FFMA": 1}}
A100 = {"gpu": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0"}
CLOCK = {"duration_ns": 1e6, "sm_clock_hz": 1e9}


FLAGS = names_of("flags")
LOOKED_UP = {"counter_sources": {"l2_bytes": "lts__t_sectors_srcunit_tex.sum"}}

ONE_BLOCK = {"blocks_limit_registers": 1.0, "blocks_limit_smem": 3.0}


def flags_of(counters: Mapping[str, float] | None = None, **fields: Any) -> tuple[str, ...]:
    """Return the flags of a kernel made of these counters."""
    return analyze(make_kernel(counters, **fields)).flags


CASES: dict[str, tuple[Kernel, Kernel]] = {
    "all_counters_nan": (make_kernel(status="failed"), make_kernel(status="partial")),
    "not_analyzed": (failed_kernel(make_kernel(), "a clock of 1e308 Hz"), make_kernel(status="failed")),
    "atomics_cross_twice": (
        make_kernel({"l2_bytes": 1e4, "l2_atomic_bytes": 201.0}, **LOOKED_UP),
        make_kernel({"l2_bytes": 1e4, "l2_atomic_bytes": 200.0}, **LOOKED_UP),
    ),
    "bank_conflicts": (
        make_kernel({"l1_shared_data_bytes": 1000.0, "smem_conflict_bytes": 201.0}),
        make_kernel({"l1_shared_data_bytes": 1000.0, "smem_conflict_bytes": 200.0}),
    ),
    "clocks_moved": (
        make_kernel({**CLOCK, "elapsed_cycles": 1.06e6}),
        make_kernel({**CLOCK, "elapsed_cycles": 1.04e6}),
    ),
    "dram_clock_low": (
        make_kernel({"dram_bus_peak_bytes_per_s": 0.89e12, "device_dram_peak_bytes_per_s": 1e12}),
        make_kernel({"dram_bus_peak_bytes_per_s": 0.91e12, "device_dram_peak_bytes_per_s": 1e12}),
    ),
    "dram_writes_stay_in_l2": (make_kernel(RESIDENT), make_kernel({**RESIDENT, "dram_write_bytes": 656.0})),
    "fp16_is_upper_bound": (make_kernel(thread_opcodes={"HFMA2": 1}), make_kernel(thread_opcodes={"HADD2.F32": 1})),
    "l1_misses_async_copies": (
        make_kernel({"l1_writeback_bytes": 0.0}, warp_opcodes={"LDGSTS.E.BYPASS.128": 1}),
        make_kernel({"l1_writeback_bytes": 0.0, "l1_tag_bytes": 9.0}, warp_opcodes={"LDGSTS.E.BYPASS.128": 1}),
    ),
    "smem_bytes_lower_bound": (
        make_kernel({"smem_op_bytes": 640.0}, compute_capability="8.0"),
        make_kernel({"smem_op_bytes": 640.0, "smem_async_bytes": 0.0}, compute_capability="8.0"),
    ),
    "smem_bytes_upper_bound": (
        make_kernel({"l1_shared_data_bytes": 640.0}),
        make_kernel({"l1_shared_data_bytes": 640.0, "smem_access_wavefronts": 4.0}),
    ),
    "no_dram_counters": (
        make_kernel({"sysmem_bytes": 1.0}, compute_capability="8.7"),
        make_kernel({"sysmem_bytes": 1.0, "dram_bytes": 1.0}),
    ),
    "no_flop": (make_kernel({"tensor_busy_share": 0.0}, thread_opcodes={"MOV": 1}), make_kernel(**COUNTED)),
    "no_flop_counters": (make_kernel({"alu_inst_share": 0.1}), make_kernel({"alu_inst_share": 0.1}, **COUNTED)),
    "not_a_kernel": (make_kernel(workload="range"), make_kernel(workload="kernel")),
    "partial_counters": (make_kernel(status="partial"), make_kernel(status="ok")),
    "peak_from_datasheet": (
        make_kernel({"sm_clock_hz": 1e9}, **COUNTED, **A100),
        make_kernel({"sm_clock_hz": 1e9, "ffma_peak_threads_per_s": 1e12}, **COUNTED, **A100),
    ),
    # A block of 4 warps in 48 slots is 8.3 %, whatever the table of another launch says.
    "occupancy_over_theoretical": (
        make_kernel({"achieved_occupancy": 0.1665, **ONE_BLOCK}, block=(128, 1, 1), compute_capability="8.6"),
        make_kernel({"achieved_occupancy": 0.0833, **ONE_BLOCK}, block=(128, 1, 1), compute_capability="8.6"),
    ),
    "share_over_one": (
        make_kernel({"dram_bus_share": 1.03}),
        make_kernel({"dram_bus_share": 1.02, "alu_inst_share": 1.0}),
    ),
    "share_of_active_cycles": (
        make_kernel({"fma_busy_share": 0.5}, counter_sources={"fma_busy_share": f"a per cent{OF_ACTIVE}"}),
        make_kernel({"fma_busy_share": 0.5}, counter_sources={"fma_busy_share": "a per cent"}),
    ),
    "short_and_replayed": (
        make_kernel({"duration_ns": 19_999.0, "passes": 2.0}),
        make_kernel({"duration_ns": 20_000.0, "passes": 2.0}),
    ),
    "smem_tensor_width_unknown": (
        make_kernel({"smem_tensor_wavefronts": 1.0}),
        make_kernel({"smem_tensor_wavefronts": 0.0}),
    ),
    "sol_pair_only": (make_kernel({"sol_compute": 0.1, "sol_memory": 0.1}), make_kernel({"sol_compute": 0.1})),
    "sparse_tensor_work": (
        make_kernel(warp_opcodes={"HMMA.SP.16832.F32": 1}),
        make_kernel(warp_opcodes={"HMMA.16816.F32": 1}),
    ),
    "synthetic": (make_kernel(synthetic=True), make_kernel(synthetic=False)),
    "tcgen05_without_operation_counters": (
        make_kernel(warp_opcodes={"UTCHMMA": 1}),
        make_kernel(warp_opcodes={"UTCHMMA": 1}, tensor_ops={"op_utchmma_src_bf16_dst_fp32": 1.0}),
    ),
    "tensor_counter_reads_zero": (
        make_kernel({"tensor_busy_share": 0.1}, tensor_ops={"src_bf16_dst_fp32": 0.0}),
        make_kernel({"tensor_busy_share": 0.1}, tensor_ops={"src_bf16_dst_fp32": 1.0}),
    ),
    "tensor_flop_estimated": (
        make_kernel({"tensor_float_busy_share": 0.1}, tensor_peaks_per_s={"src_fp16_dst_fp32": 1e14}),
        make_kernel({"tensor_float_busy_share": 0.03}, tensor_peaks_per_s={"src_fp16_dst_fp32": 1e14}),
    ),
    "tensor_flop_unknown": (make_kernel({"tensor_busy_share": 0.1}), make_kernel({"tensor_busy_share": 0.03})),
    "tensor_work_not_measured": (
        make_kernel({"ffma_threads": 1.0}),
        make_kernel({"ffma_threads": 1.0, "tensor_busy_share": 0.0}),
    ),
    "wgmma_count_estimated": (
        make_kernel(warp_opcodes={"HGMMA.64x64x16.F32": 1}),
        make_kernel(warp_opcodes={"HGMMA.64x64x16.F32": 1}, tensor_ops={"op_hgmma_src_fp16": 1.0}),
    ),
    "fp16_not_measured": (
        make_kernel({"fadd_threads": 1.0, "fmul_threads": 1.0, "ffma_threads": 1.0}),
        make_kernel(thread_opcodes={"FFMA": 1}),
    ),
    "fp32_not_measured": (make_kernel({"dfma_threads": 1.0}), make_kernel({"dfma_threads": 1.0, "ffma_threads": 1.0})),
    "fp64_not_measured": (make_kernel({"ffma_threads": 1.0}), make_kernel({"dfma_threads": 1.0, "ffma_threads": 1.0})),
    "one_side_only": (
        make_kernel({"dram_bus_share": 0.9}),
        make_kernel({"dram_bus_share": 0.9, "issue_active_share": 0.1}),
    ),
}
"""Flag -> a kernel that has it, and one that just has not."""


@pytest.mark.parametrize(
    ("counters", "one_side"),
    [
        ({"issue_active_share": 0.7, "l1_lsu_input_share": 0.3}, True),
        ({"issue_active_share": 0.7, "l2_tag_share": 0.3}, False),
        ({"l1_lsu_input_share": 0.3}, True),
        ({}, False),
    ],
)
def test_a_share_of_l1_alone_is_no_measure_of_memory(counters: dict[str, float], *, one_side: bool) -> None:
    """A decode kernel with only pipes and L1 measured may be bound by DRAM, which its report cannot show."""
    assert ("one_side_only" in analyze(make_kernel(counters)).flags) is one_side


@for_all("flag", CASES)
def test_each_trap_is_flagged_and_only_it(flag: str) -> None:
    """A trap is flagged where it applies, and not just outside."""
    trapped, free = (analyze(kernel).flags for kernel in CASES[flag])
    assert flag in trapped
    assert flag not in free


def test_every_flag_has_a_meaning_and_a_case() -> None:
    """Each flag of the model has one sentence for people, and a case above."""
    raised = set()
    for module in (flags, flops):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Yield | ast.Set):
                values = [node.value] if isinstance(node, ast.Yield) else node.elts
                raised |= {
                    value.value for value in values if isinstance(value, ast.Constant) and "_" in str(value.value)
                }
    raised |= {"synthetic"}
    assert set(FLAGS) == {*CASES, "slower_while_profiled"}
    assert raised <= set(FLAGS)
    assert set(_DOUBTS) <= set(FLAGS)


def test_a_meaning_is_one_sentence() -> None:
    """A flag's meaning ends with a full stop and contains no flag's name."""
    for flag in FLAGS:
        item = find_item("flags", flag)
        assert item is not None
        assert re.fullmatch(r"[^_]+ [^_]+\.", item.sentence), flag


def test_flags_are_sorted() -> None:
    """The flags of a kernel have a fixed order."""
    found = flags_of({"alu_inst_share": 0.1, "sysmem_bytes": 1.0}, synthetic=True, workload="graph", status="partial")
    assert list(found) == sorted(found)
    assert len(found) == 5


def test_a_clean_kernel_has_no_flag() -> None:
    """A kernel without problems has no flag."""
    counters = {
        "ffma_peak_threads_per_s": 1e12,
        "dram_bus_share": 0.5,
        "alu_inst_share": 0.5,
        "tensor_busy_share": 0.0,
        "passes": 9.0,
    }
    assert flags_of(counters, **COUNTED) == ()


@pytest.mark.parametrize(
    ("changes", "flagged"),
    [
        ({}, True),
        ({"l2_write_bytes": 65535.0}, False),
        ({"dram_write_bytes": None}, False),
        ({"l2_write_bytes": None}, False),
        ({"dram_write_bytes": 655.0}, True),
    ],
)
def test_resident_output(changes: dict[str, float], *, flagged: bool) -> None:
    """From 64 KiB up to L2's size, less than 1 % of it (655.36 bytes) written to DRAM means that it stayed."""
    assert ("dram_writes_stay_in_l2" in flags_of({**RESIDENT, **changes})) is flagged


@for_all(
    "counters, opcodes, flagged",
    [
        ({"l1_writeback_bytes": 9.0}, {"LDGSTS.E.BYPASS.LTC128B.128": 1}, True),
        ({"l1_writeback_bytes": 9.0}, {"UTMALDG.2D": 1}, True),
        ({"l1_writeback_bytes": 9.0}, {"UBLKCP.S.G": 1}, True),
        ({"l1_writeback_bytes": 9.0}, {"LDG.E.128": 1}, False),
        ({"l1_writeback_bytes": 0.0, "l1_from_l2_share": 0.02}, {}, True),
        ({"l1_writeback_bytes": 0.0, "l1_from_l2_share": 0.01}, {}, False),
        ({"l1_writeback_bytes": 9.0, "l1_from_l2_share": 0.5}, {}, False),
        ({"l1_from_l2_share": 0.5}, {"LDGSTS.E.128": 1}, False),
    ],
)
def test_copies_that_pass_the_write_back(counters: dict[str, float], opcodes: dict[str, int], *, flagged: bool) -> None:
    """Asynchronous copies are seen by their opcodes, or as fills of L1 without write-back."""
    assert ("l1_misses_async_copies" in flags_of(counters, warp_opcodes=opcodes)) is flagged


@for_all(
    "changes, flagged",
    [
        ({"elapsed_cycles": 0.94e6}, True),
        ({"elapsed_cycles": 0.96e6}, False),
        ({"elapsed_cycles": None}, False),
        ({"elapsed_cycles": 2e6, "sm_clock_hz": None}, False),
        ({"elapsed_cycles": 2e6, "duration_ns": None}, False),
        ({"elapsed_cycles": 4e4, "duration_ns": 19_999.0}, False),
    ],
)
def test_clocks_that_moved(changes: dict[str, float], *, flagged: bool) -> None:
    """Cycles over time differ from the clock by over 5 %, either way, in a kernel long enough to show it."""
    assert ("clocks_moved" in flags_of({**CLOCK, **changes})) is flagged


@pytest.mark.parametrize(
    "counters", [{"duration_ns": 10.0}, {"duration_ns": 10.0, "passes": 1.0}, {"duration_ns": None, "passes": 9.0}]
)
def test_one_pass_needs_no_replay(counters: dict[str, float]) -> None:
    """A short kernel measured in one pass, or of unknown length, is not flagged."""
    assert "short_and_replayed" not in flags_of(counters)


def test_a_failed_kernel_is_not_asked_for_flops() -> None:
    """If everything is NaN, missing FLOP counters are not a second trap."""
    assert flags_of({"duration_ns": None, "alu_inst_share": 0.1}, status="failed") == ("all_counters_nan",)


def test_peaks_of_work_that_did_not_run_do_not_matter() -> None:
    """A published fp64 peak does not matter if no fp64 ran."""
    counters = {"sm_clock_hz": 1e9, "ffma_peak_threads_per_s": 1e12}
    assert "peak_from_datasheet" not in flags_of(counters, thread_opcodes={"FFMA": 1, "DFMA": 0}, **A100)


def test_counted_fp64_is_not_called_no_counters() -> None:
    """A report with only the fp64 roofline section has FLOP counters."""
    counters = {"alu_inst_share": 0.1, "dadd_threads": 1.0, "dmul_threads": 1.0, "dfma_threads": 1.0}
    assert "no_flop_counters" not in flags_of(counters)


@pytest.mark.parametrize(("slowdown", "flagged"), [(2.1, True), (2.0, False), (None, False)])
def test_a_profile_twice_as_slow_as_the_program_is_doubted(slowdown: float | None, *, flagged: bool) -> None:
    """Kernels that take more than twice their time under the profiler may not be those that run without it."""
    kernel = make_kernel({"dram_bus_share": 0.9, "issue_active_share": 0.1}, **COUNTED)
    result = analyze(kernel, outside=Outside(slowdown=slowdown))
    assert ("slower_while_profiled" in result.flags) is flagged
    order = ("high", "medium", "low")
    calm = analyze(kernel).verdict.confidence
    assert order.index(result.verdict.confidence) - order.index(calm) == int(flagged)


@for_all(
    "opcode, source, flagged",
    [
        ("ATOMG.E.ADD.64.STRONG.GPU", "lts__t_sectors_srcunit_tex.sum", True),
        ("ATOM.E.ADD.STRONG.GPU", "lts__t_sectors_srcunit_tex.sum", True),
        ("RED.E.ADD.STRONG.GPU", "lts__t_sectors_srcunit_tex.sum", False),
        ("REDUX.SUM.S32", "lts__t_sectors_srcunit_tex.sum", False),
        ("ATOMS.ADD", "lts__t_sectors_srcunit_tex.sum", False),
        ("ATOMG.E.ADD.64.STRONG.GPU", "l1tex__m_xbar2l1tex_read_bytes.sum", False),
    ],
)
def test_atomics_are_told_by_their_opcodes(opcode: str, source: str, *, flagged: bool) -> None:
    """Eight atomics that return a value move 256 of 10,000 bytes more, unless the bytes already include both ways."""
    fields = {"warp_opcodes": {opcode: 8}, "counter_sources": {"l2_bytes": source}}
    assert ("atomics_cross_twice" in flags_of({"l2_bytes": 1e4}, **fields)) is flagged


def test_few_flags_change_a_verdict() -> None:
    """Flags for information change no verdict; each flag is in exactly one class, and unknown flags are harmless."""
    changing = {flag for flag in FLAGS if changes_verdict(flag)}
    assert "dram_writes_stay_in_l2" in changing
    assert not changing & {"synthetic", "no_flop", "no_flop_counters", "short_and_replayed", "bank_conflicts"}
    assert not changes_verdict("flag_of_next_year")


@pytest.mark.parametrize(
    ("dram_share", "changes"), [(0.5, ("dram_clock_low",)), (0.1, ())], ids=["memory is busiest", "compute is"]
)
def test_a_low_memory_clock_matters_to_kernels_that_wait_for_memory(
    dram_share: float, changes: tuple[str, ...]
) -> None:
    """A low memory clock is a caution if DRAM is the busiest unit, and a note otherwise."""
    clocks = {"dram_bus_peak_bytes_per_s": 0.8e12, "device_dram_peak_bytes_per_s": 1e12}
    counters = {**clocks, "dram_bus_share": dram_share, "alu_inst_share": 0.3, "issue_active_share": 0.1}
    analysis = analyze(make_kernel(counters, synthetic=True, **COUNTED))
    assert cautions(analysis) == changes
    assert ("dram_clock_low" in notes(analysis)) is not bool(changes)
    assert "synthetic" not in {*cautions(analysis), *notes(analysis)}
