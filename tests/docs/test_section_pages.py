"""Pages about what ncu prints: every label and rule that `rooflens about` explains has an address in the docs."""

from __future__ import annotations

import re
from collections import Counter

from generators.printed import anchor_of, explained_on, pages

from rooflens.model.counters.labels import SECTIONS
from rooflens.model.printed import find_label, printed_labels
from rooflens.report.about import label_document
from rooflens.report.writers.markdown import to_markdown

WRITTEN = {name: make() for name, make in pages().items()}


def test_each_label_and_rule_has_one_anchor() -> None:
    """The heading of a label or rule stands once, on one page, and the list of all leads to it."""
    rules = [name for section in SECTIONS for name in section.rules]
    assert explained_on().keys() == {*printed_labels(), *rules}
    headings = {page: re.findall(r"^#+ (.*)$", text, re.MULTILINE) for page, text in WRITTEN.items()}
    anchors = {page: Counter(map(anchor_of, titles)) for page, titles in headings.items()}
    assert [name for name, (page, anchor) in explained_on().items() if anchors[page][anchor] != 1] == []
    index = WRITTEN["sections/index.md"]
    links = {f"({page.removeprefix('sections/')}#{anchor})" for page, anchor in explained_on().values()}
    assert sorted(link for link in links if link not in index) == []


def test_the_pages_say_what_about_says() -> None:
    """Metric, formula, unit and blind spot of a label are those that `rooflens about` prints: one table feeds both."""
    said = {label: label_document(found)[1:3] for label in printed_labels() if (found := find_label(label)) is not None}
    assert len(said) > 100
    assert [
        label for label, blocks in said.items() if to_markdown(blocks) not in WRITTEN[explained_on()[label][0]]
    ] == []
