"""What the page of each flag says beside the sentence of its record in `model/verdict/flags.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.about.texts import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

FLAG_TEXTS: Mapping[str, Text] = {
    "all_counters_nan": Text(
        "ncu wrote NaN for every counter: usually the kernel was killed, timed out or could not be replayed.",
        "Counters: all of them.",
        "Confirm with `ncu --import REPORT --page raw`, which shows NaN as well.",
        "It does not show why ncu failed; its log of that run may.",
        (
            "profile this kernel alone: `ncu --kernel-name NAME --launch-count 1`, or `rooflens profile --kernel`",
            "where kernels wait for one another, as those of NCCL do, `--replay-mode application`",
        ),
    ),
    "atomics_cross_twice": Text(
        "An atomic that returns a value sends a sector to L2 and gets one back. Counted by lookups it is one sector, "
        "so L2's bytes lack the way back: up to 27 % in reports seen so far.",
        "Counters: `lts__t_sectors_srcunit_tex`, atomic sectors or opcodes (`ATOM`, `ATOMG`).",
        "Confirm with `lts__t_sectors_srcunit_tex_op_atom`: that many sectors are missing.",
        "It does not change how busy L2 is: its stages count both ways.",
        ("read L2's share, not its bytes", "where the old value is not used, let the compiler emit `RED`"),
    ),
    "bank_conflicts": Text(
        "Threads of a warp access different words of one bank, so their accesses are serialised.",
        "Counters: wavefronts that are replays over all wavefronts of shared memory.",
        "Confirm with the finding of the same name: it says where, and whether it costs time.",
        "It does not show whether shared memory is what limits the kernel.",
        ("pad rows by a word (`tile[32][33]`) or swizzle, if the finding says that it costs time",),
    ),
    "clocks_moved": Text(
        "Cycles over time give one clock, the report states another. Passes ran at different clocks, so shares "
        "that combine two of them are off by as much.",
        "Counters: elapsed cycles, time, and the reported SM clock.",
        "Confirm by profiling again: the difference changes from run to run.",
        "It does not show which pass was slow.",
        (
            "leave ncu's `--clock-control base` on",
            "lock clocks for the run: `nvidia-smi --lock-gpu-clocks`",
            "let nothing else run on that GPU",
        ),
    ),
    "dram_clock_low": Text(
        "The peak at the profiled clock is over a tenth below that of the memory's own top clock: an RTX 4090 was seen "
        "at 0.73 of it. The kernel is closer to this lowered roof than it would be to the full one.",
        "Counters: the peak of `dram__bytes` against memory clock x 2 x bus width / 8, as the driver states them.",
        "Confirm with `nvidia-smi -q -d CLOCK` while it runs.",
        "It does not show why: power, heat, or a GPU that had not woken up.",
        (
            "warm the GPU up before the profile, and look at its power limit",
            "read `at_roof`, which also requires 72 % of the memory's full peak",
        ),
    ),
    "dram_writes_stay_in_l2": Text(
        "The kernel wrote to L2, and almost nothing reached DRAM before it ended. A later kernel pays for these bytes, "
        "unless the next one reads them from L2.",
        "Counters: bytes written to L2 and to DRAM.",
        "Confirm with a larger problem: once the output outgrows L2, writes appear.",
        "It does not show who writes them back.",
        (
            "judge the intensity at L2, or at DRAM by the bytes that the algorithm must write",
            "where the next kernel reads the output, leave it: fusing aims for just that",
        ),
    ),
    "fp16_is_upper_bound": Text(
        "`HFMA2` with a zero loads a constant and computes nothing. In the reports examined, all CUDA-core fp16 "
        "work of kernels without fp16 was such loads, up to 57 % of the total if it were counted.",
        "Counters: `HFMA2` of the opcode table, or `smsp__sass_thread_inst_executed_op_hfma_pred_on`.",
        "Confirm in the SASS: `HFMA2 R1, -RZ, RZ, ...`.",
        "It does not affect tensor cores.",
        ("record with source counters (`--set full`, or `--section SourceCounters`), from which they are told apart",),
    ),
    "fp16_not_measured": Text(
        "The report counts fp32 and fp64 but no packed fp16. Kernels without it lose nothing; `half2` code does.",
        "Counters: `smsp__sass_thread_inst_executed_op_h{add,mul,fma}_pred_on`, all missing.",
        "Confirm by looking for `HADD2`, `HMUL2`, `HFMA2` in the SASS.",
        "It does not show whether the kernel does any.",
        ("record again with `rooflens profile`, or `ncu --set full`",),
    ),
    "l1_misses_async_copies": Text(
        "Where `l1tex__t_bytes` is missing, the data that L1 returns to registers is used instead. Asynchronous "
        "copies go from L1 to shared memory and never return that way.",
        "Counters: write-back cycles of L1, opcodes such as `LDGSTS`, `UBLKCP` and `UTMALDG`, fills from L2.",
        "Confirm with the opcode table: it names the copies.",
        "It does not affect the bytes of L2 and DRAM, nor any share.",
        ("read the roofline at L2 or DRAM", "record `l1tex__t_bytes`, as `rooflens profile` does"),
    ),
    "no_dram_counters": Text(
        "Chips that share the host's memory, such as Orin and DGX Spark, have no counters of DRAM traffic. Sectors "
        "that L2 exchanges with system memory are used instead.",
        "Counters: sectors of L2 to and from system memory, instead of `dram__bytes`.",
        "Confirm by the chip: `rooflens gpus` says which memory it has.",
        "It does not show how close that memory is to its limit: it has no measured roof.",
        ("compare bytes over time with the datasheet's bandwidth", "judge by L2, whose share is known"),
    ),
    "no_flop": Text(
        "Copies, sorts, scans and integer code have no FLOPs, so no intensity and no place below a compute roof.",
        "Counters: all of floating-point and tensor work, which were measured and are zero.",
        "Confirm with the opcode mix.",
        "It does not show that the kernel is memory-bound: integer pipes and stalls can limit it too.",
        ("read the shares of levels and pipes instead of the roofline",),
    ),
    "no_flop_counters": Text(
        "The report lacks the counters of FLOPs, so there is no FLOP/s, no intensity and no potential. The verdict "
        "stands: it needs how busy units were.",
        "Counters: `smsp__sass_thread_inst_executed_op_{d,f}{add,mul,fma}_pred_on` and opcode tables, all missing.",
        "Confirm with `rooflens metrics --report PATH`.",
        "It does not show whether the kernel does any arithmetic.",
        (
            "add ncu's roofline sections (`--set roofline`, or `--set full`)",
            "or record with `rooflens profile`, which asks for all it needs in few passes",
        ),
    ),
    "not_a_kernel": Text(
        "ncu can profile a range, a CUDA graph or a command list as one result. Several kernels share its counters.",
        "Counters: the type of the result.",
        "Confirm with the name: it is that of a range or a graph.",
        "It does not show which of its kernels a share comes from.",
        (
            "profile kernels one by one: `--replay-mode kernel`, `--graph-profiling node`",
            "profile ranges only for what must run together",
        ),
    ),
    "not_analyzed": Text(
        "A value is impossible, such as a clock of 1e308 Hz or a negative count. Damaged files hold such values, and "
        "one wrong number casts doubt on all of them.",
        "Counters: the one that the verdict names; the limits are those of physics or of the format.",
        "Confirm by opening the report in NVIDIA's viewer.",
        "It does not show that other kernels of the file are sound, though they passed the same checks.",
        ("copy the report again from where it was made", "else record it again"),
    ),
    "one_side_only": Text(
        "A verdict weighs memory against compute. Here one of them was not measured, so the other may "
        "not be the limit. Confidence is lower.",
        "Counters: the shares of memory levels or of pipes: one kind is missing. A share of L1 alone does not count as "
        "memory: it says nothing of L2 and DRAM.",
        "Confirm with `rooflens metrics --report PATH`.",
        "It does not show how busy the other side is.",
        (
            "record both: `--section SpeedOfLight` is the minimum",
            "or collect everything the model reads with `rooflens profile`",
        ),
    ),
    "partial_counters": Text(
        "Some passes failed or some counters read NaN. What is there is used; what is missing stays missing "
        "and never becomes 0.",
        "Counters: those missing or NaN; the card shows no number for them.",
        "Confirm with `rooflens metrics --report PATH`, which names the findings that cannot be checked.",
        "It does not show how busy the missing units were.",
        ("profile this kernel again, alone", "if it is always the same counter, the chip or driver lacks it"),
    ),
    "peak_from_datasheet": Text(
        "A roof needs a peak. Usually the report states it; where it does not, the published one is scaled "
        "to the profiled clock.",
        "Counters: the missing `.sum.peak_sustained` of that type, and the SM clock.",
        "Confirm with `rooflens gpus NAME`, which shows the published peak and its source.",
        "It does not show what the chip reaches under its power limit.",
        ("record the peaks with `rooflens profile`", "measure what the GPU reaches: `rooflens calibrate`"),
    ),
    "share_over_one": Text(
        "ncu replays a kernel once a pass, and divides counters of different passes. When these differ, a unit "
        "can appear more than fully busy.",
        "Counters: the busiest unit's share, above 102 %.",
        "Confirm by profiling again: the share changes.",
        "It does not show which pass was off.",
        (
            "make runs alike: locked clocks, `--cache-control all`, nothing else on the GPU",
            "profile a longer launch, or fewer counters at once (`--detail quick`)",
        ),
    ),
    "short_and_replayed": Text(
        "Under 20 us, ramp-up and drain make up much of a launch, and they differ from pass to pass. Numbers of "
        "different passes agree only loosely: up to a tenth apart is common.",
        "Counters: the time of the launch, and the number of passes.",
        "Confirm by profiling twice and comparing the shares.",
        "It does not mean that anything is wrong with the kernel.",
        ("profile a larger problem", "collect less, in fewer passes: `rooflens profile --detail quick`"),
    ),
    "slower_while_profiled": Text(
        "The program was timed without the profiler as well, and its kernels took less than half as long. The "
        "profiler lowers clocks, flushes caches and runs kernels one at a time.",
        "Counters: kernel time of a trace against the same kernels profiled.",
        "Confirm with `nvidia-smi` during both runs, or with `--clock-control none`.",
        "It does not show which of these was the reason.",
        (
            "profile with `--clock-control none` and `--cache-control none`, if the program runs warm",
            "take shares for what they are: those of the profiled run",
        ),
    ),
    "smem_bytes_lower_bound": Text(
        "Some traffic of shared memory has no counter here: cp.async, TMA, or operands of warpgroup products.",
        "Counters: wavefronts of shared memory by kind; opcodes that fill or read it past the load/store unit.",
        "Confirm with the opcode table: `LDGSTS`, `UBLKCP`, `UTMALDG`, `HGMMA`.",
        "It does not affect how busy shared memory is.",
        ("read its share, not its bytes", "record source counters (`--set full`), which hold the accesses"),
    ),
    "smem_bytes_upper_bound": Text(
        "The only counter available includes shuffles, which use the data path of shared memory but move none of its "
        "bytes: in shuffle reductions they are over half of it.",
        "Counters: `l1tex__data_pipe_lsu_wavefronts_mem_shared`, without any counter that splits it.",
        "Confirm with the opcode table: `SHFL` beside `LDS` and `STS`.",
        "It does not affect how busy the data path is: shuffles occupy it as well.",
        ("read its share, not its intensity", "record source counters (`--set full`), which tell accesses apart"),
    ),
    "smem_tensor_width_unknown": Text(
        "Blackwell's tensor cores read operands from shared memory directly. These reads are counted, but in "
        "units whose size in bytes NVIDIA does not state, so they are in no byte count.",
        "Counters: `l1tex__data_pipe_tc_wavefronts_mem_shared`.",
        "Confirm with the opcodes of tcgen05, such as `UTCHMMA`.",
        "It does not show how many bytes they are.",
        ("judge these kernels by the tensor pipe, L2 and DRAM",),
    ),
    "sol_pair_only": Text(
        "These are the first two lines of ncu's output, Memory and Compute. They give a class with low confidence, "
        "and neither a roof nor a potential.",
        "Counters: `gpu__compute_memory_throughput` and `sm__throughput`.",
        "Confirm with `ncu --import REPORT --page raw`.",
        "It does not show which unit is behind either of them.",
        ("record breakdowns: `--set full`", "or use `rooflens profile`, which takes fewer passes"),
    ),
    "sparse_tensor_work": Text(
        "2:4 sparse instructions skip half of the products. Their nominal work includes the skipped ones, at "
        "twice the dense peak, so it has its own key and its own roof.",
        "Counters: tensor operations with `sparsity_on`, or opcodes with `.SP`.",
        "Confirm with the opcode table.",
        "It does not show whether sparsity was worth it: compare times.",
        ("compare with a dense run by time, never by FLOP/s",),
    ),
    "synthetic": Text(
        "This report was generated to test or to show something. Its numbers are consistent, but no GPU produced them.",
        "Counters: a mark in the report.",
        "Confirm with the name of the file: `*.synthetic.ncu-rep`.",
        "It does not say anything about a real GPU.",
        ("use it to learn the tool, and a recorded report to tune a kernel",),
    ),
    "tcgen05_without_operation_counters": Text(
        "Blackwell's tensor instructions carry shape and type in a descriptor, not in the opcode. Without operation "
        "counters, FLOPs, intensity and potential are unknown.",
        "Counters: opcodes such as `UTCHMMA`, and `sm__ops_path_tensor_*`, missing or zero.",
        "Confirm with `rooflens metrics --report PATH`.",
        "It does not affect how busy the tensor pipe is.",
        ("record `sm__ops_path_tensor_*`: `rooflens profile` asks for them",),
    ),
    "tensor_counter_reads_zero": Text(
        "The pipe was busy, yet its operation counters read zero: they count other types or instructions "
        "than the kernel's. Showing zero would be wrong.",
        "Counters: activity of the tensor pipe against `sm__ops_path_tensor_*`.",
        "Confirm with the opcodes: they name type and shape.",
        "It does not show how many operations there were.",
        (
            "record opcode tables (`sass__inst_executed_per_opcode_with_modifier_all`), as `rooflens profile` does",
            "or the counters of the right type: `rooflens metrics --chip CHIP --names`",
        ),
    ),
    "tensor_flop_estimated": Text(
        "Nothing counts tensor operations here, so they are estimated as pipe activity x peak.",
        "Counters: busy cycles of the floating-point part of the tensor pipe, or its instructions.",
        "Confirm with a formula: 2 x M x N x K of a matrix product.",
        "It does not show the type: all of it is assumed to be fp16.",
        ("record operations or opcodes with `rooflens profile`",),
    ),
    "tensor_flop_unknown": Text(
        "The tensor pipe was busy, and no counter or opcode explains even half of that. FLOPs, intensity "
        "and potential are left out.",
        "Counters: activity of the tensor pipe, operations by type, opcodes.",
        "Confirm with `rooflens metrics --report PATH`.",
        "It does not affect how busy the pipe is, which still gives the verdict.",
        ("record operations of all types, or opcodes: `rooflens profile`",),
    ),
    "tensor_work_not_measured": Text(
        "The chip has tensor cores, but the report counts neither their work nor how busy they were. A kernel that "
        "looks idle may be full of tensor work.",
        "Counters: activity and operations of the tensor pipe, all missing.",
        "Confirm with the name of the kernel or its source: `wmma`, `mma`, `tl.dot`, cuBLAS.",
        "It does not show whether the kernel uses them.",
        ("record with `rooflens profile`, or at least with `--section ComputeWorkloadAnalysis`",),
    ),
    "wgmma_count_estimated": Text(
        "Four warps issue a warpgroup's matrix instruction, and each is counted as a quarter of its work. Profiles "
        "of bf16 on a GH200 agree to the digit; other types are not yet run on a GPU.",
        "Counters: opcodes such as `HGMMA.64x256x16`, which state the shape.",
        "Confirm with a formula: 2 x M x N x K of a matrix product.",
        "It does not affect how busy the pipe is.",
        ("record `sm__ops_path_tensor_*`, which is used where a report has it: `rooflens profile` asks for it",),
    ),
}
"""Key of a flag -> what its page says beside its sentence."""
