"""Hot lines of a card: where its warps stand, what they wait for there, and which accesses move more than they need."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.hotspots import STALL, leading_stall, loops_around, places
from rooflens.model.records import Hotspot, Inside, Kernel, Place
from rooflens.report.words.findings import code_of
from rooflens.report.words.inside import wait_words
from rooflens.report.words.labels import place_label, stall_label

MOST_LINES = 5
LEAST_SHARE = 0.01
"""A line with less is not hot."""

_MEASURES = (("samples", "share of samples"), ("warp_inst", "share of instructions executed"))
"""What makes a line hot, best first, and its words."""

_EXCESS = (
    ("load_excess_sectors", "load_sectors", "sectors of loads"),
    ("store_excess_sectors", "store_sectors", "sectors of stores"),
    ("shared_excess_wavefronts", "shared_wavefronts", "passes of shared memory"),
)
"""Part, whole, and what they are."""


class HotLine(Struct, frozen=True):
    """One line or instruction.

    Attributes:
        waits: What its warps wait for most; empty where samples hold no reasons.
        excess: What its accesses move beyond what they need, and local memory.
        loop: Number of the loop that it is, in the kernel; empty for lines and straight parts.
        within: Numbers of the loops that it stands in, with blanks between; empty if nobody looked inside.
    """

    label: str
    share: float
    waits: str
    excess: str
    code: str
    loop: str = ""
    within: str = ""


class HotLines(Struct, frozen=True):
    """The hottest places of a kernel, hottest first."""

    title: str
    lines: tuple[HotLine, ...]


def hot_lines(kernel: Kernel) -> HotLines | None:
    """Return the hottest lines, or where the report has none the instructions; None if it has neither."""
    for measure, words in _MEASURES:
        found = [place for place in places(kernel, measure, MOST_LINES) if place.share >= LEAST_SHARE]
        if found:
            what = "lines" if found[0].hotspot.by == "line" else "instructions"
            return HotLines(f"Hot {what}, {words}", tuple(_line(kernel.inside, place) for place in found))
    return None


def _line(inside: Inside | None, place: Place) -> HotLine:
    hotspot = place.hotspot
    waits = "; ".join(filter(None, (_waits(hotspot), wait_words(inside, hotspot))))
    return HotLine(
        place_label(hotspot, inside),
        place.share,
        waits,
        "; ".join(_excess(hotspot)),
        code_of(hotspot),
        within=" ".join(map(str, loops_around(inside, hotspot))),
    )


def _waits(hotspot: Hotspot) -> str:
    reason = leading_stall(hotspot)
    if reason is None:
        return ""
    samples = hotspot.measures.get("samples")
    part = f" ({fmt.percent(hotspot.measures[STALL + reason] / samples)} of its samples)" if samples else ""
    return stall_label(reason) + part


def _excess(hotspot: Hotspot) -> Iterator[str]:
    measures = hotspot.measures
    for part, whole, words in _EXCESS:
        if measures.get(part) and measures.get(whole):
            share = fmt.percent(measures[part] / measures[whole])
            yield f"{share} of {fmt.quantity(measures[whole], words)} more than it needs"
    if measures.get("local_sectors"):
        yield fmt.quantity(measures["local_sectors"], "sectors of local memory")
