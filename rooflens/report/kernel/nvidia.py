"""NVIDIA's rules: whether they say the same as the verdict, and their messages as plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rooflens import format as fmt
from rooflens.model.records import Analysis, Nvidia, Rule, Verdict
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict.decide import NOT_MEASURED
from rooflens.model.verdict.nvidia_rules import BROKEN, agrees
from rooflens.report.document import (
    Bullets,
    Document,
    Folded,
    Heading,
    Item,
    OnPage,
    Paragraph,
    Span,
    paragraph,
    strong,
)
from rooflens.report.words.kernel import plain
from rooflens.report.words.labels import BOUND_LABELS

_SAYS: Mapping[str, str] = {
    "High Throughput": "a unit is above 80 % of its peak",
    "High Memory Throughput": "memory",
    "High Compute Throughput": "compute",
    "Balanced Throughput": "compute and memory are about equally busy",
    "Latency Issue": "latency",
    "Small Grid": "the grid is too small to fill the GPU",
}
"""NVIDIA's bottleneck -> what it says."""

_MARKUP = re.compile(r"@(?:url|section|source|sass):((?:(?!:https?://)[^@])*?)(?::https?://[^@]*)?@")
"""Links in rule texts: `@url:Text:https://...@`, `@section:Identifier:Text@`."""

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where the words of an identifier part: `CPIStall`."""

RULES_SHOWN = 3


def nvidia_document(analysis: Analysis) -> Document:
    """Say what NVIDIA's rules say, beside the verdict; a text has their titles and estimates, a page their messages."""
    ran = [rule for rule in analysis.kernel.rules if rule.message and not BROKEN.search(rule.message)]
    broken = sum(bool(BROKEN.search(rule.message)) for rule in analysis.kernel.rules)
    bottleneck, verdict, counters = analysis.nvidia.bottleneck, analysis.verdict, analysis.kernel.counters
    same = agrees(bottleneck, verdict, analysis.levels["l1"])
    headline = _headline(bottleneck, verdict, analysis.kernel.gpu, same=same) if bottleneck else ""
    sides = counters.get("sol_compute"), counters.get("sol_memory")
    note = _nvidia_note(analysis.nvidia, sides, are_ours="sol_pair_only" in analysis.flags)
    if not (headline or note or ran):
        return ()
    said = [*dict.fromkeys(_message(rule) for rule in sorted(ran, key=_promise, reverse=True))]
    rules = [f"{title}{estimate and f', {estimate}'}" for title, _, estimate in said]
    messages = tuple(
        Item((strong(plain(title)), estimate and f" {estimate}"), (Span(text, "literal"),))
        for title, text, estimate in said
    )
    more = f"; {len(rules) - RULES_SHOWN} more" if len(rules) > RULES_SHOWN else ""
    lacking = f"{fmt.count(broken, 'rule')} could not run: the report lacks the metrics they read."
    return (
        Heading("NVIDIA's rules"),
        *((paragraph(plain(headline), plain(note)),) if headline or note else ()),
        *((paragraph(plain(f"{'; '.join(rules[:RULES_SHOWN])}{more}.")),) if rules else ()),
        *((OnPage((Folded("What they say", (Bullets(messages),)),)),) if rules else ()),
        *((Paragraph((lacking,), "note"),) if broken else ()),
    )


def _headline(bottleneck: str, verdict: Verdict, gpu: str | None, *, same: bool | None) -> str:
    says = _SAYS.get(bottleneck, bottleneck)
    if same is None:
        return f"NVIDIA's rule says: {says}."
    if same:
        return f"NVIDIA's rule says the same: {says}."
    return f"NVIDIA's rule says: {says}. rooflens says: {_ours(verdict, gpu)}."


def _ours(verdict: Verdict, gpu: str | None) -> str:
    """Say the verdict with its reason, where NVIDIA's rule says another one."""
    label = BOUND_LABELS[verdict.shown_class]
    if verdict.bound == "unknown":
        return f"{label}, for {verdict.cause}" if verdict.cause else label
    if verdict.resource and verdict.bottleneck:
        why = verdict.cause or f"{fmt.percent(verdict.bottleneck.share)} busy"
        return f"{label} at {resource_label(verdict.resource, gpu)}, because that is {why}"
    if verdict.cause == NOT_MEASURED:
        return f"{label}, {NOT_MEASURED}"
    return f"{label}, because {verdict.cause}" if verdict.cause else label


def _nvidia_note(nvidia: Nvidia, sides: tuple[float | None, float | None], *, are_ours: bool) -> str:
    """Say the per cents that NVIDIA's rules state: of the peaks, and of the sides compute and memory."""
    floats = (("FP32", nvidia.fp32_pct_of_peak), ("FP64", nvidia.fp64_pct_of_peak))
    peaks = ", ".join(f"{fmt.given_percent(pct)} of the {name} peak" for name, pct in floats if pct is not None)
    compute, memory = sides
    pair = ""
    if compute is not None and memory is not None:
        pair = f"busiest unit of compute {fmt.percent(compute)}, of memory {fmt.percent(memory)}"
    shared = "rooflens used these too, so they confirm nothing" if pair and are_ours else ""
    text = "; ".join(part for part in (peaks, pair + (f" ({shared})" if shared else "")) if part)
    return f"NVIDIA's numbers: {text}." if text else ""


def _promise(rule: Rule) -> tuple[float, float]:
    """Return what a rule is sorted by: a speed-up of the kernel counts before one of a single unit."""
    return rule.speedup_pct or 0.0, rule.unit_speedup_pct or 0.0


def _message(rule: Rule) -> tuple[str, str, str]:
    """Write a rule's title, its text without links, and the part of the time that NVIDIA estimates would go."""
    title = rule.title or _WORDS.sub(" ", rule.identifier)
    text = " ".join(_MARKUP.sub(lambda match: match[1].rpartition(":")[2], rule.message).split())
    if rule.speedup_pct:
        return title, text, f"est. speed-up {fmt.percent(rule.speedup_pct / 100)}"
    local = rule.unit_speedup_pct
    return title, text, f"est. local speed-up {fmt.percent(local / 100)}" if local else ""
