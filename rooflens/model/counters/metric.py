"""A metric as ncu is asked for it, and the tiers of a collection. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from rooflens.model.counters.chips import EVERY_CHIP

Detail = Literal["quick", "standard", "deep"]
Kind = Literal["hardware", "sass", "sampling", "launch"]
"""Who counts: hardware counters (replay passes), patched code (one SASS pass), the warp sampler, or ncu itself."""

DETAILS: tuple[Detail, ...] = get_args(Detail)


@dataclass(frozen=True, slots=True)
class Metric:
    """One name to ask ncu for.

    Attributes:
        detail: The tier from which on this chip's collection holds it.
    """

    name: str
    kind: Kind
    meaning: str
    detail: Detail


PEAK, SHARE = "sum.peak_sustained", "sum.pct_of_peak_sustained_elapsed"
LOAD = ("sum", PEAK, SHARE)
"""The forms of an amount, its peak and its share: the last two cost no pass of their own."""
SPEED_OF_LIGHT = ("avg.pct_of_peak_sustained_elapsed",)
BARE = ("",)
SUM = ("sum",)

_FORM_MEANINGS = {PEAK: "{}: peak a cycle", SHARE: "{}: per cent of the peak"}


@dataclass(frozen=True, slots=True)
class Ask:
    """How to ask ncu for a metric. Fields that a row leaves empty come from its first recipe.

    Attributes:
        detail: The tier from which on it is collected.
        meaning: What the stored metric counts, where that is not what the row means.
        base: Name without roll-up.
        forms: Roll-ups and sub-metrics to ask for.
        chips: Where the metric exists.
        later: Chips on which it would cost its tier a pass: there it waits for `deep`.
        patched: Chips on which ncu patches the code to count it.
    """

    detail: Detail
    meaning: str = ""
    base: str = ""
    forms: tuple[str, ...] = ()
    chips: frozenset[str] = EVERY_CHIP
    later: frozenset[str] = frozenset()
    kind: Kind = "hardware"
    patched: frozenset[str] = frozenset()

    def metrics(self, chip: str) -> Iterator[Metric]:
        """Yield the metrics to ask for on one chip."""
        if chip not in self.chips:
            return
        detail: Detail = "deep" if chip in self.later else self.detail
        kind: Kind = "sass" if chip in self.patched else self.kind
        for form in self.forms:
            name = f"{self.base}.{form}" if form else self.base
            yield Metric(name, kind, _FORM_MEANINGS.get(form, "{}").format(self.meaning), detail)


QUICK, STANDARD, DEEP = ((Ask(detail),) for detail in DETAILS)
"""Asked for in a tier, as the row says, on every chip."""
LAUNCH = (Ask("quick", kind="launch"),)
SOURCE = (Ask("standard", kind="sass"),)
"""Counted by instruction in patched code: no hardware pass, whatever the chip."""
