"""The roofline of one GPU in a terminal: what plotext draws, on log-log axes, with words around it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from rich.text import Text

from rooflens.errors import EnvironmentMissingError
from rooflens.format import si
from rooflens.model.records import BOUNDS
from rooflens.model.verdict.sentences import resource_label
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.plane.plane import plane

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflens.model.records import Analysis, Bound
    from rooflens.model.roofline.roofs import Roof
    from rooflens.report.plane.plane import Plane, Point

MIN_WIDTH, MAX_WIDTH = 40, 100
MIN_HEIGHT, MAX_HEIGHT = 16, 26
NARROW = 64
"""Columns below which axes say `10 T` and not `10 TFLOP/s`."""

AIR = 2.0
MIN_DECADES = 3
COLUMNS_PER_LABEL = 9
NUMBERED = 9
"""Rows of the table whose numbers stand beside their points: one digit each."""

LABEL_HEIGHTS = (0.9, 0.75, 0.6, 0.45, 0.3)
"""Places along a diagonal roof where its name may stand."""

_COLOURS: Mapping[Bound, str] = {
    "memory": "blue+",
    "compute": "red+",
    "latency": "magenta+",
    "overhead": "orange+",
    "balanced": "green+",
    "unknown": "gray",
}


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters a terminal can show."""

    bounds: Mapping[Bound, str]
    slope: str
    flat: str


UNICODE = Signs(dict(zip(BOUNDS, "●■▲◆✚○", strict=True)), "braille", "braille")
ASCII = Signs(dict(zip(BOUNDS, "mclob?", strict=True)), ".", "-")
_FRAME = str.maketrans("┌┐└┘├┤┬┴─│", "++++++++-|")


@dataclass(frozen=True, slots=True)
class Paper:
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
    launches = build_content((), analyses, "", default_thresholds()).timed
    one = plane(launches[0].gpu if launches else "", launches)
    if not one.points:
        return [Text("No kernel of this GPU has both FLOPs and bytes: there is nothing to place in a roofline.")]
    numbers = {id(analysis): number for number, analysis in enumerate(analyses[:NUMBERED], 1)}
    level = one.levels[0]
    points = sorted((p for p in one.points if p.level == level), key=lambda p: p.launch.duration_ns or 0.0)
    rows = [(point, numbers.get(id(point.launch.analysis), 0)) for point in points]
    drawn = Text.from_ansi(_drawn(one, rows, paper)).split("\n")
    for line in drawn:
        line.rstrip()
    return [*drawn, *(Text(line) for line in _caption(one, rows, level, paper.signs))]


def _drawn(one: Plane, rows: Sequence[tuple[Point, int]], paper: Paper) -> str:
    """Let plotext draw on axes of powers of ten, which are linear to it."""
    import plotext  # noqa: PLC0415 - an optional library, wanted by one option only

    plotext.terminal.limit(False, False)  # noqa: FBT003 - the drawing has the size we say, not the terminal's
    figure = plotext.figure
    figure.clear.all()
    figure.theme("colorless")
    figure.plot_size(paper.width, paper.height)
    _axis(figure.ruler("x", "lower"), _x_domain(one), _x_labels(_x_domain(one), paper.width))
    _axis(figure.ruler("y", "left"), _y_domain(one), _y_labels(_y_domain(one), paper.width))
    for xs, ys, flat in _lines(one):
        marker = paper.signs.flat if flat else paper.signs.slope
        figure.draw(figure.signal(_logs(xs), _logs(ys), marker=marker).lines())
    for x, y, name in _names(one, paper):
        figure.draw(figure.text(log10(x), log10(y), name, alignment="right"))
    for x, y, digit in _digits(rows, _grid(one, paper)):
        figure.draw(figure.text(log10(x), log10(y), digit))
    for point, _ in rows:  # after the digits, and the longest kernel last: what comes later lies on top
        bound = point.launch.bound
        marker = plotext.marker(paper.signs.bounds[bound], _COLOURS[bound])
        figure.draw(figure.signal(_logs([point.intensity_flop_per_byte]), _logs([point.flop_per_s]), marker=marker))
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


def _y_labels(domain: tuple[float, float], width: int) -> dict[float, str]:
    unit = "FLOP/s" if width >= NARROW else ""
    return {value: _round(si(value, unit)).rstrip() for value in _decades(domain)}


def _round(quantity: str) -> str:
    """Drop the digits that a power of ten does not have: `10.0 T` gives `10 T`."""
    number, _, rest = quantity.partition(" ")
    return f"{float(number.replace(',', '')):g} {rest}"


def _x_domain(one: Plane) -> tuple[float, float]:
    """Find the range of intensities: points and ridges."""
    ridges = [pipe.peak / level.peak for pipe in one.pipe_roofs for level in one.level_roofs]
    return _domain([*ridges, *(point.intensity_flop_per_byte for point in one.points)])


def _y_domain(one: Plane) -> tuple[float, float]:
    """Find the range of performance: points, the roofs over them, and flat roofs."""
    reached = [value for point in one.points for value in (point.flop_per_s, point.roof_flop_per_s) if value]
    return _domain([*reached, *(roof.peak for roof in one.pipe_roofs)])


def _domain(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values) / AIR, max(values) * AIR
    return min(low, high / 10**MIN_DECADES), high


def _decades(domain: tuple[float, float]) -> list[float]:
    """List the powers of ten inside a range."""
    return [10.0**power for power in range(ceil(log10(domain[0])), floor(log10(domain[1])) + 1)]


def _lines(one: Plane) -> Iterator[tuple[tuple[float, float], tuple[float, float], bool]]:
    """Give both ends of each roof: intensities, FLOP/s, and whether it is flat."""
    (x_low, x_high), (y_low, y_high) = _x_domain(one), _y_domain(one)
    top = max((roof.peak for roof in one.pipe_roofs), default=y_high)
    fastest = max((roof.peak for roof in one.level_roofs), default=None)
    for roof in one.level_roofs:
        start, stop = max(x_low, y_low / roof.peak), min(x_high, top / roof.peak)
        if start < stop:
            yield (start, stop), (start * roof.peak, stop * roof.peak), False
    for roof in one.pipe_roofs:
        start = max(x_low, roof.peak / fastest) if fastest else x_low
        if start < x_high:
            yield (start, x_high), (roof.peak, roof.peak), True


@dataclass(frozen=True, slots=True)
class _Grid:
    """The drawing's field in cells, counted from its lower left corner."""

    columns: float
    rows: float
    x_domain: tuple[float, float]
    y_domain: tuple[float, float]

    def column(self, x: float) -> float:
        return _part(x, self.x_domain) * self.columns

    def row(self, y: float) -> float:
        return _part(y, self.y_domain) * self.rows

    def x(self, column: float) -> float:
        return _at(column / self.columns, self.x_domain)

    def y(self, row: float) -> float:
        return _at(row / self.rows, self.y_domain)


def _grid(one: Plane, paper: Paper) -> _Grid:
    """Measure the field that plotext leaves between frame and labels; the first and last cell hold the limits."""
    labels = _y_labels(_y_domain(one), paper.width).values()
    frame = max(map(len, labels), default=0) + len("||")
    return _Grid(paper.width - frame - 1, paper.height - len("-- ") - 1, _x_domain(one), _y_domain(one))


@dataclass(frozen=True, slots=True)
class _Words:
    """A name in the drawing: the row, and the columns from its first to its last character."""

    text: str
    row: float
    first: float
    last: float

    def hits(self, column: float, row: float) -> bool:
        """Tell whether a sign with its digit would touch the name."""
        return abs(self.row - row) < 1 and self.first - 2 < column < self.last + 1


def _names(one: Plane, paper: Paper) -> Iterator[tuple[float, float, str]]:
    """Place the name of each roof beside its line, clear of points and of other lines; one without room has none."""
    grid = _grid(one, paper)
    points = [(grid.column(p.intensity_flop_per_byte), grid.row(p.flop_per_s)) for p in one.points]
    for choices in (*_slope_choices(one, grid), *_flat_choices(one, grid)):
        for words in choices:
            if words.first >= 0 and not any(words.hits(*place) for place in points):
                yield grid.x(words.last), grid.y(words.row), words.text
                break


def _slope_choices(one: Plane, grid: _Grid) -> Iterator[list[_Words]]:
    """List where the name of each diagonal may stand: left of it, right of the next faster one, on no flat roof."""
    flats = [grid.row(y[0]) for _, y, flat in _lines(one) if flat]
    left = None
    for roof in one.level_roofs:
        ends = next((y for x, y, flat in _lines(one) if not flat and abs(y[0] / x[0] / roof.peak - 1) < 1e-9), None)
        choices = []
        for part in LABEL_HEIGHTS if ends else ():
            y = _at(part, ends or (1.0, 1.0))
            words = _beside(_roof_name(roof), grid.column(y / roof.peak) - 2, grid.row(y))
            free = left is None or grid.column(y / left) + 1 < words.first
            if free and all(abs(words.row - flat) >= 1 for flat in flats):
                choices.append(words)
        left = roof.peak
        yield choices


def _flat_choices(one: Plane, grid: _Grid) -> Iterator[list[_Words]]:
    """List where the name of each flat roof may stand: at its right end, above it, else below."""
    flats = [grid.row(y[0]) for _, y, flat in _lines(one) if flat]
    for roof in one.pipe_roofs:
        row = grid.row(roof.peak)
        rows = [row + 1, row - 1]
        others = [flat for flat in flats if abs(flat - row) > 1e-9]
        yield [_beside(_roof_name(roof), grid.columns - 1, r) for r in rows if all(abs(o - r) >= 1 for o in others)]


def _beside(text: str, last: float, row: float) -> _Words:
    return _Words(text, row, last - len(text) + 1, last)


def _roof_name(roof: Roof, comma: str = ", ") -> str:
    return comma.join(resource_label(key) for key in roof.keys)


def _digits(rows: Sequence[tuple[Point, int]], grid: _Grid) -> Iterator[tuple[float, float, str]]:
    """Place the number of a row in the cell to the right of its point."""
    for point, number in rows:
        if number:
            yield grid.x(round(grid.column(point.intensity_flop_per_byte)) + 1), point.flop_per_s, str(number)


def _caption(one: Plane, rows: Sequence[tuple[Point, int]], level: str, signs: Signs) -> Iterator[str]:
    """Explain axes, roofs and signs, and count what has no place."""
    units = (*((roof, "B/s") for roof in reversed(one.level_roofs)), *((r, "FLOP/s") for r in reversed(one.pipe_roofs)))
    peaks = [f"{_roof_name(roof, ' and ')} {si(roof.peak, unit)}" for roof, unit in units]
    synthetic = any(point.launch.analysis.kernel.synthetic for point, _ in rows)
    axes = f"FLOP/s over FLOP per byte at {resource_label(level)}"
    yield f"{'synthetic data; ' if synthetic else ''}{axes}; roofs: {', '.join(peaks)}"
    bounds = [bound for bound in BOUNDS if any(point.launch.bound == bound for point, _ in rows)]
    numbers = "; digits: rows of the table" if any(number for _, number in rows) else ""
    yield f"{', '.join(f'{signs.bounds[bound]} {bound}' for bound in bounds)}{numbers}"
    unplaced = one.unplaced + len({point.launch.key for point in one.strip})
    if unplaced:
        yield f"not placed, for lack of FLOPs or bytes: {unplaced} of {unplaced + len(rows)}"


def _logs(values: Iterable[float]) -> list[float]:
    return [log10(value) for value in values]


def _part(value: float, domain: tuple[float, float]) -> float:
    """Say how far along a logarithmic axis a value lies, 0 to 1."""
    return log10(value / domain[0]) / log10(domain[1] / domain[0])


def _at(part: float, domain: tuple[float, float]) -> float:
    return float(domain[0] * (domain[1] / domain[0]) ** part)
