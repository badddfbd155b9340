"""The details page shows labels, not metric names: map the labels of every ncu version to metrics.

The pairs come from the section definitions that reports carry. A label that versions used for two metrics of one unit
is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from rooflens.ingest.exports.units import Dimension, dimension_of

_PCT_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_PCT_ACTIVE = ".avg.pct_of_peak_sustained_active"

_LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # GPU Speed Of Light (Throughput), by the names of all versions
        "Compute (SM) Throughput": (f"sm__throughput{_PCT_ELAPSED}",),
        "Compute (SM) [%]": (f"sm__throughput{_PCT_ELAPSED}",),
        "SOL SM": (f"sm__throughput{_PCT_ELAPSED}",),
        "SM [%]": (f"sm__throughput{_PCT_ELAPSED}",),
        "Memory Throughput": (f"gpu__compute_memory_throughput{_PCT_ELAPSED}", "dram__bytes.sum.per_second"),
        "Memory [%]": (f"gpu__compute_memory_throughput{_PCT_ELAPSED}",),
        "SOL Memory": (f"gpu__compute_memory_throughput{_PCT_ELAPSED}",),
        "DRAM Throughput": (f"gpu__dram_throughput{_PCT_ELAPSED}",),
        "SOL DRAM": (f"gpu__dram_throughput{_PCT_ELAPSED}",),
        "SOL FB": (f"gpu__dram_throughput{_PCT_ELAPSED}",),
        "L2 Cache Throughput": (f"lts__throughput{_PCT_ELAPSED}",),
        "SOL L2 Cache": (f"lts__throughput{_PCT_ELAPSED}",),
        "SOL L2": (f"lts__throughput{_PCT_ELAPSED}",),
        "L1/TEX Cache Throughput": (f"l1tex__throughput{_PCT_ACTIVE}",),
        "SOL L1/TEX Cache": (f"l1tex__throughput{_PCT_ACTIVE}",),
        "SOL TEX": (f"l1tex__throughput{_PCT_ACTIVE}",),
        "Duration": ("gpu__time_duration.sum",),
        "Elapsed Cycles": ("gpc__cycles_elapsed.max",),
        "SM Active Cycles": ("sm__cycles_active.avg",),
        "SM Frequency": ("gpc__cycles_elapsed.avg.per_second",),
        "DRAM Frequency": ("dram__cycles_elapsed.avg.per_second",),
        "Memory Frequency": ("dram__cycles_elapsed.avg.per_second",),
        # GPU Speed Of Light Roofline Chart
        "DRAM Bandwidth": ("dram__bytes.sum.per_second",),
        "Theoretical DRAM Bytes Accessible": ("dram__bytes.sum.peak_sustained",),
        "L1/TEX Cache Frequency": ("l1tex__cycles_elapsed.avg.per_second",),
        "L2 Cache Frequency": ("lts__cycles_elapsed.avg.per_second",),
        # Compute Workload Analysis
        "Executed Ipc Elapsed": ("sm__inst_executed.avg.per_cycle_elapsed",),
        "Executed Ipc Active": ("sm__inst_executed.avg.per_cycle_active",),
        "Issued Ipc Active": ("sm__inst_issued.avg.per_cycle_active",),
        # Memory Workload Analysis
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
        "Local Memory Spilling Requests": (
            "sass__inst_executed_register_spilling_mem_local",
            "derived__local_spilling_requests",
        ),
        "Shared Memory Spilling Requests": (
            "sass__inst_executed_register_spilling_mem_shared",
            "derived__shared_spilling_requests",
        ),
        "Local Memory Spilling Request Overhead": ("derived__local_spilling_requests_pct",),
        "Shared Memory Spilling Request Overhead": ("derived__shared_spilling_requests_pct",),
        # Scheduler Statistics, Warp State Statistics
        "Active Warps Per Scheduler": ("smsp__warps_active.avg.per_cycle_active",),
        "Eligible Warps Per Scheduler": ("smsp__warps_eligible.avg.per_cycle_active",),
        "Issued Warp Per Scheduler": ("smsp__issue_active.avg.per_cycle_active",),
        "No Eligible": (f"smsp__issue_inst0{_PCT_ACTIVE}",),
        "One or More Eligible": (f"smsp__issue_active{_PCT_ACTIVE}",),
        "GPU Maximum Warps Per Scheduler": ("smsp__warps_active.avg.peak_sustained",),
        "Theoretical Warps Per Scheduler": ("smsp__maximum_warps_avg_per_active_cycle",),
        "Warp Cycles Per Issued Instruction": ("smsp__average_warp_latency_per_inst_issued.ratio",),
        "Warp Cycles Per Executed Instruction": ("smsp__average_warps_active_per_inst_executed.ratio",),
        "Avg. Active Threads Per Warp": ("smsp__thread_inst_executed_per_inst_executed.ratio",),
        "Avg. Not Predicated Off Threads Per Warp": ("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",),
        # Instruction Statistics, Source Counters
        "Executed Instructions": ("smsp__inst_executed.sum",),
        "Issued Instructions": ("smsp__inst_issued.sum",),
        "Avg. Executed Instructions Per Scheduler": ("smsp__inst_executed.avg",),
        "Avg. Issued Instructions Per Scheduler": ("smsp__inst_issued.avg",),
        "Branch Instructions": ("smsp__inst_executed_op_branch.sum",),
        "Branch Instructions Ratio": ("derived__smsp__inst_executed_op_branch_pct",),
        "Divergent Branches": ("smsp__branch_targets_threads_divergent",),
        "Branch Efficiency": ("smsp__sass_average_branch_targets_threads_uniform.pct",),
        "Avg. Divergent Branches": ("smsp__sass_branch_targets_threads_divergent.avg",),
        # Launch Statistics
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
        "Launch Execution Model": ("launch__execution_model",),
        "Stack Size": ("launch__stack_size",),
        "Uses Green Context": ("launch__uses_green_context",),
        "Cluster Size": ("launch__cluster_size",),
        "Preferred Cluster Size": ("launch__preferred_cluster_size",),
        "Cluster Scheduling Policy": ("launch__cluster_scheduling_policy",),
        # Occupancy
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
        # GPU and Memory Workload Distribution
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
        # NVLink
        "Physical Links": ("nvlink__count_physical",),
        "Logical Links": ("nvlink__count_logical",),
        **{
            f"{way} {name}": (f"nvl{side}__bytes{kind}.sum",)
            for way, side in (("Received", "rx"), ("Transmitted", "tx"))
            for name, kind in (("Bytes", ""), ("Overhead Bytes", "_data_protocol"))
        },
        # PM Sampling
        "# Pass Groups": ("profiler__pmsampler_pass_groups",),
        "Dropped Samples": ("profiler__pmsampler_dropped_samples",),
        "Maximum Buffer Size": ("profiler__pmsampler_buffer_size_bytes",),
        "Maximum Sampling Interval": ("profiler__pmsampler_interval_cycles", "profiler__pmsampler_interval_time"),
    }
)
"""Label -> the metrics that NVIDIA's sections give it; if there are several, the unit decides."""

SHOWN = frozenset(name for names in _LABELS.values() for name in names)
"""Metrics that the tables of a details page may show."""

BUSY: Mapping[str, str] = {"SM Busy": "sm__instruction_throughput.avg", "Issue Slots Busy": "sm__inst_issued.avg"}
"""Labels whose percentage is of active cycles before ncu 2025.4, and of elapsed cycles since then."""

_FP = re.compile(r"(?P<peak>Theoretical )?Predicated-On (?P<op>[DF](?:ADD|MUL|FMA)) Thread Instructions Executed(?:.*)")
_FP_OPS = re.compile(r"(?P<peak>Theoretical )?Predicated-On (?P<op>[DF]FMA) Operations(?: Per Cycle)?")
_STALL = re.compile(r"Stall (?P<reason>[A-Z][A-Za-z ]*)")
_METRIC = re.compile(r"[a-z][\w.:]*_[\w.:]*")
_LONGEST = 300
_RATES = frozenset({"pct", "time", "byte/s", "hz"})


def metric_of(label: str, unit: str) -> str | None:
    """Return the metric of a details row; None if the label is unknown, or unknown in this unit.

    Rows printed for `--metrics` carry the metric's own name.
    """
    if len(label) > _LONGEST:
        return None
    if "__" in label or _METRIC.fullmatch(label):
        return label
    candidates = _LABELS.get(label) or _by_rule(label)
    measured = dimension_of(unit)
    return next((name for name in candidates if _fits(name, measured)), None)


def _by_rule(label: str) -> tuple[str, ...]:
    """Name the metrics behind the labels of charts: instructions by type, and stall reasons."""
    if found := _FP.fullmatch(label):
        base = f"sass_thread_inst_executed_op_{found['op'].lower()}_pred_on.sum"
        return (f"sm__{base}.peak_sustained",) if found["peak"] else (f"smsp__{base}.per_cycle_elapsed",)
    if found := _FP_OPS.fullmatch(label):
        unit = "sm" if found["peak"] else "smsp"
        return (f"derived__{unit}__sass_thread_inst_executed_op_{found['op'].lower()}_pred_on_x2",)
    if found := _STALL.fullmatch(label):
        reason = found["reason"].lower().replace(" ", "_")
        return (f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",)
    return ()


def _fits(metric: str, measured: Dimension | None) -> bool:
    """Return whether ncu could print a metric in a unit of this dimension."""
    expected = _dimension(metric)
    if expected is None:
        return measured not in _RATES
    return measured == expected or (measured is None and expected == "cycle")


def _dimension(metric: str) -> Dimension | None:
    """Return what a metric of the table measures; None if its name does not tell."""
    if metric.startswith("gpu__time") or metric.endswith("_time"):
        return "time"
    if "pct" in metric.rpartition(".")[2] or metric.endswith("_pct"):
        return "pct"
    if "register_spilling" in metric:
        return "byte"  # as the instruction statistics print it
    if metric.endswith(".per_second"):
        return "byte/s" if "__bytes" in metric else "hz"
    return "cycle" if "__cycles_" in metric or metric.endswith("_cycles") else None
