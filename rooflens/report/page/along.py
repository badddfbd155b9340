"""The table of kernels along the roofline, predicted beside measured: on the page and on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rooflens import format as fmt
from rooflens.model.predict.along import Along, Origin, Spot, find_along
from rooflens.model.predict.measured import Checked
from rooflens.model.records import AnalyzedReport
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.page.cards.expectation import title_of

ORIGINS: Mapping[Origin, str] = {
    "calibrated": "as a calibration of this GPU measured them",
    "datasheet": "by the datasheet, at the profiled clock",
    "report": "as the report has them",
}

_HEAD = ("kernel", "FLOP/B", "predicted", "by", "measured", "of it", "FLOP/B measured", "limiter")
_TO_THE_LEFT = {0, 3, 7}


def peaks_text(one: Along) -> str:
    """Say which two roofs the prediction takes."""
    flop, moved = fmt.si(one.peaks.flop_per_s, "FLOP/s"), fmt.si(one.peaks.bytes_per_s, "B/s")
    ridge = fmt.intensity(one.peaks.ridge_flop_per_byte)
    return f"{resource_label(one.pipe)} {flop} and DRAM {moved}, {ORIGINS[one.peaks.origin]}; they meet at {ridge}"


def along_lines(checked: Sequence[Checked], reports: Sequence[AnalyzedReport]) -> tuple[str, ...]:
    """Write the tables for a terminal."""
    return tuple(line for one in find_along(checked, reports) for line in _lines(one))


def _lines(one: Along) -> list[str]:
    operation = one.spots[0].checked.prediction.operation
    rows = [_HEAD, *(_cells(spot) for spot in one.spots)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    head = f"{operation} predicted from {peaks_text(one)}:"
    return [head, *("  " + "  ".join(_padded(row, widths)).rstrip() for row in rows)]


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if at in _TO_THE_LEFT else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _cells(spot: Spot) -> tuple[str, ...]:
    limiter = spot.checked.measured.limiter
    return (
        title_of(spot.checked.prediction).partition(" ")[2],
        fmt.bare_intensity(spot.predicted_intensity),
        fmt.si(spot.predicted_flop_per_s, "FLOP/s"),
        spot.predicted_bound,
        fmt.si(spot.flop_per_s, "FLOP/s"),
        fmt.percent(spot.reached),
        fmt.bare_intensity(spot.intensity_flop_per_byte),
        limiter[0] if limiter else fmt.MISSING,
    )
