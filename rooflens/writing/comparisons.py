"""A comparison in any of the formats for files: the door of `rooflens compare`, and of `Comparison.save`."""

from __future__ import annotations

from collections.abc import Sequence

from rooflens.model.compare.gate import Compared, Gated
from rooflens.model.compare.ladder import NO_SIDES, Sides


def render(compared: Sequence[Compared], style: str, sides: Sides = NO_SIDES, gated: Gated | None = None) -> str:
    """Write a comparison, without a newline at its end.

    Args:
        compared: What became of each program.
        style: `html`, `md` or `json`.
        sides: What is said of all sides together.
        gated: What a gate found; None where there is none.
    """
    if style == "html":
        from rooflens.report.comparison.page import render_comparison

        return render_comparison(compared, gated, sides)
    from rooflens.report.text import comparison

    return {"json": comparison.to_json, "md": comparison.to_markdown}[style](compared, gated, sides)
