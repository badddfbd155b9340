"""The roofline of one GPU in a terminal: what plotext draws, on log-log axes, with words around it."""

from __future__ import annotations

import importlib.util
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from rich.text import Text

from rooflens.errors import EnvironmentMissingError
from rooflens.format import si
from rooflens.model.bounds import BOUNDS
from rooflens.model.records import LEVELS, timed
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.plane.plane import places, roofs_over
from rooflens.report.plane.roofs import work_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflens.model.bounds import Bound
    from rooflens.model.records import Analysis
    from rooflens.model.roofline.roofs import Roof
    from rooflens.report.plane.plane import Place, RoofSet

MIN_WIDTH, MAX_WIDTH = 40, 100
MIN_HEIGHT, MAX_HEIGHT = 16, 26
NARROW = 64
"""Columns below which axes say `10 T` and not `10 TFLOP/s`."""

AIR = 2.0
MIN_DECADES = 3
COLUMNS_PER_LABEL = 9
NUMBERED = 9
"""Rows of the table whose numbers stand beside their points: one digit each."""

_COLOURS: Mapping[Bound, str] = {
    "memory": "blue+",
    "compute": "red+",
    "latency": "magenta+",
    "overhead": "orange+",
    "balanced": "green+",
    "unknown": "gray",
}


class Signs(Struct, frozen=True):
    """The characters a terminal can show."""

    bounds: Mapping[Bound, str]
    slope: str
    flat: str


UNICODE = Signs(dict(zip(BOUNDS, "●■▲◆✚○", strict=True)), "braille", "braille")
ASCII = Signs(dict(zip(BOUNDS, "mclob?", strict=True)), ".", "-")
_FRAME = str.maketrans("┌┐└┘├┤┬┴─│", "++++++++-|")


class Paper(Struct, frozen=True):
    """The room on a terminal, in characters."""

    width: int
    height: int
    signs: Signs

    @classmethod
    def of(cls, columns: int, encoding: str) -> Paper:
        """Fit a terminal of so many columns; one that has no UTF-8 gets ASCII."""
        width = min(MAX_WIDTH, columns)
        height = max(MIN_HEIGHT, min(MAX_HEIGHT, round(width * 0.28)))
        return cls(width, height, UNICODE if encoding.lower().replace("-", "").startswith("utf") else ASCII)


def check_library() -> None:
    """Refuse early where the plotting library is missing.

    Raises:
        EnvironmentMissingError: plotext is not installed.
    """
    if importlib.util.find_spec("plotext") is None:
        raise EnvironmentMissingError("--plot needs plotext, which is not installed", "pip install 'rooflens[plot]'")


def to_plot(analyses: Sequence[Analysis], paper: Paper) -> list[Text]:
    """Draw the kernels of one GPU, given in the order of their table, with the words that explain the drawing."""
    if paper.width < MIN_WIDTH:
        return [Text(f"A roofline needs {MIN_WIDTH} columns; this terminal has {paper.width}.")]
    known = timed(analyses)
    dots = tuple(_Dot(analysis, place) for analysis in known for place in places(analysis))
    drawing = _Drawing(dots, roofs_over(known))
    if not drawing.points:
        return [Text("No kernel of this GPU has both FLOPs and bytes: there is nothing to place in a roofline.")]
    numbers = {id(analysis): number for number, analysis in enumerate(analyses[:NUMBERED], 1)}
    present = {point.place.level for point in drawing.points}
    level = next(level for level in LEVELS if level in present)
    points = sorted((p for p in drawing.points if p.place.level == level), key=lambda p: p.analysis.gpu_time_ns or 0.0)
    rows = [(point, numbers.get(id(point.analysis), 0)) for point in points]
    drawn = Text.from_ansi(_drawn(drawing, rows, paper)).split("\n")
    for line in drawn:
        line.rstrip()
    return [*drawn, *(Text(line) for line in _caption(drawing, rows, len(known), paper.signs))]


class _Dot(Struct, frozen=True):
    """A kernel at one level."""

    analysis: Analysis
    place: Place


class _Drawing(Struct, frozen=True):
    """What stands in the plane."""

    points: tuple[_Dot, ...]
    roofs: RoofSet


def _drawn(drawing: _Drawing, rows: Sequence[tuple[_Dot, int]], paper: Paper) -> str:
    """Let plotext draw on axes of powers of ten, which are linear to it."""
    import plotext  # noqa: PLC0415 - an optional library, wanted by one option only

    plotext.terminal.limit(False, False)  # noqa: FBT003 - the drawing has the size we say, not the terminal's
    figure = plotext.figure
    figure.clear.all()
    figure.theme("colorless")
    figure.plot_size(paper.width, paper.height)
    _axis(figure.ruler("x", "lower"), _x_domain(drawing), _x_labels(_x_domain(drawing), paper.width))
    _axis(figure.ruler("y", "left"), _y_domain(drawing), _y_labels(drawing, paper.width))
    for xs, ys, flat in _lines(drawing):
        marker = paper.signs.flat if flat else paper.signs.slope
        figure.draw(figure.signal(_logs(xs), _logs(ys), marker=marker).lines())
    left, column = log10(_x_domain(drawing)[0]), _column(drawing, paper)
    for point, number in rows:
        if number:
            cell = round((log10(point.place.intensity_flop_per_byte) - left) / column) + 1
            figure.draw(figure.text(left + cell * column, log10(point.place.flop_per_s), str(number)))
    for point, _ in rows:  # after the digits, and the longest kernel last: what comes later lies on top
        bound = point.analysis.verdict.bound
        marker = plotext.marker(paper.signs.bounds[bound], _COLOURS[bound])
        figure.draw(
            figure.signal(_logs([point.place.intensity_flop_per_byte]), _logs([point.place.flop_per_s]), marker=marker)
        )
    text: str = figure.build().string()
    figure.clear.all()
    return text.translate(_FRAME) if paper.signs is ASCII else text


def _axis(ruler: Any, domain: tuple[float, float], labels: Mapping[float, str]) -> None:
    ruler.lim(*_logs(domain))
    ruler.ticks(_logs(labels), list(labels.values()))


def _x_labels(domain: tuple[float, float], width: int) -> dict[float, str]:
    """Label as many decades as there is room for."""
    values = _decades(domain)
    step = -(-len(values) * COLUMNS_PER_LABEL // width)
    return {value: f"{value:g}" for value in values[::step]}


def _y_labels(drawing: _Drawing, width: int) -> dict[float, str]:
    units = {point.place.unit for point in drawing.points}
    unit = f"{units.pop()}/s" if width >= NARROW and len(units) == 1 else ""
    return {value: _round(si(value, unit)).rstrip() for value in _decades(_y_domain(drawing))}


def _round(quantity: str) -> str:
    """Drop the digits that a power of ten does not have: `10.0 T` gives `10 T`."""
    number, _, rest = quantity.partition(" ")
    return f"{float(number.replace(',', '')):g} {rest}"


def _x_domain(drawing: _Drawing) -> tuple[float, float]:
    """Find the range of intensities: points and ridges."""
    ridges = [pipe.peak / level.peak for pipe in drawing.roofs.pipes for level in drawing.roofs.levels]
    return _domain([*ridges, *(point.place.intensity_flop_per_byte for point in drawing.points)])


def _y_domain(drawing: _Drawing) -> tuple[float, float]:
    """Find the range of performance: points, the roofs over them, and flat roofs."""
    reached = [
        value for point in drawing.points for value in (point.place.flop_per_s, point.place.roof_flop_per_s) if value
    ]
    return _domain([*reached, *(roof.peak for roof in drawing.roofs.pipes)])


def _domain(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values) / AIR, max(values) * AIR
    return min(low, high / 10**MIN_DECADES), high


def _decades(domain: tuple[float, float]) -> list[float]:
    """List the powers of ten inside a range."""
    return [10.0**power for power in range(ceil(log10(domain[0])), floor(log10(domain[1])) + 1)]


def _lines(drawing: _Drawing) -> Iterator[tuple[tuple[float, float], tuple[float, float], bool]]:
    """Give both ends of each roof: intensities, FLOP/s, and whether it is flat."""
    (x_low, x_high), (y_low, y_high) = _x_domain(drawing), _y_domain(drawing)
    top = max((roof.peak for roof in drawing.roofs.pipes), default=y_high)
    fastest = max((roof.peak for roof in drawing.roofs.levels), default=None)
    for roof in drawing.roofs.levels:
        start, stop = max(x_low, y_low / roof.peak), min(x_high, top / roof.peak)
        if start < stop:
            yield (start, stop), (start * roof.peak, stop * roof.peak), False
    for roof in drawing.roofs.pipes:
        start = max(x_low, roof.peak / fastest) if fastest else x_low
        if start < x_high:
            yield (start, x_high), (roof.peak, roof.peak), True


def _column(drawing: _Drawing, paper: Paper) -> float:
    """Measure a column of the field that plotext leaves between frame and labels, in decades of intensity."""
    labels = _y_labels(drawing, paper.width).values()
    frame = max(map(len, labels), default=0) + len("||")
    low, high = _x_domain(drawing)
    return log10(high / low) / (paper.width - frame - 1)


def _roof_name(roof: Roof, comma: str = ", ") -> str:
    return comma.join(resource_label(key) for key in roof.keys)


def _caption(drawing: _Drawing, rows: Sequence[tuple[_Dot, int]], count: int, signs: Signs) -> Iterator[str]:
    """Explain axes, roofs and signs, and count what has no place."""
    units = (
        *((roof, "B/s") for roof in reversed(drawing.roofs.levels)),
        *((roof, f"{work_unit(roof.keys[0])}/s") for roof in reversed(drawing.roofs.pipes)),
    )
    peaks = [f"{_roof_name(roof, ' and ')} {si(roof.peak, unit)}" for roof, unit in units]
    synthetic = any(point.analysis.kernel.synthetic for point, _ in rows)
    work = " or ".join(sorted({point.place.unit for point, _ in rows}))
    axes = f"{work}/s over {work} per byte at {resource_label(rows[0][0].place.level)}"
    yield f"{'synthetic data; ' if synthetic else ''}{axes}; roofs: {', '.join(peaks)}"
    bounds = [bound for bound in BOUNDS if any(point.analysis.verdict.bound == bound for point, _ in rows)]
    numbers = "; digits: rows of the table" if any(number for _, number in rows) else ""
    yield f"{', '.join(f'{signs.bounds[bound]} {bound}' for bound in bounds)}{numbers}"
    unplaced = count - len({id(point.analysis) for point in drawing.points})
    if unplaced:
        yield f"not placed for lack of FLOPs or bytes: {unplaced} of {unplaced + len(rows)}"


def _logs(values: Iterable[float]) -> list[float]:
    return [log10(value) for value in values]
