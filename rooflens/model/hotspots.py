"""What is measured of one source line, instruction or function: the measures of `Hotspot`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.records import Grain, Hotspot, Inside, Kernel, Place, Wait, ratio

STALL = "stall_"
"""Prefix of the samples in which a warp waited for one reason: `stall_long_scoreboard`."""

READY = frozenset({"selected", "not_selected"})
"""Reasons of samples in which a warp did not wait: it issued, or another one did."""

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


MOST_PLACES = 3
"""Places in the code that a finding names."""


def hottest(
    hotspots: Iterable[Hotspot], measure: str, count: int = MOST_PLACES, by: Grain | None = None
) -> tuple[Hotspot, ...]:
    """Return the hot spots with most of a measure, most first: by default lines where there are any with it."""
    having = [hotspot for hotspot in hotspots if hotspot.measures.get(measure)]
    grain = by or ("line" if any(hotspot.by == "line" for hotspot in having) else "sass")
    ranked = sorted((h for h in having if h.by == grain), key=lambda h: -h.measures[measure])
    return tuple(ranked[:count])


def places(kernel: Kernel, measure: str, count: int = MOST_PLACES) -> tuple[Place, ...]:
    """Return the hot spots with most of a measure, each with its share of the kernel's total."""
    total = kernel.code_totals.get(measure)
    if not total:
        return ()
    return tuple(Place(h, h.measures[measure] / total) for h in hottest(kernel.hotspots, measure, count))


def leading_stall(hotspot: Hotspot) -> str | None:
    """Return the stall reason with most samples at a hot spot; None if samples have no reasons."""
    stalls = {name: samples for name, samples in hotspot.measures.items() if name.startswith(STALL) and samples}
    return max(stalls, key=lambda name: stalls[name]).removeprefix(STALL) if stalls else None


def leading_part(hotspot: Hotspot) -> float | None:
    """Return the share of a hot spot's samples with its leading stall reason, 0 to 1; None without samples."""
    reason = leading_stall(hotspot)
    return ratio(hotspot.measures.get(f"{STALL}{reason}"), hotspot.measures.get("samples")) if reason else None


MOST_WAITS = 5
"""Most instructions to name that the samples of one line wait for."""
_LEAST_WAIT = 0.01


class WaitFor(Struct, frozen=True):
    """What a part of the samples at a hot spot wait for.

    Attributes:
        share: Part of the hot spot's samples, 0 to 1.
    """

    wait: Wait
    share: float


def waits_for(inside: Inside | None, hotspot: Hotspot) -> Iterator[WaitFor]:
    """Yield what the warps at a line or instruction wait for, most first; nothing if nobody looked inside."""
    samples = hotspot.measures.get("samples")
    if inside is None or not inside.waits or hotspot.by == "function" or not samples:
        return
    if hotspot.by == "sass":
        here = list(inside.waits.get(hotspot.pc or 0, ()))
    else:
        here = [
            wait
            for pc in inside.pcs.get((hotspot.file or "", hotspot.line or 0), ())
            for wait in inside.waits.get(pc, ())
        ]
    for wait in by_producer(here)[:MOST_WAITS]:
        if wait.samples >= _LEAST_WAIT * samples:
            yield WaitFor(wait, min(1.0, wait.samples / samples))


def caller_of(inside: Inside | None, hotspot: Hotspot) -> tuple[str, int] | None:
    """Return file and line of the program that a line of a library was inlined at; None for others, or if unknown."""
    if inside is None or hotspot.file is None or hotspot.line is None:
        return None
    return inside.callers.get((hotspot.file, hotspot.line))


def loops_around(inside: Inside | None, hotspot: Hotspot) -> list[int]:
    """List the loops that a line or instruction stands in, by their numbers; empty if nobody looked inside."""
    if inside is None or hotspot.by == "function":
        return []
    pcs = (hotspot.pc,) if hotspot.by == "sass" else inside.pcs.get((hotspot.file or "", hotspot.line or 0), ())
    by_id = {loop.id: loop for loop in inside.loops}
    found: set[int] = set()
    for pc in pcs:
        row = by_id.get(inside.row_of.get(pc or 0, -1))
        while row is not None and row.id not in found:
            found |= {row.id} if row.kind == "loop" else set()
            row = None if row.parent is None else by_id.get(row.parent)
    return sorted(found)


def by_producer(waits: Iterable[Wait]) -> list[Wait]:
    """Sum waits for each instruction that is waited for and each reason, most samples first."""
    sums: dict[tuple[int, str], float] = defaultdict(float)
    named: dict[tuple[int, str], Wait] = {}
    for wait in waits:
        key = wait.pc, wait.reason
        sums[key] += wait.samples
        named.setdefault(key, wait)
    return [replace(named[key], samples=sums[key]) for key in sorted(sums, key=lambda key: (-sums[key], key))]


def producers(kernel: Kernel, reasons: Iterable[str], count: int = MOST_PLACES) -> tuple[Place, ...]:
    """Return the lines that most samples of some reasons wait for; instructions where lines are not known.

    Args:
        kernel: A kernel; nothing comes of one whose code was not read.
        reasons: Stall reasons.
        count: At most so many.

    Returns:
        Places, each with its part of the samples of these reasons.
    """
    wanted = set(reasons)
    total = sum(kernel.code_totals.get(f"{STALL}{reason}", 0.0) for reason in wanted)
    if kernel.inside is None or not total:
        return ()
    sums: dict[tuple[str | None, int | None, int], float] = defaultdict(float)
    first: dict[tuple[str | None, int | None, int], Wait] = {}
    for waits in kernel.inside.waits.values():
        for wait in waits:
            if wait.reason in wanted:
                key = (wait.file, wait.line, 0) if wait.line else (None, None, wait.pc)
                sums[key] += wait.samples
                if key not in first or wait.pc < first[key].pc:
                    first[key] = wait
    ranked = sorted(sums, key=lambda key: (-sums[key], first[key].pc))[:count]
    return tuple(Place(_spot(kernel.hotspots, first[key]), min(1.0, ratio(sums[key], total) or 0.0)) for key in ranked)


def _spot(hotspots: Iterable[Hotspot], wait: Wait) -> Hotspot:
    """Return the hot spot that an instruction is in, where there is one, else a bare one."""
    grain: Grain = "line" if wait.line else "sass"
    for spot in hotspots:
        if spot.by == grain and ((spot.file, spot.line) == (wait.file, wait.line) if wait.line else spot.pc == wait.pc):
            return spot
    return Hotspot(
        grain, wait.file, wait.line, pc=None if wait.line else wait.pc, sass=None if wait.line else wait.sass
    )
