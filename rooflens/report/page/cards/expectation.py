"""Forecast against measured, as rows of a card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.globs import covers
from rooflens.model.predict.measured import Checked, Prediction, Topic
from rooflens.model.records import ratio
from rooflens.model.summary import Launch
from rooflens.model.verdict.sentences import limiter_words
from rooflens.report.content import Content

LADDERS = frozenset({"rung"})
"""Parameters that number the steps of a ladder: versions of one program, one after the other."""


class PredictedRow(Struct, frozen=True):
    """One quantity of a checked prediction, in words.

    Attributes:
        factor: Measured over predicted; None for words, and where either is missing.
        why: What explains the gap, in a sentence; empty where nothing needs to be explained.
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


def expected_rows(checked: Checked) -> tuple[PredictedRow, ...]:
    """Compare each predicted quantity with its measurement, the time with its floor."""
    prediction, measured, unit = checked.prediction, checked.measured, checked.prediction.unit
    least = "at least " if checked.at_least else ""
    rows = []
    if prediction.flop:
        rows.append(_row(unit, prediction.flop, measured.work, unit, least=least))
    if prediction.moved_bytes:
        rows.append(_row("DRAM bytes", prediction.moved_bytes, measured.moved_bytes, "B", least=least))
    if prediction.flop and prediction.moved_bytes and unit == "FLOP":
        found = measured.work / measured.moved_bytes if measured.work and measured.moved_bytes else None
        expected = prediction.flop / prediction.moved_bytes
        rows.append(PredictedRow("Intensity", fmt.intensity(expected), fmt.intensity(found), ratio(found, expected)))
    return (*rows, *_time_rows(checked, measured.time_ns, least))


def _time_rows(checked: Checked, time_ns: float | None, least: str = "") -> Iterator[PredictedRow]:
    """Set a time against its floor and against the median of published kernels; nothing where it is not known."""
    floor_ns, found = checked.times.floor_ns, checked.times.attainable
    if not floor_ns or not time_ns:
        return
    taken = f"{least}{fmt.duration(time_ns)}"
    yield PredictedRow("Time, floor", fmt.duration(floor_ns), taken, time_ns / floor_ns)
    if found is not None:
        typical = f"{fmt.duration(found.typical_s * 1e9)}{'' if found.proven else ' (unproven)'}"
        yield PredictedRow("Time, attainable", typical, taken, time_ns / 1e9 / found.typical_s)


def _row(label: str, expected: float, found: float | None, unit: str, *, least: str = "") -> PredictedRow:
    measured = fmt.si(found, unit) if found is None else f"{least}{fmt.si(found, unit)}"
    return PredictedRow(label, fmt.si(expected, unit), measured, ratio(found, expected))


def predicted_rows(page: Content, launch: Launch) -> tuple[PredictedRow, ...]:
    """Give the rows of a kernel's card; none where its report has no prediction, or where it stands for a sum."""
    checked = _checked_for(launch.analysis.kernel.digest, launch.name, page.predictions)
    if checked is None or page.aggregated or launch.failed:
        return ()
    if checked.kernel is not None:
        return tuple(_sourced(_rows_of_launch(checked, launch), checked))
    alone = sum(analysis.kernel.digest == launch.analysis.kernel.digest for analysis in page.analyses) == 1
    rows = _rows_of_whole(checked) if alone else _rows_of_part(checked, launch)
    return tuple(_sourced(rows, checked))


def _checked_for(digest: str, name: str, predictions: Iterable[Checked]) -> Checked | None:
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


def _amounts_of(checked: Checked, launch: Launch) -> tuple[tuple[str, float | None, float | None, str], ...]:
    """List label, predicted and measured amount of one launch, and its unit."""
    prediction, analysis, unit = checked.prediction, launch.analysis, checked.prediction.unit
    work = [pipe.amount for pipe in analysis.pipes.values() if pipe.unit == unit and pipe.amount]
    return (
        (unit, prediction.flop, sum(work) if analysis.flop_total is not None else None, unit),
        ("DRAM bytes", prediction.moved_bytes, analysis.levels["dram"].amount_bytes, "B"),
    )


def _rows_of_launch(checked: Checked, launch: Launch) -> list[PredictedRow]:
    """Write what one launch did of what was predicted for each."""
    amounts = _amounts_of(checked, launch)
    rows = [_row(label, expected, found, unit) for label, expected, found, unit in amounts if expected]
    return [*rows, *_time_rows(checked, launch.analysis.kernel.duration_ns)]


def _rows_of_part(checked: Checked, launch: Launch) -> list[PredictedRow]:
    """Write what one of several kernels did of what was predicted for all of them."""
    analysis = launch.analysis
    why = f"One of the {checked.measured.launches} launches that the prediction covers."
    rows = []
    for label, expected, amount, unit in _amounts_of(checked, launch):
        if expected:
            row = _row(label, expected, amount * analysis.launches if amount is not None else None, unit)
            rows.append(replace(row, predicted=f"{row.predicted} for all", why=why))
            why = ""
    return rows
