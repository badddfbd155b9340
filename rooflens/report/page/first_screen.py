"""The first screen: what ran where, warnings, the share of time by verdict, and what to fix first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from rooflens import format as fmt
from rooflens.model.launches import bound_times_ns, time_part
from rooflens.report.html.templates import render
from rooflens.report.program import program_lines
from rooflens.report.summary import Segment, counts, facts, flagged, noun, ranking, synthetic_words, unranked

if TYPE_CHECKING:
    from rooflens.report.content import Content


def header(content: Content) -> Markup:
    """Say what ran, where, on which clock, and who measured it."""
    return render(
        "report/header",
        content=content,
        facts=facts(content),
        counts=counts(content),
        programs=program_lines(content.reports),
        flagged=flagged(content),
        noun=noun(content),
    )


def banner(content: Content) -> Markup:
    """Warn of synthetic data before any number is read."""
    return render("report/banner", content=content, synthetic=synthetic_words(content))


def summary(content: Content) -> Markup:
    """Show the share of GPU time by verdict as one bar with words."""
    times = bound_times_ns(content.counted)
    segments = [
        Segment(
            bound,
            ns,
            ns / content.total_ns,
            sum(launch.analysis.launches for launch in content.counted if launch.bound == bound),
        )
        for bound, ns in sorted(times.items(), key=lambda item: -item[1])
    ]
    return render("report/summary", content=content, segments=segments)


def what_first(content: Content) -> Markup:
    """Rank the kernels by what can be won, with the wall of each, its distances and the one move."""
    shown = ranking(content)
    rest = unranked(content)
    return render("report/ranking", content=content, ranking=shown, more=len(rest), more_share=time_part(rest))


def many(content: Content) -> Markup:
    """Say how launches were added up, and how many kernels share the name `other`; nothing on a page of few."""
    if not content.aggregated:
        return Markup()
    return render("report/many", drawn=_drawn(content), other=_other(content), failed=_failed(content))


def _drawn(content: Content) -> str:
    launches = sum(launch.analysis.launches for launch in content.timed)
    kernels = len({launch.group_key for launch in content.timed})
    sums = fmt.count(len(content.timed), "sum")
    return f"{fmt.count(launches, 'launch')} of {fmt.count(kernels, 'kernel')} are {sums}" if kernels else ""


def _other(content: Content) -> str:
    """Name what is counted and not drawn."""
    other = content.other
    if other is None:
        return ""
    share = f", {fmt.percent(other.time_share)} of GPU time" if other.time_share is not None else ""
    kernels = fmt.count(other.kernels, "other kernel")
    return f"{kernels} ({fmt.count(other.launches, 'launch')}{share})"


def _failed(content: Content) -> str:
    left_out = content.failed_count - len(content.failed)
    return f"{len(content.failed):,} of {content.failed_count:,}" if left_out else ""
