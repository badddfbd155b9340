"""What the words of the cards mean: the page of each verdict, finding and flag that is on one, once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import Markup

from rooflens.format import sentence_case
from rooflens.model.about import About, about, named
from rooflens.model.knowledge.items import KINDS
from rooflens.model.summary import Launch
from rooflens.report.content import Content
from rooflens.report.html.templates import render
from rooflens.report.page.cards.card import carded


def explanations(content: Content) -> Markup:
    """Explain the words on the cards of this page, in the order of a card."""
    groups = [
        (f"{sentence_case(one)}s", pages)
        for kind, one in KINDS.items()
        if (pages := [page for page in met(carded(content)) if page.kind == kind])
    ]
    return render("report/about", groups=groups)


def met(launches: Iterable[Launch]) -> tuple[About, ...]:
    """Return the pages about the words on the cards of these launches, in the order of the documentation."""
    addresses = {address for launch in launches for address in _addresses(launch)}
    return tuple(about(kind, name) for kind in KINDS for name in named(kind) if f"{kind}/{name}" in addresses)


def _addresses(launch: Launch) -> Iterator[str]:
    analysis = launch.analysis
    yield f"verdicts/{analysis.verdict.bound}"
    yield from (f"findings/{finding.id}" for finding in analysis.findings)
    yield from (f"flags/{flag}" for flag in analysis.flags)
