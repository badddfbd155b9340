"""Loops of a card: each a bar of warps' time, with what it does, what limits it, and what a trip consists of."""

from __future__ import annotations

from collections.abc import Sequence

from rooflens import format as fmt
from rooflens.model.records import JudgedLoop
from rooflens.report.page.cards.hot_lines import HotLine, HotLines
from rooflens.report.words.inside import (
    body_words,
    class_words,
    counted,
    depth,
    loop_label,
    loop_rate,
    shown_loops,
    work_unit,
)


def loop_bars(loops: Sequence[JudgedLoop], gpu: str | None) -> HotLines | None:
    """Return the loops and straight parts with a twentieth of warps' time or more; None if nobody looked inside."""
    rows = shown_loops(loops)
    if not any(one.loop.kind == "loop" for one in rows):
        return None
    return HotLines("Loops, share of warps' time", tuple(_bar(one, depth(one, loops), gpu) for one in rows))


def _bar(one: JudgedLoop, around: int, gpu: str | None) -> HotLine:
    rate = f" at {reached}" if (reached := loop_rate(one)) else ""
    reuse = f", {fmt.intensity(one.intensity, work_unit(one))} of L2" if one.intensity else ""
    trips = counted(one.loop.trips, "trip") if one.loop.trips is not None else ""
    limit = class_words(one, gpu)
    return HotLine(
        label=f"{'· ' * around}{loop_label(one)}",
        share=(one.share if one.loop.kind == "loop" else one.share_self) or 0.0,
        waits=f"{one.job}{rate}{reuse}{f': {limit}' if limit else ''}",
        excess="; ".join(filter(None, (trips, body_words(one)))),
        code="",
        loop=str(one.loop.id) if one.loop.kind == "loop" else "",
    )
