"""Forecast against measured, as rows of a card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.globs import covers
from rooflens.model.predict.measured import Checked, Compared, Prediction, Quantity, Topic, compared
from rooflens.model.records import Analysis
from rooflens.model.verdict.sentences import limiter_words

LADDERS = frozenset({"rung"})
"""Parameters that number the steps of a ladder: versions of a program, one after the other."""


class PredictedRow(Struct, frozen=True):
    """One quantity of a checked prediction, in words.

    Attributes:
        factor: Measured over predicted; None for words, and where either is missing.
        why: What explains the gap, in a sentence; empty if nothing needs to be explained.
        source: What made the prediction; empty in all rows but the first.
    """

    label: str
    predicted: str
    measured: str
    factor: float | None = None
    why: str = ""
    source: str = ""


def title_of(prediction: Prediction) -> str:
    """Name a prediction: `gemm bf16_4096`; one without a case by its type."""
    return f"{prediction.operation} {prediction.case or prediction.dtype}"


def sizes_text(parameters: Mapping[str, int]) -> str:
    """Format sizes as `m = 4,096, n = 4,096`."""
    return ", ".join(f"{name} = {value:,}" for name, value in parameters.items())


LABELS: Mapping[Quantity, str] = {
    "dram_bytes": "DRAM bytes",
    "intensity": "Intensity",
    "floor": "Time, floor",
    "attainable": "Time, attainable",
}
"""Quantity -> what a row is called; work is called by its unit."""


def expected_rows(checked: Checked) -> tuple[PredictedRow, ...]:
    """Write each predicted quantity beside its measurement."""
    return tuple(_row(row, checked, "at least " if checked.at_least else "") for row in checked.rows)


def _row(row: Compared, checked: Checked, least: str = "") -> PredictedRow:
    writers: dict[str, Callable[[float | None], str]] = {"FLOP/B": fmt.intensity, "ns": fmt.duration}
    write = writers.get(row.unit) or partial(fmt.si, unit=row.unit)
    least = "" if row.measured is None or row.name == "intensity" else least
    found = checked.times.attainable
    about = " (unproven)" if row.name == "attainable" and found and not found.proven else ""
    label = LABELS.get(row.name, row.unit)
    return PredictedRow(label, f"{write(row.predicted)}{about}", f"{least}{write(row.measured)}", row.factor)


def predicted_rows(checked: Checked, analysis: Analysis, *, is_whole: bool) -> tuple[PredictedRow, ...]:
    """Give the rows of a kernel's card.

    Args:
        checked: The prediction of the kernel, or of its report.
        analysis: The launch.
        is_whole: It is all of its report.
    """
    if checked.kernel is not None:
        rows = [_row(row, checked) for row in _of_launch(checked, analysis)]
    else:
        rows = _rows_of_whole(checked) if is_whole else _rows_of_part(checked, analysis)
    return tuple(_sourced(rows, checked))


def checked_for(digest: str, name: str, predictions: Iterable[Checked]) -> Checked | None:
    """Find the prediction of a launch: that of its kernel before that of its whole report."""
    own = [prediction for prediction in predictions if prediction.digest == digest]
    by_name = (found for found in own if found.kernel is not None and covers(found.kernel, name))
    return next(by_name, None) or next((found for found in own if found.kernel is None), None)


def _sourced(rows: Sequence[PredictedRow], checked: Checked) -> Iterable[PredictedRow]:
    source = f"{title_of(checked.prediction)}: {checked.prediction.source}"
    return (replace(row, source=source if at == 0 else "") for at, row in enumerate(rows))


def _rows_of_whole(checked: Checked) -> list[PredictedRow]:
    """Write the rows of a kernel that is all of its report."""
    why = {gap.topic: gap for gap in checked.gaps if not gap.as_predicted}
    topics: Mapping[str, Topic] = {checked.prediction.unit: "work", "DRAM bytes": "bytes"}
    rows = [
        replace(row, why=next(iter(why[topics[row.label]].reasons), "") if topics.get(row.label) in why else "")
        for row in expected_rows(checked)
    ]
    prediction, limiter = checked.prediction, checked.measured.limiter
    if prediction.bound and limiter:
        reason = f"Expected because: {prediction.why}." if "limiter" in why and prediction.why else ""
        rows.append(
            PredictedRow(
                "Limiter", limiter_words(prediction.bound, prediction.resource), limiter_words(*limiter), why=reason
            )
        )
    return rows


def _of_launch(checked: Checked, analysis: Analysis, launches: int = 1) -> list[Compared]:
    """Set what a launch did, so many times over, against what was predicted."""
    prediction = checked.prediction
    work = [pipe.amount for pipe in analysis.pipes.values() if pipe.unit == prediction.unit and pipe.amount]
    moved = analysis.levels["dram"].amount_bytes
    rows = compared(
        prediction,
        checked.times,
        sum(work) * launches if analysis.flop_total is not None else None,
        None if moved is None else moved * launches,
        analysis.kernel.duration_ns,
    )
    return [row for row in rows if row.name != "intensity"]


def _rows_of_part(checked: Checked, analysis: Analysis) -> list[PredictedRow]:
    """Write what one of several kernels did of what was predicted for all of them."""
    why = f"One of the {checked.measured.launches} launches that the prediction covers."
    rows = [_row(row, checked) for row in _of_launch(checked, analysis, analysis.launches) if row.unit != "ns"]
    return [
        replace(row, predicted=f"{row.predicted} for all", why=why if at == 0 else "") for at, row in enumerate(rows)
    ]
