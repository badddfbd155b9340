"""The first screen: what ran where, warnings, time by verdict, what to fix first, and the charts beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from rooflens.model.compare.ladder import Ladder
from rooflens.model.ranking import Tier, opportunities, tiers
from rooflens.model.records import timed
from rooflens.model.summary import parted, time_part
from rooflens.model.verdict.sentences import stage_full_words, without_move
from rooflens.report.content import Content
from rooflens.report.page.cards.hot_lines import hot_lines
from rooflens.report.page.cards.loops import loop_bars
from rooflens.report.page.charts import RooflineFigure, charts
from rooflens.report.page.ladder import ladder_section
from rooflens.report.page.selectors import selectors
from rooflens.report.roofline.ghost import choices
from rooflens.report.summary import (
    Ranked,
    at_limit,
    brief_move,
    cannot_tell,
    caveats,
    earlier_versions,
    failed_words,
    gain_figure,
    noun,
    own_reports,
    ranked,
    ranking,
    report_bars,
    segments,
    unranked,
)
from rooflens.report.templates import render
from rooflens.report.words.program import program_lines

KEPT = 20
"""Kernels of the ranking that stand in the page, shown or not: filters bring the next ones up."""

MEMBERS_SHOWN = 20
"""Kernels of a row for many that are named; all are counted."""

REPORTS_SHOWN = 6
"""Reports that have a bar of their own: the newest ones."""


class Entry(Struct, frozen=True):
    """One entry of the ranking; of a kernel whose launches have several verdicts there is one more for each.

    Attributes:
        part: The verdict of the launches it speaks of; empty where it speaks of all of the kernel's.
        shown: True where it is in the list before anything is filtered.
        begins: True where a line parts it from those with a gain above it.
    """

    row: Ranked
    part: str
    shown: bool
    begins: bool = False


class MoveShown(Struct, frozen=True):
    """One move in at most `MOVE_WORDS` words, with what it brings; the figure is empty where that is unknown."""

    text: str
    figure: str
    where: str


def header(content: Content) -> Markup:
    """Say what failed or could not be read, and what to keep in mind; the rest of it folded."""
    return render(
        "report/header",
        content=content,
        failed=failed_words(content),
        caveats=caveats(content),
        launches=len(timed(content.analyses)),
        noun=noun(content),
    )


def first_screen(
    content: Content,
    anchors: Sequence[tuple[str, str]],
    figures: Sequence[RooflineFigure],
) -> Markup:
    """Answer which kernel to fix first, and how, beside its roofline; filters and links to the other parts stand above.

    Args:
        content: The page.
        anchors: Name in the address and words of each part of the page.
        figures: The rooflines of the page.
    """
    answer = verdict(content) if len(content.kernels) == 1 else what_first(content) + summary(content)
    if content.ladder:
        answer = versions(content, content.ladder)
    return selectors(content, figures, anchors) + render(
        "report/first_screen",
        answer=answer,
        content=content,
        charts=charts(content, figures),
        programs=program_lines(content.reports),
        many=many(content),
    )


def summary(content: Content) -> Markup:
    """Show the share of GPU time by verdict as one bar with words; nothing where all have one verdict."""
    bars = report_bars(content)
    if cannot_tell(content) or (len(segments(content.counted)) < 2 and not bars):
        return Markup()
    return render(
        "report/summary",
        segments=segments(content.counted),
        reports=len(bars),
        bars=bars[-REPORTS_SHOWN:],
        longest_ns=max((bar.time_ns for bar in bars[-REPORTS_SHOWN:]), default=0.0),
    )


def versions(content: Content, ladder: Ladder) -> Markup:
    """Show reports that are versions of one program one below the other, and what to try next on the fastest."""
    keys = {(launch.analysis.kernel.digest, launch.name): launch.key for launch in reversed(content.launches)}
    links = [
        keys.get((rung.analysis.kernel.digest, rung.analysis.kernel.name), "") if rung.analysis else ""
        for rung in ladder.rungs
    ]
    return ladder_section(ladder, links)


def what_first(content: Content) -> Markup:
    """Rank the kernels by the time that their first moves win, with the gain of each, its move, limiter and limit."""
    rest, own = unranked(content), own_reports(content)
    return render(
        "report/ranking",
        content=content,
        entries=list(_entries(content)),
        most_members=MEMBERS_SHOWN,
        more=len(rest),
        more_share=None if own else time_part(rest),
        own=own,
        earlier=len(earlier_versions(content)),
        versions=_versions(content),
        limited=at_limit(content),
        untold=cannot_tell(content),
    )


def verdict(content: Content) -> Markup:
    """Answer for a page of one kernel: its sentence, gain and limit, what to try first, loops and hottest lines."""
    (kernel,) = content.kernels
    analysis = kernel.analysis
    moves = [
        MoveShown(brief_move(one.text), gain_figure(one.gain, kernel.duration_ns), one.where)
        for one in choices(analysis)
    ]
    return render(
        "report/verdict",
        kernel=kernel,
        row=ranked(1, kernel),
        sentence=cannot_tell(content) or without_move(analysis.verdict),
        stage_full=stage_full_words(analysis),
        moves=moves,
        chosen=0 if moves and moves[0].figure else -1,
        figures=[figure for figure in (loop_bars(analysis), hot_lines(analysis.kernel)) if figure],
        classes=summary(content),
    )


def _entries(content: Content) -> Iterator[Entry]:
    """List what can stand in the ranking: the shown entries, the next kernels, and parts of kernels by verdict."""
    shown = ranking(content)
    earlier = earlier_versions(content)
    rows = opportunities([kernel for kernel in content.kernels if kernel.key not in earlier])
    first = {row.group.key for row in shown}
    rows.sort(key=lambda row: row.key not in first)
    kept = [*rows, *(kernel for kernel in content.kernels if kernel.key in earlier)][:KEPT]
    gains = [tier == Tier.GAIN for tier in tiers(kept)]
    for place, kernel in enumerate(kept):
        is_shown = place < len(shown)
        begins = is_shown and place > 0 and gains[place - 1] and not gains[place]
        yield Entry(shown[place] if is_shown else ranked(place + 1, kernel), "", is_shown, begins=begins)
        parts = [] if kernel.members else list(parted(kernel))
        if len(parts) > 1:
            yield from (Entry(ranked(place + 1, part), part.representative.shown_class, shown=False) for part in parts)


def _versions(content: Content) -> Counter[str]:
    """Count the versions of each kernel that replaced others, by the key of the newest."""
    counts = Counter(newest.key for newest in earlier_versions(content).values())
    return counts + Counter(counts.keys())


def many(content: Content) -> Markup:
    """Say what is drawn of many launches, and how many kernels share the name `other`; nothing on a page of few."""
    if not content.aggregated:
        return Markup()
    left_out = content.failed_count - len(content.failed)
    return render(
        "report/many",
        launches=sum(launch.analysis.launches for launch in content.timed),
        kernels=len({launch.group_key for launch in content.timed}),
        other=content.other,
        failed=f"{len(content.failed):,} of {content.failed_count:,}" if left_out else "",
    )
