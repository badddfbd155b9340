"""Occupancy of a card: warps allowed and resident, what limits them, waves and tail, and curves of other launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import Kernel
from rooflens.model.roofline.occupancy import Curve, Occupancy, Property, find_occupancy, occupancy_curves
from rooflens.report.page.cards.bars import Bar

_HARDLY = 0.01
"""A last wave that leaves less than this of the SM time idle is as good as full."""
_SLOTS = {"warps a block": "warp slots"}
"""Limits that the card names by what runs out."""


class Resident(Struct, frozen=True):
    """Bars of the warps an SM could hold and does hold, and facts beside them."""

    bars: tuple[Bar, ...]
    facts: tuple[str, ...]


def resident(kernel: Kernel) -> Resident | None:
    """Say how full the SMs are and why; None where the report holds nothing of it."""
    found = find_occupancy(kernel)
    rows = (("Allowed", found.theoretical, "by this launch"), ("Achieved", found.achieved, "mean over active cycles"))
    bars = tuple(Bar(label, share, rate=what) for label, share, what in rows if share is not None)
    facts = tuple(_facts(kernel, found))
    return Resident(bars, facts) if bars or facts else None


def _facts(kernel: Kernel, found: Occupancy) -> Iterator[str]:
    if found.limiters:
        yield from _limits(kernel, found)
    elif found.theoretical is not None and found.block_limits:
        yield "not limited: the launch can fill every warp slot"
    if found.waves is not None and found.tail_share is not None:
        yield _waves(kernel, found.waves, found.tail_share)
    ready, issued = kernel.counters.get("eligible_warps_per_cycle"), kernel.counters.get("issue_active_per_cycle")
    if ready is not None:
        slots = "" if issued is None else f"; {fmt.significant(issued, 2)} instructions issued"
        yield f"per cycle and scheduler: {fmt.significant(ready, 2)} warps ready{slots}"


def _limits(kernel: Kernel, found: Occupancy) -> Iterator[str]:
    """Name the scarcest resources with what a block takes of them, then what the others would allow."""
    blocks = found.block_limits[0][1]
    scarce = " and ".join(_slots(name) + _taken(kernel, name) for name in found.limiters)
    yield f"limited by {scarce} to {fmt.count(round(blocks), 'block')} per SM"
    rest = [f"{_slots(name)} {limit:.0f}" for name, limit in found.block_limits if name not in found.limiters]
    if rest:
        yield f"blocks per SM by the other limits: {', '.join(rest)}"


def _slots(name: str) -> str:
    return _SLOTS.get(name, name)


def _taken(kernel: Kernel, name: str) -> str:
    registers, shared = kernel.counters.get("registers_per_thread"), kernel.counters.get("smem_per_block_bytes")
    if name == "registers" and registers:
        return f" ({registers:.0f} per thread)"
    if name == "shared memory" and shared:
        return f" ({fmt.si(shared, 'B')} per block)"
    return ""


def _waves(kernel: Kernel, waves: float, idle: float) -> str:
    blocks, sms = kernel.counters.get("grid_size"), kernel.counters.get("sm_count")
    grid = f" ({fmt.count(round(blocks), 'block')} on {sms:.0f} SMs)" if blocks and sms else ""
    if waves < 1:
        return f"{fmt.significant(waves, 2)} waves{grid}: {fmt.percent(idle)} of the block slots stay empty"
    tail = "hardly any tail" if idle < _HARDLY else f"the last one leaves {fmt.percent(idle)} of the SM time idle"
    return f"{fmt.significant(waves)} waves{grid}: {tail}"


WIDTH, HEIGHT = 180, 60
"""Of a drawing, in its own units; half of a pixel is not seen."""

_TITLES: Mapping[Property, str] = {
    "registers": "Registers per thread",
    "block size": "Threads per block",
    "shared memory": "Shared memory per block",
}
_NOUNS: Mapping[Property, str] = {"registers": "register", "block size": "thread"}


class Dot(Struct, frozen=True):
    """A place on the drawing."""

    x: int
    y: int


class OccupancyCurve(Struct, frozen=True):
    """One curve, from none of its property to the most there can be, and from 100 % down to 0.

    Attributes:
        path: Its steps.
        now: The launch as it is.
        better: The nearest change that allows clearly more; None where none does.
        most: The right end of the axis in words.
        words: Both dots in words.
    """

    title: str
    path: str
    now: Dot
    better: Dot | None
    most: str
    words: str


def curves(kernel: Kernel) -> tuple[OccupancyCurve, ...]:
    """Draw the curves that go through the occupancy which the report states."""
    return tuple(_drawn(curve) for curve in occupancy_curves(kernel))


def _drawn(curve: Curve) -> OccupancyCurve:
    most = curve.steps[-1][0]

    def dot(value: float, occupancy: float) -> Dot:
        return Dot(round(WIDTH * min(1.0, value / most)), round(HEIGHT * (1 - occupancy)))

    points = [dot(*step) for step in curve.steps]
    return OccupancyCurve(
        title=_TITLES[curve.of],
        path="".join(f"{'V' if i else 'M0 '}{point.y}H{point.x}" for i, point in enumerate(points)),
        now=dot(curve.now, curve.occupancy),
        better=None if curve.better is None else dot(*curve.better),
        most=f"{most:,.0f}" if curve.of in _NOUNS else _value(curve, most),
        words=_words(curve),
    )


def _words(curve: Curve) -> str:
    """Write `56 registers: 50 %; at 40 registers: 75 % (+25)`."""
    now = f"{_value(curve, curve.now)}: {fmt.percent(curve.occupancy)}"
    if curve.better is None:
        return now
    value, occupancy = curve.better
    more = round(100 * occupancy) - round(100 * curve.occupancy)
    return f"{now}; at {_value(curve, value)}: {fmt.percent(occupancy)} (+{more})"


def _value(curve: Curve, value: float) -> str:
    noun = _NOUNS.get(curve.of)
    return fmt.count(round(value), noun) if noun else fmt.si(value, "B")
