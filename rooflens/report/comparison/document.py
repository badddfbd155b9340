"""What a comparison says: the gate, the ladder of each program's versions, and what became of each kernel.

Pages show more of it: how both sides were recorded, where the time went, the roofline before and after, and the
numbers of each kernel on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from rooflens.format import (
    bare_intensity,
    count,
    cut_name,
    duration,
    exact_duration,
    given_percent,
    percent,
    plain_name,
)
from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Change
from rooflens.model.compare.findings import changed_findings
from rooflens.model.compare.gate import Gated
from rooflens.model.compare.given import Given, defaults_words
from rooflens.model.compare.ladder import Ladder
from rooflens.model.compare.loops import LoopChange, changed_loops
from rooflens.model.compare.pairing import Unpaired
from rooflens.model.records import LEVELS, Analysis
from rooflens.model.roofline.roofs import RoofSet
from rooflens.model.roofline.standing import standing
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.summary import roofs_by_gpu
from rooflens.report.comparison.conditions import RecordingFact, is_synthetic, recorded, unlike
from rooflens.report.comparison.rows import (
    ComparedProgram,
    bar_legend,
    judgement,
    known_lost_ns,
    limiter_words,
    programs,
    signed_duration,
)
from rooflens.report.document import (
    Block,
    Chart,
    Column,
    Columns,
    Document,
    Facts,
    Folded,
    Heading,
    Paragraph,
    Span,
    Table,
    Words,
    bullets,
    code,
    few,
    paragraph,
    strong,
)
from rooflens.report.overview.document import of_ladder
from rooflens.report.path.chart import PageRoofs, path_chart
from rooflens.report.path.placing import has_path
from rooflens.report.words.change import change_sentence, findings_sentence, kernel_names, looked_at, total_sentence
from rooflens.report.words.labels import loop_place
from rooflens.report.words.ladder import (
    KERNELS_SHOWN,
    NAME_WIDTH,
    kernel_cells,
    kernel_title,
    program_headline,
)

MAX_DRAWN_PROGRAMS = 5
"""Programs with charts and all their numbers, those with the biggest differences."""

NAMED, NAMED_WIDTH = 3, 40
"""Kernels named in the line on what only one side has, and characters of each name."""

_ENDED = {
    "failed": ("failed", "slower"),
    "holds": ("holds", "nothing is slower"),
    "not judged": ("could not judge", "it fails what is slower"),
}
"""Word of a gate -> how its heading says it, and what begins the sentence about its limits."""

_MATCHED = (
    "Launches are matched in this order: same NVTX range, name, grid and block; same range and function, whatever its"
    " template arguments and shape (re-tiled); the same but for the numbers in its name (renamed); the same place of "
    "the sequence between matched neighbours (renamed). What is left is gone or new: a fused kernel is not matched to"
    " those it replaced. Times of launches are added up; all else is that of the median launch, and of what became of"
    " it."
)
_DRAWN = (
    "In the roofline a faint dot is a kernel before, a full one the same kernel after, and the arrow leads from "
    "one to the other. Area is GPU time, on one scale for both sides; shape and colour show the verdict of each side."
    " On one GPU at one clock the roofs of the head hold for both sides. Where GPUs, SM clocks or memory clocks "
    "differ by more than 3 % there is no common roof: heights are then shares of each kernel's own roof."
)
_LIMITERS = (
    "The limiter is the resource behind a verdict, with the share of its peak in use; for latency-bound and "
    "overhead-bound kernels, the resource nearest its peak."
)


def comparison_document(
    ladders: Sequence[Ladder],
    unpaired: Sequence[Unpaired] = (),
    gated: Gated | None = None,
    given: Sequence[Given] = (),
) -> Document:
    """Show the gate's outcome, the ladder of a program with more than two sides, else how its kernels changed.

    Defaults that nobody typed are named, and what a gate looked at.
    """
    drawn = {id(one.comparison): one for one in programs(_drawn_pairs(ladders))[:MAX_DRAWN_PROGRAMS]}
    blocks = [*(gate_document(gated) if gated else ())]
    if gated:
        blocks.append(paragraph(f"The gate looked at {looked_at(ladders, given)}."))
    elif defaults := defaults_words(given):
        blocks.append(paragraph(f"Defaults: {defaults}."))
    if len(ladders) > 1 and not any(one.pairs for one in ladders):
        blocks.append(Columns(((_overview(ladders),),)))
    roofs = cache(lambda: _roofs(ladders))
    for i, ladder in enumerate(sorted(ladders, key=lambda one: not one.pairs)):
        if not ladder.pairs:
            blocks += _program_blocks(ladder, drawn.get(id(ladder)), roofs)
            continue
        blocks += ladder_blocks(ladder, f"sides-{i}", roofs, is_alone=len(ladders) == 1)
        shown = [drawn[id(pair)] for pair in ladder.pairs if id(pair) in drawn]
        blocks += [Columns((tuple(_program_blocks(pair.comparison, pair, roofs)),)) for pair in shown]
    if unpaired:
        blocks.append(bullets([one.words for one in unpaired]))
    method = tuple(map(paragraph, (_MATCHED, _judged(ladders), _DRAWN, _LIMITERS)))
    return (*blocks, Columns(((Folded("How to read this page", method),),)))


def _roofs(ladders: Sequence[Ladder]) -> Mapping[str, RoofSet]:
    """Find the roofs of each GPU over all that a page may draw: its planes share them."""
    rungs = (rung.analysis for ladder in ladders for one in (ladder, *ladder.kernels) for rung in one.rungs)
    sides = (one for ladder in ladders for change in ladder.changes for one in (change.base, change.head))
    found = {id(one): one for one in (*rungs, *sides) if one and not one.kernel.failed}
    return roofs_by_gpu(found.values())


def heading(ladders: Sequence[Ladder]) -> tuple[str, list[str], str]:
    """Give the title of a comparison's page, facts below it, and which side a generator wrote."""
    facts: list[str] = []
    if len(ladders) == 1:
        (one,) = ladders
        title = one.program if one.pairs else f"{one.program}: {total_sentence(one)}"
        facts = [] if one.pairs else [*_counts(one)]
    elif any(one.pairs for one in ladders):
        title = f"{len(ladders)} programs, {'each ' if all(one.pairs for one in ladders) else ''}in several versions"
    else:
        title = f"{len(ladders)} programs, before and after" if ladders else "No program in common"
    return title, facts, _synthetic(ladders)


def _drawn_pairs(ladders: Sequence[Ladder]) -> list[Ladder]:
    """Choose the pairs that are drawn: of a ladder the fastest and the last version, each against the first."""
    return [pair for one in ladders for pair in (_end_pairs(one) if one.pairs else (one,))]


def _end_pairs(ladder: Ladder) -> list[Ladder]:
    last = next((rung for rung in reversed(ladder.rungs) if rung.to_first), None)
    wanted = [rung.side.label for rung in (ladder.fastest, last) if rung]
    return [pair for pair in ladder.pairs if pair.head.label in wanted]


def _judged(ladders: Sequence[Ladder]) -> str:
    smallest = max((one.threshold for one in ladders), default=DEFAULT_THRESHOLD)
    least = given_percent(round(100 * smallest, 6))
    return (
        "Times are medians over the recordings of a side, with their range in brackets. A change counts when the "
        f"ranges of the two sides do not overlap and the medians differ by more than {least}. One recording on a side "
        "gives a factor, marked with its number of runs, but is never judged."
    )


def _synthetic(ladders: Iterable[Ladder]) -> str:
    """Say which side was written by a generator; empty if both were recorded."""
    found = [pair for one in ladders for pair in one.each]
    base, head = (any(is_synthetic(getattr(pair, side)) for pair in found) for side in ("base", "head"))
    if base and head:
        return (
            "Both sides hold reports written by a generator, not recorded on a GPU. No number below is a measurement."
        )
    if base or head:
        side = "base (before)" if base else "head (after)"
        return f"The {side} was written by a generator, not recorded on a GPU. No difference below is a measurement."
    return ""


def _counts(comparison: Ladder) -> Iterator[str]:
    yield count(len(comparison.changes), "kernel")
    outcomes = [
        change.speed.outcome(comparison.threshold) for change in comparison.changes if change.base and change.head
    ]
    hows = [change.how for change in comparison.changes]
    for words, amount in (
        ("faster", outcomes.count("faster")),
        ("slower", outcomes.count("slower")),
        ("within noise", outcomes.count("same")),
        *((how, hows.count(how)) for how in ("re-tiled", "renamed", "gone", "new")),
    ):
        if amount:
            yield f"{amount:,} {words}"


def _overview(ladders: Sequence[Ladder]) -> Table:
    columns = (
        Column("Program", fit="name"),
        Column("Before", right=True),
        Column("After", right=True),
        Column("GPU time"),
    )
    rows = (
        (
            Span(one.program, "literal"),
            one.shared.base.words,
            one.shared.head.words,
            total_sentence(one),
        )
        for one in ladders
    )
    return Table(columns, tuple(rows), label="All programs")


def ladder_blocks(ladder: Ladder, key: str, roofs: PageRoofs, *, is_alone: bool = True) -> Iterator[Block]:
    """Show the versions of a program one below the other, what to try next, and its other kernels."""
    if is_alone:
        yield Paragraph((program_headline(ladder),), "answer")
    way = (path_chart(ladder, f"path-{key}", roofs),) if has_path(ladder) else ()
    yield from of_ladder(ladder, is_alone=is_alone, way=way)
    if ladder.fastest and len(ladder.kernels) > 1:
        yield _over_sides(ladder, key)
    names = kernel_names(ladder)
    if len(ladder.kernels) > 1:
        yield Table(
            (
                Column("kernel", fit="name", most=NAME_WIDTH),
                Column("versions", right=True, worth=4),
                Column("first", right=True),
                Column("last", right=True, worth=7),
                Column("first to last", right=True, worth=8),
                Column("time", worth=3),
                Column("limited by", fit="wrap", least=24),
            ),
            tuple((kernel_title(one, names), *kernel_cells(one)) for one in ladder.kernels[:KERNELS_SHOWN]),
            amount=len(ladder.kernels),
            rest=" that take less time",
        )


def _program_blocks(comparison: Ladder, drawn: ComparedProgram | None, roofs: PageRoofs) -> Iterator[Block]:
    """Show one program: the total, a line for each kernel with its story, and what to keep in mind."""
    yield Heading((Span(comparison.program, "literal"), f": {total_sentence(comparison)}"), 3)
    times = f"{comparison.shared.base.words} -> {comparison.shared.head.words}"
    yield Paragraph((times,), "answer")
    if one_sided := _unmatched(comparison):
        yield paragraph(one_sided)
    if drawn:
        yield from _opening(drawn, roofs)
    columns = (
        Column("kernel", fit="name", most=NAME_WIDTH),
        Column("before", right=True),
        Column("after", right=True),
        *((Column("difference", right=True, page=True), Column("limited by", fit="wrap", page=True)) if drawn else ()),
        Column("change", fit="prose", least=48),
    )
    listed = max(KERNELS_SHOWN, len(drawn.rows) if drawn else 0)
    yield Table(
        columns,
        tuple(_change_cells(change, comparison, of_page=drawn is not None) for change in comparison.changes[:listed]),
        shown=KERNELS_SHOWN,
        amount=len(comparison.changes),
        rest=" with smaller differences",
        label="Kernels",
    )
    if comparison.warnings:
        yield bullets([*comparison.warnings])
    if drawn:
        yield from _program_details(drawn)


def _change_cells(change: Change, comparison: Ladder, *, of_page: bool) -> tuple[Words, ...]:
    """Write name and how it was matched, times before and after, what it lost, its limiters, and its story."""
    how = "" if change.how == "same" else f" ({change.how})"
    more = (signed_duration(known_lost_ns([change])), _limited(change)) if of_page else ()
    return (code(kernel_names(comparison)[change.name]), how), *_time_cells(change), *more, _story(change, comparison)


def _story(change: Change, comparison: Ladder) -> str:
    """Explain how a kernel changed, and why: counters, loops and findings."""
    is_told = not change.timing.apart
    told = findings_sentence(changed_findings(change, comparison.threshold)) if is_told else ""
    loops = "; ".join(map(_loop_words, changed_loops(change))) if is_told else ""
    story = change_sentence(change, comparison) + (f". Loops: {loops}" if loops else "")
    return story + (f". Findings: {told}" if told else "")


def _loop_words(changed: LoopChange) -> str:
    """Say how a loop's part of warps' time changed: `loads tiles (conv.cu:388) 37 % -> 4 % of warps' time`."""
    loop = changed.shown
    parts = f"{percent(changed.before)} -> {percent(changed.after)} of warps' time"
    return f"{loop.job} ({loop_place(loop)}) {parts}" if loop else parts


def _time_cells(change: Change) -> tuple[str, str]:
    """Write its GPU time on both sides, and that of the mean launch where one side has more launches."""
    sides = ((change.base, change.timing.base), (change.head, change.timing.head))
    before, after = (spread.words if analysis else "-" for analysis, spread in sides)
    if not change.counts_differ:
        return before, after
    means = (change.mean_launch.base, change.mean_launch.head)
    first, last = (
        f"{launches:,}x {duration(mean.median_ns)}" for launches, mean in zip(change.launches, means, strict=True)
    )
    return f"{before}, {first}", f"{after}, {last}"


def _limited(change: Change) -> Words:
    """Write the limiter before and after, or once if both read the same."""
    found = [one for one in (change.base, change.head) if one]
    written = list(dict.fromkeys(Span(limiter_words(one), one.verdict.shown_class) for one in found))
    return (written[0], " -> ", written[1]) if len(written) == 2 else written[0] if written else ""


def _opening(program: ComparedProgram, roofs: PageRoofs) -> Iterator[Block]:
    """Say what became of the kernel that changed most, how sure that is and where the time went, beside the plane."""
    comparison = program.comparison
    judged = paragraph(judgement(comparison.speed, comparison.threshold))
    said: list[Block] = [judged] if judged.lines else []
    if most := next((change for change in comparison.changes if change.base and change.head), None):
        name = code(kernel_names(comparison)[most.name])
        said.insert(0, Paragraph(((name, ": ", _story(most, comparison)),)))
    went = (Heading("Where the time went", 4), _waterfall(program)) if comparison.speed.factor else ()
    sides = (one for row in program.rows for one in (row.base, row.head) if one)
    where = (Heading("Roofline, before and after", 4), _roofline(program, roofs)) if any(map(standing, sides)) else ()
    parts = ((*said, *went), where) if where else (tuple(said), went)
    if kept := tuple(part for part in parts if part):
        yield Columns(kept)


def _recorded(program: ComparedProgram) -> Facts:
    comparison = program.comparison
    totals = (comparison.total.base, comparison.total.head)
    conditions = [_fact(fact) for fact in recorded(comparison)]
    if any(len(total.times_ns) > 1 for total in totals):
        each = tuple(", ".join(map(duration, total.times_ns)) for total in totals)
        conditions.append(("GPU time of each recording", each, False))
    return Facts("How both sides were recorded", tuple(conditions), ("Base (before)", "Head (after)"))


def _fact(fact: RecordingFact) -> tuple[str, tuple[Words, ...], bool]:
    return fact.label, (_literal(fact.base), _literal(fact.head)), fact.matters


def _literal(text: str) -> Span:
    return Span(cut_name(text, 400), "literal")


def _unmatched(comparison: Ladder) -> Words:
    """Name what only one side has, with its time; empty if all kernels are matched."""
    said: list[str | Span] = []
    for what, how in (("Gone", "gone"), ("New", "new")):
        own = [change for change in comparison.changes if change.how == how]
        if own:
            names = [code(cut_name(kernel_names(comparison)[change.name], NAMED_WIDTH)) for change in own]
            said += [f"{' ' if said else ''}{what}: ", *few(names, NAMED)]
            said.append(f" ({signed_duration(known_lost_ns(own))}).")
    return (*said, " These times are in neither sum above.") if comparison.alone else tuple(said)


def _program_details(program: ComparedProgram) -> Iterator[Block]:
    """List how both sides were recorded, and the numbers of each kernel on both sides."""
    numbers = Folded("Launches, intensity and shares of each kernel", (_numbers(program),))
    yield Columns(((_recorded(program), numbers),))


def _mark(program: ComparedProgram) -> str:
    return ": synthetic data" if program.is_synthetic else ""


def _over_sides(ladder: Ladder, key: str) -> Chart:
    """Draw the time of the longest kernels over the versions."""

    def draw() -> Mapping[str, Any] | None:
        from rooflens.report.comparison.charts import sides_spec  # noqa: PLC0415 - only pages draw

        return sides_spec(ladder)

    return Chart(key, draw, f"Time of the kernels of {ladder.program} over its versions; the tables hold the same.")


def _waterfall(program: ComparedProgram) -> Chart:
    def draw() -> Mapping[str, Any] | None:
        from rooflens.report.comparison.charts import waterfall_spec  # noqa: PLC0415 - only pages draw

        return waterfall_spec(program, title=f"GPU time: {program.headline}{_mark(program)}")

    return Chart(
        f"waterfall-{program.key}",
        draw,
        "From the time before to the time after, kernel by kernel; the table of kernels holds the same data.",
        (bar_legend(program),),
    )


def _roofline(program: ComparedProgram, roofs: PageRoofs) -> Chart:
    def draw() -> Mapping[str, Any] | None:
        from rooflens.report.comparison.charts import arrows_spec  # noqa: PLC0415 - only pages draw

        gpus = dict.fromkeys(one.kernel.gpu or "unknown GPU" for one in program.comparison.head.at_work)
        return arrows_spec(program, roofs(), title=f"{', '.join(gpus)}{_mark(program)}")

    why = unlike(program.comparison)
    shares = f"Heights are shares of each kernel's own roof, not FLOP/s: {why}, so there is no roof for both sides."
    return Chart(
        f"arrows-{program.key}",
        draw,
        "Roofline with each kernel before and after; the tables of kernels hold the same data.",
        (shares,) if why else (),
    )


def _numbers(program: ComparedProgram) -> Table:
    """List launches, arithmetic intensity and share of bandwidth of each kernel, before and after."""
    sides = [(row.base, row.head) for row in program.rows]
    levels = [
        level
        for level in LEVELS
        if any(one and (_intensity(one, level), _share(one, level)) != ("", "") for pair in sides for one in pair)
    ]
    columns = (
        Column("kernel", fit="name"),
        Column("launches", right=True),
        *(Column(f"FLOP/B at {resource_label(level)}", right=True) for level in levels),
        *(Column(f"{resource_label(level)} share", right=True) for level in levels),
    )
    rows: list[tuple[Words, ...]] = [
        (
            _renamed(row, kernel_names(program.comparison)),
            _before_and_after(*(f"{launches:,}" if launches else "" for launches in row.launches)),
            *(_before_and_after(*(_intensity(one, level) for one in pair)) for level in levels),
            *(_before_and_after(*(_share(one, level) for one in pair)) for level in levels),
        )
        for row, pair in zip(program.rows, sides, strict=True)
    ]
    return Table(columns, tuple(rows), amount=len(program.comparison.changes), label="Numbers of each kernel")


def _renamed(change: Change, names: Mapping[str, str]) -> Words:
    was = change.base.kernel.name if change.base else change.name
    name = code(names[change.name])
    return (name, " was ", code(names[was])) if plain_name(was) != plain_name(change.name) else (name,)


def _intensity(analysis: Analysis | None, level: str) -> str:
    value = analysis.levels[level].intensity_flop_per_byte if analysis else None
    return "" if value is None else bare_intensity(value)


def _share(analysis: Analysis | None, level: str) -> str:
    value = analysis.levels[level].share if analysis else None
    return "" if value is None else percent(value)


def _before_and_after(before: str, after: str) -> str:
    return before if before == after else f"{before or '-'} -> {after or '-'}"


def gate_document(gated: Gated) -> Document:
    """Say how the gate ended, what failed it, what it let through and what it could not judge."""
    gate = gated.gate
    floor = f" and {exact_duration(gate.floor_ns)}" if gate.floor_ns else ""
    limit = f"{given_percent(round(100 * gate.fail_on, 6))}{floor}"
    word, what = _ENDED[gated.word]
    why = f", and the floor of {exact_duration(gate.floor_ns)} is the reason" if gated.is_held_by_floor else ""
    ended = f"{why}: {what} by more than {limit} and {gated.excess}"
    blocks: list[Block] = [Paragraph(((strong(f"The gate {word}"), ended),), "answer")]
    unjudged = [*gated.unjudged, *gated.left_out]
    for words, found in (("", gated.failures), ("Let through:", gated.let_through), ("Not judged:", unjudged)):
        more = [f"and {len(found) - KERNELS_SHOWN} more"] if len(found) > KERNELS_SHOWN else []
        blocks += [paragraph(words)] if words and found else []
        blocks += [bullets([*found[:KERNELS_SHOWN], *more])] if found else []
    return tuple(blocks)
