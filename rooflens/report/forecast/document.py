"""What a forecast says: a table for each type and GPU; on a page also the rows to choose among, charts, and sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from rooflens.format import count, duration, percent, si, significant
from rooflens.model.predict.compared import time_advice
from rooflens.model.predict.forecast import Forecast, ForecastRow, moving
from rooflens.model.roofline.unit_names import resource_label
from rooflens.report.document import (
    Bar,
    Bars,
    Block,
    Chart,
    Choice,
    Column,
    Columns,
    Control,
    Document,
    Facts,
    Folded,
    Heading,
    Paragraph,
    Span,
    Style,
    Table,
    Words,
    bullets,
    code,
    paragraph,
    strong,
)
from rooflens.report.kernel.predicted import cells_of, compared_table
from rooflens.report.words import forecast as sentences
from rooflens.report.words.forecast import columns_of, crossing_words, notes, sizes_text, table_rows
from rooflens.report.words.forecast import heading as row_heading

MAX_PLANES = 12
"""Types and GPUs that are drawn: those that are fastest at the last size."""

MAX_CHOICES = 600
"""Rows among which a page lets its reader choose; its tables hold all."""

MAX_OPEN_STEPS, MAX_OPEN_ROWS = 48, 4
"""With more steps or tables than these a page folds its tables."""

MAX_SOURCES = 12
"""Types and GPUs whose peaks are explained."""

_LIMITS = (
    "T math is FLOP over the dense peak, T memory is bytes over the bandwidth, and T comms, where GPUs share the "
    "work, is bytes sent over the bandwidth of the link in one direction. Special functions (MUFU), instructions that"
    " unpack weights and bytes through L2 have a time of their own where an operation counts them. The longest of "
    "them is the floor. It holds for cold caches; the warm floor leaves T memory out, where L2 has room for operands "
    "and results and holds them already. Where the floor is shorter than a launch (2 to 5 \u00b5s of host time), the "
    "operation is overhead-bound. Occupancy, caches and clocks below boost are not in it: a kernel can be slower."
)
_ATTAINABLE = (
    "What is attainable is the floor times what tuned published kernels of an operation, and of its kind, took over "
    "theirs: from half as far above it as the best of them to a third farther than nearly all of them, and under 20 "
    "\u00b5s a launch. With one source it is unproven."
)

_WORTH: Mapping[str, int] = {
    "FLOP/link B": 1,
    "sent": 1,
    "of peak": 2,
    "ridge": 2,
    "at most": 2,
    "attainable FLOP/s": 3,
    "T math": 3,
    "T memory": 4,
    **dict.fromkeys(("T vector", "T MUFU", "T issue", "T L2"), 4),
    "T comms": 5,
    "warm floor": 5,
    "bytes": 6,
    "FLOP": 7,
    "FLOP/B": 8,
}
"""Columns that leave a narrow terminal; sizes, regime and floor stay longest."""

NOTE = "floor: no kernel is faster from cold caches; peaks are dense; `rooflens about columns`"
NOTE_OF_STEPS = f"floor: a kernel for each step; {NOTE.replace('floor', 'fused', 1)}"
"""Printed below all tables of a simple operation, and of one that a single kernel could do."""


def forecasts_document(rows: Sequence[ForecastRow], lacking: Sequence[str] = ()) -> Document:
    """Show a table for each operation, type and GPU, and what it means below it.

    Args:
        rows: One or more of one operation, each with at least one step.
        lacking: What is said of each GPU that has no peak for the type, or no link.
    """
    blocks = [*_first(rows), _choice(rows), *_side_by_side(rows, lacking), _on_pages(Heading("All numbers"))]
    folds = sum(len(row.steps) for row in rows) > MAX_OPEN_STEPS or len(rows) > MAX_OPEN_ROWS
    for row in rows:
        columns = tuple(
            Column(
                name,
                right=name not in {"sizes", "regime"},
                fit="wrap" if name == "sizes" else "keep",
                worth=_WORTH.get(name, 9),
                least=20,
            )
            for name in columns_of(row)
        )
        table, meaning = Table(columns, tuple(table_rows(row)), row_heading(row)), bullets([*notes(row)])
        blocks += [Folded(table.title, (table, meaning), on_text=False)] if folds else [table, meaning]
        blocks += _measured_blocks(row.steps[-1][1])
    return (
        *blocks,
        Paragraph((NOTE_OF_STEPS if rows[0].operation.fused else NOTE,), "note"),
        _on_pages(Folded("How it was counted", tuple(_method(rows)))),
    )


def _measured_blocks(result: Forecast) -> Iterator[Block]:
    """Compare a measured time with the floor and with published kernels, and say what follows; nothing without one."""
    if not result.measured_s or not result.compared:
        return
    found = result.attainable
    unproven = found is not None and not found.proven
    cells = [cells_of(row, unproven=unproven) for row in result.compared]
    if result.t_fused_s is not None:
        # "floor" is another column of the table above.
        cells[0] = ("fused", *cells[0][1:])
    yield compared_table(cells, "Predicted against measured")
    times_s = result.measured_s, result.floor_s
    if advice := time_advice(*times_s, found, result.t_without_dram_s, result.clock_hz):
        yield bullets([advice])


def heading(rows: Sequence[ForecastRow]) -> tuple[str, list[str], str]:
    """Give the title of a forecast's page, and facts below it; no generator wrote any of it."""
    gpus = dict.fromkeys(row.gpu.name for row in rows)
    steps = len(rows[0].steps)
    facts = ["predicted, not measured", next(iter(gpus)) if len(gpus) == 1 else count(len(gpus), "GPU")]
    return sentences.title(rows), [*facts, *([count(steps, "size")] if steps > 1 else [])], ""


def _first(rows: Sequence[ForecastRow]) -> Iterator[Block]:
    """Answer for all sizes, types and GPUs, with their times against one another, above what a reader may choose."""
    if len(rows) == 1 and len(rows[0].steps) == 1:
        return
    said: list[Words] = [sentences.fastest_words(rows)]
    if len(rows) == 1:
        said.append((Span("", rows[0].steps[-1][1].regime), sentences.answer(rows[0])))
    yield _on_pages(Paragraph((said[0],), "answer"), *map(paragraph, said[1:]))
    yield _on_pages(_against_sizes(rows) if len(rows[0].steps) > 1 else _against_gpus(rows))
    yield _on_pages(Heading("Try other sizes" if len(rows[0].steps) > 1 else "One by one"))


def _against_sizes(rows: Sequence[ForecastRow]) -> Chart:
    """Draw the time against the size, a line for each type and GPU."""

    def draw() -> Mapping[str, Any]:
        from rooflens.report.forecast.times import times_spec  # noqa: PLC0415 - only pages draw

        return times_spec(sorted(rows, key=_last_floor_s)[:MAX_PLANES])

    more = (f"Drawn are the {MAX_PLANES} that are fastest at the last size.",) if len(rows) > MAX_PLANES else ()
    return Chart("times", draw, "Shortest time against the size; the tables hold the same data.", more)


def _against_gpus(rows: Sequence[ForecastRow]) -> Bars:
    """Set types and GPUs against one another by their shortest time."""
    ordered = sorted(rows, key=_last_floor_s)
    longest, best = (_last_floor_s(ordered[end]) or 1.0 for end in (-1, 0))
    of_types = len({row.dtype for row in rows}) > 1

    def bar(place: int, row: ForecastRow) -> Bar:
        result = row.steps[-1][1]
        typical = f"typically {duration(result.attainable.typical_s * 1e9)}, " if result.attainable else ""
        return Bar(
            f"{_gpu_name(row)}{f', {row.dtype}' if of_types else ''}",
            str(place),
            duration(result.floor_s * 1e9),
            f"{significant(result.floor_s / best)}x",
            result.floor_s / longest,
            result.regime,
            ((Span(f"{typical}{result.regime}-bound", result.regime),),),
            is_best=place == 1,
        )

    bars = tuple(bar(place, row) for place, row in enumerate(ordered, 1))
    return Bars(("GPU", _floor_name(rows), "x fastest"), bars, Table((), ()), "fastest")


def _on_pages(*blocks: Block) -> Columns:
    return Columns((blocks,))


def _choice(rows: Sequence[ForecastRow]) -> Choice:
    """Let a reader choose a size, a type and a GPU among the rows; each has its answer, its numbers and its plane."""
    steps = _chosen_steps(rows[0])
    shown = list(rows)
    if len(steps) * len(shown) > MAX_CHOICES:
        shown = sorted(rows, key=_last_floor_s)[: max(1, MAX_CHOICES // len(steps))]
    cases, controls = _cases(shown)
    controls = (Control(*_sizes_of_sweep(rows[0], steps), slides=True), *controls)
    kept = [i for i, control in enumerate(controls) if len(control.names) > 1]

    def key(*places: int | None) -> tuple[int | None, ...]:
        return tuple(places[i] for i in kept)

    names = [{at: ".".join(map(str, key(i, *case))) for i, at in enumerate(steps)} for case in cases]
    charts = _planes(shown, names if len(steps) > 1 else [{}] * len(shown))
    parts: list[tuple[tuple[int | None, ...], Document]] = []
    for i, (row, case) in enumerate(zip(shown, cases, strict=True)):
        parts += [(key(step, *case), (_answer(row, at),)) for step, at in enumerate(steps)]
        parts.append((key(None, *case), tuple(_plane_blocks(row, charts.get(i), alone=len(rows) == 1))))
        parts += [(key(step, *case), tuple(_worked_out(row, at))) for step, at in enumerate(steps)]
    first = (len(steps) - 1, *cases[0])
    return Choice(tuple(controls[i] for i in kept), tuple(parts), tuple(first[i] for i in kept))


def _chosen_steps(row: ForecastRow) -> list[int]:
    """Choose the steps that a slider goes through: all, or as many at even distances, the last among them."""
    amount = len(row.steps)
    stride = -(-amount // MAX_CHOICES)
    return [*range((amount - 1) % stride, amount, stride)]


def _last_floor_s(row: ForecastRow) -> float:
    return row.steps[-1][1].floor_s


def _floor_name(rows: Sequence[ForecastRow]) -> str:
    """Name the floor that no kernel beats, as tables do."""
    return "fused" if rows[0].operation.fused else "floor"


def _cases(rows: Sequence[ForecastRow]) -> tuple[list[tuple[int, ...]], tuple[Control, ...]]:
    """Give the place of each row among types and GPUs, or in one list where not each GPU has each type."""
    types = [*dict.fromkeys(row.dtype for row in rows)]
    gpus = [*dict.fromkeys(row.gpu.name for row in rows)]
    if len(rows) < len(types) * len(gpus):
        names = tuple(f"{_gpu_name(row)}, {row.dtype}" for row in rows)
        return [(i,) for i in range(len(rows))], (Control("GPU and type", names),)
    cases: list[tuple[int, ...]] = [(types.index(row.dtype), gpus.index(row.gpu.name)) for row in rows]
    return cases, (Control("Type", tuple(types)), Control("GPU", tuple(name.removeprefix("NVIDIA ") for name in gpus)))


def _gpu_name(row: ForecastRow) -> str:
    """Name a GPU without its maker."""
    return row.gpu.name.removeprefix("NVIDIA ")


def _sizes_of_sweep(row: ForecastRow, steps: Sequence[int]) -> tuple[str, tuple[str, ...]]:
    named = moving(row)
    alike = all(len({row.steps[at][0][name] for name in named}) == 1 for at in steps)
    if named and alike:
        return " = ".join(named), tuple(sentences.size_text(named[0], row.steps[at][0][named[0]]) for at in steps)
    return "Sizes", tuple(sizes_text(row, row.steps[at][0], brief=True) for at in steps)


def _answer(row: ForecastRow, at: int) -> Paragraph:
    result = row.steps[at][1]
    return Paragraph(((Span("", result.regime), sentences.answer_at(result)),), "answer")


def _worked_out(row: ForecastRow, at: int) -> Iterator[Block]:
    """Work one step out in numbers; a composite operation has a line for each part, the longest first."""
    result = row.steps[at][1]
    worked = tuple((name, (text,), False) for name, text in sentences.derivation(row, at))
    yield Facts("Worked out", worked)
    times = _listed_times(result)
    longest = max((seconds for _, seconds, _ in times), default=1.0)
    drawn = ((name, Span(f"{seconds / longest:.4f}", style), duration(seconds * 1e9)) for name, seconds, style in times)
    columns = Column("time"), Column("on one scale", fit="bar"), Column("takes", right=True)
    yield Table(columns, tuple(drawn), label="Times on one scale")
    if result.parts:
        of_parts = (Column("part"), *(Column(name, right=True) for name in ("of the floor", "floor", "FLOP/B")))
        parts = sorted(result.parts, key=lambda part: -part.t_lower_s)
        yield Table(of_parts, tuple(_part_row(part, result) for part in parts), label="Where the floor goes")


def _listed_times(result: Forecast) -> list[tuple[str, float, Style]]:
    """List the times of a step that are counted, its floor, and what published kernels and the reader's take."""
    found: list[tuple[str, float | None, Style]] = [
        ("T math", result.t_math_s, "compute"),
        ("T memory", result.t_memory_s, "memory"),
        ("T comms", result.t_comms_s, "communication"),
        ("T vector", result.t_vector_s, "compute"),
        ("T MUFU", result.t_special_s, "compute"),
        ("T issue", result.t_issue_s, "compute"),
        ("T L2", result.t_l2_s, "memory"),
        ("floor", result.t_lower_s, result.regime),
        ("fused", result.t_fused_s, result.regime),
        ("warm floor", result.t_lower_warm_s, "memory"),
        ("typical of published", result.attainable.typical_s if result.attainable else None, "unknown"),
        ("measured", result.measured_s, "unknown"),
    ]
    return [(name, seconds, style) for name, seconds, style in found if seconds]


def _part_row(part: Forecast, whole: Forecast) -> tuple[Words, ...]:
    share = part.t_lower_s / whole.t_lower_s if whole.t_lower_s else 0.0
    label = f"{part.count} x {part.label}" if part.count > 1 else part.label
    floor = duration(part.t_lower_s * 1e9)
    return Span(label, part.regime), percent(share), floor, significant(part.intensity)


def _planes(rows: Sequence[ForecastRow], places: Sequence[Mapping[int, str]]) -> dict[int, Chart]:
    """Draw a roofline of each of the rows that are fastest at the last size, by the row's number; they share axes."""
    drawable = [i for i, row in enumerate(rows) if any(part.flop for _, one in row.steps for part in (one, *one.parts))]
    drawn = sorted(drawable, key=lambda i: _last_floor_s(rows[i]))[:MAX_PLANES]

    @cache
    def placed() -> dict[int, Any]:
        from rooflens.report.forecast.plane import planes  # noqa: PLC0415 - only pages draw

        return dict(zip(drawn, planes([rows[i] for i in drawn], [places[i] for i in drawn]), strict=True))

    def draw(i: int) -> Mapping[str, Any]:
        from rooflens.report.plane.simple import plane_spec  # noqa: PLC0415 - only pages draw

        subtitle = (sentences.title([rows[i]]), "Predicted from dense peaks of the datasheet")
        return plane_spec(replace(placed()[i], title=_gpu_name(rows[i]), subtitle=subtitle))

    about = "Roofline of {} for {} in {}; the tables hold the same data."
    return {
        i: Chart(f"plane-{i}", partial(draw, i), about.format(rows[i].gpu.name, rows[i].operation.name, rows[i].dtype))
        for i in drawn
    }


def _plane_blocks(row: ForecastRow, chart: Chart | None, *, alone: bool) -> Iterator[Block]:
    """Show the plane of a row, or say why it has none, and what its sweep says where that is not said above."""
    last = row.steps[-1][1]
    if chart:
        yield chart
    elif not last.flop:
        rate = last.link_bytes_per_s if last.longest == "t_comms_s" else last.bandwidth_bytes_per_s
        time = f"it takes as long as its bytes take at {si(rate, 'B/s')}"
        yield Paragraph((f"No FLOPs, so no place in a roofline: {time}.",), "note")
    else:
        yield Paragraph((f"Drawn are the {MAX_PLANES} that are fastest at the last size.",), "note")
    if len(row.steps) > 1 and not alone:
        yield paragraph(sentences.answer(row))


def _side_by_side(rows: Sequence[ForecastRow], lacking: Sequence[str]) -> Iterator[Block]:
    """List types and GPUs at the last size, the fastest first, and those that are left out."""
    if len(rows) > 1:
        columns = (
            Column("GPU", fit="name"),
            Column("type"),
            Column("pipe"),
            *(
                Column(name, right=True)
                for name in ("dense peak", "DRAM", "ridge (FLOP/B)", _floor_name(rows), "of peak")
            ),
            Column("regime"),
            Column("changes", fit="wrap"),
        )
        cells = tuple(map(_gpu_cells, sorted(rows, key=_last_floor_s)))
        at = sizes_text(rows[0], rows[0].steps[-1][0], brief=True)
        yield _on_pages(Heading(f"Side by side at {at}"), Table(columns, cells, label="GPUs and types side by side"))
    if lacking:
        yield _on_pages(bullets([f"left out: {words}" for words in lacking]))


def _gpu_cells(row: ForecastRow) -> tuple[Words, ...]:
    last = row.steps[-1][1]
    changes = "; ".join(crossing_words(row, sizes, regime) for sizes, regime in row.crossings)
    return (
        _gpu_name(row),
        row.dtype,
        resource_label(last.peak),
        si(last.peak_flop_per_s, "FLOP/s"),
        si(last.bandwidth_bytes_per_s, "B/s"),
        significant(last.ridge),
        duration(last.floor_s * 1e9),
        percent(last.share_of_peak),
        Span(f"{last.regime}-bound", last.regime),
        changes,
    )


def _method(rows: Sequence[ForecastRow]) -> Iterator[Block]:
    """Say which peak was used and why, how FLOPs and bytes are counted, and what a forecast cannot know."""
    yield Heading("Which peak, and why", 3)
    for row in rows[:MAX_SOURCES]:
        yield paragraph((strong(f"{_gpu_name(row)}, {row.dtype}."), f" {' '.join(sentences.peak_words(row))}"))
    yield Heading("Formula", 3)
    named = ("operation", "what it is", "FLOPs", "bytes to and from DRAM", "beside them")
    columns = tuple(Column(name, fit="wrap") for name in named)
    counted = (
        (code(one.name), one.summary, one.flop_source, one.bytes_source, one.extra_costs or "-")
        for one in sentences.counted(rows[0])
    )
    yield Table(columns, tuple(counted), label="Formulas")
    yield paragraph(f"Bytes per element: {sentences.element_words(rows)}.")
    sizes = ((f"{name} = {values}", (about,), False) for name, about, values in sentences.sizes(rows[0]))
    yield Facts("Sizes", tuple(sizes))
    yield Heading("Sources of the roofs", 3)
    for row in rows[:MAX_SOURCES]:
        said = " ".join(f"{name} {value}: {source}." for name, value, source in sentences.sources(row))
        yield paragraph((strong(f"{_gpu_name(row)}."), f" {said}"))
    if published := sentences.published(rows):
        yield Heading("Published kernels", 3)
        yield paragraph(_ATTAINABLE)
        yield bullets([f"{source}: {times}" for source, times in published])
    yield Heading("What a forecast cannot know", 3)
    yield paragraph(_LIMITS)
