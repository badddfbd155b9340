"""Comparisons of made kernels for the tests of their page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from support import samples
from support.pairs import compare

from rooflens.model.compare.compare import Side
from rooflens.model.compare.gate import Gate, Gated
from rooflens.model.compare.ladder import Ladder
from rooflens.model.records import Analysis
from rooflens.writing.answers import of_comparison

EVEN = (1.0, 1.004, 0.997, 1.002, 0.999)
"""Times of five recordings, as parts of the first."""

GEMM = 1
"""Position of the kernel on the tensor cores among `samples.every_verdict()`."""


def timed(analysis: Analysis, factor: float) -> Analysis:
    """Make the same work take `factor` times as long: amounts stay, rates and shares fall."""
    duration_ns = (analysis.kernel.duration_ns or 0.0) * factor
    counters = {**analysis.kernel.counters, "duration_ns": duration_ns} if duration_ns else analysis.kernel.counters
    levels = {
        name: replace(level, share=level.share / factor) if level.share else level
        for name, level in analysis.levels.items()
    }
    return replace(
        analysis,
        kernel=replace(analysis.kernel, counters=counters),
        levels=levels,
        flop_per_s=analysis.flop_per_s / factor if analysis.flop_per_s else analysis.flop_per_s,
    )


def fewer_bytes(analysis: Analysis, factor: float) -> Analysis:
    """Make the same work move `factor` times the bytes at DRAM."""
    level = analysis.levels["dram"]
    moved = replace(
        level,
        amount_bytes=(level.amount_bytes or 0.0) * factor,
        intensity_flop_per_byte=(level.intensity_flop_per_byte or 0.0) / factor,
    )
    return replace(analysis, levels={**analysis.levels, "dram": moved})


def renamed(analysis: Analysis, name: str) -> Analysis:
    """Give a kernel another name."""
    return replace(analysis, kernel=replace(analysis.kernel, name=name, function_name=name.partition("<")[0]))


def on_gpu(analysis: Analysis, gpu: str, clock_hz: float | None = None) -> Analysis:
    """Let a kernel run on another GPU, or at another clock."""
    counters = analysis.kernel.counters
    counters = {**counters, "sm_clock_hz": clock_hz} if clock_hz else counters
    return replace(analysis, kernel=replace(analysis.kernel, gpu=gpu, counters=counters))


def side(analyses: Sequence[Analysis], times: Sequence[float] = EVEN, label: str = "side", **run: object) -> Side:
    """Make a side with one recording for each factor of time."""
    return Side(label, tuple(samples.report([timed(a, factor) for a in analyses], **run) for factor in times))


def compared(
    base: Sequence[Analysis], head: Sequence[Analysis], times: Sequence[float] = EVEN, program: str = "layer"
) -> Ladder:
    """Compare two lists of kernels, recorded once per factor of time."""
    return compare(side(base, times, "base/"), side(head, times, "head/"), program=program)


def layer() -> Ladder:
    """Make a comparison with every possible outcome of a kernel: faster, slower, same, renamed, fused."""
    softmax, gemm, gather, fill, stencil, mystery = (
        renamed(a, a.kernel.name.partition("(")[0]) for a in samples.every_verdict()
    )
    head = [
        timed(fewer_bytes(softmax, 1.6), 1.6),
        timed(gemm, 0.7),
        renamed(gather, "julia_gather_4788"),
        renamed(timed(stencil, 1.1), "fused_fill_stencil"),
        mystery,
    ]
    return compared([softmax, gemm, renamed(gather, "julia_gather_4711"), fill, stencil, mystery], head)


def page_of(many: Sequence[Ladder], gated: Gated | None = None) -> str:
    """Write the page of comparisons."""
    return of_comparison(many, gated=gated).text("html")


def judged_page(many: Sequence[Ladder], gate: Gate) -> str:
    """Write the page of comparisons judged by a gate."""
    return page_of(many, gate.judge(many))


def block(html: str, name: str) -> Any:
    """Read one JSON block of a page."""
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.DOTALL)
    assert found is not None, name
    return json.loads(found[1])
