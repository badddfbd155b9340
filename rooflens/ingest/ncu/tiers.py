"""Metric tiers: what a collection asks ncu for, by chip, in the fewest replay passes.

One row a counter: what it means, from which tier on it is collected, in which forms, on which chips. `quick` places a
kernel at HBM, `standard` feeds everything the model knows, `deep` adds what explains it. The peak and per-cent forms of
a counter cost no pass of their own. `rooflens.ingest.passes` asks NVIDIA's scheduler what a tier costs, and a test
holds the answers.

Standard library only: `collect` reads this on machines that have nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rooflens.errors import UsageError
from rooflens.ingest.ncu.chips import (
    AD10X,
    CHIPS,
    GA10X,
    GA100,
    GB10X,
    GB11X,
    GB20X,
    GH100,
    GR100,
    GV100,
    ORIN,
    SOC,
    SPARK,
    TCGEN05,
    THOR,
    TU10X,
    TU11X,
    check_chip,
    tensor_counters,
)
from rooflens.model.counters.metric import DETAILS, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflens.model.counters.metric import Detail, Kind

NVIDIA_SECTIONS: dict[Detail, tuple[str, ...]] = {
    "quick": (),
    "standard": (),
    "deep": ("SpeedOfLight", "SpeedOfLight_RooflineChart", "Occupancy", "LaunchStats"),
}
"""ncu's own sections that a tier also asks for: its rules run only for them. Their counters are rows of `deep`."""


_ALL = frozenset(CHIPS)
_PEAK_FORM, _SHARE_FORM = "sum.peak_sustained", "sum.pct_of_peak_sustained_elapsed"
_SUM: tuple[str, ...] = ("sum",)
_PEAK: tuple[str, ...] = (_PEAK_FORM,)
_SHARE: tuple[str, ...] = (_SHARE_FORM,)
_LOAD: tuple[str, ...] = ("sum", _PEAK_FORM, _SHARE_FORM)
_CLOCK: tuple[str, ...] = ("avg.per_second",)
_PCT: tuple[str, ...] = ("pct",)
_BARE: tuple[str, ...] = ("",)
_SOL: tuple[str, ...] = ("avg.pct_of_peak_sustained_elapsed",)

_FORM_MEANINGS = {_PEAK_FORM: "{}: peak a cycle", _SHARE_FORM: "{}: per cent of the peak"}


@dataclass(frozen=True, slots=True)
class _Row:
    """One counter.

    Attributes:
        base: Name without roll-up.
        forms: Roll-ups and sub-metrics to ask for.
        chips: Where the counter exists.
        later: Chips on which it would cost its tier a pass: there it waits for `deep`.
        patched: Chips on which ncu patches the code to count it.
    """

    base: str
    meaning: str
    detail: Detail
    forms: tuple[str, ...] = _SUM
    chips: frozenset[str] = _ALL
    later: frozenset[str] = frozenset()
    kind: Kind = "hardware"
    patched: frozenset[str] = frozenset()

    def metrics(self, chip: str) -> Iterator[Metric]:
        """Yield the row's metrics on one chip."""
        if chip not in self.chips:
            return
        detail: Detail = "deep" if chip in self.later else self.detail
        kind: Kind = "sass" if chip in self.patched else self.kind
        for form in self.forms:
            name = f"{self.base}.{form}" if form else self.base
            yield Metric(name, kind, _FORM_MEANINGS.get(form, "{}").format(self.meaning), detail)


_RENAMED = GB20X | GR100
"""Chips that name the two parts of DRAM traffic anew."""
_OLD_SM = GV100 | TU10X | TU11X | GA100
"""Chips with one FMA pipe and a pipe for fp16."""
_LGDS = GH100 | TCGEN05 | GB20X | SPARK
"""Chips that count distributed shared memory with global loads, and have TMA."""
_ALU_HEAVY = GB20X | SPARK | GR100

_ROWS: tuple[_Row, ...] = (
    # Time and clocks.
    _Row("gpu__time_duration", "GPU time of the launch", "quick"),
    _Row("sm__cycles_elapsed", "elapsed SM cycles", "quick", ("max",)),
    _Row("sm__cycles_active", "cycles in which an SM had work", "quick", ("avg", "max")),
    _Row("sm__cycles_elapsed", "SM clock", "quick", _CLOCK),
    _Row("dram__cycles_elapsed", "DRAM clock", "quick", _CLOCK, _ALL - SOC),
    _Row("lts__cycles_elapsed", "L2 clock", "quick", _CLOCK),
    _Row("l1tex__cycles_elapsed", "L1 clock", "standard", _CLOCK),
    # Device memory.
    _Row("dram__bytes", "bytes moved to and from device memory", "quick", _LOAD, _ALL - SOC),
    _Row("dram__bytes_read", "bytes read from device memory", "quick", chips=_ALL - SOC - _RENAMED),
    _Row("dram__bytes_write", "bytes written to device memory", "quick", chips=_ALL - SOC - _RENAMED),
    _Row("dram__bytes_op_read", "bytes read from device memory", "quick", chips=_RENAMED),
    _Row("dram__bytes_op_write", "bytes written to device memory", "quick", chips=_RENAMED),
    _Row("lts__t_sectors_aperture_sysmem", "sectors between L2 and system memory", "quick", chips=SOC),
    # L2.
    _Row("lts__t_sectors_srcunit_tex", "sectors between the SMs and L2", "quick"),
    _Row("lts__t_sectors_srcunit_tex_op_write", "sectors written from the SMs to L2", "quick", later=GV100),
    _Row("lts__t_sectors", "sectors looked up in the L2 tag stage", "quick", _LOAD),
    _Row("lts__lts2xbar_cycles_active", "sectors returned from L2 to the SMs", "standard", _LOAD),
    _Row("lts__xbar2lts_cycles_active", "path from the SMs to L2", "standard", _SHARE),
    _Row("lts__t_tag_requests", "requests to the L2 tag stage", "standard", _SHARE, later=GV100 | GA100),
    _Row("lts__d_sectors", "L2 data banks", "standard", _SHARE, later=GV100 | TU10X | TU11X | GA100),
    _Row("lts__t_sector_hit_rate", "share of L2 look-ups that hit", "deep", _PCT),
    # L1 and shared memory.
    _Row("l1tex__t_bytes", "bytes looked up in the L1 tag stage", "standard", _LOAD),
    _Row("l1tex__data_pipe_lsu_wavefronts", "wavefronts of the L1 data stage", "standard", _LOAD),
    _Row("l1tex__data_pipe_lsu_wavefronts_mem_shared", "wavefronts of shared memory", "standard", _LOAD),
    _Row("l1tex__data_bank_conflicts_pipe_lsu_mem_shared", "shared-memory replays of bank conflicts", "standard"),
    _Row(
        "l1tex__data_pipe_tc_wavefronts_mem_shared",
        "shared-memory wavefronts of the tensor pipe",
        "standard",
        chips=TCGEN05,
    ),
    _Row(
        "l1tex__lsu_writeback_active_mem_lg",
        "wavefronts returned from L1 to registers",
        "standard",
        _LOAD,
        _ALL - GV100 - _LGDS,
        later=TU10X | TU11X | GA100,
    ),
    _Row(
        "l1tex__lsu_writeback_active_mem_lgds",
        "wavefronts returned from L1 to registers",
        "standard",
        _LOAD,
        _LGDS,
        later=GB11X | GR100,
    ),
    _Row("l1tex__lsu_writeback_active", "return path from L1 to registers", "deep", ("sum", _SHARE_FORM)),
    _Row("l1tex__f_wavefronts", "texture filter stage", "standard", _SHARE, _ALL - GR100, later=GV100),
    _Row(
        "l1tex__data_pipe_tex_wavefronts",
        "L1 data stage, textures",
        "standard",
        _SHARE,
        _ALL - GR100,
        later=_OLD_SM | GB11X,
    ),
    _Row("l1tex__data_bank_reads", "L1 data banks, reads", "deep", _SHARE),
    _Row("l1tex__data_bank_writes", "L1 data banks, writes", "deep", _SHARE),
    _Row("l1tex__m_xbar2l1tex_read_sectors", "fill path from L2 to L1", "deep", _SHARE),
    _Row("l1tex__m_l1tex2xbar_req_cycles_active", "request path from L1 to L2", "deep", _SHARE),
    _Row("l1tex__m_xbar2l1tex_read_bytes", "bytes filled from L2 to the SMs", "deep"),
    _Row("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld", "bytes loaded by TMA", "deep", chips=_LGDS),
    _Row("l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st", "bytes stored by TMA", "deep", chips=_LGDS),
    _Row(
        "smsp__sass_data_bytes_mem_global_op_ldgsts",
        "bytes loaded by cp.async",
        "deep",
        chips=_ALL - GV100 - TU10X - TU11X,
    ),
    _Row("l1tex__t_sectors_pipe_lsu_mem_global_op_ld", "sectors of global loads", "deep"),
    _Row("l1tex__t_requests_pipe_lsu_mem_global_op_ld", "requests of global loads", "deep"),
    _Row("l1tex__t_sectors_pipe_lsu_mem_global_op_st", "sectors of global stores", "deep"),
    _Row("l1tex__t_requests_pipe_lsu_mem_global_op_st", "requests of global stores", "deep"),
    _Row("l1tex__t_sector_hit_rate", "share of L1 look-ups that hit", "deep", _PCT),
    _Row("smsp__sass_data_bytes_mem_shared", "bytes that instructions asked of shared memory", "deep", patched=GV100),
    # Pipes and issue slots.
    _Row("sm__inst_executed_pipe_alu", "ALU instructions", "standard", _LOAD),
    _Row("sm__inst_executed_pipe_xu", "XU instructions", "standard", _LOAD),
    _Row("sm__inst_executed_pipe_lsu", "LSU instructions", "standard", _LOAD),
    _Row(
        "sm__inst_executed_pipe_tex",
        "texture instructions",
        "standard",
        _LOAD,
        _ALL - GR100,
        later=_ALL - GA100 - GA10X - ORIN - AD10X,
    ),
    _Row("sm__inst_executed_pipe_uniform", "uniform instructions", "deep", _LOAD, _ALL - GV100),
    _Row("sm__inst_executed_pipe_adu", "address divergence instructions", "deep", _LOAD),
    _Row("sm__inst_executed_pipe_cbu", "branch instructions", "deep", _LOAD),
    _Row("sm__inst_executed_pipe_fp16", "fp16 pipe", "standard", _SHARE, _OLD_SM, later=TU11X),
    _Row("sm__pipe_alu_cycles_active", "ALU pipe", "standard", _SHARE, later=_ALU_HEAVY),
    _Row("sm__pipe_aluheavy_cycles_active", "heavy ALU pipe", "standard", _SHARE, _ALU_HEAVY, later=GR100),
    _Row("sm__pipe_fma_cycles_active", "FMA pipe", "standard", _SHARE),
    _Row("sm__pipe_fmaheavy_cycles_active", "heavy FMA pipe", "standard", _SHARE, _ALL - _OLD_SM),
    _Row(
        "sm__pipe_fp64_cycles_active",
        "fp64 pipe",
        "standard",
        _SHARE,
        later=_ALL - TU10X - TU11X - GA100 - GH100,
    ),
    _Row("sm__pipe_tensor_cycles_active", "tensor pipe", "quick", _SHARE, later=GV100),
    _Row("sm__inst_executed_pipe_tensor", "tensor pipe", "standard", _SHARE, GV100),
    _Row(
        "sm__pipe_tensor_op_hmma_cycles_active",
        "tensor pipe, floating point",
        "deep",
        _SHARE,
        _ALL - TCGEN05 - GB20X - SPARK,
    ),
    _Row(
        "sm__pipe_tensor_subpipe_hmma_cycles_active",
        "tensor pipe, floating point",
        "deep",
        _SHARE,
        TCGEN05 | GB20X | SPARK,
    ),
    _Row("sm__mio_inst_issued", "memory input/output queue", "deep", _SHARE),
    _Row("sm__mio2rf_writeback_active", "return path of the memory input/output queue", "deep", _SHARE),
    _Row("smsp__issue_active", "issue slots", "quick", ("sum", _SHARE_FORM)),
    _Row("smsp__issue_active", "instructions issued, a scheduler", "standard", ("avg.per_cycle_active",)),
    # Floating-point operations.
    _Row(
        "sass__thread_inst_executed_true_per_opcode_with_modifier_all",
        "thread instructions by opcode",
        "quick",
        _BARE,
        kind="sass",
    ),
    _Row(
        "sass__inst_executed_per_opcode_with_modifier_all", "warp instructions by opcode", "quick", _BARE, kind="sass"
    ),
    *(
        _Row(
            f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on",
            f"{dtype} fma thread instructions",
            "quick",
            _PEAK,
            patched=GV100,
        )
        for letter, dtype in (("d", "fp64"), ("f", "fp32"), ("h", "packed fp16"))
    ),
    *(
        _Row(
            f"smsp__sass_thread_inst_executed_op_{letter}{op}_pred_on",
            f"{dtype} {op} thread instructions",
            "deep",
            patched=GV100,
        )
        for letter, dtype in (("d", "fp64"), ("f", "fp32"), ("h", "packed fp16"))
        for op in ("add", "mul", "fma")
    ),
    # Warps and launch.
    _Row("sm__warps_active", "achieved occupancy", "quick", ("avg.pct_of_peak_sustained_active",)),
    _Row("smsp__warps_eligible", "warps ready to issue, a scheduler", "standard", ("avg.per_cycle_active",)),
    _Row("group:smsp__pcsamp_warp_stall_reasons", "what sampled warps wait for", "standard", _BARE, kind="sampling"),
    _Row("smsp__pcsamp_sample_count", "warp samples taken", "standard", _BARE, kind="sampling"),
    _Row("sm__maximum_warps_per_active_cycle_pct", "theoretical occupancy", "standard", _BARE, kind="launch"),
    *(
        _Row(f"launch__{name}", meaning, "quick", _BARE, kind="launch")
        for name, meaning in (
            ("grid_size", "thread blocks"),
            ("block_size", "threads a block"),
            ("waves_per_multiprocessor", "waves of blocks over the SMs"),
            ("registers_per_thread", "registers a thread"),
            ("shared_mem_per_block_allocated", "shared memory a block"),
            ("occupancy_limit_registers", "blocks an SM can hold by registers"),
            ("occupancy_limit_shared_mem", "blocks an SM can hold by shared memory"),
            ("occupancy_limit_warps", "blocks an SM can hold by warps"),
            ("occupancy_limit_blocks", "blocks an SM can hold by block slots"),
        )
    ),
    # What NVIDIA's own rules read.
    _Row("sm__throughput", "NVIDIA's compute throughput", "deep", _SOL),
    _Row("gpu__compute_memory_throughput", "NVIDIA's memory throughput", "deep", _SOL),
    _Row("gpu__dram_throughput", "NVIDIA's DRAM throughput", "deep", _SOL, _ALL - SOC),
    _Row("lts__throughput", "NVIDIA's L2 throughput", "deep", _SOL),
    _Row("l1tex__throughput", "NVIDIA's L1 throughput", "deep", ("avg.pct_of_peak_sustained_active",)),
)
"""Every counter but those of tensor operations. No row is counted twice on a chip."""

_COUNTED_TYPES: tuple[tuple[Detail, frozenset[str], tuple[str, ...]], ...] = (
    ("quick", GB10X | THOR, ("bf16_dst_fp32", "fp4_dst_fp32", "fp4_fp6_fp8_dst_fp32")),
    ("quick", GB11X, ("bf16_dst_fp32", "fp4_dst_fp32", "fp4_fp6_dst_fp32")),
    ("quick", GR100, ("bf16_dst_fp32",)),
    ("standard", GB10X | THOR, ("fp16_dst_fp32", "tf32_dst_fp32", "fp4_fp6_fp8_dst_fp16")),
    ("standard", GB11X, ("fp16_dst_fp32", "tf32_dst_fp32", "fp8_dst_fp32")),
    ("standard", GR100, ("fp16_dst_fp32", "tf32_dst_fp32", "fp8_dst_fp32", "fp4_dst_fp32")),
)
"""Types whose tensor operations are counted before `deep`: tcgen05 opcodes name no shape, so only counters tell."""


def metrics_for(chip: str, detail: str) -> tuple[Metric, ...]:
    """Return what a tier asks ncu for on one chip, by the exact names that this chip knows.

    Args:
        chip: The chip, as `gh100`.
        detail: The tier: quick, standard or deep. Each holds the one before.

    Raises:
        UsageError: No such chip, or no such tier.
    """
    if detail not in DETAILS:
        raise UsageError(f"no tier `{detail}` is known", f"one of: {', '.join(DETAILS)}")
    allowed = DETAILS[: DETAILS.index(detail) + 1]
    return tuple(metric for metric in _metrics_of(check_chip(chip)) if metric.detail in allowed)


def hardware_names(chip: str, detail: str) -> tuple[str, ...]:
    """Return the names of a tier that cost hardware passes: what the scheduler can be asked about."""
    return tuple(metric.name for metric in metrics_for(chip, detail) if metric.kind == "hardware")


@cache
def _metrics_of(chip: str) -> tuple[Metric, ...]:
    return tuple(metric for row in (*_ROWS, *_tensor_rows(chip)) for metric in row.metrics(chip))


def _tensor_rows(chip: str) -> Iterator[_Row]:
    """Yield the chip's tensor counters: dense peaks always, amounts from the tier where they are needed and cheap.

    Of a counter that is split by density only the parts are asked for where an instruction has one of its own: whole
    and parts hold the same operations, and the model adds up what names an instruction.
    """
    early = {name: detail for detail, chips, names in _COUNTED_TYPES if chip in chips for name in names}
    for counters in tensor_counters(chip):
        suffixes = ("_sparsity_off", "_sparsity_on") if counters.split else ()
        if not (counters.op and counters.split):
            suffixes = ("", *suffixes)
        for suffix in suffixes:
            for source, base in zip(counters.sources, counters.names(suffix), strict=True):
                detail = "deep" if counters.op or suffix else early.get(source, "deep")
                meaning = _tensor_meaning(counters.op, source, suffix)
                yield _Row(base, meaning, detail)
                if suffix != "_sparsity_on":
                    yield _Row(base, meaning, "quick", _PEAK)


def _tensor_meaning(op: str, source: str, suffix: str) -> str:
    operands, _, result = source.partition("_dst_")
    density = {"_sparsity_off": "dense ", "_sparsity_on": "sparse "}.get(suffix, "")
    into = f" into {result}" if result else ""
    return f"{density}{operands.replace('_', '/')}{into} tensor operations{f' of {op.upper()}' if op else ''}"
