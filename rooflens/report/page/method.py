"""What the words of the cards mean, and how the numbers were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from markupsafe import Markup
from msgspec.structs import asdict

from rooflens import __version__
from rooflens.format import sentence_case
from rooflens.model.about import About, about, named
from rooflens.model.knowledge.items import KINDS
from rooflens.model.records import Analysis, timed
from rooflens.model.summary import Launch
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content
from rooflens.report.page.cards.card import carded
from rooflens.report.summary import facts
from rooflens.report.templates import render


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
    addresses = set()
    for launch in launches:
        analysis = launch.analysis
        addresses.add(f"verdicts/{analysis.verdict.bound}")
        addresses.update(f"findings/{finding.id}" for finding in analysis.findings)
        addresses.update(f"flags/{flag}" for flag in analysis.flags)
    return tuple(about(kind, name) for kind in KINDS for name in named(kind) if f"{kind}/{name}" in addresses)


def method(content: Content) -> Markup:
    """Explain how each number was made."""
    limits, usual = content.limits, default_thresholds()
    changed = [f"{name} {value:g}" for name, value in asdict(limits).items() if value != getattr(usual, name)]
    return render(
        "report/method",
        content=content,
        limits=limits,
        changed=changed,
        version=__version__,
        facts=facts(content),
        sources=counter_sources(timed(content.analyses)),
    )


def counter_sources(analyses: Iterable[Analysis]) -> list[tuple[str, str, int]]:
    """List which stored metrics gave each counter, and for how many launches."""
    pairs: Counter[tuple[str, str]] = Counter()
    for analysis in analyses:
        pairs.update(analysis.kernel.counter_sources.items())
    return [(counter, source, count) for (counter, source), count in sorted(pairs.items())]
