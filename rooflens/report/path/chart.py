"""The chart of the way of a ladder through the roofline plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflens.model.compare.ladder import Ladder
from rooflens.report.document import Chart


def path_chart(ladder: Ladder, key: str) -> Chart:
    """Draw the way of a ladder; the words beside it say the same."""

    def draw() -> Mapping[str, Any] | None:
        from rooflens.report.path.drawing import path_spec  # noqa: PLC0415 - only pages draw

        return path_spec(ladder)

    return Chart(
        key,
        draw,
        f"Roofline with the versions of {ladder.program} by number, joined in order.",
    )
