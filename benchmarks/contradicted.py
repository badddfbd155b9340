"""Count moves contradicted by a kernel's own counters: `contradicted.py REPORT...` lists them, and fails on any.

A move is contradicted if what it would fix was counted and is absent. A missing counter contradicts nothing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rooflens.analyzing import analyze_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflens.model.records import Analysis, Kernel, Move

SHOWN = 3
"""Moves that a reader gets to."""
_USED = 0.9
"""Accesses that use so much of their sectors are coalesced."""
_NONE = 0.01
_FULL_OCCUPANCY = 0.9
_WHOLE_WARPS = 31.5
_WIDEST_SECTORS = 14.0
"""Accesses of 16 bytes a thread touch 16 sectors."""
_WAVES_ENOUGH = 8.0
_BARRIER_WAITS = 0.02
_EVEN = 1.02


def _part(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _unused_sectors(kernel: Kernel) -> float | None:
    """Return the largest share of sectors that no access requested, over the sides that were counted."""
    totals, counters = kernel.code_totals, kernel.counters
    parts = [_part(totals.get(f"{side}_excess_sectors"), totals.get(f"{side}_sectors")) for side in ("load", "store")]
    if (ideal := _part(counters.get("global_ideal_sectors"), counters.get("global_touched_sectors"))) is not None:
        parts.append(1 - ideal)
    filled = (counters.get(f"global_{side}_bytes_per_sector") for side in ("load", "store"))
    parts += [1 - used / 32 for used in filled if used]
    known = [part for part in parts if part is not None]
    return max(known) if known else None


def _conflicts(kernel: Kernel) -> float | None:
    totals, counters = kernel.code_totals, kernel.counters
    parts = [_part(totals.get("shared_excess_wavefronts"), totals.get("shared_wavefronts"))]
    if (ideal := _part(counters.get("smem_ideal_wavefronts"), counters.get("smem_access_wavefronts"))) is not None:
        parts.append(1 - ideal)
    for side in ("load", "store"):
        counted = counters.get(f"smem_{side}_conflict_wavefronts"), counters.get(f"smem_{side}_wavefronts")
        parts.append(_part(*counted))
    known = [part for part in parts if part is not None]
    return max(known) if known else None


def _stalls(kernel: Kernel, reason: str) -> float | None:
    cycles = _part(kernel.counters.get(f"stall_{reason}_cycles"), kernel.counters.get("warp_latency_cycles"))
    return kernel.stalls.get(reason, cycles if cycles is not None else None)


def _executes(kernel: Kernel, *names: str) -> bool | None:
    if not kernel.warp_opcodes:
        return None
    return any(count and opcode.partition(".")[0] in names for opcode, count in kernel.warp_opcodes.items())


def _below(value: float | None, least: float) -> bool:
    return value is not None and value < least


def _at_least(value: float | None, least: float) -> bool:
    return value is not None and value >= least


def _has_no_local(kernel: Kernel) -> bool:
    names = ("local_load_sectors", "local_store_sectors", "local_load_inst", "local_store_inst", "spill_requests")
    known = [kernel.counters[name] for name in names if name in kernel.counters]
    known += [kernel.code_totals[name] for name in ("local_sectors",) if name in kernel.code_totals]
    return bool(known) and not any(known) and _executes(kernel, "LDL", "STL") is not True


def _tiles(kernel: Kernel) -> bool:
    """Return whether it loads from its own shared memory between barriers."""
    held = [kernel.counters.get(f"smem_{part}_per_block_bytes") or 0.0 for part in ("static", "dynamic")]
    return any(held) and _executes(kernel, "LDS", "LDSM") is True and _executes(kernel, "BAR") is True


def _is_even(kernel: Kernel) -> bool:
    parts = [
        _part(kernel.counters.get(f"{unit}_cycles_active_max"), kernel.counters.get(f"{unit}_cycles_active_avg"))
        for unit in ("sm", "smsp", "l2", "dram")
    ]
    known = [part for part in parts if part is not None]
    return bool(known) and max(known) < _EVEN


AGAINST: Mapping[str, tuple[str, Callable[[Analysis], bool]]] = {
    "coalesce": ("accesses use 90 % of their sectors", lambda one: _below(_unused_sectors(one.kernel), 1 - _USED)),
    "pad": (
        "no bank conflicts, and even slices",
        lambda one: _below(_conflicts(one.kernel), _NONE) and _is_even(one.kernel),
    ),
    "occupancy": (
        "90 % of the warp slots are filled",
        lambda one: _at_least(one.kernel.counters.get("achieved_occupancy"), _FULL_OCCUPANCY),
    ),
    "spill": ("no local memory", lambda one: _has_no_local(one.kernel)),
    "divergence": (
        "whole warps",
        lambda one: _at_least(
            one.kernel.counters.get("threads_on_per_inst", one.kernel.counters.get("threads_per_inst")), _WHOLE_WARPS
        ),
    ),
    "atomics": ("no atomics", lambda one: one.kernel.counters.get("atomic_inst") == 0.0),
    "barrier": (
        "no waits at barriers",
        lambda one: (
            _below(_stalls(one.kernel, "barrier"), _BARRIER_WAITS) and not _below(_stalls(one.kernel, "membar"), 0)
        ),
    ),
    "blocks": ("many waves", lambda one: _at_least(one.kernel.counters.get("waves"), _WAVES_ENOUGH)),
    "elements": ("less than a wave", lambda one: _below(one.kernel.counters.get("waves"), 1.0)),
    "tile": ("it tiles already", lambda one: _tiles(one.kernel) and one.verdict.resource not in {"dram", "l2"}),
    "wide": (
        "loads of 16 bytes",
        lambda one: (
            _at_least(one.kernel.counters.get("global_load_sectors_per_request"), _WIDEST_SECTORS)
            and _below(_unused_sectors(one.kernel), 1 - _USED)
        ),
    ),
    "tensor": (
        "tensor cores at work",
        lambda one: _executes(one.kernel, "HMMA", "IMMA", "BMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA", "QMMA") is True,
    ),
    "shuffle": ("it shuffles", lambda one: _executes(one.kernel, "SHFL") is True),
    "balance": (
        "even SMs in many waves",
        lambda one: _is_even(one.kernel) and _at_least(one.kernel.counters.get("waves"), _WAVES_ENOUGH),
    ),
    "cache": ("L1 serves nearly all", lambda one: _at_least(one.kernel.counters.get("l1_hit_rate"), _USED)),
}
"""Kind of a move -> what speaks against it, in words, and whether it does so in a kernel."""


def contradicted(analysis: Analysis, shown: int = SHOWN) -> list[tuple[Move, str]]:
    """Return the first moves of a kernel that its counters contradict, each with the counters."""
    found = []
    for move in analysis.verdict.moves[:shown]:
        words, is_against = AGAINST.get(move.kind, ("", lambda _: False))
        if is_against(analysis):
            found.append((move, words))
    return found


def main(paths: Iterable[str]) -> int:
    """Print every contradicted move of some reports, and how many kernels have one."""
    kernels, offenders = 0, []
    for report in analyze_paths(list(paths)).reports:
        for one in report.analyses:
            kernels += 1
            offenders += [
                f"{one.kernel.source}#{one.kernel.index}: {move.kind}: {move.text} ({said})"
                for move, said in contradicted(one)
            ]
    print(*offenders, sep="\n")
    print(f"{len(offenders)} moves of {kernels} kernels are contradicted by the kernel's own counters")
    return bool(offenders)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
