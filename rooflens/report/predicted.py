"""Predicted against measured: the section of the page, the rows of a kernel's card, and the lines of the terminal.

All of them are written from the one `Checked` prediction of a report.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, Protocol

from rooflens.model.checked import is_expected
from rooflens.model.gap import wall_words
from rooflens.model.predictions import check_reports
from rooflens.model.records import Prediction
from rooflens.model.words import resource_label
from rooflens.report import format as fmt
from rooflens.report.html import render
from rooflens.report.sweep import LADDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markupsafe import Markup

    from rooflens.model.checked import Checked, Topic
    from rooflens.model.predictions import Rule
    from rooflens.model.records import Bound
    from rooflens.report.rows import Launch, Page

OPEN_BLOCKS = 2
"""With no more checked predictions than this, all of them stand open."""

MAX_BLOCKS = 60

TOPIC_WORDS: Mapping[Topic, str] = {
    "scope": "Scope",
    "work": "Work",
    "type": "Type",
    "bytes": "Bytes",
    "time": "Time",
    "wall": "Wall",
}

Kind = Literal["memory", "compute", "bound", "measured"]


class Expectation(Protocol):
    """The wall a case is expected to hit."""

    @property
    def bound(self) -> str:
        """Class of the verdict."""

    @property
    def resource(self) -> str | None:
        """Level or pipe, where the class has one."""

    @property
    def why(self) -> str:
        """The reason."""


class Case(Protocol):
    """What a prediction needs of a workload's case."""

    @property
    def name(self) -> str:
        """Name within the workload."""

    @property
    def parameters(self) -> Mapping[str, int]:
        """Sizes by name."""

    @property
    def dtype(self) -> str:
        """Type of the operands."""

    @property
    def source(self) -> str:
        """Where the formulas come from."""

    @property
    def expect(self) -> Expectation:
        """The wall it is expected to hit."""

    def flop_count(self, parameters: Mapping[str, int] | None = None) -> float | None:
        """Return the FLOP of one iteration."""

    def byte_count(self, parameters: Mapping[str, int] | None = None) -> float | None:
        """Return the bytes one iteration must move to and from device memory."""


@dataclass(frozen=True, slots=True)
class PredictedRow:
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


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One time of a checked prediction: `share` is its part of the longest."""

    label: str
    time: str
    share: float
    note: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Block:
    """One checked prediction as the page shows it."""

    key: str
    title: str
    sizes: str
    digest: str
    reports: str
    checked: Checked
    factors: tuple[tuple[str, str], ...]
    expected: tuple[str, str] | None
    found: tuple[str, str] | None
    as_expected: bool
    rows: tuple[PredictedRow, ...]
    times: tuple[TimeRow, ...]


def predict_case(
    operation: str,
    case: Case,
    parameters: Mapping[str, int] | None = None,
    iterations: int = 1,
    source: str | None = None,
) -> Prediction:
    """Write down what a case must compute and move.

    Args:
        operation: Name of the workload.
        case: The case whose formulas hold.
        parameters: Sizes that are not those of the case; no wall is expected of them.
        iterations: How often the program does its work.
        source: Where the formulas come from; by default what the case says.
    """
    expect = case.expect if parameters is None else None
    return Prediction(
        operation=operation,
        case=case.name if parameters is None else "",
        parameters=dict(case.parameters if parameters is None else parameters),
        dtype=case.dtype,
        source=source or case.source,
        flop=case.flop_count(parameters),
        moved_bytes=case.byte_count(parameters),
        bound=expect.bound if expect else None,  # type: ignore[arg-type] # a workload file names classes of verdicts
        resource=expect.resource if expect else None,
        why=expect.why if expect else "",
        iterations=iterations,
    )


def with_predictions(page: Page, predictions: Mapping[str, Prediction], rules: Sequence[Rule] = ()) -> Page:
    """Put what has a prediction, reports by digest and kernels by name, beside what was measured."""
    return replace(page, predictions=check_reports(page.runs, page.analyses, predictions, rules))


def title_of(prediction: Prediction) -> str:
    """Name a prediction: `gemm bf16_4096`; one without a case by its type."""
    return f"{prediction.operation} {prediction.case or prediction.dtype}"


def order_of(prediction: Prediction) -> tuple[str, str, float, str]:
    """Put the cases of one program and type beside one another, in order of their work."""
    size = prediction.flop or prediction.moved_bytes or 0.0
    dtype = "" if LADDERS & prediction.parameters.keys() else prediction.dtype
    return prediction.operation, dtype, size, prediction.case


def prediction_lines(checked: Checked) -> tuple[str, ...]:
    """Write for a terminal what was predicted for one iteration, what the kernels did, and why they differ."""
    prediction, measured = checked.prediction, checked.measured
    rows = {row.label: row for row in _rows(checked)}
    told = [f"{row.predicted} at HBM" if row.label == "HBM bytes" else row.predicted for row in _amounts(rows)]
    wall = [wall_words(prediction.bound, prediction.resource)] if prediction.bound else []
    found = [f"{_beside(row)} at HBM" if row.label == "HBM bytes" else _beside(row) for row in _amounts(rows)]
    launches = fmt.count(measured.launches, "launch")
    lines = (
        f"{title_of(prediction)} predicted, one iteration: {', '.join([*told, *wall])}",
        f"{title_of(prediction)} measured, {launches}: {', '.join([*found, _wall(checked)])}",
    )
    gaps = (
        f"  {TOPIC_WORDS[gap.topic].lower()}: {gap.text}" for gap in checked.gaps if gap.reasons or not gap.as_predicted
    )
    return tuple(line.replace(fmt.NBSP, " ") for line in (*lines, *gaps))


def _amounts(rows: Mapping[str, PredictedRow]) -> list[PredictedRow]:
    return [rows[label] for label in ("FLOP", "op", "HBM bytes") if label in rows]


def _beside(row: PredictedRow) -> str:
    if row.factor is None:
        return f"{'B' if row.label == 'HBM bytes' else row.label} not measured"
    return f"{row.measured} ({fmt.number(row.factor)}x)"


def _wall(checked: Checked) -> str:
    measured = checked.measured
    if measured.wall is None:
        return "no time measured"
    return f"{wall_words(*measured.wall)} for {fmt.percent(measured.wall_share, 0)} of the time"


def predicted(page: Page) -> Markup:
    """Show every report that has a prediction beside it; nothing where none has."""
    sources = {run.digest: PurePath(run.source).name for run in page.runs}
    shown = sorted(page.predictions, key=lambda one: order_of(one.prediction))[:MAX_BLOCKS]
    blocks = [_block(f"predicted-{i}", one, sources) for i, one in enumerate(shown)]
    left_out = len(page.predictions) - len(shown)
    is_open = len(blocks) <= OPEN_BLOCKS
    return render("predicted", blocks=blocks, left_out=left_out, is_open=is_open, topics=TOPIC_WORDS)


def _block(key: str, checked: Checked, sources: Mapping[str, str]) -> Block:
    prediction, measured = checked.prediction, checked.measured
    expected = _wall_look(prediction.bound, prediction.resource)
    return Block(
        key=key,
        title=title_of(prediction),
        sizes=sizes_text(prediction.parameters),
        digest=checked.digest,
        reports=sources.get(checked.digest, "") + (f", kernels {checked.kernel}" if checked.kernel else ""),
        checked=checked,
        factors=_factors(checked),
        expected=expected,
        found=_wall_look(*measured.wall) if measured.wall else None,
        as_expected=measured.wall is not None and is_expected(measured.wall, prediction),
        rows=_rows(checked),
        times=_times(checked),
    )


def _wall_look(bound: Bound | None, resource: str | None) -> tuple[str, str] | None:
    """Return the class, for its colour and shape, and the words of a wall."""
    return (bound, wall_words(bound, resource)) if bound else None


def sizes_text(parameters: Mapping[str, int]) -> str:
    """Write sizes: `m = 4,096, n = 4,096`."""
    return ", ".join(f"{name}{fmt.NBSP}={fmt.NBSP}{value:,}" for name, value in parameters.items())


def _factors(checked: Checked) -> tuple[tuple[str, str], ...]:
    """Write how measured and predicted compare in work, bytes and time."""
    lower_ns, time_ns = checked.times.lower_ns, checked.measured.time_ns
    listed = (
        (checked.unit, checked.work_ratio),
        ("bytes", checked.bytes_ratio),
        ("time over bound", time_ns / lower_ns if time_ns and lower_ns else None),
    )
    least = "\u2265\u00a0" if checked.at_least else ""
    return tuple(
        (label, f"{least}{fmt.number(found)}x" if found is not None else fmt.MISSING) for label, found in listed
    )


def _rows(checked: Checked) -> tuple[PredictedRow, ...]:
    """Put each quantity beside its measurement."""
    prediction, measured, unit = checked.prediction, checked.measured, checked.unit
    rows = []
    if prediction.flop:
        rows.append(_row(checked, unit, prediction.flop, measured.work, unit))
    if prediction.moved_bytes:
        rows.append(_row(checked, "HBM bytes", prediction.moved_bytes, measured.moved_bytes, "B"))
    if prediction.flop and prediction.moved_bytes and unit == "FLOP":
        found = measured.work / measured.moved_bytes if measured.work and measured.moved_bytes else None
        expected = prediction.flop / prediction.moved_bytes
        factor = found / expected if found is not None else None
        rows.append(PredictedRow("Intensity", fmt.intensity(expected), fmt.intensity(found), factor))
    return tuple(rows)


def _row(checked: Checked, label: str, expected: float, found: float | None, unit: str) -> PredictedRow:
    at_least = "at least " if checked.at_least and found is not None else ""
    factor = found / expected if found is not None else None
    return PredictedRow(label, fmt.si(expected, unit), f"{at_least}{fmt.si(found, unit)}", factor)


def _times(checked: Checked) -> tuple[TimeRow, ...]:
    """List the times of the predicted work and the measured one, for bars on one scale."""
    bounds, prediction = checked.times, checked.prediction
    work = f"{fmt.si(prediction.flop, checked.unit)} at {fmt.si(bounds.peak_per_s, f'{checked.unit}/s')}"
    moved = f"{fmt.si(prediction.moved_bytes, 'B')} at {fmt.si(bounds.bandwidth_bytes_per_s, 'B/s')}"
    count = fmt.count(checked.measured.launches, "launch")
    published = " (published: it did nothing here)" if bounds.is_published else ""
    listed: tuple[tuple[str, float | None, str, Kind], ...] = (
        ("T_math", bounds.math_ns, f"{work}, {resource_label(bounds.pipe)}{published}", "compute"),
        ("T_memory", bounds.memory_ns, f"{moved}, HBM", "memory"),
        ("Lower bound", bounds.lower_ns, "max(): fully overlapped", "bound"),
        ("Upper bound", bounds.upper_ns, "sum(): one after the other", "bound"),
        ("Measured", checked.measured.time_ns, f"{'at least, ' if checked.at_least else ''}{count}", "measured"),
    )
    longest = max((time_ns or 0.0 for _, time_ns, _, _ in listed), default=0.0)
    return tuple(
        TimeRow(label, fmt.duration(time_ns), time_ns / longest, note, kind)
        for label, time_ns, note, kind in listed
        if time_ns
    )


def predicted_rows(page: Page, launch: Launch) -> tuple[PredictedRow, ...]:
    """Give the rows of a kernel's card; none where its report has no prediction, or where it stands for a sum."""
    checked = _checked_for(launch, page.predictions)
    if checked is None or page.aggregated or launch.failed:
        return ()
    if checked.kernel is not None:
        return tuple(_sourced(_rows_of_launch(checked, launch), checked))
    alone = sum(one.kernel.digest == launch.analysis.kernel.digest for one in page.analyses) == 1
    rows = _rows_of_whole(checked) if alone else _rows_of_part(checked, launch)
    return tuple(_sourced(rows, checked))


def _checked_for(launch: Launch, predictions: Iterable[Checked]) -> Checked | None:
    """Find the prediction of a launch: that of its kernel before that of its whole report."""
    mine = [one for one in predictions if one.digest == launch.analysis.kernel.digest]
    by_name = (one for one in mine if one.kernel is not None and fnmatchcase(launch.name, one.kernel))
    return next(by_name, None) or next((one for one in mine if one.kernel is None), None)


def _sourced(rows: Sequence[PredictedRow], checked: Checked) -> Iterable[PredictedRow]:
    source = f"{title_of(checked.prediction)}: {checked.prediction.source}"
    return (replace(row, source=source if at == 0 else "") for at, row in enumerate(rows))


def _rows_of_whole(checked: Checked) -> list[PredictedRow]:
    """Write the rows of a kernel that is all of its report."""
    why = {gap.topic: gap for gap in checked.gaps if not gap.as_predicted}
    topics: Mapping[str, Topic] = {checked.unit: "work", "HBM bytes": "bytes"}
    rows = [
        replace(row, why=next(iter(why[topics[row.label]].reasons), "") if topics.get(row.label) in why else "")
        for row in _rows(checked)
    ]
    prediction, wall = checked.prediction, checked.measured.wall
    if prediction.bound and wall:
        reason = f"Expected because: {prediction.why}." if "wall" in why and prediction.why else ""
        rows.append(
            PredictedRow("Wall", wall_words(prediction.bound, prediction.resource), wall_words(*wall), why=reason)
        )
    return rows


def _amounts_of(checked: Checked, launch: Launch) -> tuple[tuple[str, float | None, float | None, str], ...]:
    """List label, predicted and measured amount of one launch, and its unit."""
    prediction, analysis, unit = checked.prediction, launch.analysis, checked.unit
    work = [pipe.amount for pipe in analysis.pipes.values() if pipe.unit == unit and pipe.amount]
    return (
        (unit, prediction.flop, sum(work) if analysis.flop_total is not None else None, unit),
        ("HBM bytes", prediction.moved_bytes, analysis.levels["dram"].amount_bytes, "B"),
    )


def _rows_of_launch(checked: Checked, launch: Launch) -> list[PredictedRow]:
    """Write what one launch did of what was predicted for each."""
    return [
        PredictedRow(
            label, fmt.si(expected, unit), fmt.si(found, unit), found / expected if found is not None else None
        )
        for label, expected, found, unit in _amounts_of(checked, launch)
        if expected
    ]


def _rows_of_part(checked: Checked, launch: Launch) -> list[PredictedRow]:
    """Write what one of several kernels did of what was predicted for all of them."""
    analysis = launch.analysis
    why = f"One of {checked.measured.launches} launches that the prediction is for."
    rows = []
    for label, expected, amount, name in _amounts_of(checked, launch):
        if expected:
            found = amount * analysis.launches if amount is not None else None
            factor = found / expected if found is not None else None
            rows.append(PredictedRow(label, f"{fmt.si(expected, name)} for all", fmt.si(found, name), factor, why))
            why = ""
    return rows
