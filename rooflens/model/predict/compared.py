"""Compare a measured amount with the predicted one, and judge a kernel by its time."""

from __future__ import annotations

from msgspec import Struct

from rooflens.format import duration, si, significant
from rooflens.model.predict.published import PublishedTimes
from rooflens.model.records import AttainedVerdict, FloorVerdict, PredictedQuantity, PredictedVerdict, ratio
from rooflens.model.verdict.thresholds import default_thresholds


class Compared(Struct, frozen=True):
    """One quantity, predicted and measured, in its unit.

    Attributes:
        name: What is compared; `floor` and `attainable` are predicted times.
        unit: `FLOP`, `op`, `B`, `FLOP/B` or `ns`.
        verdict: How the two compare, in a few words.
    """

    name: PredictedQuantity
    unit: str
    predicted: float
    measured: float | None
    verdict: PredictedVerdict

    @property
    def factor(self) -> float | None:
        """Measured over predicted; None if it was not measured."""
        return ratio(self.measured, self.predicted)


def compared_times(
    time_ns: float,
    floor_ns: float,
    published: PublishedTimes | None,
    without_dram_ns: float = 0.0,
    apart_ns: float | None = None,
) -> tuple[Compared, ...]:
    """Compare a measured time with the floor, and with published kernels if there are any.

    Args:
        time_ns: As measured.
        floor_ns: No kernel is faster from cold caches.
        published: What published kernels take.
        without_dram_ns: As for `against_floor`.
        apart_ns: The floor of a kernel for each step; None for an operation without steps.
    """
    rows = [Compared("floor", "ns", floor_ns, time_ns, against_floor(time_ns, floor_ns, without_dram_ns))]
    if apart_ns is not None:
        verdict = "fused" if time_ns < apart_ns else against_floor(time_ns, apart_ns)
        rows.append(Compared("separate", "ns", apart_ns, time_ns, verdict))
    if published is not None:
        attained = against_published(time_ns / 1e9, published)
        rows.append(Compared("attainable", "ns", published.typical_s * 1e9, time_ns, attained))
    return tuple(rows)


def against_floor(time_s: float, floor_s: float, without_dram_s: float = 0.0) -> FloorVerdict:
    """Judge a measured time by its floor.

    Args:
        time_s: As measured.
        floor_s: From cold caches.
        without_dram_s: The time that the work takes with all data in caches: nothing can be faster.
    """
    if time_s < without_dram_s:
        return "too fast"
    if time_s < floor_s:
        return "below the floor"
    return "near the floor" if time_s * default_thresholds().at_roof_share <= floor_s else "above the floor"


def against_published(time_s: float, published: PublishedTimes) -> AttainedVerdict:
    """Judge a measured time by those of published kernels."""
    if time_s > published.high_s:
        return "slower than most"
    return "slower than half" if time_s > published.typical_s else "faster than half"


def time_words(
    time_s: float,
    floor_s: float,
    published: PublishedTimes | None,
    without_dram_s: float = 0.0,
    clock_hz: float | None = None,
) -> str:
    """Compare a measured time with the floor and with published kernels, and say whether to stop."""
    taken = f"{duration(time_s * 1e9)} is {significant(time_s / floor_s)} times the floor"
    advice = time_advice(time_s, floor_s, published, without_dram_s, clock_hz)
    if time_s < floor_s:
        return f"{taken}{' from cold caches' if time_s >= without_dram_s else ''}: {advice}"
    if published is None:
        return taken
    rank = against_published(time_s, published).replace("most", "nearly all")
    times = significant(time_s / published.typical_s)
    return f"{taken} and {times} times the median of published kernels: {rank} of them; {advice}"


def time_advice(
    time_s: float,
    floor_s: float,
    published: PublishedTimes | None,
    without_dram_s: float = 0.0,
    clock_hz: float | None = None,
) -> str:
    """Say what to do about a measured time; empty above the floor if no kernel of the operation is published.

    Below the floor the reasons stand in the order of how often they are: a higher clock, data in L2, another type, less
    work. A clock does not help DRAM, and L2 does not help arithmetic.

    Args:
        time_s: As measured.
        floor_s: From cold caches.
        published: What published kernels take.
        without_dram_s: The time that the work takes with all data in caches.
        clock_hz: The highest clock that the floor allows for; None if the time is of a kernel whose clock is known.
    """
    verdict = against_floor(time_s, floor_s, without_dram_s)
    if verdict == "too fast":
        faster = f"the card ran above {si(clock_hz, 'Hz')}, " if clock_hz else ""
        kept = f"L2 is no reason, as it takes {duration(without_dram_s * 1e9)} with all data there"
        return f"{faster}{_NARROWER}, or it did less work than predicted; or the time is wrong ({kept})"
    if verdict == "below the floor":
        return f"L2 held some of its data, {_NARROWER}, or it did less work than predicted"
    if published is None:
        return ""
    return "stop here" if time_s <= published.typical_s else f"the best would take {duration(published.low_s * 1e9)}"


_NARROWER = "its operands or sums have a narrower type"
