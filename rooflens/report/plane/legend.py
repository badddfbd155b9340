"""A verdict as the charts draw it: colour and shape together, with one legend for both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rooflens.model.verdict_classes import SHOWN_CLASSES
from rooflens.report.html.theme import LOOKS, colours, fills
from rooflens.report.plane.later import alt
from rooflens.report.words.labels import BOUND_LABELS

FILLS = "ordinal"
"""Range of the theme that fills the signs of sure classes, and leaves those of open ones hollow, in legends too."""


COLUMNS = {"expr": "w < 480 ? 2 : 6"}
"""Columns of a legend on a page, which sets the signal `w`."""


def verdict_channels(
    present: Collection[str],
    *,
    columns: Mapping[str, str] | int | None = COLUMNS,
    field: str = "bound",
    dark: bool | None = None,
    **look: Any,
) -> dict[str, Any]:
    """Encode a field of verdicts, with a legend of those that are present.

    Args:
        present: Verdicts, or regimes, of everything that is drawn, in any order.
        columns: Of the legend; None for a single line.
        field: Name of the field.
        dark: Write the colours for a dark or a light ground into the chart; None where the theme of a page has them.
        look: More of the legend.
    """
    known = [bound for bound in LOOKS if bound in SHOWN_CLASSES or bound in present]
    cases = " : ".join(f"datum.value === '{bound}' ? '{BOUND_LABELS[bound]}'" for bound in known)
    legend: dict[str, Any] = {
        "title": None,
        "orient": "top",
        "direction": "horizontal",
        "values": [bound for bound in known if bound in present],
        "labelExpr": f"{cases} : datum.value",
        "symbolOpacity": 1,
        **({} if columns is None else {"columns": columns}),
        **look,
    }
    shapes = alt.Scale(domain=known, range=[LOOKS[bound].shape for bound in known])
    inks: Any = alt.Undefined if dark is None else colours(known, dark=dark)
    filled: Any = FILLS if dark is None else fills(known, dark=dark)
    drawn = alt.Legend(**legend) if len(legend["values"]) > 1 else None
    shared: dict[str, Any] = {"scale": alt.Scale(domain=known, range=inks), "legend": drawn}
    return {
        "shape": alt.Shape(f"{field}:N", **shared | {"scale": shapes}),
        "fill": alt.Fill(f"{field}:N", **shared | {"scale": alt.Scale(domain=known, range=filled)}),
        "stroke": alt.Stroke(f"{field}:N", **shared),
    }
