"""The facts of a program rather than of a kernel: the share of its un-profiled time without a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from rooflens.format import cut_name, duration, percent, plain_name
from rooflens.model.records import AnalyzedReport
from rooflens.model.unprofiled import GapsAfter, Unprofiled

GAPS_NAMED = 3
NAME_WIDTH = 60


def program_lines(reports: Sequence[AnalyzedReport]) -> list[str]:
    """Say of each program how long no kernel ran, and after which kernels; nothing where nobody looked."""
    told = [(report, words) for report in reports if report.unprofiled and (words := _words(report.unprofiled))]
    if len(reports) == 1:
        return [f"{words[0].upper()}{words[1:]}" for _, words in told]
    return [f"{PurePath(report.run.source).name}: {words}" for report, words in told]


def _words(program: Unprofiled) -> str:
    if program.gap_share is None:
        return ""
    gaps = f"for {duration(program.gap_ns)} of {duration(program.wall_ns)} ({percent(program.gap_share)})"
    after = [_after(one) for one in program.gaps_after[:GAPS_NAMED]]
    longest = f"; the longest gaps come after {', '.join(after)}" if after else ""
    return f"without the profiler no kernel ran {gaps}{longest}"


def _after(gaps: GapsAfter) -> str:
    name = cut_name(plain_name(gaps.name), NAME_WIDTH) if gaps.name else "copies or whole graphs"
    return f"{name} ({duration(gaps.gap_ns)})"
