"""What there is to say of a report, once: parts that every face writes, takes or shows beside charts.

A part is a function of a report's content and of what was asked of it; a face is the parts that it has, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from rooflens import __version__
from rooflens import format as fmt
from rooflens.model.compare.ladder import Ladder
from rooflens.model.records import timed
from rooflens.model.summary import notes, summarize
from rooflens.report.content import Content
from rooflens.report.document import (
    Block,
    Columns,
    Document,
    Folded,
    Heading,
    Paragraph,
    Span,
    Words,
    bullets,
    code,
    facts,
    few,
    joined,
    paragraph,
    strong,
)
from rooflens.report.overview.headline import headline
from rooflens.report.overview.kernels import kernels_document, not_profiled
from rooflens.report.overview.opportunities import no_line, opportunities
from rooflens.report.overview.steps import (
    MAX_NAMED,
    MOST_LINES,
    caveat_lines,
    command_line,
    cut,
    file_words,
    type_lines,
    unread_lines,
)
from rooflens.report.summary import changed_thresholds, counts, flag_counts, segments, synthetic_words
from rooflens.report.summary import facts as facts_of
from rooflens.report.words.gain_and_limit import TODAY
from rooflens.report.words.labels import BOUND_LABELS, flag_name
from rooflens.report.words.ladder import (
    held_against,
    ladder_bars,
    ladder_warnings,
    program_headline,
    subject,
    try_next,
)
from rooflens.report.words.program import program_lines

MAX_ROWS = 20
"""Kernels in the table of a file; a line counts the others."""

TITLE_WIDTH, SENTENCE_WIDTH = 200, 400

METHOD = (
    "Peaks are the reports' own, at the profiled clock. Of several launches the median one is judged and placed. "
    "AI: FLOPs over bytes moved. Gain: about what the best move brings. "
    "Limit: what no change beats that keeps the arithmetic, the types and the bytes that are needed; "
    f"{TODAY}; far: above 10x. `-` stands for what was not measured; it is never zero."
)


class OverviewRequest(Struct, frozen=True):
    """What is asked of an overview.

    Attributes:
        top: Rows of the table of each GPU; all by default.
        columns: Quantities of the table instead of its usual columns.
        each_launch: The table has a row for each launch.
        place: Paths or a store for a command that shows more; empty if there are none.
        missing: Names and shares of the kernels of timelines that no report holds.
    """

    top: int | None = None
    columns: tuple[str, ...] = ()
    each_launch: bool = False
    place: tuple[str, ...] = ()
    missing: tuple[tuple[Sequence[str], Sequence[float]], ...] = ()


Part = Callable[[Content, OverviewRequest], Document]


def title(content: Content, _: OverviewRequest) -> Document:
    """Name the report."""
    return (Heading(Span(fmt.cut_middle(content.title, TITLE_WIDTH).strip() or "rooflens", "literal")),)


def synthetic(content: Content, _: OverviewRequest) -> Document:
    """Say which data a generator wrote."""
    if not content.synthetic:
        return ()
    return (Paragraph(((strong("Synthetic data."), f" {synthetic_words(content.runs)}"),), "warning"),)


def origin(content: Content, _: OverviewRequest) -> Document:
    """Name the program, GPU, clock, and the profiler that measured."""
    lines = (" \u00b7 ".join(cut(part) for part in parts) for parts in (facts_of(content), counts(content)))
    programs = program_lines(content.unprofiled, named=len(content.runs) > 1)
    return (facts(*lines, *(_sentence(line) for line in programs)),)


def answer(content: Content, _: OverviewRequest) -> Document:
    """Give the headline."""
    return (Paragraph((headline_words(content),), "answer"),) if content.runs else ()


def headline_words(content: Content) -> Words:
    """Write the headline, with the kernel's name as code."""
    found = headline(content)
    said = strong(f"{found.joint}{found.said}" if found.name else found.said)
    return (strong(found.lead), code(found.name), said) if found.name else (said,)


def shares(content: Content, _: OverviewRequest) -> Document:
    """Divide the GPU time by verdict, on one line."""
    found: list[Words] = [
        (strong(fmt.percent(part.share)), f" {BOUND_LABELS[part.bound]}") for part in segments(content.counted)
    ]
    return (paragraph((strong("GPU time by verdict:"), " ", *joined(", ", found))),) if len(found) > 1 else ()


def ladders(content: Content, _: OverviewRequest) -> Document:
    """Show the versions of each program in the reports, and kernels that do the same work."""
    told = content.ladder or (content.ladders[0] if content.ladders_lead and len(content.ladders) == 1 else None)
    return tuple(block for one in content.ladders for block in of_ladder(one, is_alone=one is told))


def of_ladder(
    ladder: Ladder, *, is_alone: bool, links: Sequence[str] = (), way: Document = (), has_next: bool = True
) -> Document:
    """Show the versions of a program, and what to try next on the fastest.

    Args:
        ladder: The versions.
        is_alone: The headline says already which is the fastest.
        links: What each is linked to in a page; none where it is empty.
        way: Its way through a plane, which a page has beside it.
        has_next: Say what to try next.
    """
    blocks: list[Block] = [] if is_alone else [Heading((Span(program_headline(ladder), "literal"),), 3)]
    if has_next and (following := try_next(ladder)):
        blocks.append(paragraph(following))
    told = (f"{subject(ladder)}; {held_against(ladder)}", *ladder_warnings(ladder))
    said = (ladder_bars(ladder, links), Paragraph((f"{fmt.sentence_case('; '.join(told))}.",), "note"))
    return (*blocks, *((Columns((said, way), told=True),) if way else said))


def what_first(content: Content, asked: OverviewRequest, *, is_brief: bool = False) -> Document:
    """List what to do first, and the command that shows more."""
    block = opportunities(content, MOST_LINES if is_brief else None)
    if block is None:
        return ()
    if is_brief:
        block = block._replace(rows=tuple(row._replace(why=(), items=()) for row in block.rows), below=())
    command = command_line(content.first, asked.place) if asked.place and content.first else ""
    has_command = any(row.live and row.live.asks for row in block.rows)
    said = paragraph(no_line(content) if is_brief else "", "" if has_command else command)
    return (block, *((said,) if said.lines else ()))


def in_brief(content: Content, asked: OverviewRequest) -> Document:
    """List what to do first below a table that says the rest."""
    return what_first(content, asked, is_brief=True)


def kernels(content: Content, asked: OverviewRequest) -> Document:
    """Tabulate the kernels of each GPU."""
    rows = (*content.kernels, *content.failed_kernels)
    if asked.each_launch:
        rows = summarize(content.analyses, each_launch=True)
    return kernels_document(
        rows,
        asked.top,
        asked.columns,
        each=asked.each_launch,
        labels=content.report_labels if len(content.runs) > 1 else {},
        are_versions=content.ladder is not None,
    )


def most_kernels(content: Content, asked: OverviewRequest) -> Document:
    """Tabulate the first kernels, as many as a readable file has room for, and count the rest."""
    return kernels(content, replace(asked, top=asked.top or MAX_ROWS))


def missing(_: Content, asked: OverviewRequest) -> Document:
    """List the kernels of timelines that no report holds."""
    return tuple(block for names, parts in asked.missing for block in not_profiled(names, parts))


def types(content: Content, _: OverviewRequest) -> Document:
    """Say whether another type is worth it."""
    lines = type_lines(content)
    return (Heading("Another type", 3), bullets(lines)) if lines else ()


def uncertain(content: Content, _: OverviewRequest) -> Document:
    """List what is missing from all numbers, and what makes verdicts uncertain."""
    lines = [*unread_lines(content), *caveat_lines(content)]
    return (Heading("Caveats", 3), bullets(lines)) if lines else ()


def uncertain_in_brief(content: Content, _: OverviewRequest) -> Document:
    """Say the same in a few lines, where stderr names what could not be read."""
    lines = caveat_lines(content, MOST_LINES)[:MOST_LINES]
    return (Heading("Caveats", 3), bullets(lines)) if lines else ()


def method(content: Content, _: OverviewRequest) -> Document:
    """Say how the numbers were made, where they came from, and by what."""
    changed = changed_thresholds(content.limits)
    reports: list[Words] = [(file_words(run.source), f" ({run.digest[:12]})") for run in content.runs]
    counted = flag_counts(map(notes, timed(content.analyses)))
    about = ", ".join(f"{flag_name(flag)} ({amount:,})" for flag, amount in counted)
    origins = ("Reports, with the beginning of their SHA-256: ", *few(reports, MAX_NAMED), ".") if reports else ""
    lines: tuple[Words, ...] = (
        METHOD,
        f"About these numbers, with the launches of each note: {about}." if about else "",
        f"Thresholds changed: {', '.join(changed)}." if changed else "",
        origins,
        f"Made by rooflens {__version__}; `rooflens report` draws the page with rooflines and a card for each kernel.",
    )
    return (Folded("Method", tuple(paragraph(line) for line in lines if line)),)


def answer_of_several(content: Content, asked: OverviewRequest) -> Document:
    """Give the headline where it chooses among kernels: of one, what follows says the same."""
    return answer(content, asked) if len(content.kernels) + len(content.failed_kernels) > 1 else ()


FACES: Mapping[str, tuple[Part, ...]] = MappingProxyType(
    {
        "terminal": (answer, ladders, kernels, missing, in_brief, types, uncertain_in_brief),
        "table": (kernels, missing),
        "file": (
            *(title, synthetic, origin, answer, shares, ladders, what_first),
            *(most_kernels, missing, types, uncertain, method),
        ),
        "digest": (synthetic, origin, answer_of_several, shares),
    }
)
"""The parts of each face, from top to bottom: a new part is a function and an entry here."""


def overview(content: Content, face: str, asked: OverviewRequest | None = None) -> Document:
    """Say of a report what a face has of it."""
    given = asked or OverviewRequest()
    return tuple(block for part in FACES[face] for block in part(content, given))


def _sentence(text: str) -> str:
    words = fmt.cut_middle(text, SENTENCE_WIDTH).strip()
    return fmt.sentence_case(words) + ("" if words.endswith(".") or not words else ".")
