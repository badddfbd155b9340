"""A verdict as the charts draw it: colour and shape together, with one legend for both."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import altair as alt

from rooflens.model.verdict_classes import SHOWN_CLASSES
from rooflens.report.html.theme import LOOKS
from rooflens.report.words.labels import BOUND_LABELS

FILLS = "ordinal"
"""Range of the theme that fills the signs of sure classes, and leaves those of open ones hollow, in legends too."""


def verdict_channels(present: Collection[str], *, wraps: bool = True) -> dict[str, Any]:
    """Encode the field `bound`, with a legend of the verdicts that are present.

    Args:
        present: Verdicts, or regimes, of everything that is drawn, in any order.
        wraps: Whether the legend takes several lines in a narrow drawing; the page then sets the signal `w`.
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
    } | ({"columns": alt.ExprRef("w < 480 ? 2 : 6")} if wraps else {})
    shapes = alt.Scale(domain=known, range=[LOOKS[bound].shape for bound in known])
    drawn = alt.Legend(**legend) if len(legend["values"]) > 1 else None
    shared: dict[str, Any] = {"scale": alt.Scale(domain=known), "legend": drawn}
    return {
        "shape": alt.Shape("bound:N", **shared | {"scale": shapes}),
        "fill": alt.Fill("bound:N", **shared | {"scale": alt.Scale(domain=known, range=FILLS)}),
        "stroke": alt.Stroke("bound:N", **shared),
    }
