"""One card per kernel: verdict, evidence, shares, stalls, NVIDIA's verdict, flags, moves and sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.model.levels import binding_stage
from rooflens.model.words import resource_label
from rooflens.report import format as fmt
from rooflens.report.html import render
from rooflens.report.rows import time_part
from rooflens.report.words import FLOP_SOURCE_LABELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from markupsafe import Markup

    from rooflens.model.records import Level, Pipe
    from rooflens.report.rows import Launch, Page

MAX_CARDS = 100
"""Cards written: the worst launch of every kernel first, then the longest launches."""

MAX_STALLS = 6
STALL_FROM_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Bar:
    """One resource as a bar with its numbers in words; `stage` names the stage that makes the share of a level."""

    label: str
    share: float | None
    rate: str
    amount: str
    intensity: str
    source: str
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """What one card shows beside the record itself."""

    launch: Launch
    levels: tuple[Bar, ...]
    pipes: tuple[Bar, ...]
    stalls: tuple[tuple[str, float], ...]
    shape: str


def cards(page: Page) -> Markup:
    """Write the cards in order of time, and say how many launches have none."""
    shown = carded(page)
    left_out = len(page.launches) - len(shown)
    part = time_part(shown)
    return render("cards", cards=[_card(launch) for launch in shown], left_out=left_out, covered=part, page=page)


def carded(page: Page) -> tuple[Launch, ...]:
    """Choose the launches that get a card."""
    wanted = dict.fromkeys(group.worst.key for group in page.groups)
    wanted |= dict.fromkeys(launch.key for launch in page.launches)
    chosen = set(list(wanted)[:MAX_CARDS])
    return tuple(launch for launch in page.launches if launch.key in chosen)


def _card(launch: Launch) -> Card:
    analysis = launch.analysis
    stalls = sorted(analysis.kernel.stalls.items(), key=lambda item: -item[1])
    return Card(
        launch=launch,
        levels=tuple(_level_bar(name, level) for name, level in analysis.levels.items() if _measured(level)),
        pipes=tuple(_pipe_bar(name, pipe) for name, pipe in _ordered(launch)),
        stalls=tuple((reason, share) for reason, share in stalls[:MAX_STALLS] if share >= STALL_FROM_SHARE),
        shape=_shape(launch),
    )


def _measured(level: Level) -> bool:
    return level.amount_bytes is not None or level.share is not None


def _ordered(launch: Launch) -> list[tuple[str, Pipe]]:
    """Put the busiest pipe first and leave out those that did nothing."""
    pipes = [(name, pipe) for name, pipe in launch.analysis.pipes.items() if pipe.amount or pipe.share]
    return sorted(pipes, key=lambda item: -(item[1].share or 0.0))


def _level_bar(name: str, level: Level) -> Bar:
    intensity = level.intensity_flop_per_byte
    return Bar(
        label=resource_label(name),
        share=level.share,
        rate=_rate(fmt.si, level.bytes_per_s, level.peak_bytes_per_s, "B/s"),
        amount="" if level.amount_bytes is None else fmt.si(level.amount_bytes, "B"),
        intensity="" if intensity is None else fmt.intensity(intensity),
        source=level.source or "",
        stage=(binding_stage(level) or "").replace("_", " "),
    )


def _pipe_bar(name: str, pipe: Pipe) -> Bar:
    write = fmt.si if pipe.unit == "FLOP" else fmt.si_of
    unit = "inst" if pipe.unit == "issue" else pipe.unit
    mark = "about " if pipe.source == "estimated" else ""
    amount = "" if pipe.amount is None else f"{mark}{write(pipe.amount, unit)}"
    return Bar(
        label=resource_label(name),
        share=pipe.share,
        rate=_rate(write, pipe.amount_per_s, pipe.peak_per_s, f"{unit}/s"),
        amount=amount,
        intensity="",
        # A pipe that only has counters is explained once for all kernels, in the method.
        source=FLOP_SOURCE_LABELS.get(pipe.source, ""),
    )


def _rate(write: Callable[[float | None, str], str], reached: float | None, peak: float | None, unit: str) -> str:
    if reached is None:
        return ""
    return f"{write(reached, unit)} of {write(peak, unit)}" if peak else write(reached, unit)


def _shape(launch: Launch) -> str:
    """Write grid and block, and the counters that a reader looks for beside them."""
    kernel = launch.analysis.kernel
    sizes = [
        f"{word} {'x'.join(map(str, size))}" for word, size in (("grid", kernel.grid), ("block", kernel.block)) if size
    ]
    registers = kernel.counters.get("registers_per_thread")
    occupancy = kernel.counters.get("achieved_occupancy")
    return ", ".join(
        [
            *sizes,
            *([f"{registers:.0f} registers a thread"] if registers else []),
            *([f"occupancy {fmt.percent(occupancy, 0)}"] if occupancy else []),
        ]
    )
