"""The inside of a kernel in words: its loops with their shares of the time, and what its warps wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rooflens import format as fmt
from rooflens.model.hotspots import leading_stall, places, waits_for
from rooflens.model.records import Analysis, Hotspot, Inside, JudgedLoop, Wait
from rooflens.model.roofline.opcodes import COPIES, WARPGROUP_PRODUCTS
from rooflens.model.roofline.unit_names import resource_label
from rooflens.report.document import Words, code
from rooflens.report.words.findings import no_line_words
from rooflens.report.words.labels import (
    BOUND_LABELS,
    LEAST_SHARE,
    UNITS,
    file_label,
    hottest_loop,
    line_label,
    loop_place,
    place_label,
    stall_label,
)

MOST_ROWS = 8
"""Rows of a kernel that are shown."""

_WHOLE = 0.002
_FEW = 0.02
"""So few a trip are not named."""


def shown_loops(loops: Sequence[JudgedLoop]) -> list[JudgedLoop]:
    """Return the loops and straight parts with at least a twentieth of the warps' time, and the loops around them."""
    own = [one for one in loops if (one.share_self or 0.0) >= LEAST_SHARE]
    kept = {one.loop.id for one in sorted(own, key=lambda one: -(one.share_self or 0.0))[:MOST_ROWS]}
    parents = {one.loop.id: one.loop.parent for one in loops}
    for row in list(kept):
        around = parents.get(row)
        while around is not None:
            kept.add(around)
            around = parents.get(around)
    return _by_nesting([one for one in loops if one.loop.id in kept])


def _by_nesting(loops: list[JudgedLoop]) -> list[JudgedLoop]:
    """Put rows in the order of the code, each loop before those inside it."""
    inside: dict[int | None, list[JudgedLoop]] = {}
    for one in loops:
        inside.setdefault(one.loop.parent, []).append(one)

    def below(parent: int | None) -> Iterator[JudgedLoop]:
        for one in sorted(inside.get(parent, ()), key=lambda one: one.loop.start):
            yield one
            yield from below(one.loop.id)

    return list(below(None))


def depth(loop: JudgedLoop, loops: Iterable[JudgedLoop]) -> int:
    """Return how many loops are around a row."""
    parents = {other.loop.id: other.loop.parent for other in loops}
    around, count = loop.loop.parent, 0
    while around is not None:
        around, count = parents.get(around), count + 1
    return count


def loop_label(loop: JudgedLoop) -> str:
    """Name a row: a loop by its place, a straight part also by its part of the kernel."""
    return loop_place(loop) if loop.loop.kind == "loop" else f"{loop.loop.name}, {loop_place(loop)}"


def loop_labels(rows: Sequence[JudgedLoop]) -> dict[int, str]:
    """Name rows by their loop's number; those of one place are told apart: `outer` and `inner`, or `2 of 3`."""
    alike: dict[str, list[JudgedLoop]] = {}
    for one in rows:
        alike.setdefault(loop_label(one), []).append(one)
    named = ((one, label, at, several) for label, several in alike.items() for at, one in enumerate(several))
    return {
        one.loop.id: f"{label}, {_which(at, several)}" if len(several) > 1 else label
        for one, label, at, several in named
    }


def _which(at: int, several: Sequence[JudgedLoop]) -> str:
    if len(several) == 2 and several[1].loop.parent == several[0].loop.id:
        return ("outer", "inner")[at]
    return f"{at + 1} of {len(several)}"


def class_words(loop: JudgedLoop, gpu: str | None) -> str:
    """Say what limits a row: the full unit, or what its warps wait for; nothing without time of its own."""
    if (loop.share_self or 0.0) < LEAST_SHARE:
        return ""
    if loop.bound in {"memory", "compute", "balanced"} and loop.resource is not None:
        unit = resource_label(loop.resource, gpu)
        busy = ", overlapping other parts" if loop.resource_share is None else f" {fmt.percent(loop.resource_share)}"
        return f"{BOUND_LABELS[loop.bound]}: {unit}{busy}"
    if loop.wait is not None and loop.wait_share:
        return f"{stall_label(loop.wait)}, {fmt.percent(loop.wait_share)}"
    return BOUND_LABELS[loop.bound]


def number(value: float) -> str:
    """Write a count per trip, as a whole number if it is one."""
    return f"{value:,.0f}" if abs(value - round(value)) < _WHOLE * max(1.0, value) else fmt.significant(value)


def counted(value: float, noun: str) -> str:
    """Write a count with its noun: `1 barrier`, `2.75 trips`."""
    written = number(value)
    return f"{written} {noun}{'' if written == '1' else 's'}"


def body_words(loop: JudgedLoop) -> str:
    """Say what a trip consists of, which shows reuse, width and overlap."""
    body = loop.loop.anatomy
    if body is None:
        return ""
    parts = [counted(body.instructions, "instruction")]
    if body.multiply_adds:
        parts.append(f"{counted(body.multiply_adds, 'multiply-add')} a thread")
        fetched = [
            f"{fmt.significant(operands)} from {where}"
            for operands, where in ((body.global_operands, "global"), (body.shared_operands, "shared"))
            if operands
        ]
        if fetched and not body.is_matrix:
            parts.append(f"values loaded for each: {', '.join(fetched)}")
        if body.results:
            parts.append(f"{fmt.count(body.results, 'result')} a thread")
    loads = [
        f"{number(count)} of {width} B from {where}"
        for where, by_width in (("global", body.global_loads), ("shared", body.shared_loads))
        for width, count in by_width.items()
        if count >= _FEW
    ]
    if loads:
        parts.append(f"loads: {', '.join(loads)}")
    if body.in_flight:
        parts.append(f"{fmt.count(body.in_flight, 'global load')} in flight")
    if body.stages:
        of_all = "" if body.groups_left or body.stages == 1 else " and a wait for all copies"
        parts.append(f"{fmt.count(body.stages, 'stage')}{of_all}")
    if body.products_left is not None:
        left = fmt.count(body.products_left, "group")
        parts.append(
            f"{left} of products under way behind its wait" if body.products_left else "waits for all products"
        )
    if body.barriers >= _FEW:
        parts.append(counted(body.barriers, "barrier"))
    return "; ".join(parts)


def inside_line(analysis: Analysis, most: float = 1.0) -> str:
    """Say in one line where the warps' time goes; empty if the code was not read, or nothing stands out.

    Args:
        analysis: The launch.
        most: Part of the time, 0 to 1, above which a single job needs no line: the verdict is that job's.
    """
    jobs: dict[tuple[str, str], list[JudgedLoop]] = {}
    for one in shown_loops(analysis.loops):
        if (one.share_self or 0.0) >= LEAST_SHARE:
            jobs.setdefault((one.job, loop_place(one)), []).append(one)
    if not any(one.loop.kind == "loop" for rows in jobs.values() for one in rows):
        return ""
    ranked = sorted(jobs.items(), key=lambda item: -_share(item[1]))
    if _share(ranked[0][1]) > most:
        return ""
    words = [_job_words(analysis, job, place, rows) for (job, place), rows in ranked[:3]]
    first, *rest = words
    return "; ".join((first.replace(" % ", " % of warps' time ", 1), *rest))


def where_words(analysis: Analysis, reader: str) -> Words:
    """Say where most of a kernel's time goes, in a line; or why no line of it is known, and what would tell.

    Args:
        analysis: The launch.
        reader: What read its report, as `Run.reader` has it.
    """
    kernel, loop = analysis.kernel, hottest_loop(analysis)
    hot = next(iter(places(kernel, "samples", 1)), None)
    if kernel.failed:
        return ""
    if hot is None:
        return no_line_words([(analysis, reader)])
    reason, spot = leading_stall(hot.hotspot), hot.hotspot
    waits = f", {stall_label(reason)}" if reason and reason != "selected" else ""
    is_line = bool(line_label(spot, kernel.inside))
    around = ("loop ", code(loop_place(loop)), f", {fmt.percent(loop.share_self)} of warps' time; ") if loop else ()
    hottest = f"hottest {'line' if is_line else 'instruction'} "
    built = "" if is_line else "; build with `-lineinfo` for source lines"
    place = place_label(spot, kernel.inside)
    if loop and loop.loop.file:  # a line of the same file is known by its number
        place = place.removeprefix(file_label(loop.loop.file))
    said = (*around, hottest, code(place), f", {fmt.percent(hot.share)} of samples{waits}")
    return ("Where: ", *said, f"{built}.")


def work_unit(loop: JudgedLoop) -> str:
    """Return the unit of a row's operations: integer ones are not FLOPs."""
    return UNITS["op" if (loop.pipe or "").startswith("tensor_int") else "FLOP"]


def loop_rate(loop: JudgedLoop) -> str:
    """Write the rate of a row while warps are in it; empty if unknown, or over the roof as other parts overlap."""
    is_over = loop.resource is not None and loop.resource == loop.pipe and loop.resource_share is None
    return fmt.si(loop.flop_per_s, f"{work_unit(loop)}/s") if loop.flop_per_s and not is_over else ""


def _share(rows: Iterable[JudgedLoop]) -> float:
    return sum(one.share_self or 0.0 for one in rows)


def _job_words(analysis: Analysis, job: str, place: str, rows: list[JudgedLoop]) -> str:
    rate = ""
    if job == "multiplies" and len(rows) == 1 and (reached := loop_rate(rows[0])):
        pipe = analysis.pipes.get(rows[0].pipe or "")
        peak = fmt.si(pipe.peak_per_s, f"{work_unit(rows[0])}/s") if pipe is not None and pipe.peak_per_s else ""
        rate = f" at {reached}" + (f" of {peak}" if peak else "")
    return f"{fmt.percent(_share(rows))} {job}{rate} ({place})"


def wait_words(inside: Inside | None, hotspot: Hotspot) -> str:
    """Name the instruction that the warps at a hot spot wait for; empty if it is the hot spot itself, or unknown."""
    reason = leading_stall(hotspot)
    if reason == "barrier":  # which other warps arrive at, whatever this one did before
        return ""
    for found in waits_for(inside, hotspot):
        if found.wait.reason == reason:
            return f"for the {producer_words(found.wait, here=hotspot)}"
    return ""


_OPCODE_KINDS = (
    *((copy, "copy") for copy in COPIES),
    *((product, "product") for product in WARPGROUP_PRODUCTS),
    ("UTC", "product"),
    ("SYNCS", "arrival"),
    ("LDG", "load"),
    ("LDS", "load from shared memory"),
    ("LDL", "load of local memory"),
    ("STG", "store"),
    ("STS", "store to shared memory"),
    ("STL", "store of local memory"),
    ("ATOMS", "atomic in shared memory"),
    ("ATOM", "atomic"),
    ("RED", "atomic"),
    ("MUFU", "special function"),
    ("SHFL", "shuffle"),
    ("LDC", "load of a constant"),
    ("LD", "load"),
    ("TEX", "texture fetch"),
)
"""Start of an opcode -> what people call it."""


def producer_words(wait: Wait, here: Hotspot | None = None) -> str:
    """Name an instruction that others wait for: `load in gemm.cu:46`, `load in line 46` beside another line of it."""
    what = next((name for start, name in _OPCODE_KINDS if wait.opcode.startswith(start)), f"`{wait.opcode}`")
    if wait.file is None or wait.line is None:
        return f"{what} at +{wait.pc:#x}"
    if here is not None and here.file == wait.file:
        return f"{what} in {'it' if here.line == wait.line else f'line {wait.line}'}"
    return f"{what} in {file_label(wait.file)}:{wait.line}"
