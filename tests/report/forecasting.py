"""Forecasts for the tests of their page, and their planes."""

from __future__ import annotations

from rooflens.model.predict.forecast import ForecastRow, swept
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.options import Options
from rooflens.model.roofline.datasheets import load_datasheets
from rooflens.report.forecast.plane import planes
from rooflens.report.plane.simple import Drawn

GPUS = {gpu.id: gpu for gpu in load_datasheets()}
SQUARE = {"m": "n", "k": "n", "n": "128:8192:x2"}


def row(
    name: str, dtype: str = "bf16", gpu: str = "h100-sxm", measured_ms: float | None = None, **sizes: str
) -> ForecastRow:
    """Predict an operation; omitted sizes have their defaults."""
    usual = {size.name: str(size.default) for size in OPERATIONS[name].sizes if size.default is not None}
    options = Options(measured_ms=measured_ms)
    return swept(OPERATIONS[name], {**usual, **sizes}, dtype, GPUS[gpu], options)


def plane(one: ForecastRow) -> Drawn:
    """Place one row."""
    (found,) = planes([one])
    return found
