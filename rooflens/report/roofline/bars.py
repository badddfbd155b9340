"""Kernels that have no place in the roofline: bars of what they take of each memory level's peak bandwidth.

The rows are launches; of those of a kernel that are not hidden the first one has the bars, and the order of the kernels
is worked out in the chart, so that hiding launches lays out anew what is left.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rooflens.model.records import LEVELS
from rooflens.model.roofline.work import main_work
from rooflens.model.summary import median_launch
from rooflens.model.verdict.sentences import limit_words
from rooflens.report.plane import expressions as text
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import QUIET, Rows, expr, let, lookup, op, quantity
from rooflens.report.roofline.rows import rounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflens.model.summary import Launch
    from rooflens.report.plane.marks import Layer
    from rooflens.report.plane.plane import Plane

KERNELS_ALONE = 6
KERNELS_BELOW = 3
"""Kernels with bars of their own where these are the whole picture, and below a plane."""

NAME_PX = 24
BAR_PX = 15
APART_PX = 8
REST_PX = 18
"""Heights of a kernel's name, of one bar, of the air below a kernel, and of the line about the others."""

LEVEL_PX = 56
"""Width of the levels' names left of the bars."""

VALUE_PX = 96
NARROW_VALUE_PX = 40
"""Width of the words right of them: share and rate, or the share alone."""

FAINT = 0.2
"""Opacity of the other kernels while one is isolated."""

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
"""Why a kernel has bars instead of a point, as it stands beside its name and over all of them."""

_LIT = f"kernel === '' || datum.g === kernel ? 1 : {FAINT}"
_FIELDS = ("name", "bound", "time", "verdict", "report")


def reason(launch: Launch) -> str:
    """Say why a launch has no place in the roofline: FLOPs that were not counted are not the same as none."""
    total = main_work(launch.analysis).total
    if not total:
        return UNCOUNTED if total is None else NONE
    return UNPLACED if any(level.amount_bytes for level in launch.analysis.levels.values()) else NO_BYTES


def reasons(plane: Plane) -> tuple[str, ...]:
    """List why launches stand outside the plane, each reason once."""
    found = {reason(share.launch) for share in plane.shares}
    return tuple(one for one in REASONS if one in found)


def bar_rows(plane: Plane) -> list[dict[str, Any]]:
    """Make one row per launch and level, the median launches first; `n` and `t` stand once in the rows of a launch.

    Keys: `l` place of the level, `t` share of GPU time, `n` launches it stands for, `o` place of the kernel by time,
    `unit` the busiest unit where that is a pipe.
    """
    levels = bar_levels(plane)
    several = len(reasons(plane)) > 1
    rows, seen = [], set()
    launches: defaultdict[str, dict[str, Launch]] = defaultdict(dict)
    for share in plane.shares:
        launches[share.launch.group_key][share.launch.key] = share.launch
    analyses = ([one.analysis for one in of_kernel.values()] for of_kernel in launches.values())
    medians = {id(median_launch(of_kernel)) for of_kernel in analyses}
    for share in sorted(
        plane.shares, key=lambda one: (id(one.launch.analysis) not in medians, -(one.launch.time_share or 0.0))
    ):
        launch, traffic = share.launch, share.launch.analysis.levels[share.level]
        row = {"k": launch.key, "g": launch.group_key, "o": int(launch.group_key.removeprefix("g")),
               "level": share.level, "l": levels.index(share.level), "share": rounded(share.share)}  # fmt: skip
        row |= {"rate": rounded(traffic.bytes_per_s)} if traffic.bytes_per_s else {}
        row |= {"why": reason(launch)} if several else {}
        row |= {"unit": limit_words(launch.analysis)} if _is_pipe(launch) else {}
        if launch.key not in seen:
            row |= {"t": rounded(launch.time_share or 0.0), "n": launch.analysis.launches}
        seen.add(launch.key)
        rows.append(row)
    return rows


def _is_pipe(launch: Launch) -> bool:
    """Tell whether the busiest unit has no bar of its own."""
    return launch.bottleneck is not None and launch.bottleneck.resource not in (None, *LEVELS)


def bar_levels(plane: Plane) -> list[str]:
    """List the levels that have bars, far to near."""
    present = {share.level for share in plane.shares}
    return [level for level in LEVELS if level in present]


def bars_height_px(plane: Plane) -> int:
    """Work out the height of all bars, with the line about the kernels that have none."""
    return _drawn(plane) * _kernel_px(plane) + (REST_PX if _drawn(plane) < _kernels(plane) else 0)


def bars_chart(plane: Plane, width_px: int) -> Layer:
    """Draw the kernels with most time: a line of words, and a bar for each level."""
    height = bars_height_px(plane)
    up = quantity("up", axis=None, scale={"domain": [height, 0], "nice": False, "zero": False})
    widest = max([1.0, *(share.share for share in plane.shares)])
    rows = [
        _tracks(widest), _bars(plane), _values(), _level_names(), *_kernel_names(), _symbols(plane), *_rest(plane)
    ]  # fmt: skip
    for layer in rows:
        layer["encoding"] = {"x": _across(widest), "y": up} | layer["encoding"]
    return {
        "name": "bars",
        "width": width_px,
        "height": height,
        "data": {"name": "bars"},
        "transform": _steps(plane),
        "layer": rows,
    } | ({"title": {"text": bars_heading(plane), "fontSize": 13, "limit": expr("w")}} if plane.points else {})


def bars_heading(plane: Plane) -> str:
    """Say what the bars are, and why these kernels have no point."""
    found = reasons(plane)
    head = REASONS[found[0] if len(found) == 1 else UNPLACED]
    return f"{head}: share of peak bandwidth by level"


def _kernels(plane: Plane) -> int:
    return len({share.launch.group_key for share in plane.shares})


def _drawn(plane: Plane) -> int:
    return min(_kernels(plane), KERNELS_BELOW if plane.points else KERNELS_ALONE)


def _kernel_px(plane: Plane) -> int:
    return NAME_PX + len(bar_levels(plane)) * BAR_PX + APART_PX


def _across(widest: float) -> Layer:
    """Leave room for the levels' names left of 0, and for the values right of the end."""
    value_px = f"(w < 480 ? {NARROW_VALUE_PX} : {VALUE_PX})"
    bars_px = f"(w - {LEVEL_PX} - {value_px})"
    ends = [f"-{LEVEL_PX} * {widest:.4g} / {bars_px}", f"{widest:.4g} * (1 + {value_px} / {bars_px})"]
    axis = {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1], "title": None}
    return quantity("share", axis=axis, scale={"domain": [expr(end) for end in ends], "nice": False, "zero": False})


def _steps(plane: Plane) -> list[Layer]:
    """Sum what is not hidden by kernel, and lay out the kernels with most time; an isolated one is always among them.

    Signals run these again on the same rows, so none may write over what it reads.
    """
    most = _drawn(plane)
    by_kernel: Iterable[Layer] = (op("sum", "t", "total"), op("sum", "n", "launches"))
    first: Iterable[Layer] = [op("first_value", name, f"first_{name}") for name in ("k", *_FIELDS, "why", "unit")]
    own: Iterable[Layer] = [op("first_value", name, f"first_{name}") for name in ("share", "rate")]
    one = ["g", "o", "total", "launches", "level", "l", *(step["as"] for step in (*first, *own))]
    return [
        {"filter": "!hidden[datum.k]"},
        lookup("k", "kernels", _FIELDS),
        {"joinaggregate": list(by_kernel), "groupby": ["g"]},
        # The first row of a kernel is its median launch.
        {"window": list(first), "groupby": ["g"], "frame": [None, None]},
        {"window": list(own), "groupby": ["g", "level"], "frame": [None, None]},
        {"aggregate": [op("min", "share", "least"), op("max", "share", "most")], "groupby": one},
        let("share", "datum.first_share"),
        let("rate", "datum.first_rate || 0"),
        *(let(name, f"datum.first_{name}") for name in ("k", *_FIELDS, "why", "unit")),
        {"joinaggregate": [op("max", "share", "busiest")], "groupby": ["g"]},
        {"window": [op("dense_rank", None, "rank")],
         "sort": [{"field": "total", "order": "descending"}, {"field": "o", "order": "ascending"}]},
        let("pulled", f"kernel !== '' && datum.g === kernel && datum.rank > {most} ? 1 : 0"),
        {"joinaggregate": [op("max", "pulled", "gone")]},
        let("own", f"datum.pulled || datum.rank <= {most} - datum.gone"),
        let("i", f"datum.pulled ? {most - 1} : datum.rank - 1"),
        let("top", f"datum.i * {_kernel_px(plane)} + {NAME_PX} + datum.l * {BAR_PX}"),
    ]  # fmt: skip


def _own() -> Rows:
    return Rows().where("datum.own")


def _tracks(widest: float) -> Layer:
    """Draw the ground of each bar: all of the peak."""
    rows = _own().having(up="datum.top + 2", down=f"datum.top + {BAR_PX - 2}", whole=f"{widest:.4g}", none="0")
    ends = {"x": {"field": "none"}, "x2": {"field": "whole"}, "y2": {"field": "down"}}
    return _kept(rows.mark("rect", ends, style="band", **QUIET), "none")


def _bars(plane: Plane) -> Layer:
    rows = _own().having(up="datum.top + 2", down=f"datum.top + {BAR_PX - 2}", none="0")
    channels = {
        "x2": {"field": "none"},
        "y2": {"field": "down"},
        "fill": verdict_channels(plane.bounds)["fill"],
    }
    channels["fillOpacity"] = {"condition": {"test": "datum.share === datum.busiest", "value": 0.9}, "value": 0.5}
    said = {"tooltip": expr(text.BAR_TOOLTIP), "description": expr(text.BAR_DESCRIPTION)}
    look = {"cursor": "pointer", "ariaRoleDescription": "kernel", "opacity": expr(_LIT), "cornerRadius": 1}
    return rows.mark("rect", channels, **look, **said)


def _values() -> Layer:
    rate = f"(w < 480 || !datum.rate ? '' : ', ' + {text.si('datum.rate', 'B/s')})"
    rows = _own().having(up=f"datum.top + {BAR_PX / 2}", words=f"{text.percent('datum.share')} + {rate}")
    return _words(rows, "note", align="left", dx=6)


def _level_names() -> Layer:
    rows = _own().having(up=f"datum.top + {BAR_PX / 2}", words=text.LEVEL, none="0")
    return _kept(_words(rows, "note", align="right", dx=-8), "none")


def _kernel_names() -> list[Layer]:
    """Write name, reason and busiest pipe of each kernel over its bars, and its part of the time at the right."""
    why = "(datum.report ? ', ' + datum.report : '') + (datum.why ? ' (' + datum.why + ')' : '')"
    unit = "(datum.unit ? ', ' + datum.unit : '')"
    name = _once().having(words=f"texts[datum.name] + (w < 480 ? '' : {why}) + {unit}")
    count = "(datum.launches > 1 && w >= 480 ? format(datum.launches, ',') + ' launches, ' : '')"
    time = _once().having(words=f"{count} + {text.percent('datum.total')} + (w < 480 ? '' : ' of GPU time')")
    return [
        _at(_words(name, "label", align="left", limit=expr("w - (w < 480 ? 76 : 216)")), SYMBOL_PX),
        _at(_words(time, "note", align="right"), "w"),
    ]


def _once() -> Rows:
    """Take one row of each kernel, at the height of its name."""
    rows = _own().then({"window": [op("row_number", None, "row")], "groupby": ["g"]}).where("datum.row === 1")
    return rows.having(up=f"datum.top - datum.l * {BAR_PX} - {NAME_PX / 2 - 2}")


def _symbols(plane: Plane) -> Layer:
    """Draw the shape of the verdict of each kernel's median launch before its name."""
    hollow = {"fillOpacity": {"condition": {"test": "datum.bound === 'unknown'", "value": 0}, "value": 1}}
    look = {"filled": True, "size": 70, "strokeWidth": 1.5, "opacity": expr(_LIT), "aria": False}
    return _at(_once().mark("point", verdict_channels(plane.bounds) | hollow, **look), SYMBOL_PX // 3)


def _rest(plane: Plane) -> list[Layer]:
    """Say how many kernels have no bars, and what they take."""
    if _drawn(plane) == _kernels(plane):
        return []
    once = {"window": [op("row_number", None, "row")], "groupby": ["g"]}
    rows = Rows().where("!datum.own").then(once).where("datum.row === 1")
    rows = rows.then({"aggregate": [op("count", None, "count"), op("sum", "total", "time")]})
    rows = rows.having(
        up=f"{_drawn(plane) * _kernel_px(plane) + REST_PX / 2}",
        words="format(datum.count, ',') + ' more ' + (datum.count === 1 ? 'kernel' : 'kernels') + ', '"
        f" + {text.percent('datum.time')} + ' of GPU time'",
    )
    return [_at(_words(rows.where("datum.count > 0"), "note", align="left", limit=expr("w")), 0, lit=False)]


def _words(rows: Rows, style: str, **look: Any) -> Layer:
    channels = {"text": {"field": "words", "type": "nominal"}}
    return rows.mark("text", channels, style=style, baseline="middle", aria=False, opacity=expr(_LIT), **look)


def _at(layer: Layer, px: int | str, *, lit: bool = True) -> Layer:
    """Put words at a distance from the left edge."""
    layer["encoding"]["x"] = {"value": expr(px) if isinstance(px, str) else px}
    if not lit:
        del layer["mark"]["opacity"]
    return layer


def _kept(layer: Layer, field: str) -> Layer:
    """Begin a layer at a field of its own."""
    layer["encoding"]["x"] = {"field": field, "type": "quantitative"}
    return layer
