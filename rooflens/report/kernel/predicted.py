"""Predicted against measured: the rows of each prediction, and the document for terminal, Markdown and page.

The columns of its table are the keys of `COMPARED`, so that a key added there has its column everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType

from rooflens import format as fmt
from rooflens.globs import covers
from rooflens.model.catalogue import COMPARED, Key
from rooflens.model.predict.compared import Compared, time_words
from rooflens.model.predict.measured import Checked, Prediction, compared, is_expected
from rooflens.model.records import Analysis, AnalyzedReport, PredictedQuantity
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

REASONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "failed": ("scope", "A kernel failed while being profiled: nothing can be compared."),
        "launches_profiled_once": ("scope", "Each distinct launch was profiled once: more may have run."),
        "whole_program_profiled": ("scope", "The profile is not limited to an NVTX range: it may include set-up."),
        "work_not_counted": ("work", "This report does not count all of the work: see the flags of its kernels."),
        "work_beside_tensor": ("work", "The tensor pipes did what the formula counts; more ran on CUDA cores."),
        "uneven_tiles": ("work", "A size is not a multiple of 64, so padded tiles may be part of it."),
        "edge_of_mask": ("work", "Tiles on the edge of the mask may be computed in full."),
        "padded_or_repeated": ("work", "Padded tiles, masked tiles or recomputation may be the reason."),
        "several_instructions": (
            "work",
            "Special functions (MUFU) ran too: a root or a division may take several instructions.",
        ),
        "counted_high": ("work", "The counters may show more than was done: see the flags of its kernels."),
        "special_not_counted": ("work", "Special functions (MUFU) ran, which do not count as FLOPs."),
        "comparisons_not_counted": ("work", "Comparisons, selects and conversions do not count as FLOPs."),
        "masked_tiles_skipped": ("work", "Fully masked tiles may have been skipped."),
        "counted_low": ("work", "The counters lack a kind of work that ran: see the flags of its kernels."),
        "tf32_disabled": ("type", "It ran on FP32: TF32 may be disabled."),
        "rounded_to_tf32": ("type", "It ran on the tensor pipe: operands were rounded to TF32."),
        "another_type": ("type", "Much of the work ran on a pipe of another type than predicted."),
        "bytes_not_measured": ("bytes", "The bytes at DRAM were not measured."),
        "larger_pieces": ("bytes", "DRAM moved more than the SMs asked of L2: it may be fetched in larger pieces."),
        "read_again": ("bytes", "More than the compulsory bytes moved between SMs and L2: operands are read again."),
        "larger_than_l2": ("bytes", "The compulsory bytes do not fit in L2."),
        "passed_between_launches": ("bytes", "Data passed between the launches may go through DRAM."),
        "output_stayed_in_l2": ("bytes", "The output stayed in L2: little of what was written to it went on to DRAM."),
        "caches_kept": ("bytes", "Caches were not flushed before each kernel: inputs may have been in L2 already."),
        "fits_l2": ("bytes", "All of it fits in L2, where some of it may have stayed."),
        "too_fast": ("time", "Not everything was profiled, or less work was done than predicted."),
    }
)
"""Why a measurement may differ from its prediction -> what that is about, and its sentence; a reason with `may` is a
likely one, which the counters cannot show."""


def title_of(prediction: Prediction) -> str:
    """Name a prediction: `gemm bf16_4096`; one without a case by its type."""
    return f"{prediction.operation} {prediction.case or prediction.dtype}"


def sizes_text(parameters: Mapping[str, int]) -> str:
    """Format sizes as `m = 4,096, n = 4,096`."""
    return ", ".join(f"{name} = {value:,}" for name, value in parameters.items())


def expectations_document(checked: Sequence[Checked], reports: Sequence[AnalyzedReport]) -> Document:
    """Show predictions beside measurements, and why they differ; nothing if nothing was predicted."""
    alone = sorted(checked, key=lambda one: _order_of(one.prediction))
    if not alone:
        return ()
    shown, names = alone[:MAX_SHOWN], _report_names(reports)
    rows = [row for one in shown for row in _group(one, names)]
    left_out = fmt.count(len(alone) - len(shown), "more prediction")
    return (
        Heading("Predicted against measured, for one iteration"),
        compared_table(rows),
        *_reasons(shown),
        *([Paragraph((f"{left_out} not shown.",), "note")] if len(alone) > len(shown) else []),
        Columns((tuple(_method(one, names) for one in shown),)),
    )


def compared_table(rows: Sequence[tuple[Words, ...]], title: str = "") -> Table:
    """Make the table of predicted against measured; a row with a single cell spans the table."""
    columns = tuple(
        Column(
            "" if key.name == "quantity" else key.label or key.name,
            right=_is_number(key),
            fit="keep" if _is_number(key) or key.name == "quantity" else "wrap",
        )
        for key in _KEYS
    )
    return Table(columns, tuple(rows), title, label="Predicted against measured")


_KEYS = tuple(key for key in COMPARED.keys if key.flat)


def _is_number(key: Key) -> bool:
    return key.shape.cell == "real"


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
            return LABELS.get(row.name, row.unit)
        if key.name == "measured" and at_least and row.unit != "FLOP/B":
            return f"\u2265 {_amount_words(value, row.unit)}"
        if _is_number(key):
            return f"{fmt.significant(value)}x" if key.unit == "factor" else _amount_words(value, row.unit)
        return f"{value}, unproven" if unproven and row.name == "attainable" else str(value)

    return tuple(map(cell, _KEYS))


def _amount_words(value: float, unit: str) -> str:
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
    yield (_prediction_words(checked, names),)
    yield from rows_of(checked)
    yield from limiter_cells(checked)


def limiter_cells(checked: Checked) -> Iterator[tuple[str, ...]]:
    """Yield the row of the limiter, if one was predicted and any was measured."""
    limiter, bound = checked.measured.limiter, checked.prediction.bound
    if bound and limiter:
        verdict = "as predicted" if is_expected(limiter, checked.prediction) else "another"
        told = {"quantity": "limiter", "predicted": bound, "measured": limiter[0], "verdict": verdict}
        yield tuple(told.get(key.name, "") for key in _KEYS)


def _prediction_words(checked: Checked, names: Mapping[str, str]) -> tuple[str | Span, ...]:
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
    yield from (f"{topic}: {sentence}" for topic, sentence in map(REASONS.__getitem__, checked.gaps))
    times, time_ns = checked.times, checked.measured.time_ns
    if times.floor_ns and time_ns and (time_ns >= times.floor_ns or not checked.at_least):
        taken = time_words(time_ns / 1e9, times.floor_ns / 1e9, times.attainable, (times.math_ns or 0.0) / 1e9)
        yield f"time: {taken}."
    if why := limiter_reason(checked):
        yield f"limiter: {why}"


def limiter_reason(checked: Checked) -> str:
    """Say why another limiter was expected; empty where it is as expected, or nobody wrote why."""
    limiter, prediction = checked.measured.limiter, checked.prediction
    if limiter is None or prediction.bound is None or not prediction.why or is_expected(limiter, prediction):
        return ""
    return f"{limiter_words(prediction.bound, prediction.resource)} was expected: {prediction.why}."


def _method(checked: Checked, names: Mapping[str, str]) -> Folded:
    """Show on a page the times of a prediction on one scale, and the source of its formulas."""
    prediction = checked.prediction
    sizes = sizes_text(prediction.parameters)
    source = f"Formulas: {prediction.source}. Type: {prediction.dtype}.{f' Sizes: {sizes}.' if sizes else ''}"
    report = (" Report: ", code(names.get(checked.digest, "")), ".") if checked.digest in names else ()
    lines = paragraph((Span(source, "literal"), *report))
    return Folded(code(title_of(prediction)), (*_times_tables(checked), lines))


def _times_tables(checked: Checked) -> Iterator[Table]:
    """Yield the times of the predicted and the measured work, as bars on one scale."""
    times, unit = checked.times, checked.prediction.unit
    work = f"{fmt.si(checked.prediction.flop, unit)} at {fmt.si(times.peak_per_s, f'{unit}/s')}"
    moved = f"{fmt.si(checked.prediction.moved_bytes, 'B')} at {fmt.si(times.bandwidth_bytes_per_s, 'B/s')}"
    found = times.attainable
    published = " (published)" if times.is_published else ""
    attained = f"median of {found.points} published times over their floors" if found else ""
    listed: tuple[tuple[str, float | None, str, Style], ...] = (
        ("T math", times.math_ns, f"{work}, {resource_label(times.pipe)}{published}", "compute"),
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


def _order_of(prediction: Prediction) -> tuple[str, str, float, str]:
    """Sort the cases of one program and type together, in order of their work."""
    size = prediction.flop or prediction.moved_bytes or 0.0
    dtype = "" if LADDERS & prediction.parameters.keys() else prediction.dtype
    return prediction.operation, dtype, size, prediction.case


def _report_names(reports: Iterable[AnalyzedReport]) -> dict[str, str]:
    return {report.run.digest: PurePath(report.run.source).name for report in reports}


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
