"""Kernels that have no place in the roofline: bars of what they take of each memory level's peak bandwidth.

The first, darkest bar of a kernel is that of the unit nearest its peak, be it a level, a pipe or instruction issue.

The rows are launches; of those of a kernel that are not hidden the first one has the bars, and the order of the kernels
is worked out in the chart, so that hiding launches lays out anew what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from rooflens.model.records import LEVELS
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict_classes import ShownClass
from rooflens.report.plane import expressions as text
from rooflens.report.plane.geometry import text_px
from rooflens.report.plane.later import alt
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import LIT_BAR, QUIET, Style, either, layered, of_kernels, rounded
from rooflens.report.plane.plane import BarredLaunch, LevelShare, Plane

KERNELS_ALONE = 6
KERNELS_BELOW = 3
"""Kernels with bars of their own where these are the whole picture, and below a plane."""

NAME_PX = 24
BAR_PX = 15
APART_PX = 8
REST_PX = 18
"""Heights of a kernel's name, of one bar, of the air below a kernel, and of the line about the others."""

LEVEL_PX, MOST_LEVEL_PX = 56, 120
"""Least and most width of the names left of the bars."""

UNIT = "unit"
"""Stands for a unit nearest its peak that is no level, or a level whose bandwidth was not measured."""

GAP_PX = 8
"""Between a name and its bar."""

VALUE_PX = 96
NARROW_VALUE_PX = 40
"""Width of the words right of them: share and rate, or the share alone."""


SYMBOL_PX = 18
"""Room of the verdict's shape before a name."""

UNCOUNTED = "FLOPs not counted"
NONE = "no FLOPs"
NO_BYTES = "bytes not counted"
UNPLACED = "no place in the roofline"
REASONS: Mapping[str, str] = {
    UNCOUNTED: "FLOPs not counted",
    NONE: "Kernels without FLOPs",
    NO_BYTES: "Bytes not counted",
    UNPLACED: "No place in the roofline",
}
"""Why a kernel has bars instead of a point, as shown next to its name and above all of them."""

_FIELDS = ("name", "bound", "time", "verdict", "report")


def reasons(plane: Plane) -> tuple[str, ...]:
    """List why launches stand outside the plane, each reason once."""
    found = {share.launch.why for share in plane.shares}
    return tuple(one for one in REASONS if one in found)


def bar_rows(plane: Plane) -> list[dict[str, Any]]:
    """Make a row per launch and level, the median launches first; `n` and `t` stand once in the rows of a launch.

    Keys: `l` place of the bar in its kernel, `t` share of GPU time, `n` launches it stands for, `o` place of the kernel
    by time, `head` name of a bar that is no level's.
    """
    several = len(reasons(plane)) > 1
    rows, seen = [], set()
    medians = {one.group_key: one for one in _barred(plane) if one.is_median}
    order = {group: _order(median, bar_levels(plane)) for group, median in medians.items()}
    shares = sorted(_with_units(plane, medians), key=lambda one: -one.launch.time_share)
    for share in sorted(shares, key=lambda one: not one.launch.is_median):
        launch = share.launch
        row = {"k": launch.key, "g": launch.group_key, "o": int(launch.group_key.removeprefix("g")),
               "level": share.level, "l": order[launch.group_key].index(share.level),
               "share": rounded(share.share)}  # fmt: skip
        row |= {"rate": rounded(share.bytes_per_s)} if share.bytes_per_s else {}
        row |= {"head": _unit_name(plane, launch)} if share.level == UNIT else {}
        row |= {"why": launch.why} if several else {}
        if launch.key not in seen:
            # Of versions that a ladder follows each takes nearly all of its own report: that says nothing of any.
            row |= {"t": 0.0 if plane.climbers else rounded(launch.time_share), "n": launch.launches}
        seen.add(launch.key)
        rows.append(row)
    return rows


def _barred(plane: Plane) -> list[BarredLaunch]:
    return [*{share.launch.key: share.launch for share in plane.shares}.values()]


def _unit_name(plane: Plane, launch: BarredLaunch) -> str:
    found = launch.bottleneck
    return resource_label(found.unit or found.resource if found else None, plane.gpu)


def _order(launch: BarredLaunch, levels: Sequence[str]) -> list[str]:
    """List the bars of a kernel: the unit nearest its peak, then levels from far to near."""
    return [*([launch.leading] if launch.leading else []), *(level for level in levels if level != launch.leading)]


def _with_units(plane: Plane, medians: Mapping[str, BarredLaunch]) -> Iterator[LevelShare]:
    """Yield the shares of levels, and of each launch that of the unit that its kernel's verdict goes by."""
    yield from plane.shares
    for launch in _barred(plane):
        median, own = medians[launch.group_key], launch.bottleneck
        limit = median.bottleneck
        if median.leading == UNIT and own and limit and own.resource == limit.resource:
            yield LevelShare(launch, UNIT, own.share)


def bar_levels(plane: Plane) -> list[str]:
    """List the levels that have bars, far to near."""
    present = {share.level for share in plane.shares}
    return [level for level in LEVELS if level in present]


def _bar_count(plane: Plane) -> int:
    return len(bar_levels(plane)) + any(launch.leading == UNIT for launch in _barred(plane))


def _level_px(plane: Plane) -> int:
    """Work out the width of the names left of the bars."""
    units = [_unit_name(plane, launch) for launch in _barred(plane) if launch.leading == UNIT]
    names = [*units, *(plane.level_names[level] for level in bar_levels(plane))]
    return round(min(MOST_LEVEL_PX, max(LEVEL_PX, *(text_px(name) + GAP_PX for name in names))))


class BarLayout(Struct, frozen=True):
    """What the bars of a plane are built from, besides their rows.

    Attributes:
        heading: Stands over them; empty where the title of the chart says it.
        widest: The longest bar, a share of a peak, as a number of an expression.
        level_px: Width of the names left of them.
        kernel_px: Height of all bars of a kernel.
        kernels: How many have bars.
        has_rest: More have none.
    """

    heading: str
    bounds: tuple[ShownClass, ...]
    widest: str
    level_px: int
    kernel_px: int
    kernels: int
    has_rest: bool

    @property
    def height_px(self) -> int:
        """Height of all bars, with the line about the kernels that have none."""
        return self.kernels * self.kernel_px + (REST_PX if self.has_rest else 0)


def bar_layout(plane: Plane) -> BarLayout:
    """Say what the bars of a plane are built from."""
    all_kernels = len({share.launch.group_key for share in plane.shares})
    kernels = min(all_kernels, KERNELS_BELOW if plane.points else KERNELS_ALONE)
    return BarLayout(
        heading=bars_heading(plane) if plane.points else "",
        bounds=plane.legend_bounds,
        widest=f"{max([1.0, *(share.share for share in plane.shares)]):.4g}",
        level_px=_level_px(plane),
        kernel_px=NAME_PX + _bar_count(plane) * BAR_PX + APART_PX,
        kernels=kernels,
        has_rest=kernels < all_kernels,
    )


def bars_chart(layout: BarLayout, width_px: int) -> alt.LayerChart:
    """Draw the kernels with most time: a line of words, and a bar for each level."""
    height, widest, level_px = layout.height_px, layout.widest, layout.level_px
    up = alt.Y("up:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False, zero=False))
    at = {"x": _across(widest, level_px), "y": up}
    rows = [
        _tracks(widest, up), _bars(layout, at), *_bar_words(at, level_px), *_kernel_names(up), _symbols(layout, up),
        *_rest(layout, up),
    ]  # fmt: skip
    title = alt.TitleParams(layout.heading, fontSize=13, limit=alt.ExprRef("w"))
    return layered(
        rows,
        data=alt.NamedData("bars"),
        transform=_laid_out(layout),
        name="bars",
        width=width_px,
        height=height,
        title=title if layout.heading else alt.Undefined,
    )


def bars_heading(plane: Plane) -> str:
    """Say what the bars are, and why these kernels have no point."""
    found = reasons(plane)
    head = REASONS[found[0] if len(found) == 1 else UNPLACED]
    return f"{head}: share of peak, by unit and memory level"


def _across(widest: str, level_px: int) -> alt.X:
    """Leave room for the names of levels and units left of 0, and for the values right of the end."""
    value_px = f"(w < 480 ? {NARROW_VALUE_PX} : {VALUE_PX})"
    bars_px = f"(w - {level_px} - {value_px})"
    ends = [f"-{level_px} * {widest} / {bars_px}", f"{widest} * (1 + {value_px} / {bars_px})"]
    axis = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], title=None)
    return alt.X("share:Q", axis=axis, scale=alt.Scale(domain=[*map(alt.ExprRef, ends)], nice=False, zero=False))


def _laid_out(layout: BarLayout) -> list[Any]:
    """Sum what is not hidden by kernel, and lay out the kernels with most time; an isolated one is always among them.

    Parameters run these again on the same rows, so none may write over what it reads.
    """
    most = layout.kernels
    of_kernel, of_level = ("k", *_FIELDS, "why"), ("share", "rate", "head")
    first: dict[str, Any] = {f"first_{name}": f"first_value({name})" for name in of_kernel}
    own: dict[str, Any] = {f"first_{name}": f"first_value({name})" for name in of_level}
    one: list[Any] = ["g", "o", "total", "launches", "level", "l", *first, *own]
    order: list[Any] = [alt.SortField("total", "descending"), alt.SortField("o", "ascending")]
    steps: list[Any] = (
        alt.Chart()
        .transform_filter("!hidden[datum.k]")
        .transform_lookup("k", of_kernels(_FIELDS))
        .transform_joinaggregate(groupby=["g"], total="sum(t)", launches="sum(n)")
        # The first row of a kernel is its median launch.
        .transform_window(groupby=["g"], frame=[None, None], **first)
        .transform_window(groupby=["g", "level"], frame=[None, None], **own)
        .transform_aggregate(groupby=one, least="min(share)", most="max(share)")
        .transform_calculate(share="datum.first_share", rate="datum.first_rate || 0", head="datum.first_head")
        .transform_calculate(**{name: f"datum.first_{name}" for name in of_kernel})
        .transform_window(rank="dense_rank()", sort=order)
        .transform_calculate(pulled=f"kernel !== '' && datum.g === kernel && datum.rank > {most} ? 1 : 0")
        .transform_joinaggregate(gone="max(pulled)")
        .transform_calculate(own=f"datum.pulled || datum.rank <= {most} - datum.gone")
        .transform_calculate(i=f"datum.pulled ? {most - 1} : datum.rank - 1")
        .transform_calculate(top=f"datum.i * {layout.kernel_px} + {NAME_PX} + datum.l * {BAR_PX}")
        .transform
    )
    return steps


def _only_own_rows() -> alt.Chart:
    return alt.Chart().transform_filter("datum.own")


def _tracks(widest: str, up: alt.Y) -> alt.Chart:
    """Draw the ground of each bar: all of the peak."""
    rows = _only_own_rows().transform_calculate(
        up="datum.top + 2", down=f"datum.top + {BAR_PX - 2}", whole=widest, none="0"
    )
    return rows.mark_rect(style="band", **QUIET).encode(x=alt.X("none:Q"), y=up, x2=alt.X2("whole"), y2=alt.Y2("down"))


def _bars(layout: BarLayout, at: Style) -> alt.Chart:
    rows = _only_own_rows().transform_calculate(up="datum.top + 2", down=f"datum.top + {BAR_PX - 2}", none="0")
    said: Style = {"tooltip": alt.ExprRef(text.BAR_TOOLTIP), "description": alt.ExprRef(text.BAR_DESCRIPTION)}
    look: Style = {"cursor": "pointer", "ariaRoleDescription": "kernel", "opacity": LIT_BAR, "cornerRadius": 1}
    inks = verdict_channels(layout.bounds)
    return rows.mark_rect(**look, **said).encode(
        **at,
        x2=alt.X2("none"),
        y2=alt.Y2("down"),
        fill=inks["fill"],
        stroke=inks["stroke"],  # all that is seen of the bars of an open class, which are hollow
        fillOpacity=alt.FillOpacityValue(**either("datum.l === 0", 0.9, 0.5)),
        strokeOpacity=alt.StrokeOpacityValue(**either("datum.l === 0", 0.9, 0.5)),
    )


def _bar_words(at: Style, level_px: int) -> list[alt.Chart]:
    """Write share and rate right of each bar, and its level or unit left of it."""
    rows = _only_own_rows().transform_calculate(up=f"datum.top + {BAR_PX / 2}", none="0")
    rate = f"(w < 480 || !datum.rate ? '' : ', ' + {text.si('datum.rate', 'B/s')})"
    values = rows.transform_calculate(words=f"{text.percent('datum.share')} + {rate}")
    levels = rows.transform_calculate(words=text.BAR)
    return [
        _words_chart(values, at, "note", align="left", dx=6, opacity=LIT_BAR),
        _words_chart(
            levels,
            {**at, "x": alt.X("none:Q")},
            "note",
            align="right",
            dx=-GAP_PX,
            limit=level_px - GAP_PX,
            opacity=LIT_BAR,
        ),
    ]


def _kernel_names(up: alt.Y) -> list[alt.Chart]:
    """Write name and reason of each kernel over its bars, and its part of the time at the right."""
    why = "(datum.report ? ', ' + datum.report : '') + (datum.why ? ' (' + datum.why + ')' : '')"
    name = _once().transform_calculate(words=f"texts[datum.name] + (w < 480 ? '' : {why})")
    count = "(datum.launches > 1 && w >= 480 ? format(datum.launches, ',') + ' launches, ' : '')"
    part = f"datum.total > 0 ? {count} + {text.percent('datum.total')} + (w < 480 ? '' : ' of GPU time') : ''"
    limit = alt.ExprRef("w - (w < 480 ? 76 : 216)")
    left, right = {"x": _at_px(SYMBOL_PX), "y": up}, {"x": _at_px(alt.ExprRef("w")), "y": up}
    return [
        _words_chart(name, left, "label", align="left", limit=limit, opacity=LIT_BAR),
        _words_chart(_once().transform_calculate(words=part), right, "note", align="right", opacity=LIT_BAR),
    ]


def _once() -> alt.Chart:
    """Take one row of each kernel, at the height of its name."""
    rows = _only_own_rows().transform_window(row="row_number()", groupby=["g"]).transform_filter("datum.row === 1")
    return rows.transform_calculate(up=f"datum.top - datum.l * {BAR_PX} - {NAME_PX / 2 - 2}")


def _symbols(layout: BarLayout, up: alt.Y) -> alt.Chart:
    """Draw the shape of the verdict of each kernel's median launch before its name."""
    return (
        _once()
        .mark_point(filled=True, size=70, strokeWidth=1.5, opacity=LIT_BAR, aria=False)
        .encode(
            **verdict_channels(layout.bounds),
            x=_at_px(SYMBOL_PX // 3),
            y=up,
        )
    )


def _rest(layout: BarLayout, up: alt.Y) -> list[alt.Chart]:
    """Say how many kernels have no bars, and what they take."""
    if not layout.has_rest:
        return []
    rows = alt.Chart().transform_filter("!datum.own").transform_window(row="row_number()", groupby=["g"])
    rows = rows.transform_filter("datum.row === 1").transform_aggregate(count="count()", time="sum(total)")
    rows = rows.transform_calculate(
        up=f"{layout.height_px - REST_PX / 2}",
        # Shares of versions are of their own reports: nothing is said of their sum.
        words="format(datum.count, ',') + ' more ' + (datum.count === 1 ? 'kernel' : 'kernels')"
        f" + (datum.time > 0 && datum.time < 1.005 ? ', ' + {text.percent('datum.time')} + ' of GPU time' : '')",
    )
    rows = rows.transform_filter("datum.count > 0")
    return [_words_chart(rows, {"x": _at_px(0), "y": up}, "note", align="left", limit=alt.ExprRef("w"))]


def _at_px(x: int | alt.ExprRef) -> alt.XValue:
    return alt.XValue(x)  # type: ignore[no-untyped-call]  # as Altair has it


def _words_chart(rows: alt.Chart, at: Style, style: str, **look: Any) -> alt.Chart:
    drawn: alt.Chart = rows.mark_text(style=style, baseline="middle", aria=False, **look).encode(
        **at, text=alt.Text("words:N")
    )
    return drawn
