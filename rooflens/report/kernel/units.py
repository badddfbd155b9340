"""How busy each unit is, what warps wait for, what they execute, and how much of what is moved is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from rooflens import format as fmt
from rooflens.model.records import LEVELS, Analysis, Level, Pipe
from rooflens.model.roofline.levels import shares_of
from rooflens.model.roofline.opcodes import opcode_group
from rooflens.model.roofline.provenance import level_sources, pipe_sources
from rooflens.model.roofline.traffic import Useful, find_traffic
from rooflens.model.roofline.unit_names import level_share_words, origin, resource_label
from rooflens.model.roofline.work import MainWork, main_work
from rooflens.report.document import Column, Document, Heading, OnPage, Span, Style, Table, Words, code, paragraph
from rooflens.report.words.kernel import LEAST_SHARE, plain, shares
from rooflens.report.words.labels import UNITS, stall_label

PIPES_SHOWN = 4
MIN_STALL_SHARE = 0.05
"""A wait below this part is not tabulated."""
MAX_STALLS = 6
MOST_GROUPS = 8
MOST_OPCODES = 4
"""Opcodes named a group, most frequent first."""
MIN_SHARE = 0.01
_USEFUL_SHARE = 0.95
"""What moves hardly more than it needs has no row."""
_USED_SHARE = 0.01
"""Shared memory below this part of its peak is hardly used: its conflicts say nothing."""

_BAR = Column("", fit="bar", page=True)
_SHARE = Column("share", right=True, fit="wrap", least=16)


def busy_units(analysis: Analysis) -> Document:
    """Tabulate the busy units, each with its rate, its peak and the stored metrics that both came from.

    A measured level that did next to nothing is named, since it would seem unmeasured otherwise.
    """
    # What the verdict is based on, if the report has only NVIDIA's per cent of its side.
    measured = {None, *shares_of(analysis.levels, analysis.pipes)}
    stated = [side for side in analysis.verdict.sides if side.resource not in measured]
    work = main_work(analysis)
    rows = (
        *(_stated(analysis, side.resource or "", side.share) for side in stated),
        *(_unit(analysis, name, share, work) for name, share in shares(analysis, PIPES_SHOWN)),
    )
    numbers = (Column(heading, right=True) for heading in ("rate", "peak"))
    columns = (
        *(Column("unit"), _BAR, _SHARE, *numbers),
        Column("in all", fit="wrap", page=True),
        Column("counters", fit="prose", least=56),
    )
    idle = [
        resource_label(name, analysis.kernel.gpu)
        for name, level in analysis.levels.items()
        if level.share is not None and level.share < LEAST_SHARE
    ]
    parts = [Table(columns, rows, label="How busy each unit is")] if rows else []
    few = [paragraph(f"Measured, and below {fmt.percent(LEAST_SHARE)}: {', '.join(idle)}.")] if idle else []
    clock = analysis.kernel.counters.get("sm_clock_hz") if rows else None
    # Two reports of one GPU show other peaks for its SMs, and nothing else says why.
    peaks = [paragraph(f"Peaks hold at this run's clocks, SM {fmt.si(clock, 'Hz')}.")] if clock else []
    return (Heading("How busy each unit is"), *parts, *few, *peaks) if parts or few else ()


def _stated(analysis: Analysis, name: str, share: float) -> tuple[Words, ...]:
    level = analysis.levels.get(name)
    rate = fmt.si(level.bytes_per_s if level else None, "B/s")
    source = "its bytes over the highest peak known" if name == "dram" else "NVIDIA's per cent of its side"
    label, kind = resource_label(name, analysis.kernel.gpu), _side(name)
    return label, Span(str(share), kind), plain(fmt.percent(share)), rate, fmt.MISSING, "", source


def _unit(analysis: Analysis, name: str, share: float, work: MainWork) -> tuple[Words, ...]:
    said = fmt.percent(share)
    if name in LEVELS:
        level, sources = analysis.levels[name], level_sources(analysis, name)
        said = level_share_words(level)
        rate, peak = fmt.si(level.bytes_per_s, "B/s"), fmt.si(level.peak_bytes_per_s, "B/s") + origin(level.roof)
        amount = _of_level(level, work)
    else:
        pipe, sources = analysis.pipes[name], pipe_sources(analysis, name)
        rate, peak = (
            fmt.si(value, f"{UNITS.get(pipe.unit, pipe.unit)}/s") for value in (pipe.amount_per_s, pipe.peak_per_s)
        )
        amount = _of_pipe(pipe)
    source = "; ".join(dict.fromkeys(part for part in (sources.amount, sources.peak, sources.share) if part))
    label = resource_label(name, analysis.kernel.gpu)
    return (
        label,
        Span(str(share), _side(name)),
        plain(said),
        rate,
        peak,
        amount,
        code(source) if source else fmt.MISSING,
    )


def _side(unit: str) -> Style:
    return "memory" if unit in LEVELS else "compute"


def level_document(level: Level) -> Document:
    """Say how busy a memory level is, with its rate and its peak."""
    rates = [fmt.si(rate, "B/s") for rate in (level.bytes_per_s, level.peak_bytes_per_s) if rate]
    share = level_share_words(level) if level.share is not None else "share not measured"
    return (paragraph(plain(f"{share}, {' of '.join(rates) or 'bytes not measured'}")),)


def _of_level(level: Level, work: MainWork) -> str:
    """Say what a level moved in all, per operation, and what could be reached."""
    intensity = work.intensity(level)
    parts = (
        "" if level.amount_bytes is None else fmt.si(level.amount_bytes, "B"),
        "" if intensity is None else fmt.intensity(intensity, UNITS[work.unit]),
        "" if level.attainable_per_s is None else f"attainable {fmt.si(level.attainable_per_s, 'B/s')}",
    )
    return ", ".join(filter(None, parts))


def _of_pipe(pipe: Pipe) -> str:
    write, unit = _writer(pipe)
    attainable = [] if pipe.attainable_per_s is None else [f"attainable {write(pipe.attainable_per_s, f'{unit}/s')}"]
    return ", ".join([*([] if pipe.amount is None else [_pipe_amount(pipe)]), *attainable])


def _pipe_amount(pipe: Pipe) -> str:
    """Write how much a pipe did; an estimate and an upper bound are said to be one."""
    write, unit = _writer(pipe)
    return {"estimated": "about ", "upper_bound": "at most "}.get(pipe.source, "") + write(pipe.amount, unit)


def _writer(pipe: Pipe) -> tuple[Callable[[float | None, str], str], str]:
    """Choose how a pipe's amounts are written: FLOPs take a prefix themselves, instructions do not."""
    return (fmt.si, "FLOP") if pipe.unit == "FLOP" else (fmt.si_of, "inst" if pipe.unit == "issue" else pipe.unit)


def stalls(reasons: Mapping[str, float]) -> Document:
    """Tabulate what the warps wait for, the most frequent first, in plain words beside NVIDIA's own."""
    ranked = sorted(reasons.items(), key=lambda item: -item[1])
    shown = [(reason, share) for reason, share in ranked[:MAX_STALLS] if share >= MIN_STALL_SHARE]
    rows = tuple(
        (stall_label(reason), Span(str(share), "latency"), fmt.percent(share), code(reason)) for reason, share in shown
    )
    columns = Column("warps", fit="wrap"), _BAR, Column("share of stall cycles", right=True), Column("ncu's name")
    return (OnPage((Table(columns, rows, "What warps wait for"),)),) if rows else ()


def opcodes(of_warps: Mapping[str, int], of_threads: Mapping[str, int]) -> Document:
    """Tabulate what is executed by kind, with the most frequent opcodes of each; nothing without an opcode table."""
    table, of = (of_warps, "warp") if of_warps else (of_threads, "thread")
    total = sum(table.values())
    groups = sorted(_grouped(table).items(), key=lambda item: -sum(item[1].values()))
    large = [(group, counts) for group, counts in groups if sum(counts.values()) >= MIN_SHARE * total][:MOST_GROUPS]
    rows = tuple(_opcode_row(group, counts, total) for group, counts in large)
    columns = Column("kind"), _BAR, Column(f"share of {of} instructions", right=True), Column("opcodes", fit="wrap")
    return (OnPage((Table(columns, rows, "Opcode mix"),)),) if total else ()


def _grouped(table: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Add opcodes up without their modifiers, by what they are for."""
    groups: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for opcode, count in table.items():
        groups[opcode_group(opcode)][opcode.partition(".")[0]] += count
    return {group: dict(counts) for group, counts in groups.items()}


def _opcode_row(group: str, counts: Mapping[str, int], total: int) -> tuple[Words, ...]:
    by_count = sorted(counts.items(), key=lambda item: -item[1])
    named = [f"{opcode} {fmt.percent(count / total)}" for opcode, count in by_count[:MOST_OPCODES]]
    more = [f"{len(by_count) - MOST_OPCODES} more"] if len(by_count) > MOST_OPCODES else []
    share = sum(counts.values()) / total
    return group, Span(str(share), "compute"), fmt.percent(share), ", ".join([*named, *more])


def useful(analysis: Analysis) -> Iterator[str]:
    """Say how much of what was moved is needed, where that is clearly not all: `50 % of the bytes of shared memory`."""
    traffic, shared = find_traffic(analysis.kernel), analysis.levels.get("smem")
    if traffic.global_memory is not None and traffic.global_memory.share <= _USEFUL_SHARE:
        yield _needed(traffic.global_memory, "sectors of global memory")
    if shared is None or (shared.share or 0.0) < _USED_SHARE:
        return
    conflicts = traffic.conflict_share
    replays = f", {fmt.percent(conflicts)} of it replays of bank conflicts" if conflicts else ""
    if traffic.shared is not None and traffic.shared.share <= _USEFUL_SHARE:
        yield f"{_needed(traffic.shared, 'bytes of shared memory')}{replays}"
    elif traffic.shared is None and conflicts and 1 - conflicts <= _USEFUL_SHARE:
        yield f"{fmt.percent(1 - conflicts)} of the passes of shared memory{replays}"


def _needed(part: Useful, what: str) -> str:
    amounts = f"{fmt.si(part.asked_bytes, 'B')} of {fmt.si(part.moved_bytes, 'B')}"
    return f"{fmt.percent(part.share)} of the {what} ({amounts})"
