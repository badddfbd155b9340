"""A comparison for a pull request on GitHub: Markdown for the job summary and a comment, and annotations of lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from rooflens.format import count, cut_name, duration, percent, plain_name
from rooflens.model.compare.compare import Change
from rooflens.model.compare.gate import Compared, Gate, Gated
from rooflens.model.compare.ladder import Sides
from rooflens.model.compare.lines import SlowerLine, slower_lines
from rooflens.model.compare.sentences import growth_words
from rooflens.report.ci.annotations import Annotation, inert
from rooflens.report.ci.places import in_checkout
from rooflens.report.document import Column, Document, Heading, Paragraph, Table, code, paragraph, strong
from rooflens.report.text.comparison import comparison_document, gate_document
from rooflens.report.writers.markdown import to_markdown

MAX_CHARACTERS = 60_000
"""A comment holds 65,536, a step's summary 1 MiB."""

MAX_ANNOTATIONS = 10
"""GitHub shows so many of each level and step."""

NAME_WIDTH = 60
"""Characters of a kernel's name in a table of lines."""


class LineOf(Struct, frozen=True):
    """A line that got slower, and its kernel.

    Attributes:
        is_judged: Both sides hold several recordings, and the kernel is slower beyond their noise.
    """

    change: Change
    line: SlowerLine
    is_judged: bool

    @property
    def place(self) -> tuple[str, int]:
        """File as the report has it, and number."""
        return self.line.hotspot.file or "", self.line.hotspot.line or 0

    @property
    def words(self) -> str:
        """Say what it took and takes."""
        before = duration(self.line.before_ns) if self.line.before_ns is not None else "not among the hottest before"
        return f"{before} -> {duration(self.line.after_ns)}"


def hot_lines(compared: Sequence[Compared], floor_ns: float) -> list[LineOf]:
    """Find the lines of all slower kernels, most time lost first: those judged, then those of single runs.

    Slower is what a gate would call so that failed at the smallest change that counts.
    """
    found = []
    for one in compared:
        for judged in Gate(one.comparison.threshold, per_kernel=True, floor_ns=floor_ns).judge([one]).judged:
            timing, change = judged.timing, judged.change
            grew = (timing.change or 0.0) > judged.fail_on and timing.lost_ns > judged.floor_ns
            if change is not None and (judged.outcome == "slower" or (judged.outcome == "single" and grew)):
                found += [LineOf(change, line, judged.outcome == "slower") for line in slower_lines(change)]
    return sorted(found, key=lambda one: (not one.is_judged, -one.line.lost_ns))


def annotations_of(lines: Sequence[LineOf]) -> list[Annotation]:
    """Annotate each line once, where it lost most: a warning where its kernel was judged, a notice for single runs."""
    places: dict[tuple[str, int], LineOf] = {}
    for one in lines:
        places.setdefault(one.place, one)
    return [_annotation(one) for one in list(places.values())[:MAX_ANNOTATIONS]]


def _annotation(one: LineOf) -> Annotation:
    kernel = f"the kernel {growth_words(one.change.speed)}"
    single = "" if one.is_judged else f"; {one.change.speed.runs}, so that noise is not known"
    same = "" if one.line.by_text else "; lines are matched by number"
    file, line = one.place
    return Annotation(
        level="warning" if one.is_judged else "notice",
        file=file,
        line=line,
        title=f"slower: {plain_name(one.change.name)}",
        text=f"this line: {one.words}; {kernel}{single}{same}",
    )


def to_summary(
    compared: Sequence[Compared], gated: Gated | None, sides: Sides, lines: Sequence[LineOf], root: Path
) -> str:
    """Write the job summary: the gate first, then what became of each program, and the lines that got slower.

    Programs with small differences give way where a comment would be too long.
    """
    pairs = [one for one in compared if not sides.climbs(one.comparison)]
    ordered = sorted(pairs, key=lambda one: -abs(one.comparison.total.lost_ns))
    ladders = comparison_document([one for one in compared if sides.climbs(one.comparison)], None, sides)
    gate = gate_document(gated) if gated else ()
    texts = [to_markdown((Heading("rooflens"), *gate, *_lines_blocks(lines, root), *ladders))]
    size = len(texts[0])
    for shown, one in enumerate(ordered):
        text = to_markdown(comparison_document([one]))
        if shown and size + len(text) > MAX_CHARACTERS:
            texts.append(f"and {count(len(ordered) - shown, 'program')} with smaller differences: truncated")
            break
        texts.append(text)
        size += len(text)
    return inert("\n\n".join(texts))


def _lines_blocks(lines: Sequence[LineOf], root: Path) -> Document:
    """List the lines that got slower; nothing where none did."""
    if not lines:
        return ()
    rows = tuple(
        (
            code(f"{in_checkout(one.place[0], root) or one.place[0]}:{one.place[1]}"),
            code(cut_name(plain_name(one.change.name), NAME_WIDTH)),
            one.words,
            percent(one.line.share),
        )
        for one in lines[:MAX_ANNOTATIONS]
    )
    columns = (Column("line"), Column("kernel"), Column("time"), Column("of the time lost", right=True))
    blocks = (paragraph(strong("Lines that got slower")), Table(columns, rows))
    left = len(lines) - MAX_ANNOTATIONS
    return (*blocks, Paragraph((f"and {count(left, 'line')} more",))) if left > 0 else blocks
