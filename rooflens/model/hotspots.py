"""What is measured of one source line, instruction or function: the measures of `Hotspot`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rooflens.model.records import Grain, Hotspot, Kernel, Place

STALL = "stall_"
"""Prefix of the samples in which a warp waited for one reason: `stall_long_scoreboard`."""

MEASURES: Mapping[str, str] = {
    "samples": "samples of the program counter: where warps stand",
    "warp_inst": "warp instructions executed",
    "thread_inst": "thread instructions executed, those predicated off left out",
    "load_sectors": "L2 sectors that the addresses of global loads touch",
    "load_excess_sectors": "part of them beyond what the bytes would fill",
    "store_sectors": "L2 sectors that the addresses of global stores touch",
    "store_excess_sectors": "part of them beyond what the bytes would fill",
    "local_sectors": "L2 sectors that the addresses of local memory touch",
    "shared_wavefronts": "wavefronts that the addresses of shared-memory accesses need",
    "shared_excess_wavefronts": "part of them beyond what the bytes would fill",
    "fp16_constant_threads": "packed fp16 thread instructions that only load a constant",
}
"""Measure -> meaning; besides these, samples by stall reason under `STALL`."""


STORED_AS: Mapping[str, tuple[str, ...]] = {
    "samples": ("group:smsp__pcsamp_warp_stall_reasons",),
    "warp_inst": ("inst_executed",),
    "thread_inst": ("thread_inst_executed_true",),
    "load_sectors": ("memory_l2_theoretical_sectors_global", "memory_access_type"),
    "load_excess_sectors": ("memory_l2_theoretical_sectors_global_ideal",),
    "store_sectors": ("memory_l2_theoretical_sectors_global", "memory_access_type"),
    "store_excess_sectors": ("memory_l2_theoretical_sectors_global_ideal",),
    "local_sectors": ("memory_l2_theoretical_sectors_local",),
    "shared_wavefronts": ("memory_l1_wavefronts_shared",),
    "shared_excess_wavefronts": ("memory_l1_wavefronts_shared_ideal",),
    "fp16_constant_threads": ("thread_inst_executed_true",),
}
"""Measure -> the metrics, with one instance an instruction, that a collection asks for to know it."""


def hottest(hotspots: Iterable[Hotspot], measure: str, count: int = 3, by: Grain | None = None) -> tuple[Hotspot, ...]:
    """Return the hot spots with most of a measure, most first: by default lines where there are any with it."""
    having = [hotspot for hotspot in hotspots if hotspot.measures.get(measure)]
    grain = by or ("line" if any(hotspot.by == "line" for hotspot in having) else "sass")
    ranked = sorted((h for h in having if h.by == grain), key=lambda h: -h.measures[measure])
    return tuple(ranked[:count])


def places(kernel: Kernel, measure: str, count: int = 3) -> tuple[Place, ...]:
    """Return where a kernel has most of a measure, with the part of its total that is there."""
    total = kernel.code_totals.get(measure)
    if not total:
        return ()
    return tuple(Place(h, h.measures[measure] / total) for h in hottest(kernel.hotspots, measure, count))


def leading_stall(hotspot: Hotspot) -> str | None:
    """Name the reason for which warps wait there most; None if samples do not name reasons."""
    stalls = {name: samples for name, samples in hotspot.measures.items() if name.startswith(STALL) and samples}
    return max(stalls, key=lambda name: stalls[name]).removeprefix(STALL) if stalls else None
