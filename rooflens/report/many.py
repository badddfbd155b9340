"""What a page of many launches says of itself: that they are added up, how, and what is not drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from rooflens.report import format as fmt
from rooflens.report.html import render

if TYPE_CHECKING:
    from rooflens.report.rows import Page


def many(page: Page) -> Markup:
    """Say how launches were added up, and how many kernels share the name `other`; nothing on a page of few."""
    if not page.aggregated:
        return Markup()
    return render("many", drawn=_drawn(page), other=_other(page), failed=_failed(page))


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
