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
from rooflens.report.templates import render, write_blocks
from rooflens.report.words.ladder import headline, held_against, ladder_bars, subject, try_next


def ladder_section(
    ladder: Ladder,
    links: Sequence[str] = (),
    *,
    way: Markup | None = None,
    has_next: bool = True,
) -> Markup:
    """Show the versions of a program one below the other, and what to try next on the fastest.

    Args:
        ladder: The versions.
        links: What each is linked to in the page; none where it is empty.
        way: Its way, to be drawn beside it, with the program's name in the heading; None where both stand elsewhere.
        has_next: Say what to try next.
    """
    named = way is not None
    return render(
        "report/versions",
        headline=f"{ladder.program}: {headline(ladder)}" if named else sentence_case(headline(ladder)),
        bars=write_blocks((ladder_bars(ladder, links),)),
        way=way or "",
        subject=subject(ladder),
        against=held_against(ladder),
        next_move=try_next(ladder) if has_next else "",
        named=named,
    )


def _asks(ladder: Ladder) -> bool:
    """Return whether what comes next is to collect more, which a page says once."""
    fastest = ladder.fastest
    return fastest is not None and fastest.analysis is not None and asks_first(fastest.analysis.verdict)


def way_of(ladder: Ladder, content: Content, key: str = "path") -> Markup:
    """Draw the way of a ladder under the roofs of the page; nothing where it has none."""
    if not has_path(ladder):
        return Markup()
    return write_blocks((path_chart(ladder, key, lambda: content.roofs),))


def named_ladders(several: Sequence[Ladder], content: Content, *, lead: bool = False) -> Markup:
    """Show ladders one below the other, each with its program's name.

    Args:
        several: The ladders.
        content: The page they stand on.
        lead: They stand first in the page, which says once what to collect: so the first that lacks anything does.
    """
    asking = [at for at, one in enumerate(several) if _asks(one)]
    silent = asking[1:] if lead else asking
    return Markup("\n").join(
        ladder_section(one, way=way_of(one, content, f"path-{at}"), has_next=at not in silent)
        for at, one in enumerate(several)
    )


def leading_ladder_asks(content: Content) -> bool:
    """Return whether a ladder at the head of the page says what to collect."""
    return content.ladders_lead and any(_asks(one) for one in content.ladders)


def ladders(content: Content) -> Markup:
    """Show programs in versions among other reports, and kernels of one report that do the same work."""
    return Markup() if content.ladders_lead else named_ladders(content.other_ladders, content)
