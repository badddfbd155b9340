"""What to do first, of a report: the one list of page, texts, digest and notebook."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.ranking import Tier, failed_lead, tiers
from rooflens.model.summary import KernelSummary, asks_first, parted, time_part
from rooflens.report.content import Content, Replaced
from rooflens.report.document import Below, Fact, Live, Member, Opportunities, Opportunity, Words, code, strong
from rooflens.report.overview.headline import of_kernel
from rooflens.report.summary import (
    ReportTime,
    at_limit,
    brief_move,
    cannot_tell,
    figure_of,
    group_sureness,
    limiter,
    report_times,
)
from rooflens.report.words.findings import ShownFinding, confidence_words, costing, no_line_words, shown
from rooflens.report.words.gain_and_limit import gain_how, limit_in_short, time_figure, why_no_gain
from rooflens.report.words.labels import place_of
from rooflens.report.words.ladder import ladder_asks
from rooflens.report.words.verdict import best_move

TITLE = "What to fix first"

LISTED = 12
"""Rows of the list: those of the ranking, then the next ones with their times alone."""

KEPT = 24
"""Rows that stand in the page, shown or not: filters bring the next ones up."""

MEMBERS_SHOWN = 20
"""Kernels of a row for many that are named; all are counted."""

NAME_WIDTH, LABEL_WIDTH = 60, 40

NUMBERS_SHOWN = 2
"""Numbers of a finding's evidence that its line holds; the page and the JSON hold all."""

METHOD = (
    "Kernels stand by the time at stake: what the best of their moves wins, else what lies above the nearer of their "
    "floors, else all of it. A floor is the time that its arithmetic and the bytes that it needs take at peak rates, "
    "or that its busiest unit works today. Kernels of libraries follow, unless they are most of the time, and those "
    "that fill inputs are last. One move for many kernels is one row. Far from any limit: the limit is over 10x, and "
    "says little. Another algorithm can beat the limit."
)


def opportunities(content: Content, most: int | None = None) -> Opportunities | None:
    """List what can be done, by the time that it wins: each row a bar of today's time with the part won at its end.

    Args:
        content: The report.
        most: List this many of the first rows, and none to come up by filters; all that a page keeps by default.

    Returns:
        None without a kernel.
    """
    lost = _failed(content)
    rows = lost or list(_opportunities(content))
    if most is not None:
        rows = [row for row in rows if row.live is None or not (row.live.is_hidden or row.live.part)][:most]
    if not rows:
        return None
    untold = "" if content.is_judged or lost else cannot_tell(len(content.runs), len(content.kernels))
    has_asked = content.ladders_lead and any(ladder_asks(one) for one in content.ladders)
    move = f" {rows[0].move}" if untold and isinstance(rows[0].move, str) and not has_asked else ""
    bars = [row for row in rows if row.length]
    note = f"bars: time today{'; hatched: what the best move wins' if any(row.won for row in rows) else ''}"
    return Opportunities(
        TITLE,
        tuple(rows),
        note=note if bars else "",
        state=f"{untold}{move}" if untold else "",
        below=tuple(_below(content, rows)),
        method=METHOD,
        has_asked=has_asked,
        is_untold=bool(untold),
    )


def _failed(content: Content) -> list[Opportunity]:
    """List the kernels that could not be profiled, where the others do no more than fill their inputs."""
    if content.kernels and not failed_lead([*content.kernels, *content.failed_kernels]):
        return []
    return [
        Opportunity(
            fmt.cut_name(one.shown, NAME_WIDTH),
            "could not be profiled",
            0.0,
            "unknown",
            0.0,
            fmt.sentence_case(best_move(one.analysis)),
            rank=place,
        )
        for place, one in enumerate(content.failed_kernels, start=1)
    ]


class _Common(Struct, frozen=True):
    """What all rows of a list share."""

    content: Content
    own: dict[str, ReportTime]
    versions: dict[str, str]
    longest_ns: float


def _opportunities(content: Content) -> Iterator[Opportunity]:
    """Make the rows of the list, the next ones, and those about parts of kernels by verdict."""
    earlier, every = content.earlier, content.rows
    first = {row.key for row in content.first}
    kept = [*(row for row in every if row.key in first), *(row for row in every if row.key not in first)]
    kept = [*kept, *(kernel for kernel in content.kernels if kernel.key in earlier)][:KEPT]
    listed = [row for row in kept if row.key in first or row.key not in earlier][:LISTED]
    longest_ns = max((row.duration_ns or 0.0 for row in listed), default=0.0)
    common = _Common(content, report_times(content), _versions(content.earlier.values()), longest_ns)
    has_asked = content.ladders_lead and any(ladder_asks(one) for one in content.ladders)
    with_gain = [place for place, tier in enumerate(tiers(kept)) if tier == Tier.GAIN]
    without_gain = max(with_gain, default=-1) + 1
    for place, kernel in enumerate(kept):
        asks = asks_first(kernel.analysis.verdict)
        live = Live(
            kernel.key,
            kernel.representative.key,
            is_hidden=place >= len(listed),
            is_brief=kernel.key not in first,
            asks=asks,
            asks_again=asks and has_asked,
        )
        has_asked = has_asked or asks
        begins = 0 < place < len(listed) and place == without_gain
        yield _opportunity(place + 1, kernel, live, common, begins=begins)
        parts = [] if kernel.members else list(parted(kernel))
        if len(parts) > 1:
            for part in parts:
                hidden = Live(
                    kernel.key,
                    part.representative.key,
                    part.representative.shown_class,
                    is_hidden=True,
                    is_brief=True,
                    asks=asks_first(part.analysis.verdict),
                )
                yield _opportunity(place + 1, part, hidden, common, begins=False)


def _opportunity(rank: int, kernel: KernelSummary, live: Live, common: _Common, *, begins: bool) -> Opportunity:
    total_ns = sum(kernel.class_ns.values())
    gain, whole = kernel.analysis.verdict.gain, common.own.get(kernel.key)
    name, head = fmt.cut_middle(kernel.shown, NAME_WIDTH), of_kernel(kernel)
    return Opportunity(
        name=name,
        figure=figure_of(kernel),
        length=(kernel.duration_ns or 0.0) / common.longest_ns if common.longest_ns else 0.0,
        style=kernel.representative.shown_class,
        won=1 - 1 / gain.factor if gain else 0.0,
        move=fmt.sentence_case(brief_move(best_move(kernel.analysis))),
        where=fmt.cut_middle(place_of(kernel.analysis), NAME_WIDTH),
        why=tuple(_why(rank, kernel, whole, common)),
        divider="Gain not yet known" if begins else "",
        rank=rank,
        title="" if kernel.name == name else kernel.name,
        parts=tuple((one, ns / total_ns) for one, ns in kernel.class_ns.items()) if total_ns else (),
        members=tuple(map(_member, kernel.members[:MEMBERS_SHOWN])),
        more=max(0, len(kernel.members) - MEMBERS_SHOWN),
        items=tuple(
            _finding_line(shown(finding, kernel.analysis.kernel.inside)) for finding in costing(kernel.analysis)
        ),
        live=live._replace(
            head=(head.lead, head.name, head.joint, head.said),
            gain=gain.factor if gain else 0.0,
            how=gain_how(gain) if gain else "",
            whole_ns=whole.time_ns if whole else 0.0,
            whole=fmt.cut_middle(whole.label, LABEL_WIDTH) if whole else "",
        ),
    )


def _why(rank: int, kernel: KernelSummary, whole: ReportTime | None, common: _Common) -> Iterator[Fact]:
    content, analysis, sure = common.content, kernel.analysis, group_sureness(kernel)
    several = f"{len(kernel.members)} kernels, the longest " if kernel.members else ""
    best, changes = analysis.verdict.best, analysis.verdict.gain and analysis.verdict.gain.changes
    label = content.report_labels.get(analysis.kernel.digest, kernel.report)
    no_place = no_line(content).partition(";")[0].rstrip(".") if rank == 1 else ""  # in full below the list
    facts: tuple[tuple[str, Literal["", "sure", "fine", "took"]], ...] = (
        (f"{several}{limiter(analysis)}", ""),
        (confidence_words(sure, "class and move") if rank == 1 or sure != "high" else "", "sure"),
        (why_no_gain(best, analysis) if best else "", "fine"),
        (f"changes the {changes}" if changes else "", "fine"),
        ("" if kernel.members else limit_in_short(analysis), "fine"),
        (_took(kernel, whole, content), "took"),
        (kernel.spread, "fine"),
        (f"n{no_place[1:]}" if no_place else "", "fine"),
        (kernel.gpu if len(content.gpus) > 1 else "", ""),
        (fmt.cut_middle(label, LABEL_WIDTH) if len(content.runs) > 1 and not whole else "", ""),
        (common.versions.get(kernel.key, ""), ""),
    )
    return (Fact(words, kind) for words, kind in facts if words)


def _took(kernel: KernelSummary, whole: ReportTime | None, content: Content) -> str:
    """Say which part of the time a kernel takes: `26 % of GPU time`."""
    if whole and kernel.duration_ns is not None:
        return f"{fmt.percent(kernel.duration_ns / whole.time_ns)} of {fmt.cut_middle(whole.label, LABEL_WIDTH)}"
    if kernel.time_share is not None and content.total_ns:
        return f"{fmt.percent(kernel.time_share)} of GPU time"
    return ""


def _member(kernel: KernelSummary) -> Member:
    figure = time_figure(kernel.analysis.verdict.gain, kernel.duration_ns, kernel.launch_count)
    return Member(fmt.cut_middle(kernel.shown, NAME_WIDTH), figure, kernel.representative.key)


def _finding_line(finding: ShownFinding) -> Words:
    """Write a finding of a row: title, gain, first numbers and place."""
    place = next((place.label for place in finding.places if place.label), "")
    at = (" at ", code(place)) if place else ()
    gain = f", {finding.gain}" if finding.gain else ""
    numbers = ", ".join(finding.numbers[:NUMBERS_SHOWN])
    return strong(finding.name), f"{gain}{f': {numbers}' if numbers else ''}", *at


def _below(content: Content, rows: Sequence[Opportunity]) -> Iterator[Below]:
    """Say what the list leaves out, and how much of the time is at a limit."""
    untimed = sum(not kernel.duration_ns for kernel in content.kernels)
    if content.kernels and not content.total_ns:
        yield Below("No report of this page holds a duration, so no row has a bar.")
    elif untimed:
        verb = "has" if untimed == 1 else "have"
        yield Below(f"{fmt.count(untimed, 'kernel')} without a duration {verb} no bar.")
    yield Below("No kernel passes these filters.", key="ranking-none", is_hidden=True)
    if why := no_line(content):
        yield Below(why)
    listed = {row.live.group for row in rows if row.live and not row.live.is_hidden}
    rest = unlisted(content, listed)
    share = None if report_times(content) else time_part(rest)
    words = fmt.count(len(rest), "more kernel") + (f", {fmt.percent(share)} of GPU time" if share is not None else "")
    yield Below(words, (", in the ", "list below", "kernels"), "ranking-more", is_hidden=not rest)
    earlier = len(content.earlier)
    yield Below(
        f"{fmt.count(earlier, 'older or slower version')}",
        (" hidden.", "", ""),
        "ranking-earlier",
        is_hidden=not earlier,
    )
    limited = at_limit(content)
    yield Below(limited, key="at-limit", is_hidden=not limited)


def no_line(content: Content) -> str:
    """Say why no row names a line of the code, and what would tell; empty where one was sampled."""
    readers = {run.digest: run.reader for run in content.runs}
    return no_line_words((row.analysis, readers[row.analysis.kernel.digest]) for row in content.first)


def unlisted(content: Content, shown_keys: Collection[str]) -> list[KernelSummary]:
    """Return the kernels that no row of the list stands for; earlier versions are not among them."""
    rows = (row for row in content.rows if row.key not in shown_keys)
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
