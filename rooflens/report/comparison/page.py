"""The page of a comparison: what became of the GPU time, kernel by kernel, as one offline HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.compare.compare import Spread
from rooflens.model.compare.gate import Compared, Gated
from rooflens.model.compare.ladder import NO_SIDES, Sides
from rooflens.model.compare.sentences import range_words
from rooflens.model.records import LEVELS, Analysis
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.comparison.conditions import Fact, is_synthetic, sides
from rooflens.report.comparison.roofline import Moves, arrows_spec, moves
from rooflens.report.comparison.rows import (
    Program,
    Row,
    arrowed,
    given_percent,
    known_lost_ns,
    plain,
    programs,
    signed_duration,
    signed_percent,
    spread_words,
)
from rooflens.report.comparison.waterfall import SEEN_SHARE, Waterfall, waterfall, waterfall_spec
from rooflens.report.html.document import document
from rooflens.report.html.embed import json_block
from rooflens.report.html.ladder import ladder_section
from rooflens.report.html.parts import Figure, Table
from rooflens.report.html.templates import render
from rooflens.report.ladder import ladder_warnings

MAX_PROGRAMS = 5
"""Programs with charts and a table of their own, those with the biggest differences; the overview lists all."""

MAX_FAILURES, FAILURE_WIDTH = 12, 240

MOST_CHANGED = 3
NAMED, NAMED_WIDTH = 3, 40
"""Kernels named in the line on what only one side has, and characters of each name."""

AIR = 0.12
"""Room beside the recordings in their plot, as a part of their range."""

ITEM_NAME_WIDTH = 120


class Lane(Struct, frozen=True):
    """The recordings of one side in a plot: places are per cents of its width."""

    name: str
    dots: tuple[float, ...]
    low: float
    high: float
    median: float
    words: str


class Recordings(Struct, frozen=True):
    """All recordings of a program on one axis."""

    lanes: tuple[Lane, ...]
    begin_ns: float
    end_ns: float

    @property
    def words(self) -> str:
        """Say both sides in words."""
        return ", ".join(f"{lane.name} {lane.words}" for lane in self.lanes)


class Swapped(Struct, frozen=True):
    """Kernels that only one side has: names, their time on either side, and what both make together."""

    gone: str
    new: str
    given: str
    taken: str
    together: str


class Section(Struct, frozen=True):
    """One program, ready to be placed on the page.

    Attributes:
        has_noise: Whether a step of the waterfall is no more than noise.
        levels: The levels that the roofline shows, and their names; `table_levels` those of the table of kernels.
    """

    program: Program
    facts: tuple[Fact, ...]
    recordings: Recordings | None
    changed: tuple[Row, ...]
    swapped: Swapped | None
    waterfall: Figure | None
    has_noise: bool
    moves: Moves
    roofline: Figure | None
    levels: tuple[tuple[str, str], ...]
    table_levels: tuple[str, ...]


def render_comparison(compared: Sequence[Compared], gated: Gated | None, sides: Sides = NO_SIDES) -> str:
    """Render the page of one program or several; it fetches nothing and reads without scripts."""
    climbed = sides.climbed
    all_programs = programs(_told(compared, sides))
    sections = [_section(program) for program in all_programs[:MAX_PROGRAMS]]
    several = len(all_programs) > 1
    return document(
        _title(all_programs, sides),
        () if several else all_programs[0].counts,
        [
            _gate(gated, [one.words for one in sides.unpaired]),
            *(ladder_section(one, notes=ladder_warnings(one, compared), named=len(climbed) > 1) for one in climbed),
            *([_overview(all_programs, len(sections))] if several and not climbed else []),
            *(_program(section, several=several, first=i == 0) for i, section in enumerate(sections)),
            render("comparison/method", threshold=given_percent(compared[0].comparison.threshold)),
        ],
        synthetic=_synthetic(compared),
        blocks=[json_block("items", [_item(row) for section in sections for row in section.program.rows])],
        styles=("comparison/comparison.css",),
        scripts=("comparison/comparison.js",),
    )


def _told(compared: Sequence[Compared], sides: Sides) -> list[Compared]:
    """Choose the pairs that have a section: of a ladder the fastest and the last version, each against the first."""
    shown = {
        frozenset((ladder.rungs[0].side.digests, rung.side.digests))
        for ladder in sides.climbed
        for rung in (ladder.fastest, *[one for one in ladder.rungs if one.to_first][-1:])
        if rung is not None
    }
    pairs = [(one.comparison.base.digests, one.comparison.head.digests) for one in compared]
    return [
        one
        for one, pair in zip(compared, pairs, strict=True)
        if not sides.climbs(one.comparison) or frozenset(pair) in shown
    ]


def _title(found: Sequence[Program], sides: Sides) -> str:
    if len(sides.climbed) == 1:
        return f"{sides.climbed[0].program}: {len(sides.climbed[0].rungs)} versions"
    if len(found) > 1:
        return f"{len(found)} programs, before and after"
    return found[0].title


def _gate(gated: Gated | None, unpaired: Sequence[str]) -> Markup:
    """Say how the gate ended, and which programs a side lacks."""
    failures, let_through = (
        [arrowed(fmt.cut_middle(line, FAILURE_WIDTH)) for line in lines]
        for lines in ((gated.failures, gated.let_through) if gated else ((), ()))
    )
    gate = gated.gate if gated else None
    return render(
        "comparison/gate",
        unpaired=unpaired,
        gate=gated,
        fail_on=given_percent(gate.fail_on) if gate else "",
        floor=fmt.exact_duration(gate.floor_ns) if gate and gate.floor_ns else "",
        failures=failures,
        let_through=let_through,
        max_failures=MAX_FAILURES,
        compared=len({one.program for one in gated.judged}) if gated else 0,
    )


def _synthetic(compared: Iterable[Compared]) -> str:
    """Say which side was written by a generator; empty where both were recorded."""
    found = [program.comparison for program in compared]
    base = any(is_synthetic(comparison.base) for comparison in found)
    head = any(is_synthetic(comparison.head) for comparison in found)
    if base and head:
        return (
            "Both sides hold reports written by a generator, not recorded on a GPU. No number below is a measurement."
        )
    if base or head:
        side = "base (before)" if base else "head (after)"
        return f"The {side} was written by a generator, not recorded on a GPU. No difference below is a measurement."
    return ""


def _overview(found: Sequence[Program], shown: int) -> Markup:
    return render(
        "comparison/overview",
        programs=found,
        shown=shown,
        spread=spread_words,
        signed_percent=signed_percent,
    )


def _section(program: Program) -> Section:
    found, went = moves(program), waterfall(program)
    return Section(
        program=program,
        facts=sides(program.comparison),
        recordings=_recordings(program),
        changed=tuple(_most_changed(program)),
        swapped=_swapped(program),
        waterfall=_waterfall_figure(program, went) if went else None,
        has_noise=went is not None and any(step.kind == "noise" for step in went.steps),
        moves=found,
        roofline=_roofline_figure(program, found) if found.drawable else None,
        levels=tuple((level, resource_label(level)) for level in found.levels),
        table_levels=tuple(
            level
            for level in LEVELS
            if any(
                _intensity(analysis, level) is not None
                for row in program.rows
                for analysis in (row.change.base, row.change.head)
            )
        ),
    )


def _waterfall_figure(program: Program, went: Waterfall) -> Figure:
    rows = [
        (
            fmt.cut_middle(step.name, 48),
            fmt.MISSING if step.kind == "total" else step.words,
            fmt.duration(step.end_ns),
        )
        for step in went.steps
    ]
    return Figure(
        f"waterfall-{program.key}",
        waterfall_spec(went, title=f"GPU time: {program.headline}{_mark(program)}"),
        label="From the time before to the time after, kernel by kernel; the table below holds the same data.",
        save="Save where the time went as",
        data=Table(
            f"Data of where the time went, {fmt.cut_middle(program.title, 60)}",
            ("Step", "#Difference", "#Time so far"),
            rows,
        ),
    )


def _roofline_figure(program: Program, found: Moves) -> Figure:
    caption = f"{found.gpu}, SM {found.clock}" if found.clock else found.gpu
    return Figure(
        f"arrows-{program.key}",
        arrows_spec(found, title=f"{caption}{_mark(program)}"),
        label=(
            f"Roofline of {caption} with each kernel before and after; the table of kernels below holds the same data."
        ),
        save="Save the roofline as",
        notes=tuple(_roofline_notes(found)),
        holder="the table of kernels below holds its data",
    )


def _mark(program: Program) -> str:
    return ": synthetic data" if program.is_synthetic else ""


def _roofline_notes(found: Moves) -> Iterator[str]:
    if not found.moves:
        yield (
            "No kernel has counted FLOPs on both sides, so there is no roofline: each is shown by its share of the "
            "level's bandwidth."
        )
    yield "Select a dot, a bar or a row of the table to see one kernel alone; Escape shows all."
    if found.unplaced:
        them = "it" if found.unplaced == 1 else "them"
        kernels = fmt.count(found.unplaced, "kernel")
        yield f"{kernels} without FLOPs or bandwidth shares cannot be placed; the table has {them}."
    if found.left_out:
        verb = "is" if found.left_out == 1 else "are"
        yield f"{fmt.count(found.left_out, 'kernel')} with smaller differences {verb} not drawn."


def _intensity(analysis: Analysis | None, level: str) -> float | None:
    return analysis.levels[level].intensity_flop_per_byte if analysis else None


def _most_changed(program: Program) -> list[Row]:
    """Choose the kernels with the biggest differences, where these count as a change and can be seen in the total."""
    whole_ns = max(program.total.base.median_ns or 0.0, program.total.head.median_ns or 0.0)
    changed = [row for row in program.matched if _changed(row) and abs(row.timing.lost_ns) >= SEEN_SHARE * whole_ns]
    return changed[:MOST_CHANGED]


def _changed(row: Row) -> bool:
    """Return whether a kernel changed by more than noise; of a single run, by more than would count."""
    change = row.timing.change
    return change is not None and row.outcome != "same" and abs(change) > row.timing.limit(row.comparison.threshold)


def _swapped(program: Program) -> Swapped | None:
    """Sum up what only one side has; None where all kernels are matched."""
    changes = program.comparison.changes
    gone = [change for change in changes if change.how == "gone"]
    new = [change for change in changes if change.how == "new"]
    if not gone and not new:
        return None
    return Swapped(
        *(", ".join(_few(plain(change.name) for change in some)) for some in (gone, new)),
        *(signed_duration(known_lost_ns(some)) for some in (gone, new, (*gone, *new))),
    )


def _few(names: Iterable[str]) -> Iterator[str]:
    """Name a few kernels, and count the others."""
    known = [fmt.cut_name(name, NAMED_WIDTH) for name in names]
    yield from known[:NAMED]
    if len(known) > NAMED:
        yield f"{len(known) - NAMED:,} more"


def _recordings(program: Program) -> Recordings | None:
    """Put all recordings of both sides on one axis; None where neither side has several."""
    base, head = program.total.base, program.total.head
    times = [*base.times_ns, *head.times_ns]
    if not (base.times_ns and head.times_ns) or len(times) < 3:
        return None
    air = AIR * (max(times) - min(times)) or 0.01 * max(times)
    begin, end = max(0.0, min(times) - air), max(times) + air
    return Recordings((_lane("before", base, begin, end), _lane("after", head, begin, end)), begin, end)


def _lane(name: str, spread: Spread, begin: float, end: float) -> Lane:
    def at(time_ns: float) -> float:
        return round(100 * (time_ns - begin) / (end - begin), 2)

    low, middle, high = spread.low_ns or 0.0, spread.median_ns or 0.0, spread.high_ns or 0.0
    return Lane(name, tuple(map(at, spread.times_ns)), at(low), at(high), at(middle), spread_words(spread))


def _program(section: Section, *, several: bool, first: bool) -> Markup:
    return render(
        "comparison/program",
        section=section,
        program=section.program,
        several=several,
        first=first,
        range_words=range_words,
        signed_duration=signed_duration,
        signed_percent=signed_percent,
        intensity_of=_intensity,
    )


def _item(row: Row) -> dict[str, Any]:
    """Describe a kernel to the scripts, in the words of `rooflens.report.page.selectors`."""
    analysis = row.change.head or row.change.base
    return {
        "k": row.key,
        "g": row.key,
        "n": max(row.change.launches),
        "name": fmt.cut_middle(row.name, ITEM_NAME_WIDTH),
        "gpu": (analysis.kernel.gpu if analysis else None) or "",
        "bound": row.bound,
    }
