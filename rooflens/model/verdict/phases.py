"""Phases of a kernel's run by its series: ramp, plateau and tail, which an average over the run hides.

The plateau is the longest stretch in which one unit stays near its highest level. It says what limits a kernel
while the GPU is full; what comes after it is a tail, in which blocks run out.
"""

from __future__ import annotations

from collections.abc import Sequence

from rooflens.model.records import RESIDENT, Phases, Series
from rooflens.model.verdict.thresholds import default_thresholds

_DIP = 2
"""So many samples in a row below it do not end a plateau."""


def find_phases(series: Series | None) -> Phases | None:
    """Divide a run into its phases; None without a series, or where no unit holds a plateau."""
    if series is None:
        return None
    from statistics import mean  # noqa: PLC0415 - few reports hold a course

    units = {unit: [value or 0.0 for value in share] for unit, share in series.shares.items() if unit != RESIDENT}
    plateaus = {unit: plateau for unit, share in units.items() if (plateau := _plateau(share)) is not None}
    if not plateaus:
        return None
    means = {unit: mean(units[unit][first:end]) for unit, (first, end) in plateaus.items()}
    top = max(means, key=means.__getitem__)
    (first, end), count, resident = plateaus[top], len(units[top]), series.shares.get(RESIDENT, ())
    full, after = ([value for value in part if value is not None] for part in (resident[first:end], resident[end:]))
    return Phases(
        resource=top,
        share=means[top],
        ramp=first / count,
        plateau=(end - first) / count,
        tail=(count - end) / count,
        warps_in_tail=mean(after) / mean(full) if full and after and mean(full) else None,
    )


def _plateau(share: Sequence[float]) -> tuple[int, int] | None:
    """Find the longest stretch of samples near their 90th percentile; return its first sample and its end, excluded."""
    from statistics import quantiles  # noqa: PLC0415 - as above

    limits = default_thresholds()
    high = quantiles(share, n=10)[-1] if len(share) > 1 else 0.0
    if high <= 0:
        return None
    near = [i for i, value in enumerate(share) if value >= limits.plateau_share * high]
    runs = [[near[0]]]
    for i in near[1:]:
        if i - runs[-1][-1] > _DIP + 1:
            runs.append([])
        runs[-1].append(i)
    longest = max(runs, key=lambda run: run[-1] - run[0])
    first, end = longest[0], longest[-1] + 1
    return (first, end) if end - first >= limits.limiting_waste_share * len(share) else None
