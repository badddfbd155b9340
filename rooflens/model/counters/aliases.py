"""Other names of the quantities: what people, agents and other versions of ncu collect instead of the first name.

Each is the same quantity by definition, so its factor is that of its denominator. A warp's stalls are documented over
three: the cycles in which a warp is resident (`per_warp_active`), the instructions issued (`per_issue_active`), and the
warps launched (`warp_latency`); bare `warps_issue_stalled` are counts to be divided. Names that only bound a quantity,
as per cents of active cycles do of elapsed ones, are not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_PERCENT = 0.01
_OF_SECTOR = 32 * _PERCENT
"""Per cent of the 32 bytes of a sector, or of the 32 threads of a warp."""
_ROLLUPS = ("sum", "avg", "avg.per_cycle_active", "avg.per_cycle_elapsed")
"""Counts of one unit in the same roll-up divide to the ratio of the counts."""


class Alias(NamedTuple):
    """A stored metric that gives a quantity as well, times `scale`, over another one where `over` names it."""

    name: str
    scale: float = 1.0
    over: str = ""


def _counted(part: str, whole: str) -> tuple[Alias, ...]:
    """Divide two counts of the sub-partitions of an SM."""
    return tuple(Alias(f"smsp__{part}.{rollup}", over=f"smsp__{whole}.{rollup}") for rollup in _ROLLUPS)


_SECTORS = "smsp__sass_average_data_bytes_per_sector_mem_{}_op_{}.pct"
_REQUESTS = "l1tex__{}_pipe_lsu_mem_global_op_{}"

ALIASES: Mapping[str, tuple[Alias, ...]] = {
    "stall_{}_cycles": (
        Alias("smsp__average_warps_issue_stalled_{}_per_issue_active.pct", _PERCENT),
        *_counted("warps_issue_stalled_{}", "issue_active"),
        *_counted("warps_issue_stalled_{}", "inst_issued"),
    ),
    "stall_{}_share": (
        Alias("smsp__warp_issue_stalled_{}_per_warp_active.ratio"),
        *_counted("warps_issue_stalled_{}", "warps_active"),
        Alias("smsp__average_warp_latency_issue_stalled_{}.ratio", over="smsp__average_warp_latency.ratio"),
        Alias("smsp__average_warp_latency_issue_stalled_{}.pct", over="smsp__average_warp_latency.pct"),
    ),
    "warp_latency_cycles": (
        Alias("smsp__average_warps_active_per_issue_active.ratio"),
        *_counted("warps_active", "issue_active"),
        *_counted("warps_active", "inst_issued"),
    ),
    "issue_active_per_cycle": (
        Alias("smsp__inst_issued.avg.per_cycle_active"),
        Alias("smsp__issue_active.avg.pct_of_peak_sustained_active", _PERCENT),
        Alias("smsp__issue_active.sum.pct_of_peak_sustained_active", _PERCENT),
    ),
    "achieved_occupancy": (
        Alias("sm__warps_active.sum.pct_of_peak_sustained_active", _PERCENT),
        Alias("sm__warps_active.avg.per_cycle_active", over="device__attribute_max_warps_per_multiprocessor"),
    ),
    "sm_warps": (Alias("smsp__warps_active.avg.peak_sustained", 4.0),),
    "l1_hit_rate": (
        Alias("l1tex__t_sector_hit_rate.ratio"),
        Alias("l1tex__t_sectors_lookup_hit.sum", over="l1tex__t_sectors.sum"),
    ),
    "l2_hit_rate": (Alias("lts__t_sector_hit_rate.ratio"),),
    **{
        f"{space}_{side}_bytes_per_sector": (Alias(_SECTORS.format(space, op), _OF_SECTOR),)
        for space in ("global", "local")
        for side, op in (("load", "ld"), ("store", "st"))
    },
    **{
        f"global_{side}_sectors_per_request": (
            Alias(f"{_REQUESTS.format('t_sectors', op)}.sum", over=f"{_REQUESTS.format('t_requests', op)}.sum"),
        )
        for side, op in (("load", "ld"), ("store", "st"))
    },
    **{
        f"global_{side}_requests": (
            Alias(
                f"{_REQUESTS.format('t_sectors', op)}.sum",
                over=f"{_REQUESTS.format('average_t_sectors_per_request', op)}.ratio",
            ),
        )
        for side, op in (("load", "ld"), ("store", "st"))
    },
    **{
        f"{threads}_per_inst": (
            Alias(f"smsp__average_thread_inst_executed{on}_per_inst_executed.ratio"),
            Alias(f"smsp__average_thread_inst_executed{on}_per_inst_executed.pct", _OF_SECTOR),
            Alias(f"smsp__thread_inst_executed{on}_per_inst_executed.pct", _OF_SECTOR),
            Alias(f"smsp__thread_inst_executed{on}.sum", over="smsp__inst_executed.sum"),
        )
        for threads, on in (("threads", ""), ("threads_on", "_pred_on"))
    },
}
"""Quantity -> its other names, the most trusted first; `{}` is a reason to stall."""


def aliases_of(quantity: str) -> tuple[Alias, ...]:
    """Return the other names of a quantity."""
    reason = quantity.removeprefix("stall_").rpartition("_")[0] if quantity.startswith("stall_") else ""
    named = ALIASES.get(quantity.replace(reason, "{}") if reason else quantity, ())
    return tuple(Alias(name.format(reason), scale, over.format(reason)) for name, scale, over in named)
