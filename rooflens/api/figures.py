"""Rooflines as Altair charts for papers, slides and notebooks, and their rows for any other library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from rooflens.errors import InputError, UsageError, any_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import altair as alt
    import pandas as pd

    from rooflens.analyzing import Analyzed
    from rooflens.model.records import AnalyzedReport
    from rooflens.model.verdict.thresholds import Thresholds
    from rooflens.report.plane.plane import Plane

Theme = Literal["light", "dark"]

LEAST_PT, LEAST_FONT_PT = 120.0, 4.0
"""A smaller figure would hold words alone, and nobody reads smaller words."""


class Sizes(TypedDict, total=False):
    """How a figure is drawn, as `rooflens.figure` has it."""

    width: float
    height: float
    font: float
    theme: Theme


def draw(  # noqa: PLR0913 - what a figure is described by
    reports: Sequence[AnalyzedReport],
    limits: Thresholds,
    level: str | None,
    *,
    width: float = 640,
    height: float = 420,
    font: float = 11,
    theme: Theme = "light",
) -> alt.LayerChart:
    """Draw some kernels; arguments and errors are those of `rooflens.figure`."""
    from rooflens.model.records import LEVELS
    from rooflens.report.content import build_content
    from rooflens.report.plane.plane import ALL
    from rooflens.report.roofline import figure as figures
    from rooflens.report.roofline.picture import placed_planes, title_of

    levels = (*LEVELS, ALL)
    if level is not None and level not in levels:
        raise UsageError(f"there is no level `{level}`", f"choose {any_of(levels)}")
    if theme not in get_args(Theme):
        raise UsageError(f"there is no theme `{theme}`", f"choose {any_of(get_args(Theme))}")
    if not (width >= LEAST_PT and height >= LEAST_PT and font >= LEAST_FONT_PT):
        least = f"{LEAST_PT:g} by {LEAST_PT:g} points, with words of {LEAST_FONT_PT:g}"
        raise UsageError(f"a figure of {width:g} by {height:g} points is too small", f"the smallest is {least}")
    content = build_content(reports, "", limits)
    placed = [one for one in placed_planes(content) if one.points]
    if not placed:
        raise InputError(
            "no kernel has a place in a roofline: that takes FLOPs and bytes",
            'collect them with `ncu --set full`; `report.save("bars.svg")` draws what a report holds',
        )
    if len(placed) > 1:
        gpus = " and ".join(one.gpu for one in placed)
        raise UsageError(
            f"a figure is of one GPU, and these kernels ran on {gpus}", 'choose one with `report.filter(gpu="...")`'
        )
    look = figures.FigureLook(width, height, font, dark=theme == "dark")
    return figures.figure(placed[0], look, level=level, title=title_of(placed[0], content))


def frame(analyzed: Analyzed, records: Callable[[Plane], list[dict[str, Any]]], columns: Sequence[str]) -> pd.DataFrame:
    """Make a frame of the rows that a function makes of each GPU's roofline, with the same columns if it makes none.

    Rows of launches have the digest of their report and their `kernel_index` in it instead of the page's key.
    """
    import pandas as pd

    from rooflens.report.content import build_content
    from rooflens.report.roofline.launches import plane

    content = build_content(analyzed.reports, "", analyzed.limits)
    kernels = {launch.key: launch.analysis.kernel for launch in content.timed}
    rows = [row for gpu in content.gpus for row in records(plane(content, gpu))]
    for row in rows:
        if kernel := kernels.get(row.get("launch", "")):
            row |= {"digest": kernel.digest, "kernel_index": kernel.index}
    named = [name for name in columns if name != "launch"]
    named += ["digest", "kernel_index"] if "launch" in columns else []
    made = pd.DataFrame.from_records(rows, columns=named)
    return made.astype({name: float for name in named if name.endswith(("_per_s", "_per_byte", "time_share"))})
