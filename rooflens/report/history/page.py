"""The page of `rooflens history`: for each program on each GPU the time of its kernels over the runs, and tables."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.bounds import Bound
from rooflens.model.compare.ladder import Series
from rooflens.report.history.chart import MAX_LINES, Group, groups, history_spec, runs_of, sparkline_parts, time_axis
from rooflens.report.html.document import document
from rooflens.report.html.parts import Figure
from rooflens.report.html.templates import render
from rooflens.report.ladder import verdicts
from rooflens.report.text.history import run_cells

MAX_GROUPS = 12
MAX_KERNELS = 30
MAX_RUNS = 200
"""Programs with a chart, kernels of each in the tables, and runs in the table of a kernel; JSON holds the rest."""

SPARK_PX = (96, 20)

CHANGED = 0.03
"""Changes from the previous run below this are not named: recordings differ by as much by chance."""

MAX_NAMED = 3


class KernelRow(Struct, frozen=True):
    """One kernel in the overview.

    Attributes:
        runs: In how many of the runs it was timed or not: `12 of 14`.
        note: Where it appeared or vanished along the way; else empty.
        spark: Its time over the runs as points of SVG lines.
        cells: Its runs: date, report, time, change, DRAM, verdict.
        left_out: Runs that are older than those in `cells`.
    """

    name: str
    runs: str
    note: str
    first: str
    last: str
    change: str
    bound: Bound
    verdict: str
    spark: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    left_out: int


class Section(Struct, frozen=True):
    """One program on one GPU, ready to be placed.

    Attributes:
        undrawn: Why there is no chart.
    """

    key: str
    group: Group
    sentences: tuple[str, ...]
    figure: Figure | None
    undrawn: str
    rows: tuple[KernelRow, ...]
    left_out: int


def render_history(series: Sequence[Series]) -> str:
    """Render one self-contained HTML page of the history of kernels; it may be empty."""
    found = groups(series)
    shown = [_section(f"history-{i}", group) for i, group in enumerate(found[:MAX_GROUPS])]
    body = render("history/page", sections=shown, left_out=len(found) - len(shown), spark_px=SPARK_PX)
    return document(
        _title(found),
        _facts(series, found),
        [body],
        synthetic=_synthetic(series),
        styles=("history/history.css",),
        skip=("tables", "Skip to the first table"),
    )


def _synthetic(series: Sequence[Series]) -> str:
    """Say how many runs were written by a generator; empty where all were measured."""
    runs = {point.run.digest: point.run for kernel in series for point in kernel.points}
    synthetic = sum(run.synthetic for run in runs.values())
    return f"{fmt.count(synthetic, 'run')} written by a generator, not measured on a GPU." if synthetic else ""


def _title(found: Sequence[Group]) -> str:
    programs = list(dict.fromkeys(group.program for group in found))
    return f"History of {programs[0]}" if len(programs) == 1 else f"History of {fmt.count(len(programs), 'program')}"


def _facts(series: Sequence[Series], found: Sequence[Group]) -> list[str]:
    gpus = list(dict.fromkeys(group.gpu or "unknown GPU" for group in found))
    facts = [gpus[0] if len(gpus) == 1 else fmt.count(len(gpus), "GPU")] if gpus else []
    facts += [fmt.count(runs_of(series), "run"), fmt.count(len(series), "kernel")]
    times = [point.run.created_unix_s for kernel in series for point in kernel.points if point.run.created_unix_s]
    return [*facts, f"recorded {fmt.span(fmt.date(min(times)), fmt.date(max(times)))}"] if times else facts


def _section(key: str, group: Group) -> Section:
    undrawn = "No report of this program holds a time: there is nothing to draw."
    if len(group.runs) == 1:
        undrawn = f"Recorded once, {group.when[0]}: a line needs two runs. Ingest another report of the same program."
    return Section(
        key=key,
        group=group,
        sentences=tuple(_sentences(group)),
        figure=_figure(key, group) if group.is_drawable else None,
        undrawn=undrawn,
        rows=tuple(_row(group, kernel) for kernel in group.series[:MAX_KERNELS]),
        left_out=len(group.series) - min(len(group.series), MAX_KERNELS),
    )


def _figure(key: str, group: Group) -> Figure:
    runs = fmt.count(len(group.runs), "run")
    axis = "GPU time, logarithmic" if time_axis(group).is_log else "GPU time"
    note = (
        "One line per kernel: all its launches added up, or the mean launch where their number differs; colour and "
        "shape show its verdict in each run. Runs are evenly spaced, in the order of recording; a line breaks where a "
        "run lacks the kernel or its time."
    )
    undrawn = sum(any(point.time_ns for point in kernel.points) for kernel in group.series) - MAX_LINES
    if undrawn > 0:
        verb = "is" if undrawn == 1 else "are"
        note += f" {fmt.count(undrawn, 'kernel')} with less time in the newest run {verb} not drawn."
    return Figure(
        key,
        history_spec(
            group,
            title=f"{fmt.cut_middle(group.program, 60)} on {group.gpu or 'an unknown GPU'}",
            subtitle=f"{axis}; {runs}, {group.when[0]} to {group.when[-1]}",
        ),
        label=f"GPU time of the kernels of {group.program} over {runs}; the tables below hold the same data.",
        save="Save the chart as",
        notes=(note,),
        holder="the tables hold its data",
    )


def _sentences(group: Group) -> list[str]:
    """Say what became of the whole, and what changed last."""
    if len(group.runs) < 2:
        return []
    first, last = group.total_ns(0), group.total_ns(len(group.runs) - 1)
    said = []
    if first and last:
        span = f"GPU time of all kernels: {fmt.duration(first)} in the first run, {fmt.duration(last)} in the last"
        said.append(f"{span}: {_factor_words(first / last) if _goes_on(group) else 'no kernel is in both'}.")
    changed = sorted(_last_changes(group), key=lambda change: -abs(change[1]))
    if changed:
        named = [f"{name} {change * 100:+.1f} %" for name, change in changed[:MAX_NAMED]]
        more = f", and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
        said.append(f"Last run against the one before: {', '.join(named)}{more}.")
    else:
        said.append("Last run against the one before: no kernel changed by more than 3\u00a0%.")
    return said


def _goes_on(group: Group) -> bool:
    """Return whether a kernel of the first run is in the last one too."""
    ends = {0, len(group.runs) - 1}
    return any(ends <= {group.at(point) for point in kernel.points} for kernel in group.series)


def _factor_words(factor: float) -> str:
    if abs(factor - 1) < CHANGED:
        return "about the same"
    return f"{fmt.factor(factor)} faster" if factor > 1 else f"{fmt.factor(1 / factor)} slower"


def _last_changes(group: Group) -> list[tuple[str, float]]:
    """List the kernels whose time changed from the last run but one to the last."""
    found = []
    for kernel in group.series:
        if len(kernel.points) < 2 or [group.at(point) for point in kernel.points[-2:]] != [
            len(group.runs) - 2,
            len(group.runs) - 1,
        ]:
            continue
        before, now = (point.time_ns for point in kernel.points[-2:])
        if before and now and abs(now / before - 1) > CHANGED:
            found.append((fmt.cut_name(fmt.plain_name(kernel.name), 40), now / before - 1))
    return found


def _row(group: Group, kernel: Series) -> KernelRow:
    cells = list(run_cells(kernel))
    last, count = kernel.points[-1], len(kernel.points)
    return KernelRow(
        name=fmt.plain_name(kernel.name),
        runs=f"{count} of {len(group.runs)}" if count < len(group.runs) else str(count),
        note=_note(group, kernel),
        first=fmt.duration(kernel.points[0].time_ns),
        last=fmt.duration(last.time_ns) + (" a launch" if kernel.is_mean else ""),
        change=fmt.MISSING if kernel.factor is None else _factor_words(kernel.factor),
        bound=last.analysis.verdict.bound,
        verdict=verdicts([point.analysis for point in kernel.points]).replace("->", "\u2192"),
        spark=tuple(sparkline_parts(group, kernel, *SPARK_PX)),
        cells=tuple(cells[-MAX_RUNS:]),
        left_out=len(cells) - min(len(cells), MAX_RUNS),
    )


def _note(group: Group, kernel: Series) -> str:
    """Say where a kernel appeared or vanished."""
    at = [group.at(point) for point in kernel.points]
    notes = []
    if at[0] > 0:
        notes.append(f"new in {group.when[at[0]]}")
    if at[-1] < len(group.runs) - 1:
        notes.append(f"gone after {group.when[at[-1]]}")
    if at[-1] - at[0] + 1 > len(at):
        notes.append(f"not in {fmt.count(at[-1] - at[0] + 1 - len(at), 'run')} between")
    return ", ".join(notes)
