"""Rows of the table of counters: how evenly units work, what warps wait for, and what an SM can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rooflens.model.counters.chips import (
    EVERY_CHIP,
    GA100,
    GH100,
    ORIN,
    OWN_DRAM,
    SPARK,
    TCGEN05,
    TU10X,
    TU11X,
    VOLTA,
)
from rooflens.model.counters.metric import Ask
from rooflens.model.counters.recipes import Counter, exact

UNITS: tuple[tuple[str, str, str], ...] = (
    ("sm", "sm", "SM"),
    ("smsp", "smsp", "SM sub-partition"),
    ("l1", "l1tex", "L1 cache"),
    ("l2", "lts", "L2 slice"),
    ("dram", "dram", "DRAM channel"),
)
"""Key, unit in metric names, and display name of units that a chip has several of."""

STALLS: Mapping[str, str] = {
    "long_scoreboard": "waits for global memory",
    "lg_throttle": "load/store queue full",
    "tex_throttle": "texture queue full",
    "short_scoreboard": "waits for shared memory or special functions",
    "mio_throttle": "queue to shared memory and special functions full",
    "barrier": "waits at barriers",
    "membar": "waits at memory fences",
    "gmma": "waits to issue warpgroup matrix instructions",
    "warpgroup_arrive": "waits for the warpgroup",
    "wait": "waits on a fixed-latency dependency",
    "math_pipe_throttle": "waits for a math pipe",
    "dispatch_stall": "waits for the dispatcher",
    "branch_resolving": "waits for branches to resolve",
    "no_instruction": "waits for instructions to arrive",
    "no_instructions": "waits for instructions to arrive",
    "imc_miss": "waits for constants",
    "drain": "waits for writes to drain at exit",
    "sleeping": "sleeps",
    "misc": "waits for other reasons",
    "not_selected": "ready, not selected",
}
"""Stall reason -> what the warp does, or what stops it."""

SAMPLED_AS: Mapping[str, str] = {"no_instruction": "no_instructions"}
"""Reasons that the warp sampler spells otherwise than the counters."""

SAMPLED_ONLY = frozenset({"warpgroup_arrive", *SAMPLED_AS.values()})
"""Reasons that have no counter."""
_KNOWN = frozenset({"sm_cycles_active_avg", "sm_cycles_active_max"})


_LATE: Mapping[str, frozenset[str]] = {"l2": VOLTA | TU10X | TU11X | GA100 | ORIN | SPARK}
"""Units whose cycles with work cost a pass on some chips."""
_LATE_LATENCY = GH100 | TCGEN05


def _unit_rows(key: str, unit: str, name: str) -> tuple[Counter, ...]:
    elapsed = (Ask("standard", chips=OWN_DRAM if key == "dram" else EVERY_CHIP),)
    active = tuple(replace(ask, later=_LATE.get(key, frozenset())) for ask in elapsed)
    rows = (
        ("cycles_active_avg", f"cycles with work, mean over the {name}s", f"{unit}__cycles_active.avg", active),
        ("cycles_active_max", f"cycles with work, busiest {name}", f"{unit}__cycles_active.max", active),
        ("cycles_elapsed_avg", f"elapsed cycles, mean over the {name}s", f"{unit}__cycles_elapsed.avg", elapsed),
    )
    named = ((f"{key}_{what}", meaning, stored, asked) for what, meaning, stored, asked in rows)
    return tuple(exact(row, meaning, stored, asked=asked) for row, meaning, stored, asked in named if row not in _KNOWN)


BALANCE: tuple[Counter, ...] = tuple(row for unit in UNITS for row in _unit_rows(*unit))

WAITS: tuple[Counter, ...] = (
    exact(
        "warp_latency_cycles",
        "cycles between two instructions of a warp",
        "smsp__average_warp_latency_per_inst_issued.ratio",
        asked=(Ask("standard", later=_LATE_LATENCY),),
    ),
    *(
        exact(
            f"stall_{reason}_cycles",
            f"cycles between two instructions of a warp: {what}",
            f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",
        )
        for reason, what in STALLS.items()
        if reason not in SAMPLED_ONLY
    ),
    *(
        exact(
            f"stall_{reason}_share",
            f"part of the time of a warp: {what}",
            f"smsp__warp_issue_stalled_{reason}_per_warp_active.pct",
            scale=0.01,
        )
        for reason, what in STALLS.items()
        if reason not in SAMPLED_ONLY
    ),
    exact(
        "issued_samples",
        "warp samples in which the warp issued",
        "smsp__pcsamp_warps_issue_stalled_selected",
        "warpsampling:smsp__pcsamp_warps_issue_stalled_selected",
    ),
)

CAPACITY: tuple[Counter, ...] = (
    exact("sm_registers", "registers of an SM", "device__attribute_max_registers_per_multiprocessor"),
    exact("sm_warps", "warps an SM can hold", "device__attribute_max_warps_per_multiprocessor"),
    exact(
        "fp64_slower_factor",
        "how many times slower fp64 is than fp32, as the driver says",
        "device__attribute_single_to_double_precision_perf_ratio",
    ),
    exact(
        "sm_smem_bytes",
        "most shared memory an SM can reserve",
        "device__attribute_max_shared_memory_per_multiprocessor",
    ),
    exact("smem_config_bytes", "shared memory that an SM set aside", "launch__shared_mem_config_size"),
    exact(
        "smem_driver_bytes",
        "part of a block's shared memory that is the driver's",
        "launch__shared_mem_per_block_driver",
    ),
)


def wait_words(largest: str, shares: Mapping[str, float], title: str) -> str:
    """Name the largest counted wait; say so if others may be larger.

    Args:
        largest: Its reason.
        shares: Each reason that was counted, with its part of the time of a warp.
        title: What the wait is called.
    """
    is_sure = len(shares) >= len(STALLS) // 2 or 1 - sum(shares.values()) <= shares[largest]
    return title if is_sure else f"{title}, of the waits counted"


_WAITS = {form: {f"stall_{why}_{form}": why for why in STALLS} for form in ("share", "cycles")}
"""Form of a count of waits -> its counters, each with its reason."""


def longest_wait(stalls: Mapping[str, float], counters: Mapping[str, float]) -> str | None:
    """Name the longest wait that was sampled or counted; None if none was.

    Cycles for each issued instruction compare the waits, though their part of a warp's time may not be known.

    Args:
        stalls: Part of the samples by stall reason.
        counters: The kernel's.
    """
    sampled = {why: share for why, share in stalls.items() if why in STALLS}
    read = {
        form: {why: counters[name] for name, why in names.items() if name in counters} for form, names in _WAITS.items()
    }
    for form, counted in (("share", sampled), *read.items()):
        waits = [why for why in counted if why != "not_selected"]
        if waits:
            longest = max(waits, key=counted.__getitem__)
            shares = counted if form == "share" else dict.fromkeys(counted, 0.0)
            return wait_words(longest, shares, STALLS[longest])
    return None
