"""Write the pages of what ncu prints: a page for each of its sections, with every label and rule under an anchor."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING

from generators.texts import MADE
from rooflens.model.counters.labels import SECTIONS
from rooflens.model.printed import find_label, find_rule, printed_labels
from rooflens.report.about import label_document, rule_document, section_document
from rooflens.report.document import Heading, paragraph
from rooflens.report.writers.markdown import line, to_markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflens.model.counters.labels import Section
    from rooflens.report.document import Document

_HEAD = """\
# What ncu prints

Every section, label and rule of `ncu --page details`: the metric behind a label, its formula and unit, what it leaves
out, and what to do. `rooflens about "L2 Hit Rate"` prints the same offline, for a label pasted with its unit and value
too. Labels of a chart that name a stall reason are among the [stall reasons](../stalls/index.md).
"""


_RULE, _SECTION = "{} (rule)", "{} (section of ncu)"
"""Headings of rules and sections: some are called as a label is, or as another page."""


def pages() -> dict[str, Callable[[], str]]:
    """Return the writer of each page, by its file below docs/reference."""
    return {"sections/index.md": _index, **{f"sections/{one.identifier}.md": partial(_page, one) for one in SECTIONS}}


def anchor_of(title: str) -> str:
    """Return the anchor that the site gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower().replace(" ", "-"))


@cache
def explained_on() -> Mapping[str, tuple[str, str]]:
    """Return the page below docs/reference, and the anchor on it, of each label and rule."""
    labels = ((label, found.sections[0]) for label in printed_labels() if (found := find_label(label)) is not None)
    places = {label: (f"sections/{section.identifier}.md", anchor_of(label)) for label, section in labels}
    return places | {
        identifier: (f"sections/{section.identifier}.md", anchor_of(_RULE.format(title)))
        for section in SECTIONS
        for identifier, title in section.rules.items()
    }


def _index() -> str:
    parts = [_HEAD, MADE, "## Sections", "\n".join(f"- [{one.names[0]}]({one.identifier}.md)" for one in SECTIONS)]
    for heading, names in (("Labels", printed_labels()), ("Rules", [name for one in SECTIONS for name in one.rules])):
        parts += [f"## {heading}", ", ".join(map(_link, sorted(names)))]
    return "\n\n".join(parts) + "\n"


def _page(section: Section) -> str:
    _, opening, *rest = section_document(section)
    here = f"sections/{section.identifier}.md"
    own = [name for name, (page, _) in explained_on().items() if page == here]
    labels = [(name, label_document(found)) for name in own if (found := find_label(name)) is not None]
    rules = [
        (_RULE.format(title), rule_document(found))
        for name, title in section.rules.items()
        if (found := find_rule(name)) is not None
    ]
    elsewhere = [name for name in section.labels if name not in own]
    blocks = [to_markdown((Heading(_SECTION.format(section.names[0]), 1), opening)), MADE, to_markdown(_flat(rest))]
    for heading, documents in (("Labels", labels), ("Rules", rules)):
        if documents:
            written = (to_markdown((Heading(title, 3), *_flat(one[1:]))) for title, one in documents)
            blocks += [f"## {heading}", *written]
    if elsewhere:
        blocks += ["## Labels explained elsewhere", ", ".join(map(_link, elsewhere))]
    return "\n\n".join(blocks) + "\n"


def _link(name: str) -> str:
    """Return a link to a label or rule from one of the pages."""
    page, anchor = explained_on()[name]
    return f"[{line((name,))}]({page.rpartition('/')[2]}#{anchor})"


def _flat(blocks: Document) -> Document:
    """Turn headings into paragraphs: only what is explained has an anchor."""
    return tuple(paragraph(f"{one.words}:") if isinstance(one, Heading) else one for one in blocks)
