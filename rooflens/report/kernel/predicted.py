"""Predicted against measured: the rows of each prediction, and the document for terminal, Markdown and page.

The columns of its table are the keys of `COMPARED`, so that a key added there has its column everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from rooflens import format as fmt
from rooflens.model.catalogue import COMPARED, Key
from rooflens.model.predict.along import Along, Origin, Spot, find_along
from rooflens.model.predict.compared import Compared
from rooflens.model.predict.measured import Checked, Prediction, is_expected
from rooflens.model.records import AnalyzedReport, PredictedQuantity
from rooflens.model.roofline.unit_names import limiter_words, resource_label
from rooflens.report.document import (
    Block,
    Bullets,
    Column,
    Columns,
    Document,
    Folded,
    Heading,
    Item,
    Paragraph,
    Span,
    Style,
    Table,
    Words,
    code,
    paragraph,
)

MAX_SHOWN = 60
"""Predictions that are shown; of more, only the count is told."""

LADDERS = frozenset({"rung"})
"""Parameters that number the steps of a ladder: versions of a program, one after the other."""

LABELS: Mapping[PredictedQuantity, str] = {
    "dram_bytes": "DRAM bytes",
    "intensity": "intensity",
    "floor": "floor",
    "separate": "separate kernels",
    "attainable": "attainable",
}
"""What a row is called; work is called by its unit."""

ORIGINS: Mapping[Origin, str] = {
    "calibrated": "as a calibration of this GPU measured them",
    "datasheet": "by the datasheet, at the profiled clock",
    "report": "as the report has them",
}


def title_of(prediction: Prediction) -> str:
    """Name a prediction: `gemm bf16_4096`; one without a case by its type."""
    return f"{prediction.operation} {prediction.case or prediction.dtype}"


def sizes_text(parameters: Mapping[str, int]) -> str:
    """Format sizes as `m = 4,096, n = 4,096`."""
    return ", ".join(f"{name} = {value:,}" for name, value in parameters.items())


def expectations_document(checked: Sequence[Checked], reports: Sequence[AnalyzedReport]) -> Document:
    """Show predictions beside measurements, and why they differ; nothing if nothing was predicted."""
    alone = sorted(_without_parts(checked), key=lambda one: _order_of(one.prediction))
    if not alone:
        return ()
    shown, names = alone[:MAX_SHOWN], _report_names(reports)
    rows = [row for one in shown for row in _group(one, names)]
    left_out = fmt.count(len(alone) - len(shown), "more prediction")
    return (
        Heading("Predicted against measured, for one iteration"),
        *map(_along, find_along(checked, reports)),
        compared_table(rows),
        *_reasons(shown),
        *([Paragraph((f"{left_out} not shown.",), "note")] if len(alone) > len(shown) else []),
        Columns((tuple(_method(one, names) for one in shown),)),
    )


def compared_table(rows: Sequence[tuple[Words, ...]], title: str = "") -> Table:
    """Make the table of predicted against measured; a row with a single cell spans the table."""
    columns = tuple(
        Column("" if key.name == "quantity" else _heading(key), right=_is_number(key), fit=_fit(key)) for key in _KEYS
    )
    return Table(columns, tuple(rows), title, label="Predicted against measured")


_KEYS = tuple(key for key in COMPARED.keys if key.flat)


def _heading(key: Key) -> str:
    return key.label or key.name


def _is_number(key: Key) -> bool:
    return key.shape.cell == "real"


def _fit(key: Key) -> Any:
    return "keep" if _is_number(key) or key.name == "quantity" else "wrap"


def row_label(row: Compared) -> str:
    """Return the subject of a row."""
    return LABELS.get(row.name, row.unit)


def cells_of(row: Compared, *, at_least: bool = False, unproven: bool = False) -> tuple[str, ...]:
    """Write a row, with a cell for each column.

    Args:
        row: What was predicted, and measured.
        at_least: The measured amount is a lower bound.
        unproven: Published kernels of this operation come from one source.
    """

    def cell(key: Key) -> str:
        value = key.take(row)
        if value is None:
            return fmt.MISSING
        if key.name == "quantity":
            return row_label(row)
        if key.name == "measured" and at_least and row.unit != "FLOP/B":
            return f"\u2265 {_amount(value, row.unit)}"
        if _is_number(key):
            return f"{fmt.significant(value)}x" if key.unit == "factor" else _amount(value, row.unit)
        return f"{value}, unproven" if unproven and row.name == "attainable" else str(value)

    return tuple(map(cell, _KEYS))


def _amount(value: float, unit: str) -> str:
    if unit == "FLOP/B":
        return fmt.intensity(value)
    return fmt.duration(value) if unit == "ns" else fmt.si(value, unit)


def rows_of(checked: Checked) -> list[tuple[str, ...]]:
    """Write the rows of a prediction."""
    found = checked.times.attainable
    unproven = found is not None and not found.proven
    return [cells_of(row, at_least=checked.at_least, unproven=unproven) for row in checked.rows]


def _group(checked: Checked, names: Mapping[str, str]) -> Iterator[tuple[Words, ...]]:
    """Yield the rows of a prediction below its name, and its limiter if one was predicted."""
    yield (_named(checked, names),)
    yield from rows_of(checked)
    yield from limiter_cells(checked)


def limiter_cells(checked: Checked) -> Iterator[tuple[str, ...]]:
    """Yield the row of the limiter, if one was predicted and any was measured."""
    limiter, bound = checked.measured.limiter, checked.prediction.bound
    if bound and limiter:
        verdict = "as predicted" if is_expected(limiter, checked.prediction) else "another"
        told = {"quantity": "limiter", "predicted": bound, "measured": limiter[0], "verdict": verdict}
        yield tuple(told.get(key.name, "") for key in _KEYS)


def _named(checked: Checked, names: Mapping[str, str]) -> tuple[str | Span, ...]:
    """Name a prediction, its kernels, and the limiter of most of their time."""
    measured, iterations = checked.measured, checked.prediction.iterations
    launches = fmt.count(measured.launches, "launch")
    if checked.kernel and measured.launches > 1:
        launches = f"mean of {launches}"
    elif iterations > 1 and not checked.kernel:
        launches = f"{launches} in {iterations:,} iterations"
    where = (", ", code(names[checked.digest])) if len(names) > 1 and checked.digest in names else ()
    kernels = (" of ", code(checked.kernel)) if checked.kernel else ()
    spent = "no time measured"
    if measured.limiter:
        spent = f"{limiter_words(*measured.limiter)} for {fmt.percent(measured.limiter_share)} of the time"
    return (code(title_of(checked.prediction)), *where, f": {launches}", *kernels, f", {spent}")


def _reasons(shown: Sequence[Checked]) -> Iterator[Block]:
    """Yield the explanations of differences, below the name of each prediction if there are several."""
    told = [(one, [*_gap_lines(one)]) for one in shown]
    if len(told) == 1:
        lines = [Item(line) for line in told[0][1]]
    else:
        lines = [Item(code(title_of(one.prediction)), items=tuple(gaps)) for one, gaps in told if gaps]
    if lines:
        yield Bullets(tuple(lines))


def _gap_lines(checked: Checked) -> Iterator[str]:
    return (
        f"{gap.topic}: {gap.text}"
        for gap in checked.gaps
        if gap.reasons or not gap.as_predicted or gap.topic == "time"  # which says whether to stop
    )


def _method(checked: Checked, names: Mapping[str, str]) -> Folded:
    """Show on a page the times of a prediction on one scale, and the source of its formulas."""
    prediction = checked.prediction
    sizes = sizes_text(prediction.parameters)
    source = f"Formulas: {prediction.source}. Type: {prediction.dtype}.{f' Sizes: {sizes}.' if sizes else ''}"
    report = (" Report: ", code(names.get(checked.digest, "")), ".") if checked.digest in names else ()
    lines = paragraph((Span(source, "literal"), *report))
    return Folded(code(title_of(prediction)), (*_times(checked), lines))


def _times(checked: Checked) -> Iterator[Table]:
    """Yield the times of the predicted and the measured work, as bars on one scale."""
    times, unit = checked.times, checked.prediction.unit
    work = f"{fmt.si(checked.prediction.flop, unit)} at {fmt.si(times.peak_per_s, f'{unit}/s')}"
    moved = f"{fmt.si(checked.prediction.moved_bytes, 'B')} at {fmt.si(times.bandwidth_bytes_per_s, 'B/s')}"
    found = times.attainable
    attained = f"median of {found.points} published times over their floors" if found else ""
    listed: tuple[tuple[str, float | None, str, Style], ...] = (
        ("T math", times.math_ns, f"{work}, {resource_label(times.pipe)}{_published(checked)}", "compute"),
        ("T memory", times.memory_ns, f"{moved}, DRAM", "memory"),
        ("floor", times.floor_ns, "the longer of them", "unknown"),
        ("attainable", found.typical_s * 1e9 if found else None, attained, "unknown"),
        ("measured", checked.measured.time_ns, fmt.count(checked.measured.launches, "launch"), "unknown"),
    )
    known = [(name, time_ns, note, style) for name, time_ns, note, style in listed if time_ns]
    longest = max((time_ns for _, time_ns, _, _ in known), default=1.0)
    if known:
        yield Table(
            (Column("time"), Column("on one scale", fit="bar"), Column("takes", right=True), Column("", fit="wrap")),
            tuple(
                (name, Span(f"{time_ns / longest:.4f}", style), fmt.duration(time_ns), note)
                for name, time_ns, note, style in known
            ),
            label="Times on one scale, at the report's own peaks",
        )


def _published(checked: Checked) -> str:
    return " (published)" if checked.times.is_published else ""


def _along(one: Along) -> Table:
    """Show kernels along the roofline: the predicted rate at each intensity, and the measured one."""
    columns = (
        Column("kernel", fit="name"),
        Column("FLOP/B", right=True, worth=4),
        Column("predicted", right=True),
        Column("by", worth=4),
        Column("measured", right=True),
        Column("of it", fit="bar", page=True),
        Column("of it", right=True, worth=9),
        Column("FLOP/B measured", right=True, worth=4),
        Column("limiter"),
    )
    operation = one.spots[0].checked.prediction.operation
    return Table(columns, tuple(map(_spot, one.spots)), f"{operation} predicted from {peaks_text(one)}")


def _spot(spot: Spot) -> tuple[Words, ...]:
    limiter = spot.checked.measured.limiter
    return (
        spot.checked.prediction.case,
        fmt.bare_intensity(spot.predicted_intensity),
        fmt.si(spot.predicted_flop_per_s, "FLOP/s"),
        Span(spot.predicted_bound, spot.predicted_bound),
        fmt.si(spot.flop_per_s, "FLOP/s"),
        Span(f"{min(spot.reached or 0.0, 1.0):.4f}", spot.predicted_bound),
        fmt.percent(spot.reached),
        fmt.bare_intensity(spot.intensity_flop_per_byte),
        limiter[0] if limiter else fmt.MISSING,
    )


def peaks_text(one: Along) -> str:
    """Name the two roofs that the prediction uses."""
    flop, moved = fmt.si(one.peaks.flop_per_s, "FLOP/s"), fmt.si(one.peaks.bytes_per_s, "B/s")
    ridge = fmt.intensity(one.peaks.ridge_flop_per_byte)
    return f"{resource_label(one.pipe)} {flop} and DRAM {moved}, {ORIGINS[one.peaks.origin]}; they meet at {ridge}"


def _order_of(prediction: Prediction) -> tuple[str, str, float, str]:
    """Sort the cases of one program and type together, in order of their work."""
    size = prediction.flop or prediction.moved_bytes or 0.0
    dtype = "" if LADDERS & prediction.parameters.keys() else prediction.dtype
    return prediction.operation, dtype, size, prediction.case


def _without_parts(checked: Iterable[Checked]) -> list[Checked]:
    """Leave out kernels with their own table, which a workload predicts one by one."""
    every = [*checked]
    parts = {(one.digest, rule.kernel) for one in every for rule in one.prediction.parts}
    return [one for one in every if (one.digest, one.kernel) not in parts]


def _report_names(reports: Iterable[AnalyzedReport]) -> dict[str, str]:
    return {report.run.digest: PurePath(report.run.source).name for report in reports}
