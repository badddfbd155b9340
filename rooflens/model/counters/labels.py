"""What ncu prints on its page of details: sections, their labels with the metrics behind them, and their rules.

The one list of them: readers of printed reports look metrics up here, and `rooflens about` explains each in the words
of `rooflens/model/knowledge/sections`. Pairs of label and metric come from the section definitions that reports carry,
of all versions of ncu. A label that versions used for two metrics of one unit is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_PCT_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_PCT_ACTIVE = ".avg.pct_of_peak_sustained_active"


class Section(NamedTuple):
    """A section of a report.

    Attributes:
        identifier: As `--section` takes it, and as CSV prints it beside a rule.
        names: As it is printed, the newest name first.
        labels: Label -> the metrics that NVIDIA's sections give it; if there are several, the unit decides.
        rules: Identifier of each of its rules, older ones too -> how it is headed.
    """

    identifier: str
    names: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    rules: Mapping[str, str] = MappingProxyType({})


_COMPUTE = f"sm__throughput{_PCT_ELAPSED}"
_MEMORY = f"gpu__compute_memory_throughput{_PCT_ELAPSED}"
_DRAM = f"gpu__dram_throughput{_PCT_ELAPSED}"
_L2 = f"lts__throughput{_PCT_ELAPSED}"
_L1 = f"l1tex__throughput{_PCT_ACTIVE}"
_CLOCKS: Mapping[str, tuple[str, ...]] = {
    "SM Frequency": ("gpc__cycles_elapsed.avg.per_second",),
    "DRAM Frequency": ("dram__cycles_elapsed.avg.per_second",),
    "Memory Frequency": ("dram__cycles_elapsed.avg.per_second",),
}
_SPILLS_TO_LOCAL = ("sass__inst_executed_register_spilling_mem_local", "derived__local_spilling_requests")
_SPILLS_TO_SHARED = ("sass__inst_executed_register_spilling_mem_shared", "derived__shared_spilling_requests")
_EXECUTION_MODEL = ("launch__execution_model",)

SECTIONS: tuple[Section, ...] = (
    Section(
        "SpeedOfLight",
        ("GPU Speed Of Light Throughput", "GPU Speed Of Light"),
        {
            "Compute (SM) Throughput": (_COMPUTE,),
            "Compute (SM) [%]": (_COMPUTE,),
            "SOL SM": (_COMPUTE,),
            "SM [%]": (_COMPUTE,),
            "Memory Throughput": (_MEMORY,),
            "Memory [%]": (_MEMORY,),
            "SOL Memory": (_MEMORY,),
            "DRAM Throughput": (_DRAM,),
            "SOL DRAM": (_DRAM,),
            "SOL FB": (_DRAM,),
            "L2 Cache Throughput": (_L2,),
            "SOL L2 Cache": (_L2,),
            "SOL L2": (_L2,),
            "L1/TEX Cache Throughput": (_L1,),
            "SOL L1/TEX Cache": (_L1,),
            "SOL TEX": (_L1,),
            "Duration": ("gpu__time_duration.sum",),
            "Elapsed Cycles": ("gpc__cycles_elapsed.max",),
            "SM Active Cycles": ("sm__cycles_active.avg",),
            **_CLOCKS,
        },
        {"SOLBottleneck": "Bottleneck"},
    ),
    Section(
        "SpeedOfLight_RooflineChart",
        ("GPU Speed Of Light Roofline Chart", "GPU Speed Of Light Roofline Chart (Overview)"),
        {
            "DRAM Bandwidth": ("dram__bytes.sum.per_second",),
            "Theoretical DRAM Bytes Accessible": ("dram__bytes.sum.peak_sustained",),
            "L1/TEX Cache Frequency": ("l1tex__cycles_elapsed.avg.per_second",),
            "L2 Cache Frequency": ("lts__cycles_elapsed.avg.per_second",),
            **_CLOCKS,
        },
        {"SOLFPRoofline": "Roofline Analysis"},
    ),
    *(
        Section(
            f"SpeedOfLight_Hierarchical{kind}RooflineChart",
            (f"GPU Speed Of Light Hierarchical Roofline Chart ({name})",),
        )
        for kind, name in (
            ("Double", "Double Precision"),
            ("Half", "Half Precision"),
            ("Single", "Single Precision"),
            ("Tensor", "Tensor Core"),
        )
    ),
    Section(
        "ComputeWorkloadAnalysis",
        ("Compute Workload Analysis",),
        {
            "Executed Ipc Elapsed": ("sm__inst_executed.avg.per_cycle_elapsed",),
            "Executed Ipc Active": ("sm__inst_executed.avg.per_cycle_active",),
            "Issued Ipc Active": ("sm__inst_issued.avg.per_cycle_active",),
        },
        {"HighPipeUtilization": "High Pipe Utilization"},
    ),
    Section(
        "MemoryWorkloadAnalysis",
        ("Memory Workload Analysis",),
        {
            "Memory Throughput": ("dram__bytes.sum.per_second",),
            "Mem Busy": (f"gpu__compute_memory_access_throughput{_PCT_ELAPSED}",),
            "Max Bandwidth": (f"gpu__compute_memory_request_throughput{_PCT_ELAPSED}",),
            "Mem Pipes Busy": (f"sm__memory_throughput{_PCT_ELAPSED}",),
            "L1/TEX Hit Rate": ("l1tex__t_sector_hit_rate.pct",),
            "L2 Hit Rate": ("lts__t_sector_hit_rate.pct",),
            "L2 Compression Success Rate": ("lts__average_gcomp_input_sector_success_rate.pct",),
            "L2 Compression Ratio": (
                "lts__average_gcomp_output_sector_compression_achieved_rate.ratio",
                "lrc__average_ilc_output_sector_compression_achieved_rate.pct",
            ),
            "L2 Compression Input Sectors": ("lts__gcomp_input_sectors.sum",),
            "L2 Persisting Size": ("launch__persisting_l2_cache_size",),
            "L2 Sector Promotion Misses": ("derived__lts__t_sectors_lookup_miss_data_promoted_pct",),
            "Local Memory Spilling Requests": _SPILLS_TO_LOCAL,
            "Shared Memory Spilling Requests": _SPILLS_TO_SHARED,
            "Local Memory Spilling Request Overhead": ("derived__local_spilling_requests_pct",),
            "Shared Memory Spilling Request Overhead": ("derived__shared_spilling_requests_pct",),
        },
    ),
    Section(
        "MemoryWorkloadAnalysis_Chart",
        ("Memory Workload Analysis Chart",),
        rules={"MemoryL2Compression": "Memory L2 Compression"},
    ),
    Section(
        "MemoryWorkloadAnalysis_Tables",
        ("Memory Workload Analysis Tables",),
        rules={
            "MemoryCacheAccessPattern": "Memory Cache Access Pattern",
            "SharedMemoryConflicts": "Shared Memory Conflicts",
            "MemoryApertureUsage": "Memory Aperture Usage",
        },
    ),
    Section(
        "SchedulerStats",
        ("Scheduler Statistics",),
        {
            "Active Warps Per Scheduler": ("smsp__warps_active.avg.per_cycle_active",),
            "Eligible Warps Per Scheduler": ("smsp__warps_eligible.avg.per_cycle_active",),
            "Issued Warp Per Scheduler": ("smsp__issue_active.avg.per_cycle_active",),
            "No Eligible": (f"smsp__issue_inst0{_PCT_ACTIVE}",),
            "One or More Eligible": (f"smsp__issue_active{_PCT_ACTIVE}",),
            "GPU Maximum Warps Per Scheduler": ("smsp__warps_active.avg.peak_sustained",),
            "Theoretical Warps Per Scheduler": ("smsp__maximum_warps_avg_per_active_cycle",),
        },
        {"IssueSlotUtilization": "Issue Slot Utilization"},
    ),
    Section(
        "WarpStateStats",
        ("Warp State Statistics",),
        {
            "Warp Cycles Per Issued Instruction": ("smsp__average_warp_latency_per_inst_issued.ratio",),
            "Warp Cycles Per Executed Instruction": ("smsp__average_warps_active_per_inst_executed.ratio",),
            "Avg. Active Threads Per Warp": ("smsp__thread_inst_executed_per_inst_executed.ratio",),
            "Avg. Not Predicated Off Threads Per Warp": ("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",),
        },
        {"CPIStall": "Warp Stall", "ThreadDivergence": "Thread Divergence"},
    ),
    Section(
        "InstructionStats",
        ("Instruction Statistics",),
        {
            "Executed Instructions": ("smsp__inst_executed.sum",),
            "Issued Instructions": ("smsp__inst_issued.sum",),
            "Avg. Executed Instructions Per Scheduler": ("smsp__inst_executed.avg",),
            "Avg. Issued Instructions Per Scheduler": ("smsp__inst_issued.avg",),
            "Local Memory Spilling Requests": _SPILLS_TO_LOCAL,
            "Shared Memory Spilling Requests": _SPILLS_TO_SHARED,
        },
        {"FPInstructions": "FP32/64 Instructions", "SlowPipeLimiter": "Slow Pipe Limiter"},
    ),
    Section(
        "SourceCounters",
        ("Source Counters",),
        {
            "Branch Instructions": ("smsp__inst_executed_op_branch.sum",),
            "Branch Instructions Ratio": ("derived__smsp__inst_executed_op_branch_pct",),
            "Divergent Branches": ("smsp__branch_targets_threads_divergent",),
            "Branch Efficiency": ("smsp__sass_average_branch_targets_threads_uniform.pct",),
            "Avg. Divergent Branches": ("smsp__sass_branch_targets_threads_divergent.avg",),
        },
        {
            "UncoalescedGlobalAccess": "Uncoalesced Global Accesses",
            "UncoalescedSharedAccess": "Uncoalesced Shared Accesses",
            "PCSamplingData": "PC sampling data",
        },
    ),
    Section(
        "LaunchStats",
        ("Launch Statistics",),
        {
            "Block Size": ("launch__block_size",),
            "Grid Size": ("launch__grid_size",),
            "Threads": ("launch__thread_count",),
            "Registers Per Thread": ("launch__registers_per_thread",),
            "Shared Memory Configuration Size": ("launch__shared_mem_config_size",),
            "Driver Shared Memory Per Block": ("launch__shared_mem_per_block_driver",),
            "Dynamic Shared Memory Per Block": ("launch__shared_mem_per_block_dynamic",),
            "Static Shared Memory Per Block": ("launch__shared_mem_per_block_static",),
            "Function Cache Configuration": ("launch__func_cache_config",),
            "Waves Per SM": ("launch__waves_per_multiprocessor",),
            "# SMs": ("launch__sm_count",),
            "# TPCs": ("launch__tpc_count",),
            "Enabled TPC IDs": ("launch__tpc_enabled",),
            "Block Barrier Count": ("launch__barrier_count",),
            "Shared Memory Per Block": ("launch__shared_mem_per_block",),
            "Launch Execution Model": _EXECUTION_MODEL,
            "Stack Size": ("launch__stack_size",),
            "Uses Green Context": ("launch__uses_green_context",),
            "Cluster Size": ("launch__cluster_size",),
            "Preferred Cluster Size": ("launch__preferred_cluster_size",),
            "Cluster Scheduling Policy": ("launch__cluster_scheduling_policy",),
        },
        {"LaunchConfiguration": "Launch Configuration"},
    ),
    Section(
        "Occupancy",
        ("Occupancy",),
        {
            "Theoretical Occupancy": ("sm__maximum_warps_per_active_cycle_pct",),
            "Theoretical Active Warps per SM": ("sm__maximum_warps_avg_per_active_cycle",),
            "Achieved Occupancy": (f"sm__warps_active{_PCT_ACTIVE}",),
            "Achieved Active Warps Per SM": ("sm__warps_active.avg.per_cycle_active",),
            "Block Limit Registers": ("launch__occupancy_limit_registers",),
            "Block Limit Shared Mem": ("launch__occupancy_limit_shared_mem",),
            "Block Limit Warps": ("launch__occupancy_limit_warps",),
            "Block Limit SM": ("launch__occupancy_limit_blocks",),
            "Block Limit Barriers": ("launch__occupancy_limit_barriers",),
            "Cluster Occupancy": ("launch__occupancy_cluster_pct",),
            "Overall GPU Occupancy": ("launch__occupancy_cluster_gpu_pct",),
            "Max Active Clusters": ("launch__cluster_max_active",),
            "Max Cluster Size": ("launch__cluster_max_potential_size",),
        },
        {
            "TheoreticalOccupancy": "Theoretical Occupancy",
            "AchievedOccupancy": "Achieved Occupancy",
            "Occupancy": "Occupancy",
        },
    ),
    Section(
        "WorkloadDistribution",
        ("GPU and Memory Workload Distribution",),
        {
            **{
                f"Average {name} Active Cycles": (f"{unit}__cycles_active.avg",)
                for name, unit in (("SM", "sm"), ("SMSP", "smsp"), ("L1", "l1tex"), ("L2", "lts"), ("DRAM", "dram"))
            },
            **{
                f"Total {name} Elapsed Cycles": (f"{unit}__cycles_elapsed.sum",)
                for name, unit in (("SM", "sm"), ("SMSP", "smsp"), ("L1", "l1tex"), ("L2", "lts"), ("DRAM", "dram"))
            },
            "Average MC Channel Active Cycles": ("mcc__cycles_active.avg",),
            "Total MC Channel Elapsed Cycles": ("mcc__cycles_elapsed.sum",),
        },
        {"WorkloadImbalance": "Workload Imbalance"},
    ),
    Section(
        "PmSampling",
        ("PM Sampling",),
        {
            "# Pass Groups": ("profiler__pmsampler_pass_groups",),
            "Dropped Samples": ("profiler__pmsampler_dropped_samples",),
            "Maximum Buffer Size": ("profiler__pmsampler_buffer_size_bytes",),
            "Maximum Sampling Interval": ("profiler__pmsampler_interval_cycles", "profiler__pmsampler_interval_time"),
        },
        {"PMSamplingData": "PM Sampling Data"},
    ),
    Section("PmSampling_WarpStates", ("PM Sampling: Warp States", "Warp States")),
    Section(
        "Tile",
        ("Tile Statistics",),
        {
            "Block Size (Chosen by Compiler)": ("launch__block_size",),
            "Launch Execution Model": _EXECUTION_MODEL,
            "#Thread Blocks Launched": ("launch__grid_size",),
            "#Tile Blocks Specified": ("launch__user_grid_size",),
            "Blocks as Clusters": ("launch__uses_blocks_as_clusters",),
        },
    ),
    Section(
        "Nvlink",
        ("NVLink",),
        {
            "Physical Links": ("nvlink__count_physical",),
            "Logical Links": ("nvlink__count_logical",),
            **{
                f"{way} {name}": (f"nvl{side}__bytes{kind}.sum",)
                for way, side in (("Received", "rx"), ("Transmitted", "tx"))
                for name, kind in (("Bytes", ""), ("Overhead Bytes", "_data_protocol"))
            },
        },
    ),
    Section("Nvlink_Tables", ("NVLink Tables",)),
    Section("Nvlink_Topology", ("NVLink Topology",)),
    Section("NumaAffinity", ("NUMA Affinity",)),
    Section("C2CLink", ("C2CLink",)),
)

BUSY: Mapping[str, str] = {"SM Busy": "sm__instruction_throughput.avg", "Issue Slots Busy": "sm__inst_issued.avg"}
"""Labels whose percentage is of active cycles before ncu 2025.4, and of elapsed cycles since then."""


def _by_label() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for section in SECTIONS:
        for label, metrics in section.labels.items():
            found[label] = tuple(dict.fromkeys((*found.get(label, ()), *metrics)))
    return found


LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType(_by_label())
"""Label of any section -> the metrics behind it; if there are several, the unit decides."""

SHOWN = frozenset(name for names in LABELS.values() for name in names)
"""Metrics that the tables of a details page may show."""

_FP = re.compile(r"(?P<peak>Theoretical )?Predicated-On (?P<op>[DF](?:ADD|MUL|FMA)) Thread Instructions Executed(?:.*)")
_FP_OPS = re.compile(r"(?P<peak>Theoretical )?Predicated-On (?P<op>[DF]FMA) Operations(?: Per Cycle)?")
_STALL = re.compile(r"Stall (?P<reason>[A-Z][A-Za-z ]*)")


STALL_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "dispatch": "dispatch_stall",
        "imc": "imc_miss",
        "lg": "lg_throttle",
        "long_sb": "long_scoreboard",
        "math": "math_pipe_throttle",
        "mio": "mio_throttle",
        "no_inst": "no_instruction",
        "short_sb": "short_scoreboard",
        "sleep": "sleeping",
        "tex": "tex_throttle",
    }
)
"""Column of the source page, behind `stall_`, where it is cut short -> the stall reason."""


def stall_of(label: str) -> str | None:
    """Return the stall reason that a row of the chart of warp states is about: `Stall Long Scoreboard`."""
    found = _STALL.fullmatch(label)
    return found["reason"].lower().replace(" ", "_") if found else None


def metrics_of(label: str) -> tuple[str, ...]:
    """Return the metrics behind a label, those of charts included: instructions by type, and stall reasons."""
    if found := _FP.fullmatch(label):
        base = f"sass_thread_inst_executed_op_{found['op'].lower()}_pred_on.sum"
        return (f"sm__{base}.peak_sustained",) if found["peak"] else (f"smsp__{base}.per_cycle_elapsed",)
    if found := _FP_OPS.fullmatch(label):
        unit = "sm" if found["peak"] else "smsp"
        return (f"derived__{unit}__sass_thread_inst_executed_op_{found['op'].lower()}_pred_on_x2",)
    if reason := stall_of(label):
        return (f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",)
    return LABELS.get(label, ())
