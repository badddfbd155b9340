"""Rooflines as Altair charts for papers, slides and notebooks, and their rows for any other library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from rooflens.errors import InputError, UsageError, any_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import altair as alt
    import pandas as pd

    from rooflens.analyzing import Analyzed
    from rooflens.api.kernel import Kernel
    from rooflens.api.report import Report
    from rooflens.model.records import AnalyzedReport
    from rooflens.model.verdict.thresholds import Thresholds
    from rooflens.report.plane.plane import Plane

Theme = Literal["light", "dark"]

LEAST_PT, LEAST_FONT_PT = 120.0, 4.0
"""A smaller figure would hold words alone, and nobody reads smaller words."""


class Sizes(TypedDict, total=False):
    """How a figure is drawn, as `figure` has it."""

    width: float
    height: float
    font: float
    theme: Theme


def figure(  # noqa: PLR0913 - what a figure is described by
    report: Report | Kernel,
    *,
    width: float = 640,
    height: float = 420,
    font: float = 11,
    theme: Theme = "light",
    level: str | None = None,
    kernels: str | Sequence[str] | None = None,
) -> alt.LayerChart:
    """Draw the roofline of a report or a kernel as an Altair chart of layers, for a paper, a slide or a notebook.

    All that Altair does with a chart works on it: `properties`, `encode`, `interactive`, `add_params`, more layers,
    charts beside it, `save` as PDF, SVG, PNG or HTML. Its own data are the dots, in the columns of `Report.points`;
    its first layer draws them, and holds the axes of all layers.

    Args:
        report: What to draw, of one GPU.
        width: Width of the whole figure in points, 1/72 inch; on a screen, in pixels.
        height: Its height, likewise.
        font: Size of its words in points.
        theme: `light`, or `dark`, which brings its ground.
        level: Memory level at which kernels stand, `dram`, `l2`, `l1` or `smem`, or `all`; by default the one that
            limits each.
        kernels: Draw these alone: a pattern as in `report["adamw*"]`, or several.

    Raises:
        UsageError: There is no such size, theme or level, or the kernels ran on several GPUs.
        InputError: No kernel has a place in a roofline, or such a name.

    >>> import rooflens as rl
    >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
    >>> column = rl.figure(report, width=249, height=190, font=7)  # 88 mm wide
    >>> type(column.interactive() | rl.figure(report, level="dram", kernels="flash*"))
    <class 'altair.vegalite.v6.api.HConcatChart'>
    """
    from rooflens.api.report import Report

    if kernels is not None:
        if not isinstance(report, Report):
            raise UsageError("a kernel holds no kernels to choose", "leave `kernels` out, or give a report")
        report = report.named([kernels] if isinstance(kernels, str) else kernels)
    return report.chart(level, width=width, height=height, font=font, theme=theme)


def draw(  # noqa: PLR0913 - as above
    reports: Sequence[AnalyzedReport],
    limits: Thresholds,
    level: str | None,
    *,
    width: float = 640,
    height: float = 420,
    font: float = 11,
    theme: Theme = "light",
) -> alt.LayerChart:
    """Draw some kernels; arguments and errors are those of `figure`."""
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
    look = figures.Look(width, height, font, dark=theme == "dark")
    return figures.figure(placed[0], look, level=level, title=title_of(placed[0], content))


def frame(found: Analyzed, records: Callable[[Plane], list[dict[str, Any]]]) -> pd.DataFrame:
    """Make a frame of the rows that a function makes of each GPU's roofline.

    Rows of launches have the digest of their report and their `kernel_index` in it instead of the page's key.
    """
    import pandas as pd

    from rooflens.report.content import build_content
    from rooflens.report.roofline.launches import plane

    content = build_content(found.reports, "", found.limits)
    kernels = {launch.key: launch.analysis.kernel for launch in content.timed}
    rows = [row for gpu in content.gpus for row in records(plane(content, gpu))]
    for row in rows:
        if kernel := kernels.get(row.pop("launch", "")):
            row |= {"digest": kernel.digest, "kernel_index": kernel.index}
    return pd.DataFrame.from_records(rows)
