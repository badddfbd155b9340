"""NVIDIA's rules on a card: whether they say the same as the verdict, and their messages as plain text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens import format as fmt
from rooflens.model.verdict.nvidia_rules import agrees
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.labels import BOUND_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.launches import Launch
    from rooflens.model.records import Analysis, Rule

MESSAGE_WIDTH = 400
"""Characters of a rule's message at most; what is left out is said."""

_SAYS: Mapping[str, str] = {
    "High Throughput": "a unit is above 80 % of its peak",
    "High Memory Throughput": "memory",
    "High Compute Throughput": "compute",
    "Balanced Throughput": "compute and memory alike",
    "Latency Issue": "latency",
    "Small Grid": "the grid is too small to fill the GPU",
}
"""NVIDIA's bottleneck -> what it says."""

_MARKUP = re.compile(r"@(?:url|section|source|sass):((?:(?!:https?://)[^@])*?)(?::https?://[^@]*)?@")
"""Links in rule texts: `@url:Text:https://...@`, `@section:Identifier:Text@`."""
_BROKEN = re.compile(r"returned an error:|^Traceback|\.py:\d+|could not be found", re.MULTILINE)
"""Rules that say only that they could not run: the report lacks what they read."""
_SENTENCE_END = re.compile(r"(?<=[.:)])\s")


@dataclass(frozen=True, slots=True)
class Message:
    """One rule's message.

    Attributes:
        cut: True where its end is left out.
    """

    title: str
    text: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Opinion:
    """What NVIDIA's rules say of a kernel.

    Attributes:
        headline: Agreement or disagreement with the verdict; empty where the report holds no bottleneck rule.
        note: The per cents that the rules state, and how far the comparison goes.
        messages: The rules' texts.
        broken: How many rules could not run on this report.
    """

    headline: str
    note: str
    messages: tuple[Message, ...]
    broken: int


def opinion(launch: Launch) -> Opinion | None:
    """Set NVIDIA's rules beside the verdict; None where the report holds none."""
    analysis = launch.analysis
    ran = [rule for rule in analysis.kernel.rules if rule.message and not _BROKEN.search(rule.message)]
    broken = sum(bool(_BROKEN.search(rule.message)) for rule in analysis.kernel.rules)
    headline, note = _headline(launch), _note(analysis)
    if not (headline or note or ran):
        return None
    messages = dict.fromkeys(_message(rule) for rule in ran)
    return Opinion(headline, note, tuple(messages), broken)


def _headline(launch: Launch) -> str:
    bottleneck, verdict = launch.analysis.nvidia.bottleneck, launch.analysis.verdict
    if not bottleneck:
        return ""
    says = _SAYS.get(bottleneck, bottleneck)
    same = agrees(bottleneck, verdict, launch.analysis.levels)
    if same is None:
        return f"NVIDIA's rule says: {says}."
    if same:
        return f"NVIDIA's rule says the same: {says}."
    return f"NVIDIA's rule says: {says}. rooflens says: {_ours(launch)}."


def _ours(launch: Launch) -> str:
    """Say the verdict with its reason, where NVIDIA's rule says another one."""
    verdict = launch.analysis.verdict
    label = BOUND_LABELS[verdict.bound]
    if verdict.bound == "unknown":
        return f"{label}, for {verdict.cause}" if verdict.cause else label
    if verdict.resource and verdict.bottleneck:
        why = verdict.cause or f"{fmt.percent(verdict.bottleneck.share)} busy"
        return f"{label} at {resource_label(verdict.resource, launch.gpu)}, because that is {why}"
    return f"{label}, because {verdict.cause}" if verdict.cause else label


def _note(analysis: Analysis) -> str:
    nvidia, counters = analysis.nvidia, analysis.kernel.counters
    floats = (("FP32", nvidia.fp32_pct_of_peak), ("FP64", nvidia.fp64_pct_of_peak))
    peaks = ", ".join(f"{fmt.given_percent(pct)} of the {name} peak" for name, pct in floats if pct is not None)
    compute, memory = counters.get("sol_compute"), counters.get("sol_memory")
    pair = ""
    if compute is not None and memory is not None:
        pair = f"busiest unit of compute {fmt.percent(compute)}, of memory {fmt.percent(memory)}"
    shared = "read by both sides here, so no second opinion" if pair and "sol_pair_only" in analysis.flags else ""
    text = "; ".join(part for part in (peaks, pair + (f" ({shared})" if shared else "")) if part)
    return f"NVIDIA's numbers: {text}." if text else ""


def _message(rule: Rule) -> Message:
    text = plain_message(rule.message)
    short = cut_sentences(text, MESSAGE_WIDTH)
    return Message(rule.title or _words(rule.identifier), short, cut=short != text)


def plain_message(message: str) -> str:
    """Write a rule's message without its links and line breaks."""
    return " ".join(_MARKUP.sub(lambda match: match[1].rpartition(":")[2], message).split())


def cut_sentences(text: str, width: int) -> str:
    """Keep as many whole sentences as fit, and a part of the first where that is too long itself."""
    if len(text) <= width:
        return text
    ends = [match.start() for match in _SENTENCE_END.finditer(text) if width // 2 <= match.start() <= width]
    return text[: ends[-1]] if ends else text[: text.rfind(" ", 0, width)]


def _words(identifier: str) -> str:
    """Turn `CPIStall` into `CPI Stall`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", identifier)
