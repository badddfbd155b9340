"""Find the steps of a program: marked by its own ranges, else repeated in the order of its kernels.

A step is what a program does again and again: an iteration of training, a batch of a server. PyTorch's profiler marks
them as `ProfilerStep#7`; other programs have a range whose name counts up (`step 7`), or one with an equal name each
time. Where no range does, the kernels of the busiest stream are looked at: if they repeat, a repetition is a step.
Nothing is guessed from times: a program that does not repeat has no steps.

On a GPU a step begins with the first kernel that was launched in it, and ends where the next begins; so steps add up to
the time from the first to the end of the last. Standard library only: machines that only collect read timelines, too.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from heapq import merge
from itertools import chain, compress, pairwise
from operator import add, itemgetter, ne, sub
from typing import TYPE_CHECKING, Any, Literal

from rooflens.model.program.launches import NO_STEP
from rooflens.model.program.occupancy import COMMUNICATION, COPY, GRAPH, KERNEL, UNKNOWN, TimelineOccupancy
from rooflens.model.program.timeline import BusyEvent, StepRange

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from rooflens.model.program.launches import Launches

StepsBy = Literal["ProfilerStep", "ranges", "repetition"]
"""How the steps of a program were found."""

_PROFILER = "ProfilerStep#"
_STEP_NUMBER = re.compile(r"\d{1,18}")
_NAMED_STEP = re.compile(r"(?<![a-z])(step|iter|iteration|batch)(?![a-z])", re.IGNORECASE)
_NO_STEP = re.compile(r"(Optimizer\.|enumerate\(DataLoader\)|nccl:)")
"""Ranges that PyTorch opens by itself: each is a part of a step."""

_LEAST_COVERED = 0.25
"""Ranges that cover less of the time between the first and the last are parts of something else."""

_NEAR_BEST = 0.5
"""Of ranges that cover at least this part of what the best ones do, those whose names tell of steps come first."""

_REPEATED = 0.9
"""So much of the sequence of kernels must repeat."""

_AS_GOOD = 0.002
"""Of periods that repeat as well as the best, within this, the shortest is one step; longer ones are several."""

_PERIODS_TRIED, _COMPARED = 64, 4096
"""Lengths of a step that are looked at, and launches that are compared before the next length is."""

Span = tuple[int, int, str]
"""Start, end and name of a range of the host, in nanoseconds."""


class StepRanges:
    """The ranges that mark the steps of a program, by the process that opened them."""

    def __init__(self, spans: Mapping[Any, Iterable[Span]]) -> None:
        """Choose them among all ranges of the host."""
        self._ranges = _marking(spans)
        self._starts = {process: [one.start_ns for one in ranges] for process, ranges in self._ranges.items()}

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def at(self, process: Hashable, moment_ns: int) -> StepRange | None:
        """Return the step in which a process is at a moment: what follows a range belongs to it, until the next."""
        ranges = self._ranges.get(process)
        if not ranges:
            return None
        place = bisect_right(self._starts[process], moment_ns) - 1
        if place < 0 or (place == len(ranges) - 1 and moment_ns > ranges[place].end_ns):
            return None
        return ranges[place]


def _marking(spans: Mapping[Any, Iterable[Span]]) -> dict[Hashable, tuple[StepRange, ...]]:
    """Find the family of ranges that marks steps: in each process one after the other, twice at least."""
    families: defaultdict[str, dict[Hashable, list[Span]]] = defaultdict(dict)
    for process, own in spans.items():
        for span in own:
            if not _NO_STEP.match(span[2]):
                for name in {span[2], _STEP_NUMBER.sub("*", span[2])}:
                    families[name].setdefault(process, []).append(span)
    found = [_Family(name, of) for name, of in families.items() if _is_in_turn(name, of)]
    if not found:
        return {}
    best_ns = max(one.covered_ns for one in found)
    near = [one for one in found if one.covered_ns >= _NEAR_BEST * best_ns or one.is_profilers]
    chosen = max(near, key=lambda one: (one.is_profilers, one.is_named, one.is_counted, one.covered_ns))
    return {
        process: tuple(StepRange(at, name, start, end) for at, (start, end, name) in enumerate(sorted(own)))
        for process, own in chosen.of.items()
    }


@dataclass(frozen=True, slots=True)
class _Family:
    """Ranges of one name, or of names that differ by their numbers alone."""

    name: str
    of: Mapping[Hashable, Sequence[Span]]

    @property
    def covered_ns(self) -> int:
        return sum(end - start for own in self.of.values() for start, end, _ in own)

    @property
    def is_profilers(self) -> bool:
        return self.name.startswith(_PROFILER)

    @property
    def is_named(self) -> bool:
        return _NAMED_STEP.search(self.name) is not None

    @property
    def is_counted(self) -> bool:
        return "*" in self.name


def _is_in_turn(name: str, of: Mapping[Hashable, Sequence[Span]]) -> bool:
    """Return whether ranges follow one another in every process, with numbers that grow if their names have any."""
    for own in of.values():
        if len(own) < 2:
            return False
        ordered = sorted(own)
        if any(later[0] < earlier[1] for earlier, later in pairwise(ordered)):
            return False
        if "*" in name:
            numbers = [tuple(map(int, _STEP_NUMBER.findall(text))) for _, _, text in ordered]
            if any(later <= earlier for earlier, later in pairwise(numbers)):
                return False
        covered = sum(end - start for start, end, _ in ordered)
        if covered < _LEAST_COVERED * (ordered[-1][1] - ordered[0][0]):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a program on its GPUs.

    Attributes:
        index: From 0.
        name: Of the range that marks it; None for a repetition.
        begin_ns, end_ns: From the first launch of the program: where its first kernel begins, and that of the next.
        kernel_ns: Times of its launches; those that overlap count in full.
        launches: How many.
        occupancy: What ran between begin and end, each instant counted once.
    """

    index: int
    name: str | None
    begin_ns: int
    end_ns: int
    kernel_ns: int
    launches: int
    occupancy: TimelineOccupancy

    @property
    def wall_ns(self) -> int:
        """From its begin to that of the next step; the last one ends with its kernels."""
        return self.end_ns - self.begin_ns

    @property
    def idle_ns(self) -> int:
        """The GPUs did nothing."""
        return self.occupancy.idle_ns


@dataclass(frozen=True, slots=True)
class RowSteps:
    """The launches of a row that belong to steps.

    Attributes:
        times_ns: Their time in each step.
        count: How many they are, in all steps.
    """

    times_ns: array[int]
    count: int

    @classmethod
    def summed(cls, rows: Sequence[RowSteps | None]) -> RowSteps | None:
        """Sum up rows of one program or of its ranks, step by step; None without rows, or if steps differ in number."""
        own = [one for one in rows if one is not None]
        if len({len(one.times_ns) for one in own}) != 1:
            return None
        times = zip(*(one.times_ns for one in own), strict=True)
        return cls(array("q", map(sum, times)), sum(one.count for one in own))


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a program.

    Attributes:
        by: How they were found; None if it has none.
        each: In their order.
        rows: The launches of each row in steps, by its index; empty without steps.
        outside_ns: Time of kernels that belong to no step, and do not wait for other GPUs, between the first and the
            end of the last.
        occupancy: What ran in all of them, each instant counted once; None without steps.
    """

    by: StepsBy | None
    each: tuple[Step, ...] = ()
    rows: tuple[RowSteps, ...] = ()
    outside_ns: int = 0
    occupancy: TimelineOccupancy | None = None


_LEVELS = 5
_CODE_OF_BUSY: Mapping[str, int] = {"copy": COPY, "memset": COPY, "graph": GRAPH, "unknown": UNKNOWN}


class Log:
    """When each launch of a program ran, on which stream, and of which row and step it is."""

    def __init__(self, launches: Launches, rows: Sequence[int]) -> None:
        """Take the launches, and the row of each of the alike."""
        self._starts, self._lanes, self._streams = launches.starts, launches.lanes, launches.streams
        self._ends = array("q", map(add, launches.starts, launches.durations))
        self._rows = array("i", map(rows.__getitem__, launches.kinds))
        numbers = [*(one.number for one in launches.step_ranges), NO_STEP]  # that of launches in no step is the last
        self._steps = array("i", map(numbers.__getitem__, launches.steps))
        self._named: dict[int, str] = {}
        for one in launches.step_ranges:
            self._named.setdefault(one.number, one.name)
        self._is_profilers = bool(self._named) and [*self._named.values()][-1].startswith(_PROFILER)

    def steps(self, row_names: Sequence[str], waiting: Sequence[bool], others: Iterable[BusyEvent]) -> Steps:
        """Find the steps.

        Args:
            row_names: The kernel of each row.
            waiting: Whether the kernels of each row wait for other GPUs.
            others: Copies and graphs, in the order in which they began; gone through twice.
        """
        found, by = self._steps, self._by_ranges()
        if by is None:
            found, by = self._by_repetition(row_names)
        return Steps(None) if by is None else self._summed_up(found, by, waiting, others)

    def _summed_up(self, steps: array[int], by: StepsBy, waiting: Sequence[bool], others: Iterable[BusyEvent]) -> Steps:
        """Sum up rows and steps."""
        # Launches are in the order in which they began: the first of a step is the last from behind.
        begins = dict.fromkeys(steps, 0) | dict(zip(reversed(steps), reversed(self._starts), strict=True))
        begins.pop(NO_STEP, None)
        last = max(compress(self._ends, map(NO_STEP.__ne__, steps)))
        ordered = {step: place for place, step in enumerate(sorted(begins, key=begins.__getitem__))}
        bounds = [*(begins[step] for step in ordered), last]
        times = [array("q", bytes(8 * len(ordered))) for _ in waiting]
        counts, kernels_ns, launches = [0] * len(waiting), [0] * len(ordered), [0] * len(ordered)
        outside_ns = 0
        for start, end, row, step in zip(self._starts, self._ends, self._rows, steps, strict=True):
            if step == NO_STEP:
                if not waiting[row]:
                    outside_ns += max(0, min(end, last) - max(start, bounds[0]))
                continue
            place = ordered[step]
            times[row][place] += end - start
            counts[row] += 1
            kernels_ns[place] += end - start
            launches[place] += 1
        occupancies = self._occupancies(bounds, waiting, others)
        began = self._starts[0]
        each = tuple(
            Step(
                place,
                self._named.get(step),
                begin - began,
                end - began,
                kernels_ns[place],
                launches[place],
                occupancy,
            )
            for (step, place), (begin, end), occupancy in zip(
                ordered.items(), pairwise(bounds), occupancies, strict=True
            )
        )
        rows = tuple(map(RowSteps, times, counts))
        return Steps(by, each, rows, outside_ns, _added(occupancies))

    def _windows(self, others: Iterable[BusyEvent]) -> dict[int, tuple[int, int]]:
        """Return when the first kernel or graph of each GPU began, and the last ended."""
        found: dict[int, tuple[int, int]] = {}
        devices = [device for device, _ in self._streams]
        of_lane: dict[int, list[int]] = {}
        for start, end, lane in zip(self._starts, self._ends, self._lanes, strict=True):
            known = of_lane.get(lane)
            if known is None:
                of_lane[lane] = [start, end]
            elif end > known[1]:
                known[1] = end
        kernels = ((start, end, devices[lane]) for lane, (start, end) in of_lane.items())
        graphs = (
            (one.start_ns, one.start_ns + one.duration_ns, one.device)
            for one in others
            if _CODE_OF_BUSY[one.kind] != COPY
        )
        for start, end, device in chain(kernels, graphs):
            first, last = found.get(device, (start, end))
            found[device] = min(first, start), max(last, end)
        return found

    def _occupancies(
        self, bounds: Sequence[int], waiting: Sequence[bool], others: Iterable[BusyEvent]
    ) -> list[TimelineOccupancy]:
        """Sum up what ran between each two consecutive moments."""
        kind_of = [COMMUNICATION if waits else KERNEL for waits in waiting]
        rest = [(one.start_ns, one.start_ns + one.duration_ns, one.device, _CODE_OF_BUSY[one.kind]) for one in others]
        kinds = {*kind_of, *(kind for *_, kind in rest)}
        meters = {device: _Meter(*window, kinds) for device, window in self._windows(others).items()}
        devices = [device for device, _ in self._streams]
        columns = zip(self._starts, self._ends, self._lanes, self._rows, strict=True)
        every = ((start, end, devices[lane], kind_of[row]) for start, end, lane, row in columns)
        if rest:
            every = merge(every, rest, key=itemgetter(0))
        read: list[tuple[int, ...]] = []
        left = iter(bounds)
        due = next(left, None)
        for start, end, device, kind in every:
            while due is not None and due <= start:
                read.append(_metered_at(meters.values(), due))
                due = next(left, None)
            if device in meters:
                meters[device].run(start, end, kind)
        while due is not None:
            read.append(_metered_at(meters.values(), due))
            due = next(left, None)
        return [
            TimelineOccupancy(*(after - before for before, after in zip(*both, strict=True))) for both in pairwise(read)
        ]

    def _by_ranges(self) -> StepsBy | None:
        """Say how ranges mark the steps; None if no two of them launched anything."""
        if len(self._named) < 2:
            return None
        return "ProfilerStep" if self._is_profilers else "ranges"

    def _by_repetition(self, row_names: Sequence[str]) -> tuple[array[int], StepsBy | None]:
        """Part the launches by what the busiest stream repeats."""
        steps = array("i", [NO_STEP]) * len(self._rows)
        if not self._rows:
            return steps, None
        busiest = Counter(self._lanes).most_common(1)[0][0]
        places = array("I", compress(range(len(self._lanes)), map(busiest.__eq__, self._lanes)))
        numbers: dict[str, int] = {}
        of_row = [numbers.setdefault(name, len(numbers)) for name in row_names]
        sequence = array("i", map(of_row.__getitem__, map(self._rows.__getitem__, places)))
        period = repeated(sequence)
        if period is None:
            return steps, None
        gaps = array("q", [0])
        gaps.extend(map(sub, map(self._starts.__getitem__, places[1:]), map(self._ends.__getitem__, places)))
        heads = _heads(sequence, period, gaps)
        if len(heads) < 2:
            return steps, None
        # The last one counts if it is whole: as long as the others.
        begins = [self._starts[places[head]] for head in heads]
        whole = len(sequence) - heads[-1] >= period
        stop = heads[-1] + period if whole else heads[-1]
        end_ns = self._starts[places[stop]] if stop < len(places) else None
        count = len(heads) if whole else len(heads) - 1
        if count < 2:
            return steps, None
        ends = [*begins[1:count], begins[count] if count < len(begins) else end_ns]
        for step, (begin, end) in enumerate(zip(begins, ends, strict=False)):
            first = bisect_left(self._starts, begin)
            stop = len(steps) if end is None else bisect_left(self._starts, end)
            steps[first:stop] = array("i", [step]) * (stop - first)
        return steps, "repetition"


class _Meter:
    """Measures how long a GPU was busy with what, up to any moment; what runs is added in the order of its start."""

    def __init__(self, first_ns: int, last_ns: int, kinds: Iterable[int]) -> None:
        """Begin with the first kernel; `kinds` are those that may run."""
        self._first_ns, self._last_ns = first_ns, last_ns
        self._reached = [first_ns] * _LEVELS
        self._busy = [0] * _LEVELS
        # Where nothing of a kind runs, it is reached when the one before it is.
        self._as = [max({KERNEL, *(one for one in kinds if one <= level)}) for level in range(_LEVELS)]
        own = sorted({*self._as})
        self._levels = [[level for level in own if level >= kind] for kind in range(_LEVELS)]

    def run(self, start_ns: int, end_ns: int, kind: int) -> None:
        """Add something; before the first kernel and after the last nothing counts."""
        end_ns = min(end_ns, self._last_ns)
        reached = self._reached
        for level in self._levels[kind]:
            if end_ns > reached[level]:
                self._busy[level] += end_ns - max(start_ns, reached[level])
                reached[level] = end_ns

    def at(self, moment_ns: int) -> tuple[int, ...]:
        """Return the time until a moment: all of it, what each kind alone was busy for, and the rest."""
        moment_ns = max(moment_ns, self._first_ns)
        wall_ns = min(moment_ns, self._last_ns) - self._first_ns
        until = [self._busy[level] - max(0, self._reached[level] - moment_ns) for level in self._as]
        return (wall_ns, until[0], *(later - earlier for earlier, later in pairwise((*until, wall_ns))))


def _metered_at(meters: Iterable[_Meter], moment_ns: int) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(meter.at(moment_ns) for meter in meters), strict=True)))


def _added(several: Iterable[TimelineOccupancy]) -> TimelineOccupancy:
    return TimelineOccupancy(*map(sum, zip(*several, strict=True)))


def repeated(sequence: Sequence[int]) -> int | None:
    """Return the length of what a sequence repeats, twice at least; None if it does not.

    A few elements may differ from one repetition to the next. Of lengths that repeat equally well it is the shortest.
    """
    rates = {period: _rate(sequence, period) for period in _periods(sequence)}
    best = max(rates.values(), default=0.0)
    if best < _REPEATED:
        return None
    return min(period for period, rate in rates.items() if rate >= best - _AS_GOOD)


def _periods(sequence: Sequence[int]) -> Iterator[int]:
    """Yield the lengths to try: how far equal elements are apart, the most common distances first, then rare ones."""
    rare = {one for one, _ in Counter(sequence).most_common()[: -_PERIODS_TRIED - 1 : -1]}
    last = dict.fromkeys(sequence, -len(sequence))
    distances = array("q")
    for place, one in enumerate(sequence):
        distances.append(place - last[one])
        last[one] = place
    for some in (distances, compress(distances, map(rare.__contains__, sequence))):
        counter = Counter(some)
        near = Counter({distance: number for distance, number in counter.items() if 2 * distance <= len(sequence)})
        yield from (distance for distance, _ in near.most_common(_PERIODS_TRIED))


def _rate(sequence: Sequence[int], period: int) -> float:
    """Return the share of items equal to the item one period earlier; 0 where so many differ that it is no step."""
    length = len(sequence) - period
    most = 2 * (1 - _REPEATED) * length
    differing = 0
    for begin in range(0, length, _COMPARED):
        end = min(begin + _COMPARED, length)
        differing += sum(map(ne, sequence[begin:end], sequence[begin + period : end + period]))
        if differing > most:
            return 0.0
    return (length - differing) / length


def _heads(sequence: Sequence[int], period: int, gaps: Sequence[int]) -> Sequence[int]:
    """Return where each repetition begins: at what comes once in each, after the longest wait of the GPU."""
    places: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
    for place, one in enumerate(sequence):
        places[one].append(place)
    once = [
        own
        for own in places.values()
        if len(own) > 1
        and sum(later - earlier == period for earlier, later in pairwise(own)) >= _REPEATED * (len(own) - 1)
    ]
    if not once:
        return []
    most = max(map(len, once))
    often = [own for own in once if len(own) >= _REPEATED * most]
    return max(often, key=lambda own: sum(gaps[place] for place in own) / len(own))
