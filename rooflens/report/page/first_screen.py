"""The first screen: the answer for a kernel, or the list of what to fix first, and the charts beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.compare.ladder import Ladder
from rooflens.model.ranking import Tier, tiers
from rooflens.model.records import Confidence
from rooflens.model.summary import KernelSummary, Launch, asks_first, best_move, parted, time_part
from rooflens.model.verdict.sentences import gain_figure
from rooflens.report.content import Content, Replaced
from rooflens.report.document import Option, Paragraph, Span, joined
from rooflens.report.kernel.document import answer, numbers, sentence
from rooflens.report.page.cards import inside, view_of
from rooflens.report.page.charts import RooflineFigure, charts, collecting, lacking_gpu
from rooflens.report.page.headline import after_move
from rooflens.report.page.ladder import ladder_section, leading_ladder_asks, way_of
from rooflens.report.roofline.choices import Choice, choices
from rooflens.report.summary import (
    Ranked,
    at_limit,
    brief_move,
    cannot_tell,
    own_reports,
    ranked,
    segments,
)
from rooflens.report.templates import render
from rooflens.report.words.findings import confidence_words, sureness
from rooflens.report.words.labels import BOUND_LABELS
from rooflens.report.words.program import program_lines

LISTED = 12
"""Rows of the list: those of the ranking, then the next ones with their times alone."""

KEPT = 24
"""Rows that stand in the page, shown or not: filters bring the next ones up."""

MEMBERS_SHOWN = 20
"""Kernels of a row for many that are named; all are counted."""


class Entry(Struct, frozen=True):
    """One row of the list; of a kernel whose launches have several verdicts there is one more for each.

    Attributes:
        part: The verdict of the launches it speaks of; empty if it speaks of all of the kernel's.
        shown: True where it is in the list before anything is filtered.
        begins: True where a line parts it from those with a gain above it.
        is_brief: It is small: it is not worth a row of its own, or the list has enough of them.
        asks: Its first move is to collect more.
        asks_again: A row above it, or a ladder above the list, says so already.
        length: Its time as a part of the longest one's, which its bar has.
        parts: Parts of its bar by verdict, which sum to 1.
        won: The part of its time that its best move wins; 0 if that is unknown.
    """

    row: Ranked
    part: str
    shown: bool
    begins: bool
    is_brief: bool
    asks: bool
    asks_again: bool
    length: float
    parts: tuple[tuple[str, float], ...]
    won: float


def first_screen(content: Content, figures: Sequence[RooflineFigure]) -> Markup:
    """Answer which kernel to fix first, and how, beside its roofline.

    Args:
        content: The page.
        figures: The rooflines of the page.
    """
    texts = [best_move(group.analysis.verdict) for group in content.first[:1]]
    if content.ladder:
        answer, texts = versions(content.ladder, content.launches), []
    elif len(content.kernels) == 1:
        answer = verdict(content)
        texts = [move.text for move in content.kernels[0].analysis.verdict.moves] or texts
    else:
        answer = what_first(content)
    asks = any("`rooflens profile" in text or "ncu " in text for text in texts)
    lacking = None if asks else lacking_gpu(figures)
    return render(
        "report/first_screen",
        answer=answer,
        total_ns=content.total_ns,
        way=way_of(content.ladder, content) if content.ladder else "",
        charts=charts(
            figures,
            collects=collecting(content, lacking) if lacking else "",
            aggregated=content.aggregated,
            failed_count=content.failed_count,
        ),
        programs=program_lines(content.unprofiled, named=len(content.runs) > 1),
        many=many(content) if content.aggregated else "",
    )


def versions(ladder: Ladder, launches: Sequence[Launch]) -> Markup:
    """Show reports that are versions of a program one below the other, and what to try next on the fastest."""
    keys = {(launch.analysis.kernel.digest, launch.name): launch.key for launch in reversed(launches)}
    links = [
        keys.get((rung.analysis.kernel.digest, rung.analysis.kernel.name), "") if rung.analysis else ""
        for rung in ladder.rungs
    ]
    return ladder_section(ladder, links)


def what_first(content: Content) -> Markup:
    """List what can be done, by the time that it wins: each row a bar of today's time with the part won at its end."""
    own = own_reports(content)
    entries = list(_entries(content))
    rest = _unlisted(content, {entry.row.group.key for entry in entries if entry.shown})
    return render(
        "report/ranking",
        content=content,
        entries=entries,
        most_members=MEMBERS_SHOWN,
        more=len(rest),
        more_share=None if own else time_part(rest),
        own=own,
        earlier=len(content.earlier),
        versions=_versions(content.earlier.values()),
        limited=at_limit(content),
        untold="" if content.is_judged else cannot_tell(len(content.runs), len(content.kernels)),
        asked=leading_ladder_asks(content),
        untimed=sum(not group.duration_ns for group in content.kernels),
    )


def verdict(content: Content) -> Markup:
    """Answer for a page of a kernel: its sentence and limit, what to try first, loops and hottest lines."""
    (kernel,) = content.kernels
    analysis = kernel.analysis
    options = tuple(
        _option(one, kernel.duration_ns, sureness(analysis.verdict, analysis.findings, one.finding))
        for one in choices(analysis)
    )
    view = view_of(content, kernel.representative, options)
    classes = tuple(
        Span(f"{fmt.percent(one.share)} {BOUND_LABELS[one.bound]}, {fmt.duration(one.time_ns)}", one.bound)
        for one in segments(kernel.launches)
    )
    facts = (f"{fmt.count(kernel.launch_count, 'launch')}" if kernel.launch_count > 1 else "", kernel.spread)
    said = ", ".join(filter(None, facts))
    document = (
        *numbers(view),
        *((Paragraph((said,), "note"),) if said else ()),
        *((Paragraph((joined("; ", [*classes]),), "note"),) if len(kernel.class_ns) > 1 else ()),
        *answer(view),
    )
    return render(
        "report/verdict",
        bound=kernel.representative.shown_class,
        sentence=sentence(view) if content.is_judged else cannot_tell(len(content.runs), 1),
        body=inside(document),
    )


def _option(choice: Choice, time_ns: float | None, sure: Confidence) -> Option:
    after = after_move(choice, time_ns)
    figure = gain_figure(choice.gain, time_ns).rpartition("\u2192 ")[2]
    said = f"{fmt.duration(time_ns)}, {after}" if after else ""
    return Option(brief_move(choice.text), figure, said, confidence_words(sure), fmt.cut_middle(choice.where, 60))


def _entries(content: Content) -> Iterator[Entry]:
    """List what can stand in the list: its rows, the next ones, and parts of kernels by verdict."""
    earlier, rows = content.earlier, content.rows
    first = {row.key for row in content.first}
    kept = [*(row for row in rows if row.key in first), *(row for row in rows if row.key not in first)]
    kept = [*kept, *(kernel for kernel in content.kernels if kernel.key in earlier)][:KEPT]
    listed = [row for row in kept if row.key in first or row.key not in earlier][:LISTED]
    longest_ns = max((row.duration_ns or 0.0 for row in listed), default=0.0)
    has_asked = leading_ladder_asks(content)
    with_gain = [place for place, tier in enumerate(tiers(kept)) if tier == Tier.GAIN]
    without_gain = max(with_gain, default=-1) + 1
    for place, kernel in enumerate(kept):
        begins = 0 < place < len(listed) and place == without_gain
        whole = _entry(ranked(place + 1, kernel), longest_ns)
        again = whole.asks and has_asked
        has_asked = has_asked or whole.asks
        yield replace(
            whole, shown=place < len(listed), begins=begins, is_brief=kernel.key not in first, asks_again=again
        )
        parts = [] if kernel.members else list(parted(kernel))
        if len(parts) > 1:
            for part in parts:
                yield replace(_entry(ranked(place + 1, part), longest_ns), part=part.representative.shown_class)


def _entry(row: Ranked, longest_ns: float) -> Entry:
    group = row.group
    total_ns = sum(group.class_ns.values())
    gain = group.analysis.verdict.gain
    return Entry(
        row=row,
        part="",
        shown=False,
        begins=False,
        is_brief=True,
        asks=asks_first(group.analysis.verdict),
        asks_again=False,
        length=(group.duration_ns or 0.0) / longest_ns if longest_ns else 0.0,
        parts=tuple((shown, ns / total_ns) for shown, ns in group.class_ns.items()) if total_ns else (),
        won=1 - 1 / gain.factor if gain else 0.0,
    )


def _unlisted(content: Content, shown: Collection[str]) -> list[KernelSummary]:
    """Return the kernels that no row of the list stands for; earlier versions are not among them."""
    rows = (row for row in content.rows if row.key not in shown)
    return [kernel for row in rows for kernel in row.members or (row,)]


def _versions(earlier: Iterable[Replaced]) -> dict[str, str]:
    """Say of each kernel that replaced others why it did, by its key: `fastest of 3 versions`."""
    chosen = {one.by.key: one.by.duration_ns or 0.0 for one in earlier}
    others: defaultdict[str, list[float]] = defaultdict(list)
    for one in earlier:
        others[one.by.key].append(one.kernel.duration_ns or 0.0)
    return {
        key: f"{'fastest' if chosen[key] < min(times_ns) else 'newest'} of {len(times_ns) + 1} versions"
        for key, times_ns in others.items()
    }


def many(content: Content) -> Markup:
    """Say what is drawn of many launches, and how many kernels share the name `other`."""
    left_out = content.failed_count - len(content.failed)
    return render(
        "report/many",
        launches=sum(launch.analysis.launches for launch in content.timed),
        kernels=len({launch.group_key for launch in content.timed}),
        other=content.other,
        failed=f"{len(content.failed):,} of {content.failed_count:,}" if left_out else "",
    )
