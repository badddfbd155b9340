"""The table of `analyze`: a line for each kernel, the largest possible savings first, then what to do next."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from rooflens.errors import UnknownKeyError
from rooflens.format import count, cut_name, duration, factor, percent, quantity, si, significant
from rooflens.model.catalogue import Quantity, kernel_quantities
from rooflens.model.failed import ALL_NAN
from rooflens.model.keys import short_names
from rooflens.model.predict.other_gpu import type_answer
from rooflens.model.ranking import ORDER, RANKED_SHOWN, failed_lead, in_order, opportunities, worth_a_line
from rooflens.model.records import Analysis, Confidence, ratio
from rooflens.model.roofline.unit_names import bottleneck_words, resource_label
from rooflens.model.roofline.work import MainWork, main_work
from rooflens.model.summary import KernelSummary, Launch, asks_first, best_move, cautions, place_of_move
from rooflens.model.verdict.sentences import unmeasured_words
from rooflens.report.document import Column, Document, Heading, Span, Table, Words, bullets, code, few
from rooflens.report.summary import most_first
from rooflens.report.words.findings import costing
from rooflens.report.words.labels import UNITS, flag_label
from rooflens.report.words.verdict import TODAY, limit_cell
from rooflens.report.words.worth import worth_words

_MISSING = "-"
_DOUBT: dict[Confidence, str] = {"high": "", "medium": " ?", "low": " ??"}
MARKS = "class?: may be another; ? medium, ?? low confidence"
LEGEND = (ORDER, f"limit: {TODAY}; far: over 10x", f"{MARKS}; `rooflens about columns`")
"""Lines that explain the table's order and marks; printed below it."""

_NAME = Column("kernel", fit="name", least=18, most=48)
_REPORT = Column("report", fit="name", worth=6, most=24)
_COLUMNS = (
    Column("time", right=True, worth=9),
    Column("share", right=True, worth=4),
    Column("AI at DRAM", right=True, worth=2),
    Column("FLOP/s of roof", worth=1),
    Column("verdict", fit="wrap", worth=8, least=22, most=36),
    Column("gain", right=True, worth=7),
    Column("limit", right=True, worth=7),
    Column("first move", fit="prose", least=60),
)


_LAUNCH = (Column("a launch", right=True, worth=3), Column("in ncu", right=True, worth=3))
"""Time of a launch without the profiler, and of the one in the report: where both are known."""


def kernels_document(
    kernels: Sequence[KernelSummary], top: int | None = None, names: Sequence[str] = (), *, each: bool = False
) -> Document:
    """Make a table of each GPU, the GPU with most time first.

    Args:
        kernels: Kernels or single launches, of any number of reports.
        top: Keep this many rows for each GPU.
        names: Quantities of the catalogue that the table shows instead of its default columns, also by the headings of
            tables.
        each: Make a row for each of the kernels; otherwise one for all with the same move, unless columns are chosen.

    Raises:
        UnknownKeyError: There is no such quantity.
    """
    chosen = [_quantity(name) for name in names if name.casefold() != _NAME.heading]
    gpus: defaultdict[str, list[KernelSummary]] = defaultdict(list)
    for kernel in kernels:
        gpus[kernel.analysis.kernel.gpu or "GPU not named in the report"].append(kernel)
    by_time = sorted(gpus.items(), key=lambda item: -_total_ns(item[1]))
    return tuple(_section(gpu, members, top, chosen, each=each or bool(chosen)) for gpu, members in by_time)


_OF_HEADS = {
    "time": "kernel_time_ns",
    "a launch": "in_program_time_ns",
    "in ncu": "duration_ns",
    "ai at dram": "dram_intensity",
    "flop/s of roof": "flop_per_s",
    "first move": "verdict_sentence",
}
"""Heads of the usual table whose cell is made of several quantities, or has another label -> the one asked for."""


def _quantity(name: str) -> Quantity:
    """Find a quantity by its name or by its heading in a table, ignoring case."""
    known = kernel_quantities()
    if name in known:
        return known[name]
    heads = {(one.key.label or one.label).casefold(): called for called, one in reversed(known.items())} | _OF_HEADS
    asked = name.casefold()
    if asked in heads:
        return known[heads[asked]]
    raise UnknownKeyError("column", name, list(known), "rooflens about columns", heads)


def _total_ns(kernels: Sequence[KernelSummary]) -> float:
    return sum(kernel.duration_ns or 0.0 for kernel in kernels)


def _section(
    gpu: str, kernels: Sequence[KernelSummary], top: int | None, chosen: Sequence[Quantity], *, each: bool
) -> Table:
    """Show the kernels of one GPU, failed ones last; shares are of its GPU time."""
    total_ns = _total_ns(kernels)
    listed = in_order(kernels) if each else opportunities(kernels)
    several = len({kernel.analysis.kernel.digest for kernel in kernels}) > 1
    has_program = any(kernel.analysis.in_program for kernel in listed) and not chosen
    columns = tuple(map(_column, chosen)) or _COLUMNS
    columns = (*columns[:2], *_LAUNCH, *columns[2:]) if has_program else columns
    rows = tuple(
        (
            _name(kernel),
            *((kernel.report.removesuffix(".ncu-rep"),) if several else ()),
            *(
                [shown(one, one.value(kernel)) for one in chosen]
                if chosen
                else _cells(kernel, total_ns, has_program=has_program)
            ),
        )
        for kernel in listed[:top]
    )
    return Table((_NAME, *((_REPORT,) if several else ()), *columns), rows, _heading(gpu, kernels))


def _heading(gpu: str, kernels: Sequence[KernelSummary]) -> str:
    sound = [kernel for kernel in kernels if not kernel.is_failed]
    names = len({(kernel.name, kernel.analysis.kernel.digest) for kernel in sound})
    launches = sum(kernel.launch_count for kernel in sound)
    failed = sum(len(kernel.launches) for kernel in kernels if kernel.is_failed)
    counted = count(names, "kernel") + (f", {count(launches, 'launch')}" if launches != names else "")
    counted += f", {count(failed, 'failed launch')}" if failed else ""
    clocks = [
        (launch.duration_ns or 0.0, hz)
        for kernel in sound
        for launch in kernel.launches
        if (hz := launch.analysis.kernel.counters.get("sm_clock_hz")) is not None
    ]
    clock = f", SM {si(max(clocks, key=itemgetter(0))[1], 'Hz')}" if clocks else ""
    total_ns = _total_ns(kernels)
    how = " without the profiler" if any(kernel.analysis.in_program for kernel in sound) else ""
    return f"{gpu}{clock}: {counted}" + (f", {duration(total_ns)} of GPU time{how}" if total_ns else "")


def _name(kernel: KernelSummary) -> Words:
    """Write a name with its launches: `gemm<128, 64> x12`."""
    times = f" x{kernel.launch_count:,}" if kernel.launch_count > 1 else ""
    return code(kernel.shown), times


def _column(one: Quantity) -> Column:
    is_number = one.kind in {"real", "count"}
    return Column(
        one.label.lower() if not one.key.label else one.label, right=is_number, fit="keep" if is_number else "name"
    )


def shown(one: Quantity, value: Any) -> str:
    """Write a value of the catalogue for people, scaled and with its unit."""
    if value is None:
        return _MISSING
    if one.kind == "truth":
        return "yes" if value else "no"
    if one.kind == "text":
        return str(value)
    if one.kind in {"texts", "counts"}:
        return " ".join(map(str, value)) or _MISSING
    return quantity(value, one.key.unit)


def _cells(kernel: KernelSummary, total_ns: float, *, has_program: bool) -> tuple[Words, ...]:
    """Write a kernel: the times of all its launches, and the values of the median launch."""
    analysis = kernel.analysis
    share, verdict = ratio(kernel.duration_ns, total_ns), analysis.verdict
    work = main_work(analysis)
    intensity = work.intensity(analysis.levels["dram"])
    alone_ns = analysis.in_program.time_ns if analysis.in_program else None
    launch_ns = (alone_ns, analysis.kernel.duration_ns) if has_program else ()
    return (
        duration(kernel.duration_ns) if kernel.duration_ns is not None else _MISSING,
        percent(share) if share is not None else _MISSING,
        *(duration(one) if one is not None else _MISSING for one in launch_ns),
        f"{significant(intensity)} {UNITS[work.unit]}/B" if intensity is not None else _MISSING,
        _achieved(kernel.representative, work),
        Span(verdict_words(analysis), verdict.shown_class),
        factor(verdict.gain.factor) if verdict.gain else _MISSING,
        limit_cell(verdict.limit, _MISSING),
        Span(best_move(analysis.verdict).partition(": ")[0], "dim"),
    )


def _achieved(launch: Launch, work: MainWork) -> str:
    """Write the achieved rate and the roof above the kernel at DRAM: min(peak, intensity x bandwidth).

    It counts FLOPs, or operations of integer tensors, with their unit, if these are the main work.
    """
    if not work.per_s:
        return _MISSING
    dram = launch.analysis.levels["dram"]
    intensity = work.intensity(dram)
    slope = intensity * dram.peak_bytes_per_s if intensity and dram.peak_bytes_per_s else None
    roofs = [roof for roof in (work.peak_per_s, slope) if roof]
    is_float = work.unit == "FLOP"
    about = "~" if is_float and launch.estimated else ""
    unit = "" if is_float else f"{UNITS[work.unit]}/s"
    return about + (f"{si(work.per_s, '')} of {si(min(roofs), unit)}" if roofs else si(work.per_s, unit))


def verdict_words(analysis: Analysis) -> str:
    """Write the class with its reason, what was not measured, and its confidence: `memory: L1 full`.

    An open one: `latency?: waits for global memory, memory was not measured ??`.
    """
    verdict, gpu = analysis.verdict, analysis.kernel.gpu
    if verdict.bound in {"memory", "compute", "balanced"}:
        full = verdict.at_roof and verdict.resource is not None
        why = f"{resource_label(verdict.resource, gpu)} full" if full else bottleneck_words(verdict.bottleneck, gpu)
        why = why.removeprefix("instruction ")
    else:
        why = _waits(analysis) if verdict.bound == "latency" else verdict.cause or ""
    doubt = "" if verdict.bound == "unknown" else _DOUBT[verdict.confidence]
    why = ", ".join(filter(None, (why, unmeasured_words(verdict.unmeasured))))
    return f"{verdict.shown_class}: {why}{doubt}" if why else f"{verdict.shown_class}{doubt}"


def _waits(analysis: Analysis) -> str:
    """Say how few warps are ready per cycle and scheduler or, if that is not counted, why they wait."""
    ready_warps = analysis.kernel.counters.get("eligible_warps_per_cycle")
    if ready_warps is not None:
        return f"{significant(ready_warps, 2)} warps ready"
    return analysis.verdict.cause or next((finding.title for finding in costing(analysis)), "")


def not_profiled(names: Sequence[str], shares: Sequence[float]) -> Document:
    """List the kernels of a timeline that its reports lack, below those they have: nothing is known about them yet.

    Args:
        names: The most expensive first.
        shares: Their shares of the program's kernel time.
    """
    if not names:
        return ()
    columns = (_NAME, Column("share", right=True, worth=9), Column("verdict", fit="wrap", worth=8))
    short = short_names(names)
    rows = tuple(
        (code(short[name]), percent(share), Span("unknown", "unknown"))
        for name, share in zip(names, shares, strict=True)
    )
    title = f"Not profiled: {count(len(names), 'kernel')}, {percent(sum(shares))} of the program's kernel time"
    return (Table(columns, rows, title, shown=_MOST_MISSING, rest=" with less time"),)


_MOST_MISSING = 10

MOST_LINES = 3
_MOST_PLACES = 3
"""Paths that a command is written with; more are on the command line above it."""


def steps(kernels: Sequence[KernelSummary], place: Sequence[str]) -> Document:
    """Say what to do next, and what makes a verdict uncertain."""
    parts = (
        ("Next:", next_lines(kernels, place)),
        ("Another type:", type_lines(kernels)),
        ("Caveats:", caveat_lines(kernels)),
    )
    return tuple(block for title, lines in parts if lines for block in (Heading(title, 3), bullets([*lines])))


def next_lines(kernels: Sequence[KernelSummary], place: Sequence[str] = ()) -> list[Words]:
    """Write at most three lines in the order of the table: the moves of the first kernels, or how to collect more.

    Kernels that could not be profiled are among them where the others only fill their inputs. The lines include the
    first of the kernels that lack counters; without any, the last line is a command that shows more.

    Args:
        kernels: All kernels, as the table shows them.
        place: Arguments for a command: paths, or a store; empty if no command is wanted.
    """
    leads = failed_lead(kernels)
    ranked = worth_a_line(row for row in opportunities(kernels) if leads or not row.is_failed)[:RANKED_SHOWN]
    if not ranked:
        return [_move(kernels[0])] if kernels else []
    lacking = [kernel for kernel in ranked if asks_first(kernel.analysis.verdict)]
    command: list[Words] = [_command(ranked, place)] if place and not lacking else []
    movable = [kernel for kernel in ranked if kernel not in lacking]
    listed = [*movable[: MOST_LINES - len(lacking[:1] or command)], *lacking[:1]]
    return [*(_move(kernel) for kernel in ranked if kernel in listed), *command]


def type_lines(kernels: Sequence[KernelSummary]) -> list[Words]:
    """Say for the first kernels of the ranking whether fp16 is worth it, joining those with the same answer."""
    said: dict[str, list[str]] = {}
    for kernel in worth_a_line(row for row in opportunities(kernels) if not row.is_failed)[:MOST_LINES]:
        answer = type_answer(kernel.analysis)
        if answer is not None and (words := worth_words(answer)):
            said.setdefault(words, []).append(cut_name(kernel.shown, _NAME.most))
    return [(*few([*map(code, names)], MOST_LINES), f": {words}") for words, names in said.items()]


def caveat_lines(kernels: Sequence[KernelSummary]) -> list[str]:
    """Say why launches were not analyzed, and explain each flag that changes a verdict; at most three lines.

    The most frequent flags are explained.
    """
    reasons: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for launch in (launch for kernel in kernels for launch in kernel.launches):
        if launch.failed:
            reasons[launch.analysis.kernel.status_reason or ALL_NAN] += 1
        else:
            flagged.update(cautions(launch.analysis))
    del reasons[ALL_NAN]
    failed = (f"{count(amount, 'launch')} not analyzed: {why}" for why, amount in reasons.most_common())
    flags = (f"{count(amount, 'launch')}: {flag_label(flag)}" for flag, amount in most_first(flagged))
    return [*failed, *flags][:MOST_LINES]


def _move(kernel: KernelSummary) -> Words:
    if kernel.is_failed:
        return code(cut_name(kernel.shown, _NAME.most)), f" could not be profiled: {best_move(kernel.analysis.verdict)}"
    place = place_of_move(kernel.analysis.verdict)
    where = (" (", code(place), ")") if place else ()
    return code(cut_name(kernel.shown, _NAME.most)), f": {best_move(kernel.analysis.verdict)}", *where


def _command(ranked: Sequence[KernelSummary], place: Sequence[str]) -> str:
    """Name the command that shows where a kernel spends its time, if its first move has no place; else the page."""
    given = " ".join(shlex.quote(text) for text in place) if len(place) <= _MOST_PLACES else "PATH..."
    if any(kernel.analysis.kernel.hotspots and not place_of_move(kernel.analysis.verdict) for kernel in ranked):
        return f"`rooflens hotspots {given}` shows the lines or instructions that take their time"
    return f"`rooflens report {given} -o page.html` draws each of them, with its findings and what they stand on"
