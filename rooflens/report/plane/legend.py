"""A verdict as the charts draw it: colour and shape together, with one legend for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.model.records import BOUNDS
from rooflens.report.html.theme import LOOKS
from rooflens.report.labels import BOUND_LABELS

if TYPE_CHECKING:
    from collections.abc import Collection

    from rooflens.model.records import Bound


def verdict_channels(present: Collection[Bound], *, wraps: bool = True) -> list[Any]:
    """Encode the field `bound`, with a legend of the verdicts that are present.

    Args:
        present: Verdicts of everything that is drawn, in any order.
        wraps: Whether the legend takes several lines in a narrow drawing; the page then sets the signal `w`.
    """
    cases = " : ".join(f"datum.value === '{bound}' ? '{BOUND_LABELS[bound]}'" for bound in BOUNDS)
    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=alt.ExprRef("w < 480 ? 2 : 6") if wraps else alt.Undefined,
        values=[bound for bound in BOUNDS if bound in present],
        labelExpr=f"{cases} : datum.value",
        symbolOpacity=1,
    )
    shapes = alt.Scale(domain=list(BOUNDS), range=[LOOKS[bound].shape for bound in BOUNDS])
    colours = alt.Scale(domain=list(BOUNDS))
    return [
        alt.Shape("bound:N", scale=shapes, legend=legend),
        alt.Fill("bound:N", scale=colours, legend=legend),
        alt.Stroke("bound:N", scale=colours, legend=legend),
    ]
