"""What the words of the cards mean, and how the numbers were made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from markupsafe import Markup

from rooflens import __version__
from rooflens.format import sentence_case
from rooflens.model.about import about, named
from rooflens.model.knowledge.items import KINDS
from rooflens.model.records import timed
from rooflens.report.content import Content
from rooflens.report.summary import changed_thresholds, facts
from rooflens.report.templates import render


def explanations(content: Content) -> Markup:
    """Explain the words on the cards of this page, in the order of a card and of the documentation."""
    words: defaultdict[str, set[str]] = defaultdict(set)
    for launch in content.carded:
        words["verdicts"].add(launch.analysis.verdict.bound)
        words["findings"].update(finding.id for finding in launch.analysis.findings)
        words["flags"].update(launch.analysis.flags)
    groups = [
        (f"{sentence_case(one)}s", pages)
        for kind, one in KINDS.items()
        if (pages := [about(kind, name) for name in named(kind) if name in words[kind]])
    ]
    return render("report/page#about", groups=groups)


def method(content: Content) -> Markup:
    """Explain how each number was made."""
    return render(
        "report/page#method",
        content=content,
        limits=content.limits,
        changed=changed_thresholds(content.limits),
        version=__version__,
        facts=facts(content),
        sources=counter_sources(one.kernel.counter_sources for one in timed(content.analyses)),
    )


def counter_sources(launches: Iterable[Mapping[str, str]]) -> list[tuple[str, str, int]]:
    """List which stored metrics gave each counter, and for how many launches."""
    pairs: Counter[tuple[str, str]] = Counter()
    for sources in launches:
        pairs.update(sources.items())
    return [(counter, source, count) for (counter, source), count in sorted(pairs.items())]
