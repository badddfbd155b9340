"""The axes of a log-log plane with fixed ranges: a tick at each power of ten, with SI prefixes for performance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from rooflens.report.plane.expressions import SI_FLOPS

if TYPE_CHECKING:
    from rooflens.report.plane.plane import Domain

_INTENSITY = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, ',')"


def intensity(domain: Domain, title: str, field: str) -> alt.X:
    """Encode arithmetic intensity."""
    axis = alt.Axis(values=_powers(domain), labelExpr=_INTENSITY, title=title, titlePadding=12)
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    return alt.X(field, type="quantitative", axis=axis, scale=scale)


def performance(domain: Domain, field: str) -> alt.Y:
    """Encode FLOP per second."""
    axis = alt.Axis(values=_powers(domain), labelExpr=SI_FLOPS, title=None)
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    return alt.Y(field, type="quantitative", axis=axis, scale=scale)


def _powers(domain: Domain) -> list[float]:
    """List the powers of ten inside a range."""
    return [10.0**power for power in range(-30, 31) if domain[0] <= 10.0**power <= domain[1]]
