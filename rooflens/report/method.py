"""The method: formulas, thresholds, where the numbers came from, and what the page cannot know."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from rooflens import __version__
from rooflens.model.thresholds import default_thresholds
from rooflens.report.html import render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markupsafe import Markup

    from rooflens.report.rows import Launch, Page


def method(page: Page) -> Markup:
    """Explain how each number was made."""
    limits, usual = page.limits, default_thresholds()
    changed = [f"{name} {value:g}" for name, value in asdict(limits).items() if value != getattr(usual, name)]
    return render(
        "method",
        page=page,
        limits=limits,
        changed=changed,
        version=__version__,
        sources=counter_sources(page.timed),
    )


def counter_sources(launches: Iterable[Launch]) -> list[tuple[str, str, int]]:
    """List which stored metrics gave each counter, and for how many launches."""
    pairs = Counter(
        (counter, source) for launch in launches for counter, source in launch.analysis.kernel.counter_sources.items()
    )
    return [(counter, source, count) for (counter, source), count in sorted(pairs.items())]
