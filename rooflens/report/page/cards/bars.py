"""Bars of a card: memory levels, pipes, warp stalls and opcodes, each a share with its numbers in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import Analysis, Level, Pipe, Roof, ratio
from rooflens.model.roofline.opcodes import opcode_group
from rooflens.model.roofline.unit_names import bytes_part, origin, resource_label, stage_label
from rooflens.model.roofline.work import MainWork, main_work
from rooflens.report.words.labels import UNITS, stall_label

MIN_SHARE = 0.01

MIN_STALL_SHARE = 0.05
"""Pipes and stalls below this part are named, not drawn."""
LEAST_PIPES = 3
"""So many pipes are drawn however little they did."""
MAX_STALLS = 6


class Bar(Struct, frozen=True):
    """One share as a bar.

    Attributes:
        share: 0 to 1; None if unknown.
        part: What the share is of, below the label: a stage of a level, NVIDIA's word for a stall.
        rate: What was reached, of what peak.
        amount: How much that was in all.
        mark: Attainable over peak, 0 to 1: a line on the bar; None if no calibration knows it.
    """

    label: str
    share: float | None
    part: str = ""
    rate: str = ""
    amount: str = ""
    mark: float | None = None


class Bars(Struct, frozen=True):
    """Bars, and the names of those that are too small to draw."""

    shown: tuple[Bar, ...]
    small: tuple[str, ...] = ()


def level_bars(analysis: Analysis) -> Bars:
    """Draw every measured memory level, the farthest first."""
    work, gpu = main_work(analysis), analysis.kernel.gpu
    return Bars(
        tuple(
            _level_bar(resource_label(name, gpu), level, work)
            for name, level in analysis.levels.items()
            if level.amount_bytes is not None or level.share is not None
        )
    )


def pipe_bars(pipes: Mapping[str, Pipe]) -> Bars:
    """Draw the pipes that did something, the busiest first."""
    used = _used(pipes)
    drawn = drawn_pipes(pipes)
    small = (_small_pipe(name, pipe) for name, pipe in used.items() if name not in drawn)
    return Bars(tuple(_pipe_bar(name, used[name]) for name in drawn), tuple(small))


def drawn_pipes(pipes: Mapping[str, Pipe]) -> tuple[str, ...]:
    """Choose the pipes that get a bar: the busiest ones, and all others that are not idle."""
    used = _used(pipes).items()
    return tuple(name for i, (name, pipe) in enumerate(used) if i < LEAST_PIPES or (pipe.share or 0.0) >= MIN_SHARE)


def _used(pipes: Mapping[str, Pipe]) -> dict[str, Pipe]:
    used = [(name, pipe) for name, pipe in pipes.items() if pipe.amount or pipe.share]
    return dict(sorted(used, key=lambda item: -(item[1].share or 0.0)))


def stall_bars(shares: Mapping[str, float]) -> Bars:
    """Draw what the warps wait for, the most frequent first, in plain words with NVIDIA's own below."""
    stalls = sorted(shares.items(), key=lambda item: -item[1])
    shown = [(reason, share) for reason, share in stalls[:MAX_STALLS] if share >= MIN_STALL_SHARE]
    return Bars(tuple(_stall_bar(reason, share) for reason, share in shown))


def _stall_bar(reason: str, share: float) -> Bar:
    words = stall_label(reason).removeprefix("waits for ").removeprefix("waits at ").removeprefix("waits on ")
    return Bar(words, share, rate=reason if words != reason.replace("_", " ") else "")


def _level_bar(label: str, level: Level, work: MainWork) -> Bar:
    stage, intensity = level.binding_stage if len(level.stages) > 1 else None, work.intensity(level)
    per_byte = [] if intensity is None else [fmt.intensity(intensity, UNITS[work.unit])]
    amount = [] if level.amount_bytes is None else [fmt.si(level.amount_bytes, "B")]
    attainable = [] if level.attainable_per_s is None else [f"attainable {fmt.si(level.attainable_per_s, 'B/s')}"]
    by_bytes = bytes_part(level) if stage else ""
    return Bar(
        label=label,
        share=level.share,
        part=f"{stage_label(stage)} stage" if stage else "",
        rate=_rate(fmt.si, level.bytes_per_s, level.roof, "B/s") + (f" ({by_bytes})" if by_bytes else ""),
        amount=", ".join([*amount, *per_byte, *attainable]),
        mark=ratio(level.attainable_per_s, level.peak_bytes_per_s),
    )


def _pipe_bar(name: str, pipe: Pipe) -> Bar:
    write, unit = writer(pipe)
    attainable = [] if pipe.attainable_per_s is None else [f"attainable {write(pipe.attainable_per_s, f'{unit}/s')}"]
    return Bar(
        label=resource_label(name),
        share=pipe.share,
        rate=_rate(write, pipe.amount_per_s, pipe.roof, f"{unit}/s"),
        amount=", ".join([*([] if pipe.amount is None else [amount_words(pipe)]), *attainable]),
        mark=ratio(pipe.attainable_per_s, pipe.peak_per_s),
    )


def _small_pipe(name: str, pipe: Pipe) -> str:
    """Name a pipe, with its FLOPs where it has some: they count in the intensity however few they are."""
    return resource_label(name) + (f" ({amount_words(pipe)})" if pipe.unit in {"FLOP", "op"} and pipe.amount else "")


def amount_words(pipe: Pipe) -> str:
    """Write how much a pipe did; an estimate and an upper bound are said to be one."""
    write, unit = writer(pipe)
    return {"estimated": "about ", "upper_bound": "at most "}.get(pipe.source, "") + write(pipe.amount, unit)


def writer(pipe: Pipe) -> tuple[Callable[[float | None, str], str], str]:
    """Choose how a pipe's amounts are written: FLOPs take a prefix themselves, instructions do not."""
    return (fmt.si, "FLOP") if pipe.unit == "FLOP" else (fmt.si_of, "inst" if pipe.unit == "issue" else pipe.unit)


def _rate(write: Callable[[float | None, str], str], reached: float | None, roof: Roof | None, unit: str) -> str:
    if reached is None:
        return ""
    return write(reached, unit) + (f" of {write(roof.value, unit)}{origin(roof)}" if roof is not None else "")


MOST_GROUPS = 8
MOST_OPCODES = 4
"""Opcodes named a group, most frequent first."""


def opcode_mix(of_warps: Mapping[str, int], of_threads: Mapping[str, int]) -> tuple[str, Bars]:
    """Return what the shares are of, and the groups of opcodes by their share; no bars without an opcode table."""
    table, of = of_warps, "executed warp instructions"
    if not table:
        table, of = of_threads, "executed thread instructions"
    total = sum(table.values())
    if not total:
        return of, Bars(())
    groups = sorted(_grouped(table).items(), key=lambda item: -sum(item[1].values()))
    large = [group for group, counts in groups if sum(counts.values()) >= MIN_SHARE * total][:MOST_GROUPS]
    bars = tuple(_bar(group, counts, total) for group, counts in groups if group in large)
    return of, Bars(bars, tuple(group for group, _ in groups if group not in large))


def _grouped(table: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Add opcodes up without their modifiers, by what they are for."""
    groups: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for opcode, count in table.items():
        groups[opcode_group(opcode)][opcode.partition(".")[0]] += count
    return {group: dict(counts) for group, counts in groups.items()}


def _bar(group: str, counts: Mapping[str, int], total: int) -> Bar:
    by_count = sorted(counts.items(), key=lambda item: -item[1])
    named = [f"{opcode} {fmt.percent(count / total)}" for opcode, count in by_count[:MOST_OPCODES]]
    more = [f"{len(by_count) - MOST_OPCODES} more"] if len(by_count) > MOST_OPCODES else []
    return Bar(group, sum(counts.values()) / total, rate=", ".join([*named, *more]))
