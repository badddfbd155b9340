"""Metric tiers: the metrics that a collection requests from ncu, by chip, in the fewest replay passes.

The rows of `rooflens.model.counters` say which tier has a counter, in which forms, on which chips. `quick` places a
kernel under the DRAM roof, `standard` has everything that the model uses, `deep` adds metrics that explain it. The pass
counts of all tiers come from NVIDIA's scheduler (`rooflens.collect.passes`), and a test holds them.

Standard library only: `collect` uses this on machines with nothing else installed.
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
"""ncu's sections that a tier also requests: ncu runs its rules only for them. Their counters are rows of `deep`."""

PM_SAMPLING = "PmSampling"
"""ncu's section that samples units over time. Metric names differ by chip and version, so ncu chooses them and the
sampling interval."""


def sections_for(chip: str, detail: Detail, *, pm_sampling: bool) -> tuple[str, ...]:
    """Return ncu's sections that a tier requests on a chip.

    Args:
        chip: The chip, as `gh100`.
        detail: The tier.
        pm_sampling: Whether this ncu can sample units over time.
    """
    sampled = pm_sampling and detail == "deep" and chip in PM_SAMPLED
    return (*NVIDIA_SECTIONS[detail], *((PM_SAMPLING,) if sampled else ()))


def metrics_for(chip: str, detail: str) -> tuple[Metric, ...]:
    """Return the metrics that a tier requests on a chip, by the exact names that this chip knows.

    Args:
        chip: The chip, as `gh100`.
        detail: The tier: quick, standard or deep; each includes the previous tier.

    Raises:
        UsageError: The chip or the tier does not exist.
    """
    if detail not in DETAILS:
        raise UnknownNameError("tier", detail, DETAILS)
    allowed = DETAILS[: DETAILS.index(detail) + 1]
    return tuple(metric for metric in _metrics_of(check_chip(chip)) if metric.detail in allowed)


def hardware_names(chip: str, detail: str) -> tuple[str, ...]:
    """Return the names of a tier that cost hardware passes: those that the scheduler knows."""
    return tuple(metric.name for metric in metrics_for(chip, detail) if metric.kind == "hardware")


@cache
def _metrics_of(chip: str) -> tuple[Metric, ...]:
    asks = (*(ask for row in COUNTERS for ask in row.asks()), *BESIDE, *tensor_asks(chip))
    return tuple(metric for ask in asks for metric in ask.metrics(chip))
