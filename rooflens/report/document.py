"""An answer as blocks, built once from records; `writers` show it on a terminal, as Markdown and as a page.

A terminal and Markdown say what has to be read. Pages have the room for what is looked at and looked up: `Chart`,
`Facts`, `Columns`, `Choice`, `Map`, `Picture`, `OnPage`, further columns of a table and further rows; `for_text` leaves
these out.

Words are sentences of ours, in which text between backticks is code, or spans: whatever comes out of a report is in
a `code` span or is escaped by the writer, and is never mark-up.
The records are of the standard library, so that a machine that only collects shows lists, too; blocks are named tuples,
as every command defines them, and twenty dataclasses took a twentieth of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

Style = Literal[
    "plain",
    "strong",
    "dim",
    "code",
    "literal",
    "memory",
    "memory?",
    "compute",
    "compute?",
    "latency",
    "latency?",
    "overhead",
    "overhead?",
    "balanced",
    "unknown",
    "communication",
]
"""How a span is set: `code` and `literal` hold text as it is; those named after verdicts, as they are shown, and after
regimes are coloured on a terminal, and have their sign before them on a page."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line.

    Attributes:
        link: Part of the page that it leads to; texts have none.
    """

    text: str
    style: Style = "plain"
    link: str = ""


Words: TypeAlias = "str | Span | tuple[str | Span, ...]"


def code(text: str) -> Span:
    """Mark a name, path or command as code."""
    return Span(text, "code")


def strong(text: str, link: str = "") -> Span:
    """Set a sentence in bold."""
    return Span(text, "strong", link)


def spans(words: Words) -> tuple[Span, ...]:
    """Split a line into spans; a sentence is one span."""
    parts = words if isinstance(words, tuple) else (words,)
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def joined(separator: str, several: list[Words]) -> tuple[str | Span, ...]:
    """Join lines to one."""
    found: list[str | Span] = []
    for words in several:
        found += [*([separator] if found else []), *spans(words)]
    return tuple(found)


def few(names: Sequence[Words], shown: int, amount: int | None = None) -> tuple[str | Span, ...]:
    """Name the first few of several, and count the others of `amount`, by default of those given."""
    more = (len(names) if amount is None else amount) - min(len(names), shown)
    return *joined(", ", [*names[:shown]]), f" and {more:,} more" if more > 0 else ""


class Heading(NamedTuple):
    """A heading; level 1 is that of the whole."""

    words: Words
    level: int = 2


class Paragraph(NamedTuple):
    """One or more lines; `facts` keep their lines separate, a `warning` is emphasised, a `note` is muted.

    An `answer` is what was asked for: a page sets it large. A `full-name` is the kernel's, which its scripts read.
    """

    lines: tuple[Words, ...]
    kind: Literal["", "facts", "warning", "note", "answer", "full-name"] = ""


class Item(NamedTuple):
    """One entry of a list: its line, further lines below it, and a list of its own."""

    words: Words
    lines: tuple[Words, ...] = ()
    items: tuple[Words, ...] = ()


class Bullets(NamedTuple):
    """A list; numbered where its order says something."""

    items: tuple[Item, ...]
    numbered: bool = False


SPARE = 3
"""Columns worth no more than this are shown only where they hold something and nothing is cut for them."""


class Column(NamedTuple):
    """One column of a table.

    Attributes:
        right: Set to the right, as numbers are.
        fit: How a cell gives way on a narrow terminal: a number is kept; of a `name` the middle of its first span is
            cut, so that rows stay different; of code the `end` is cut; other texts `wrap`, and `prose` goes below its
            row where it has no room beside it. A page draws a `bar` of a share, 0 to 1, in the colour of its style.
        worth: Where room lacks, the columns worth least leave first, but never the first column, nor prose.
        least: Characters that a column which gives way keeps before another one leaves.
        most: Characters of a cell for which columns worth least leave; 0 for any number.
        page: Only pages show it.
        about: What its heading means, which a page shows where a pointer rests; empty for nothing.
    """

    heading: str
    right: bool = False
    fit: Literal["keep", "name", "end", "wrap", "prose", "bar"] = "keep"
    worth: int = 5
    least: int = 12
    most: int = 0
    page: bool = False
    about: str = ""


class Table(NamedTuple):
    """Rows of as many cells as there are columns; a row of one cell goes across all of them.

    Attributes:
        shown: How many of the rows a terminal and Markdown show; 0 for all.
        amount: How many rows there are, of which `rows` may be the first; 0 where `rows` are all.
        rest: What the rows have in common that are not shown: ` with smaller differences`.
        label: What it holds, for readers who do not see it; by default its title.
        marks: What the rows are called in lanes of the same page, row by row, one or more names with blanks between;
            empty if they are in none.
        within: The place of the row that each row opens from, -1 for one that always shows; empty if none opens.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Words, ...], ...]
    title: Words = ""
    shown: int = 0
    amount: int = 0
    rest: str = ""
    label: str = ""
    marks: tuple[str, ...] = ()
    within: tuple[int, ...] = ()

    def is_across(self, row: Sequence[Words]) -> bool:
        """Return whether a row is one cell across all columns."""
        return len(row) == 1 < len(self.columns)

    def without_empty(self, missing: str = "") -> Table:
        """Leave out the columns in which every cell is empty, or says that a value is missing."""
        blank: tuple[Words, ...] = ("", (), missing)
        kept = [place for place in range(len(self.columns)) if any(row[place] not in blank for row in self.rows)]
        return self._replace(
            columns=tuple(self.columns[place] for place in kept),
            rows=tuple(tuple(row[place] for place in kept) for row in self.rows),
        )


class Bar(NamedTuple):
    """One of several that are set against one another.

    Attributes:
        number: Its place, as charts beside it call it.
        amount: What it takes, in words.
        against: How that compares.
        part: Its part of the longest bar, 0 to 1; 0 for none.
        style: The colour of its bar.
        words: What is said of it, below its bar.
        is_best: It is the one to look at.
        link: Part of the page that its name leads to; empty for none.
        instead: What stands in the place of its bar, where it is on no scale with the others; empty for a bar.
    """

    name: str
    number: str
    amount: str
    against: str
    part: float
    style: Style
    words: tuple[Words, ...] = ()
    is_best: bool = False
    link: str = ""
    instead: str = ""


class Bars(NamedTuple):
    """Several set against one another: bars on a page, a table elsewhere.

    Attributes:
        heads: Over the names, the amounts, and how these compare.
        table: The same as a table.
        best: What the one to look at is called: `fastest`.
        line: Part of the longest bar at which all of them are crossed by a line; 0 for none.
        line_words: What that line is.
    """

    heads: tuple[str, str, str]
    bars: tuple[Bar, ...]
    table: Table
    best: str
    line: float = 0.0
    line_words: str = ""


class Folded(NamedTuple):
    """Blocks that are read by few; where nothing folds they stand below their title.

    Attributes:
        on_text: False if a terminal and Markdown show the blocks as they are, without the title.
    """

    title: Words
    blocks: Document
    on_text: bool = True


class OnPage(NamedTuple):
    """Blocks that only pages show, as texts say in a line what matters of them, or other blocks instead."""

    blocks: Document
    on_text: Document = ()


class Panels(NamedTuple):
    """Parts that a page sets side by side as far as there is room, and a text one below the other."""

    parts: tuple[Document, ...]


class Option(NamedTuple):
    """A move that a reader of a page can choose.

    Attributes:
        figure: What it brings; empty for what cannot be chosen, as nothing is known of it.
        said, sure: What the headline says of it, and how sure that is.
        where: File and line.
        note: Why nothing is known of it, or what it changes.
    """

    words: Words
    figure: str
    said: str
    sure: str
    where: str
    note: str = ""


class Moves(NamedTuple):
    """What to try, in its order: a page that shows a kernel alone lets a reader choose among the options."""

    lines: tuple[Words, ...]
    options: tuple[Option, ...] = ()


class Row(NamedTuple):
    """One line, instruction or loop of a kernel.

    Attributes:
        share: Of warps' time or of what was executed, 0 to 1.
        code: The source line or instruction; empty if unknown.
        notes: What its warps wait for, and what its accesses move beyond their need.
        loop: Number of the loop that it is, in the kernel; empty for lines and straight parts.
        within: Numbers of the loops that it stands in, with blanks between.
    """

    label: str
    share: float
    code: str
    notes: tuple[str, ...]
    loop: str = ""
    within: str = ""


class Lines(NamedTuple):
    """The hottest places of a kernel, or its loops: with a gutter of heat on a page, as a table elsewhere.

    Attributes:
        key: Of the launch, which a chosen loop belongs to.
        table: The same as a table.
    """

    title: str
    rows: tuple[Row, ...]
    key: str
    table: Table


class ExcerptLine(NamedTuple):
    """A line of a source file.

    Attributes:
        number: From 1; 0 for a line of a sketch.
        kind: `here` is what the excerpt is about, `new` a sketch of what it becomes.
    """

    number: int
    text: str
    kind: Literal["", "here", "new"] = ""

    @property
    def mark(self) -> str:
        """The sign before it in a text."""
        return {"here": ">", "new": "+"}.get(self.kind, " ")


class Excerpt(NamedTuple):
    """Lines of a source file, as they are, and what a sketch makes of them."""

    title: Words
    lines: tuple[ExcerptLine, ...]

    def rows(self) -> Iterator[str]:
        """Yield each line with its mark and number, as texts show them."""
        width = max((len(str(line.number)) for line in self.lines), default=1)
        for line in self.lines:
            yield f"{line.mark} {line.number or ''!s:>{width}}  {line.text}"


class Picture(NamedTuple):
    """A drawing without script on a page; the words beside it, or other blocks, say the same.

    Attributes:
        kind: Which macro of the figures draws it.
        make: Makes what that draws, once a page is written; None if there is nothing.
    """

    kind: Literal["memory", "course", "occupancy"]
    make: Callable[[], Any]
    words: tuple[str, ...] = ()


class Chart(NamedTuple):
    """A drawing on a page; all that it shows stands in words or tables beside it.

    Attributes:
        key: Its name in the page.
        draw: Makes what Vega-Lite draws, once a page is written; None if nothing has a place.
        label: What it shows, for readers who do not see it.
        notes: Sentences below it.
    """

    key: str
    draw: Callable[[], Mapping[str, Any] | None]
    label: str
    notes: tuple[Words, ...] = ()


class Facts(NamedTuple):
    """Values by their names, side by side where there are several `heads`.

    Attributes:
        rows: Name, a value for each head, and whether it is to be noticed.
    """

    label: str
    rows: tuple[tuple[str, tuple[Words, ...], bool], ...]
    heads: tuple[str, ...] = ()


class Columns(NamedTuple):
    """Parts of a page, side by side if there is room.

    Attributes:
        told: A terminal and Markdown show the first part.
    """

    parts: tuple[Document, ...]
    told: bool = False


class Control(NamedTuple):
    """What a reader chooses among: by a slider where the names have an order, else from a list."""

    label: str
    names: tuple[str, ...]
    slides: bool = False


class Choice(NamedTuple):
    """Parts of a page that a choice shows: all stand in the page, and the others are hidden.

    Attributes:
        parts: Blocks by the place of each control's name that they belong to; None if they belong to all names.
        first: The places that are chosen first.
    """

    controls: tuple[Control, ...]
    parts: tuple[tuple[tuple[int | None, ...], Document], ...]
    first: tuple[int, ...]


class Cell(NamedTuple):
    """A kernel within a strip of a map, or time in which none ran.

    Attributes:
        name: Stands below it where there is room.
        told: What a pointer that rests on it reads.
        part: Its part of the map's time, 0 to 1.
        won: The part of its own time that can be won; 0 if that is unknown.
        style: Its class; `elsewhere` for what the page does not hold, `gap` where no kernel ran.
        key, group: The launch and the kernel of the page that it leads to; empty for none.
    """

    name: str
    told: str
    part: float
    won: float
    style: Style | Literal["elsewhere", "gap"]
    key: str = ""
    group: str = ""


class Strip(NamedTuple):
    """A program, range or module of a map, with its kernels.

    Attributes:
        label: Stands above it where there is room; empty for none.
        time: How long it takes, in words.
        choice, value: The filter of the page that a click on it sets, and what that takes; empty for none.
    """

    label: str
    time: str
    part: float
    cells: tuple[Cell, ...]
    choice: str = ""
    value: str = ""


class Map(NamedTuple):
    """Where the time goes, as a strip on a page; a list or table of the page says the same.

    Attributes:
        label: What it shows, for readers who do not see it.
        rest: What is not drawn; empty for nothing.
    """

    strips: tuple[Strip, ...]
    label: str
    rest: str = ""


class Lanes(NamedTuple):
    """When each stream of one or more programs ran what, drawn on a page; its tables say the same.

    Attributes:
        data: What the script draws.
        label: What it shows, for readers who do not see it.
        note: What is merged or left out; empty for nothing.
        legend: What its colours stand for: the class of each in style sheets, and words.
    """

    data: Mapping[str, Any]
    label: str
    note: str = ""
    legend: tuple[tuple[str, str], ...] = ()


class Pick(NamedTuple):
    """A list of a page's filters: the key of the page's state that it sets, and values to choose from."""

    key: str
    label: str
    values: tuple[str, ...]


class Filtered(NamedTuple):
    """A table below filters of a page, which also search it; what they leave stands in the address of the page.

    Attributes:
        title: Of the part of the page.
        table: The table, whose rows have marks.
        classes: Classes that can be shown alone.
        picks: What else its rows can be chosen by.
        items: What the filters read of each row: its mark as `k`, its class as `bound`, and a list for each pick.
        shown: Rows that a page shows at first, with what opens from them.
    """

    title: str
    table: Table
    classes: tuple[str, ...]
    picks: tuple[Pick, ...]
    items: tuple[Mapping[str, Any], ...]
    shown: int


class Fact(NamedTuple):
    """A fact of a row of what to do first.

    Attributes:
        kind: `sure` says how sure the row is; what is `fine` only a row of full size has; `took` follows the filters.
    """

    words: str
    kind: Literal["", "sure", "fine", "took"] = ""


class Member(NamedTuple):
    """A kernel of a row that one move makes of many; `link` is the launch of the page that its name leads to."""

    name: str
    figure: str
    link: str


class Live(NamedTuple):
    """What a page must know of a row so that it follows the filters.

    Attributes:
        group, launch: The kernel and the launch of the page that it is about.
        part: The verdict of the launches it speaks of; empty if it speaks of all of the kernel's.
        gain, how: The factor of its move, and how sure the time after it is; 0 if that is unknown.
        whole_ns, whole: Time and name of what its share is of, if that is a report of its own; 0 if it is the page.
        is_hidden: It comes up where filters leave it among the first.
        is_brief: It is small: it is not worth a row of its own, or the list has enough of them.
        asks: Its move is to collect more.
        asks_again: A row above it, or a ladder above the list, says so already.
        head: The headline where it is the first that filters leave: what stands before the name, the name, what joins
            it to the rest, and the rest.
    """

    group: str
    launch: str
    part: str = ""
    gain: float = 0.0
    how: str = ""
    whole_ns: float = 0.0
    whole: str = ""
    is_hidden: bool = False
    is_brief: bool = False
    asks: bool = False
    asks_again: bool = False
    head: tuple[str, str, str, str] = ("", "", "", "")


class Opportunity(NamedTuple):
    """A row of what to do first: a bar of today's time, the part that can be won hatched at its end.

    Attributes:
        name: The kernel, cut to what a row has room for.
        figure: What becomes of its time.
        length: Its time as a part of the longest one's, which its bar has, 0 to 1.
        style: Its class.
        won: The part of its time that can be won, 0 to 1; 0 if that is unknown.
        move: What to do.
        where: The place that this is about.
        why: Further facts, the one that its sign stands for first.
        divider: What parts it from the rows above, if it begins a part of the list; empty for nothing.
        rank: Its number; rows that speak of parts of one kernel share one.
        title: Its whole name, if that is another one.
        parts: What its bar is made of, which sums to 1; by default of its style.
        members: The kernels that it stands for, the first few; `more` counts the others.
        items: What texts list below it.
        live: What scripts need of it; None where nothing filters.
    """

    name: str
    figure: str
    length: float
    style: Style
    won: float
    move: Words = ""
    where: str = ""
    why: tuple[Fact, ...] = ()
    divider: str = ""
    rank: int = 0
    title: str = ""
    parts: tuple[tuple[Style, float], ...] = ()
    members: tuple[Member, ...] = ()
    more: int = 0
    items: tuple[Words, ...] = ()
    live: Live | None = None


class Below(NamedTuple):
    """A line below a list of what to do first.

    Attributes:
        words: Follow the filters.
        after: What stands behind them, with the anchor that it links to.
        key: What scripts call it; empty if nothing changes it.
        is_hidden: It comes up where filters make it true.
    """

    words: str
    after: tuple[str, str, str] = ("", "", "")
    key: str = ""
    is_hidden: bool = False


class Opportunities(NamedTuple):
    """What to do first: bars on a page, a numbered list in texts that have no table of the same rows.

    Attributes:
        note: What the bars are.
        state: Stands above the list; empty for nothing.
        below: What stands below the list.
        method: How it is ranked, folded; empty for nothing.
        is_told: False if a table says the same in texts.
        has_asked: What to collect is said above the list already.
        is_untold: No row has a move of its own, as `state` says the one of all.
    """

    title: str
    rows: tuple[Opportunity, ...]
    note: str = ""
    state: Words = ""
    below: tuple[Below, ...] = ()
    method: str = ""
    is_told: bool = True
    has_asked: bool = False
    is_untold: bool = False


Block: TypeAlias = (
    "Heading | Paragraph | Bullets | Table | Bars | Folded | OnPage | Panels | Moves | Lines | Excerpt | Picture "
    "| Chart | Facts | Columns | Choice | Map | Lanes | Filtered | Opportunities"
)
Document: TypeAlias = "tuple[Block, ...]"


def for_text(document: Document) -> Iterator[Heading | Paragraph | Bullets | Table | Folded | Excerpt]:
    """Leave out what only pages show, and count the rows below a table that it does not show."""
    for block in document:
        if isinstance(block, Table):
            yield from _table_for_text(block)
        elif (instead := _instead(block)) is not None:
            yield from for_text(instead)
        elif isinstance(block, (Heading, Paragraph, Bullets, Folded, Excerpt)):
            yield block


def _table_for_text(table: Table) -> Iterator[Table | Paragraph]:
    kept = [i for i, column in enumerate(table.columns) if not column.page]
    rows = table.rows[: table.shown or None]
    cells = rows
    if len(kept) < len(table.columns):
        cells = tuple(row if table.is_across(row) else tuple(row[i] for i in kept) for row in rows)
    yield table._replace(columns=tuple(table.columns[i] for i in kept), rows=cells)
    yield from rest_note(table.amount or len(table.rows), len(rows), table.rest)


def _instead(block: Block) -> Document | None:
    """Return the blocks that a text has in the place of one that pages draw or set otherwise; None for the block."""
    if isinstance(block, (Bars, Lines)):
        return (block.table,)
    if isinstance(block, OnPage):
        return block.on_text
    if isinstance(block, Panels):
        return tuple(inner for part in block.parts for inner in part)
    if isinstance(block, (Moves, Opportunities)):
        return tuple(_numbered_blocks(block))
    if isinstance(block, Folded) and not block.on_text:
        return block.blocks
    return block.parts[0] if isinstance(block, Columns) and block.told else None


def _numbered_blocks(block: Moves | Opportunities) -> Iterator[Heading | Paragraph | Bullets]:
    """Write what to do first as a numbered list: the rows of full size, and what stands below them."""
    if isinstance(block, Moves):
        yield bullets([*block.lines], numbered=True)
        return
    if not block.is_told:
        return
    rows = [row for row in block.rows if row.live is None or not (row.live.is_hidden or row.live.is_brief)]
    items = tuple(_as_item(row) for row in rows if not row.live or not (row.live.part or row.live.asks_again))
    if items or block.state:
        yield Heading(block.title, 3)
    if block.state:
        yield Paragraph((block.state,))
    if items:
        yield Bullets(items, numbered=len(items) > 1)
    for one in block.below:
        if one.words and not one.is_hidden:
            before, told, _ = one.after
            yield Paragraph((f"{one.words}{before}{told}",))


def _as_item(row: Opportunity) -> Item:
    name = (Span(row.name, "code"), ": ", Span(row.figure, "strong"))
    where = (" (", Span(row.where, "code"), ")") if row.where else ()
    move = (". ", *spans(row.move), *where) if row.move else where
    why = ", ".join(fact.words for fact in row.why)
    return Item((*name, *move), (why,) if why else (), row.items)


def paragraph(*lines: Words) -> Paragraph:
    """Make a paragraph of the lines that are not empty."""
    return Paragraph(tuple(line for line in lines if line))


def facts(*lines: Words) -> Paragraph:
    """Make a paragraph of the lines that are not empty, each a line of its own."""
    return Paragraph(tuple(line for line in lines if line), "facts")


def rest_note(amount: int, shown: int, words: str) -> tuple[Paragraph, ...]:
    """Count below a table the rows that it does not show; nothing if it shows all."""
    return (Paragraph((f"and {amount - shown} more{words}",), "note"),) if amount > shown else ()


def bullets(lines: list[Words], *, numbered: bool = False) -> Bullets:
    """Make a list of single lines."""
    return Bullets(tuple(Item(line) for line in lines), numbered)
