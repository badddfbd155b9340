"""The gate of a comparison: which differences are to fail a run of CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.format import plain_name
from rooflens.model.compare.sentences import growth_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooflens.model.compare.compare import Comparison


class Gate(Struct, frozen=True):
    """What a run of CI is to fail on.

    Attributes:
        fail_on: Part that the time may grow by, 0.05 for 5 %.
        per_kernel: Judge each kernel too, not only the total.
    """

    fail_on: float
    per_kernel: bool = False

    def failures(self, compared: Iterable[Compared]) -> list[str]:
        """Name what became slower by more than the gate allows and more than its noise; never from a single run."""
        return [line for one in compared for line in self._of(one)]

    def _of(self, one: Compared) -> Iterator[str]:
        if one.comparison.total.outcome(self.fail_on) == "slower":
            yield f"{one.program}: GPU time {growth_words(one.comparison.total)}"
        for change in one.comparison.changes if self.per_kernel else ():
            if change.speed.outcome(self.fail_on) == "slower":
                launch = " (mean launch)" if change.counts_differ else ""
                yield f"{one.program}: {plain_name(change.name)}{launch} {growth_words(change.speed)}"


class Compared(Struct, frozen=True):
    """One program's comparison with what must be said beside it."""

    program: str
    comparison: Comparison
    warnings: tuple[str, ...] = ()

    @property
    def is_single(self) -> bool:
        """True when a side has one recording only."""
        return self.comparison.total.is_single
