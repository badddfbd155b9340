"""The report as Markdown for a pull request: what ran, what to fix first, and the kernels with most time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from msgspec.structs import asdict

from rooflens import __version__
from rooflens import format as fmt
from rooflens.model.records import timed
from rooflens.model.roofline.unit_names import bottleneck_words
from rooflens.model.roofline.work import main_work
from rooflens.model.summary import KernelSummary, class_times_ns, known_sum, notes, time_part
from rooflens.model.verdict.sentences import unmeasured_words
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.model.verdict_classes import ShownClass
from rooflens.report.content import Content
from rooflens.report.document import (
    Block,
    Bullets,
    Column,
    Document,
    Folded,
    Heading,
    Item,
    Paragraph,
    Span,
    Table,
    Words,
    bullets,
    code,
    few,
    joined,
    paragraph,
    strong,
)
from rooflens.report.document import facts as facts_of
from rooflens.report.summary import (
    Ranked,
    caveats,
    counts,
    facts,
    failure_counts,
    flag_counts,
    ranking,
    segments,
    synthetic_words,
    unranked,
)
from rooflens.report.words.findings import ShownFinding, costing, shown
from rooflens.report.words.labels import BOUND_LABELS, UNITS, flag_name
from rooflens.report.words.ladder import headline, ladder_table, subject
from rooflens.report.words.program import program_lines
from rooflens.report.words.verdict import TODAY, limit_cell

Section = Callable[[Content], Document]

MAX_ROWS = 20
"""Kernels in the table; one line more sums the others up."""

MAX_NAMED = 5
"""Failed kernels, unread reports and reports that are named; of more, only the count is told."""

_MOST_REASONS = 3
"""Number of reasons given for kernels that were not analyzed."""

METHOD = (
    "Peaks are the reports' own, at the profiled clock. Busiest unit: the largest share of a peak. Of several launches "
    "the median one is judged and placed. AI: FLOPs over bytes moved. Gain: about what the best move brings. "
    "Limit: what no change beats that keeps the arithmetic, the types and the bytes that are needed; "
    f"{TODAY}; far: above 10x. "
    f"{fmt.MISSING} stands for what was not measured; it is never zero."
)

NUMBERS_SHOWN = 2
"""Numbers of a finding's evidence that its line holds; the page and the JSON hold all."""

NAME_WIDTH = 72
TITLE_WIDTH = 200
SENTENCE_WIDTH = 400


def report_document(page: Content) -> Document:
    """Show what ran, what to fix first, the kernels with most time, caveats and the method."""
    return tuple(block for section in SECTIONS for block in section(page))


def _head(page: Content) -> Document:
    return (Heading(Span(fmt.cut_middle(page.title, TITLE_WIDTH).strip() or "rooflens", "literal")),)


def _banner(page: Content) -> Document:
    if not page.synthetic:
        return ()
    return (Paragraph(((strong("Synthetic data."), f" {synthetic_words(page.runs)}"),), "warning"),)


def _facts(page: Content) -> Document:
    """Say what ran, where, on which clock, and who measured it."""
    lines = (" \u00b7 ".join(_cut(part) for part in parts) for parts in (facts(page), counts(page)))
    return (facts_of(*lines, *(_sentence(line) for line in program_lines(page.unprofiled, named=len(page.runs) > 1))),)


def _verdicts(page: Content) -> Document:
    """Divide the GPU time by verdict, on one line."""
    shares: list[Words] = [
        (strong(fmt.percent(part.share)), f" {BOUND_LABELS[part.bound]}") for part in segments(page.counted)
    ]
    return (paragraph((strong("GPU time by verdict:"), " ", *joined(", ", shares))),) if shares else ()


def _ladders(page: Content) -> Document:
    """Show the versions of each program in the reports, and kernels that do the same work."""
    blocks: list[Block] = []
    for one in page.ladders:
        heading = Heading((Span(one.program, "literal"), f": {headline(one)}"), 3)
        blocks += [heading, ladder_table(one), paragraph(subject(one))]
    return tuple(blocks)


def _ranking(page: Content) -> Document:
    """Rank the kernels by the time they can save, with the limiter of each, its gain, its limit and one move."""
    if not page.kernels:
        return ()
    rest, earlier = unranked(page), page.earlier
    rows = Bullets(tuple(_ranked(row, named=len(page.gpus) > 1) for row in ranking(page)), numbered=True)
    more = f"{fmt.count(len(rest), 'more kernel')}{_part(rest)}, in the table below." if rest else ""
    before = f"{fmt.count(len(earlier), 'older or slower version')} hidden."
    lines = [paragraph(line) for line in (more, before if earlier else "") if line]
    return (Heading("What to fix first", 3), rows, *lines)


def _ranked(row: Ranked, *, named: bool) -> Item:
    group = row.group
    launches = f"{fmt.count(group.launch_count, 'launch')}, " if group.launch_count > 1 else ""
    on = (" on ", code(group.gpu)) if named else ()
    spread = f", {group.spread}" if group.spread else ""
    takes = f"{fmt.duration(group.duration_ns)} ({launches}{fmt.percent(group.time_share)} of GPU time{spread})"
    numbers = "".join(f", {one}" for one in (row.gain, row.limit) if one)
    cause = f" ({_cut(row.cause)})" if row.cause else ""
    where = (" ", code(_cut(row.where))) if row.where else ()
    return Item(
        (code(_short(group.shown)), *on, ": ", strong(takes), f"{numbers}."),
        lines=((f"{_capital(_cut(row.limiter))}{cause}. {_sentence(row.move)}", *where),),
        items=tuple(_finding(shown(finding)) for finding in costing(group.analysis)),
    )


def _finding(finding: ShownFinding) -> Words:
    """Write a finding of a ranked kernel: title, gain, first numbers and place."""
    place = next((place.label for place in finding.places if place.label), "")
    at = (" at ", code(_cut(place))) if place else ()
    gain = f", {finding.gain}" if finding.gain else ""
    numbers = ", ".join(map(_cut, finding.numbers[:NUMBERS_SHOWN]))
    return strong(_cut(finding.name)), f"{gain}{f': {numbers}' if numbers else ''}", *at


def _kernels(page: Content) -> Document:
    """Tabulate the kernels with most time, and sum up the others in one line."""
    if not page.kernels:
        return ()
    mixed = len(page.gpus) > 1
    columns = (
        Column("Kernel", fit="name", most=NAME_WIDTH),
        *((Column("GPU", fit="name"),) if mixed else ()),
        Column("Time", right=True),
        Column("Share", right=True),
        Column("Verdict", fit="name"),
        *(Column(heading, right=True) for heading in ("Busiest unit", "AI at DRAM", "Gain", "Limit")),
    )
    rows = [_row(group, mixed=mixed) for group in page.kernels[:MAX_ROWS]]
    rest = page.kernels[MAX_ROWS:]
    if rest:
        rows.append(_rest(rest, mixed=mixed))
    return (Heading("Kernels", 3), Table(columns, tuple(rows)))


def _row(group: KernelSummary, *, mixed: bool) -> tuple[Words, ...]:
    work, verdict = main_work(group.analysis), group.analysis.verdict
    times = f" \u00d7{group.launch_count:,}" if group.launch_count > 1 else ""
    return (
        (code(_short(group.shown)), times),
        *((code(_cut(group.gpu)),) if mixed else ()),
        fmt.duration(group.duration_ns),
        fmt.percent(group.time_share),
        _verdict(group),
        bottleneck_words(verdict.bottleneck, group.gpu, missing=fmt.MISSING),
        fmt.intensity(work.intensity(group.analysis.levels["dram"]), UNITS[work.unit]),
        fmt.factor(verdict.gain.factor if verdict.gain else None),
        limit_cell(verdict.limit),
    )


def _rest(groups: Sequence[KernelSummary], *, mixed: bool) -> tuple[str, ...]:
    return (
        fmt.count(len(groups), "other"),
        *(("",) if mixed else ()),
        fmt.duration(known_sum(group.duration_ns for group in groups)),
        fmt.percent(time_part(groups)),
        _classes(class_times_ns(launch for group in groups for launch in group.launches)),
        *[fmt.MISSING] * 4,
    )


def _verdict(group: KernelSummary) -> str:
    """Name the verdict, with what was not measured if it is open, and with its share if launches differ."""
    words = _classes(group.class_ns) if group.class_ns else group.representative.shown_class
    verdict = group.analysis.verdict
    if len(group.class_ns) <= 1 and verdict.or_bound:
        words = f"{words}, {unmeasured_words(verdict.unmeasured)}"
    return f"{words}, at the roof" if verdict.at_roof else words


def _classes(times_ns: Mapping[ShownClass, float]) -> str:
    total_ns = sum(times_ns.values())
    ordered = sorted(times_ns.items(), key=lambda item: -item[1])
    if len(ordered) == 1:
        return ordered[0][0]
    return ", ".join(f"{bound} {fmt.percent(ns / total_ns)}" for bound, ns in ordered) or fmt.MISSING


def _cautions(page: Content) -> Document:
    """Name what is in no number, and what changes a verdict."""
    lines = [*_failed(page), *_unread(page), *_flagged(page)]
    return (Heading("Caveats", 3), bullets(lines)) if lines else ()


def _failed(page: Content) -> list[Words]:
    if not page.failed_count:
        return []
    names = few([code(_short(launch.shown)) for launch in page.failed], MAX_NAMED, page.failed_count)
    why = [f"{fmt.count(amount, 'launch')}: {_cut(reason)}." for reason, amount in failure_counts(page.analyses)]
    what = "failed" if why else "failed while being profiled"
    head = f"{fmt.count(page.failed_count, 'launch')} {what}, in no number here: "
    return [(head, *names, "."), *why[:_MOST_REASONS]]


def _unread(page: Content) -> list[Words]:
    if not page.unread:
        return []
    files: list[Words] = [(_file(source), f" ({_cut(str(error))})") for source, error in page.unread]
    total = fmt.count(page.unread_count + len(page.runs), "report")
    return [(f"{page.unread_count} of {total} could not be read: ", *few(files, MAX_NAMED), ".")]


def _flagged(page: Content) -> list[Words]:
    """Explain what changes verdicts, a low clock and the most frequent flags, and name the others."""
    ordered = caveats(page)
    lines: list[Words] = [f"{fmt.count(one.launches, 'launch')}: {one.meaning}" for one in ordered[:MAX_NAMED]]
    others = ", ".join(f"{one.name} ({one.launches:,})" for one in ordered[MAX_NAMED:])
    return [*lines, f"Also, with the launches of each: {others}."] if others else lines


def _method(page: Content) -> Document:
    """Say how the numbers were made, where they came from, and by what."""
    usual = default_thresholds()
    changed = [f"{name} {value:g}" for name, value in asdict(page.limits).items() if value != getattr(usual, name)]
    reports: list[Words] = [(_file(run.source), f" ({run.digest[:12]})") for run in page.runs]
    counted = flag_counts(map(notes, timed(page.analyses)))
    about = ", ".join(f"{flag_name(flag)} ({amount:,})" for flag, amount in counted)
    origin = ("Reports, with the beginning of their SHA-256: ", *few(reports, MAX_NAMED), ".") if reports else ""
    lines: tuple[Words, ...] = (
        METHOD,
        f"About these numbers, with the launches of each note: {about}." if about else "",
        f"Thresholds changed: {', '.join(changed)}." if changed else "",
        origin,
        f"Made by rooflens {__version__}; `rooflens report` draws the page with rooflines and a card for each kernel.",
    )
    return (Folded("Method", tuple(paragraph(line) for line in lines if line)),)


SECTIONS: tuple[Section, ...] = (_head, _banner, _facts, _verdicts, _ladders, _ranking, _kernels, _cautions, _method)
"""What the Markdown holds, from top to bottom."""


def _part(groups: Sequence[KernelSummary]) -> str:
    share = time_part(groups)
    return "" if share is None else f", {fmt.percent(share)} of GPU time"


def _short(name: str) -> str:
    return fmt.cut_name(name.strip() or "(no name)", NAME_WIDTH)


def _file(path: str) -> Span:
    """Name a file without its folders, which belong to one machine and tell others nothing."""
    return code(_cut(PurePath(path.replace("\\", "/")).name))


def _cut(text: str) -> str:
    return fmt.cut_middle(text, TITLE_WIDTH)


def _sentence(text: str) -> str:
    """Write a move or a meaning as a sentence of its own."""
    words = fmt.cut_middle(text, SENTENCE_WIDTH).strip()
    return _capital(words) + ("" if words.endswith(".") or not words else ".")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
