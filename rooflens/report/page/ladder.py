"""The ladder of a program's versions as a part of a page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rooflens.format import sentence_case
from rooflens.model.compare.ladder import Ladder
from rooflens.model.summary import asks_first
from rooflens.report.content import Content
from rooflens.report.templates import render
from rooflens.report.words.ladder import headline, ladder_rows, subject, try_next


def ladder_section(
    ladder: Ladder, links: Sequence[str] = (), notes: Sequence[str] = (), *, named: bool = False
) -> Markup:
    """Show the versions of a program one below the other, and what to try next on the fastest.

    Args:
        ladder: The versions.
        links: What each is linked to in the page; none where it is empty.
        notes: What to keep in mind.
        named: Put the program's name into the heading.
    """
    rows = ladder_rows(ladder.rungs, ladder.threshold)
    return render(
        "report/versions",
        headline=f"{ladder.program}: {headline(ladder)}" if named else sentence_case(headline(ladder)),
        rows=list(zip(rows, links or [""] * len(rows), strict=True)),
        subject=subject(ladder),
        next_move="" if named and _asks(ladder) else try_next(ladder),
        named=named,
        notes=notes,
    )


def _asks(ladder: Ladder) -> bool:
    """Return whether what comes next is to collect more, which a page says once."""
    fastest = ladder.fastest
    return fastest is not None and fastest.analysis is not None and asks_first(fastest.analysis.verdict)


def ladders(content: Content) -> Markup:
    """Show the other ladders that the reports hold: programs among others, and kernels that do the same work."""
    others = [one for one in content.ladders if one is not content.ladder]
    return Markup("\n").join(ladder_section(one, named=True) for one in others)
