"""Phases of a kernel's run by its series: ramp, plateau and tail, which an average over the run hides.

The plateau is the longest stretch in which one unit stays near its highest level. It says what limits a kernel
while the GPU is full; what comes after it is a tail, in which blocks run out.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from rooflens.model.records import RESIDENT, Phases, Series

_NEAR = 0.85
"""Samples from this part of the high level on are on the plateau: units flicker by a tenth within one phase."""
_DIP = 2
"""So many samples in a row below it do not end a plateau."""
_LEAST = 0.2
"""A stretch shorter than this part of the run is a peak and no plateau."""


class _Stretch(Struct, frozen=True):
    """Samples from `first` to `last`, with the mean share of the unit between them."""

    unit: str
    first: int
    last: int
    share: float

    @property
    def samples(self) -> int:
        return self.last - self.first + 1


def find_phases(series: Series | None) -> Phases | None:
    """Divide a run into its phases; None without a series, or where no unit holds a plateau."""
    if series is None:
        return None
    units = {unit: [value or 0.0 for value in share] for unit, share in series.shares.items() if unit != RESIDENT}
    stretches = [found for unit, share in units.items() if (found := _plateau(unit, share)) is not None]
    if not stretches:
        return None
    top = max(stretches, key=lambda stretch: stretch.share)
    count = len(units[top.unit])
    return Phases(
        resource=top.unit,
        share=top.share,
        ramp=top.first / count,
        plateau=top.samples / count,
        tail=(count - 1 - top.last) / count,
        warps_in_tail=_warps_in_tail(series, top),
    )


def _plateau(unit: str, share: Sequence[float]) -> _Stretch | None:
    """Find the longest stretch near the level that a tenth of the samples reach."""
    from statistics import mean, quantiles  # noqa: PLC0415 - few reports hold a course

    high = quantiles(share, n=10)[-1] if len(share) > 1 else 0.0
    if high <= 0:
        return None
    near = [i for i, value in enumerate(share) if value >= _NEAR * high]
    runs = [[near[0]]]
    for i in near[1:]:
        if i - runs[-1][-1] > _DIP + 1:
            runs.append([])
        runs[-1].append(i)
    longest = max(runs, key=lambda run: run[-1] - run[0])
    first, last = longest[0], longest[-1]
    found = _Stretch(unit, first, last, mean(share[first : last + 1]))
    return found if found.samples >= _LEAST * len(share) else None


def _warps_in_tail(series: Series, plateau: _Stretch) -> float | None:
    from statistics import mean  # noqa: PLC0415 - as above

    resident = series.shares.get(RESIDENT, ())
    full, after = (
        [value for value in part if value is not None]
        for part in (resident[plateau.first : plateau.last + 1], resident[plateau.last + 1 :])
    )
    return mean(after) / mean(full) if full and after and mean(full) else None
