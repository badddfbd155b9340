"""Kernels made from only the given counters, and what the model makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from rooflens.model.analyze import analysis_of
from rooflens.model.findings.find import find_findings
from rooflens.model.findings.stalls import stall_shares
from rooflens.model.records import LEVELS, Analysis, Kernel, Level, Pipe, Verdict
from rooflens.model.roofline.flops import PipeWork, count_flops
from rooflens.model.roofline.levels import place_levels, shares_of
from rooflens.model.roofline.pipes import place_pipes
from rooflens.model.verdict.decide import decide
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.library import library_of
from rooflens.model.verdict.thresholds import default_thresholds


def make_kernel(counters: Mapping[str, float] | None = None, **overrides: Any) -> Kernel:
    """Make a kernel of 1 ms on a chip without a known name: every other counter is missing, never 0.

    A counter given as None is removed, `duration_ns` too.
    """
    values = {"duration_ns": 1e6, **(counters or {})}
    identity = {"digest": "0" * 64, "source": "made.ncu-rep", "index": 0, "name": "k<4>", "function_name": "k"}
    known = {name: value for name, value in values.items() if value is not None}
    return Kernel(**{**identity, "status": "ok", **overrides, "counters": known})


def make_case(
    shares: Mapping[str, float],
    counters: Mapping[str, float] | None = None,
    flags: tuple[str, ...] = (),
    **overrides: Any,
) -> Facts:
    """Make the facts of a kernel from its shares of levels and pipes; `overrides` change the facts."""
    kernel = overrides.pop("kernel", None) or make_kernel(counters)
    levels = {name: Level(share=shares.get(name)) for name in LEVELS}
    pipes = {
        name: Pipe(amount=None, unit="FLOP", source="opcode", share=share)
        for name, share in shares.items()
        if name not in LEVELS
    }
    return replace(placed(kernel, levels, pipes), flags=flags, **overrides)


def place(kernel: Kernel) -> Facts:
    """Place a kernel at its levels and pipes as the model does, without flags."""
    return placed(kernel, place_levels(kernel), place_pipes(kernel, count_flops(kernel)))


def placed(kernel: Kernel, levels: Mapping[str, Level], pipes: Mapping[str, Pipe]) -> Facts:
    """Make the facts of a kernel of which only its place is known."""
    library = library_of(kernel.name, kernel.function_name)
    shares = shares_of(levels, pipes)
    return Facts(kernel, levels, pipes, shares, stall_shares(kernel), default_thresholds(), library=library)


def judge(facts: Facts) -> Analysis:
    """Judge a kernel, with its findings, as the model does."""
    decided = decide(facts)
    return analysis_of(decided, find_findings([decided])[0])


def reach(facts: Facts) -> Verdict:
    """Return the verdict of a kernel, with its findings, as the model does."""
    return judge(facts).verdict


def work_by_key(kernel: Kernel) -> dict[str, PipeWork]:
    """Count a kernel's operations, by pipe."""
    return {work.key: work for work in count_flops(kernel).work}
