"""The whole plane in small, beside a plane that shows its news: roofs, points, and a frame around what is in sight."""

from __future__ import annotations

from math import log10

from markupsafe import Markup
from msgspec import Struct

from rooflens.report.plane.plane import Domain, Plane
from rooflens.report.plane.viewport import Sheet
from rooflens.report.roofline.selection import shown_at
from rooflens.report.templates import render

WIDTH_PX, HEIGHT_PX = 96, 34
MOST_POINTS = 60
"""Points that are drawn, those with most time: more are a blot."""


class Dot(Struct, frozen=True):
    """A point in pixels of the inset."""

    x: float
    y: float


def inset(plane: Plane, level: str) -> Markup:
    """Draw the whole plane as a button that shows it in full; nothing if all of it is in sight already.

    Args:
        plane: A plane with points.
        level: The level that is shown first.
    """
    x_domain, y_domain = plane.whole
    first = plane.x_domain(level), plane.y_domain(level)
    whole = (_around(x_domain, first[0]), _around(y_domain, first[1]))
    sheet = Sheet(*whole, WIDTH_PX, HEIGHT_PX)
    top = plane.top or whole[1][1]
    paths = [_slope(sheet, roof.peak, top) for roof in plane.level_roofs]
    steepest = max((roof.peak for roof in plane.level_roofs), default=None)
    for roof in plane.pipe_roofs:
        begin = max(whole[0][0], roof.peak / steepest) if steepest else whole[0][0]
        (x0, y), (x1, _) = sheet.at(begin, roof.peak), sheet.at(whole[0][1], roof.peak)
        paths.append(f"M{x0:.1f} {y:.1f}H{x1:.1f}")
    shown = sorted(shown_at(plane.points, level), key=lambda point: -point.launch.time_share)
    dots = [Dot(*(round(at, 1) for at in sheet.at(*point.at))) for point in shown[:MOST_POINTS]]
    return render(
        "report/inset",
        width=WIDTH_PX,
        height=HEIGHT_PX,
        path="".join(paths),
        dots=dots,
        domains=[*whole[0], *whole[1]],
    )


def _around(domain: Domain, other: Domain) -> Domain:
    return min(domain[0], other[0]), max(domain[1], other[1])


def _slope(sheet: Sheet, peak: float, top: float) -> str:
    """Draw the line of a bandwidth from the left or the lower edge to the highest flat roof."""
    low = max(sheet.x_domain[0], sheet.y_domain[0] / peak)
    high = min(sheet.x_domain[1], top / peak)
    if log10(high / low) <= 0:
        return ""
    (x0, y0), (x1, y1) = sheet.at(low, low * peak), sheet.at(high, high * peak)
    return f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"
