"""Metric tiers: what a collection asks ncu for, by chip, in the fewest replay passes.

The rows of `rooflens.model.counters` say in which tier a counter is asked for, in which forms, on which chips. `quick`
places a kernel under the DRAM roof, `standard` has all that the model uses, `deep` adds what explains it.
`rooflens.collect.passes` asks NVIDIA's scheduler what a tier costs, and a test holds the answers.

Standard library only: `collect` reads this on machines that have nothing else.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rooflens.errors import UnknownNameError
from rooflens.model.counters.chips import PM_SAMPLED, check_chip
from rooflens.model.counters.metric import DETAILS
from rooflens.model.counters.table import BESIDE, COUNTERS
from rooflens.model.counters.tensor import tensor_asks

if TYPE_CHECKING:
    from rooflens.model.counters.metric import Detail, Metric

NVIDIA_SECTIONS: dict[Detail, tuple[str, ...]] = {
    "quick": (),
    "standard": (),
    "deep": ("SpeedOfLight", "SpeedOfLight_RooflineChart", "Occupancy", "LaunchStats"),
}
"""ncu's own sections that a tier also asks for: its rules run only for them. Their counters are rows of `deep`."""

PM_SAMPLING = "PmSampling"
"""ncu's section of units sampled over time. Metric names differ by chip and version, so ncu chooses them, and the
sampling interval."""


def sections_for(chip: str, detail: Detail, *, pm_sampling: bool) -> tuple[str, ...]:
    """Return ncu's own sections that a tier asks for on one chip.

    Args:
        chip: The chip, as `gh100`.
        detail: The tier.
        pm_sampling: Whether this ncu can sample units over time.
    """
    sampled = pm_sampling and detail == "deep" and chip in PM_SAMPLED
    return (*NVIDIA_SECTIONS[detail], *((PM_SAMPLING,) if sampled else ()))


def metrics_for(chip: str, detail: str) -> tuple[Metric, ...]:
    """Return what a tier asks ncu for on one chip, by the exact names that this chip knows.

    Args:
        chip: The chip, as `gh100`.
        detail: The tier: quick, standard or deep. Each holds the one before.

    Raises:
        UsageError: No such chip, or no such tier.
    """
    if detail not in DETAILS:
        raise UnknownNameError("tier", detail, DETAILS)
    allowed = DETAILS[: DETAILS.index(detail) + 1]
    return tuple(metric for metric in _metrics_of(check_chip(chip)) if metric.detail in allowed)


def hardware_names(chip: str, detail: str) -> tuple[str, ...]:
    """Return the names of a tier that cost hardware passes; the scheduler knows these."""
    return tuple(metric.name for metric in metrics_for(chip, detail) if metric.kind == "hardware")


@cache
def _metrics_of(chip: str) -> tuple[Metric, ...]:
    asks = (*(ask for row in COUNTERS for ask in row.asks()), *BESIDE, *tensor_asks(chip))
    return tuple(metric for ask in asks for metric in ask.metrics(chip))
