"""The ladder of a program's versions as a part of a page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rooflens.format import sentence_case
from rooflens.model.compare.ladder import Ladder
from rooflens.model.summary import asks_first
from rooflens.report.content import Content
from rooflens.report.path.chart import path_chart
from rooflens.report.path.placing import has_path
from rooflens.report.templates import render
from rooflens.report.words.ladder import headline, held_against, ladder_bars, subject, try_next
from rooflens.report.writers.html import to_html


def ladder_section(
    ladder: Ladder, links: Sequence[str] = (), *, named: bool = False, key: str = "", has_next: bool = True
) -> Markup:
    """Show the versions of a program one below the other, and what to try next on the fastest.

    Args:
        ladder: The versions.
        links: What each is linked to in the page; none where it is empty.
        named: Put the program's name into the heading, and draw its way beside it.
        key: What its chart is called.
        has_next: Say what to try next.
    """
    way = named and has_path(ladder)
    return render(
        "report/versions",
        headline=f"{ladder.program}: {headline(ladder)}" if named else sentence_case(headline(ladder)),
        bars=Markup(to_html((ladder_bars(ladder, links),))),  # noqa: S704 - escaped by the writer
        way=Markup(to_html((path_chart(ladder, f"path-{key}"),))) if way else "",  # noqa: S704 - likewise
        subject=subject(ladder),
        against=held_against(ladder),
        next_move=try_next(ladder) if has_next else "",
        named=named,
    )


def _asks(ladder: Ladder) -> bool:
    """Return whether what comes next is to collect more, which a page says once."""
    fastest = ladder.fastest
    return fastest is not None and fastest.analysis is not None and asks_first(fastest.analysis.verdict)


def way(ladder: Ladder) -> Markup:
    """Draw the way of a ladder; nothing where it has none."""
    if not has_path(ladder):
        return Markup()
    return Markup(to_html((path_chart(ladder, "path"),)))  # noqa: S704 - escaped by the writer


def named_ladders(several: Sequence[Ladder], *, lead: bool = False) -> Markup:
    """Show ladders one below the other, each with its program's name.

    Args:
        several: The ladders.
        lead: They stand first in the page, which says once what to collect: so the first that lacks anything does.
    """
    asking = [at for at, one in enumerate(several) if _asks(one)]
    silent = asking[1:] if lead else asking
    return Markup("\n").join(
        ladder_section(one, named=True, key=str(at), has_next=at not in silent) for at, one in enumerate(several)
    )


def leading_ladder_asks(content: Content) -> bool:
    """Return whether a ladder at the head of the page says what to collect."""
    return content.ladders_lead and any(_asks(one) for one in content.ladders)


def ladders(content: Content) -> Markup:
    """Show programs in versions among other reports, and kernels of one report that do the same work."""
    return Markup() if content.ladders_lead else named_ladders(content.other_ladders)
