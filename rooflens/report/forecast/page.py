"""The page of `rooflens predict`: one or several planes, the answers, tables, and why these peaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.predict.forecast import Forecast, Row
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.rows import ELEMENT_BYTES
from rooflens.report.forecast import sentences as predict_words
from rooflens.report.forecast.plane import PredictPlane, planes, predict_spec
from rooflens.report.forecast.programs import calculator, gpu_choices, short_name
from rooflens.report.html.document import document
from rooflens.report.html.embed import json_block
from rooflens.report.html.parts import Figure
from rooflens.report.html.templates import render
from rooflens.report.text import forecast as forecasts

MAX_PLANES = 6
"""Planes on one page; what else was predicted is in the tables."""

MAX_OPEN_STEPS = 48
"""With more steps than this on a page their tables are closed at first."""

SCRIPTS = (
    "shared/format.js",
    "forecast/programs.js",
    "forecast/plane.js",
    "forecast/results.js",
    "forecast/calculator.js",
)

MAX_TABLES = 24
MAX_STEPS = 200
"""Tables of steps, and their rows; JSON and CSV hold the rest."""


class Placed(Struct, frozen=True):
    """One prediction; it has no figure without FLOPs, nor where the calculator draws it."""

    key: str
    row: Row
    figure: Figure | None


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
    # What the calculator starts with is a single prediction: it takes the place of the chart.
    alone = len(rows) == 1 and len(rows[0].steps) == 1
    figures = _figures(shown, drawn=not alone)
    title = predict_words.title(rows)
    body = render(
        "forecast/page",
        title=title,
        rows=rows,
        figures=figures,
        lacking=lacking,
        bars=[(row, part_bars(row)) for row in shown if row.steps[-1][1].parts],
        opened=sum(len(row.steps) for row in rows) <= MAX_OPEN_STEPS,
        columns=[_heading(column) for column in forecasts.columns_of(rows[0])],
        heading=forecasts.heading,
        table_rows=forecasts.table_rows,
        notes=forecasts.notes,
        max_tables=MAX_TABLES,
        max_steps=MAX_STEPS,
        words=predict_words,
        alone=alone,
        operations=OPERATIONS.values(),
        gpus=gpu_choices(),
        dtypes=list(ELEMENT_BYTES),
        sizes_text=forecasts.sizes_text,
        short_name=short_name,
    )
    return document(
        title,
        _facts(rows),
        [body],
        blocks=[json_block("calculator-data", calculator(rows))],
        styles=("forecast/forecast.css",),
        scripts=SCRIPTS,
        skip=("tables", "Skip to the tables"),
        charts=any(placed.figure for placed in figures),
    )


def _heading(column: str) -> str:
    words = f"{column[0].upper()}{column[1:]}"
    return words if column in {"sizes", "regime"} else f"#{words}"


def _figures(rows: Sequence[Row], *, drawn: bool) -> list[Placed]:
    """Place what has FLOPs; all planes share their axes."""
    drawable = [row for row in rows if any(part.flop for _, result in row.steps for part in (result, *result.parts))]
    found = dict(zip(map(id, drawable), planes(drawable) if drawable and drawn else (), strict=False))
    return [
        Placed(
            key := f"plane-{i}",
            row,
            _figure(key, found[id(row)], several=len(rows) > 1) if id(row) in found else None,
        )
        for i, row in enumerate(rows)
    ]


def _figure(key: str, plane: PredictPlane, *, several: bool) -> Figure:
    row = plane.row
    answer = predict_words.answer(row)
    subtitle = [predict_words.title([row]), "Predicted from dense peaks of the datasheet"]
    return Figure(
        key,
        predict_spec(plane, title=short_name(row.gpu), subtitle=subtitle),
        label=f"{answer} Roofline of {row.gpu.name}; the tables below hold the same data.",
        save="Save as",
        notes=(*([Markup("<b>{}</b>").format(answer)] if several else []), " ".join(_caption(plane))),
        holder="the tables hold its data",
    )


def _caption(plane: PredictPlane) -> Iterator[str]:
    """Say what the dots are, and which are not drawn."""
    if plane.of_parts:
        yield (
            "One dot per part, on its roof at the intensity of the bytes it must move. Area: its share of the floor."
        )
        if plane.unplaced:
            verb = "has" if plane.unplaced == 1 else "have"
            yield f"{fmt.count(plane.unplaced, 'part')} without FLOPs {verb} no place here."
    elif len(plane.row.steps) > 1:
        turn = "; a ring is where the regime changes" if plane.crossings else ""
        yield f"One dot per size, joined in the order of the sweep{turn}."
        if plane.row.steps[-1][1].parts:
            yield "Dots lie below the roof: parts run one by one, and no mix of them reaches it."
        if plane.left_out:
            verb = "is" if plane.left_out == 1 else "are"
            yield f"{fmt.count(plane.left_out, 'size')} between them {verb} not drawn."
    elif plane.achieved:
        yield "The dot is the most that can be reached; the ring was measured."
    else:
        yield "The dot is the most that can be reached with the bytes that must be moved."


def part_bars(row: Row) -> list[tuple[float, Forecast]]:
    """List the parts of the last step with their shares of its floor: the longest part first."""
    whole = row.steps[-1][1]
    shares = [(part.t_lower_s / whole.t_lower_s if whole.t_lower_s else 0.0, part) for part in whole.parts]
    return sorted(shares, key=lambda bar: -bar[0])


def _facts(rows: Sequence[Row]) -> list[str]:
    gpus = dict.fromkeys(row.gpu.name for row in rows)
    named = next(iter(gpus)) if len(gpus) == 1 else fmt.count(len(gpus), "GPU")
    steps = len(rows[0].steps)
    found = ["predicted, not measured", named]
    return [*found, fmt.count(steps, "size")] if steps > 1 else found
