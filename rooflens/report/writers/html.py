"""Write a document as a page, or as fragments of one, in which no text of a report is mark-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from rooflens.format import cut_middle, printable, unbroken
from rooflens.report.document import (
    Bar,
    Bars,
    Block,
    Bullets,
    Cell,
    Chart,
    Choice,
    Column,
    Columns,
    Control,
    Document,
    Facts,
    Folded,
    Heading,
    Item,
    Map,
    Opportunities,
    Opportunity,
    Paragraph,
    Strip,
    Table,
    Words,
    rest_note,
    spans,
)
from rooflens.report.html.document import document as framed
from rooflens.report.html.embed import json_block
from rooflens.report.html.parts import bar, meter, scrolling, shape
from rooflens.report.html.theme import LOOKS, css_class

_KINDS = {"keep": "nowrap", "name": "label", "prose": "prose"}
"""How cells of a column give way -> their class."""

_TAGS = {"code": "code", "strong": "b", "dim": "small"}

NAME_WIDTH, TITLE_WIDTH = 160, 2_000
"""Characters of a kernel's name in a table, and where a pointer rests on it."""

_ARROW = escape(" -> ")
WORTH_WORDS = 0.04
"""A strip or cell of a map with less of it has no room for its name."""

MAX_ROWS = 4_000
"""Rows of all tables of a page; those of further tables are only counted."""


def to_page(title: str, facts: Sequence[str], document: Document, synthetic: str = "") -> str:
    """Write one self-contained page; it fetches nothing, and its words and tables read without scripts.

    Args:
        title: The heading of the page.
        facts: What it is about, in a line below the heading.
        document: What it says; its highest headings come right below that of the page. The first line of an answer
            that it begins with is the headline.
        synthetic: Which data a generator wrote; empty if all was measured.
    """
    highest = min((block.level for block in _all(document) if isinstance(block, Heading)), default=2)
    writer = _Writer(lift=highest - 2, rows_left=MAX_ROWS)
    first, answer = document[0] if document else None, ""
    if isinstance(first, Heading) and _plain(first.words) == title:
        document = document[1:]
    elif isinstance(first, Paragraph) and first.kind == "answer" and first.lines:
        answer = Markup(_words(first.lines[0]))  # noqa: S704 - escaped word by word
        document = (first._replace(lines=first.lines[1:]), *document[1:])
    body = writer.blocks(document)
    has = {
        kind: any(isinstance(block, kind) for block in _all(document)) for kind in (Chart, Choice, Map, Opportunities)
    }
    return framed(
        title.replace(" -> ", " \u2192 "),
        [*facts],
        [Markup('<div class="document" id="document">\n{}\n</div>').format(Markup(body))],  # noqa: S704 - escaped below
        headline=answer,
        synthetic=synthetic,
        styles=(
            "shared/document.css",
            *(("report/program_map.css",) if has[Map] else ()),
            *(("report/first_screen.css",) if has[Opportunities] else ()),
        ),
        scripts=("shared/choice.js",) if has[Choice] else (),
        skip=("document", "Skip to what it says"),
        charts=has[Chart],
    )


def _all(document: Document) -> Iterator[Block]:
    """Yield blocks, and those that are in others."""
    for block in document:
        yield block
        if isinstance(block, Folded):
            yield from _all(block.blocks)
        elif isinstance(block, (Columns, Choice)):
            for part in block.parts if isinstance(block, Columns) else (blocks for _, blocks in block.parts):
                yield from _all(part)


def to_html(document: Document) -> str:
    """Write the blocks one after the other, as a fragment of a page."""
    return _Writer().blocks(document)


class Drawing(Struct, frozen=True):
    """A chart, ready to be placed.

    Attributes:
        key: Its name in the page: the specification is the JSON block `spec-<key>`.
        spec: What Vega-Lite draws.
        label: What it shows, for readers who do not see it.
        notes: Sentences below it.
        save: What its buttons for saving are called, before the format.
        data: The rows that it draws; None where another part of the page lists them.
        holder: What holds its data where scripts are off.
    """

    key: str
    spec: Mapping[str, Any]
    label: str
    notes: Sequence[Words] = ()
    save: str = ""
    data: Table | None = None
    holder: str = "the table below holds its data"


def drawing(figure: Drawing, caller: Callable[[], Markup] | None = None) -> Markup:
    """Write a chart, which a script draws from its JSON block; a caller adds controls before those that save it."""
    buttons = Markup("").join(
        Markup('<button type="button" class="quiet" data-export="{}"{}>{}</button>').format(
            kind, Markup(' aria-label="{} {}"').format(figure.save, kind.upper()) if figure.save else "", kind.upper()
        )
        for kind in ("svg", "png")
    )
    notes = "".join(f"<p>{_words(note)}</p>" for note in figure.notes)
    data = to_html((figure.data,)) if figure.data else ""
    return _DRAWING.format(
        controls=caller() if caller else "",
        buttons=buttons,
        key=figure.key,
        label=unbroken(figure.label),
        holder=figure.holder,
        caption=Markup(f"<figcaption>{notes}</figcaption>" if notes else ""),  # noqa: S704 - escaped word by word
        spec=json_block(f"spec-{figure.key}", figure.spec),
        data=Markup(f'<details class="data"><summary>Data of this chart</summary>{data}</details>' if data else ""),  # noqa: S704 - escaped cell by cell
    )


_DRAWING = Markup(
    '<div class="drawing">\n'
    '<div class="controls scripted" hidden>{controls}<span class="export">{buttons}</span></div>\n'
    '<figure><div class="chart" data-spec="spec-{key}" role="img" aria-label="{label}"></div>\n'
    '<noscript><p class="state">The chart needs JavaScript; {holder}.</p></noscript>{caption}</figure>\n'
    "{spec}{data}\n</div>"
)


class _Writer:
    """Writes blocks; it knows how high the headings of a document are, and how many rows a page still takes."""

    def __init__(self, lift: int = 0, rows_left: int | None = None) -> None:
        self._lift = lift
        self._rows_left = rows_left
        self._choices = 0

    def blocks(self, document: Document) -> str:
        return "\n".join(map(self._block, document))

    def _block(self, block: Block) -> str:
        if isinstance(block, Heading):
            level = block.level - self._lift
            return f"<h{level}>{_words(block.words)}</h{level}>"
        if isinstance(block, (Folded, Columns, Choice, Table)):
            return self._of_others(block)
        if isinstance(block, (Chart, Map, Opportunities, Bars)):
            return _drawn(block)
        return _leaf(block)

    def _of_others(self, block: Folded | Columns | Choice | Table) -> str:
        """Write what holds blocks, or takes of the rows that a page has room for."""
        if isinstance(block, Folded):
            first = block.blocks[0] if block.blocks else None
            if isinstance(first, Table) and first.title == block.title:
                block = block._replace(blocks=(first._replace(title="", label=_plain(first.title)), *block.blocks[1:]))
            return f"<details><summary>{_words(block.title)}</summary>{self.blocks(block.blocks)}</details>"
        if isinstance(block, Columns):
            parts = "".join(f"<div>{self.blocks(part)}</div>" for part in block.parts)
            return f'<div class="columns">{parts}</div>' if len(block.parts) > 1 else parts
        return self._choice(block) if isinstance(block, Choice) else self._table(block)

    def _table(self, table: Table) -> str:
        rows = table.rows
        if self._rows_left is not None:
            rows = rows[: max(self._rows_left, 0)]
            self._rows_left -= len(rows)
        kept = table.columns
        title = f"<caption>{_words(table.title)}</caption>" if table.title else ""
        head = "".join(_cell("th", column, column.heading, ' scope="col"') for column in kept)
        stacks = any(column.fit == "prose" for column in kept)
        body = "".join(
            f'<tr><th colspan="{len(kept)}" scope="rowgroup">{_words(row[0])}</th></tr>'
            if table.is_across(row)
            else f"<tr>{''.join(_cells(kept, row, labelled=stacks))}</tr>"
            for row in rows
        )
        label = table.label or _plain(table.title) or "Table"
        kind = ' class="stacked"' if stacks else ""
        whole = f"<table{kind}>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        notes = rest_note(table.amount or len(table.rows), len(rows), table.rest)
        return str(scrolling(printable(label), Markup(whole))) + self.blocks(notes)  # noqa: S704 - escaped cell by cell

    def _choice(self, choice: Choice) -> str:
        self._choices += 1
        name = f"choice-{self._choices}"
        controls = "".join(
            _control(control, place, f"{name}-{i}")
            for i, (control, place) in enumerate(zip(choice.controls, choice.first, strict=True))
        )
        form = f'<form class="choices scripted" hidden aria-label="Choose">{controls}</form>' if controls else ""
        parts = "".join(
            f'<div data-at="{_at(places)}"{"" if _belongs(places, choice.first) else " hidden"}>'
            f"{self.blocks(blocks)}</div>"
            for places, blocks in choice.parts
        )
        return f'<div class="choice">{form}{parts}</div>'


def _bars(block: Bars) -> str:
    """Write bars one below the other, under the heads of their columns, each with what is said of it."""
    name, *numbers = block.heads
    ends = "".join(f'<span class="{kind}">{_text(head)}</span>' for kind, head in zip(_ENDS, numbers, strict=True))
    head = f'<p class="head heads"><span class="name">{_text(name)}</span>{ends}</p>'
    rows = "".join(_barred(one, block) for one in block.bars)
    key = f'<p class="aside">{_text(block.line_words)}</p>' if block.line and block.line_words else ""
    return f'<div class="versions">{head}<ol>{rows}</ol>{key}</div>'


_ENDS = ("took", "against")


def _barred(one: Bar, block: Bars) -> str:
    name = f'<a href="#{_text(one.link)}">{_text(one.name)}</a>' if one.link else _text(one.name)
    best = f'<span class="tag">\u2605 {_text(block.best)}</span>' if one.is_best else ""
    ends = "".join(
        f'<span class="{kind}">{_text(words)}</span>'
        for kind, words in zip(_ENDS, (one.amount, one.against), strict=True)
    )
    line = f'<i class="line" style="left:{100 * block.line:.2f}%"></i>' if block.line else ""
    drawn = f'<span class="track">{bar(one.part, one.style)}{line}</span>'
    if one.instead:
        drawn = f'<span class="track off">{_text(one.instead)}</span>'
    words = "".join(f'<p class="changed">{_words(words)}</p>' for words in one.words if words)
    kind = ' class="fastest"' if one.is_best else ""
    number = f'<span class="number">{_text(one.number)}</span>'
    return f'<li{kind}><p class="head">{number}<span class="name">{name}</span>{best}{ends}</p>{drawn}{words}</li>'


def _drawn(block: Chart | Map | Opportunities | Bars) -> str:
    if isinstance(block, Map):
        return _map(block)
    if isinstance(block, Bars):
        return _bars(block)
    return _opportunities(block) if isinstance(block, Opportunities) else _chart(block)


def _map(block: Map) -> str:
    """Write a map, which needs no script."""
    strips = "".join(map(_strip, block.strips))
    rest = f'<p class="note">{_text(block.rest)}</p>' if block.rest else ""
    return (
        '<section class="program" id="map" aria-labelledby="map-title">\n'
        '<h2 class="visually-hidden" id="map-title">Where the time goes</h2>\n'
        f'<div class="map" role="img" aria-label="{_text(block.label)}">{strips}</div>{rest}\n</section>'
    )


def _strip(strip: Strip) -> str:
    filters = f' data-filter="{_text(strip.choice)}" data-value="{_text(strip.value)}"'
    title = f' title="{_text(f"{strip.label}, {strip.time}")}"' if strip.label else ""
    words = ""
    if strip.label and strip.part >= WORTH_WORDS:
        words = _text(strip.label)
    cells = "".join(map(_map_cell, strip.cells))
    return (
        f'<div class="strip"{filters} style="flex-grow:{1000 * strip.part:.2f}">'
        f'<div class="range"{title}>{words}</div><div class="cells">{cells}</div></div>\n'
    )


def _map_cell(cell: Cell) -> str:
    leads = f' data-k="{cell.key}" data-g="{cell.group}"' if cell.key else ""
    kind = cell.style if cell.style in {"elsewhere", "gap"} else f"fill {css_class(cell.style)}"
    won = f'<u style="width:{100 * cell.won:.1f}%"></u>' if cell.won else ""
    name = _text(cell.name) if cell.part >= WORTH_WORDS and cell.style not in {"elsewhere", "gap"} else ""
    return (
        f'<div class="cell"{leads} style="flex-grow:{1000 * cell.part:.2f}" title="{_text(cell.told)}">'
        f'<i class="{kind}"></i>{won}<span>{name}</span></div>'
    )


def _opportunities(block: Opportunities) -> str:
    """Write the list of what to do first, as the page of a report has it."""
    note = f'<span class="note">{_text(block.note)}</span>' if block.note else ""
    rows = "".join(_opportunity(place, row) for place, row in enumerate(block.rows, start=1))
    rest = f'<p class="aside">{_text(block.rest)}</p>' if block.rest else ""
    return (
        f'<section class="first-moves"><div class="bar-of-tools"><h2>{_text(block.title)}</h2>{note}</div>\n'
        f'<ol class="ranking">{rows}</ol>{rest}</section>'
    )


def _opportunity(place: int, row: Opportunity) -> str:
    divider = f'<p class="divider">{_text(row.divider)}</p>' if row.divider else ""
    begins = ' class="begins"' if row.divider else ""
    where = f'<code class="where">{_text(row.where)}</code>' if row.where else ""
    move = (
        f'<p class="move sentence-case"><span>{_words(row.move)}</span> {where}</p>' if row.move else f"<p>{where}</p>"
    )
    first, *others = row.why or ("",)
    facts = "".join(f"<span>{_text(fact)}</span>" for fact in others)
    return (
        f'<li{begins}>{divider}<span class="rank">{place}</span><div>'
        f'<p class="who"><span class="name">{_text(row.name)}</span> <b class="gain">{_words(row.figure)}</b></p>'
        f"{meter(row.length, ((row.style, 1.0),), row.won)}{move}"
        f'<p class="why"><small>{shape(row.style)}{_text(first)}{facts}</small></p></div></li>\n'
    )


def _chart(chart: Chart) -> str:
    spec = chart.draw()
    if spec is None:
        return '<p class="state">Nothing was measured that could be drawn here.</p>'
    holder = "the words and tables on this page hold its data"
    save = f"Save the chart {chart.key} as"
    return str(drawing(Drawing(chart.key, spec, chart.label, chart.notes, save=save, holder=holder)))


def _leaf(block: Paragraph | Bullets | Facts) -> str:
    if isinstance(block, Paragraph):
        kind = f' class="{block.kind}"' if block.kind else ""
        return f"<p{kind}>{'<br>'.join(map(_words, block.lines))}</p>" if block.lines else ""
    if isinstance(block, Bullets):
        tag = "ol" if block.numbered else "ul"
        return f"<{tag}>{''.join(map(_item, block.items))}</{tag}>"
    return _facts(block)


def _at(places: tuple[int | None, ...]) -> str:
    return ".".join("" if place is None else str(place) for place in places)


def _belongs(places: tuple[int | None, ...], chosen: tuple[int, ...]) -> bool:
    return all(place in {None, one} for place, one in zip(places, chosen, strict=True))


def _control(control: Control, first: int, name: str) -> str:
    label = f'<label for="{name}">{_text(control.label)}</label>'
    if control.slides:
        names = "".join(f"<option>{_text(one)}</option>" for one in control.names)
        return (
            f'<span class="field slides">{label}<input type="range" id="{name}" min="0" max="{len(control.names) - 1}" '
            f'step="1" value="{first}" aria-valuetext="{_text(control.names[first])}">'
            f'<output for="{name}">{_text(control.names[first])}</output><datalist>{names}</datalist></span>'
        )
    options = "".join(
        f'<option value="{i}"{" selected" if i == first else ""}>{_text(one)}</option>'
        for i, one in enumerate(control.names)
    )
    return f'<span class="field">{label}<select id="{name}">{options}</select></span>'


def _facts(facts: Facts) -> str:
    if not facts.heads:
        rows = "".join(
            f"<dt>{_text(name)}</dt><dd>{', '.join(map(_words, values))}</dd>" for name, values, _ in facts.rows
        )
        return f'<dl class="facts-list" aria-label="{_text(facts.label)}">{rows}</dl>'
    head = "".join(f'<th scope="col">{_text(one)}</th>' for one in facts.heads)
    body = "".join(
        f'<tr{" class=noticed" if noticed else ""}><th scope="row">{_text(name)}</th>{_sides(values)}</tr>'
        for name, values, noticed in facts.rows
    )
    whole = f'<table class="facts-table"><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>'
    return str(scrolling(facts.label, Markup(whole)))  # noqa: S704 - escaped cell by cell


def _sides(values: tuple[Words, ...]) -> str:
    """Write values side by side, and one that all share only once."""
    if len(values) > 1 and len(set(values)) == 1:
        return f'<td colspan="{len(values)}">{_words(values[0])}</td>'
    return "".join(f"<td>{_words(value)}</td>" for value in values)


def _item(item: Item) -> str:
    inner = f"<ul>{''.join(f'<li>{_words(words)}</li>' for words in item.items)}</ul>" if item.items else ""
    return f"<li>{'<br>'.join(map(_words, (item.words, *item.lines)))}{inner}</li>"


def _cells(columns: Sequence[Column], row: Sequence[Words], *, labelled: bool) -> Iterator[str]:
    """Write a row; where a telephone stacks its cells each has its heading."""
    for i, (column, words) in enumerate(zip(columns, row, strict=True)):
        label = f' data-label="{_text(column.heading)}"' if labelled else ""
        yield _cell("td", column, words, label) if i else _cell("th", column, words, ' scope="row"')


def _cell(tag: str, column: Column, words: Words, more: str = "") -> str:
    kind = "n" if column.right else _KINDS.get(column.fit, "")
    named = f' class="{kind}"' if kind else ""
    if column.fit == "bar" and tag == "td":
        (share,) = spans(words)
        return f'<td class="drawn"{more}>{bar(float(share.text), share.style)}</td>'
    if column.fit == "name" and len(whole := _plain(words)) > NAME_WIDTH:
        words = tuple(
            replace(span, text=cut_middle(span.text, NAME_WIDTH)) if span.style == "code" else span
            for span in spans(words)
        )
        more += f' title="{_text(cut_middle(whole, TITLE_WIDTH))}"'
    return f"<{tag}{named}{more}>{_words(words)}</{tag}>"


def _plain(words: Words) -> str:
    return "".join(span.text for span in spans(words))


def _words(words: Words) -> str:
    return "".join(_span(span.text, span.style) for span in spans(words))


def _span(text: str, style: str) -> str:
    if style == "code":
        return f"<code>{_text(text)}</code>" if text else ""
    if style == "literal":
        return _text(text).replace(_ARROW, " \u2192 ")
    parts = text.split("`")
    if len(parts) % 2 == 0:
        written = _text(text)
    else:
        written = "".join(f"<code>{_text(part)}</code>" if i % 2 else _text(part) for i, part in enumerate(parts))
    written = written.replace(_ARROW, " \u2192 ")
    if style in LOOKS:
        return f'<span class="nowrap">{shape(style)}{written}</span>'
    tag = _TAGS.get(style)
    return f"<{tag}>{written}</{tag}>" if tag else written


def _text(text: str) -> str:
    return escape(unbroken(printable(text)))
