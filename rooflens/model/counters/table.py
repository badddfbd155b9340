"""The counters: one row a quantity, with the stored names and formulas that can give it.

Reports hold the same quantity under different names by metric set, ncu version and chip. A row lists recipes in order
of trust; `rooflens.ingest.resolve` tries them and records the one that worked. To add a metric, add a row: the column
of the table `kernels`, the JSON and the pages follow.

Every name carries its unit. `*_share` is a fraction of the peak over the elapsed time, 0 to 1.
"""

from __future__ import annotations

from rooflens.model.counters.recipes import (
    Amount,
    Counter,
    CyclesOverTime,
    Exact,
    Peak,
    PerSm,
    RateOverShare,
    Same,
    Share,
    amount,
    exact,
    pipe_rows,
    sass_rows,
    share,
)

SECTOR_BYTES = 32.0
WAVEFRONT_BYTES = 128.0
"""Bytes one L1 data-stage wavefront carries at most: 32 banks of 4 bytes (Nsight Compute, memory tables)."""
SCHEDULERS_PER_SM = 4.0
"""Warp schedulers of every SM from Volta on; each issues at most one instruction a cycle."""

CLOCKS: tuple[Counter, ...] = (
    exact(
        "duration_ns",
        "GPU time of the launch",
        "gpu__time_duration.sum",
        "gpu__time_duration.avg",
        "gpu__time_duration.max",
        "gpu__time_duration",
    ),
    Counter(
        "sm_clock_hz",
        "SM clock while profiling",
        (
            Exact(
                (
                    "sm__cycles_elapsed.avg.per_second",
                    "smsp__cycles_elapsed.avg.per_second",
                    "gpc__cycles_elapsed.avg.per_second",
                    "gpc__frequency",
                )
            ),
            CyclesOverTime(
                (
                    "sm__cycles_elapsed.max",
                    "sm__cycles_elapsed.avg",
                    "gpc__cycles_elapsed.max",
                    "sm__elapsed_cycles_avg",
                )
            ),
        ),
    ),
    Counter(
        "l1_clock_hz",
        "L1/TEX clock; equal to the SM clock wherever a report holds both",
        (Exact(("l1tex__cycles_elapsed.avg.per_second",)), Same("sm_clock_hz")),
    ),
    exact("l2_clock_hz", "L2 slice clock", "lts__cycles_elapsed.avg.per_second", "ltc__frequency"),
    exact("dram_clock_hz", "DRAM clock", "dram__cycles_elapsed.avg.per_second", "dram__frequency"),
    exact(
        "sm_count",
        "streaming multiprocessors of the device",
        "device__attribute_multiprocessor_count",
        "launch__sm_count",
    ),
    exact("sm_cycles_active_avg", "cycles with work, mean over the SMs", "sm__cycles_active.avg"),
    exact("sm_cycles_active_max", "cycles with work, busiest SM", "sm__cycles_active.max"),
    exact("elapsed_cycles", "elapsed GPC or SM cycles", "gpc__cycles_elapsed.max", "sm__cycles_elapsed.max"),
)

DRAM: tuple[Counter, ...] = (
    Counter(
        "dram_bytes",
        "bytes moved to and from device memory",
        (
            Amount(
                (
                    ("dram__bytes",),
                    ("dram__bytes_read", "dram__bytes_write"),
                    ("dram__bytes_op_read", "dram__bytes_op_write"),
                    ("dram__read_bytes", "dram__write_bytes"),
                )
            ),
            Amount(
                (("dram__sectors_read", "dram__sectors_write"), ("dram__sectors_op_read", "dram__sectors_op_write")),
                SECTOR_BYTES,
            ),
        ),
    ),
    Counter(
        "dram_read_bytes",
        "bytes read from device memory",
        (Amount((("dram__bytes_read",), ("dram__bytes_op_read",), ("dram__read_bytes",))),),
    ),
    Counter(
        "dram_write_bytes",
        "bytes written to device memory",
        (Amount((("dram__bytes_write",), ("dram__bytes_op_write",), ("dram__write_bytes",))),),
    ),
    Counter(
        "dram_peak_bytes_per_s",
        "peak rate of device memory at the profiled clock",
        (
            Peak("dram__bytes", "dram_clock_hz"),
            Peak("dram__bytes_read", "dram_clock_hz"),
            Peak("dram__bytes_op_read", "dram_clock_hz"),
        ),
    ),
    Counter(
        "dram_share",
        "use of device memory",
        (
            Share(("dram__bytes", "dram__cycles_active")),
            Exact(
                (
                    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                ),
                0.01,
            ),
            Exact(("fbpa__sol_pct", "dram__sol_pct"), 0.01),
        ),
    ),
    amount(
        "sysmem_bytes",
        "bytes between L2 and system memory: the memory of chips without their own",
        "lts__t_sectors_aperture_sysmem",
        scale=SECTOR_BYTES,
    ),
)

L2: tuple[Counter, ...] = (
    Counter(
        "l2_bytes",
        "bytes between the SMs and L2, both directions",
        (
            Amount((("lts__t_sectors_srcunit_tex",),), SECTOR_BYTES),
            Amount((("l1tex__m_xbar2l1tex_read_bytes", "l1tex__m_l1tex2xbar_write_bytes"),)),
            Amount((("l1tex__m_xbar2l1tex_read_sectors", "l1tex__m_l1tex2xbar_write_sectors"),), SECTOR_BYTES),
        ),
    ),
    Counter(
        "l2_write_bytes",
        "bytes written from the SMs to L2",
        (
            Amount((("l1tex__m_l1tex2xbar_write_bytes",),)),
            Amount((("lts__t_sectors_srcunit_tex_op_write",), ("lts__t_sectors_op_write",)), SECTOR_BYTES),
        ),
    ),
    amount("l2_tag_bytes", "bytes looked up in the L2 tag stage", "lts__t_sectors", scale=SECTOR_BYTES),
    Counter(
        "l2_tag_peak_bytes_per_s",
        "peak rate of the L2 tag stage",
        (Peak("lts__t_sectors", "l2_clock_hz", SECTOR_BYTES),),
    ),
    share("l2_tag_share", "use of the L2 tag stage", "lts__t_sectors"),
    Counter(
        "l2_return_bytes",
        "bytes returned from L2 to the SMs",
        (
            Amount((("lts__lts2xbar_cycles_active",),), SECTOR_BYTES),
            Amount((("l1tex__m_xbar2l1tex_read_bytes",),)),
        ),
    ),
    Counter(
        "l2_return_peak_bytes_per_s",
        "peak rate of the path from L2 to the SMs",
        (
            Peak("lts__lts2xbar_cycles_active", "l2_clock_hz", SECTOR_BYTES),
            RateOverShare("l1tex__m_xbar2l1tex_read_bytes", "lts__lts2xbar_cycles_active"),
        ),
    ),
    share("l2_return_share", "use of the path from L2 to the SMs", "lts__lts2xbar_cycles_active"),
    share("l2_input_share", "use of the path from the SMs to L2", "lts__xbar2lts_cycles_active"),
    share("l2_data_share", "use of the L2 data banks", "lts__d_sectors"),
    share("l2_request_share", "use of the L2 tag stage, counted in requests", "lts__t_tag_requests"),
    exact("l2_hit_rate", "share of L2 sector look-ups that hit", "lts__t_sector_hit_rate.pct", scale=0.01),
)

L1: tuple[Counter, ...] = (
    Counter(
        "l1_tag_bytes",
        "bytes looked up in the L1 tag stage",
        (Amount((("l1tex__t_bytes",),)), Amount((("l1tex__t_sectors",),), SECTOR_BYTES)),
    ),
    Counter(
        "l1_tag_peak_bytes_per_s",
        "peak rate of the L1 tag stage",
        (Peak("l1tex__t_bytes", "l1_clock_hz"), PerSm(WAVEFRONT_BYTES, "l1_clock_hz")),
    ),
    share("l1_tag_share", "use of the L1 tag stage", "l1tex__t_bytes", "l1tex__t_sectors"),
    amount(
        "l1_writeback_bytes",
        "bytes returned from L1 to registers: loads only, none for asynchronous copies",
        "l1tex__lsu_writeback_active_mem_lgds",
        "l1tex__lsu_writeback_active_mem_lg",
        "l1tex__lsu_writeback_active",
        scale=WAVEFRONT_BYTES,
    ),
    Counter("l1_peak_bytes_per_s", "one wavefront a cycle and SM", (PerSm(WAVEFRONT_BYTES, "l1_clock_hz"),)),
    share(
        "l1_writeback_share",
        "use of the return path from L1 to registers",
        "l1tex__lsu_writeback_active",
        "l1tex__lsu_writeback_active_mem_lgds",
        "l1tex__lsu_writeback_active_mem_lg",
    ),
    amount(
        "l1_data_bytes",
        "wavefronts of the L1 data stage x 128: all memory spaces, conflict and divergence replays included",
        "l1tex__data_pipe_lsu_wavefronts",
        scale=WAVEFRONT_BYTES,
    ),
    share("l1_data_share", "use of the L1 data stage by the LSU", "l1tex__data_pipe_lsu_wavefronts"),
    share("l1_bank_read_share", "use of the L1 data banks by reads", "l1tex__data_bank_reads"),
    share("l1_bank_write_share", "use of the L1 data banks by writes", "l1tex__data_bank_writes"),
    share("l1_tex_data_share", "use of the L1 data stage by textures", "l1tex__data_pipe_tex_wavefronts"),
    share("l1_filter_share", "use of the texture filter stage", "l1tex__f_wavefronts"),
    share("l1_to_l2_share", "use of the request path from L1 to L2", "l1tex__m_l1tex2xbar_req_cycles_active"),
    share("l1_from_l2_share", "use of the fill path from L2 to L1", "l1tex__m_xbar2l1tex_read_sectors"),
    exact("l1_hit_rate", "share of L1 sector look-ups that hit", "l1tex__t_sector_hit_rate.pct", scale=0.01),
    amount("global_load_sectors", "sectors of global loads", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"),
    amount("global_load_requests", "requests of global loads", "l1tex__t_requests_pipe_lsu_mem_global_op_ld"),
    amount("global_store_sectors", "sectors of global stores", "l1tex__t_sectors_pipe_lsu_mem_global_op_st"),
    amount("global_store_requests", "requests of global stores", "l1tex__t_requests_pipe_lsu_mem_global_op_st"),
    exact(
        "global_touched_sectors",
        "sectors that the addresses of global accesses touch",
        "memory_l2_theoretical_sectors_global",
    ),
    exact(
        "global_ideal_sectors",
        "sectors that the bytes of global accesses would fill",
        "memory_l2_theoretical_sectors_global_ideal",
    ),
)

SMEM: tuple[Counter, ...] = (
    amount(
        "smem_bytes",
        "bytes delivered by shared memory, bank-conflict replays included",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared",
        scale=WAVEFRONT_BYTES,
    ),
    share("smem_share", "use of the shared-memory data stage", "l1tex__data_pipe_lsu_wavefronts_mem_shared"),
    amount(
        "smem_conflict_bytes",
        "part of the delivered bytes that were bank-conflict replays",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared",
        scale=WAVEFRONT_BYTES,
    ),
    amount(
        "smem_tensor_wavefronts",
        "shared-memory wavefronts of the tensor pipe (tcgen05); their width is not documented",
        "l1tex__data_pipe_tc_wavefronts_mem_shared",
    ),
    exact(
        "smem_useful_bytes", "bytes that instructions asked of shared memory", "smsp__sass_data_bytes_mem_shared.sum"
    ),
    exact(
        "smem_access_wavefronts",
        "wavefronts that the addresses of shared-memory accesses need",
        "memory_l1_wavefronts_shared",
    ),
    exact(
        "smem_ideal_wavefronts",
        "wavefronts that the bytes of shared-memory accesses would fill",
        "memory_l1_wavefronts_shared_ideal",
    ),
)

FLOPS: tuple[Counter, ...] = (*sass_rows("d", "fp64"), *sass_rows("f", "fp32"), *sass_rows("h", "packed fp16"))

PIPES: tuple[Counter, ...] = (
    *pipe_rows("alu", "ALU pipe (integer, logic, compare)"),
    *pipe_rows("xu", "XU pipe (transcendental, conversion)"),
    *pipe_rows("lsu", "LSU pipe (load and store instructions)"),
    *pipe_rows("tex", "texture pipe"),
    *pipe_rows("uniform", "uniform data path"),
    *pipe_rows("adu", "address divergence unit"),
    *pipe_rows("cbu", "branch unit"),
    share("alu_busy_share", "cycles the ALU pipe was busy", "sm__pipe_alu_cycles_active"),
    share("alu_heavy_busy_share", "cycles the heavy ALU pipe was busy", "sm__pipe_aluheavy_cycles_active"),
    share("fma_busy_share", "cycles the FMA pipe was busy", "sm__pipe_fma_cycles_active"),
    share("fma_heavy_busy_share", "cycles the heavy FMA pipe was busy", "sm__pipe_fmaheavy_cycles_active"),
    share("fp64_busy_share", "cycles the FP64 pipe was busy", "sm__pipe_fp64_cycles_active"),
    share("fp16_busy_share", "use of the FP16 pipe", "sm__inst_executed_pipe_fp16"),
    share(
        "shared_pipe_busy_share",
        "cycles the pipe shared by tensor, FP64 and FP16 was busy",
        "sm__pipe_shared_cycles_active",
    ),
    share(
        "tensor_busy_share",
        "cycles the tensor pipe was busy",
        "sm__pipe_tensor_cycles_active",
        "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
        "sm__pipe_tensor_op_hmma_cycles_active",
        "sm__inst_executed_pipe_tensor",
    ),
    share(
        "tensor_float_busy_share",
        "cycles the tensor pipe was busy with floating-point work",
        "sm__pipe_tensor_op_hmma_cycles_active",
        "sm__pipe_tensor_subpipe_hmma_cycles_active",
        "sm__inst_executed_pipe_tensor_op_hmma",
        "sm__inst_executed_pipe_tensor_op_gmma",
    ),
    share("mio_share", "use of the memory input/output queue", "sm__mio_inst_issued"),
    share("mio_return_share", "use of the return path of the memory input/output queue", "sm__mio2rf_writeback_active"),
    amount("issued_inst", "warp instructions issued", "smsp__inst_issued", "sm__inst_issued", "smsp__issue_active"),
    Counter(
        "issue_peak_inst_per_s", "one instruction a cycle and scheduler", (PerSm(SCHEDULERS_PER_SM, "sm_clock_hz"),)
    ),
    share("issue_share", "use of the issue slots", "sm__issue_active", "smsp__issue_active", "sm__inst_issued"),
    share("executed_share", "use of the issue slots by executed instructions", "sm__inst_executed"),
)

WARPS: tuple[Counter, ...] = (
    exact(
        "achieved_occupancy",
        "resident warps over the most an SM can hold",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "sm__active_warps_avg_per_active_cycle_pct",
        scale=0.01,
    ),
    exact(
        "theoretical_occupancy",
        "warps that the launch allows over the most an SM can hold",
        "sm__maximum_warps_per_active_cycle_pct",
        scale=0.01,
    ),
    exact("eligible_warps_per_cycle", "warps ready to issue, a scheduler", "smsp__warps_eligible.avg.per_cycle_active"),
    exact("issue_active_per_cycle", "instructions issued, a scheduler", "smsp__issue_active.avg.per_cycle_active"),
    exact("grid_size", "thread blocks", "launch__grid_size"),
    exact("block_size", "threads a block", "launch__block_size"),
    exact("waves", "waves of blocks over the SMs", "launch__waves_per_multiprocessor"),
    exact("registers_per_thread", "registers a thread", "launch__registers_per_thread"),
    exact(
        "smem_per_block_bytes",
        "shared memory a block",
        "launch__shared_mem_per_block_allocated",
        "launch__shared_mem_per_block",
    ),
    exact("blocks_limit_registers", "blocks an SM can hold by registers", "launch__occupancy_limit_registers"),
    exact("blocks_limit_smem", "blocks an SM can hold by shared memory", "launch__occupancy_limit_shared_mem"),
    exact("blocks_limit_warps", "blocks an SM can hold by warps", "launch__occupancy_limit_warps"),
    exact("blocks_limit_blocks", "blocks an SM can hold by block slots", "launch__occupancy_limit_blocks"),
    exact("blocks_limit_barriers", "blocks an SM can hold by barriers", "launch__occupancy_limit_barriers"),
    exact("stall_samples", "warp samples taken", "smsp__pcsamp_sample_count"),
)

REPORT: tuple[Counter, ...] = (
    exact("passes", "replay passes ncu needed", "profiler__replayer_passes"),
    exact(
        "sol_compute",
        "NVIDIA's compute throughput: its busiest sub-unit, not a roofline position",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__sol_pct",
        scale=0.01,
    ),
    exact(
        "sol_memory",
        "NVIDIA's memory throughput: its busiest sub-unit, not a roofline position",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__compute_memory_sol_pct",
        scale=0.01,
    ),
)

COUNTERS: tuple[Counter, ...] = (*CLOCKS, *DRAM, *L2, *L1, *SMEM, *FLOPS, *PIPES, *WARPS, *REPORT)
NAMES = frozenset(counter.name for counter in COUNTERS)
