"""How the two sides of a comparison were recorded, and whether times on them can be set against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.compare.compare import Side
from rooflens.model.compare.ladder import Ladder
from rooflens.model.compare.pairing import is_apart, mean_clock_hz, mean_memory_bytes_per_s
from rooflens.model.records import at_work
from rooflens.report.summary import CLOCK_WORDS
from rooflens.report.words.labels import file_label

NOT_STATED = "not stated"

CONDITIONS = ("GPU", "Clock control", "Cache control", "Replay", "ncu")
"""What two sides should have in common."""

SPAN_RATIO = 1.03
"""Clocks of a side further apart than this are written as a range."""


class RecordingFact(Struct, frozen=True):
    """How both sides were recorded, one thing of it.

    Attributes:
        matters: True where sides that differ in it may differ in time for that alone.
    """

    label: str
    base: str
    head: str
    matters: bool = False


def is_synthetic(side: Side) -> bool:
    """Return whether a generator wrote any part of a side."""
    return any(run.synthetic for run in side.runs) or any(one.kernel.synthetic for one in side.at_work)


def recorded(comparison: Ladder) -> tuple[RecordingFact, ...]:
    """List how both sides were recorded; what neither states is left out."""
    rows: tuple[tuple[str, Callable[[Side], str]], ...] = (
        ("Side", lambda side: file_label(side.label)),
        ("GPU", lambda side: _joined_values(one.kernel.gpu for one in side.at_work)),
        ("SM clock", _clock),
        ("Clock control", lambda side: _joined_values(_clock_mode(run.clock_control) for run in side.runs)),
        ("Cache control", lambda side: _joined_values(run.cache_control for run in side.runs)),
        ("Replay", lambda side: _joined_values(run.replay_mode for run in side.runs)),
        ("ncu", lambda side: _joined_values(run.ncu_version for run in side.runs)),
        ("Recorded", _dates),
        ("Recordings", lambda side: f"{len(side.recordings):,}"),
        ("Launches", _launches_words),
    )
    found = ((label, of(comparison.base), of(comparison.head)) for label, of in rows)
    return tuple(
        RecordingFact(label, base or NOT_STATED, head or NOT_STATED, matters=_matters(label, base, head, comparison))
        for label, base, head in found
        if base or head
    )


def _matters(label: str, base: str, head: str, comparison: Ladder) -> bool:
    if label == "SM clock":
        return is_apart(mean_clock_hz(comparison.base), mean_clock_hz(comparison.head))
    return base != head and label in CONDITIONS


def unlike(comparison: Ladder) -> str:
    """Say why both sides have no roofs in common; empty if they have.

    Clocks are means over GPU time: the roofs that matter are those of the kernels that take it.
    """
    base, head = comparison.base, comparison.head
    gpus = _gpus_of_side(base), _gpus_of_side(head)
    if gpus[0] != gpus[1]:
        return f"the GPUs differ ({_and(gpus[0])}; {_and(gpus[1])})"
    if len(gpus[0]) > 1:
        return f"each side ran on {len(gpus[0])} kinds of GPU"
    for what, of, unit in (
        ("SM clocks", mean_clock_hz, "Hz"),
        ("memory bandwidths", mean_memory_bytes_per_s, "B/s"),
    ):
        before, after = of(base), of(head)
        if is_apart(before, after):
            return f"the {what} differ ({fmt.si(before, unit)}; {fmt.si(after, unit)})"
    return ""


def _gpus_of_side(side: Side) -> list[str]:
    return sorted({one.kernel.gpu or "unknown GPU" for one in side.at_work})


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)


def _joined_values(values: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value))


def _clock_mode(mode: str | None) -> str | None:
    return CLOCK_WORDS.get(mode, mode) if mode else None


def _clock(side: Side) -> str:
    """Say the mean clock over GPU time, and its range where short launches ran at another one."""
    clocks = [hz for one in side.at_work if (hz := one.kernel.counters.get("sm_clock_hz"))]
    mean = mean_clock_hz(side)
    if mean is None:
        return ""
    low, high = min(clocks), max(clocks)
    text = fmt.si(mean, "Hz")
    return f"{text} ({fmt.si(low, 'Hz')} to {fmt.si(high, 'Hz')})" if high / low > SPAN_RATIO else text


def _dates(side: Side) -> str:
    dates = sorted({fmt.date(run.created_unix_s) for run in side.runs if run.created_unix_s})
    return fmt.span(dates[0], dates[-1]) if dates else ""


def _launches_words(side: Side) -> str:
    """Count the launches of the first recording that are compared, that only fill inputs, and that failed."""
    first = side.recordings[0]
    failed = sum(one.kernel.failed for one in first)
    set_up = len(first) - failed - len(at_work(first))
    parts = [f"{sum(one.launches for one in at_work(first)):,}"]
    parts += [f"{number:,} {what}" for number, what in ((set_up, "that fill inputs"), (failed, "failed")) if number]
    return ", ".join(parts)
