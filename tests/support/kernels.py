"""Kernels made of the counters a test names and of nothing else, and what the model makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.model.findings.find import find_findings
from rooflens.model.findings.rule import Facts
from rooflens.model.records import LEVELS, Kernel, Level, Pipe
from rooflens.model.roofline.flops import count_flops
from rooflens.model.roofline.levels import place_levels
from rooflens.model.roofline.pipes import place_pipes
from rooflens.model.verdict.bottleneck import Case
from rooflens.model.verdict.decide import decide, write_verdict
from rooflens.model.verdict.distances import find_distances
from rooflens.model.verdict.thresholds import default_thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.records import Verdict
    from rooflens.model.roofline.flops import Work


def make_kernel(counters: Mapping[str, float] | None = None, **overrides: Any) -> Kernel:
    """Make a kernel of 1 ms on a chip of no known name: every other counter is missing, never 0.

    A counter given as None is taken away again, `duration_ns` too.
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
) -> Case:
    """Make the case of a kernel from the share of every level and pipe that matters; `overrides` change the case."""
    kernel = overrides.pop("kernel", None) or make_kernel(counters)
    levels = {name: Level(share=shares.get(name)) for name in LEVELS}
    pipes = {
        name: Pipe(amount=None, unit="FLOP", source="opcode", share=share)
        for name, share in shares.items()
        if name not in LEVELS
    }
    return Case(**{**_case(kernel, levels, pipes, flags), **overrides})


def place(kernel: Kernel) -> Case:
    """Place a kernel at its levels and pipes as the model does, without flags."""
    return Case(**_case(kernel, place_levels(kernel), place_pipes(kernel, count_flops(kernel)), ()))


def reach(case: Case) -> Verdict:
    """Reach the verdict of a case, with its findings, as the model does."""
    decision = decide(case)
    distances = find_distances(case, decision.bound, decision.top_share, None)
    facts = Facts(
        kernel=case.kernel,
        levels=case.levels,
        pipes=case.pipes,
        flags=case.flags,
        bound=decision.bound,
        wall=decision.wall,
        at_roof=decision.at_roof,
        distances=distances,
        limits=case.limits,
        in_program=case.in_program,
        full_for_a_while=decision.full_for_a_while,
    )
    return write_verdict(case, decision, distances, find_findings([facts])[0])


def work_by_key(kernel: Kernel) -> dict[str, Work]:
    """Count a kernel's operations, by pipe."""
    return {work.key: work for work in count_flops(kernel).work}


def _case(
    kernel: Kernel, levels: Mapping[str, Level], pipes: Mapping[str, Pipe], flags: tuple[str, ...]
) -> dict[str, Any]:
    return {"kernel": kernel, "levels": levels, "pipes": pipes, "flags": flags, "limits": default_thresholds()}
