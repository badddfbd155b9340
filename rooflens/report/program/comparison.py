"""What the comparison of two timelines says: the step before and after, and what gave or took the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rooflens.format import bare_intensity, count, duration, percent, plain_name
from rooflens.model.compare.gate import Gated
from rooflens.model.compare.given import Given, defaults_words
from rooflens.model.keys import short_names
from rooflens.model.program.comparison import (
    ComparedSide,
    MatchedKernels,
    ProgramComparison,
    RowChange,
    SideAmount,
)
from rooflens.model.roofline.unit_names import resource_label
from rooflens.report.comparison.document import gate_document
from rooflens.report.comparison.rows import signed_duration
from rooflens.report.document import (
    SPARE,
    Block,
    Chart,
    Column,
    Columns,
    Document,
    Filtered,
    Folded,
    Heading,
    OnPage,
    Paragraph,
    Span,
    Table,
    Words,
    code,
    joined,
    paragraph,
    strong,
)
from rooflens.report.program.lane import DrawnProgram, lanes_block, mark_of, sides_of
from rooflens.report.program.words import LEAST_PART, cut, without_step
from rooflens.report.words.change import asked_words, speed_words

SHOWN, RIDGES_SHOWN = 12, 8
"""Rows of a table that a terminal and Markdown show; pages and data hold all."""

_ROWS_NAMED = 3
"""Rows that the first line names."""

_AS_FAST = 0.0005
"""A factor nearer to 1 than this would be written as 0.0 %."""

_CHANGE_KINDS = ("slower", "faster", "same", "new", "gone")

_DRAWN = 12
_KERNELS_ON_PAGE = 300

_HOW = (
    (
        "Times are means over the steps of a timeline, and over ranks where there are several. A step begins with the "
        "first kernel that the host launched in it, and ends where the next begins. Rows add up to it: compute "
        "kernels count with the full time of their launches, and what overlaps is taken off in a row of its own; "
        "communication and copies are exposed where no compute kernel runs; idle is the rest. A change is beyond noise "
        "if the ranges of both sides do not meet, each of up to five groups of consecutive steps, and the medians "
        "differ by more than the threshold."
    ),
    (
        "Kernels are matched within their operator, or within their function where a side names no operators: the same "
        "kernel, sizes, types and module; then in another module; then other kernels of the same sizes; then the same "
        "kernel with other sizes. What is left is new or gone."
    ),
    (
        "The ridge of a GPU is its peak for the type over the bandwidth of its memory. An operator whose FLOPs per "
        "byte, by the sizes of its tensors, lie below it is limited by memory at best, above it by compute."
    ),
)


def program_comparison(
    comparison: ProgramComparison, gated: Gated | None = None, given: Sequence[Given] = ()
) -> Document:
    """Say what became of a step, or of the whole program: the gate first, then the answer, then every row.

    Args:
        comparison: Both sides.
        gated: What a gate found; None without one.
        given: Options of the command, to name those that nobody typed.
    """
    return tuple(_comparison_blocks(comparison, gated, given))


def heading(comparison: ProgramComparison) -> tuple[str, list[str], str]:
    """Give the title of the page, facts below it, and which side a generator wrote."""
    title = f"{unit(comparison).capitalize()} {verdict_words(comparison)}"
    sides = (comparison.base, comparison.head)
    labels = [_file_name(side.label) for side in sides]
    written = [
        label for side, label in zip(sides, labels, strict=True) if any(one.is_synthetic for one in side.programs)
    ]
    synthetic = f"Written by a generator, not recorded on a GPU: {' and '.join(written)}." if written else ""
    return title, [f"{labels[0]} \u2192 {labels[1]}", _gpus_words(comparison)], synthetic


def looked_at(comparison: ProgramComparison, given: Sequence[Given]) -> str:
    """Say which steps and options a gate looked at."""
    steps = [_steps_words(side) for side in (comparison.base, comparison.head)]
    return f"{steps[0]} before, {steps[1]} after, {asked_words(given)}"


def unit(comparison: ProgramComparison) -> str:
    """Name what times are of."""
    if any(one.unprofiled.wall_ns is None for side in (comparison.base, comparison.head) for one in side.programs):
        return "kernel time"
    return "step" if comparison.is_per_step else "program"


def verdict_words(comparison: ProgramComparison) -> str:
    """Say how much faster or slower, and how sure that is."""
    found = comparison.factor
    if found is None:
        return "without a time to compare"
    outcome = comparison.outcome
    if outcome == "same":
        return f"without a change beyond noise ({signed_share(1 / found - 1)})"
    return speed_words(found) + (f" ({comparison.timing.runs})" if outcome == "single" else "")


def signed_share(change: float) -> str:
    """Write a change: `+3.1 %`."""
    return f"{'+' if change >= 0 else '-'}{abs(change) * 100:.1f} %"


def headline(comparison: ProgramComparison) -> Words:
    """Say in a line what became of the step, and what gave or took most of the difference."""
    before, after = comparison.base.wall_ns, comparison.head.wall_ns
    of_ranks = f" (mean of {count(len(comparison.ranks), 'rank')})" if comparison.ranks else ""
    whole = f"{unit(comparison)}{of_ranks} {duration(before)} -> {duration(after)}, {verdict_words(comparison)}"
    least = LEAST_PART * max(before, after)
    most = [one for one in comparison.changes if abs(one.lost_ns) >= least and one.what != "overlap"][:_ROWS_NAMED]
    if not most:
        return f"{whole}."
    return whole, ": ", *joined("; ", [*map(_change_words, most)]), "."


def _change_words(change: RowChange) -> Words:
    """Say what became of a row: `aten::mm 3.10 ms -> 1.20 ms`, `idle grew 400 us`."""
    if change.what != "operator" or change.how != "both":
        name = code(cut(change.name)) if change.what == "operator" else Span(change.name)
        verb = {"new": "new with", "gone": "gone with", "both": "grew by" if change.lost_ns > 0 else "shrank by"}[
            change.how
        ]
        return (name, f" {verb} {duration(abs(change.lost_ns))}")
    return code(cut(change.name)), f" {_amount_time(change.base)} -> {_amount_time(change.head)}"


def _comparison_blocks(comparison: ProgramComparison, gated: Gated | None, given: Sequence[Given]) -> Iterator[Block]:
    if gated:
        yield from gate_document(gated)
        yield paragraph(f"The gate looked at {looked_at(comparison, given)}.")
    elif defaults := defaults_words(given):
        yield paragraph(f"Defaults: {defaults}.")
    yield Paragraph((headline(comparison),), "answer")
    yield Paragraph(tuple(_comparison_facts(comparison)), "facts")
    ranks = _ranks(comparison)
    yield Columns(((Heading("Where the difference is", 3), _waterfall(comparison)),))
    names = _short_names(comparison)
    yield from lanes_block(_sides(comparison), names)
    yield OnPage((_filtered_table(comparison, names),), on_text=(_changes(comparison),))
    if ranks:
        yield ranks
    if (ridges := _ridges(comparison)) is not None:
        yield from ridges
    if comparison.warnings:
        yield Paragraph(tuple(f"note: {one}" for one in comparison.warnings), "note")
    yield Columns(((Folded("How to read it", tuple(map(paragraph, _HOW))),),))


def _comparison_facts(comparison: ProgramComparison) -> Iterator[Words]:
    """Say what both sides are, and how much of them is the same."""
    base, head = comparison.base, comparison.head
    yield _gpus_words(comparison)
    steps = (
        _steps_words(base)
        if _steps_words(base) == _steps_words(head)
        else f"{_steps_words(base)} before, {_steps_words(head)} after"
    )
    launches = _before_and_after(f"{base.launches:,.0f}", f"{head.launches:,.0f}")
    yield f"{steps}; {launches} kernel launches{' a step' if comparison.is_per_step else ''}, communication too"
    before, after = (percent(share) for share in comparison.common)
    way = "operators" if any(one.operator for one in comparison.kernels) else "kernels"
    yield f"in {way} that both have: {before} of the compute kernels' time before, {after} after"
    if any(round(one) for one in comparison.hidden_ns):
        times = " -> ".join(duration(max(0.0, one)) for one in comparison.hidden_ns)
        yield f"communication hidden by compute kernels, in no row: {times}"


def _gpus_words(comparison: ProgramComparison) -> str:
    before, after = (", ".join(side.gpus) for side in (comparison.base, comparison.head))
    return before if before == after else f"{before} -> {after}"


def _steps_words(side: ComparedSide) -> str:
    """Say how many steps a side has, and how they were found."""
    if side.steps is None:
        return count(len(side.programs), "whole program")
    ways = {"ProfilerStep": "by ProfilerStep", "ranges": "by their ranges", "repetition": "by repetition of kernels"}
    by = ", ".join(dict.fromkeys(ways[one.steps_by] for one in side.programs if one.steps_by))
    ranks = f" of {count(len(side.programs), 'rank')}" if len(side.programs) > 1 else ""
    return f"{count(side.steps, 'step')}{ranks} {by}"


def _changes(comparison: ProgramComparison) -> Table:
    """List the rows, largest difference first, and what they add up to."""
    of = unit(comparison)
    columns = (
        Column("", fit="name", least=20, most=44),
        Column("before", right=True, worth=9),
        Column("after", right=True, worth=9),
        Column("difference", right=True, worth=10),
        Column("change", fit="end", least=12, worth=8),
        Column("launches", right=True, worth=SPARE + 1),
        Column("floor", right=True, worth=SPARE + 2),
        Column(f"of the {of}", right=True, worth=SPARE),
        Column("beyond noise", page=True),
    )
    rows: list[tuple[Words, ...]] = [_change_row(one, comparison) for one in comparison.changes]
    total: tuple[Words, ...] = (
        strong(f"all of the {of}"),
        duration(comparison.base.wall_ns),
        duration(comparison.head.wall_ns),
        signed_duration(comparison.lost_ns),
        "" if comparison.factor is None else speed_words(comparison.factor),
        _before_and_after(f"{comparison.base.launches:,.0f}", f"{comparison.head.launches:,.0f}"),
        "",
        "",
        comparison.outcome if comparison.is_per_step else "",
    )
    return Table(
        columns,
        (total, *rows),
        f"By {_way(comparison)}, largest difference first",
        shown=SHOWN + 1,
        rest=" with smaller differences",
    ).without_empty("-")


def _way(comparison: ProgramComparison) -> str:
    return "operator" if any(one.operator for one in comparison.kernels) else "kernel"


def _change_row(change: RowChange, comparison: ProgramComparison) -> tuple[Words, ...]:
    sides = change.base, change.head
    launches = [_launch_number(amount.launches) if amount and amount.launches else "" for amount in sides]
    floors = [duration(amount.floor_ns) if amount and amount.floor_ns is not None else "" for amount in sides]
    shown = change.head or change.base
    has_samples = comparison.is_per_step and change.how == "both" and change.base and change.base.samples_ns
    is_time = change.what != "overlap"
    return (
        code(cut(change.name)) if change.what == "operator" else change.name,
        _amount_time(change.base),
        _amount_time(change.head),
        signed_duration(round(change.lost_ns, 3) or 0.0),
        _change(change),
        _before_and_after(*launches),
        _before_and_after(*floors),
        percent(shown.share) if shown and is_time and shown.share else "",
        change.timing.outcome(comparison.threshold) if has_samples else "",
    )


def _change(change: RowChange) -> str:
    """Write the change of a row: kernels are faster or slower, other time grows or shrinks."""
    if change.how != "both" or change.factor is None:
        return "" if change.how == "both" else change.how
    words = _speed(change.factor)
    return words if change.what == "operator" else words.replace("faster", "less").replace("slower", "more")


def _launch_number(launches: float) -> str:
    return f"{launches:,.0f}" if launches >= 10 or launches == round(launches) else f"{launches:.1f}"


def _before_and_after(before: str, after: str) -> str:
    return before if before == after else f"{before or '-'} -> {after or '-'}"


def _amount_time(amount: SideAmount | None) -> str:
    if amount is None:
        return "-"
    return duration(amount.time_ns) if amount.time_ns >= 0 else f"\u2212{duration(-amount.time_ns)}"


def _ranks(comparison: ProgramComparison) -> Table | None:
    """Set the ranks side by side; the slowest of each side is marked."""
    if not comparison.ranks:
        return None
    slowest = [max(getattr(one, side) for one in comparison.ranks) for side in ("base_ns", "head_ns")]
    columns = (
        Column("rank", right=True),
        Column("before", right=True),
        Column("after", right=True),
        Column("difference", right=True),
        Column("slowest", fit="end"),
    )
    rows = []
    for one in comparison.ranks:
        marks = [
            word
            for word, own, most in zip(("before", "after"), (one.base_ns, one.head_ns), slowest, strict=True)
            if own == most
        ]
        name = "" if one.rank is None else str(one.rank)
        lost = signed_duration(round(one.head_ns - one.base_ns, 3) or 0.0)
        rows.append((name, duration(one.base_ns), duration(one.head_ns), lost, " and ".join(marks)))
    return Table(columns, tuple(rows), "Ranks", shown=2 * SHOWN)


def _ridges(comparison: ProgramComparison) -> tuple[Block, ...] | None:
    """Say which operators are on another side of the ridge on the GPU after; None where the GPUs are the same."""
    known = [one for one in comparison.kernels if all(one.ridges)]
    if not comparison.has_two_gpus:
        return None
    title = Heading("Side of the ridge on both GPUs", 3)
    if not known:
        sizes = "no operator of the same sizes has a formula and a GPU with known peaks on both sides"
        return (title, paragraph(f"{sizes}: `--gpu NAME` names a GPU that the trace does not."))
    moved = sorted((one for one in known if one.changed_side), key=lambda one: -(one.head.time_ns if one.head else 0.0))
    lines: list[Words] = [*_sides_of(known), *_ridges_of(known), *_expected(known)]
    if not moved:
        return (title, paragraph(*lines))
    columns = (
        Column("operator", fit="end", least=12, worth=9),
        Column("shape", fit="end", least=12, worth=7),
        Column("FLOP/B", right=True, worth=9),
        Column("limited by", fit="end", least=17, worth=9),
        Column("by floors", fit="end", least=12, worth=8),
        Column("measured", fit="end", least=12, worth=8),
    )
    rows = tuple(_ridge_row(one) for one in moved)
    return (title, paragraph(*lines), Table(columns, rows, shown=RIDGES_SHOWN, rest=" that take less time"))


def _expected(changes: Sequence[MatchedKernels]) -> Iterator[str]:
    """Say how much faster the floors of the same work are, and how much faster it is."""
    both = [(one.base, one.head) for one in changes if one.how != "other shape" and one.expected and one.observed]
    floors, times = [0.0, 0.0], [0.0, 0.0]
    for pair in both:
        for side, amount in enumerate(pair):
            if amount is not None and amount.launches:
                floors[side] += (amount.floor_cold_ns or 0.0) / amount.launches
                times[side] += amount.time_ns / amount.launches
    if floors[1] and times[1]:
        should, did = speed_words(floors[0] / floors[1]), speed_words(times[0] / times[1])
        yield f"A launch of each should be {should} after by its floor, and is {did}."


def _ridge_row(change: MatchedKernels) -> tuple[Words, ...]:
    before, after = change.ridges
    return (
        code(cut(change.operator or change.name)),
        code(cut(change.shape or "")),
        bare_intensity(before.intensity) if before else "",
        f"{before.side} -> {after.side}" if before and after else "",
        _speed(change.expected),
        _speed(change.observed),
    )


def _speed(factor: float | None) -> str:
    return "" if not factor else "the same" if abs(factor - 1) < _AS_FAST else speed_words(factor)


def _sides_of(changes: Sequence[MatchedKernels]) -> Iterator[str]:
    """Count the kernels by their sides on both GPUs."""
    sides = Counter((one.ridges[0].side, one.ridges[1].side) for one in changes if one.ridges[0] and one.ridges[1])
    said = [
        f"{number:,} {before if before == after else f'{before} -> {after}'}"
        for (before, after), number in sides.most_common()
    ]
    yield f"{count(len(changes), 'kernel')} of known work, by what limits it: {', '.join(said)}."


def _ridges_of(changes: Sequence[MatchedKernels]) -> Iterator[str]:
    """Name the ridges that matter, those of most kernels first."""
    said = []
    for at, side in enumerate(("before", "after")):
        found = Counter((ridge.ridge, ridge.peak) for one in changes if (ridge := one.ridges[at]))
        named = [
            f"{bare_intensity(value)} for {resource_label(peak)}" for (value, peak), _ in found.most_common(_ROWS_NAMED)
        ]
        said.append(f"{', '.join(named)} {side}")
    yield f"Ridges in FLOP/B: {'; '.join(said)}."


def _short_names(comparison: ProgramComparison) -> dict[str, str]:
    """Shorten the names of all kernels of both sides."""
    programs = (program for side in (comparison.base, comparison.head) for program in side.programs)
    return short_names(one.name for program in programs for one in program.every)


def _sides(comparison: ProgramComparison) -> tuple[DrawnProgram, ...]:
    """Choose what is drawn of both sides: of several ranks the one that takes longest after, else the first."""
    ranks = [one for one in comparison.ranks if one.rank is not None]
    slowest = max(ranks, key=lambda one: one.head_ns).rank if ranks else None
    named = []
    for name, side in (("before", comparison.base), ("after", comparison.head)):
        program = next((one for one in side.programs if one.rank == slowest), side.programs[0])
        named.append((f"{name}, rank {slowest}" if ranks else name, program))
    return sides_of(named)


def _filtered_table(comparison: ProgramComparison, names: Mapping[str, str]) -> Filtered:
    """Make the table of a page: the same rows, which open to the kernels that were matched, below filters."""
    changes = _changes(comparison)
    columns = (*changes.columns, Column("matched"), Column("shape", fit="end"), Column("from", fit="end"))
    heads = [column.heading for column in changes.columns]
    rows: list[tuple[Words, ...]] = []
    within, marks = [], []
    items: list[Mapping[str, Any]] = []

    def add(cells: tuple[Words, ...], kind: str, mark: str, place: int = -1) -> None:
        rows.append(cells)
        within.append(place)
        marks.append(mark)
        if mark:
            items.append({"k": mark, "g": mark, "n": 1, "bound": kind})

    add((*changes.rows[0], "", "", ""), "", "")
    listed = {id(one) for one in comparison.kernels[:_KERNELS_ON_PAGE]}
    for change, cells in zip(comparison.changes, changes.rows[1:], strict=True):
        kernels = [one for one in change.kernels if id(one) in listed]
        place = len(rows)
        add((*cells, "", "", ""), _change_kind(change), "" if kernels else mark_of(change.what, change.name))
        for one in kernels:
            mark = " ".join(dict.fromkeys(mark_of(*row.identity) for row in one.rows))
            add(_kernel_row(one, names, heads, unit(comparison)), _change_kind(one), mark, place)
    table = Table(
        columns,
        tuple(rows),
        label=f"What changed, by {_way(comparison)}",
        amount=len(rows) + len(comparison.kernels) - len(listed),
        rest=" kernels with smaller differences",
        marks=tuple(marks),
        within=tuple(within),
    )
    kinds = tuple(kind for kind in _CHANGE_KINDS if any(item["bound"] == kind for item in items))
    return Filtered("What changed", table.without_empty("-"), kinds, (), tuple(items), SHOWN + 1)


def _change_kind(change: RowChange | MatchedKernels) -> str:
    """Return what the filters of a page know a row by."""
    if change.how in {"new", "gone"}:
        return change.how
    return "slower" if change.lost_ns > 0 else "faster" if change.lost_ns < 0 else "same"


def _kernel_row(change: MatchedKernels, names: Mapping[str, str], heads: Sequence[str], of: str) -> tuple[Words, ...]:
    """Write the cells of a kernel below those columns, and how it was matched."""
    was = (" was ", code(cut(names[change.was]))) if change.was and names[change.was] != names[change.name] else ()
    shape = (code(cut(change.shape)),) if change.shape else ()
    was_shape = (" was ", code(cut(change.was_shape))) if change.was_shape else ()
    sides = change.base, change.head
    shown = change.head or change.base
    where = without_step(change.module)
    cells: dict[str, Words] = {
        "": (code(cut(names[change.name])), *was),
        "before": _amount_time(change.base),
        "after": _amount_time(change.head),
        "difference": signed_duration(round(change.lost_ns, 3) or 0.0),
        "launches": _before_and_after(*(_launch_number(amount.launches) if amount else "" for amount in sides)),
        "floor": _before_and_after(
            *(duration(side.floor_ns) if side and side.floor_ns is not None else "" for side in sides)
        ),
        f"of the {of}": percent(shown.share) if shown and shown.share else "",
    }
    also: tuple[Words, ...] = (change.how, (*shape, *was_shape) or "", code(cut(where)) if where else "")
    return (*(cells.get(head, "") for head in heads), *also)


def _waterfall(comparison: ProgramComparison) -> Chart:
    def draw() -> Mapping[str, Any] | None:
        from rooflens.report.comparison.charts import bars_spec  # noqa: PLC0415 - only pages draw

        of = unit(comparison)
        return bars_spec([*_bars(comparison)], f"Time of a {of}" if of == "step" else "Time of the program", "Time")

    label = f"From the {unit(comparison)} before to the one after, row by row; the table holds the same."
    return Chart("waterfall", draw, label, ("Solid: lost; hollow, or pale where it is thin: won.",))


def _bars(comparison: ProgramComparison) -> Iterator[dict[str, Any]]:
    """List the bars from the time before to the time after."""
    from rooflens.report.comparison.charts import bar  # noqa: PLC0415 - only pages draw

    before, after = comparison.base.wall_ns, comparison.head.wall_ns
    yield bar("before", "total", (0.0, before), duration(before))
    now = before
    for one in comparison.changes[:_DRAWN]:
        kind = "loss" if one.lost_ns > 0 else "gain"
        lost = signed_duration(one.lost_ns)
        words = lost if one.how == "both" else f"{lost}, {one.how}"
        yield bar(plain_name(one.name), kind, (now, now + one.lost_ns), words)
        now += one.lost_ns
    if rest := comparison.changes[_DRAWN:]:
        kind = "loss" if after > now else "gain"
        yield bar(count(len(rest), "other row"), kind, (now, after), signed_duration(after - now))
    yield bar("after", "total", (0.0, after), duration(after))


def _file_name(label: str) -> str:
    return label.replace("\\", "/").rstrip("/").rpartition("/")[2] or label
