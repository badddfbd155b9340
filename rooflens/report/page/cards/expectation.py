"""Predicted against measured, as a panel of a card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from markupsafe import Markup

from rooflens.globs import covers
from rooflens.model.predict.compared import Compared
from rooflens.model.predict.measured import Checked, Topic, compared
from rooflens.model.records import PredictedQuantity
from rooflens.model.summary import Launch
from rooflens.report.content import Content
from rooflens.report.document import Paragraph, Span, Words
from rooflens.report.words.expectations import cells_of, compared_table, limiter_cells, title_of
from rooflens.report.writers.html import to_html

_TOPICS: Mapping[PredictedQuantity, Topic] = {"work": "work", "dram_bytes": "bytes"}
"""Quantity -> the topic of the gap that explains its difference."""


def predicted_panel(page: Content, launch: Launch) -> Markup:
    """Show a kernel's prediction; nothing where its report has none, or where the launch stands for a sum."""
    checked = _checked_for(launch.analysis.kernel.digest, launch.name, page.predictions)
    if checked is None or page.aggregated or launch.failed:
        return Markup()
    alone = sum(analysis.kernel.digest == launch.analysis.kernel.digest for analysis in page.analyses) == 1
    source = f"{title_of(checked.prediction)}: {checked.prediction.source}"
    rows = tuple(predicted_rows(checked, launch, is_whole=alone))
    document = compared_table(rows, "Predicted and measured"), Paragraph((Span(source, "literal"),), "note")
    return Markup(to_html(document))  # noqa: S704 - escaped by the writer


def predicted_rows(checked: Checked, launch: Launch, *, is_whole: bool) -> Iterator[tuple[Words, ...]]:
    """Yield the rows of a kernel, each with what explains its difference below it.

    Args:
        checked: The prediction of the kernel, or of its report.
        launch: The kernel.
        is_whole: It is all of its report.
    """
    if checked.kernel is not None:
        yield from (cells_of(row) for row in _of_launch(checked, launch))
    elif is_whole:
        yield from _of_whole(checked)
    else:
        rows = _of_launch(checked, launch, launch.analysis.launches)
        yield from (cells_of(row) for row in rows if row.unit != "ns")
        yield (f"One of the {checked.measured.launches} launches that the prediction covers.",)


def _checked_for(digest: str, name: str, predictions: Iterable[Checked]) -> Checked | None:
    """Find the prediction of a launch: that of its kernel before that of its whole report."""
    own = [prediction for prediction in predictions if prediction.digest == digest]
    by_name = (found for found in own if found.kernel is not None and covers(found.kernel, name))
    return next(by_name, None) or next((found for found in own if found.kernel is None), None)


def _of_whole(checked: Checked) -> Iterator[tuple[Words, ...]]:
    """Yield the rows of a kernel that is all of its report."""
    why = {gap.topic: gap.reasons for gap in checked.gaps if not gap.as_predicted}
    for row in checked.rows:
        yield cells_of(row, at_least=checked.at_least)
        topic = _TOPICS.get(row.name)
        yield from ((reason,) for reason in (why.get(topic, ()) if topic else ())[:1])
    yield from limiter_cells(checked)
    if checked.prediction.bound and "limiter" in why and checked.prediction.why:
        yield (f"Expected because: {checked.prediction.why}.",)


def _of_launch(checked: Checked, launch: Launch, launches: int = 1) -> list[Compared]:
    """Compare what a launch did, so many times over, with what was predicted."""
    prediction, analysis = checked.prediction, launch.analysis
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
