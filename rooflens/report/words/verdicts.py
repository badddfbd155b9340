"""The verdict of a kernel in a cell: its class with its reason, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping

from rooflens.format import percent, significant
from rooflens.model.records import Analysis, Confidence
from rooflens.model.roofline.unit_names import bottleneck_words, resource_label
from rooflens.model.summary import KernelSummary
from rooflens.model.verdict_classes import ShownClass
from rooflens.report.words.findings import costing
from rooflens.report.words.verdict import unmeasured_words

_DOUBT: dict[Confidence, str] = {"high": "", "medium": " (medium)", "low": " (low)"}
MARKS = "class?: may be another; (medium), (low): confidence"


def is_marked(words: str) -> bool:
    """Return whether a verdict has a mark that `MARKS` explains."""
    return any(mark in words for mark in ("?", "(medium)", "(low)"))


def verdict_cell(kernel: KernelSummary) -> str:
    """Write the verdict of a kernel; where its launches have several, each with its part of the time."""
    return classes_words(kernel.class_ns) if len(kernel.class_ns) > 1 else verdict_words(kernel.analysis)


def classes_words(times_ns: Mapping[ShownClass, float]) -> str:
    """Divide a time by class, the most first: `memory 62 %, latency 38 %`."""
    total_ns = sum(times_ns.values())
    ordered = sorted(times_ns.items(), key=lambda item: -item[1])
    return ", ".join(f"{bound} {percent(ns / total_ns)}" for bound, ns in ordered)


def verdict_words(analysis: Analysis) -> str:
    """Write the class with its reason, what was not measured, and its confidence: `memory: L1 full`.

    An open one: `latency?: waits for global memory, memory was not measured (low)`.
    """
    verdict, gpu = analysis.verdict, analysis.kernel.gpu
    if verdict.bound in {"memory", "compute", "balanced"}:
        full = verdict.at_roof and verdict.resource is not None
        why = f"{resource_label(verdict.resource, gpu)} full" if full else bottleneck_words(verdict.bottleneck, gpu)
        why = why.removeprefix("instruction ")
    else:
        why = _waits_words(analysis) if verdict.bound == "latency" else verdict.cause or ""
    doubt = "" if verdict.bound == "unknown" else _DOUBT[verdict.confidence]
    why = ", ".join(filter(None, (why, unmeasured_words(verdict))))
    return f"{verdict.shown_class}: {why}{doubt}" if why else f"{verdict.shown_class}{doubt}"


def _waits_words(analysis: Analysis) -> str:
    """Say how few warps are ready per cycle and scheduler or, if that is not counted, why they wait."""
    ready_warps = analysis.kernel.counters.get("eligible_warps_per_cycle")
    if ready_warps is not None:
        return f"{significant(ready_warps, 2)} warps ready"
    return analysis.verdict.cause or next((finding.title for finding in costing(analysis)), "")
