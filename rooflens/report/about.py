"""The page of a verdict, finding, flag, stall reason, counter or label of ncu: on a terminal, in the documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from textwrap import wrap

from rooflens.format import sentence_case
from rooflens.model.about import OTHER_NAMES, About, CounterAbout, everything
from rooflens.model.catalogue import kernel_quantities
from rooflens.model.counters.labels import SECTIONS, Section
from rooflens.model.knowledge.families import COUNTER_TITLES, named_page
from rooflens.model.knowledge.items import KINDS, Word, column_heads, section_words, words
from rooflens.model.printed import PrintedLabel, RuleAbout, labels_of
from rooflens.report.document import Column, Document, Heading, Table, Words, bullets, code, paragraph
from rooflens.report.writers.markdown import to_markdown

WIDTH = 100
_MARK = re.compile(r"(?:-|\d+\.) ")


def about_document(page: About) -> Document:
    """Write a page on an item: its meaning, the counters, how to confirm it, what it does not show, what to try."""
    return (
        Heading(page.title, 1),
        paragraph(f"{sentence_case(KINDS[page.kind])} `{page.name}`. {page.meaning}"),
        bullets([*page.parts, *needs_words(page.needs)]),
        *_what_to_try(page.tries),
    )


def list_document() -> Document:
    """List the names of all pages, by kind, each with its title; the sections of ncu; and the words of the subject."""
    kinds = tuple(
        Table(
            (Column("name"), Column("title", fit="wrap")),
            tuple((page.name, page.title) for page in everything().values() if page.kind == kind),
            f"{sentence_case(one)}s",
        )
        for kind, one in KINDS.items()
    )
    rows = tuple((name, ", ".join(one.also)) for name, one in words().items())
    sections = tuple((f"sections/{one.identifier}", one.names[0]) for one in SECTIONS)
    return (
        *kinds,
        Table((Column("name"), Column("title", fit="wrap")), sections, "Sections of ncu, each with its labels"),
        Table((Column("name"), Column("also", fit="wrap")), rows, "Words"),
    )


def columns_document(name: str = "columns") -> Document:
    """Explain the heads of tables, by command: those of this name, or all `columns`; nothing if none has it."""
    asked = name.strip().casefold()
    quantities = {
        one.key.label or one.label.lower(): f"{one.key.meaning or one.label}: `--columns {one.name}`"
        for one in kernel_quantities().values()
    }
    found = (
        (command, [(head, words) for head, words in heads.items() if name == "columns" or asked == head.casefold()])
        for command, heads in (*column_heads().items(), ("analyze --columns", quantities))
    )
    columns = (Column("column", least=20), Column("meaning", fit="wrap", least=24))
    return tuple(Table(columns, tuple(rows), code(f"rooflens {command}")) for command, rows in found if rows)


def heads() -> tuple[str, ...]:
    """List the heads of all tables."""
    return tuple(dict.fromkeys(head for heads in column_heads().values() for head in heads))


def word_document(name: str, word: Word) -> Document:
    """Explain a word of the subject, say what to do about it, and name what says more."""
    also = [f"Also called: {', '.join(word.also)}."] if word.also else []
    return (
        Heading(sentence_case(name), 1),
        paragraph(_unwrapped(word.meaning)),
        *_what_to_try(word.tries),
        *((paragraph(*also, *_see_also(word.see)),) if also or word.see else ()),
    )


def label_document(label: PrintedLabel) -> Document:
    """Explain a label that ncu prints: metric, formula, unit, what it leaves out, what to do."""
    return (
        Heading(label.name, 1),
        paragraph(_unwrapped(label.words.meaning)),
        bullets([*_label_parts(label)]),
        *_what_to_try(label.words.tries),
        *map(paragraph, _see_also(label.words.see)),
    )


def _label_parts(label: PrintedLabel) -> Iterator[str]:
    if label.metrics:
        yield f"Metric: {', or '.join(f'`{name}`' for name in label.metrics)}."
    if label.formula:
        yield f"Formula: {label.formula}."
    yield f"Unit: {label.words.unit}."
    yield f"Leaves out: {_unwrapped(label.words.blind)}"
    yield f"ncu prints it under {' and '.join(map(_section_name, label.sections))}."
    if label.quantity:
        yield f"In rooflens: `{label.quantity}`."
    if label.also:
        yield f"In other versions of ncu: {_code_list(label.also)}."


def _section_name(section: Section) -> str:
    return f'"{section.names[0]}" (`--section {section.identifier}`)'


def rule_document(rule: RuleAbout) -> Document:
    """Explain a rule of ncu: what it says, what it leaves out, what to do."""
    more = (f"stalls/{OTHER_NAMES.get(rule.stall, rule.stall)}",) if rule.stall else ()
    return (
        Heading(rule.title, 1),
        paragraph(
            f"A rule of ncu, `{rule.identifier}`, under {_section_name(rule.section)}. {_unwrapped(rule.words.meaning)}"
        ),
        bullets([f"Leaves out: {_unwrapped(rule.words.blind)}"]),
        *_what_to_try(rule.words.tries),
        *map(paragraph, _see_also((*more, *rule.words.see))),
    )


def section_document(section: Section) -> Document:
    """Explain a section of ncu: what it is for, its labels and rules, how to read it."""
    words = section_words(section.identifier)
    rules = (f"`{identifier}` ({title})" for identifier, title in section.rules.items())
    parts = {"Labels": _code_list(section.labels), "Rules": ", ".join(rules)}
    return (
        Heading(section.names[0], 1),
        paragraph(f"A section of ncu, `--section {section.identifier}`. {_unwrapped(words.meaning)}"),
        *((bullets([f"{head}: {said}." for head, said in parts.items() if said]),) if any(parts.values()) else ()),
        *_what_to_try(words.tries),
    )


def _what_to_try(tries: Sequence[str]) -> Document:
    if not tries:
        return ()
    said: list[Words] = [f"{sentence_case(one)}." for one in tries]
    return Heading("What to try"), bullets(said, numbered=True)


def _see_also(see: Sequence[str]) -> list[str]:
    return [f"More: {', '.join(f'`rooflens about {one}`' for one in see)}."] if see else []


def _unwrapped(text: str) -> str:
    return " ".join(text.split())


def failures_document(failures: Sequence[tuple[str, str]]) -> Document:
    """Say what each message of ncu means, and what to do about it."""
    blocks = (
        (Heading(sentence_case(message), 2 if at else 1), paragraph(f"{sentence_case(hint)}."))
        for at, (message, hint) in enumerate(failures)
    )
    return tuple(chain.from_iterable(blocks))


def counter_document(counter: CounterAbout) -> Document:
    """Describe a counter: what it counts, which quantities come from it, the tier, and the page of its family."""
    return Heading(code(counter.name), 1), bullets([*_counter_parts(counter)])


def about_page(page: About, link: Callable[[str], str] = str) -> str:
    """Write a page as Markdown in lines of at most `WIDTH` characters, as far as identifiers allow.

    Args:
        page: What to write.
        link: Turns names of other pages into links.
    """
    document = about_document(page)
    lines = f"{to_markdown(document[:1])}\n\n{link(to_markdown(document[1:]))}".splitlines()
    marks = (_MARK.match(line) for line in lines)
    parts = (
        wrapped(line[mark.end() :] if mark else line, WIDTH, mark[0] if mark else "") or [""]
        for line, mark in zip(lines, marks, strict=True)
    )
    return "\n".join(chain.from_iterable(parts)) + "\n"


def _counter_parts(counter: CounterAbout) -> Iterator[str]:
    if counter.counts:
        yield f"{'Quantity of rooflens' if counter.sources else 'Counts'}: {counter.counts}."
    if counter.unit is not None:
        yield f"Unit: {counter.unit}."
    yield from (f"`.{form}`: {meaning}." for form, meaning in counter.forms)
    if printed := labels_of(counter.name):
        yield f"ncu prints it as {_code_list(printed)}: `rooflens about {printed[0]}`."
    if counter.stall is not None:
        yield f"Stall reason: `rooflens about stalls/{counter.stall}`."
    yield from _read_for(counter)
    yield _collected(counter)
    if counter.page != "index.md":
        yield f"More about its family in the documentation: {named_page(counter.page, COUNTER_TITLES)}"


def _read_for(counter: CounterAbout) -> Iterator[str]:
    """Say what a counter is read for, or what a quantity is read from."""
    if counter.sources:
        yield f"Read from, the first that is there: {_code_list(counter.sources)}."
    for quantity in counter.quantities:
        if not counter.sources:
            yield f"Read for `{quantity.name}`: {quantity.meaning}."
        if quantity.findings:
            yield f"Findings that need `{quantity.name}`: {_code_list(quantity.findings)}."
    if counter.near:
        yield f"No column of the table `kernels` is read from it, but from {_code_list(counter.near)}."


def _collected(counter: CounterAbout) -> str:
    if counter.always:
        return "Collected: for every kernel, whatever ncu is asked for."
    if counter.detail is not None:
        return f"Collected: from `--detail {counter.detail}` on; `rooflens metrics --chip CHIP` lists what a chip has."
    if counter.sources:
        return "Collected: in no tier; it is read where a report has it."
    return "Collected: in no tier; `rooflens profile --metrics NAME` adds it where the chip has it."


def _code_list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def needs_words(needs: Sequence[Sequence[str]]) -> Iterator[str]:
    """Say what a finding needs."""
    if needs:
        groups = (" with ".join(f"`{name}`" for name in group) for group in needs)
        yield f"Needs: {', or '.join(groups)}."


def wrapped(text: str, width: int, bullet: str = "") -> list[str]:
    """Wrap a paragraph; identifiers are never broken."""
    return wrap(
        text,
        width,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
