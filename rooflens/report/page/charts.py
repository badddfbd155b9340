"""The charts of the page: specifications, their selectors, and the table behind each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import Verdict
from rooflens.model.roofline.standing import ceiling
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict.collecting import collect_command, not_profiled
from rooflens.report.content import Content
from rooflens.report.document import Column, Table
from rooflens.report.plane.plane import Plane
from rooflens.report.plane.simple import Dot, Drawn, plane_spec, roof_words, roofs_of
from rooflens.report.roofline.bars import NO_BYTES, NONE, UNCOUNTED, UNPLACED, reasons
from rooflens.report.roofline.chart import default_level, roofline_spec
from rooflens.report.roofline.launches import plane
from rooflens.report.roofline.rows import clock_text
from rooflens.report.templates import Drawing, render
from rooflens.report.words.labels import UNITS

MAX_DATA_ROWS = 200
"""Rows of the table behind a chart; the kernels table and the JSON hold the rest."""

_LINE_RATIO = 100.0
"""How far below the lowest mark the lines of kernels without a time begin: under the axis."""

SIDES_SHOWN = 6
"""Kernels whose busy sides are listed where no chart can be drawn."""

REASON_SENTENCES: Mapping[str, str] = {
    UNCOUNTED: "The report has no FLOP counters, so these kernels have no place in a roofline.",
    NONE: "These kernels do no floating-point work, so they have no arithmetic intensity and no place in a roofline.",
    NO_BYTES: "FLOPs were counted and bytes were not, so these kernels have no arithmetic intensity.",
    UNPLACED: "These kernels have no arithmetic intensity at any level.",
}
"""Why a page without a plane has none."""


Sides = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
"""By the short name of a kernel: a side and its share of peak, the busier one first."""


class RooflineFigure(Struct, frozen=True):
    """The roofline of one GPU, ready to be placed.

    Attributes:
        heading: Its name: a roofline, or bars where no kernel has a point.
        level_choices: What its points can be shown at, as `Plane.choices` has it; bars show all levels.
        sides: How busy memory and compute were in its kernels, where none has a point.
        figure: None when no launch has a point or a share.
        ceilings: What its kernels could reach at their intensity, where FLOPs and bytes are known and no time is.
    """

    key: str
    plane: Plane
    heading: str
    level_choices: tuple[str, ...]
    default_level: str
    sides: Sides
    figure: Drawing | None
    ceilings: Drawing | None = None


def roofline_figures(content: Content) -> tuple[RooflineFigure, ...]:
    """Place the launches of each GPU in the plane of its roofline.

    That of the first row's kernel comes first, so that list and chart are about the same; then the GPU with the most
    time at stake. Those without a point in their plane come after those with one, and those with nothing to draw last.
    """
    at_stake_ns: defaultdict[str, float] = defaultdict(float)
    for launch in content.timed:
        at_stake_ns[launch.gpu] += launch.at_stake_ns
    gpus = sorted(at_stake_ns, key=at_stake_ns.__getitem__, reverse=True)
    ranks = {
        kernel.representative.key: rank
        for rank, row in enumerate(content.first, start=1)
        for kernel in row.members or (row,)
    }
    numbered = ranks if len(content.kernels) > 1 and content.ladder is None else {}
    leading = content.first[0].gpu if content.first else None
    planes = sorted(
        (plane(content, gpu, numbered, content.climbers) for gpu in gpus),
        key=lambda one: (not one.placed, one.gpu != leading, not one.points),
    )
    fastest = content.ladder.fastest if content.ladder else None
    first = ranks if fastest is None else [one.key for one in content.timed if one.analysis == fastest.analysis]
    return tuple(
        _roofline_figure(
            f"roofline-{i}",
            placed,
            _picked(placed, first),
            content,
        )
        for i, placed in enumerate(planes)
    )


def _picked(placed: Plane, first: Iterable[str]) -> str:
    """Return the key of the launch that is picked from the start: the first of these that is drawn, else any."""
    keys = dict.fromkeys(one.launch.key for one in placed.placed)
    return next((key for key in first if key in keys), next(iter(keys), ""))


def _roofline_figure(key: str, placed: Plane, picked: str, content: Content) -> RooflineFigure:
    clock = clock_text(placed.roofs.clocks_hz)
    caption = f"{placed.gpu}, SM {clock}" if clock else placed.gpu
    title = f"{caption}: synthetic data" if content.synthetic else caption
    ceilings = None if placed.placed else _ceilings(f"{key}-ceilings", title, placed, content)
    sides = () if placed.points or ceilings else _sides_of(content, placed.gpu)
    heading = "Roofline"
    if not placed.points:
        heading = "Share of peak" if placed.placed or sides else heading
    why = [] if placed.points else reasons(placed)
    notes = [REASON_SENTENCES[one] for one in why]
    if placed.unplaced:
        unplaced = fmt.count(placed.unplaced, "launch")
        notes.append(f"{unplaced} without FLOPs or bandwidth shares cannot be placed; they are in the table.")
    figure = None
    if placed.placed:
        figure = Drawing(
            key,
            roofline_spec(placed, title=title, picked=picked),
            label=f"{heading} of {caption}; the table below holds the same data.",
            save="Save the roofline as",
            notes=notes,
            data=_plane_table(placed),
        )
    return RooflineFigure(
        key=key,
        plane=placed,
        heading=heading,
        level_choices=placed.choices if placed.points else (),
        default_level=default_level(placed),
        sides=sides,
        figure=figure,
        ceilings=ceilings,
    )


def _ceilings(key: str, title: str, placed: Plane, content: Content) -> Drawing | None:
    """Draw what the kernels of a GPU could reach at their intensities, as no time tells what they did reach."""
    groups = [group for group in content.kernels if group.gpu == placed.gpu][:SIDES_SHOWN]
    found = [(group, most) for group in groups if (most := ceiling(group.analysis)) and most.per_s]
    unit = found[0][1].unit if found else None
    dots = tuple(
        Dot(most.intensity, most.per_s or 0.0, "unknown", group.shown, label=group.shown, level="dram")
        for group, most in found
        if most.unit == unit and most.intensity > 0
    )
    if unit is None or not dots:
        return None
    slopes, flats, per_s = *roofs_of(placed.roofs, ["dram"], placed.gpu), f"{UNITS[unit]}/s"
    lowest = min(dot.y for dot in dots) / _LINE_RATIO
    lines = tuple(((dot.x, lowest), dot.at) for dot in dots)
    drawn = Drawn(title, dots, (), slopes, flats, links=lines, unit=UNITS[unit])
    return Drawing(
        key,
        plane_spec(drawn),
        label=f"What the kernels could reach on {placed.gpu}, which the text says as well.",
        notes=(
            "No time in the report: each kernel lies somewhere on the line below its mark.",
            f"{'; '.join(f'{fmt.cut_middle(dot.name, 48)}: at most {fmt.si(dot.y, per_s)}' for dot in dots)}.",
            "With `gpu__time_duration.sum` among the metrics each has its own place.",
        ),
        holder="the text says what it shows",
    )


def lacking_gpu(figures: Iterable[RooflineFigure]) -> str | None:
    """Return the first GPU whose roofline lacks what can be collected; None if there is none."""
    lacking = (one for one in figures if one.figure is None or UNCOUNTED in reasons(one.plane))
    return next((one.plane.gpu for one in lacking if not one.plane.points), None)


def collecting(content: Content, gpu: str) -> str:
    """Say once on a page how to collect what the roofline of a GPU lacks, or why nobody can.

    The command is that of the kernel that takes most time on it.
    """
    kernel = next(group for group in content.kernels if group.gpu == gpu).analysis.kernel
    cannot = not_profiled(kernel.compute_capability)
    if cannot:
        return f"The counters that it lacks cannot be collected: {cannot}."
    lines = {run.digest: run.command_line for run in content.runs}
    return f"To collect what it lacks: `{collect_command(kernel.function_name, lines.get(kernel.digest))}`"


def _sides_of(content: Content, gpu: str) -> Sides:
    """List how busy the two sides are that the kernels with most time on a GPU were judged by: shares of peak.

    The busier side comes first, whatever it is.
    """
    kernels = [group for group in content.kernels if group.gpu == gpu][:SIDES_SHOWN]
    found = ((group.shown, sorted(_sides(group.analysis.verdict, gpu), key=lambda side: -side[1])) for group in kernels)
    return tuple((shown, tuple(sides)) for shown, sides in found if sides)


def _sides(verdict: Verdict, gpu: str) -> Iterator[tuple[str, float]]:
    for side, busiest in (("memory", verdict.memory), ("compute", verdict.compute)):
        if busiest:
            unit = f": {resource_label(busiest.resource, gpu)}" if busiest.resource else ""
            yield f"{side}{unit}", busiest.share


def _plane_table(placed: Plane) -> Table:
    points, shares = placed.points, placed.shares
    is_long = max(len(points), len(shares)) > MAX_DATA_ROWS
    return Table(
        (
            Column("Kernel", fit="name"),
            Column("Level"),
            *(Column(name, right=True) for name in ("Intensity", "Achieved", "Its roof", "Share of bandwidth")),
        ),
        (
            *(
                (
                    fmt.cut_middle(point.launch.shown, 48),
                    placed.level_names[point.level],
                    fmt.intensity(point.intensity, point.counts),
                    fmt.si(point.per_s, f"{point.counts}/s"),
                    roof_words(point, point.counts),
                    fmt.percent(point.bandwidth_share),
                )
                for point in points[:MAX_DATA_ROWS]
            ),
            *(
                (
                    fmt.cut_middle(share.launch.shown, 48),
                    placed.level_names[share.level],
                    *[fmt.MISSING] * 3,
                    fmt.percent(share.share),
                )
                for share in shares[:MAX_DATA_ROWS]
            ),
        ),
        amount=len(points) + len(shares) if is_long else 0,
        rest=" rows; `rooflens analyze --format json` writes all of them",
        label="Data of the chart",
    )


def charts(figures: Sequence[RooflineFigure], *, collects: str, aggregated: bool, failed_count: int) -> Markup:
    """Show the roofline of each GPU.

    Args:
        figures: The rooflines.
        collects: How to collect what they lack.
        aggregated: A mark stands for all launches of a kernel.
        failed_count: Launches that failed.
    """
    return render(
        "report/page#charts",
        collecting=collects,
        aggregated=aggregated,
        failed_count=failed_count,
        figures=figures,
    )
