"""A comparison as text: the table of the terminal, JSON, Markdown for a pull request, and JUnit XML for CI."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from rooflens.format import (
    count,
    cut_name,
    duration,
    exact_duration,
    given_percent,
    plain_name,
    printable,
    significant,
)
from rooflens.model.compare.across import TWO
from rooflens.model.compare.findings import changed_findings, findings_sentence
from rooflens.model.compare.gate import what
from rooflens.model.compare.sentences import (
    change_sentence,
    growth_words,
    spread_words,
    timing_words,
    total_sentence,
    wall_sentence,
)
from rooflens.report.data import json_text
from rooflens.report.text.markdown_parts import code_cell, prose, table
from rooflens.report.text.terminal import new_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from rooflens.model.compare.across import Across, AcrossRow, Cell, Sides
    from rooflens.model.compare.compare import Change, Comparison, Side, Spread, Timing
    from rooflens.model.compare.findings import FindingChange, FindingChanges
    from rooflens.model.compare.gate import Compared, Gated, Judged, What
    from rooflens.model.records import Analysis


SCHEMA_VERSION = 1

NAME_WIDTH = 48

KERNELS_SHOWN = 30
"""Kernels listed in Markdown and on the terminal, the biggest differences first; JSON holds all."""

_ENDED = {"failed": "failed", "holds": "holds", "not judged": "could not judge"}

_HEADINGS = ("kernel", "before", "after", "what became of it")
_TIMES = ("before", "after")


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
        "headroom": verdict.distances.headroom,
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
        "gone": [_finding(one) for one in found.changes if one.what == "gone"],
        "changed": [_finding(one) for one in found.changes if one.what == "changed"],
        "new": [_finding(one) for one in found.changes if one.what == "new"],
        "untold": list(found.untold),
        "speedup_promised": found.promised,
        "speedup_reached": found.reached,
    }


def _finding(change: FindingChange) -> dict[str, Any]:
    sides = {"base": change.before, "head": change.after}
    return {
        "id": change.finding.id,
        "title": change.finding.title,
        "severity": {side: finding.severity if finding else None for side, finding in sides.items()},
        "speedup_up_to": {side: finding.speedup_up_to if finding else None for side, finding in sides.items()},
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
        "headroom": verdict.distances.headroom,
    }


def print_across(console: Console, programs: Sequence[Across]) -> None:
    """Print a table of each program over more than two sides: a line for each kernel."""
    for program in programs:
        console.print(printable(program.program), style="bold", markup=False, highlight=False)
        headings = [printable(heading) for heading in across_headings(program)]
        lines = new_table(headings, right=headings[1:-1], overflow="fold")
        for cells in across_lines(program):
            lines.add_row(*map(printable, cells))
        console.print(lines, markup=False, highlight=False)
        if (left := len(program.rows) - KERNELS_SHOWN) > 0:
            console.print(f"and {left} more that take less time", style="dim")
        console.print()


def across_headings(program: Across) -> tuple[str, ...]:
    """Name the columns of `across_lines`."""
    return ("kernel", *program.labels, "first to last", "limited by")


def across_lines(program: Across) -> Iterator[tuple[str, ...]]:
    """Yield the total, then each kernel shown: its time on each side, what became of it, and its walls."""
    yield ("GPU time", *map(spread_words, program.totals), timing_words(program.total, program.threshold), "")
    for row in program.rows[:KERNELS_SHOWN]:
        yield (
            cut_name(plain_name(row.name), NAME_WIDTH),
            *(_took(row, cell) for cell in row.cells),
            timing_words(row.speed, program.threshold) if row.speed else "-",
            _walls([cell.analysis for cell in row.cells if cell]),
        )


def _took(row: AcrossRow, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    mean = cell.mean_launch.median_ns
    return f"{cell.launches:,}x {duration(mean)}" if row.is_mean else spread_words(cell.spread)


def _walls(analyses: Sequence[Analysis]) -> str:
    """Name the walls from side to side, each where it is another than before."""
    return " -> ".join(wall for wall, _ in groupby(wall_sentence(analysis) for analysis in analyses))


def print_comparison(console: Console, program: Compared) -> None:
    """Print one program: the total, a line for each kernel with its story, and what to keep in mind."""
    comparison = program.comparison
    console.print(
        printable(f"{program.program}: {total_sentence(comparison)}"), style="bold", markup=False, highlight=False
    )
    console.print(_ranges(comparison.total), markup=False, highlight=False)
    lines = new_table(_HEADINGS, right=_TIMES, overflow="fold")
    for name, mark, *cells in _lines(comparison):
        lines.add_row(*map(printable, (f"{name}{mark}", *cells)))
    console.print(lines, markup=False, highlight=False)
    if (left := len(comparison.changes) - KERNELS_SHOWN) > 0:
        console.print(f"and {left} more with smaller differences", style="dim")
    for warning in program.warnings:
        console.print(printable(f"note: {warning}"), markup=False, highlight=False)


def _ranges(timing: Timing) -> str:
    return f"{spread_words(timing.base)} -> {spread_words(timing.head)}"


def _lines(comparison: Comparison) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield name, how it was matched, times before and after, and the story of each kernel shown."""
    for change in comparison.changes[:KERNELS_SHOWN]:
        yield (
            cut_name(plain_name(change.name), NAME_WIDTH),
            "" if change.how == "same" else f" ({change.how})",
            *_times(change),
            _story(change, comparison),
        )


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


def _story(change: Change, comparison: Comparison) -> str:
    """Say what became of a kernel, then of its findings."""
    told = findings_sentence(changed_findings(change))
    return change_sentence(change, comparison) + (f". Findings: {told}" if told else "")


def to_markdown(compared: Sequence[Compared], gated: Gated | None = None, sides: Sides = TWO) -> str:
    """Write GitHub-flavoured Markdown for a pull request."""
    blocks = [block for program in sides.across for block in _markdown_across(program)]
    blocks += [block for program in compared for block in _markdown(program)]
    if sides.unpaired:
        blocks.append("\n".join(f"- {prose(one.words)}" for one in sides.unpaired))
    if gated is not None:
        blocks.append(gate_lines(gated))
    return "\n\n".join(blocks)


def gate_lines(gated: Gated) -> str:
    """Write in Markdown how the gate ended, what failed it, what it let through and what it could not judge."""
    gate = gated.gate
    floor = f" and {exact_duration(gate.floor_ns)}" if gate.floor_ns else ""
    limit = f"{given_percent(round(100 * gate.fail_on, 6))}{floor}"
    anew = f", confirmed by {count(gated.confirmed, 'new recording')} of the head" if gated.confirmed else ""
    parts = (
        (f"**The gate {_ENDED[gated.word]}**: slower by more than {limit} and more than noise{anew}", gated.failures),
        ("Let through:", gated.let_through),
        ("Not judged:", gated.unjudged),
    )
    blocks = []
    for i, (heading, found) in enumerate(parts):
        lines = [f"- {prose(line)}" for line in found[:KERNELS_SHOWN]]
        left = [f"- and {len(found) - KERNELS_SHOWN} more"] if len(found) > KERNELS_SHOWN else []
        if found:
            blocks.append("\n".join([heading, "", *lines, *left]))
        elif not i:
            blocks.append(heading)
    return "\n\n".join(blocks)


def _markdown_across(program: Across) -> Iterator[str]:
    yield f"### {prose(program.program)}: {len(program.labels)} sides"
    (_, *total), *kernels = across_lines(program)
    rows = [("GPU time", *total), *((code_cell(name), *map(prose, cells)) for name, *cells in kernels)]
    headings = across_headings(program)
    yield table([prose(heading) for heading in headings], rows, [prose(heading) for heading in headings[1:-1]])
    if (left := len(program.rows) - KERNELS_SHOWN) > 0:
        yield f"and {left} more that take less time"


def _markdown(program: Compared) -> Iterator[str]:
    comparison = program.comparison
    yield f"### {prose(program.program)}: {prose(total_sentence(comparison))}"
    yield prose(_ranges(comparison.total))
    rows = [
        (f"{code_cell(name)}{mark}", before, after, prose(sentence))
        for name, mark, before, after, sentence in _lines(comparison)
    ]
    yield table(_HEADINGS, rows, _TIMES)
    if (left := len(comparison.changes) - KERNELS_SHOWN) > 0:
        yield f"and {left} more with smaller differences"
    if program.warnings:
        yield "\n".join(f"- {prose(warning)}" for warning in program.warnings)


def to_junit(compared: Sequence[Compared], gated: Gated | None = None) -> str:
    """Write a test suite for each program and a test case for its total and each of its kernels.

    Without a gate no case fails; a single run is skipped, for it says nothing about noise.
    """
    suites = ET.Element("testsuites", name="rooflens")
    judged = {one.what: one for one in gated.judged} if gated else {}
    for program in compared:
        _add_suite(suites, program, judged)
    _break_lines(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}'


def _add_suite(suites: ET.Element, program: Compared, judged: Mapping[What, Judged]) -> None:
    comparison = program.comparison
    suite = ET.SubElement(suites, "testsuite", name=printable(program.program, " "))
    total = judged.get(what(program.program, None))
    _add_case(suite, "GPU time", comparison.total, total_sentence(comparison), total)
    for change in comparison.changes:
        of_kernel = judged.get(what(program.program, change))
        _add_case(suite, plain_name(change.name), change.speed, change_sentence(change, comparison), of_kernel)
    for counted, found in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
        suite.set(counted, str(len(suite.findall(found))))
    _break_lines(suite)


def _add_case(suite: ET.Element, name: str, timing: Timing, sentence: str, judged: Judged | None) -> None:
    """Add one test case, which a gate judged if there is one; its time is the head's median in seconds."""
    seconds = significant((timing.head.median_ns or 0.0) / 1e9, 6).replace(",", "")
    case = ET.SubElement(suite, "testcase", classname=suite.get("name", ""), name=printable(name, " "), time=seconds)
    if judged is not None and judged.outcome in {"single", "unknown"}:
        ET.SubElement(case, "skipped", message=printable(timing_words(timing, judged.fail_on), " "))
    elif judged is not None and judged.failed:
        ET.SubElement(case, "failure", message=printable(growth_words(timing), " ")).text = printable(sentence, " ")
    else:
        more = f"; let through: {judged.reason}" if judged is not None and judged.reason else ""
        ET.SubElement(case, "system-out").text = printable(f"{sentence}{more}", " ")


def _break_lines(parent: ET.Element) -> None:
    """Give each child a line of its own."""
    parent.text = "\n"
    for child in parent:
        child.tail = "\n"
