"""The page of a verdict, finding, flag, stall reason or counter as Markdown: on a terminal, in the documentation."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rooflens.format import sentence_case
from rooflens.model.about.pages import KINDS, every_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rooflens.model.about.counters import CounterAbout
    from rooflens.model.about.pages import About

WIDTH = 100


def about_page(page: About, width: int = WIDTH, link: Callable[[str], str] = str) -> str:
    """Write a page: what it means, the counters, how to confirm it, what it does not show, and what to try.

    Args:
        page: What to write.
        width: Characters of a line at most, as far as identifiers allow.
        link: Turns names of other pages in a text into links.
    """
    return "\n".join(_lines(page, width, link)) + "\n"


def about_list() -> str:
    """List the names of all pages, by kind, each with its title."""
    lines = []
    for kind, one in KINDS.items():
        pages = [page for page in every_page().values() if page.kind == kind]
        longest = max(len(page.name) for page in pages)
        lines += ["", f"{sentence_case(one)}s:", *(f"  {page.name:{longest}}  {page.title}" for page in pages)]
    return "\n".join(lines[1:]) + "\n"


def counter_page(counter: CounterAbout) -> str:
    """Write what is known of a counter: what it counts, what is read from it, the tier, and the page of its family."""
    lines = [f"# {counter.name}", ""]
    for part in _counter_parts(counter):
        lines += wrapped(part, WIDTH, "- ")
    return "\n".join(lines) + "\n"


def _counter_parts(counter: CounterAbout) -> Iterator[str]:
    if counter.counts:
        yield f"{'Quantity of rooflens' if counter.sources else 'Counts'}: {counter.counts}."
    if counter.unit is not None:
        yield f"Unit: {counter.unit}."
    yield from (f"`.{form}`: {meaning}." for form, meaning in counter.forms)
    if counter.stall is not None:
        yield f"Stall reason: `rooflens about stalls/{counter.stall}`."
    if counter.sources:
        yield f"Read from, the first that is there: {_names(counter.sources)}."
    for quantity in counter.quantities:
        if not counter.sources:
            yield f"Read for `{quantity.name}`: {quantity.meaning}."
        if quantity.findings:
            yield f"Findings that need `{quantity.name}`: {_names(quantity.findings)}."
    if counter.near:
        yield f"No column of the table `kernels` is read from it, but from {_names(counter.near)}."
    yield _collected(counter)
    yield f"More about its family: docs/reference/counters/{counter.page}.md"


def _collected(counter: CounterAbout) -> str:
    if counter.always:
        return "Collected: for every kernel, whatever ncu is asked for."
    if counter.detail is not None:
        return f"Collected: from `--detail {counter.detail}` on; `rooflens metrics --chip CHIP` lists what a chip has."
    if counter.sources:
        return "Collected: in no tier; it is read where a report has it."
    return "Collected: in no tier; `rooflens profile --metrics NAME` adds it where the chip has it."


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _lines(page: About, width: int, link: Callable[[str], str]) -> Iterator[str]:
    yield from (f"# {page.title}", "")
    yield from wrapped(f"For anyone who sees the {KINDS[page.kind]} `{page.name}`.", width)
    yield ""
    yield from wrapped(link(page.meaning), width)
    yield ""
    for part in (*page.parts, *needs_words(page.needs)):
        yield from wrapped(link(part), width, "- ")
    yield from ("", "## What to try", "")
    for number, one in enumerate(page.tries, 1):
        yield from wrapped(link(f"{sentence_case(one)}."), width, f"{number}. ")


def needs_words(needs: Sequence[Sequence[str]]) -> Iterator[str]:
    """Say what a finding can be told from."""
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
