"""Facts made from a few given values, for the rules of findings, and checks of the numbers in their moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace
from support.kernels import make_kernel, placed

from rooflens import format as fmt
from rooflens.model.findings.find import find_findings
from rooflens.model.findings.rule import FindingDraft, weighed
from rooflens.model.records import LEVELS, Bottleneck, Evidence, Finding, Level, Pipe
from rooflens.model.roofline.levels import shares_of
from rooflens.model.verdict.facts import Facts, room_of
from rooflens.model.verdict.thresholds import default_thresholds


def make_facts(
    counters: Mapping[str, float] | None = None, shares: Mapping[str, float] | None = None, **changes: Any
) -> Facts:
    """Make the facts of a waiting kernel of 1 ms: `changes` change the facts, and `kernel` in them the kernel.

    The busiest unit's room follows from the shares.
    """
    shares = shares or {}
    top = max(shares.values(), default=0.0)
    levels = {name: Level(share=shares.get(name)) for name in LEVELS}
    pipes = {name: Pipe(None, "inst", "counter", share=share) for name, share in shares.items() if name not in LEVELS}
    waiting = placed(make_kernel(counters, **changes.pop("kernel", {})), levels, pipes)
    facts = replace(waiting, **{"bound": "latency", "top_share": top or None, **changes})
    return replace(
        facts,
        shares=shares_of(facts.levels, facts.pipes),
        room=room_of(facts.top_share, facts.bound, facts.limits.open_room),
    )


def found_by(rule: Callable[[Facts], FindingDraft | None], facts: Facts) -> FindingDraft | None:
    """Return what a rule finds, weighed as all findings are; None if it finds nothing."""
    found = rule(facts)
    return None if found is None else weighed(facts, found)


def at_limiter(resource: str, share: float) -> dict[str, Any]:
    """Return the changes that put a kernel at a limiter; from 80 % up it is at the roof."""
    bound = "memory" if resource in LEVELS else "compute"
    return {
        "bound": bound,
        "limiter": Bottleneck(resource, share),
        "at_roof": share >= default_thresholds().at_roof_share,
    }


def unsaid(evidence: Iterable[Evidence], text: str) -> list[Evidence]:
    """Return the evidence whose number is not in a text as `rooflens.format` writes it.

    A number that was counted together with one in the text, or is a part of its ratio, may be missing.
    """
    told, rest = [], []
    for one in evidence:
        (told if any(form in text for form in _forms(one)) else rest).append(one)
    return [one for one in rest if not any(one.source in other.source for other in told)]


def _forms(one: Evidence) -> tuple[str, ...]:
    if one.unit == "share":
        return (fmt.percent(one.value),)
    if one.unit == "%":
        return (fmt.given_percent(one.value),)
    if one.unit == "ns":
        return (fmt.duration(one.value),)
    numbers = fmt.si(one.value, one.unit), fmt.si_of(one.value, ""), fmt.significant(one.value), f"{one.value:,.0f} "
    return (*numbers, fmt.factor(one.value)) if one.unit == "x" else numbers


def findings_of(facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of a kernel."""
    return find_findings([facts])[0]
