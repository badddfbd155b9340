"""Predicted against measured: the section of the page, the rows of a kernel's card, and the lines of the terminal.

All of them are written from the one `Checked` prediction of a report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Literal

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.predict.along import find_along
from rooflens.model.predict.measured import Checked, Prediction, Topic, is_expected
from rooflens.model.verdict.sentences import limiter_words, resource_label
from rooflens.report.content import Content
from rooflens.report.page.along import peaks_text
from rooflens.report.page.cards.expectation import LADDERS, PredictedRow, expected_rows, sizes_text, title_of
from rooflens.report.templates import render

OPEN_BLOCKS = 2
"""With no more checked predictions than this, all of them stand open."""

MAX_BLOCKS = 60

TOPIC_WORDS: Mapping[Topic, str] = {
    "scope": "Scope",
    "work": "Work",
    "type": "Type",
    "bytes": "Bytes",
    "time": "Time",
    "limiter": "Limiter",
}

Kind = Literal["memory", "compute", "bound", "measured"]


class TimeRow(Struct, frozen=True):
    """One time of a checked prediction: `share` is its part of the longest."""

    label: str
    time: str
    share: float
    note: str
    kind: Kind


class Block(Struct, frozen=True):
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


def order_of(prediction: Prediction) -> tuple[str, str, float, str]:
    """Put the cases of one program and type beside each other, in order of their work."""
    size = prediction.flop or prediction.moved_bytes or 0.0
    dtype = "" if LADDERS & prediction.parameters.keys() else prediction.dtype
    return prediction.operation, dtype, size, prediction.case


def without_parts(checked: Sequence[Checked]) -> list[Checked]:
    """Leave out kernels with a table of their own: the kernels that a workload predicts one by one."""
    parts = {(one.digest, rule.kernel) for one in checked for rule in one.prediction.parts}
    return [one for one in checked if (one.digest, one.kernel) not in parts]


def prediction_lines(checked: Checked) -> tuple[str, ...]:
    """Write for a terminal what was predicted for one iteration, what the kernels did, and why they differ."""
    prediction, measured = checked.prediction, checked.measured
    rows = {row.label: row for row in expected_rows(checked)}
    told = [f"{row.predicted} at DRAM" if row.label == "DRAM bytes" else row.predicted for row in _amounts(rows)]
    limiter = [limiter_words(prediction.bound, prediction.resource)] if prediction.bound else []
    found = [f"{_beside(row)} at DRAM" if row.label == "DRAM bytes" else _beside(row) for row in _amounts(rows)]
    launches = fmt.count(measured.launches, "launch")
    lines = (
        f"{title_of(prediction)} predicted, one iteration: {', '.join([*told, *limiter])}",
        f"{title_of(prediction)} measured, {launches}: {', '.join([*found, _limiter(checked)])}",
    )
    gaps = (
        f"  {TOPIC_WORDS[gap.topic].lower()}: {gap.text}"
        for gap in checked.gaps
        if gap.reasons or not gap.as_predicted or gap.topic == "time"
    )
    return (*lines, *gaps)


def _amounts(rows: Mapping[str, PredictedRow]) -> list[PredictedRow]:
    return [rows[label] for label in ("FLOP", "op", "DRAM bytes") if label in rows]


def _beside(row: PredictedRow) -> str:
    if row.factor is None:
        return f"{'B' if row.label == 'DRAM bytes' else row.label} not measured"
    return f"{row.measured} ({fmt.significant(row.factor)}x)"


def _limiter(checked: Checked) -> str:
    measured = checked.measured
    if measured.limiter is None:
        return "no time measured"
    return f"{limiter_words(*measured.limiter)} for {fmt.percent(measured.limiter_share)} of the time"


def predicted(page: Content) -> Markup:
    """Show every report that has a prediction; nothing if none has."""
    sources = {run.digest: PurePath(run.source).name for run in page.runs}
    alone = without_parts(page.predictions)
    shown = sorted(alone, key=lambda block: order_of(block.prediction))[:MAX_BLOCKS]
    blocks = [_block(f"predicted-{i}", block, sources) for i, block in enumerate(shown)]
    left_out = len(alone) - len(shown)
    is_open = len(blocks) <= OPEN_BLOCKS
    tables = render("report/along", shown=find_along(page.predictions, page.reports), peaks_text=peaks_text)
    return render(
        "report/expectations", blocks=blocks, left_out=left_out, is_open=is_open, topics=TOPIC_WORDS, tables=tables
    )


def _block(key: str, checked: Checked, sources: Mapping[str, str]) -> Block:
    prediction, measured = checked.prediction, checked.measured
    expected = _limiter_look(prediction.bound, prediction.resource)
    return Block(
        key=key,
        title=title_of(prediction),
        sizes=sizes_text(prediction.parameters),
        digest=checked.digest,
        reports=sources.get(checked.digest, "") + (f", kernels {checked.kernel}" if checked.kernel else ""),
        checked=checked,
        factors=_factors(checked),
        expected=expected,
        found=_limiter_look(*measured.limiter) if measured.limiter else None,
        as_expected=measured.limiter is not None and is_expected(measured.limiter, prediction),
        rows=expected_rows(checked),
        times=_times(checked),
    )


def _limiter_look(bound: str | None, resource: str | None) -> tuple[str, str] | None:
    """Return the class, for its colour and shape, and the words of a limiter."""
    return (bound, limiter_words(bound, resource)) if bound else None


def _factors(checked: Checked) -> tuple[tuple[str, str], ...]:
    """Write how measured and predicted compare in work, bytes and time."""
    floor_ns, time_ns = checked.times.floor_ns, checked.measured.time_ns
    listed = (
        (checked.prediction.unit, checked.work_ratio),
        ("bytes", checked.bytes_ratio),
        ("time over floor", time_ns / floor_ns if time_ns and floor_ns else None),
    )
    least = "\u2265\u00a0" if checked.at_least else ""
    return tuple(
        (label, f"{least}{fmt.significant(found)}x" if found is not None else fmt.MISSING) for label, found in listed
    )


def _times(checked: Checked) -> tuple[TimeRow, ...]:
    """List the times of the predicted work and the measured one, for bars on one scale."""
    bounds, prediction = checked.times, checked.prediction
    work = f"{fmt.si(prediction.flop, prediction.unit)} at {fmt.si(bounds.peak_per_s, f'{prediction.unit}/s')}"
    moved = f"{fmt.si(prediction.moved_bytes, 'B')} at {fmt.si(bounds.bandwidth_bytes_per_s, 'B/s')}"
    count = fmt.count(checked.measured.launches, "launch")
    found = bounds.attainable
    proven = "" if found is None or found.proven else "; unproven: one source"
    attained = f"median of {found.points} published times over their floors{proven}" if found else ""
    published = " (published)" if bounds.is_published else ""
    listed: tuple[tuple[str, float | None, str, Kind], ...] = (
        ("T_math", bounds.math_ns, f"{work}, {resource_label(bounds.pipe)}{published}", "compute"),
        ("T_memory", bounds.memory_ns, f"{moved}, DRAM", "memory"),
        ("Floor", bounds.floor_ns, "the longer of them", "bound"),
        ("Attainable", found.typical_s * 1e9 if found else None, attained, "bound"),
        ("Measured", checked.measured.time_ns, f"{'at least, ' if checked.at_least else ''}{count}", "measured"),
    )
    longest = max((time_ns or 0.0 for _, time_ns, _, _ in listed), default=0.0)
    return tuple(
        TimeRow(label, fmt.duration(time_ns), time_ns / longest, note, kind)
        for label, time_ns, note, kind in listed
        if time_ns
    )
