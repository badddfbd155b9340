"""What a comparison says: the gate, the ladder of each program's versions, and what became of each kernel.

Pages show more of it: how both sides were recorded, where the time went, the roofline before and after, and the
numbers of each kernel on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Change, Comparison
from rooflens.model.compare.findings import changed_findings, findings_sentence
from rooflens.model.compare.gate import Compared, Gated
from rooflens.model.compare.ladder import NO_SIDES, Ladder, Sides
from rooflens.model.compare.sentences import change_sentence, spread_words, total_sentence
from rooflens.model.records import LEVELS, Analysis
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.comparison.conditions import Fact, is_synthetic, recorded, unlike
from rooflens.report.comparison.rows import (
    Limiter,
    Program,
    judgement,
    known_lost_ns,
    limiter,
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
    paragraph,
    strong,
)
from rooflens.report.ladder import (
    KERNELS_SHOWN,
    NAME_WIDTH,
    headline,
    ladder_rows,
    ladder_warnings,
    series_cells,
    subject,
    try_next,
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
    "In the roofline a hollow dot is a kernel before, a filled one the same kernel after, and the arrow leads from "
    "one to the other. Area is GPU time, on one scale for both sides; shape and colour show the verdict of each side."
    " On one GPU at one clock the roofs of the head hold for both sides. Where GPUs, SM clocks or memory clocks "
    "differ by more than 3 % there is no common roof: heights are then shares of each kernel's own roof."
)
_LIMITERS = (
    "The limiter is the resource behind a verdict, with the share of its peak in use; for latency-bound and "
    "overhead-bound kernels, the resource nearest its peak."
)


def comparison_document(compared: Sequence[Compared], gated: Gated | None = None, sides: Sides = NO_SIDES) -> Document:
    """Show how the gate ended, the ladder of each program with more than two sides, else what became of its kernels."""
    drawn = {id(one.compared): one for one in programs(_told(compared, sides))[:MAX_DRAWN_PROGRAMS]}
    blocks = [*(gate_document(gated) if gated else ())]
    if len(compared) > 1 and not sides.climbed:
        blocks.append(Columns(((_overview(compared),),)))
    blocks += [block for ladder in sides.climbed for block in ladder_blocks(ladder, compared)]
    for one in compared:
        if not sides.climbs(one.comparison):
            blocks += _blocks(one, drawn.get(id(one)))
        elif id(one) in drawn:
            blocks.append(Columns((tuple(_blocks(one, drawn[id(one)])),)))
    if sides.unpaired:
        blocks.append(bullets([one.words for one in sides.unpaired]))
    method = tuple(map(paragraph, (_MATCHED, _judged(compared), _DRAWN, _LIMITERS)))
    return (*blocks, Columns(((Folded("How to read this page", method),),)))


def heading(compared: Sequence[Compared], sides: Sides = NO_SIDES) -> tuple[str, list[str], str]:
    """Give the title of a comparison's page, facts below it, and which side a generator wrote."""
    ladders = sides.climbed
    if len(ladders) == 1:
        title, facts = f"{ladders[0].program}: {headline(ladders[0])}", []
    elif len(compared) == 1:
        (one,) = compared
        title, facts = f"{one.program}: {total_sentence(one.comparison)}", [*_counts(one.comparison)]
    else:
        title = f"{len(compared)} programs, before and after" if compared else "No program in common"
        facts = []
    return title, facts, _synthetic(compared)


def _told(compared: Sequence[Compared], sides: Sides) -> list[Compared]:
    """Choose the pairs that are drawn: of a ladder the fastest and the last version, each against the first."""
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


def _judged(compared: Sequence[Compared]) -> str:
    smallest = max((one.comparison.threshold for one in compared), default=DEFAULT_THRESHOLD)
    least = given_percent(round(100 * smallest, 6))
    return (
        "Times are medians over the recordings of a side, with their range in brackets. A change counts when the "
        f"ranges of the two sides do not overlap and the medians differ by more than {least}. One recording on a side "
        "gives a factor, marked with its number of runs, but is never judged."
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


def _counts(comparison: Comparison) -> Iterator[str]:
    """Count all kernels by what became of them."""
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


def _overview(compared: Sequence[Compared]) -> Table:
    """List all programs of a page, in their order on it."""
    columns = (
        Column("Program", fit="name"),
        Column("Before", right=True),
        Column("After", right=True),
        Column("GPU time"),
    )
    rows = (
        (
            Span(one.program, "literal"),
            spread_words(one.comparison.total.base),
            spread_words(one.comparison.total.head),
            total_sentence(one.comparison),
        )
        for one in compared
    )
    return Table(columns, tuple(rows), label="All programs")


def ladder_blocks(ladder: Ladder, compared: Sequence[Compared] = ()) -> Iterator[Block]:
    """Show the versions of a program one below the other, what to try next, and its other kernels."""
    yield Heading((Span(ladder.program, "literal"), f": {headline(ladder)}"), 3)
    columns = (
        Column("version", fit="name", most=NAME_WIDTH),
        Column("time", right=True, worth=8),
        Column("x first", right=True, worth=7),
        Column("limited by", fit="wrap", worth=4),
        Column("what changed", fit="prose", least=36),
    )
    rows = ladder_rows(ladder.rungs, ladder.threshold)
    cells = tuple((row.marked, row.time, row.against_first, Span(row.limiter, row.bound), row.changed) for row in rows)
    yield Table(columns, cells)
    yield paragraph(subject(ladder))
    if advice := try_next(ladder):
        yield paragraph(advice)
    if len(ladder.series) > 1:
        yield Table(
            (
                Column("kernel", fit="name", most=NAME_WIDTH),
                Column("versions", right=True, worth=4),
                Column("first", right=True),
                Column("last", right=True, worth=7),
                Column("faster", right=True, worth=8),
                Column("time", worth=3),
                Column("limited by", fit="wrap", least=24),
            ),
            tuple((code(plain_name(one.name)), *series_cells(one)) for one in ladder.series[:KERNELS_SHOWN]),
            amount=len(ladder.series),
            rest=" that take less time",
        )
    if found := ladder_warnings(ladder, compared):
        yield bullets([*found])


def _blocks(program: Compared, drawn: Program | None) -> Iterator[Block]:
    """Show one program: the total, a line for each kernel with its story, and what to keep in mind."""
    comparison = program.comparison
    yield Heading((Span(program.program, "literal"), f": {total_sentence(comparison)}"), 3)
    times = f"{spread_words(comparison.total.base)} -> {spread_words(comparison.total.head)}"
    yield Paragraph((times,), "answer")
    if drawn:
        yield from _recorded(drawn)
    columns = (
        Column("kernel", fit="name", most=NAME_WIDTH),
        Column("before", right=True),
        Column("after", right=True),
        *((Column("difference", right=True, page=True), Column("limited by", fit="wrap", page=True)) if drawn else ()),
        Column("what became of it", fit="prose", least=48),
    )
    listed = max(KERNELS_SHOWN, len(drawn.rows) if drawn else 0)
    yield Table(
        columns,
        tuple(_cells(change, comparison, of_page=drawn is not None) for change in comparison.changes[:listed]),
        shown=KERNELS_SHOWN,
        amount=len(comparison.changes),
        rest=" with smaller differences",
        label="Kernels",
    )
    if program.warnings:
        yield bullets([*program.warnings])
    if drawn:
        yield from _drawn(drawn)


def _cells(change: Change, comparison: Comparison, *, of_page: bool) -> tuple[Words, ...]:
    """Write name and how it was matched, times before and after, what it lost, its limiters, and its story."""
    how = "" if change.how == "same" else f" ({change.how})"
    told = "" if change.timing.apart else findings_sentence(changed_findings(change))
    story = change_sentence(change, comparison) + (f". Findings: {told}" if told else "")
    more = (signed_duration(known_lost_ns([change])), _limited(change)) if of_page else ()
    return (code(plain_name(change.name)), how), *_times(change), *more, story


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


def _limited(change: Change) -> Words:
    """Write the limiter before and after, once where it is the same in the words that a page shows."""
    found = [one for one in (limiter(change.base), limiter(change.head)) if one]
    written = list(dict.fromkeys(map(_signed_limiter, found)))
    return (written[0], " -> ", written[1]) if len(written) == 2 else written[0] if written else ""


def _signed_limiter(found: Limiter) -> Span:
    return Span(limiter_words(found), found.bound)


def _recorded(program: Program) -> Iterator[Block]:
    """Say why the difference counts, and how both sides were recorded."""
    comparison = program.comparison
    totals = (comparison.total.base, comparison.total.head)
    conditions = [_fact(fact) for fact in recorded(comparison)]
    if any(len(total.times_ns) > 1 for total in totals):
        each = tuple(", ".join(map(duration, total.times_ns)) for total in totals)
        conditions.append(("GPU time of each recording", each, False))
    said = paragraph(judgement(comparison.speed, comparison.threshold), _swapped(comparison))
    sides = Facts("How both sides were recorded", tuple(conditions), ("Base (before)", "Head (after)"))
    yield Columns(((said,), (sides,)))


def _fact(fact: Fact) -> tuple[str, tuple[Words, ...], bool]:
    return fact.label, (_literal(fact.base), _literal(fact.head)), fact.matters


def _literal(text: str) -> Span:
    return Span(cut_name(text, 400), "literal")


def _swapped(comparison: Comparison) -> Words:
    """Sum up what only one side has; empty where all kernels are matched."""
    said: list[str | Span] = []
    for what, how in (("Gone", "gone"), ("New", "new")):
        own = [change for change in comparison.changes if change.how == how]
        if own:
            names = [code(cut_name(plain_name(change.name), NAMED_WIDTH)) for change in own[:NAMED]]
            more = f" and {len(own) - NAMED:,} more" if len(own) > NAMED else ""
            said += [f"{' ' if said else ''}{what}: ", *(word for name in names for word in (name, ", "))][:-1]
            said.append(f"{more} ({signed_duration(known_lost_ns(own))}).")
    return tuple(said)


def _drawn(program: Program) -> Iterator[Block]:
    """Draw where the time went and the roofline, and list the numbers of each kernel on both sides."""
    mark = ": synthetic data" if program.is_synthetic else ""
    charts = (
        ("Where the time went", _waterfall(program, mark)),
        ("Roofline, before and after", _roofline(program, mark)),
    )
    yield Columns(tuple((Heading(title, 4), chart) for title, chart in charts))
    yield Columns(((Folded("Launches, intensity and shares of each kernel", (_numbers(program),)),),))


def _waterfall(program: Program, mark: str) -> Chart:
    def draw() -> Mapping[str, Any] | None:
        from rooflens.report.comparison.waterfall import waterfall, waterfall_spec  # noqa: PLC0415 - only pages draw

        found = waterfall(program)
        return waterfall_spec(found, title=f"GPU time: {program.headline}{mark}") if found else None

    return Chart(
        f"waterfall-{program.key}",
        draw,
        "From the time before to the time after, kernel by kernel; the table of kernels holds the same data.",
        ("Solid: lost; hollow: won; dashed: within noise.",),
    )


def _roofline(program: Program, mark: str) -> Chart:
    """Draw each kernel where it was and is."""

    def draw() -> Mapping[str, Any] | None:
        from rooflens.report.comparison.roofline import arrows_spec, moves  # noqa: PLC0415 - only pages draw

        found = moves(program)
        caption = f"{found.gpu}, SM {found.clock}" if found.clock else found.gpu
        return arrows_spec(found, title=f"{caption}{mark}") if found.drawable else None

    why = unlike(program.comparison)
    shares = f"Heights are shares of each kernel's own roof, not FLOP/s: {why}, so there is no roof for both sides."
    return Chart(
        f"arrows-{program.key}",
        draw,
        "Roofline with each kernel before and after; the tables of kernels hold the same data.",
        (shares,) if why else (),
    )


def _numbers(program: Program) -> Table:
    """List launches, arithmetic intensity and share of bandwidth of each kernel, before and after."""
    sides = [(row.change.base, row.change.head) for row in program.rows]
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
            _renamed(row.change),
            _both(*(f"{launches:,}" if launches else "" for launches in row.change.launches)),
            *(_both(*(_intensity(one, level) for one in pair)) for level in levels),
            *(_both(*(_share(one, level) for one in pair)) for level in levels),
        )
        for row, pair in zip(program.rows, sides, strict=True)
    ]
    return Table(columns, tuple(rows), amount=len(program.comparison.changes), label="Numbers of each kernel")


def _renamed(change: Change) -> Words:
    """Write the name of a kernel, and its former one where that was another."""
    was = change.base.kernel.name if change.base else change.name
    name = code(plain_name(change.name))
    return (name, " was ", code(plain_name(was))) if plain_name(was) != plain_name(change.name) else (name,)


def _intensity(analysis: Analysis | None, level: str) -> str:
    value = analysis.levels[level].intensity_flop_per_byte if analysis else None
    return "" if value is None else bare_intensity(value)


def _share(analysis: Analysis | None, level: str) -> str:
    value = analysis.levels[level].share if analysis else None
    return "" if value is None else percent(value)


def _both(before: str, after: str) -> str:
    return before if before == after else f"{before or '-'} -> {after or '-'}"


def gate_document(gated: Gated) -> Document:
    """Say how the gate ended, what failed it, what it let through and what it could not judge."""
    gate = gated.gate
    floor = f" and {exact_duration(gate.floor_ns)}" if gate.floor_ns else ""
    limit = f"{given_percent(round(100 * gate.fail_on, 6))}{floor}"
    word, what = _ENDED[gated.word]
    ended = f": {what} by more than {limit} and {gated.excess}"
    blocks: list[Block] = [Paragraph(((strong(f"The gate {word}"), ended),), "answer")]
    for words, found in (("", gated.failures), ("Let through:", gated.let_through), ("Not judged:", gated.unjudged)):
        more = [f"and {len(found) - KERNELS_SHOWN} more"] if len(found) > KERNELS_SHOWN else []
        blocks += [paragraph(words)] if words and found else []
        blocks += [bullets([*found[:KERNELS_SHOWN], *more])] if found else []
    return tuple(blocks)
