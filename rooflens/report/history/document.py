"""What a history says: a line for each kernel, or run by run; on a page also a chart of each program and GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rooflens import format as fmt
from rooflens.model.compare.ladder import Series
from rooflens.report.document import Block, Chart, Columns, Document, Folded, Heading, Span, paragraph
from rooflens.report.history.groups import MAX_LINES, Group, groups
from rooflens.report.ladder import BLOCKS
from rooflens.report.text.history import overview_document, runs_document

MAX_GROUPS = 12
MAX_KERNELS = 30
"""Programs with a chart, and kernels of each whose runs are listed; JSON holds the rest."""

CHANGED = 0.03
"""Changes from the previous run below this are not named: recordings differ by as much by chance."""

MAX_NAMED = 3

_METHOD = (
    "Runs of one program are reports whose names differ by a version, or by a number or a date at the end. From run "
    "to run kernels are matched by NVTX range, name, grid and place in the sequence, so a re-tiled or renamed kernel "
    "keeps its line. Times are GPU times of all launches of a kernel added up; where launch counts differ between "
    "runs, its mean launch is followed, and its row says `a launch`. Repeated recordings are points of their own, and"
    " their spread is the noise. Whether a change is more than noise is judged by `rooflens compare` with several "
    "recordings on each side."
)


def history_document(series: Sequence[Series], *, by_run: bool = False, blocks: str = BLOCKS) -> Document:
    """Show a line for each kernel over the runs of a store, or each kernel run by run.

    Args:
        series: Kernels over the runs; they may be none.
        by_run: Show each kernel run by run.
        blocks: What small lines of times are drawn with.
    """
    if not series:
        return (
            paragraph("There is no kernel in this store: `rooflens ingest REPORT --store DIR` puts reports into it."),
        )
    said = runs_document(series) if by_run else overview_document(series, blocks)
    found = [group for group in groups(series) if len(group.runs) > 1]
    parts = [block for i, group in enumerate(found[:MAX_GROUPS]) for block in _group(i, group, by_run=by_run)]
    if once := len(groups(series)) - len(found):
        parts.append(paragraph(f"{fmt.count(once, 'program')} recorded once: a line needs two runs of one program."))
    if left := len(found) - min(len(found), MAX_GROUPS):
        parts.append(paragraph(f"{fmt.count(left, 'program')} more without a chart: `--kernel` chooses among them."))
    method = Folded("How to read this page", (paragraph(_METHOD),))
    return (*said, Columns(((*parts, method),)))


def heading(series: Sequence[Series]) -> tuple[str, list[str], str]:
    """Give the title of a history's page, facts below it, and how many runs a generator wrote."""
    found = groups(series)
    programs = list(dict.fromkeys(group.program for group in found))
    title = f"History of {programs[0]}" if len(programs) == 1 else f"History of {fmt.count(len(programs), 'program')}"
    runs = {point.run.digest: point.run for kernel in series for point in kernel.points}.values()
    gpus = list(dict.fromkeys(group.gpu or "unknown GPU" for group in found))
    facts = [gpus[0] if len(gpus) == 1 else fmt.count(len(gpus), "GPU")] if gpus else []
    facts += [fmt.count(len(runs), "run"), fmt.count(len(series), "kernel")]
    if times := [run.created_unix_s for run in runs if run.created_unix_s]:
        facts.append(f"recorded {fmt.span(fmt.date(min(times)), fmt.date(max(times)))}")
    synthetic = sum(run.synthetic for run in runs)
    words = f"{fmt.count(synthetic, 'run')} written by a generator, not measured on a GPU." if synthetic else ""
    return title, facts, words


def _group(place: int, group: Group, *, by_run: bool) -> Iterator[Block]:
    """Show one program on one GPU: what became of the whole, what changed last, its chart, and its runs."""
    yield Heading((Span(group.program, "literal"), " on ", Span(group.gpu or "an unknown GPU", "literal")))
    for sentence in _sentences(group):
        yield paragraph(sentence)
    if group.is_drawable:
        yield _chart(f"history-{place}", group)
    else:
        yield paragraph("No report of this program holds a time: there is nothing to draw.")
    if came := [words for kernel in group.series if (words := _note(group, kernel))]:
        yield paragraph(
            "; ".join(came[:MAX_NAMED]) + (f"; and {len(came) - MAX_NAMED} more" if came[MAX_NAMED:] else "")
        )
    if not by_run:
        yield Folded("Run by run", runs_document(group.series[:MAX_KERNELS]))


def _chart(key: str, group: Group) -> Chart:
    runs = fmt.count(len(group.runs), "run")
    note = (
        "One line per kernel: all its launches added up, or the mean launch where their number differs; colour and "
        "shape show its verdict in each run. Runs are evenly spaced, in the order of recording; a line breaks where a "
        "run lacks the kernel or its time."
    )
    undrawn = sum(any(point.time_ns for point in kernel.points) for kernel in group.series) - MAX_LINES
    if undrawn > 0:
        verb = "is" if undrawn == 1 else "are"
        note += f" {fmt.count(undrawn, 'kernel')} with less time in the newest run {verb} not drawn."
    label = f"GPU time of the kernels of {group.program} over {runs}; the tables hold the same data."
    return Chart(key, partial(_draw, group), label, (note,))


def _draw(group: Group) -> Mapping[str, Any]:
    from rooflens.report.history.chart import history_spec, time_axis  # noqa: PLC0415 - only pages draw

    axis = "GPU time, logarithmic" if time_axis(group).is_log else "GPU time"
    runs = fmt.count(len(group.runs), "run")
    title = f"{fmt.cut_middle(group.program, 60)} on {group.gpu or 'an unknown GPU'}"
    return history_spec(group, title=title, subtitle=f"{axis}; {runs}, {group.when[0]} to {group.when[-1]}")


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


def _note(group: Group, kernel: Series) -> str:
    """Say where a kernel appeared or vanished; empty for one of all runs."""
    at = [group.at(point) for point in kernel.points]
    notes = []
    if at[0] > 0:
        notes.append(f"new in {group.when[at[0]]}")
    if at[-1] < len(group.runs) - 1:
        notes.append(f"gone after {group.when[at[-1]]}")
    if at[-1] - at[0] + 1 > len(at):
        notes.append(f"not in {fmt.count(at[-1] - at[0] + 1 - len(at), 'run')} between")
    return f"{fmt.cut_name(fmt.plain_name(kernel.name), 40)}: {', '.join(notes)}" if notes else ""
