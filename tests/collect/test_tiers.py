from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.loops import for_all
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report
from support.tier_metrics import SHARE, stored_metrics

from rooflens.collect import tiers
from rooflens.collect.tiers import PM_SAMPLING, metrics_for, sections_for
from rooflens.errors import EnvironmentMissingError, UsageError
from rooflens.ingest.reports.read import read_report
from rooflens.model.analyze import analyze
from rooflens.model.counters import chips, execution, memory, metric, recipes, table, tensor
from rooflens.model.counters.chips import CHIPS, FAMILIES, SOC, TCGEN05, TU11X, chip_of
from rooflens.model.counters.metric import DETAILS, Detail
from rooflens.model.records import Analysis
from rooflens.model.roofline.units import PIPE_ROWS, STAGES

ONE_OF_EACH = tuple(dict.fromkeys(min(family) for _, family in FAMILIES))
each_family = for_all("chip", ONE_OF_EACH)
each_detail = for_all("detail", DETAILS)

NEVER_ASKED = {"tmem_inst_share"}
"""Read where a report has them; no ncu that lists them was at hand, and a name that ncu does not know ends it."""

QUICK_COUNTERS = {
    "duration_ns", "sm_clock_hz", "l2_clock_hz", "sm_count", "elapsed_cycles", "l2_bytes", "l2_tag_bytes",
    "l2_tag_peak_bytes_per_s", "issued_inst", "issue_active_share", "achieved_occupancy", "ffma_peak_threads_per_s",
    "dfma_peak_threads_per_s", "hfma_peak_threads_per_s", "grid_size", "block_size", "waves", "registers_per_thread",
    "smem_per_block_bytes", "blocks_limit_registers", "blocks_limit_smem", "blocks_limit_warps", "blocks_limit_blocks",
}  # fmt: skip
STANDARD_COUNTERS = QUICK_COUNTERS | {
    "l1_clock_hz", "l2_return_bytes", "l2_return_peak_bytes_per_s", "l2_return_share", "l2_input_share", "l1_tag_bytes",
    "l1_tag_peak_bytes_per_s", "l1_tag_share", "l1_data_bytes", "l1_data_share", "l1_data_peak_bytes_per_s",
    "l1_shared_data_bytes", "l1_shared_data_share", "smem_conflict_bytes",
    "alu_inst_share", "xu_inst_share", "lsu_inst_share", "fma_busy_share",
    "tensor_busy_share", "sm_cycles_active_avg", "sm_cycles_active_max", "theoretical_occupancy",
    "eligible_warps_per_cycle", "issue_active_per_cycle", "stall_samples",
    "global_touched_sectors", "global_ideal_sectors", "local_touched_sectors", "smem_access_wavefronts",
    "smem_ideal_wavefronts", "smsp_cycles_active_avg", "smsp_cycles_active_max", "l1_cycles_active_avg",
    "l1_cycles_active_max", "sm_cycles_elapsed_avg", "smsp_cycles_elapsed_avg", "l1_cycles_elapsed_avg",
    "l2_cycles_elapsed_avg",
}  # fmt: skip
DEEP_COUNTERS = STANDARD_COUNTERS | {
    "smem_useful_bytes", "global_load_sectors", "global_load_requests", "global_store_sectors", "global_store_requests",
    "l1_hit_rate", "l2_hit_rate", "l2_data_share",
    "l2_write_bytes", "l1_from_l2_share", "l1_to_l2_share", "l1_bank_read_share", "l1_bank_write_share",
    "l1_writeback_bytes", "l1_writeback_share", "fp64_busy_share", "adu_inst_share", "cbu_inst_share",
    "mio_issue_share",
    "mio_return_share", "sol_compute", "sol_memory", "sol_l1_share",
    "l2_cycles_active_avg", "l2_cycles_active_max", "warp_latency_cycles", "threads_per_inst",
    "threads_on_per_inst",
    "smem_load_conflict_wavefronts", "smem_store_conflict_wavefronts", "smem_load_wavefronts",
    "smem_store_wavefronts", "l2_atomic_sectors", "l2_atomic_share",
    *(f"{letter}{op}_threads" for letter in "dfh" for op in ("add", "mul", "fma")),
}  # fmt: skip
PROMISED = {"quick": QUICK_COUNTERS, "standard": STANDARD_COUNTERS, "deep": DEEP_COUNTERS}
DRAM_COUNTERS = {
    "dram_bytes", "dram_read_bytes", "dram_write_bytes", "dram_bus_peak_bytes_per_s", "dram_bus_share",
    "dram_controller_share",
}  # fmt: skip
BALANCE_OF_DRAM = {"dram_cycles_active_avg", "dram_cycles_active_max", "dram_cycles_elapsed_avg"}
BY_ADDRESS = {"warp_inst", "thread_inst", "load_sectors", "load_excess_sectors", "store_sectors"} | {
    "store_excess_sectors", "local_sectors", "shared_wavefronts", "shared_excess_wavefronts",
}  # fmt: skip


@cache
def collected(chip: str, detail: str) -> Analysis:
    """Analyze a report with the metrics of a tier on a chip, read by NVIDIA's reader."""
    kernel = KernelSpec("kernel(float *)", stored_metrics(chip, detail))
    with TemporaryDirectory() as folder:
        report = read_report(write_report(Path(folder) / "tier.ncu-rep", ReportSpec([kernel])), "tier")
    return analyze(report.kernels[0])


@each_family
@each_detail
def test_a_tier_resolves_every_counter_it_promises(chip: str, detail: str) -> None:
    """A report with exactly a tier's metrics gives every promised counter, each with a value."""
    analysis = collected(chip, detail)
    memory = {"sysmem_bytes"} if chip in SOC else DRAM_COUNTERS
    balance = BALANCE_OF_DRAM if detail != "quick" and chip not in SOC else set()
    assert PROMISED[detail] | memory | balance <= analysis.kernel.counters.keys()
    assert analysis.kernel.status == "ok"


@each_family
@each_detail
def test_every_tier_counts_all_flops_against_the_reports_own_peaks(chip: str, detail: str) -> None:
    """With a tier's metrics the FLOPs of every pipe are known, each has a peak and a share, and the total is exact."""
    analysis = collected(chip, detail)
    works = {key: pipe for key, pipe in analysis.pipes.items() if pipe.unit == "FLOP"}
    assert {"fp64", "fp32", "fp16"} <= works.keys()
    assert any(key.startswith("tensor") for key in works) is (chip not in TU11X)
    for key, pipe in works.items():
        assert (pipe.peak_source, pipe.share is not None) == ("report", True), key
    assert analysis.flop_total == sum(pipe.amount or 0.0 for pipe in works.values())
    assert set(analysis.flop_source.values()) <= {"opcode", "tensor_ops"}


TURING = frozenset({"tu102", "tu116"})
"""Chips whose L1 moves half of what its counter counts by: 50 % is all of it."""


@each_family
def test_standard_places_a_kernel_at_every_level_and_pipe(chip: str) -> None:
    """`standard` gives bytes, roof and share of all four levels, and the pipes' shares."""
    analysis = collected(chip, "standard")
    for name, level in analysis.levels.items():
        assert level.amount_bytes, name
        if not (name == "dram" and chip in SOC):
            assert level.peak_bytes_per_s, name
            assert level.share == pytest.approx(SHARE * (2 if name in {"l1", "smem"} and chip in TURING else 1)), name
    assert {"return", "tag", "input"} <= analysis.levels["l2"].stages.keys()
    assert {"data", "tag"} <= analysis.levels["l1"].stages.keys()
    assert all(analysis.pipes[pipe].share is not None for pipe in ("issue", "alu", "xu", "lsu", "fma", "tensor_pipe"))


@each_family
@for_all("detail", ["standard", "deep"])
def test_a_tier_counts_accesses_by_instruction(chip: str, detail: str) -> None:
    """Counts by instruction for findings are in `standard` on every chip, and cost no hardware pass."""
    assert collected(chip, detail).kernel.code_totals.keys() >= BY_ADDRESS
    by_instruction = {m.kind for m in metrics_for(chip, detail) if m.name.startswith(("memory_", "inst_executed"))}
    assert by_instruction == {"sass"}


@pytest.mark.parametrize(
    ("chip", "detail", "pm_sampling", "sampled"),
    [
        ("gh100", "deep", True, True),
        ("tu102", "deep", True, True),
        ("gh100", "deep", False, False),
        ("gh100", "standard", True, False),
        ("gv100", "deep", True, False),
    ],
)
def test_deep_samples_units_over_time(chip: str, detail: Detail, *, pm_sampling: bool, sampled: bool) -> None:
    """Only `deep` has the section of sampled series, if chip and ncu support it."""
    assert (PM_SAMPLING in sections_for(chip, detail, pm_sampling=pm_sampling)) is sampled


@each_family
def test_standard_explains_latency(chip: str) -> None:
    """Stall reasons, occupancy and its limits reach the verdict with high confidence, where nothing is half busy."""
    analysis = collected(chip, "standard")
    assert analysis.kernel.stalls == {"long_scoreboard": 0.5, "wait": 0.25, "barrier": 0.25}
    if chip in TURING:
        assert analysis.verdict.resource in {"l1", "smem"}
        return
    assert analysis.verdict.bound == "latency"
    assert analysis.verdict.confidence == "high"
    costing = {finding.id: finding for finding in analysis.findings if finding.severity != "note"}
    found = {finding.id: finding for finding in analysis.findings}
    assert "warps spend 40 % of their time waiting for global memory" in found["stall_long_scoreboard"].move
    # The tcgen05 operations counted take all of the time at the peak: nothing is left to win, and the wait is named.
    first = next(iter(costing.values()), None if chip not in TCGEN05 else found["stall_long_scoreboard"])
    assert first is not None
    assert analysis.verdict.cause == first.title


def test_system_on_chip_has_no_dram_roof() -> None:
    """On a chip without DRAM counters, traffic to system memory is used instead, without a roof."""
    analysis = collected("ga10b", "quick")
    level = analysis.levels["dram"]
    assert level.amount_bytes
    assert (level.peak_bytes_per_s, level.share) == (None, None)
    assert "no_dram_counters" in analysis.flags


@pytest.mark.parametrize("chip", sorted(TCGEN05))
def test_tcgen05_operations_come_from_counters(chip: str) -> None:
    """On chips whose matrix opcodes do not name the shape, every tier counts bf16 operations."""
    for detail in DETAILS:
        analysis = collected(chip, detail)
        assert analysis.flop_source["tensor_bf16"] == "tensor_ops"


@pytest.mark.parametrize("chip", ["gh100", "gb100"])
def test_deep_counts_no_operation_twice(chip: str) -> None:
    """Of a counter split by density and instruction, `deep` requests the parts and the total, but no subtotals."""
    names = {metric.name for metric in metrics_for(chip, "deep")}
    assert "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum" in names
    assert "sm__ops_path_tensor_src_bf16_dst_fp32.sum" in names
    assert "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32.sum" not in names
    analysis = collected(chip, "deep")
    assert "tensor_counter_reads_zero" not in analysis.flags


@for_all("chip", CHIPS)
def test_each_tier_holds_the_one_before_and_no_name_twice(chip: str) -> None:
    """Each tier includes the previous tier, without duplicate names."""
    quick, standard, deep = ([metric.name for metric in metrics_for(chip, detail)] for detail in DETAILS)
    assert set(quick) < set(standard) < set(deep)
    assert max(Counter(deep).values()) == 1


@for_all("chip", CHIPS)
def test_meanings_and_names_are_plain(chip: str) -> None:
    """No metric name breaks an argument list, and no meaning breaks the quotes of a section file."""
    for asked in metrics_for(chip, "deep"):
        assert re.fullmatch(r"[\w.:]+", asked.name)
        assert re.fullmatch(r"[^\"\\\n]{3,100}", asked.meaning)


def test_deep_collects_every_share_the_model_reads() -> None:
    """Every stage and pipe of the model has a share metric on some chip."""
    read = {stage.share for stage in STAGES} | {share for row in PIPE_ROWS for share in row.shares}
    found = {name for chip in ONE_OF_EACH for name in collected(chip, "deep").kernel.counters}
    assert read - found == NEVER_ASKED


def test_unknown_chips_and_tiers_are_refused() -> None:
    """An unknown chip or tier is a usage error that lists the valid ones."""
    with pytest.raises(UsageError, match="no GPU chip is called `gh999`") as error:
        metrics_for("gh999", "quick")
    assert "gh100" in error.value.hint
    with pytest.raises(UsageError, match="no tier is called `fast`") as error:
        metrics_for("gh100", "fast")
    assert error.value.hint == "one of: quick, standard, deep"


def test_chips_are_found_in_any_case() -> None:
    """Chips are accepted in capitals: `GH100` is gh100."""
    assert metrics_for("GH100", "quick") == metrics_for("gh100", "quick")


@for_all(
    "compute_capability, chip, certain",
    [
        ("7.0", "gv100", True),
        ("7.5", "tu102", False),
        ("8.6", "ga102", True),
        ("9.0", "gh100", True),
        ("10.1", "gb10b", True),
        ("11.0", "gb10b", True),
        ("12.0", "gb202", True),
        ("9.7", "gh100", False),
        ("12.9", "gb202", False),
        ("14.0", "gb202", False),
    ],
)
def test_a_compute_capability_finds_its_chip(compute_capability: str, chip: str, certain: bool) -> None:  # noqa: FBT001 - a table
    """A known compute capability gives its chip; an unknown one the newest chip of its family, with a note."""
    choice = chip_of(compute_capability)
    assert choice.chip == chip
    assert bool(choice.reason) is not certain


def test_older_gpus_and_nonsense_have_no_chip() -> None:
    """Pascal is refused, since ncu reads no counters there, and so is a word instead of a compute capability."""
    with pytest.raises(EnvironmentMissingError):
        chip_of("6.1")
    with pytest.raises(UsageError):
        chip_of("hopper")


@for_all("module", [tiers, chips, execution, memory, metric, recipes, table, tensor])
def test_tiers_need_the_standard_library_only(module: object) -> None:
    """Building the request imports only the standard library and our own leaf modules, for bare GPU machines."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    roots = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(source))
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
        + ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
    }
    assert roots - {"rooflens"} <= sys.stdlib_module_names
