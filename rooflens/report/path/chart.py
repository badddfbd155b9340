"""The chart of the way of a ladder through the roofline plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rooflens.model.compare.ladder import Ladder
from rooflens.model.roofline.roofs import RoofSet
from rooflens.report.document import Chart

PageRoofs = Callable[[], Mapping[str, RoofSet]]
"""Gives the roofs of each GPU of a page, where a plane is drawn."""


def path_chart(ladder: Ladder, key: str, roofs: PageRoofs) -> Chart:
    """Draw the way of a ladder under the roofs of its page; the words beside it say the same."""

    def draw() -> Mapping[str, Any] | None:
        from rooflens.report.path.drawing import path_spec  # noqa: PLC0415 - only pages draw

        return path_spec(ladder, roofs())

    return Chart(
        key,
        draw,
        f"Roofline with the versions of {ladder.program} by number, joined in order.",
    )
