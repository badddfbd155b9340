"""Time by kernel as an Altair chart: names, times and one bar per kernel, split by verdict.

The rows are launches; sums, ranks and the words beside the bars are worked out in the chart, so that hiding launches
lays out anew the bars that are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from rooflens import format as fmt
from rooflens.model.bounds import SHOWN_CLASSES
from rooflens.model.summary import Launch
from rooflens.report.content import Content
from rooflens.report.html.theme import LOOKS
from rooflens.report.plane.expressions import percent
from rooflens.report.plane.legend import fill_opacity
from rooflens.report.plane.marks import LIT_BAR, Spec, layered, specify, values
from rooflens.report.plane.names import short_names

WIDTH = 400
ROW_PX = 34
MAX_ROWS = 12
NAME_WIDTH = 40
REPORT_WIDTH = 20
FULL_WIDTH = 160


LAST = 1_000_000
"""Order of the kernels that are not drawn: after all others."""

_COLOURS: Mapping[str, Any] = {"scale": alt.Scale(domain=list(SHOWN_CLASSES)), "legend": None}


def time_spec(content: Content) -> Spec:
    """Specify the bars of the kernels that take most time; the rest share the last bar.

    Kernels without a duration have no bar. The page sets the parameters `hidden` (keys of launches left out), `kernel`
    (key of the kernel that is isolated) and `w` (width in pixels).
    """
    pieces = time_pieces(content)
    count = min(MAX_ROWS, len({piece["g"] for piece in pieces}))
    undrawn = content.other.kernels if content.other else 0
    bars = layered(
        _layers(count),
        data=alt.NamedData("pieces"),
        transform=_stacked(_placed(_summed(alt.Chart()), undrawn), content.total_ns).transform,
        width=WIDTH,
        height=ROW_PX * count,
    )
    return specify(bars, values(hidden={}, kernel="", w=WIDTH), {"pieces": pieces})


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
        of_launch = {launch.shown_class: launch.duration_ns or 0.0}
        parts = summed[launch.group_key].class_ns if content.aggregated else of_launch
        label = _label(launch, names[launch.gpu, launch.name], reports)
        pieces += [_piece(launch, label, bound, time_ns) for bound, time_ns in parts.items()]
    others = content.other.class_ns if content.other else {}
    return pieces + [
        {"k": "", "g": "", "o": LAST, "name": "", "label": "", "bound": bound, "ns": time_ns}
        for bound, time_ns in others.items()
    ]


def _label(launch: Launch, name: str, reports: Mapping[str, str]) -> str:
    """Name a kernel, with its report where there are several."""
    report = reports.get(launch.analysis.kernel.digest, "")
    return f"{name}, {fmt.cut_middle(report, REPORT_WIDTH)}" if report else name


def _piece(launch: Launch, label: str, bound: str, time_ns: float) -> dict[str, Any]:
    return {
        "k": launch.key,
        "g": launch.group_key,
        "o": int(launch.group_key.removeprefix("g")),
        "name": fmt.cut_middle(launch.short_name, FULL_WIDTH),
        "label": label,
        "bound": bound,
        "ns": time_ns,
    }


def _summed(bars: alt.Chart) -> alt.Chart:
    """Sum what is not hidden by kernel and verdict; `median` is the kernel's median launch."""
    return (
        bars.transform_filter("!hidden[datum.k]")
        .transform_joinaggregate(total="sum(ns)", groupby=["g"])
        # The first row of a kernel is its median launch.
        .transform_window(median="first_value(k)", groupby=["g"], frame=[None, None])
        .transform_aggregate(ns="sum(ns)", groupby=["g", "o", "name", "label", "median", "total", "bound"])
    )


def _placed(bars: alt.Chart, undrawn_kernels: int) -> alt.Chart:
    """Number the bars from 0 as `i`: the kernels with most time have one each, and the rest the last.

    An isolated kernel always has a bar of its own: where it takes too little time for one, the last kernel gives way.
    """
    order: list[Any] = [
        alt.SortField("last", "ascending"),
        alt.SortField("total", "descending"),
        alt.SortField("o", "ascending"),
    ]
    rest = f"datum.rows - datum.undrawn - datum.own + datum.undrawn * {undrawn_kernels}"
    others = f"format({rest}, ',') + ({rest} === 1 ? ' other kernel' : ' other kernels')"
    return (
        bars.transform_calculate(last="datum.g === '' ? 1 : 0")
        .transform_window(rank="dense_rank()", sort=order)
        .transform_joinaggregate(rows="max(rank)", undrawn="max(last)")
        .transform_calculate(
            own=f"datum.rows > {MAX_ROWS} ? {MAX_ROWS - 1} : datum.rows - datum.undrawn",
            pulled="datum.g !== '' && datum.g === kernel && datum.rank > datum.own ? 1 : 0",
        )
        .transform_joinaggregate(gone="max(pulled)")
        .transform_calculate(
            single="datum.pulled || datum.rank <= datum.own - datum.gone",
            i="datum.pulled ? datum.own - 1 : datum.single ? datum.rank - 1 : datum.own",
            # Parameters run these again on the same rows, so none may write over what it reads.
            to_g="datum.single ? datum.g : ''",
            to_k="datum.single ? datum.median : ''",
            title=f"datum.single ? datum.name : {others}",
            text=f"datum.single ? datum.label : {others}",
        )
    )


def _stacked(bars: alt.Chart, total_ns: float) -> alt.Chart:
    """Lay the pieces of each bar side by side in the order of verdicts, and write their words."""
    largest: list[Any] = [alt.SortField("ns", "descending")]
    return (
        bars.transform_aggregate(ns="sum(ns)", groupby=["i", "to_g", "to_k", "title", "text", "bound"])
        .transform_calculate(g="datum.to_g", k="datum.to_k")
        .transform_joinaggregate(total="sum(ns)", groupby=["i"])
        .transform_joinaggregate(longest="max(total)")
        .transform_calculate(part="datum.ns / datum.longest")
        .transform_window(main="first_value(bound)", groupby=["i"], sort=largest, frame=[None, None])
        .transform_calculate(b=f"indexof({list(SHOWN_CLASSES)}, datum.bound)")
        .transform_stack(as_=["x", "x2"], stack="part", groupby=["i"], sort=[alt.SortField("b", "ascending")])
        .transform_calculate(
            timeText=f"{_duration('datum.total')} + '  ' + {percent(f'datum.total / {total_ns!r}')}",
            pieceText=f"{_duration('datum.ns')} + ' ' + datum.bound",
        )
    )


def _duration(ns: str) -> str:
    """Write nanoseconds as `fmt.duration` does: in the largest unit that leaves one digit before the point."""
    steps = "".join(
        f"{ns} >= {0.9995 * size:.10g} ? format({ns} / {size:.10g}, ',.3r') + ' {unit}' : "
        for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "\u00b5s"))
    )
    return f"({steps}format({ns}, ',.3r') + ' ns')"


def _layers(count: int) -> list[alt.Chart]:
    """Draw a line of words per kernel, and its bar below it."""
    scale = alt.Scale(domain=[count, 0], nice=False, zero=False)
    words = alt.Chart().transform_filter("datum.x === 0").transform_calculate(mid="datum.i + 0.32")
    y = alt.Y("mid:Q", axis=None, scale=scale)
    name = words.mark_text(style="label", align="left", limit=alt.ExprRef("w - 130"), opacity=LIT_BAR)
    time = words.mark_text(style="note", align="right", opacity=LIT_BAR)
    return [
        _symbols(words, y),
        name.encode(y, x=alt.value(18), text=alt.Text("text:N"), tooltip=alt.Tooltip("title:N", title="Kernel")),
        time.encode(y, x=alt.value("width"), text=alt.Text("timeText:N")),
        _bars(scale),
    ]


def _symbols(words: alt.Chart, y: alt.Y) -> alt.Chart:
    """Draw the shape of the verdict with most of the kernel's time before its name."""
    shapes = alt.Scale(domain=list(SHOWN_CLASSES), range=[LOOKS[shown].shape for shown in SHOWN_CLASSES])
    drawn: alt.Chart = words.mark_point(filled=True, size=70, strokeWidth=1.5, opacity=LIT_BAR).encode(
        y,
        x=alt.value(6),
        shape=alt.Shape("main:N", scale=shapes, legend=None),
        fill=alt.Fill("main:N", **_COLOURS),
        stroke=alt.Stroke("main:N", **_COLOURS),
        fillOpacity=fill_opacity("main"),
    )
    return drawn


def _bars(scale: alt.Scale) -> alt.Chart:
    bars = alt.Chart().transform_calculate(top="datum.i + 0.56", bottom="datum.i + 0.86")
    drawn: alt.Chart = bars.mark_rect(cursor="pointer", cornerRadius=1, opacity=LIT_BAR).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1])),
        x2=alt.X2("x2"),
        y=alt.Y("top:Q", axis=None, scale=scale),
        y2=alt.Y2("bottom"),
        fill=alt.Fill("bound:N", **_COLOURS),
        stroke=alt.Stroke("bound:N", **_COLOURS),
        fillOpacity=fill_opacity(),
        tooltip=[alt.Tooltip("title:N", title="Kernel"), alt.Tooltip("pieceText:N", title="Time")],
    )
    return drawn
