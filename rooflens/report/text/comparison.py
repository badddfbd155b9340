"""A comparison: what became of each program and kernel, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rooflens.format import (
    count,
    cut_name,
    duration,
    exact_duration,
    given_percent,
    plain_name,
)
from rooflens.model.compare.across import TWO, Across, AcrossRow, Cell, Sides
from rooflens.model.compare.compare import Change, Comparison, Side, Spread, Timing
from rooflens.model.compare.findings import FindingChange, FindingChanges, changed_findings, findings_sentence
from rooflens.model.compare.gate import Compared, Gated, Judged
from rooflens.model.compare.sentences import (
    change_sentence,
    limiter_sentence,
    spread_words,
    timing_words,
    total_sentence,
)
from rooflens.model.records import Analysis
from rooflens.report.data import json_text
from rooflens.report.document import (
    Block,
    Column,
    Document,
    Heading,
    Span,
    Table,
    Words,
    bullets,
    code,
    paragraph,
    rest_note,
    strong,
)
from rooflens.report.writers import markdown

SCHEMA_VERSION = 1

NAME_WIDTH = 48

KERNELS_SHOWN = 30
"""Kernels listed in Markdown and on the terminal, the biggest differences first; JSON holds all."""

_ENDED = {"failed": "failed", "holds": "holds", "not judged": "could not judge"}


def to_json(compared: Sequence[Compared], gated: Gated | None = None, sides: Sides = TWO) -> str:
    """Write every program with all its kernels: SI base units, null where nothing was measured."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "across": [_across(program) for program in sides.across],
        "programs": [_program(program) for program in compared],
        "unpaired": [{"where": one.where, "programs": list(one.programs)} for one in sides.unpaired],
        "gate": _gate(gated) if gated else None,
    }
    return json_text(document)


def _across(program: Across) -> dict[str, Any]:
    return {
        "program": program.program,
        "sides": list(program.labels),
        "total_ns": [_spread(total) for total in program.totals],
        "kernels": [
            {"name": row.name, "factor": row.factor, "sides": [_cell(cell) for cell in row.cells]}
            for row in program.rows
        ],
    }


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    """Write one kernel on one side; null where the side lacks it."""
    if cell is None:
        return None
    verdict = cell.analysis.verdict
    return {
        "name": cell.analysis.kernel.name,
        "launches": cell.launches,
        "time_ns": _spread(cell.spread),
        "mean_launch_ns": cell.mean_launch.median_ns,
        "bound": verdict.bound,
        "resource": verdict.resource,
        "gain": verdict.gain.factor if verdict.gain else None,
        "limit": verdict.limit.factor,
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
        "confirmed_by_recordings": gated.confirmed,
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
        "change_anew": one.anew.change if one.anew else None,
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
        "sentence": change_sentence(change, comparison),
    }


def _findings(found: FindingChanges | None) -> dict[str, Any] | None:
    """Write what became of the findings; null for a kernel that one side lacks."""
    if found is None:
        return None
    return {
        **{what: [_finding(one) for one in found.changes if one.what == what] for what in ("gone", "changed", "new")},
        "untold": list(found.untold),
        "limit": found.limit,
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
        "resource": verdict.resource,
        "at_roof": verdict.at_roof,
        "gain": verdict.gain.factor if verdict.gain else None,
        "limit": verdict.limit.factor,
    }


def comparison_document(compared: Sequence[Compared], gated: Gated | None = None, sides: Sides = TWO) -> Document:
    """Show each program over its sides, then pair by pair, and how the gate ended."""
    blocks = [block for program in sides.across for block in _across_blocks(program)]
    blocks += [block for one in compared for block in _blocks(one)]
    if sides.unpaired:
        blocks.append(bullets([one.words for one in sides.unpaired]))
    return (*blocks, *(gate_document(gated) if gated else ()))


def _across_blocks(program: Across) -> Iterator[Block]:
    """Show a program over more than two sides: a line for each kernel."""
    yield Heading((Span(program.program, "literal"), f": {len(program.labels)} sides"), 3)
    first, *labels, last = across_headings(program)
    times = (Column(label, right=True) for label in labels)
    columns = (Column(first, fit="name", most=NAME_WIDTH), *times, Column(last, fit="prose", least=24))
    whole, *kernels = across_lines(program)
    rows: list[tuple[Words, ...]] = [whole]
    for name, *cells in kernels:
        rows.append((code(name), *cells))
    yield Table(columns, tuple(rows))
    yield from rest_note(len(program.rows), KERNELS_SHOWN, " that take less time")


def across_headings(program: Across) -> tuple[str, ...]:
    """Name the columns of `across_lines`."""
    return ("kernel", *program.labels, "first to last", "limited by")


def across_lines(program: Across) -> Iterator[tuple[str, ...]]:
    """Yield the total, then each kernel shown: its time on each side, what became of it, and its limiters."""
    yield ("GPU time", *map(spread_words, program.totals), timing_words(program.total, program.threshold), "")
    for row in program.rows[:KERNELS_SHOWN]:
        yield (
            cut_name(plain_name(row.name), NAME_WIDTH),
            *(_took(row, cell) for cell in row.cells),
            timing_words(row.speed, program.threshold) if row.speed else "-",
            _limiters([cell.analysis for cell in row.cells if cell]),
        )


def _took(row: AcrossRow, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    mean = cell.mean_launch.median_ns
    return f"{cell.launches:,}x {duration(mean)}" if row.is_mean else spread_words(cell.spread)


def _limiters(analyses: Sequence[Analysis]) -> str:
    """Name the limiters from side to side, each where it is another than before."""
    return " -> ".join(limiter for limiter, _ in groupby(limiter_sentence(analysis) for analysis in analyses))


def _blocks(program: Compared) -> Iterator[Block]:
    """Show one program: the total, a line for each kernel with its story, and what to keep in mind."""
    comparison = program.comparison
    yield Heading((Span(program.program, "literal"), f": {total_sentence(comparison)}"), 3)
    yield paragraph(f"{spread_words(comparison.total.base)} -> {spread_words(comparison.total.head)}")
    columns = (
        Column("kernel", fit="name", most=NAME_WIDTH),
        Column("before", right=True),
        Column("after", right=True),
        Column("what became of it", fit="prose", least=48),
    )
    yield Table(columns, tuple(_lines(comparison)))
    yield from rest_note(len(comparison.changes), KERNELS_SHOWN, " with smaller differences")
    if program.warnings:
        yield bullets([*program.warnings])


def _lines(comparison: Comparison) -> Iterator[tuple[Words, ...]]:
    """Yield name and how it was matched, times before and after, and the story of each kernel shown."""
    for change in comparison.changes[:KERNELS_SHOWN]:
        how = "" if change.how == "same" else f" ({change.how})"
        told = findings_sentence(changed_findings(change))
        story = change_sentence(change, comparison) + (f". Findings: {told}" if told else "")
        yield (code(plain_name(change.name)), how), *_times(change), story


def _times(change: Change) -> tuple[str, str]:
    """Write its GPU time on both sides, and that of the mean launch where one side has more launches."""
    sides = ((change.base, change.timing.base), (change.head, change.timing.head))
    before, after = (spread_words(spread) if analysis else "-" for analysis, spread in sides)
    if not change.counts_differ:
        return before, after
    means = (change.mean_launch.base, change.mean_launch.head)
    first, last = (
        f"{launches:,}x {duration(mean.median_ns)}" for launches, mean in zip(change.launches, means, strict=True)
    )
    return f"{before}, {first}", f"{after}, {last}"


def to_markdown(compared: Sequence[Compared], gated: Gated | None = None, sides: Sides = TWO) -> str:
    """Write GitHub-flavoured Markdown for a pull request."""
    return markdown.to_markdown(comparison_document(compared, gated, sides))


def gate_document(gated: Gated) -> Document:
    """Say how the gate ended, what failed it, what it let through and what it could not judge."""
    gate = gated.gate
    floor = f" and {exact_duration(gate.floor_ns)}" if gate.floor_ns else ""
    limit = f"{given_percent(round(100 * gate.fail_on, 6))}{floor}"
    anew = f", confirmed by {count(gated.confirmed, 'new recording')} of the head" if gated.confirmed else ""
    ended = f": slower by more than {limit} and {gated.excess}{anew}"
    blocks: list[Block] = [paragraph((strong(f"The gate {_ENDED[gated.word]}"), ended))]
    for words, found in (("", gated.failures), ("Let through:", gated.let_through), ("Not judged:", gated.unjudged)):
        more = [f"and {len(found) - KERNELS_SHOWN} more"] if len(found) > KERNELS_SHOWN else []
        blocks += [paragraph(words)] if words and found else []
        blocks += [bullets([*found[:KERNELS_SHOWN], *more])] if found else []
    return tuple(blocks)
