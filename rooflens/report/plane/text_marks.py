"""Texts at the places that Python found for each size class of a drawing, and the leads to those that stand away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report.plane.placement import LEAD_TO_PART
from rooflens.report.plane.viewport import SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping

    Style = Mapping[str, Any]

_WIDER = " : ".join(f"w >= {size.from_px} ? {i}" for i, size in enumerate(SIZES[:-1]))
SLOT = f"{_WIDER} : {len(SIZES) - 1}"
"""Expression of the size class at hand, by the signal `w`."""


def at_spot() -> Style:
    """Place words at `datum.spot`."""
    return {
        "baseline": "middle",
        "align": alt.ExprRef("datum.spot[2] < 0 ? 'right' : datum.spot[2] > 0 ? 'left' : 'center'"),
        "dx": alt.ExprRef("datum.spot[0]"),
        "dy": alt.ExprRef("datum.spot[1]"),
    }


def leads(rows: alt.Chart) -> alt.Chart:
    """Draw a line from a mark to each text that stands away from it."""
    drawn: alt.Chart = rows.transform_filter("isValid(datum.spot[3])").mark_rule(
        style="lead",
        xOffset=alt.ExprRef("datum.spot[0] * datum.spot[3]"),
        yOffset=alt.ExprRef("datum.spot[1] * datum.spot[3]"),
        x2Offset=alt.ExprRef(f"datum.spot[0] * {LEAD_TO_PART}"),
        y2Offset=alt.ExprRef(f"datum.spot[1] * {LEAD_TO_PART}"),
        aria=False,
    )
    return drawn
