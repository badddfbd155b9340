"""What speaks for a side of a kernel, memory or compute, where none of its own units was measured.

DRAM is at least as busy as the bytes that are known to cross it make it: a report of reads alone, or of the
sectors that L2 missed, gives a lower bound. NVIDIA's per cents name no unit, and instructions per cycle tell of issue
slots only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.counters.execution import SCHEDULERS_PER_SM
from rooflens.model.records import Bottleneck
from rooflens.model.roofline.datasheets import datasheet_of

if TYPE_CHECKING:
    from rooflens.model.records import Kernel

_MEMORY_PER_CENTS = (
    "sol_memory",
    "sol_memory_access_share",
    "sol_memory_request_share",
    "sol_sm_memory_share",
    "sol_l2_share",
    "sol_l1_share",
)
_COMPUTE_PER_CENTS = ("sol_compute", "sol_instructions_share")
_SPLIT_L2 = frozenset({"8.0", "9.0", "10.0", "10.3"})
"""Chips with two halves of L2: what one misses, the other may hold."""


def memory_stand_in(kernel: Kernel) -> Bottleneck | None:
    """Return the highest share known of the memory side: DRAM's lower bound, or NVIDIA's per cent without a unit."""
    dram = dram_at_least(kernel)
    per_cent = max((kernel.counters[name] for name in _MEMORY_PER_CENTS if name in kernel.counters), default=None)
    if dram is not None and (per_cent is None or dram >= per_cent):
        return Bottleneck("dram", dram)
    return None if per_cent is None else Bottleneck(None, per_cent)


def compute_stand_in(kernel: Kernel) -> Bottleneck | None:
    """Return the highest share known of the compute side: the issue slots', or NVIDIA's per cent without a unit."""
    per_cent = max((kernel.counters[name] for name in _COMPUTE_PER_CENTS if name in kernel.counters), default=None)
    issue = _issue_share(kernel)
    if issue is not None and (per_cent is None or issue >= per_cent):
        return Bottleneck("issue", issue)
    return None if per_cent is None else Bottleneck(None, per_cent)


def dram_at_least(kernel: Kernel) -> float | None:
    """Return a lower bound of DRAM's share of peak, 0 to 1; None where nothing tells."""
    counters = kernel.counters
    directions = [counters[name] for name in ("dram_read_share", "dram_write_share") if name in counters]
    parts = [sum(directions)] if directions else []
    moved, peak = _bytes_at_least(kernel), _peak_bytes_per_s(kernel)
    if moved is not None and peak and kernel.duration_ns:
        parts.append(moved / (peak * kernel.duration_ns / 1e9))
    return min(1.0, max(parts)) if parts else None


def _bytes_at_least(kernel: Kernel) -> float | None:
    counters = kernel.counters
    if "dram_bytes" in counters:
        return counters["dram_bytes"]
    directions = [counters[name] for name in ("dram_read_bytes", "dram_write_bytes") if name in counters]
    if directions:
        return sum(directions)
    return None if kernel.compute_capability in _SPLIT_L2 else counters.get("l2_read_miss_bytes")


def _peak_bytes_per_s(kernel: Kernel) -> float | None:
    """Return the highest peak that is known: a share of it is a lower bound whatever the clock was."""
    sheet = datasheet_of(kernel.gpu)
    known = [kernel.counters.get("dram_peak_bytes_per_s"), kernel.counters.get("device_dram_peak_bytes_per_s")]
    known.append(sheet.dram_bandwidth.value if sheet else None)
    return max((peak for peak in known if peak), default=None)


def _issue_share(kernel: Kernel) -> float | None:
    counters = kernel.counters
    per_sm = counters.get("executed_inst_per_cycle")
    known = [
        counters.get("executed_share"),
        counters.get("issue_active_per_cycle"),
        None if per_sm is None else per_sm / SCHEDULERS_PER_SM,
    ]
    return max((share for share in known if share is not None), default=None)
