"""The details page shows labels, not metric names: find the metric of a label by the unit it is printed in."""

from __future__ import annotations

import re

from rooflens.ingest.exports.units import Dimension, dimension_of
from rooflens.model.counters.labels import metrics_of

_METRIC = re.compile(r"[a-z][\w.:]*_[\w.:]*")
_LONGEST_LABEL = 300
_RATES = frozenset({"pct", "time", "byte/s", "hz"})


def metric_of(label: str, unit: str) -> str | None:
    """Return the metric of a details row; None if the label is unknown, or unknown in this unit.

    Rows printed for `--metrics` carry the metric's own name.
    """
    if len(label) > _LONGEST_LABEL:
        return None
    if "__" in label or _METRIC.fullmatch(label):
        return label
    measured = dimension_of(unit)
    return next((name for name in metrics_of(label) if _fits(name, measured)), None)


def _fits(metric: str, measured: Dimension | None) -> bool:
    """Return whether ncu could print a metric in a unit of this dimension."""
    expected = _dimension(metric)
    if expected is None:
        return measured not in _RATES
    return measured == expected or (measured is None and expected == "cycle")


def _dimension(metric: str) -> Dimension | None:
    """Return what a metric of the table measures; None if its name does not tell."""
    if metric.startswith("gpu__time") or metric.endswith("_time"):
        return "time"
    if "pct" in metric.rpartition(".")[2] or metric.endswith("_pct"):
        return "pct"
    if "register_spilling" in metric:
        return "byte"  # as the instruction statistics print it
    if metric.endswith(".per_second"):
        return "byte/s" if "__bytes" in metric else "hz"
    return "cycle" if "__cycles_" in metric or metric.endswith("_cycles") else None
