"""Facts about a program rather than a kernel, and the time of a kernel in it, without the profiler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from rooflens.format import count, cut_name, duration, factor, percent, plain_name, si
from rooflens.model.records import Analysis, AnalyzedReport, ratio
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.unprofiled import GapsAfter, InProgram, Unprofiled

GAPS_NAMED = 3
NAME_WIDTH = 60
_ALL = 0.995
_LOWER_CLOCK = 0.95
"""A clock below this part of the boost clock explains a part of the time."""


def program_lines(reports: Sequence[AnalyzedReport], *, named: bool) -> list[str]:
    """Say for each program how long no kernel ran, and after which kernels; nothing if it was not traced.

    Args:
        reports: Reports whose program was not run without the profiler are left out.
        named: Name the report.
    """
    told = [
        (PurePath(report.run.source).name, words)
        for report in reports
        if report.unprofiled and (words := _unprofiled_words(report.unprofiled, _held(report)))
    ]
    return [f"{name}: {words}" if named else f"{words[0].upper()}{words[1:]}" for name, words in told]


def _held(report: AnalyzedReport) -> float | None:
    """Return the share of the program's kernel time that the report's kernels have; None if unknown."""
    shares = [one.in_program.share for one in report.analyses if one.in_program and not one.kernel.failed]
    known = [share for share in shares if share is not None]
    return sum(known) if known else None


def _unprofiled_words(program: Unprofiled, held: float | None) -> str:
    if program.gap_share is None:
        return ""
    overlap = f"; two or more ran at once for {duration(program.overlap_ns)}" if program.overlap_ns else ""
    wall = duration(program.wall_ns)
    part = f"; the report's kernels take {percent(held)} of the kernel time" if held and held < _ALL else ""
    if not program.gap_ns:
        return f"without the profiler the GPU was busy for all of {wall}{overlap}{part}"
    gaps = f"for {duration(program.gap_ns)} of {wall} ({percent(program.gap_share)})"
    after = [_after(one) for one in program.gaps_after[:GAPS_NAMED]]
    longest = f"; the longest gaps come after {', '.join(after)}" if after else ""
    return f"without the profiler no kernel ran {gaps}{longest}{overlap}{part}"


def _after(gaps: GapsAfter) -> str:
    name = cut_name(plain_name(gaps.name), NAME_WIDTH) if gaps.name else "copies or whole graphs"
    return f"{name} ({duration(gaps.gap_ns)})"


def place_of(nvtx_range: str | None, in_program: InProgram | None) -> str:
    """Return where in its program a kernel is launched: its NVTX ranges, and the module of the timeline.

    As a path from the outermost in, `train/step/Linear_3`; empty if neither is known.

    Args:
        nvtx_range: What the profiler says.
        in_program: What the timeline says.
    """
    opened = nvtx_range or (in_program.nvtx_range if in_program else None)
    return "/".join(filter(None, (opened, in_program.module if in_program else None)))


def in_program_lines(analysis: Analysis) -> tuple[str, ...]:
    """Give a kernel's time in its program, why that differs from its profile, and what launched it."""
    found = analysis.in_program
    if found is None:
        return ("the timeline has no launch of it",) if analysis.launches == 0 else ()
    spread = ""
    if found.low_ns is not None and found.high_ns is not None and found.high_ns > found.low_ns:
        spread = f", 80 % of them {duration(found.low_ns)} to {duration(found.high_ns)}"
    share = f", {percent(found.share)} of the program's kernel time" if found.share is not None else ""
    gap = f"; the GPU is idle for {duration(found.gap_ns)} around one" if found.gap_ns else ""
    lines = [
        f"without the profiler: {count(found.launches, 'launch')}{share}, median {duration(found.time_ns)}{spread}{gap}"
    ]
    if (time_ns := analysis.kernel.duration_ns) is not None:
        against = ratio(time_ns, found.time_ns)
        lines.append(
            f"under ncu {duration(time_ns)}" + (f", {factor(against)} that{_clocks(analysis)}" if against else "")
        )
    places = (("in range", found.nvtx_range), ("by module", found.module), ("by", found.operator), ("from", found.code))
    if origin := [f"{word} {cut_name(place, NAME_WIDTH)}" for word, place in places if place]:
        lines.append(f"launched {', '.join(origin)}")
    return tuple(lines)


def _clocks(analysis: Analysis) -> str:
    """Say how far ncu's clock is below the boost clock at which the kernel runs otherwise."""
    datasheet, clock_hz = datasheet_of(analysis.kernel.gpu), analysis.kernel.counters.get("sm_clock_hz")
    if datasheet is None or clock_hz is None or clock_hz > _LOWER_CLOCK * datasheet.boost_clock.value:
        return ""
    boost = si(datasheet.boost_clock.value, "Hz")
    return f": its SM clock was {si(clock_hz, 'Hz')} there, and the GPU boosts to {boost}"
