"""The memory chart: the parts of the memory, and what moved between them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import Analysis
from rooflens.model.roofline.traffic import Flow, Traffic, TrafficLink, find_links
from rooflens.model.roofline.unit_names import resource_label

WIDTH = 352
"""Of the drawing, in pixels: a telephone shows it as it is."""

_HALF = 172
_BOX, _LOW_BOX, _GAP = 44, 28, 48
_APART = 8
"""From the middle between two arrows to each."""
_THIN, _THICKER = 2.0, 8.0
"""Width of an arrow, and what a full path adds to it."""
_HEAD_LENGTH, _HEAD_MORE = 7, 3.5
_AIR, _BESIDE = 4, 10
"""From an arrow to the boxes, and to its words."""


class MemoryBox(Struct, frozen=True):
    """One part of the memory.

    Attributes:
        busy: Share of its busiest stage as a length within its width.
        share: The same in words; empty if unknown.
        hits: Its hit rate in words; empty if unknown.
    """

    x: int
    y: int
    width: int
    height: int
    name: str
    busy: int = 0
    share: str = ""
    hits: str = ""


class Arrow(Struct, frozen=True):
    """What went one way, or both.

    Attributes:
        path: Its outline.
        x: Where its words stand.
        y: Where the first of them is.
        ends: They end there.
    """

    path: str
    x: int
    y: int
    ends: bool
    amount: str
    share: str


class MemoryChart(Struct, frozen=True):
    """The drawing, and the same in words for those who do not see it."""

    width: int
    height: int
    boxes: tuple[MemoryBox, ...]
    arrows: tuple[Arrow, ...]
    words: str


class _Part(Struct, frozen=True):
    """One level: its name, the text in its box, and what goes between it and the part nearer to the SMs."""

    name: str
    share: float | None
    hits: float | None
    link: TrafficLink


def memory_chart(analysis: Analysis, traffic: Traffic, *, apart: bool = True) -> MemoryChart | None:
    """Draw the measured levels; None with fewer than two of them, or without bytes.

    `apart` separates reads from writes; launches that differ have no sums of these.
    """
    near, far = _memory_parts(analysis, traffic, apart=apart)
    parts = (*near, *far)
    flows = [flow for part in parts for flow in part.link.flows]
    if len(parts) < 2 or all(flow.amount_bytes is None for flow in flows):
        return None
    count = analysis.kernel.counters.get("sm_count")
    boxes = [MemoryBox(0, 0, WIDTH, _LOW_BOX, fmt.count(round(count), "SM") if count else "SMs")]
    arrows: list[Arrow] = []
    y = _LOW_BOX
    for row in (near, *((part,) for part in far)):
        if not row:
            continue
        for column, part in enumerate(row):
            box = _box(part, column, len(row), y + _GAP)
            boxes.append(box)
            arrows += _arrows(part.link, box.x + box.width // 2, y)
        y += _GAP + _BOX
    return MemoryChart(
        WIDTH, y, tuple(boxes), tuple(arrows), "; ".join(", ".join([part.name, *_part_words(part)]) for part in parts)
    )


def _memory_parts(analysis: Analysis, traffic: Traffic, *, apart: bool) -> tuple[list[_Part], list[_Part]]:
    """Return the levels beside the SMs, and those beyond."""
    links, gpu = find_links(analysis, apart=apart), analysis.kernel.gpu
    levels = (
        ("l1", links.l1, traffic.l1_hit_rate if apart else None),
        ("smem", links.smem, None),
        ("l2", links.l2, traffic.l2_hit_rate if apart else None),
        ("dram", links.dram, None),
    )
    known = {
        name: _Part(resource_label(name, gpu), analysis.levels[name].share, hits, link)
        for name, link, hits in levels
        if link.flows
    }
    return [known[name] for name in ("l1", "smem") if name in known], [known[n] for n in ("l2", "dram") if n in known]


def _box(part: _Part, column: int, columns: int, y: int) -> MemoryBox:
    width = _HALF if columns > 1 else WIDTH
    share = "" if part.share is None else f"{fmt.percent(part.share)} busy"
    hits = "" if part.hits is None else f"{fmt.percent(part.hits)} of sectors hit"
    busy = round(width * min(1.0, part.share or 0.0))
    return MemoryBox(column * (WIDTH - _HALF), y, width, _BOX, part.name, busy, share, hits)


def _arrows(link: TrafficLink, x: int, y: int) -> Iterator[Arrow]:
    """Draw reads upwards on the left, writes downwards on the right, and mixed traffic as one arrow."""
    if link.both is not None:
        yield _arrow(link.both, x, y, up=True, down=True)
    if link.read is not None:
        yield _arrow(link.read, x - _APART, y, up=True, down=False)
    if link.written is not None:
        yield _arrow(link.written, x + _APART, y, up=False, down=True)


def _arrow(flow: Flow, x: int, y: int, *, up: bool, down: bool) -> Arrow:
    half = (_THIN + _THICKER * min(1.0, flow.share or 0.0)) / 2
    only_up = up and not down
    return Arrow(
        path=_outline((x, y), half, up=up, down=down),
        x=x - _BESIDE if only_up else x + _BESIDE,
        y=y + _GAP // 2 - 2,
        ends=only_up,
        amount="" if flow.amount_bytes is None else fmt.si(flow.amount_bytes, "B"),
        share="" if flow.share is None else fmt.percent(flow.share),
    )


def _outline(start: tuple[int, int], half: float, *, up: bool, down: bool) -> str:
    """Write the outline of an arrow across the gap below a place: from its point on anticlockwise, in few bytes."""
    x, length = start[0], _GAP - 2 * _AIR
    wide, out, head = round(2 * half, 1), _HEAD_MORE, round(half + _HEAD_MORE, 2)
    if up and down:
        shaft = length - 2 * _HEAD_LENGTH
        ends = f"h{out:g}v{shaft}h-{out:g}l{head:g} {_HEAD_LENGTH}l{head:g}-{_HEAD_LENGTH}h-{out:g}v-{shaft}h{out:g}"
        return f"M{x} {start[1] + _AIR}l-{head:g} {_HEAD_LENGTH}{ends}z"
    y, to = (start[1] + _AIR, "") if up else (start[1] + _AIR + length, "-")
    back, shaft = "-" if up else "", length - _HEAD_LENGTH
    return f"M{x} {y}l-{head:g} {to}{_HEAD_LENGTH}h{out:g}v{to}{shaft}h{wide:g}v{back}{shaft}h{out:g}z"


def _part_words(part: _Part) -> Iterator[str]:
    if part.share is not None:
        yield f"{fmt.percent(part.share)} busy"
    if part.hits is not None:
        yield f"{fmt.percent(part.hits)} of sectors hit"
    for what, flow in (("read", part.link.read), ("written", part.link.written), ("moved", part.link.both)):
        if flow is not None and flow.amount_bytes is not None:
            yield f"{fmt.si(flow.amount_bytes, 'B')} {what}"
