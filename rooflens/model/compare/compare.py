"""Two sides of one program, before and after: what became of each kernel, and whether the change is more than noise.

A side has one recording or several of the same program. Several give a median and a range; a change counts when the
ranges of both sides are disjoint and the medians differ by more than a threshold, which is wider for grids that do not
fill the GPU once, and by more time than a floor, where one is set. `Timing.outcome` decides that, for sentences and
gates alike. With one recording on a side there is a factor, but no judgement.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import duration
from rooflens.model.compare.matching import How, Match, match_launches
from rooflens.model.records import Analysis, AnalyzedReport, Kernel, Run, at_work
from rooflens.model.same_work import Asked, WorkMatch, named_alike, same_work
from rooflens.model.summary import median_launch
from rooflens.model.verdict.collecting import split_command
from rooflens.model.verdict.thresholds import default_thresholds

Recording = Sequence[Analysis]
Look = tuple[str, tuple[int, ...] | None, tuple[int, ...] | None]

Outcome = Literal["faster", "slower", "same", "single", "unknown"]


_SIZE = re.compile(r"\d+")
_NAMED_SIZE = re.compile(r"(?:(?<=[-_. ])|\A)(n|m|size|seq|len|ctx|batch)[-_=]?(\d{2,})(?=[-_. ]|\Z)", re.IGNORECASE)
"""A size in the name of a file: N4096, batch_32."""

_LEAST_SIZE = 16
"""A smaller number on a command line names a version or counts something as often as it is a size."""

AS_FAST = 0.005
"""A factor nearer to 1 than this would be written as 1.00."""

DEFAULT_THRESHOLD = 0.03
"""A change of less than this is none, whatever the ranges say: clocks and boards differ by as much."""

UNDER_WAVE_FACTOR = 2.0
"""How much wider the threshold is for grids below one wave: no other block makes up for one that waits. In the
published reports equal launches spread by 1.3 % of their time there, and by 0.2 % elsewhere, in the median of three and
six kernels (`benchmarks/noise_gate.py --reports`); twice is chosen, not measured."""

_HOW_ORDER: tuple[How, ...] = ("same", "re-tiled", "renamed", "gone", "new")


class Spread(Struct, frozen=True):
    """GPU time of something in each recording of one side, in nanoseconds; empty if it was never measured."""

    times_ns: tuple[float, ...]

    @property
    def median_ns(self) -> float | None:
        """Median over the recordings."""
        return median(self.times_ns) if self.times_ns else None

    @property
    def words(self) -> str:
        """The median, with its ends where there are several samples: `1.00 ms [0.98 ms, 1.1 ms]`."""
        if not self.times_ns:
            return "-"
        ends = f" [{duration(self.low_ns)}, {duration(self.high_ns)}]" if len(self.times_ns) > 1 else ""
        return f"{duration(self.median_ns)}{ends}"

    def per(self, launches: int) -> Spread:
        """Return the mean duration of a launch in each recording, given the number of launches."""
        return Spread(tuple(time_ns / launches for time_ns in self.times_ns) if launches else ())

    def of(self, launches: int) -> Spread:
        """Scale the times of one launch, one per recording, to `launches` launches."""
        return Spread(tuple(time_ns * launches for time_ns in self.times_ns))

    @property
    def low_ns(self) -> float | None:
        """Shortest recording."""
        return min(self.times_ns, default=None)

    @property
    def high_ns(self) -> float | None:
        """Longest recording."""
        return max(self.times_ns, default=None)


class Timing(Struct, frozen=True):
    """The time of something on both sides.

    Attributes:
        under_wave: Part of the base's time that is in grids below one wave, 0 to 1.
        apart: Why the times are not compared, such as other work; empty if they are.
    """

    base: Spread
    head: Spread
    under_wave: float = 0.0
    apart: str = ""

    @property
    def factor(self) -> float | None:
        """Base over head: above 1 is faster; None if a side has no time, or the times are not compared."""
        if self.apart:
            return None
        before, after = self.base.median_ns, self.head.median_ns
        return before / after if before and after else None

    @property
    def change(self) -> float | None:
        """Head over base, minus 1: +0.05 takes 5 % longer; None as for `factor`."""
        if self.apart:
            return None
        before, after = self.base.median_ns, self.head.median_ns
        return after / before - 1 if before and after is not None else None

    @property
    def lost_ns(self) -> float:
        """Time of head minus base in ns; a kernel that one side lacks counts 0 there."""
        return (self.head.median_ns or 0.0) - (self.base.median_ns or 0.0)

    @property
    def is_single(self) -> bool:
        """True when either side has one recording: no noise is known then."""
        return min(len(self.base.times_ns), len(self.head.times_ns)) == 1

    @property
    def runs(self) -> str:
        """Say which side has a single run: `1 run each`, `1 run before`; empty where each has several, or one none."""
        counts = len(self.base.times_ns), len(self.head.times_ns)
        if min(counts) != 1:
            return ""
        return "1 run each" if max(counts) == 1 else "1 run before" if counts[0] == 1 else "1 run after"

    def limit(self, threshold: float) -> float:
        """Widen a threshold by the part of the time that is in grids below one wave."""
        return threshold * (1 + (UNDER_WAVE_FACTOR - 1) * self.under_wave)

    def is_unchanged(self, threshold: float) -> bool:
        """Return whether the medians are so near that nobody needs to know of noise; False if a side has no time."""
        return self.change is not None and abs(self.change) <= self.limit(threshold)

    @property
    def is_apart(self) -> bool:
        """True where the ranges of both sides do not meet; False if a side has no time."""
        before, after = self.base.times_ns, self.head.times_ns
        return bool(before and after) and (min(after) > max(before) or max(after) < min(before))

    def outcome(self, threshold: float = DEFAULT_THRESHOLD, floor_ns: float = 0.0) -> Outcome:
        """Judge the change: ranges disjoint, and medians apart by more than the threshold's limit and the floor.

        Args:
            threshold: Part of the time, 0.03 for 3 %, before it is widened.
            floor_ns: Time in nanoseconds.
        """
        if self.change is None:
            return "unknown"
        if self.is_single:
            return "single"
        is_large = abs(self.change) > self.limit(threshold) and abs(self.lost_ns) > floor_ns
        if not (self.is_apart and is_large):
            return "same"
        return "slower" if self.change > 0 else "faster"


class Side(Struct, frozen=True):
    """One side of a comparison.

    Attributes:
        label: What the user called it.
        reports: Its recordings of a program; at least one.
        is_named: It is one report, and the user named it to have it compared.
    """

    label: str
    reports: tuple[AnalyzedReport, ...]
    is_named: bool = False

    @property
    def runs(self) -> tuple[Run, ...]:
        """Provenance of each recording."""
        return tuple(report.run for report in self.reports)

    @property
    def digests(self) -> frozenset[str]:
        return frozenset(run.digest for run in self.runs)

    @property
    def recordings(self) -> tuple[tuple[Analysis, ...], ...]:
        """The analyses of each recording, in the order of their launches; failed ones included."""
        return tuple(report.analyses for report in self.reports)

    @property
    def at_work(self) -> list[Analysis]:
        """The analyses of all recordings, without those that failed or only fill inputs."""
        return [one for recording in self.recordings for one in at_work(recording)]

    @property
    def failed(self) -> list[Analysis]:
        """The launches of all recordings whose profiling failed."""
        return [one for recording in self.recordings for one in recording if one.kernel.failed]

    @property
    def set_up(self) -> list[Analysis]:
        """The launches of all recordings that only fill inputs, which nothing is compared with."""
        return [one for recording in self.recordings for one in recording if one.role == "fill"]


class Change(Struct, frozen=True):
    """The change of a kernel: all its launches, on both sides.

    Attributes:
        how: How its launches were matched: the weakest way among them.
        base: The median one of its launches; None for a new kernel.
        head: What became of that launch, else the median one of the other side; None for a kernel that is gone.
        launches: How many it had in a recording, on either side.
        timing: Its GPU time in each recording.
        work: Whether both sides did the same work; None if one side lacks the kernel.
    """

    how: How
    base: Analysis | None
    head: Analysis | None
    launches: tuple[int, int]
    timing: Timing
    work: WorkMatch | None = None

    @property
    def counts_differ(self) -> bool:
        """True where one side launched it more often than the other: its GPU time then says little of the kernel."""
        before, after = self.launches
        return self.base is not None and self.head is not None and before != after

    @property
    def mean_launch(self) -> Timing:
        """Time of its mean launch in each recording."""
        before, after = self.launches
        return replace(self.timing, base=self.timing.base.per(before), head=self.timing.head.per(after))

    @property
    def speed(self) -> Timing:
        """What tells how fast the kernel is: its GPU time, or that of its mean launch where launch counts differ."""
        return self.mean_launch if self.counts_differ else self.timing

    @property
    def name(self) -> str:
        """Its name after the change, or before where it is gone."""
        one = self.head or self.base
        return one.kernel.name if one else ""


def changes_between(base: Side, head: Side, work: WorkMatch | None = None) -> tuple[Change, ...]:
    """Match the kernels of two sides and time them, largest change of time first; each side has a recording.

    Args:
        base: The side before.
        head: The side after.
        work: What tells, by other versions of the program, that both did the same work; None without it.
    """
    base_parts, head_parts = _Parts(base.recordings), _Parts(head.recordings)
    first, second = base_parts.kernels, head_parts.kernels
    groups = _grouped(match_launches(first, second), first, second)
    changes = [_change(group, base_parts, head_parts, (base, head), work) for group in groups]
    return tuple(sorted(changes, key=lambda change: -abs(change.timing.lost_ns)))


def _grouped(matches: Iterable[Match], base: Sequence[Kernel], head: Sequence[Kernel]) -> list[list[Match]]:
    """Put the launches of each kernel together, by its names before and after.

    A launch without a partner belongs to its kernel where others of the same shape have one: it was launched more or
    less often. One of another shape is gone or new, for its time says nothing of the others.
    """
    groups: defaultdict[tuple[str | None, str | None], list[Match]] = defaultdict(list)
    before: dict[Look, tuple[str, str]] = {}
    after: dict[Look, tuple[str, str]] = {}
    alone = []
    for match in matches:
        if match.base is None or match.head is None:
            alone.append(match)
            continue
        one, other = base[match.base], head[match.head]
        names = one.name, other.name
        groups[names].append(match)
        before.setdefault(_look(one), names)
        after.setdefault(_look(other), names)
    for match in alone:
        if match.base is not None:
            kernel = base[match.base]
            groups[before.get(_look(kernel), (kernel.name, None))].append(match)
        elif match.head is not None:
            kernel = head[match.head]
            groups[after.get(_look(kernel), (None, kernel.name))].append(match)
    return list(groups.values())


def _look(kernel: Kernel) -> Look:
    return kernel.name, kernel.grid, kernel.block


class _Parts:
    """The launches of a side's recordings, found by their position in the first."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._recordings = [at_work(recording) for recording in recordings]
        self.kernels = [a.kernel for a in self._recordings[0]]
        self._places: list[dict[int, int]] = [
            {
                match.base: match.head
                for match in match_launches(self.kernels, [a.kernel for a in recording])
                if match.base is not None and match.head is not None
            }
            for recording in self._recordings[1:]
        ]

    def of(self, positions: Iterable[int | None]) -> list[list[Analysis]]:
        """Return the launches at positions of the first recording, for each recording that has all of them.

        A recording that lacks one would seem faster for it, and is left out.
        """
        wanted = [position for position in positions if position is not None]
        first, *others = self._recordings
        found = [[first[i] for i in wanted]]
        for recording, places in zip(others, self._places, strict=True):
            if all(i in places for i in wanted):
                found.append([recording[places[i]] for i in wanted])
        return found


def asked_alike(before: Run, after: Run) -> Asked | None:
    """Return whether two programs were given the same sizes; None if neither command lines nor names of files tell.

    Numbers below 16 choose a version or a count as often as a size: they tell nothing.
    """
    named = [dict(_NAMED_SIZE.findall(PurePath(run.source).name.lower())) for run in (before, after)]
    if any(named[0][name] != named[1][name] for name in named[0].keys() & named[1].keys()):
        return "other"
    split = [split_command(run.command_line) for run in (before, after)]
    if split[0] is None or split[1] is None:
        return None
    old, new = (one[1][1:] for one in split if one)
    sizes = [[int(number) for number in _SIZE.findall(" ".join(words)) if len(number) < 19] for words in (old, new)]
    if old == new:
        return "same" if max(sizes[0], default=0) >= _LEAST_SIZE else None
    changed = [pair for pair in zip(*sizes, strict=False) if pair[0] != pair[1]]
    if len(sizes[0]) == len(sizes[1]) and any(min(pair) >= _LEAST_SIZE for pair in changed):
        return "other"
    return None


def work_between(sides: tuple[Side, Side], before: Analysis, after: Analysis) -> WorkMatch:
    """Return whether two kernels did the same work on two sides.

    Where nothing tells, two reports that the user named are taken for the same: who blocks for registers has fewer
    threads, and wants to see the time. What was recorded still speaks against it, and other sizes or jobs in names do.
    """
    base, head = sides
    asked = asked_alike(base.runs[0], head.runs[0])
    work = same_work(before, after, asked)
    is_meant = base.is_named and head.is_named and asked != "other" and named_alike(before, after)
    return replace(work, assumed=True) if work.same is None and is_meant else work


def programs_apart(changes: Sequence[Change]) -> str:
    """Say why the times of two programs are not compared: their kernels did other work, or they share none."""
    both = [change for change in changes if change.base and change.head]
    replaced = is_replaced(change for change in changes if not (change.base and change.head))
    if changes and not both:
        return "" if replaced else "no kernel is on both sides"
    for side in ("base", "head"):
        whole_ns = sum(getattr(change.timing, side).median_ns or 0.0 for change in (changes if replaced else both))
        others = [change for change in both if change.timing.apart]
        other_ns = sum(getattr(change.timing, side).median_ns or 0.0 for change in others)
        if other_ns > default_thresholds().little_share * whole_ns:
            longest = max(others, key=lambda change: getattr(change.timing, side).median_ns or 0.0)
            return longest.timing.apart
    return ""


def is_replaced(changes: Iterable[Change]) -> bool:
    """Return whether the kernels that only the head has do the work of those that only the base has, by their FLOPs."""
    gone = new = 0.0
    for change in changes:
        one = change.base or change.head
        flop = (one.flop_total or 0.0) * sum(change.launches) if one else 0.0
        gone, new = (gone + flop * (change.head is None), new + flop * (change.base is None))
    return min(gone, new) > 0 and max(gone, new) <= (1 + default_thresholds().little_share) * min(gone, new)


def _change(
    group: Sequence[Match], base: _Parts, head: _Parts, sides: tuple[Side, Side], stated_work: WorkMatch | None
) -> Change:
    before, after = base.of(m.base for m in group), head.of(m.head for m in group)
    one, other = _represented(group, before[0], after[0])
    # Launches without a partner count only where all are.
    hows = [m.how for m in group if m.base is not None and m.head is not None] or [m.how for m in group]
    work = work_between(sides, one, other) if one and other else None
    if one and other and work and work.same is None and named_alike(one, other):
        work = stated_work or work
    return Change(
        how=max(hows, key=_HOW_ORDER.index),
        base=one,
        head=other,
        launches=(sum(a.launches for a in before[0]), sum(a.launches for a in after[0])),
        timing=Timing(
            Spread(times(before)),
            Spread(times(after)),
            under_wave([a for recording in (before if any(before) else after) for a in recording]),
            work.why if work and not work.is_compared else "",
        ),
        work=work,
    )


def _represented(
    group: Sequence[Match], before: Recording, after: Recording
) -> tuple[Analysis | None, Analysis | None]:
    """Return a kernel's median launch and what became of it: launches of one kernel may do different work.

    Args:
        group: The matches of its launches.
        before: Those that have a base, in the order of the matches.
        after: Those that have a head.
    """
    if not before or not after:
        return median_launch(before) if before else None, median_launch(after) if after else None
    one = median_launch(before)
    place = next(i for i, analysis in enumerate(before) if analysis is one)
    match = [m for m in group if m.base is not None][place]
    if match.head is None:
        return one, median_launch(after)
    return one, after[[m for m in group if m.head is not None].index(match)]


def added(spreads: Iterable[Spread]) -> Spread:
    """Add times sample by sample, as many as the shortest has."""
    return Spread(tuple(map(sum, zip(*(spread.times_ns for spread in spreads), strict=False))))


def times(recordings: Iterable[Recording]) -> tuple[float, ...]:
    """Add up the times of each recording; one with an untimed launch does not count."""
    sums = []
    for recording in recordings:
        times = [a.gpu_time_ns for a in recording]
        if times and all(time is not None for time in times):
            sums.append(sum(time for time in times if time is not None))
    return tuple(sums)


def under_wave(analyses: Sequence[Analysis]) -> float:
    """Return the part of the GPU time that is in grids below one wave; 0 where no times or no waves are known."""
    times = [(a.gpu_time_ns or 0.0, a.kernel.counters.get("waves")) for a in analyses]
    whole_ns = sum(time_ns for time_ns, _ in times)
    below_ns = sum(time_ns for time_ns, waves in times if waves is not None and waves < 1)
    return below_ns / whole_ns if whole_ns else 0.0
