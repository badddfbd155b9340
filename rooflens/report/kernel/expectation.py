"""What was predicted of a kernel, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rooflens.globs import covers
from rooflens.model.predict.compared import Compared
from rooflens.model.predict.measured import Checked, compared
from rooflens.model.records import Analysis, PredictedQuantity
from rooflens.report.document import Document, Paragraph, Span, Words
from rooflens.report.kernel.predicted import (
    REASONS,
    cells_of,
    compared_table,
    limiter_cells,
    limiter_reason,
    title_of,
)

_TOPICS: Mapping[PredictedQuantity, str] = {"work": "work", "dram_bytes": "bytes"}
"""Quantity -> the topic of the reasons for its difference."""


def predicted(checked: Checked, analysis: Analysis, *, is_whole: bool) -> Document:
    """Set a kernel's prediction beside what was measured, as `predicted_rows` takes it."""
    source = f"{title_of(checked.prediction)}: {checked.prediction.source}"
    rows = tuple(predicted_rows(checked, analysis, is_whole=is_whole))
    return compared_table(rows, "Predicted and measured"), Paragraph((Span(source, "literal"),), "note")


def predicted_rows(checked: Checked, analysis: Analysis, *, is_whole: bool) -> Iterator[tuple[Words, ...]]:
    """Yield the rows of a kernel, each with what explains its difference below it.

    Args:
        checked: The prediction of the kernel, or of its report.
        analysis: The kernel.
        is_whole: It is all of its report.
    """
    if checked.kernel is not None:
        yield from (cells_of(row) for row in _of_launch(checked, analysis))
    elif is_whole:
        yield from _of_whole(checked)
    else:
        rows = _of_launch(checked, analysis, analysis.launches)
        yield from (cells_of(row) for row in rows if row.unit != "ns")
        yield (f"One of the {checked.measured.launches} launches that the prediction covers.",)


def checked_for(digest: str, name: str, predictions: Iterable[Checked]) -> Checked | None:
    """Find the prediction of a launch: that of its kernel before that of its whole report."""
    own = [prediction for prediction in predictions if prediction.digest == digest]
    by_name = (found for found in own if found.kernel is not None and covers(found.kernel, name))
    return next(by_name, None) or next((found for found in own if found.kernel is None), None)


def _of_whole(checked: Checked) -> Iterator[tuple[Words, ...]]:
    """Yield the rows of a kernel that is all of its report."""
    reasons = [REASONS[key] for key in checked.gaps]
    for row in checked.rows:
        yield cells_of(row, at_least=checked.at_least)
        yield from [(sentence,) for topic, sentence in reasons if topic == _TOPICS.get(row.name)][:1]
    yield from limiter_cells(checked)
    if why := limiter_reason(checked):
        yield (why,)


def _of_launch(checked: Checked, analysis: Analysis, launches: int = 1) -> list[Compared]:
    """Compare `launches` times what one launch did with what was predicted."""
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
