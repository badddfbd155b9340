"""The method: formulas, thresholds, where the numbers came from, and what the page cannot know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from markupsafe import Markup
from msgspec.structs import asdict

from rooflens import __version__
from rooflens.model.records import Analysis, timed
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content
from rooflens.report.html.templates import render


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
        sources=counter_sources(timed(content.analyses)),
    )


def counter_sources(analyses: Iterable[Analysis]) -> list[tuple[str, str, int]]:
    """List which stored metrics gave each counter, and for how many launches."""
    pairs: Counter[tuple[str, str]] = Counter()
    for analysis in analyses:
        pairs.update(analysis.kernel.counter_sources.items())
    return [(counter, source, count) for (counter, source), count in sorted(pairs.items())]
