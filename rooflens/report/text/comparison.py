"""A comparison as JSON: every program with all its sides and kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rooflens.model.compare.compare import Change, Comparison, Side, Spread, Timing
from rooflens.model.compare.findings import FindingChange, FindingChanges, changed_findings
from rooflens.model.compare.gate import Compared, Gated, Judged
from rooflens.model.compare.ladder import NO_SIDES, Ladder, Point, Rung, Series, Sides
from rooflens.model.compare.lines import SlowerLine, slower_lines
from rooflens.model.compare.sentences import change_sentence
from rooflens.model.records import Analysis
from rooflens.model.summary import first_move
from rooflens.report.data import json_text
from rooflens.report.ladder import step_words

SCHEMA_VERSION = 1


def to_json(compared: Sequence[Compared], gated: Gated | None = None, sides: Sides = NO_SIDES) -> str:
    """Write every program with all its sides and kernels: SI base units, null where nothing was measured."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "sides": [_rung(ladder, rung) for ladder in sides.ladders for rung in ladder.rungs],
        "steps": [step for ladder in sides.ladders for step in _steps(ladder)],
        "across": [_across(ladder) for ladder in sides.climbed],
        "programs": [_program(program) for program in compared],
        "unpaired": [{"where": one.where, "programs": list(one.programs)} for one in sides.unpaired],
        "gate": _gate(gated) if gated else None,
    }
    return json_text(document)


def _rung(ladder: Ladder, rung: Rung) -> dict[str, Any]:
    """Write one side of a program, in the order of the ladder: its time is that of one launch of `kernel`."""
    analysis = rung.analysis
    verdict = analysis.verdict if analysis else None
    return {
        "program": ladder.program,
        **_side(rung.side),
        "kernel": analysis.kernel.name if analysis and ladder.followed else None,
        "gpu": analysis.kernel.gpu if analysis else None,
        "launches": rung.launches,
        "time_ns": _spread(rung.time),
        "faster_than_first": rung.to_first.factor if rung.to_first else None,
        "fastest": rung.is_fastest,
        "not_compared": rung.apart or None,
        "bound": verdict.bound if verdict else None,
        "or_bound": list(verdict.or_bound) if verdict else None,
        "resource": verdict.resource if verdict else None,
        "share": verdict.bottleneck.share if verdict and verdict.bottleneck else None,
        "limit": verdict.limit.factor if verdict else None,
        "limit_proven": verdict.limit.proven if verdict else None,
        "move": first_move(analysis) if analysis and rung.is_fastest else None,
    }


def _steps(ladder: Ladder) -> Iterator[dict[str, Any]]:
    """Write what became of a program from one side to the next."""
    for rung in ladder.rungs:
        if rung.previous is not None:
            yield {
                "program": ladder.program,
                "from": ladder.rungs[rung.previous].label,
                "to": rung.label,
                "time": _timing(rung.to_previous, ladder.threshold) if rung.to_previous else None,
                "kernel": rung.changed_kernel or (ladder.followed.name if ladder.followed else None),
                "changed": [{"topic": cause.topic, "words": cause.words} for cause in rung.changed],
                "sentence": step_words(ladder.rungs, rung, ladder.threshold),
            }


def _across(ladder: Ladder) -> dict[str, Any]:
    return {
        "program": ladder.program,
        "sides": list(ladder.labels),
        "total_ns": [_spread(total) for total in ladder.totals],
        "kernels": [_over_sides(series, len(ladder.rungs)) for series in ladder.series],
    }


def _over_sides(series: Series, sides: int) -> dict[str, Any]:
    points = series.within(sides)
    factor = series.factor if points[0] and points[-1] else None
    return {"name": series.points[0].analysis.kernel.name, "factor": factor, "sides": [_cell(one) for one in points]}


def _cell(point: Point | None) -> dict[str, Any] | None:
    """Write one kernel on one side; null where the side lacks it."""
    if point is None:
        return None
    verdict = point.analysis.verdict
    return {
        "name": point.analysis.kernel.name,
        "launches": point.launches,
        "time_ns": _spread(point.spread),
        "mean_launch_ns": point.spread.per(point.launches).median_ns,
        "bound": verdict.bound,
        "or_bound": list(verdict.or_bound),
        "resource": verdict.resource,
        "gain": verdict.gain.factor if verdict.gain else None,
        "limit": verdict.limit.factor,
        "limit_proven": verdict.limit.proven,
    }


def _gate(gated: Gated) -> dict[str, Any]:
    """Write what the gate found: words for people, and each time that it judged."""
    gate = gated.gate
    return {
        "fail_on": gate.fail_on,
        "floor_ns": gate.floor_ns,
        "per_kernel": gate.per_kernel,
        "outcome": gated.word,
        "failed": gated.failed,
        "failures": gated.failures,
        "let_through": gated.let_through,
        "unjudged": gated.unjudged,
        "judged": [_judged(one) for one in gated.judged],
    }


def _judged(one: Judged) -> dict[str, Any]:
    return {
        "program": one.program,
        "kernel": one.change.name if one.change else None,
        "failed": one.failed,
        "outcome": one.outcome,
        "change": one.timing.change,
        "lost_ns": one.timing.lost_ns if one.timing.change is not None else None,
        "fail_on": one.fail_on,
        "floor_ns": one.floor_ns,
        "reason": one.reason or None,
    }


def _program(program: Compared) -> dict[str, Any]:
    comparison = program.comparison
    return {
        "program": program.program,
        "base": _side(comparison.base),
        "head": _side(comparison.head),
        "threshold": comparison.threshold,
        "warnings": list(program.warnings),
        "total": _timing(comparison.total, comparison.threshold),
        "kernels": [_change(change, comparison) for change in comparison.changes],
    }


def _side(side: Side) -> dict[str, Any]:
    return {"label": side.label, "recordings": len(side.recordings), "sources": [run.source for run in side.runs]}


def _timing(timing: Timing, threshold: float) -> dict[str, Any]:
    return {
        "base_ns": _spread(timing.base),
        "head_ns": _spread(timing.head),
        "factor": timing.factor,
        "change": timing.change,
        "outcome": timing.outcome(threshold),
        "threshold": timing.limit(threshold),
    }


def _spread(spread: Spread) -> dict[str, Any]:
    return {
        "median": spread.median_ns,
        "low": spread.low_ns,
        "high": spread.high_ns,
        "samples": len(spread.times_ns),
    }


def _change(change: Change, comparison: Comparison) -> dict[str, Any]:
    return {
        "matched": change.how,
        "launches": {"base": change.launches[0], "head": change.launches[1]},
        "time": _timing(change.timing, comparison.threshold),
        "mean_launch": _timing(change.mean_launch, comparison.threshold),
        "base": _kernel(change.base),
        "head": _kernel(change.head),
        "findings": _findings(changed_findings(change)),
        "slower_lines": [_slower_line(line) for line in slower_lines(change)],
        "sentence": change_sentence(change, comparison),
    }


def _slower_line(line: SlowerLine) -> dict[str, Any]:
    """Write a source line that takes more of its kernel's time than it did, with its part of what the kernel lost."""
    return {
        "file": line.hotspot.file,
        "line": line.hotspot.line,
        "before_ns": line.before_ns,
        "after_ns": line.after_ns,
        "share": line.share,
        "matched_by_text": line.by_text,
    }


def _findings(found: FindingChanges | None) -> dict[str, Any] | None:
    """Write what became of the findings; null for a kernel that one side lacks."""
    if found is None:
        return None
    return {
        **{what: [_finding(one) for one in found.changes if one.what == what] for what in ("gone", "changed", "new")},
        "untold": list(found.untold),
        "limit": found.limit.factor,
        "limit_proven": found.limit.proven,
        "speedup_reached": found.reached,
    }


def _finding(change: FindingChange) -> dict[str, Any]:
    sides = {"base": change.before, "head": change.after}
    return {
        "id": change.finding.id,
        "title": change.finding.title,
        "severity": {side: finding.severity if finding else None for side, finding in sides.items()},
        "gain": {side: finding.gain.factor if finding and finding.gain else None for side, finding in sides.items()},
        "evidence": [
            {"name": number.name, "unit": number.unit, "base": number.before, "head": number.after}
            for number in change.numbers
        ],
    }


def _kernel(analysis: Analysis | None) -> dict[str, Any] | None:
    if analysis is None:
        return None
    kernel, verdict = analysis.kernel, analysis.verdict
    return {
        "name": kernel.name,
        "nvtx_range": kernel.nvtx_range,
        "gpu": kernel.gpu,
        "flop": analysis.flop_total,
        "bytes": {name: level.amount_bytes for name, level in analysis.levels.items()},
        "intensity": {name: level.intensity_flop_per_byte for name, level in analysis.levels.items()},
        "share": {name: level.share for name, level in analysis.levels.items()},
        "bound": verdict.bound,
        "or_bound": list(verdict.or_bound),
        "resource": verdict.resource,
        "at_roof": verdict.at_roof,
        "gain": verdict.gain.factor if verdict.gain else None,
        "limit": verdict.limit.factor,
        "limit_proven": verdict.limit.proven,
    }
