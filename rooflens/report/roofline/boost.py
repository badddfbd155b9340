"""Roofs at the boost clock of the GPU's file, beside those of the profiled clock that the report holds."""

from __future__ import annotations

from statistics import median
from typing import Any

import altair as alt
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.predict.other_gpu import peak_key
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.report.plane.expressions import si
from rooflens.report.plane.marks import QUIET, table, written
from rooflens.report.plane.placement import LINE_PX
from rooflens.report.plane.plane import Plane
from rooflens.report.plane.roofs import EDGE_PX, LIFT_PX, SLOPE, flat, flat_ends, joined, slope_ends, work_unit
from rooflens.report.roofline.layers import NAMES_APART_PX, any_near, apart_px
from rooflens.report.roofline.rows import rounded

FROM_RATIO = 1.05
"""A boost clock nearer to the profiled one than this gives no second roofs."""

SAID_FROM_RATIO = 1.2
"""From this on the page says what the profiled clock costs."""

SM_LEVELS = frozenset({"l1", "smem"})
"""Levels whose bandwidth goes with the SM clock; L2 and DRAM have clocks of their own."""

DASH = [9, 3]

_UNIT = "' + datum.u + '/s"
"""What a pipe counts, within a text of an expression."""


class Boost(Struct, frozen=True):
    """What a GPU's roofs would be at its boost clock.

    Attributes:
        clock_hz: Boost clock by the GPU's file.
        profiled_hz: Median SM clock of the launches in the plane.
        flat: FLOP/s and the clock they hold for, by the first key of each flat roof: tensors may have a clock apart.
        slopes: Bytes per second by the first key of those slopes that go with the SM clock.
    """

    gpu: str
    clock_hz: float
    profiled_hz: float
    flat: dict[str, tuple[float, float]]
    slopes: dict[str, float]

    @property
    def ratio(self) -> float:
        """How many times the profiled clock the boost clock is."""
        return self.clock_hz / self.profiled_hz

    @property
    def sentence(self) -> str:
        """Say how much more the GPU may do at its boost clock; empty where that is little."""
        if self.ratio < SAID_FROM_RATIO:
            return ""
        return (
            f"Profiled at {fmt.si(self.profiled_hz, 'Hz')}; this GPU boosts to {fmt.si(self.clock_hz, 'Hz')}. At that "
            f"clock, arithmetic, L1 and shared memory may run up to {fmt.factor(self.ratio)} as fast; DRAM "
            "does not follow the SM clock."
        )


def boost(plane: Plane) -> Boost | None:
    """Work out the roofs at boost clock; None where either clock is not known, or boost is no faster."""
    sheet = datasheet_of(plane.gpu)
    launches = {point.launch.key: point.launch.analysis.kernel.counters for point in plane.points}
    clocks_hz = [hz for counters in launches.values() if (hz := counters.get("sm_clock_hz"))]
    if sheet is None or not clocks_hz:
        return None
    profiled_hz, clock_hz = median(clocks_hz), sheet.boost_clock.value
    if clock_hz < FROM_RATIO * profiled_hz:
        return None
    clock_of = {roof.keys[0]: sheet.clock_of(peak_key(roof.keys[0])).value for roof in plane.pipe_roofs}
    flat = {
        key: (max(roof.peak, roof.peak * clock_of[key] / profiled_hz), clock_of[key])
        for roof in plane.pipe_roofs
        for key in roof.keys[:1]
    }
    slopes = {
        roof.keys[0]: roof.peak * clock_hz / profiled_hz
        for roof in plane.level_roofs
        if SM_LEVELS.issuperset(roof.keys)
    }
    return Boost(plane.gpu, clock_hz, profiled_hz, flat, slopes)


def boost_rows(plane: Plane, found: Boost) -> dict[str, list[dict[str, Any]]]:
    """Make the rows of flat roofs and slopes at boost clock; a flat one has the roof above it, for its name's room."""
    above = None
    flat = []
    for roof in plane.pipe_roofs:
        peak, clock_hz = found.flat[roof.keys[0]]
        value = rounded(peak)
        flat.append(
            {
                "v": value,
                "name": joined(roof.keys),
                "clock": fmt.si(clock_hz, "Hz"),
                "above": above,
                "u": work_unit(roof.keys[0]),
            }
        )
        above = value
    return {"boostFlat": flat, "boostSlopes": [{"v": rounded(value)} for value in found.slopes.values()]}


def boost_lines(found: Boost) -> list[alt.Chart]:
    """Draw them while they are asked for; slopes end at the highest flat roof."""
    look: dict[str, Any] = {"style": "twin", "strokeDash": DASH, **QUIET}
    fastest = "(fastestBoost && datum.v / fastestBoost)"
    layers = [flat_ends(table("boostFlat").transform_filter("boost"), fastest).mark_rule(**look).encode(**flat())]
    if found.slopes:
        slopes = slope_ends(table("boostSlopes").transform_filter("boost"), "v", "topBoost")
        layers.append(slopes.mark_rule(**look).encode(**SLOPE))
    return layers


def boost_names(plane: Plane) -> list[alt.Chart]:
    """Name the flat ones over their lines, left of the plane's own names where these are near."""
    named = table("boostFlat").transform_filter(
        f"boost && (!datum.above || {apart_px('datum.above', 'datum.v')} > {NAMES_APART_PX})"
    )
    whole = f"datum.name + '  ' + {si('datum.v', _UNIT)} + ' at ' + datum.clock + ' boost'"
    near = any_near((roof.peak for roof in plane.pipe_roofs), NAMES_APART_PX)
    named = named.transform_calculate(
        words=f"w < 480 ? 'boost ' + {si('datum.v', '')} : {whole}",
        off=f"{near} ? flatRoom[ranged][slot] : {EDGE_PX}",
        edge="x1",
    )
    level: dict[str, Any] = {
        "align": "right",
        "baseline": "middle",
        "dx": alt.ExprRef("-datum.off"),
        "dy": -LIFT_PX - LINE_PX / 2,
    }
    return written(named, "note", {"x": alt.X("edge:Q"), "y": alt.Y("v:Q")}, **level)
