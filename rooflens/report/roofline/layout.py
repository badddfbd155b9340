"""What the layers of a roofline are built from: all that they depend on besides the rows and parameters of the page."""

from __future__ import annotations

from msgspec import Struct

from rooflens.model.verdict_classes import ShownClass
from rooflens.report.plane.plane import Plane
from rooflens.report.plane.viewport import CROWD, areas_px2
from rooflens.report.roofline.bars import BarLayout, bar_layout
from rooflens.report.roofline.course import course_rows
from rooflens.report.roofline.rows import twin_rows
from rooflens.report.roofline.versions import versions


class Layout(Struct, frozen=True):
    """Which layers a plane has, and what of them no parameter says.

    Attributes:
        units: Of the work that is placed.
        bounds: Verdict classes that a legend tells apart.
        twins: Tables of lighter roofs that have rows.
        is_shaded: It has both kinds of roofs, and so a region above them.
        has_slope_bands: Launches differ in a diagonal roof, and `has_flat_bands` in a flat one.
        has_versions: Versions of kernels are joined.
        has_beyond: Launches lie beyond the axes.
        is_crowded: It has many launches.
        dot_areas_px2: The smallest and the largest area of a point.
        course_roofs: Rates of the flat roofs where a launch has a path through its run; None where none has.
    """

    units: tuple[str, ...]
    bounds: tuple[ShownClass, ...]
    twins: tuple[str, ...]
    is_shaded: bool
    has_slope_bands: bool
    has_flat_bands: bool
    has_versions: bool
    has_loops: bool
    has_beyond: bool
    is_crowded: bool
    dot_areas_px2: tuple[float, float]
    course_roofs: tuple[str, ...] | None


class PlaneParts(Struct, frozen=True):
    """The plane of launches that have a place in it, and bars below it of those that have none; None without any."""

    plane: Layout | None
    bars: BarLayout | None


def parts_of(plane: Plane) -> PlaneParts:
    """Say what the chart of a plane is built from."""
    return PlaneParts(_layout(plane) if plane.points else None, bar_layout(plane) if plane.shares else None)


def _layout(plane: Plane) -> Layout:
    return Layout(
        units=plane.units,
        bounds=plane.legend_bounds,
        twins=tuple(twin_rows(plane)),
        is_shaded=bool(plane.level_roofs and plane.pipe_roofs),
        has_slope_bands=any(roof.spread for roof in plane.level_roofs),
        has_flat_bands=any(roof.spread for roof in plane.pipe_roofs),
        has_versions=bool(versions(plane)),
        has_loops=bool(plane.loops),
        has_beyond=any(map(plane.beyond, plane.choices)),
        is_crowded=len(plane.launches) > CROWD,
        dot_areas_px2=areas_px2(plane),
        course_roofs=tuple(f"{roof.peak:.4g}" for roof in plane.pipe_roofs) if course_rows(plane) else None,
    )
