"""Roofs besides those of the profiled clock: attainable ones, and those at the boost clock of the GPU's file."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.predict.other_gpu import peak_key
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.report.plane.plane import Plane
from rooflens.report.plane.roofs import joined, work_unit
from rooflens.report.roofline.rows import Row, rounded

FROM_RATIO = 1.05
"""A boost clock nearer to the profiled one than this gives no second roofs."""

SAID_FROM_RATIO = 1.2
"""From this on the page says what the profiled clock costs."""

SM_LEVELS = frozenset({"l1", "smem"})
"""Levels whose bandwidth goes with the SM clock; L2 and DRAM have clocks of their own."""


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
        """Say how much more the GPU may do at its boost clock; empty if little."""
        if self.ratio < SAID_FROM_RATIO:
            return ""
        return (
            f"Profiled at {fmt.si(self.profiled_hz, 'Hz')}; this GPU boosts to {fmt.si(self.clock_hz, 'Hz')}. At that "
            f"clock, arithmetic, L1 and shared memory may run up to {fmt.factor(self.ratio)} as fast; DRAM "
            "does not follow the SM clock."
        )


def boost(plane: Plane) -> Boost | None:
    """Work out the roofs at boost clock; None if either clock is unknown, or boost is no faster."""
    sheet = datasheet_of(plane.gpu)
    clocks_hz = [launch.clock_hz for launch in plane.launches if launch.clock_hz]
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


def twin_rows(plane: Plane, boosted: Boost | None) -> dict[str, list[Row]]:
    """Make the rows of attainable roofs, of DRAM at its own top clock, and of those at boost clock (`boost` is 1).

    A flat one at boost clock has its name, and the roof above it, for the room that its name needs.
    """
    top = _highest(roof.attainable or roof.peak for roof in plane.pipe_roofs)
    steepest = _highest(roof.attainable or roof.peak for roof in plane.level_roofs)
    slopes = [_slope(roof.attainable, top) for roof in plane.level_roofs if roof.attainable]
    slopes += [_slope(roof.full_clock, plane.top) for roof in plane.level_roofs if roof.full_clock]
    flats = [_flat(roof.attainable, steepest) for roof in plane.pipe_roofs if roof.attainable]
    if boosted:
        top = _highest(peak for peak, _ in boosted.flat.values())
        steepest = _highest(boosted.slopes.get(roof.keys[0], roof.peak) for roof in plane.level_roofs)
        slopes += [_slope(peak, top) | {"boost": 1} for peak in boosted.slopes.values()]
        above = (None, *(rounded(peak) for peak, _ in boosted.flat.values()))
        for roof, (peak, clock_hz), higher in zip(plane.pipe_roofs, boosted.flat.values(), above, strict=False):
            name = {"name": joined(roof.keys), "clock": fmt.si(clock_hz, "Hz"), "u": work_unit(roof.keys[0])}
            flats.append(_flat(peak, steepest) | name | {"above": higher, "boost": 1})
    return {name: rows for name, rows in (("twinSlopes", slopes), ("twinFlats", flats)) if rows}


def _highest(peaks: Iterable[float]) -> float | None:
    return max(peaks, default=None)


def _slope(peak: float, top: float | None) -> Row:
    return {"v": rounded(peak), "e": rounded(top)}


def _flat(peak: float, steepest: float | None) -> Row:
    return {"v": rounded(peak), "c": rounded(peak / steepest) if steepest else None}
