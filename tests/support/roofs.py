"""Roofs as a report of its own gives them."""

from rooflens.model.records import Roof


def own_roof(value: float, unit: str = "FLOP") -> Roof:
    """Make the roof of a report that holds a peak and a clock."""
    return Roof(value, unit, "report", "profiled", "peak x f")
