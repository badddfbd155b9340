"""Kernels along the roofline: the FLOP/s that each should reach at its intensity, and what it reached.

The peaks are those of a calibration of this GPU where there is one, else the datasheet's at the profiled clock, else
those of the report itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from rooflens.model.predict.measured import Checked, published_peak
from rooflens.model.records import Analysis, AnalyzedReport, ratio, timed
from rooflens.model.roofline.datasheets import datasheet_of

Origin = Literal["calibrated", "datasheet", "report"]


class Peaks(Struct, frozen=True):
    """The two roofs behind a prediction."""

    flop_per_s: float
    bytes_per_s: float
    origin: Origin

    @property
    def ridge_flop_per_byte(self) -> float:
        """Intensity where the two roofs meet."""
        return self.flop_per_s / self.bytes_per_s


class Spot(Struct, frozen=True):
    """One kernel: `predicted_*` by formula and peaks, the other numbers measured.

    Attributes:
        predicted_bound: Which roof is lower at its intensity.
    """

    checked: Checked
    predicted_intensity: float
    predicted_flop_per_s: float
    predicted_bound: Literal["memory", "compute"]

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """FLOP over bytes at DRAM; None if either was not counted."""
        return self.checked.measured.intensity_flop_per_byte

    @property
    def flop_per_s(self) -> float | None:
        """FLOP over time; None if either is unknown."""
        return self.checked.measured.flop_per_s

    @property
    def reached(self) -> float | None:
        """Measured over predicted FLOP/s."""
        return ratio(self.flop_per_s, self.predicted_flop_per_s)


class Along(Struct, frozen=True):
    """The kernels of a report, sorted by predicted intensity."""

    digest: str
    gpu: str
    pipe: str
    peaks: Peaks
    spots: tuple[Spot, ...]


def find_along(checked: Sequence[Checked], reports: Iterable[AnalyzedReport]) -> tuple[Along, ...]:
    """Find reports whose workload has a formula for each of its kernels; skip those without peaks."""
    found = (_along(whole, checked, report) for report in reports for whole in checked if _is_whole_of(whole, report))
    return tuple(one for one in found if one is not None)


def _is_whole_of(checked: Checked, report: AnalyzedReport) -> bool:
    return checked.kernel is None and checked.digest == report.run.digest and bool(checked.prediction.parts)


def _along(whole: Checked, checked: Iterable[Checked], report: AnalyzedReport) -> Along | None:
    patterns = {rule.kernel for rule in whole.prediction.parts}
    mine = [one for one in checked if one.digest == whole.digest and one.kernel in patterns]
    analyses, pipe = timed(report.analyses), whole.prediction.dtype
    peaks = next(_peaks(analyses, pipe), None)
    spots = [spot for one in mine if peaks is not None and (spot := _spot(one, peaks)) is not None]
    if peaks is None or not spots:
        return None
    ordered = sorted(spots, key=lambda spot: spot.predicted_intensity)
    return Along(whole.digest, analyses[0].kernel.gpu or "", pipe, peaks, tuple(ordered))


def _spot(checked: Checked, peaks: Peaks) -> Spot | None:
    intensity = ratio(checked.prediction.flop, checked.prediction.moved_bytes)
    if not intensity:
        return None
    slope = intensity * peaks.bytes_per_s
    bound: Literal["memory", "compute"] = "memory" if slope < peaks.flop_per_s else "compute"
    return Spot(checked, intensity, min(slope, peaks.flop_per_s), bound)


def _peaks(analyses: Sequence[Analysis], pipe: str) -> Iterator[Peaks]:
    """Yield pairs of roofs, the most trusted first."""

    def highest(value_of: Callable[[Analysis], float | None]) -> float | None:
        return max((value for a in analyses if (value := value_of(a)) is not None), default=None)

    calibrated = (
        highest(lambda a: a.pipes[pipe].attainable_per_s if pipe in a.pipes else None),
        highest(lambda a: a.levels["dram"].attainable_per_s),
    )
    published = highest(lambda a: published_peak(a.kernel, pipe)), highest(_published_bandwidth)
    own = (
        highest(lambda a: a.pipes[pipe].peak_per_s if pipe in a.pipes else None),
        highest(lambda a: a.levels["dram"].peak_bytes_per_s),
    )
    offered: tuple[tuple[Origin, tuple[float | None, float | None]], ...] = (
        ("calibrated", calibrated),
        ("datasheet", published),
        ("report", own),
    )
    for origin, (flop_per_s, bytes_per_s) in offered:
        if flop_per_s and bytes_per_s:
            yield Peaks(flop_per_s, bytes_per_s, origin)


def _published_bandwidth(analysis: Analysis) -> float | None:
    gpu = datasheet_of(analysis.kernel.gpu)
    return None if gpu is None else gpu.dram_bandwidth.value
