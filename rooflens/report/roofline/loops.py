"""Loops of the picked launch: small rings where each stands at L2 and shared memory, the chosen one strong and named.

A page says which loop is chosen by the parameter `loop`: its number in the kernel, or nothing. No loop stands at DRAM,
whose bytes are not counted by instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rooflens.report.plane import expressions as text
from rooflens.report.plane.later import alt
from rooflens.report.plane.marks import PAGE, QUIET, rounded, written
from rooflens.report.plane.plane import LoopPoint, Plane

RING_AREA_PX2 = 90
CHOSEN_AREA_PX2 = 260
NAME_PX = 18
"""How far over the chosen loop's ring its name stands."""

_CHOSEN = "datum.i === +loop && loop !== ''"


def loop_rows(plane: Plane) -> list[dict[str, Any]]:
    """Make a row per loop and level.

    Keys: `k` launch, `i` the loop's number in it, `t` its place, at the first of its levels alone, `full` where it is
    on its roof.
    """
    return [
        {
            "k": one.launch.key,
            "g": one.launch.group_key,
            "i": one.number,
            **({"t": one.place} if is_named else {}),
            **({"full": 1} if one.at_roof else {}),
            "level": one.level,
            "x": rounded(one.intensity_flop_per_byte),
            "y": rounded(one.flop_per_s),
        }
        for one, is_named in _loops_with_names(plane)
    ]


def _loops_with_names(plane: Plane) -> Iterator[tuple[LoopPoint, bool]]:
    """Yield the loops, and whether their name stands there: at the first of their levels."""
    named: set[tuple[str, int]] = set()
    for one in plane.loops:
        key = one.launch.key, one.number
        yield one, key not in named
        named.add(key)


def loop_layers(picked: str) -> Iterator[alt.Chart]:
    """Draw the loops of the picked launch, each a diamond, and name the chosen one.

    Args:
        picked: The expression that holds for rows of the picked launch.
    """
    rows = alt.Chart().transform_filter(picked)
    chosen = rows.transform_filter(_CHOSEN)
    yield (
        rows.transform_filter(f"!({_CHOSEN})")
        .mark_point(style="ring", shape="diamond", size=RING_AREA_PX2, **{**QUIET, "opacity": 0.5})
        .encode(**PAGE.at)
    )
    yield chosen.mark_point(style="ring", shape="diamond", size=CHOSEN_AREA_PX2, strokeWidth=3, **QUIET).encode(
        **PAGE.at
    )
    rate = f"(datum.full ? 'on the roof' : {text.si('datum.y', 'FLOP/s')})"
    words = f"datum.t ? datum.t + ' at ' + {text.LEVEL} + ': ' + {rate} : {text.LEVEL}"
    yield from written(chosen.transform_calculate(words=words), "label", baseline="middle", dy=-NAME_PX)
