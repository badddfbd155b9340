"""Time by kernel as a Vega-Lite specification: names, times and one bar per kernel, split by verdict.

The rows are launches; sums, ranks and the words beside the bars are worked out in the chart, so that hiding launches
lays out anew the bars that are left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens import format as fmt
from rooflens.format import plain_name
from rooflens.model.bounds import BOUNDS
from rooflens.report.html.embed import SCHEMA_URL
from rooflens.report.html.theme import LOOKS
from rooflens.report.plane.expressions import percent
from rooflens.report.plane.marks import Rows, expr, let, nominal, op, quantity, values
from rooflens.report.plane.names import short_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.bounds import Bound
    from rooflens.model.summary import Launch
    from rooflens.report.content import Content
    from rooflens.report.plane.marks import Layer

WIDTH = 400
ROW_PX = 34
MAX_ROWS = 12
NAME_WIDTH = 40
REPORT_WIDTH = 20
FULL_WIDTH = 160

FAINT = 0.2
"""Opacity of the other kernels while one is isolated."""

LAST = 1_000_000
"""Order of the kernels that are not drawn: after all others."""

_LIT = f"kernel === '' || datum.g === kernel ? 1 : {FAINT}"


def time_spec(content: Content) -> dict[str, Any]:
    """Specify the bars of the kernels that take most time; the rest share the last bar.

    Kernels without a duration have no bar. The page sets the signals `hidden` (keys of launches left out), `kernel`
    (key of the kernel that is isolated) and `w` (width in pixels).
    """
    pieces = time_pieces(content)
    count = min(MAX_ROWS, len({piece["g"] for piece in pieces}))
    undrawn = content.other.kernels if content.other else 0
    return {
        "$schema": SCHEMA_URL,
        "width": WIDTH,
        "height": ROW_PX * count,
        "params": values(hidden={}, kernel="", w=WIDTH),
        "data": {"name": "pieces"},
        "transform": [*_summed(), *_placed(undrawn), *_stacked(content.total_ns)],
        "layer": _layers(count),
        "datasets": {"pieces": pieces},
    }


def time_pieces(content: Content) -> list[dict[str, Any]]:
    """List the launches that are drawn, the median one of each kernel first, then the time of all others by verdict.

    Where one launch of each kernel is drawn there is a piece for each verdict of its launches. Keys: `k` launch and `g`
    kernel (both empty for the others), `o` place of the kernel by time, `name` and the short `label` of the kernel,
    `bound`, `ns`.
    """
    summed = {kernel.key: kernel for kernel in content.kernels}
    medians = {kernel.representative.key for kernel in content.kernels}
    launches = sorted(
        (launch for launch in content.timed if launch.duration_ns), key=lambda one: one.key not in medians
    )
    reports = content.report_labels if len(content.report_labels) > 1 else {}
    kernels = {(launch.gpu, launch.name): launch.analysis for launch in launches}
    names = short_names(kernels, NAME_WIDTH - (REPORT_WIDTH if reports else 0))
    pieces = []
    for launch in launches:
        of_launch = {launch.bound: launch.duration_ns or 0.0}
        parts = summed[launch.group_key].bound_ns if content.aggregated else of_launch
        label = _label(launch, names[launch.gpu, launch.name], reports)
        pieces += [_piece(launch, label, bound, time_ns) for bound, time_ns in parts.items()]
    others = content.other.bound_ns if content.other else {}
    return pieces + [
        {"k": "", "g": "", "o": LAST, "name": "", "label": "", "bound": bound, "ns": time_ns}
        for bound, time_ns in others.items()
    ]


def _label(launch: Launch, name: str, reports: Mapping[str, str]) -> str:
    """Name a kernel, with its report where there are several."""
    report = reports.get(launch.analysis.kernel.digest, "")
    return f"{name}, {fmt.cut_middle(report, REPORT_WIDTH)}" if report else name


def _piece(launch: Launch, label: str, bound: Bound, time_ns: float) -> dict[str, Any]:
    return {
        "k": launch.key,
        "g": launch.group_key,
        "o": int(launch.group_key.removeprefix("g")),
        "name": fmt.cut_middle(plain_name(launch.name), FULL_WIDTH),
        "label": label,
        "bound": bound,
        "ns": time_ns,
    }


def _summed() -> list[dict[str, Any]]:
    """Sum what is not hidden by kernel and verdict; `median` is the kernel's median launch."""
    return [
        {"filter": "!hidden[datum.k]"},
        {"joinaggregate": [op("sum", "ns", "total")], "groupby": ["g"]},
        # The first row of a kernel is its median launch.
        {"window": [op("first_value", "k", "median")], "groupby": ["g"], "frame": [None, None]},
        {"aggregate": [op("sum", "ns", "ns")], "groupby": ["g", "o", "name", "label", "median", "total", "bound"]},
    ]


def _placed(undrawn_kernels: int) -> list[dict[str, Any]]:
    """Number the bars from 0 as `i`: the kernels with most time have one each, and the rest the last one.

    An isolated kernel always has a bar of its own: where it takes too little time for one, the last kernel gives way.
    """
    order = [_falling("total"), {"field": "o", "order": "ascending"}]
    bars = f"datum.rows > {MAX_ROWS} ? {MAX_ROWS - 1} : datum.rows - datum.undrawn"
    rest = f"datum.rows - datum.undrawn - datum.own + datum.undrawn * {undrawn_kernels}"
    others = f"format({rest}, ',') + ({rest} === 1 ? ' other kernel' : ' other kernels')"
    return [
        let("last", "datum.g === '' ? 1 : 0"),
        {"window": [op("dense_rank", None, "rank")], "sort": [{"field": "last", "order": "ascending"}, *order]},
        {"joinaggregate": [op("max", "rank", "rows"), op("max", "last", "undrawn")]},
        let("own", bars),
        let("pulled", "datum.g !== '' && datum.g === kernel && datum.rank > datum.own ? 1 : 0"),
        {"joinaggregate": [op("max", "pulled", "gone")]},
        let("single", "datum.pulled || datum.rank <= datum.own - datum.gone"),
        let("i", "datum.pulled ? datum.own - 1 : datum.single ? datum.rank - 1 : datum.own"),
        # Signals run these again on the same rows, so none may write over what it reads.
        let("to_g", "datum.single ? datum.g : ''"),
        let("to_k", "datum.single ? datum.median : ''"),
        let("title", f"datum.single ? datum.name : {others}"),
        let("text", f"datum.single ? datum.label : {others}"),
    ]


def _stacked(total_ns: float) -> list[dict[str, Any]]:
    """Lay the pieces of each bar side by side in the order of verdicts, and write their words."""
    return [
        {"aggregate": [op("sum", "ns", "ns")], "groupby": ["i", "to_g", "to_k", "title", "text", "bound"]},
        let("g", "datum.to_g"),
        let("k", "datum.to_k"),
        {"joinaggregate": [op("sum", "ns", "total")], "groupby": ["i"]},
        {"joinaggregate": [op("max", "total", "longest")]},
        let("part", "datum.ns / datum.longest"),
        {"window": [op("first_value", "bound", "main")], "groupby": ["i"], "sort": [_falling("ns")],
         "frame": [None, None]},
        let("b", f"indexof({list(BOUNDS)}, datum.bound)"),
        {"stack": "part", "groupby": ["i"], "sort": [{"field": "b", "order": "ascending"}], "as": ["x", "x2"]},
        let("timeText", f"{_duration('datum.total')} + '  ' + {percent(f'datum.total / {total_ns!r}')}"),
        let("pieceText", f"{_duration('datum.ns')} + ' ' + datum.bound"),
    ]  # fmt: skip


def _falling(field: str) -> dict[str, str]:
    return {"field": field, "order": "descending"}


def _duration(ns: str) -> str:
    """Write nanoseconds as `fmt.duration` does: in the largest unit that leaves one digit before the point."""
    steps = "".join(
        f"{ns} >= {0.9995 * size:.10g} ? format({ns} / {size:.10g}, ',.3r') + ' {unit}' : "
        for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "\u00b5s"))
    )
    return f"({steps}format({ns}, ',.3r') + ' ns')"


def _layers(count: int) -> list[Layer]:
    """Draw a line of words per kernel, and its bar below it."""
    scale = {"domain": [count, 0], "nice": False, "zero": False}
    words = Rows().where("datum.x === 0").having(mid="datum.i + 0.32")
    at = {"y": quantity("mid", axis=None, scale=scale)}
    named = {**at, "x": {"value": 18}, "text": nominal("text"), "tooltip": _told("title", "Kernel")}
    return [
        _symbols(words, at),
        words.mark("text", named, style="label", align="left", limit=expr("w - 130"), opacity=expr(_LIT)),
        words.mark(
            "text",
            {**at, "x": {"value": "width"}, "text": nominal("timeText")},
            style="note",
            align="right",
            opacity=expr(_LIT),
        ),
        _bars(scale),
    ]


def _symbols(words: Rows, at: Layer) -> Layer:
    """Draw the shape of the verdict with most of the kernel's time before its name."""
    shapes = {"domain": list(BOUNDS), "range": [LOOKS[bound].shape for bound in BOUNDS]}
    channels = {
        **at,
        "x": {"value": 6},
        "shape": nominal("main", scale=shapes, legend=None),
        "fill": _colour("main"),
        "stroke": _colour("main"),
        "fillOpacity": {"condition": {"test": "datum.main === 'unknown'", "value": 0}, "value": 1},
    }
    return words.mark("point", channels, filled=True, size=70, strokeWidth=1.5, opacity=expr(_LIT))


def _bars(scale: Layer) -> Layer:
    channels = {
        "x": quantity("x", axis=None, scale={"domain": [0, 1]}),
        "x2": {"field": "x2"},
        "y": quantity("top", axis=None, scale=scale),
        "y2": {"field": "bottom"},
        "fill": _colour("bound"),
        "tooltip": [_told("title", "Kernel"), _told("pieceText", "Time")],
    }
    bars = Rows().having(top="datum.i + 0.56", bottom="datum.i + 0.86")
    return bars.mark("rect", channels, cursor="pointer", cornerRadius=1, opacity=expr(_LIT))


def _colour(field: str) -> Layer:
    return nominal(field, scale={"domain": list(BOUNDS)}, legend=None)


def _told(field: str, title: str) -> Layer:
    return nominal(field, title=title)
