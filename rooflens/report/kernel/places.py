"""Where a kernel's time goes: its loops, and its hottest lines with what their warps wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rooflens import format as fmt
from rooflens.model.hotspots import leading_part, leading_stall, loops_around, places
from rooflens.model.records import Analysis, Hotspot, JudgedLoop, Kernel, ratio
from rooflens.report.document import Column, Document, Heading, Lines, OnPage, Row, Table, code, paragraph
from rooflens.report.kernel.source import changed, in_context
from rooflens.report.words.findings import code_of
from rooflens.report.words.inside import (
    body_words,
    class_words,
    counted,
    depth,
    inside_line,
    loop_labels,
    loop_rate,
    number,
    shown_loops,
    wait_words,
    work_unit,
)
from rooflens.report.words.kernel import plain
from rooflens.report.words.labels import place_label, stall_label

MOST_LINES = 5
LEAST_SHARE = 0.01
"""A line with less is not hot."""

_MEASURES = (("samples", "share of samples"), ("warp_inst", "share of instructions executed"))
"""What makes a line hot, best first, and its words."""

_EXCESS = (
    ("load_excess_sectors", "load_sectors", "sectors of loads"),
    ("store_excess_sectors", "store_sectors", "sectors of stores"),
    ("shared_excess_wavefronts", "shared_wavefronts", "passes of shared memory"),
)
"""Part, whole, and what they are."""

_IN_TEXTS = OnPage((), (Heading("Where"),))
"""Lines have their own title on a page."""


def hot_lines(analysis: Analysis) -> Document:
    """Show the hottest lines, or where the report has none the instructions; nothing where the code is not known."""
    kernel = analysis.kernel
    for measure, words in _MEASURES:
        found = [place for place in places(kernel, measure, MOST_LINES) if place.share >= LEAST_SHARE]
        if found:
            what = "lines" if found[0].hotspot.by == "line" else "instructions"
            rows = tuple(_hotspot_row(kernel, place.hotspot, place.share) for place in found)
            table = hot_table(kernel, [place.hotspot for place in found], measure)
            context = () if _is_changed(analysis, found[0].hotspot) else in_context(kernel, found[0].hotspot)
            return _IN_TEXTS, Lines(f"Hot {what}, {words}", rows, analysis.key, table), *context
    return ()


def _is_changed(analysis: Analysis, hotspot: Hotspot) -> bool:
    """Return whether a line is shown already, as that of a statement which a move changes."""
    edits = changed(analysis).values()
    return any(one.file == hotspot.file and one.line <= (hotspot.line or 0) <= one.last_line for one in edits)


def _hotspot_row(kernel: Kernel, hotspot: Hotspot, share: float) -> Row:
    return Row(
        label=place_label(hotspot, kernel.inside),
        share=share,
        code=code_of(hotspot),
        notes=(_hotspot_waits(kernel, hotspot), "; ".join(_excess(hotspot))),
        within=" ".join(map(str, loops_around(kernel.inside, hotspot))),
    )


def _excess(hotspot: Hotspot) -> Iterator[str]:
    measures = hotspot.measures
    for part, whole, words in _EXCESS:
        if measures.get(part) and measures.get(whole):
            share = fmt.percent(measures[part] / measures[whole])
            yield f"{share} of {fmt.quantity(measures[whole], words)} more than it needs"
    if measures.get("local_sectors"):
        yield fmt.quantity(measures["local_sectors"], "sectors of local memory")


def _hotspot_waits(kernel: Kernel, hotspot: Hotspot) -> str:
    reason, part = leading_stall(hotspot), leading_part(hotspot)
    leading = f"{stall_label(reason)}, {fmt.percent(part)}" if reason and part else ""
    return plain("; ".join(filter(None, (leading, wait_words(kernel.inside, hotspot)))))


def hot_table(kernel: Kernel, hotspots: Iterable[Hotspot], measure: str = "samples") -> Table:
    """Tabulate hot spots: their shares of a measure, what warps wait for there, what is moved in vain, place and code.

    Args:
        kernel: Theirs.
        hotspots: Lines, instructions or functions of it.
        measure: What they have shares of.
    """
    total = kernel.code_totals.get(measure)
    hotspots = tuple(hotspots)
    wasted = ["; ".join(_excess(spot)) for spot in hotspots]
    codes = [code_of(spot) for spot in hotspots]
    columns = (
        (Column("samples" if measure == "samples" else "executed", right=True, worth=9), True),
        (Column("waits for", fit="wrap", worth=4, least=20), True),
        (Column("place", fit="name", worth=8, least=24), True),
        (Column("moves in vain", fit="wrap", worth=3, least=20), any(wasted)),
        (Column("code", fit="end", worth=7, least=24), any(codes)),
    )
    rows = (
        (
            plain(fmt.percent(ratio(spot.measures.get(measure), total))),
            _hotspot_waits(kernel, spot) or fmt.MISSING,
            code(place_label(spot, kernel.inside)),
            plain(vain),
            code(text),
        )
        for spot, vain, text in zip(hotspots, wasted, codes, strict=True)
    )
    kept = [i for i, (_, is_used) in enumerate(columns) if is_used]
    return Table(tuple(columns[i][0] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))


def loops(analysis: Analysis) -> Document:
    """Show the loops: how often they run, their share of the warps' time, what limits each, and what a trip is.

    A kernel without a loop has nothing to show: its hottest lines say where its time goes.
    """
    rows = shown_loops(analysis.loops)
    if not any(one.loop.kind == "loop" for one in rows):
        return ()
    gpu, every, labels = analysis.kernel.gpu, analysis.loops, loop_labels(rows)
    line = inside_line(analysis)
    said = (paragraph(plain(f"{line[:1].upper()}{line[1:]}.")),) if line else ()
    bars = tuple(_loop(one, f"{'· ' * depth(one, every)}{labels[one.loop.id]}", gpu) for one in rows)
    return (
        OnPage((), (Heading("Loops"), *said)),
        Lines("Loops, share of warps' time by samples", bars, analysis.key, _loops_table(analysis, rows)),
    )


def _loop(loop: JudgedLoop, label: str, gpu: str | None) -> Row:
    rate = f" at {reached}" if (reached := loop_rate(loop)) else ""
    reuse = f", {fmt.intensity(loop.intensity, work_unit(loop))} of L2" if loop.intensity else ""
    trips = counted(loop.loop.trips, "trip") if loop.loop.trips is not None else ""
    limit = class_words(loop, gpu)
    trip = "; ".join(filter(None, (trips, body_words(loop))))
    return Row(
        label=label,
        share=(loop.share if loop.loop.kind == "loop" else loop.share_self) or 0.0,
        code="",
        notes=(f"{loop.job}{rate}{reuse}{f': {limit}' if limit else ''}", trip),
        loop=str(loop.loop.id) if loop.loop.kind == "loop" else "",
    )


def _loops_table(analysis: Analysis, rows: Sequence[JudgedLoop]) -> Table:
    columns = (
        Column("loop", fit="name", worth=9, least=28),
        Column("time", right=True, worth=9),
        Column("trips", right=True, worth=5),
        Column("does", worth=8),
        Column("rate", right=True, worth=6),
        Column("AI at L2", right=True, worth=3),
        Column("limited by", fit="wrap", worth=7, least=20),
        Column("a trip", fit="prose", worth=4, least=40),
    )
    labels = loop_labels(rows)
    cells = (
        (
            code(f"{'. ' * depth(one, analysis.loops)}{labels[one.loop.id]}"),
            plain(fmt.percent(one.share if one.loop.kind == "loop" else one.share_self)),
            number(one.loop.trips) if one.loop.trips is not None else "",
            plain(one.job),
            loop_rate(one),
            fmt.intensity(one.intensity, work_unit(one)) if one.intensity else "",
            plain(class_words(one, analysis.kernel.gpu)),
            plain(body_words(one)),
        )
        for one in rows
    )
    return Table(columns, tuple(cells))
