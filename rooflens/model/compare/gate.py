"""The gate of a comparison: which differences fail a run of CI.

`Timing.outcome` decides, with the gate's limit and floor; everything that reports on a gate reads a `Gated`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import UsageError
from rooflens.format import count, duration, exact_duration, given_percent, plain_name
from rooflens.model.compare.compare import Change, Outcome, Timing
from rooflens.model.compare.ladder import Ladder

DEFAULT_FLOOR_NS = 2000.0
"""Time that must be lost at least: a launch itself costs some microseconds, and ncu's clock ticks every 32 ns, so that
two of them say little of a program (`benchmarks/noise_gate.py` has what equal launches differ by)."""

SINGLE_RUN_BAND = 0.1
"""Growth that fails a gate where a side has a single run: the noise is not known then, and equal programs that are
recorded once each differ by several per cent, but seldom by this much."""

_PER_CENT = re.compile(r"((?:\d+(?:\.\d+)?|\.\d+)(?:e-\d+)?)\s*(%?)")
_MOST_PER_CENT = 1000
_LEAST_BARE = 2
"""From here on a number without a sign is a percentage: nobody lets a program take three times as long."""
_UNITS_NS = {"": 1.0, "ns": 1.0, "us": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "ms": 1e6, "s": 1e9}
_THRESHOLD_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z\u00b5\u03bc]*)")


def parse_floor(text: str) -> float:
    """Read a time with its unit as nanoseconds: `2us`, `0.5 ms`, `800ns`; `0` needs no unit.

    Raises:
        UsageError: It is not a time with its unit.
    """
    match = _THRESHOLD_TIME.fullmatch(text.strip().casefold())
    value = float(match[1]) * _UNITS_NS.get(match[2], -1.0) if match else -1.0
    if match is None or value < 0 or (value > 0 and not match[2]):
        raise UsageError(f"a floor is a time with its unit, not `{text}`", "for example `2us`, `500ns`, `0`")
    return value


def parse_per_cent(given: float | str, name: str) -> float:
    """Read a limit, from the command line and in Python alike.

    `5%` is a percentage. A bare number below 1 is the fraction itself (0.05 is 5 %, 0.5 is 50 %), and from 2 on a
    percentage (5 is 5 %); between them it may be either, and is refused.

    Returns:
        The fraction.

    Raises:
        UsageError: It is no such number, or may be either.
    """
    match = None if isinstance(given, bool) else _PER_CENT.fullmatch(str(given).strip())
    if match is None or float(match[1]) > _MOST_PER_CENT:
        raise UsageError(f"{name} takes a percentage, not `{given}`", "for example `5%`, or the fraction 0.05")
    number, has_sign = float(match[1]), bool(match[2])
    if not has_sign and 1 <= number < _LEAST_BARE:
        hint = f"`{number:g}%` is {number:g} per cent; a bare number below 1 is a fraction: 0.05 is 5 %"
        raise UsageError(f"{name} of `{given}` may be {number:g} % or {number * 100:g} %", hint)
    return number if number < 1 and not has_sign else number / 100


class Judged(Struct, frozen=True):
    """The gate's judgement of one time, of a program or of a part of it.

    Attributes:
        kernel: The kernel, or the operator of a timeline; None for the whole program.
        outcome: `slower` fails.
        fail_on: The gate's limit for it as a fraction, widened where its grid is below one wave.
        floor_ns: Time that it must have lost to fail.
        left_out: Kernels of one side that the program's time is without, with their own time; empty if there is none.
        whole: What the time of the whole program is.
        is_mean: Its mean launch is judged, as one side launched it more often.
    """

    program: str
    kernel: str | None
    timing: Timing
    outcome: Outcome
    fail_on: float
    floor_ns: float
    left_out: str = ""
    whole: str = "GPU time"
    is_mean: bool = False

    @property
    def failed(self) -> bool:
        """True where it fails the gate: slower beyond noise, or, with a single run on a side, beyond the band."""
        return self._grew and self.timing.lost_ns > self.floor_ns

    @property
    def is_held_by_floor(self) -> bool:
        """True where it would fail the gate if it had lost more time than the floor."""
        return self._grew and self.timing.lost_ns <= self.floor_ns

    @property
    def _grew(self) -> bool:
        change = self.timing.change or 0.0
        if self.outcome == "single":
            return change > self.band
        return self.outcome in {"slower", "same"} and self.timing.is_apart and change > self.fail_on

    @property
    def band(self) -> float:
        """Growth that fails it with a single run on a side, as a fraction; no less than the gate's limit."""
        return max(self.fail_on, self.timing.limit(SINGLE_RUN_BAND))

    @property
    def _against_band(self) -> str:
        """Say whether a single run is within the band; nothing of one that is below the floor."""
        change, once = self.timing.change or 0.0, self.timing.limit(SINGLE_RUN_BAND)
        if self.failed:
            if self.band == once:
                return f", and beyond the {self._written(once)} that a single run may differ by"
            return f", and beyond the {self._written(self.band)} that the gate allows"
        if abs(change) <= once:
            return f", and within the {self._written(once)} it may differ by"
        return f", and within the {self._written(self.band)} that the gate allows" if change <= self.band else ""

    def _written(self, limit: float) -> str:
        """Write a limit, as it was given where grids below one wave widen it by less than half a per cent."""
        given = limit / self.timing.limit(1.0)
        return given_percent(round(100 * (given if limit - given < 0.005 else limit), 1))

    @property
    def is_faster(self) -> bool:
        """True where the head is faster, with a single run on a side by more than that may differ by."""
        is_beyond = (self.timing.change or 0.0) < -self.timing.limit(SINGLE_RUN_BAND)
        return self.outcome == "faster" or (self.outcome == "single" and is_beyond)

    @property
    def words(self) -> str:
        """Say by how much it grew: `triad: GPU time takes 12.0 % more (1.00 ms -> 1.12 ms)`."""
        name = self.whole if self.kernel is None else plain_name(self.kernel)
        name += " of the kernels on both sides" if self.left_out else ""
        mean = " (mean launch)" if self.is_mean else ""
        return f"{self.program}: {name}{mean} {growth_words(self.timing)}"

    @property
    def unjudged(self) -> str:
        """Say that it cannot be judged, and why."""
        return f"{self.program}: {self.reason}, so that the gate cannot judge it"

    @property
    def reason(self) -> str:
        """Say why the gate does not judge it, or lets it through although it grew; empty otherwise."""
        if self.is_held_by_floor:
            lost, floor = duration(self.timing.lost_ns), exact_duration(self.floor_ns)
            return f"the floor is the reason why this does not fail: {lost} lost, no more than the floor of {floor}"
        if self.outcome == "single":
            return f"a single run on a side{self._against_band}"
        if self.timing.apart:
            return self.timing.apart
        if self.outcome == "unknown":
            return "no total time on both sides" if self.kernel is None else "no time on both sides"
        change = self.timing.change or 0.0
        if self.failed or not self.timing.is_apart or change <= self.fail_on / self.timing.limit(1.0):
            return ""
        limit = given_percent(round(100 * self.fail_on, 1))
        return f"no more than {limit}, the limit where grids do not fill the GPU"


class Gated(Struct, frozen=True):
    """What a gate found.

    Attributes:
        judged: Each program's total, and its kernels where the gate judges them too.
    """

    gate: Gate
    judged: tuple[Judged, ...]

    @property
    def failed(self) -> bool:
        return any(one.failed for one in self.judged)

    @property
    def failures(self) -> list[str]:
        """Name what became slower by more than the gate allows and by more than its noise."""
        failed = (one for one in self.judged if one.failed)
        return [f"{one.words}: {one.reason}" if one.reason else one.words for one in failed]

    @property
    def excess(self) -> str:
        """Say what failures grew by more than, beside the limit: noise, or the band of a single run."""
        once = any(one.failed and one.outcome == "single" for one in self.judged)
        return f"more than noise{', or than the 10 % of a single run (20 % below one wave)' if once else ''}"

    @property
    def let_through(self) -> list[str]:
        """Name what grew by more than the gate's limit and its noise but is let through, with the reason."""
        known = (one for one in self.judged if one.reason and (one.outcome == "same" or one.is_held_by_floor))
        return [f"{one.words}: {one.reason}" for one in known]

    @property
    def is_held_by_floor(self) -> bool:
        """True where nothing fails, and something would without the floor."""
        return not self.failed and any(one.is_held_by_floor for one in self.judged)

    @property
    def left_out(self) -> list[str]:
        """Name the kernels that only one side of a program has, with their time: they never fail a gate."""
        return [f"{one.program}: {one.left_out}, not judged" for one in self.judged if one.left_out]

    @property
    def unjudged(self) -> list[str]:
        """Name the programs that the gate cannot judge, with the reason."""
        return [one.unjudged for one in self.unjudged_totals]

    @property
    def unjudged_totals(self) -> list[Judged]:
        """The totals that the gate cannot judge, and does not fail on."""
        totals = (one for one in self.judged if one.kernel is None and not one.failed)
        unknown = (one for one in totals if one.outcome in {"single", "unknown"})
        return [one for one in unknown if not one.is_faster and not one.is_held_by_floor]

    @property
    def word(self) -> str:
        """Say in a word how it ended: failed, holds, or not judged."""
        if self.failed:
            return "failed"
        totals = [one for one in self.judged if one.kernel is None]
        return "not judged" if len(self.unjudged) == len(totals) else "holds"


class Gate(Struct, frozen=True):
    """What fails a run of CI.

    Attributes:
        fail_on: Fraction that the time may grow by, 0.05 for 5 %; twice that for grids below one wave.
        per_kernel: Judge each kernel too, not only the total.
        floor_ns: Time that must be lost as well, over all launches that a recording holds.
    """

    fail_on: float
    per_kernel: bool = False
    floor_ns: float = DEFAULT_FLOOR_NS

    def judge(self, ladders: Iterable[Ladder]) -> Gated:
        """Judge what became slower from the first to the last side by more than the gate allows, and than its noise."""
        return Gated(self, tuple(judged for one in ladders for judged in self._judged_ladder(one.each[-1])))

    def _judged_ladder(self, ladder: Ladder) -> Iterator[Judged]:
        yield replace(self.judged(ladder.program, None, ladder.shared), left_out=unmatched_words(ladder.alone))
        for change in ladder.changes if self.per_kernel else ():
            # What the mean launch loses, each launch does: the floor is one for all of them.
            launches = min(change.launches) if change.counts_differ else 1
            found = self.judged(ladder.program, change.name, change.speed, launches)
            yield replace(found, is_mean=change.counts_differ)

    def judged(self, program: str, kernel: str | None, timing: Timing, launches: int = 1) -> Judged:
        """Judge the time of one launch of a program or kernel; `launches` share the gate's floor."""
        floor_ns = self.floor_ns / max(launches, 1)
        outcome = timing.outcome(self.fail_on, floor_ns)
        return Judged(program, kernel, timing, outcome, timing.limit(self.fail_on), floor_ns)


def unmatched_words(changes: Sequence[Change]) -> str:
    """Count what only one side has: `1 new kernel takes 1.20 ms, 2 gone kernels took 2.00 ms`; empty for nothing."""
    said = []
    for how, kernel, took, side in (("new", "new kernel", "take", "head"), ("gone", "gone kernel", "took", "base")):
        own = [getattr(change.timing, side).median_ns for change in changes if change.how == how]
        known = [time_ns for time_ns in own if time_ns is not None]
        verb = "takes" if took == "take" and len(own) == 1 else took
        times = duration(sum(known)) if len(known) == len(own) else "an unknown time"
        said += [f"{count(len(own), kernel)} {verb} {times}"] if own else []
    return ", ".join(said)


def growth_words(timing: Timing) -> str:
    """Say by how much a time grew: `takes 12.0 % more (1.00 ms -> 1.12 ms)`."""
    change = timing.change or 0.0
    more = "less" if change < 0 else "more"
    return f"takes {abs(change) * 100:.1f} % {more} ({timing.base.words} -> {timing.head.words})"
