"""Rows of the table of counters: instructions, pipes, warps, and what NVIDIA's own rules say."""

from __future__ import annotations

from rooflens.model.counters.chips import (
    AD10X,
    EVERY_CHIP,
    GA10X,
    GA100,
    GB20X,
    GH100,
    GR100,
    ONE_FMA,
    ORIN,
    SPARK,
    TCGEN05,
    TU10X,
    TU11X,
    VOLTA,
)
from rooflens.model.counters.metric import DEEP, LAUNCH, SHARE, STANDARD, Ask
from rooflens.model.counters.recipes import (
    Counter,
    Exact,
    PerSm,
    Share,
    Waves,
    WhileActive,
    amount,
    busy,
    exact,
    pipe_rows,
    sass_rows,
    share,
)

WARP_THREADS = 32
SCHEDULERS_PER_SM = 4.0
"""Warp schedulers of every SM from Volta on; each issues at most one instruction a cycle."""

_HEAVY_ALU = GB20X | SPARK | GR100
_SUBPIPES = TCGEN05 | GB20X | SPARK
"""Chips that count the tensor pipe's floating-point work by sub-pipe."""
_TENSOR_FLOAT = "tensor pipe, floating point"

FLOPS: tuple[Counter, ...] = (*sass_rows("d", "fp64"), *sass_rows("f", "fp32"), *sass_rows("h", "packed fp16"))

PIPES: tuple[Counter, ...] = (
    *pipe_rows("alu", "ALU pipe (integer, logic, compare)", Ask("standard", "ALU instructions")),
    *pipe_rows("xu", "XU pipe (transcendental, conversion)", Ask("standard", "XU instructions")),
    *pipe_rows("lsu", "LSU pipe (load and store instructions)", Ask("standard", "LSU instructions")),
    *pipe_rows(
        "tex",
        "texture pipe",
        Ask(
            "standard",
            "texture instructions",
            chips=EVERY_CHIP - GR100,
            later=EVERY_CHIP - GA100 - GA10X - ORIN - AD10X,
        ),
    ),
    *pipe_rows("uniform", "uniform data path", Ask("deep", "uniform instructions", chips=EVERY_CHIP - VOLTA)),
    *pipe_rows("adu", "address divergence unit", Ask("deep", "address divergence instructions")),
    *pipe_rows("cbu", "branch unit", Ask("deep", "branch instructions")),
    *pipe_rows("tmem", "tensor memory pipe (loads and stores of tcgen05's sums)"),
    busy("alu_busy_share", "ALU pipe", "sm__pipe_alu_cycles_active", asked=(Ask("standard", later=_HEAVY_ALU),)),
    busy(
        "alu_heavy_busy_share",
        "heavy ALU pipe",
        "sm__pipe_aluheavy_cycles_active",
        asked=(Ask("standard", chips=_HEAVY_ALU, later=GR100),),
    ),
    busy("fma_busy_share", "FMA pipe", "sm__pipe_fma_cycles_active", asked=STANDARD),
    busy(
        "fma_heavy_busy_share",
        "heavy FMA pipe",
        "sm__pipe_fmaheavy_cycles_active",
        asked=(Ask("standard", chips=EVERY_CHIP - ONE_FMA),),
    ),
    busy(
        "fp64_busy_share",
        "FP64 pipe",
        "sm__pipe_fp64_cycles_active",
        asked=(Ask("standard", "fp64 pipe", later=EVERY_CHIP - TU10X - TU11X - GA100 - GH100),),
    ),
    share(
        "fp16_busy_share",
        "FP16 pipe",
        "sm__inst_executed_pipe_fp16",
        asked=(Ask("standard", "fp16 pipe", chips=ONE_FMA, later=TU11X),),
    ),
    busy("shared_pipe_busy_share", "pipe shared by tensor, FP64 and FP16", "sm__pipe_shared_cycles_active"),
    busy(
        "tensor_busy_share",
        "tensor pipe",
        "sm__pipe_tensor_cycles_active",
        "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
        "sm__pipe_tensor_op_hmma_cycles_active",
        "sm__pipe_tc_cycles_active",
        "sm__inst_executed_pipe_tensor",
        asked=(Ask("quick", later=VOLTA), Ask("standard", base="sm__inst_executed_pipe_tensor", chips=VOLTA)),
        as_is=False,
    ),
    exact(
        "tensor_active_share",
        "cycles the tensor pipe was busy, of those in which an SM had work",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        scale=0.01,
    ),
    share(
        "tensor_float_busy_share",
        "tensor pipe",
        "sm__pipe_tensor_op_hmma_cycles_active",
        "sm__pipe_tensor_subpipe_hmma_cycles_active",
        "sm__inst_executed_pipe_tensor_op_hmma",
        "sm__inst_executed_pipe_tensor_op_gmma",
        asked=(
            Ask("deep", _TENSOR_FLOAT, chips=EVERY_CHIP - _SUBPIPES),
            Ask("deep", _TENSOR_FLOAT, "sm__pipe_tensor_subpipe_hmma_cycles_active", chips=_SUBPIPES),
        ),
        meaning="cycles the {} was busy with floating-point work",
        as_is=False,
    ),
    share("mio_issue_share", "memory input/output queue", "sm__mio_inst_issued", asked=DEEP),
    share(
        "mio_return_share", "return path of the memory input/output queue", "sm__mio2rf_writeback_active", asked=DEEP
    ),
    amount(
        "issued_inst",
        "warp instructions issued",
        "smsp__inst_issued",
        "sm__inst_issued",
        "smsp__issue_active",
        asked=(Ask("quick", "issue slots", "smsp__issue_active", ("sum", SHARE)),),
    ),
    amount("executed_inst", "warp instructions executed", "smsp__inst_executed", "sm__inst_executed"),
    Counter(
        "issue_peak_inst_per_s", "one instruction a cycle and scheduler", (PerSm(SCHEDULERS_PER_SM, "sm_clock_hz"),)
    ),
    Counter(
        "issue_active_share",
        "use of the issue slots",
        (
            Share(("sm__issue_active", "smsp__issue_active", "sm__inst_issued"), as_is=False),
            WhileActive(("sm__inst_issued.avg.per_cycle_active",), 1 / SCHEDULERS_PER_SM),
            WhileActive(("smsp__issue_active.avg.per_cycle_active", "smsp__inst_issued.avg.per_cycle_active")),
        ),
    ),
    Counter(
        "executed_share",
        "use of the issue slots by executed instructions",
        (
            Share(("sm__inst_executed",), as_is=False),
            WhileActive(("sm__inst_executed.avg.per_cycle_active",), 1 / SCHEDULERS_PER_SM),
        ),
    ),
)

WARPS: tuple[Counter, ...] = (
    exact(
        "achieved_occupancy",
        "resident warps over the most an SM can hold",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "sm__active_warps_avg_per_active_cycle_pct",
        scale=0.01,
        asked=(Ask("quick", "achieved occupancy"),),
    ),
    exact(
        "theoretical_occupancy",
        "warps that the launch allows over the most an SM can hold",
        "sm__maximum_warps_per_active_cycle_pct",
        scale=0.01,
        asked=(Ask("standard", "theoretical occupancy", kind="launch"),),
    ),
    exact(
        "eligible_warps_per_cycle",
        "warps ready to issue, per scheduler and active cycle",
        "smsp__warps_eligible.avg.per_cycle_active",
        asked=STANDARD,
    ),
    exact(
        "issue_active_per_cycle",
        "instructions issued, per scheduler and active cycle",
        "smsp__issue_active.avg.per_cycle_active",
        asked=STANDARD,
    ),
    exact("grid_size", "thread blocks", "launch__grid_size", asked=LAUNCH),
    exact("block_size", "threads a block", "launch__block_size", asked=LAUNCH),
    exact("registers_per_thread", "registers a thread", "launch__registers_per_thread", asked=LAUNCH),
    exact(
        "smem_per_block_bytes",
        "shared memory a block",
        "launch__shared_mem_per_block_allocated",
        "launch__shared_mem_per_block",
        asked=LAUNCH,
    ),
    exact(
        "smem_static_per_block_bytes",
        "shared memory a block that the kernel declares",
        "launch__shared_mem_per_block_static",
        asked=LAUNCH,
    ),
    exact(
        "smem_dynamic_per_block_bytes",
        "shared memory a block that the launch adds",
        "launch__shared_mem_per_block_dynamic",
        asked=LAUNCH,
    ),
    exact(
        "blocks_limit_registers",
        "blocks an SM can hold by registers",
        "launch__occupancy_limit_registers",
        asked=LAUNCH,
    ),
    exact(
        "blocks_limit_smem",
        "blocks an SM can hold by shared memory",
        "launch__occupancy_limit_shared_mem",
        asked=LAUNCH,
    ),
    exact("blocks_limit_warps", "blocks an SM can hold by warps", "launch__occupancy_limit_warps", asked=LAUNCH),
    exact(
        "blocks_limit_blocks", "blocks an SM can hold by block slots", "launch__occupancy_limit_blocks", asked=LAUNCH
    ),
    exact("blocks_limit_barriers", "blocks an SM can hold by barriers", "launch__occupancy_limit_barriers"),
    Counter(
        "waves",
        "waves of blocks over the SMs",
        (Exact(("launch__waves_per_multiprocessor",), above_zero=True), Waves()),
        asked=LAUNCH,
    ),
    exact(
        "stall_samples", "warp samples taken", "smsp__pcsamp_sample_count", asked=(Ask("standard", kind="sampling"),)
    ),
)


def nvidias(name: str, what: str, base: str, asked: tuple[Ask, ...] = ()) -> Counter:
    """Make the row of one of NVIDIA's throughputs: the busiest sub-unit's share, which the metric does not name."""
    return exact(name, f"NVIDIA's {what}", f"{base}.avg.pct_of_peak_sustained_elapsed", scale=0.01, asked=asked)


REPORT: tuple[Counter, ...] = (
    exact("passes", "replay passes ncu needed", "profiler__replayer_passes"),
    Counter(
        "sol_compute",
        "NVIDIA's compute throughput: its busiest sub-unit, not a roofline position",
        (
            Exact(("sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm__sol_pct"), 0.01),
            Share(("sm__throughput",)),
        ),
        asked=(Ask("deep", "NVIDIA's compute throughput"),),
    ),
    Counter(
        "sol_memory",
        "NVIDIA's memory throughput: its busiest sub-unit, not a roofline position",
        (
            Exact(
                ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "gpu__compute_memory_sol_pct"),
                0.01,
            ),
            Share(("gpu__compute_memory_throughput",)),
        ),
        asked=(Ask("deep", "NVIDIA's memory throughput"),),
    ),
    nvidias("sol_memory_access_share", "memory throughput by accesses", "gpu__compute_memory_access_throughput"),
    nvidias("sol_memory_request_share", "memory throughput by requests", "gpu__compute_memory_request_throughput"),
    nvidias("sol_sm_memory_share", "throughput of the SM's memory instructions", "sm__memory_throughput"),
    nvidias("sol_l2_share", "L2 throughput", "lts__throughput"),
    nvidias("sol_l1_share", "L1 throughput", "l1tex__throughput", asked=DEEP),
    exact(
        "sol_l1_active_share",
        "NVIDIA's L1 throughput, of the cycles in which L1 had work",
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        scale=0.01,
    ),
    nvidias("sol_instructions_share", "instruction throughput", "sm__instruction_throughput"),
    exact(
        "executed_inst_per_cycle",
        "warp instructions executed a cycle and SM",
        "sm__inst_executed.avg.per_cycle_elapsed",
    ),
)
