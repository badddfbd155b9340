"""Flags: the traps that apply to a kernel; what each means is an item of knowledge."""

from __future__ import annotations

import math
import re

from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.failed import ALL_NAN
from rooflens.model.knowledge.items import find_item
from rooflens.model.records import Kernel, held_once
from rooflens.model.roofline.levels import fullest
from rooflens.model.roofline.occupancy import allowed_occupancy
from rooflens.model.roofline.roof import SCALAR_DTYPES, dram_clock_part
from rooflens.model.roofline.units import SHARES, is_of_active
from rooflens.model.verdict.facts import Facts


def changes_verdict(flag: str, busiest: str | None = None) -> bool:
    """Return whether a flag changes the verdict; unknown flags do not.

    Args:
        flag: Its key.
        busiest: The kernel's busiest unit: a flag about a unit's share counts only for the busiest.
    """
    known = find_item("flags", flag)
    return known is not None and known.changes_verdict and known.unit in {None, busiest}


_L2_LOOKUPS = "lts__t_sectors"
"""Source of L2 bytes that counts look-ups; what crossed between L1 and L2 is counted in both directions."""
_RETURNING_ATOMIC = re.compile(r"ATOMG?\b")
"""Opcodes of atomics on global memory that return a value; each touches a sector or more. RED returns none."""


def find_flags(facts: Facts) -> tuple[str, ...]:
    """Find all flags of a kernel, sorted, including those from counting its FLOPs."""
    kernel, levels, limits, work = facts.kernel, facts.levels, facts.limits, facts.flops.work
    counters, duration_ns, slowdown = kernel.counters, kernel.duration_ns, facts.outside.slowdown
    to_l2, to_dram = counters.get("l2_write_bytes"), counters.get("dram_write_bytes")
    delivered, replayed = counters.get("l1_shared_data_bytes"), counters.get("smem_conflict_bytes")
    unit = fullest(facts.shares)
    cycles, clock_hz, spread = counters.get("elapsed_cycles"), counters.get("sm_clock_hz"), 0.0
    if cycles and clock_hz and duration_ns:
        spread = abs(cycles / (duration_ns / 1e9) / clock_hz - 1)
    # Copies past L1's write-back are told by their opcodes, or by fills without any return.
    is_filled = counters.get("l1_from_l2_share", 0.0) > limits.trace_share and not counters.get("l1_writeback_bytes")
    copies_past_l1 = is_filled or bool(facts.does.copies)
    is_short = duration_ns is not None and duration_ns < limits.short_duration_ns
    is_fp32_known = facts.flops.complete and "fp32" not in facts.flops.uncounted
    is_known, is_scalar_known = not kernel.failed, any(item.dtype_key in SCALAR_DTYPES for item in work)
    has_shares = not facts.pipes.keys().isdisjoint(facts.shares)
    # What is known of L1 alone tells nothing of memory.
    shown = levels.keys() & facts.shares.keys()
    has_bytes = levels["dram"].amount_bytes is not None
    has_memory = bool(shown & {"dram", "l2"}) or "sol_memory" in counters
    has_compute = has_shares or "sol_compute" in counters
    holds = {
        "synthetic": kernel.synthetic,
        "occupancy_over_theoretical": counters.get("achieved_occupancy", 0.0)
        > (1 + limits.noise_share) * (allowed_occupancy(kernel) or math.inf),
        "all_counters_nan": kernel.failed and kernel.status_reason in {None, ALL_NAN},
        "not_analyzed": kernel.failed and kernel.status_reason not in {None, ALL_NAN},
        "partial_counters": kernel.status == "partial",
        "not_a_kernel": kernel.workload != "kernel",
        "dram_writes_stay_in_l2": to_l2
        and to_l2 >= limits.noise_bytes
        and to_dram is not None
        and to_dram < to_l2 * limits.trace_share,
        "dram_clock_low": dram_clock_part(kernel) < 1 - limits.little_share,
        "no_dram_counters": "dram_bytes" not in counters and levels["dram"].amount_bytes is not None,
        "l1_misses_async_copies": levels["l1"].amount_bytes is not None
        and "l1_tag_bytes" not in counters
        and copies_past_l1,
        "atomics_cross_twice": _atomic_part(kernel) > limits.noise_share,
        "smem_bytes_lower_bound": levels["smem"].accuracy == "lower",
        "smem_bytes_upper_bound": levels["smem"].accuracy == "upper",
        "smem_tensor_width_unknown": counters.get("smem_tensor_wavefronts"),
        "bank_conflicts": delivered and replayed is not None and replayed / delivered > limits.limiting_waste_share,
        "no_flop_counters": is_known and not is_scalar_known and (has_shares or has_bytes),
        "sol_pair_only": is_known
        and not is_scalar_known
        and not has_shares
        and not has_bytes
        and "sol_compute" in counters
        and "sol_memory" in counters,
        **{
            f"{dtype}_not_measured": is_known and is_scalar_known and dtype in facts.flops.uncounted
            for dtype in SCALAR_DTYPES
        },
        "one_side_only": is_known and (has_compute or has_memory or shown) and not (has_compute and has_memory),
        "no_flop": is_known and is_fp32_known and not any(item.ops for item in work if item.is_counted),
        "peak_from_datasheet": is_known and any(item.ops and item.peak_source == "datasheet" for item in work),
        "share_of_active_cycles": is_known
        and any(is_of_active(kernel, name) for name in SHARES.intersection(counters)),
        "slower_while_profiled": slowdown is not None and slowdown > limits.slowdown,
        "short_and_replayed": is_short and counters.get("passes", 0.0) > 1,
        "share_over_one": unit is not None and unit[1] > 1 + limits.noise_share,
        "clocks_moved": duration_ns is not None and not is_short and spread > limits.negligible_share,
    }
    return held_once(tuple(sorted({*facts.flops.flags, *(flag for flag, is_held in holds.items() if is_held)})))


def _atomic_part(kernel: Kernel) -> float:
    """Return a lower bound of L2 traffic that look-ups leave out, over those counted; 0 where all of it is counted."""
    total = kernel.counters.get("l2_bytes")
    if not total or not kernel.counter_sources.get("l2_bytes", "").startswith(_L2_LOOKUPS):
        return 0.0
    instructions = sum(count for opcode, count in kernel.warp_opcodes.items() if _RETURNING_ATOMIC.match(opcode))
    return kernel.counters.get("l2_atomic_bytes", instructions * SECTOR_BYTES) / total
