"""One program on more than two sides: each later side against the first, and every kernel over all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from rooflens.model.compare.compare import Change, Comparison, Spread, Timing
from rooflens.model.compare.gate import Compared
from rooflens.model.compare.pairing import Pair, Unpaired
from rooflens.model.records import Analysis
from rooflens.model.summary import median_launch


class Cell(Struct, frozen=True):
    """One kernel on one side.

    Attributes:
        spread: Its GPU time in each recording.
        launches: How many it had in a recording.
        analysis: Its median launch.
        under_wave: As in `Timing`; from the first side, or from this one where the first lacks the kernel.
    """

    spread: Spread
    launches: int
    analysis: Analysis
    under_wave: float = 0.0

    @property
    def mean_launch(self) -> Spread:
        """Time of its mean launch in each recording."""
        return self.spread.per(self.launches)


class AcrossRow(Struct, frozen=True):
    """One kernel over the sides; None where a side lacks it."""

    name: str
    cells: tuple[Cell | None, ...]

    @property
    def is_mean(self) -> bool:
        """True where launch counts differ between sides: mean launches are compared then."""
        return len({cell.launches for cell in self.cells if cell}) > 1

    def time_ns(self, side: int) -> float | None:
        """Return the median time on one side: of all its launches, or of the mean one where launch counts differ."""
        cell = self.cells[side]
        return self._spread(cell).median_ns if cell else None

    @property
    def speed(self) -> Timing | None:
        """The same time on the first side and on the last; None where one lacks it."""
        first, last = self.cells[0], self.cells[-1]
        return Timing(self._spread(first), self._spread(last), first.under_wave) if first and last else None

    @property
    def factor(self) -> float | None:
        """Time on the first side over that on the last: above 1 is faster; None where one lacks it or its time."""
        return self.speed.factor if self.speed else None

    def _spread(self, cell: Cell) -> Spread:
        return cell.mean_launch if self.is_mean else cell.spread


class Across(Struct, frozen=True):
    """A program over its sides; kernels by their longest time on any side, longest first.

    Attributes:
        labels: What the sides are called, the first one first.
        totals: GPU time of the whole program on each side.
        threshold: Smaller changes count as no change.
        under_wave: As in `Timing`, from the first side.
    """

    program: str
    labels: tuple[str, ...]
    totals: tuple[Spread, ...]
    rows: tuple[AcrossRow, ...]
    threshold: float
    under_wave: float = 0.0

    @property
    def total(self) -> Timing:
        """GPU time on the first side and on the last."""
        return Timing(self.totals[0], self.totals[-1], self.under_wave)


class Sides(Struct, frozen=True):
    """What concerns all sides together, besides each pair of them.

    Attributes:
        across: Each program over its sides; empty where there are two.
        unpaired: Programs that not every side has.
    """

    across: tuple[Across, ...] = ()
    unpaired: tuple[Unpaired, ...] = ()


TWO = Sides()
"""Two sides with the same programs: their pairs say everything."""


def set_across(pairs: Sequence[Pair], compared: Sequence[Compared]) -> Iterator[Across]:
    """Set the sides of each program that has more than two side by side."""
    found: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for i, pair in enumerate(pairs):
        found[pair.base.digests].append(i)
    for of in found.values():
        if len(of) > 1:
            names = dict.fromkeys(pairs[i].program for i in of)
            name = next(iter(names)) if len(names) == 1 else pairs[of[0]].base.label
            labels = (pairs[of[0]].base.label, *(pairs[i].head.label for i in of))
            yield across(name, labels, [compared[i].comparison for i in of])


def across(program: str, labels: Sequence[str], comparisons: Sequence[Comparison]) -> Across:
    """Set the sides of a program side by side.

    Args:
        program: Its name.
        labels: Name of the first side, then of each later one.
        comparisons: Each later side against the first; all have the same base.

    A kernel is followed under its name on the first side; one that the first side lacks, under its own.
    """
    rows: defaultdict[str, list[list[Change]]] = defaultdict(lambda: [[] for _ in comparisons])
    for side, comparison in enumerate(comparisons):
        for change in comparison.changes:
            name = change.base.kernel.name if change.base else change.name
            rows[name][side].append(change)
    found = (AcrossRow(name, (_before(changes), *map(_after, changes))) for name, changes in rows.items())
    return Across(
        program=program,
        labels=tuple(labels),
        totals=(comparisons[0].total.base, *(comparison.total.head for comparison in comparisons)),
        rows=tuple(sorted(found, key=lambda row: -max(cell.spread.median_ns or 0.0 for cell in row.cells if cell))),
        threshold=comparisons[0].threshold,
        under_wave=comparisons[0].total.under_wave,
    )


def _before(sides: Sequence[Sequence[Change]]) -> Cell | None:
    """Take the first side from a comparison that has the kernel: all of them have the same base."""
    changes = next((with_base for found in sides if (with_base := [one for one in found if one.base])), [])
    return _cell([(one.timing, one.timing.base, one.launches[0], one.base) for one in changes if one.base])


def _after(changes: Sequence[Change]) -> Cell | None:
    return _cell([(one.timing, one.timing.head, one.launches[1], one.head) for one in changes if one.head])


def _cell(parts: Sequence[tuple[Timing, Spread, int, Analysis]]) -> Cell | None:
    """Add up what a kernel became: one of the first side may go on under several names."""
    if not parts:
        return None
    spreads = [spread.times_ns for _, spread, _, _ in parts]
    whole = len({len(times) for times in spreads}) == 1
    return Cell(
        spread=Spread(tuple(map(sum, zip(*spreads, strict=True))) if whole else ()),
        launches=sum(launches for _, _, launches, _ in parts),
        analysis=median_launch([analysis for _, _, _, analysis in parts]),
        under_wave=max(timing.under_wave for timing, _, _, _ in parts),
    )
