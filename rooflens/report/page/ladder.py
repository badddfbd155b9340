"""The ladder of a program's versions as a part of a page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rooflens.model.compare.ladder import Ladder
from rooflens.model.summary import Launch
from rooflens.report.content import Content
from rooflens.report.document import Document
from rooflens.report.html.blocks import Room
from rooflens.report.overview.document import of_ladder
from rooflens.report.path.chart import path_chart
from rooflens.report.path.placing import has_path
from rooflens.report.templates import render, write_blocks
from rooflens.report.words.ladder import ladder_asks, program_headline


def ladder_section(ladder: Ladder, launches: Sequence[Launch]) -> Markup:
    """Show the versions that the headline is about, each with a link to its launch; their way stands elsewhere."""
    keys = {(launch.analysis.kernel.digest, launch.name): launch.key for launch in reversed(launches)}
    links = [
        keys.get((rung.analysis.kernel.digest, rung.analysis.kernel.name), "") if rung.analysis else ""
        for rung in ladder.rungs
    ]
    return _section(of_ladder(ladder, is_alone=True, links=links), ladder, "ladder")


def _section(body: Document, ladder: Ladder, key: str = "") -> Markup:
    return render(
        "report/page#versions", body=write_blocks(body, Room(lift=1)), label=program_headline(ladder), key=key
    )


def way_of(ladder: Ladder, content: Content, key: str = "path") -> Document:
    """Draw the way of a ladder under the roofs of the page; nothing where it has none."""
    return (path_chart(ladder, key, lambda: content.roofs),) if has_path(ladder) else ()


def named_ladders(several: Sequence[Ladder], content: Content, *, lead: bool = False) -> Markup:
    """Show ladders one below the other, each with its program's name.

    Args:
        several: The ladders.
        content: The page they stand on.
        lead: They stand first in the page, which says once what to collect: so the first that lacks anything does.
    """
    asking = [at for at, one in enumerate(several) if ladder_asks(one)]
    silent = asking[1:] if lead else asking
    sections = (
        of_ladder(
            one,
            is_alone=lead and len(several) == 1,
            way=way_of(one, content, f"path-{at}"),
            has_next=at not in silent,
        )
        for at, one in enumerate(several)
    )
    return Markup("\n").join(_section(body, one) for body, one in zip(sections, several, strict=True))


def ladders(content: Content) -> Markup:
    """Show programs in versions among other reports, and kernels of one report that do the same work."""
    return Markup() if content.ladders_lead else named_ladders(content.other_ladders, content)
