"""The first screen: what ran where, warnings, the share of time by verdict, and where the time is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from rooflens import format as fmt
from rooflens.model.launches import bound_times_ns, time_part
from rooflens.report.html.templates import render
from rooflens.report.summary import LOSSES_SHOWN, Segment, counts, facts, flagged, lost_time, noun, synthetic_words

if TYPE_CHECKING:
    from rooflens.report.content import Page


def header(page: Page) -> Markup:
    """Say what ran, where, on which clock, and who measured it."""
    return render(
        "report/header", page=page, facts=facts(page), counts=counts(page), flagged=flagged(page), noun=noun(page)
    )


def banner(page: Page) -> Markup:
    """Warn of synthetic data before any number is read."""
    return render("report/banner", page=page, synthetic=synthetic_words(page))


def summary(page: Page) -> Markup:
    """Show the share of GPU time by verdict as one bar with words."""
    times = bound_times_ns(page.counted)
    segments = [
        Segment(
            bound,
            ns,
            ns / page.total_ns,
            sum(launch.analysis.launches for launch in page.counted if launch.bound == bound),
        )
        for bound, ns in sorted(times.items(), key=lambda item: -item[1])
    ]
    return render("report/summary", page=page, segments=segments)


def losses(page: Page) -> Markup:
    """Name the kernels where the most time is lost, the wall of each and the one move."""
    lost = lost_time(page)
    return render(
        "report/losses",
        page=page,
        losses=lost.ranked,
        at_roof=lost.at_roof[:LOSSES_SHOWN],
        more_at_roof=len(lost.at_roof) > LOSSES_SHOWN,
        at_roof_share=time_part(lost.at_roof),
        unranked=lost.unranked,
        unranked_share=time_part(lost.unranked),
        advice=lost.advice,
    )


def many(page: Page) -> Markup:
    """Say how launches were added up, and how many kernels share the name `other`; nothing on a page of few."""
    if not page.aggregated:
        return Markup()
    return render("report/many", drawn=_drawn(page), other=_other(page), failed=_failed(page))


def _drawn(page: Page) -> str:
    launches = sum(launch.analysis.launches for launch in page.timed)
    kernels = len({launch.group_key for launch in page.timed})
    sums = fmt.count(len(page.timed), "sum")
    return f"{fmt.count(launches, 'launch')} of {fmt.count(kernels, 'kernel')} are {sums}" if kernels else ""


def _other(page: Page) -> str:
    """Name what is counted and not drawn."""
    other = page.other
    if other is None:
        return ""
    share = f", {fmt.percent(other.time_share)} of GPU time" if other.time_share is not None else ""
    kernels = fmt.count(other.kernels, "other kernel")
    return f"{kernels} ({fmt.count(other.launches, 'launch')}{share})"


def _failed(page: Page) -> str:
    left_out = page.failed_count - len(page.failed)
    return f"{len(page.failed):,} of {page.failed_count:,}" if left_out else ""
