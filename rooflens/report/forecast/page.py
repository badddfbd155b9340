"""The page of `rooflens predict`: one or several planes, the answers, tables, and why these peaks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.predict.forecast import Forecast, Row
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.rows import ELEMENT_BYTES
from rooflens.report.forecast import sentences as predict_words
from rooflens.report.forecast.chart import predict_spec
from rooflens.report.forecast.plane import PredictPlane, planes
from rooflens.report.forecast.programs import calculator
from rooflens.report.html.document import STYLES, document
from rooflens.report.html.embed import json_block
from rooflens.report.html.templates import render
from rooflens.report.roofline.datasheet import gpu_choices, short_name
from rooflens.report.text import forecast as forecasts

MAX_PLANES = 6
"""Planes on one page; what else was predicted is in the tables."""

MAX_OPEN_STEPS = 48
"""With more steps than this on a page their tables are closed at first."""

SCRIPTS = (
    "shared/reveal.js",
    "shared/format.js",
    "forecast/programs.js",
    "forecast/plane.js",
    "forecast/results.js",
    "forecast/calculator.js",
)

MAX_TABLES = 24
MAX_STEPS = 200
"""Tables of steps, and their rows; JSON and CSV hold the rest."""


class Figure(Struct, frozen=True):
    """One plane, ready to be placed.

    Attributes:
        plane: None where nothing has FLOPs: there is no place in the roofline.
    """

    key: str
    row: Row
    plane: PredictPlane | None

    @property
    def drawable(self) -> bool:
        """True where there is anything to draw."""
        return self.plane is not None


class PartBar(Struct, frozen=True):
    """One part of a composite operation in the bar of the floor."""

    label: str
    result: Forecast
    share: float


class StepsTable(Struct, frozen=True):
    """The steps of one row, cells as everywhere else; long ones are closed until they are wanted."""

    heading: str
    opened: bool
    cells: tuple[tuple[str, ...], ...]
    left_out: int
    notes: tuple[str, ...]


class Live(Struct, frozen=True):
    """What the calculator offers.

    Attributes:
        alone: True where it takes the place of the chart: a single prediction is what it starts with.
        operations: Name and summary.
        gpus: Heading, then id and name of each.
    """

    alone: bool
    operations: tuple[tuple[str, str], ...]
    gpus: tuple[tuple[str, list[tuple[str, str]]], ...]
    dtypes: tuple[str, ...]


def render_forecasts(rows: Sequence[Row], lacking: Sequence[str] = ()) -> str:
    """Render one self-contained HTML page of predictions.

    Args:
        rows: One or more, each with at least one step.
        lacking: What is said of each GPU that has no peak for the type.
    """
    if len(rows) > MAX_PLANES:
        # Too many to draw: the fastest come first, in the table and in the planes.
        rows = sorted(rows, key=lambda row: row.steps[-1][1].t_lower_s)
    shown = rows[:MAX_PLANES]
    figures = _figures(shown)
    offered = live(rows)
    # What the calculator starts with needs no other picture.
    drawn = [] if offered.alone else [figure for figure in figures if figure.plane is not None]
    specs = {figure.key: _spec(figure.plane) for figure in drawn if figure.plane is not None}
    title = predict_words.title(rows)
    few = sum(len(row.steps) for row in rows) <= MAX_OPEN_STEPS
    body = render(
        "forecast/page",
        title=title,
        facts=_facts(rows),
        rows=rows,
        figures=figures,
        undrawn=len(rows) - len(shown),
        lacking=lacking,
        bars=[(row, part_bars(row)) for row in shown if row.steps[-1][1].parts],
        tables=[_table(row, opened=few) for row in rows[:MAX_TABLES]],
        untabled=len(rows) - min(len(rows), MAX_TABLES),
        columns=forecasts.columns_of(rows[0]),
        words=predict_words,
        live=offered,
        sizes_text=forecasts.sizes_text,
        short_name=short_name,
    )
    return document(
        title,
        [body],
        blocks=[
            *(json_block(f"spec-{key}", spec) for key, spec in specs.items()),
            json_block("calculator-data", calculator(rows)),
        ],
        styles=(*STYLES, "forecast/calculator.css"),
        scripts=SCRIPTS,
        skip=("tables", "Skip to the tables"),
        charts=bool(specs),
    )


def live(rows: Sequence[Row]) -> Live:
    """Say what the controls of the calculator can choose from."""
    return Live(
        alone=len(rows) == 1 and len(rows[0].steps) == 1,
        operations=tuple((operation.name, operation.summary) for operation in OPERATIONS.values()),
        gpus=tuple(gpu_choices()),
        dtypes=tuple(ELEMENT_BYTES),
    )


def _figures(rows: Sequence[Row]) -> list[Figure]:
    """Place what has FLOPs; all planes share their axes."""
    drawable = [row for row in rows if any(part.flop for _, result in row.steps for part in (result, *result.parts))]
    placed = dict(zip(map(id, drawable), planes(drawable) if drawable else (), strict=True))
    return [Figure(f"plane-{i}", row, placed.get(id(row))) for i, row in enumerate(rows)]


def _spec(plane: PredictPlane) -> dict[str, object]:
    row = plane.row
    subtitle = [predict_words.title([row]), "Predicted from dense peaks of the datasheet"]
    return predict_spec(plane, title=short_name(row.gpu), subtitle=subtitle)


def part_bars(row: Row) -> list[PartBar]:
    """Say where the floor of the last step goes: the longest part first."""
    whole = row.steps[-1][1]
    found = [
        PartBar(part.label, part, part.t_lower_s / whole.t_lower_s if whole.t_lower_s else 0.0) for part in whole.parts
    ]
    return sorted(found, key=lambda bar: -bar.share)


def _table(row: Row, *, opened: bool) -> StepsTable:
    cells = forecasts.table_rows(row)
    return StepsTable(
        heading=forecasts.heading(row),
        opened=opened,
        cells=tuple(cells[:MAX_STEPS]),
        left_out=len(cells) - min(len(cells), MAX_STEPS),
        notes=tuple(forecasts.notes(row)),
    )


def _facts(rows: Sequence[Row]) -> list[str]:
    gpus = dict.fromkeys(row.gpu.name for row in rows)
    named = next(iter(gpus)) if len(gpus) == 1 else fmt.count(len(gpus), "GPU")
    steps = len(rows[0].steps)
    found = ["predicted, not measured", named]
    return [*found, fmt.count(steps, "size")] if steps > 1 else found
