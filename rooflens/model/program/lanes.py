"""When each stream ran what: the launches of a timeline as lanes to draw, in bounded memory.

They are collected while the events go by. As soon as there are more than fit, neighbours on a stream that lie within
some time are drawn as one; that time doubles until they fit. What is longer stays as it is.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.program.timeline import BusyEvent, KernelEvent

if TYPE_CHECKING:
    from rooflens.model.program.launches import Launches

MOST_MARKS = 40_000
"""Marks of all lanes of a timeline."""

MOST_LANES = 256
"""Streams with a lane of their own; further ones share the last."""

MOST_SPANS = 4_000
"""Ranges and modules of a timeline; where there are more, the innermost level is left out."""

MODULE = 3
"""The level of modules; those below are ranges, the outermost first."""

_COARSEST = 62


class Subject(NamedTuple):
    """What a mark shows that is no kernel: a copy, a memset or a graph.

    Attributes:
        kind: As in `BusyEvent`.
        name: What was copied where; None if the timeline does not say.
    """

    kind: str
    name: str | None


class Lane(Struct, frozen=True):
    """What ran on a stream, in columns, in the order in which it began.

    Attributes:
        device, stream: Its numbers.
        starts, lengths: Of each mark, in nanoseconds from the begin of the timeline.
        subjects: What it shows: the number of a kernel, or for anything else -1 minus the index of its subject; of
            several launches in one mark what took most of it.
        counts: Launches in it.
        busy: Their time, in nanoseconds: less than the length if there are gaps.
        numbers: All kernels that ran on it, of which a mark of several launches shows one.
    """

    device: int
    stream: int
    starts: array[int]
    lengths: array[int]
    subjects: array[int]
    counts: array[int]
    busy: array[int]
    numbers: frozenset[int] = frozenset()


class LaneSpan(NamedTuple):
    """A range or a module: from its first kernel to its last, as the GPU ran them.

    Attributes:
        level: How deep it is; `MODULE` for modules.
    """

    device: int
    level: int
    name: str
    start_ns: int
    end_ns: int


class TimelineLanes(Struct, frozen=True):
    """What to draw of a timeline.

    Attributes:
        lanes: By GPU and stream.
        spans: Ranges and modules, in the order in which they began.
        subjects: What marks show that are no kernels.
        begin_ns: What all times count from, on the clock of the timeline.
        launched_ns: When the first kernel began, which steps count from.
        wall_ns: From the first event to the end of the last.
        merged_ns: Launches within this time were merged; 0 if none were.
    """

    lanes: tuple[Lane, ...] = ()
    spans: tuple[LaneSpan, ...] = ()
    subjects: tuple[Subject, ...] = ()
    begin_ns: int = 0
    launched_ns: int = 0
    wall_ns: int = 0
    merged_ns: int = 0

    @property
    def marks(self) -> int:
        """How many marks there are."""
        return sum(len(one.starts) for one in self.lanes)

    def within(self, most: int) -> TimelineLanes:
        """Merge marks of lanes over longer and longer times, until at most `most` are left if that is possible."""
        merged_ns, lanes = self.merged_ns, self.lanes
        while sum(len(one.starts) for one in lanes) > most and merged_ns < 1 << _COARSEST:
            merged_ns = _coarser(merged_ns, self.wall_ns, most)
            lanes = tuple(_merged_lane(one, merged_ns) for one in self.lanes)
        return replace(self, lanes=lanes, merged_ns=merged_ns)


_Mark = tuple[int, int, int, int, int]
"""Start, length, subject, launches and busy time of a mark."""


class LaneCollector:
    """Collects the lanes of a timeline, whose events come in the order in which they begin."""

    def __init__(self, most: int = MOST_MARKS, steps: Container[str | None] = ()) -> None:
        """Begin with the names of steps, which are no ranges within them."""
        self._most = most
        self._tracks: dict[tuple[int, int], _Track] = {}
        self._subjects: defaultdict[Subject, int] = defaultdict(count().__next__)
        self._spans = _Spans(steps)
        self._launched_ns: int | None = None
        self._left = most
        self._merged_ns = 0
        self._begin_ns: int | None = None
        self._end_ns = 0

    def take(self, event: KernelEvent, number: int) -> None:
        """Add a launch of the kernel of a number."""
        if self._launched_ns is None:
            self._launched_ns = event.start_ns
        self._add_event(event, number)
        self._spans.take(event)

    def take_other(self, event: BusyEvent) -> None:
        """Add a copy, a memset or a graph."""
        known = len(self._subjects)
        subject = Subject(event.kind, event.name)
        if known >= MOST_LANES and subject not in self._subjects:
            subject = Subject(event.kind, None)
        self._add_event(event, -1 - self._subjects[subject])

    def _add_event(self, event: KernelEvent | BusyEvent, subject: int) -> None:
        start_ns, duration_ns = event.start_ns, event.duration_ns
        key = event.device, event.stream
        track = self._tracks.get(key)
        if track is None:
            track = self._track(key)
        if self._begin_ns is None:
            self._begin_ns = start_ns
        self._end_ns = max(self._end_ns, start_ns + duration_ns)
        if subject >= 0:
            track.numbers.add(subject)
        mark = start_ns, duration_ns, subject, 1, duration_ns
        if self._merged_ns and track.join(mark, self._merged_ns):
            return
        track.append(mark)
        self._left -= 1
        if self._left < 0:
            self._merge()

    def _track(self, key: tuple[int, int]) -> _Track:
        """Return the lane of a stream that has none yet."""
        if len(self._tracks) >= MOST_LANES:
            key = next(reversed(self._tracks))
            return self._tracks[key]
        return self._tracks.setdefault(key, _Track())

    def _merge(self) -> None:
        """Merge neighbours until half of the room is free again."""
        wall_ns = self._end_ns - (self._begin_ns or 0)
        while (marks := sum(len(one.starts) for one in self._tracks.values())) > self._most // 2:
            if self._merged_ns >= 1 << _COARSEST:
                break
            self._merged_ns = _coarser(self._merged_ns, wall_ns, self._most)
            for key, track in self._tracks.items():
                self._tracks[key] = _merged_track(track, self._merged_ns)
        self._left = max(self._most - marks, MOST_LANES)

    def lanes(self) -> TimelineLanes:
        """Return what there is to draw."""
        begin_ns = self._begin_ns or 0
        return TimelineLanes(
            lanes=tuple(
                Lane(
                    device,
                    stream,
                    array("q", (start - begin_ns for start in track.starts)),
                    track.lengths,
                    track.subjects,
                    track.counts,
                    track.busy,
                    frozenset(track.numbers),
                )
                for (device, stream), track in sorted(self._tracks.items(), key=lambda item: item[0])
            ),
            spans=tuple(self._spans.each(begin_ns)),
            subjects=tuple(self._subjects),
            begin_ns=begin_ns,
            launched_ns=max(0, (self._launched_ns or 0) - begin_ns),
            wall_ns=self._end_ns - begin_ns,
            merged_ns=self._merged_ns,
        )


def drawn(
    launches: Launches, others: Iterable[BusyEvent], rows: Sequence[int], steps: Container[str | None]
) -> TimelineLanes:
    """Draw a timeline, with the number of the kernel that each of the alike is of, and without the ranges of steps."""
    drawing = LaneCollector(steps=steps)
    for numbers, other in launches.beside(others):
        for number in numbers:
            drawing.take(launches[number], rows[launches.kinds[number]])
        if other is not None:
            drawing.take_other(other)
    return drawing.lanes()


class _Track:
    """The columns of a lane, and how long the subject of each mark ran."""

    def __init__(self) -> None:
        self.starts, self.lengths, self.busy = array("q"), array("q"), array("q")
        self.subjects, self.counts = array("i"), array("I")
        self.numbers: set[int] = set()
        self._longest = array("q")

    def append(self, mark: _Mark) -> None:
        """Add a mark."""
        start_ns, length_ns, subject, number, busy_ns = mark
        self.starts.append(start_ns)
        self.lengths.append(length_ns)
        self.subjects.append(subject)
        self.counts.append(number)
        self.busy.append(busy_ns)
        self._longest.append(busy_ns)

    def join(self, mark: _Mark, within_ns: int) -> bool:
        """Add launches to the last mark if both lie within a time; return whether they do."""
        start_ns, length_ns, subject, number, busy_ns = mark
        starts = self.starts
        if not starts:
            return False
        length = max(start_ns + length_ns - starts[-1], self.lengths[-1])
        if length > within_ns:
            return False
        self.lengths[-1] = length
        self.counts[-1] += number
        self.busy[-1] += busy_ns
        if subject == self.subjects[-1]:
            self._longest[-1] += busy_ns
        elif busy_ns > self._longest[-1]:
            self.subjects[-1], self._longest[-1] = subject, busy_ns
        return True


def _merged_track(some: _Track | Lane, within_ns: int) -> _Track:
    """Return the marks of a lane with neighbours merged that lie within a time."""
    found = _Track()
    for mark in zip(some.starts, some.lengths, some.subjects, some.counts, some.busy, strict=True):
        if not found.join(mark, within_ns):
            found.append(mark)
    found.numbers.update(some.numbers)
    return found


def _merged_lane(lane: Lane, within_ns: int) -> Lane:
    found = _merged_track(lane, within_ns)
    return Lane(
        lane.device, lane.stream, found.starts, found.lengths, found.subjects, found.counts, found.busy, lane.numbers
    )


def _coarser(merged_ns: int, wall_ns: int, most: int) -> int:
    """Return the next longer time within which launches are merged."""
    return 2 * merged_ns if merged_ns else max(1, wall_ns // most)


class _Open:
    """A range or module while kernels of it come."""

    __slots__ = ("device", "end_ns", "is_left", "level", "name", "start_ns")

    def __init__(self, device: int, level: int, name: str, start_ns: int) -> None:
        self.device, self.level, self.name, self.start_ns, self.end_ns = device, level, name, start_ns, start_ns
        self.is_left = False

    def is_of(self, level: int, name: str) -> bool:
        return self.level == level and self.name == name


class _Spans:
    """Follows the ranges and the module of each launch; a stream leaves one with its first launch outside of it."""

    def __init__(self, steps: Container[str | None]) -> None:
        self._steps = steps
        self._found: list[_Open] = []
        self._streams: dict[tuple[int, int], tuple[tuple[str | None, str | None], list[_Open]]] = {}
        self._levels = MODULE + 1

    def take(self, event: KernelEvent) -> None:
        """Add a launch."""
        place = event.nvtx_range, event.module
        key = event.device, event.stream
        known = self._streams.get(key)
        if known is None or known[0] != place:
            if known is None and len(self._streams) >= MOST_LANES:
                return
            known = self._streams[key] = place, self._enter(event, [] if known is None else known[1])
        end_ns = event.start_ns + event.duration_ns
        for one in known[1]:
            one.end_ns = max(one.end_ns, end_ns)

    def _enter(self, event: KernelEvent, before: list[_Open]) -> list[_Open]:
        """Return the ranges that a launch is in: those of its stream or of another one of its GPU, else new ones."""
        ranges = (event.nvtx_range or "").split("/")
        ranges = [one for one in ranges if one and one not in self._steps]
        names = dict(enumerate(ranges[:MODULE]))
        if event.module:
            names[MODULE] = event.module
        for one in before:
            one.is_left |= names.get(one.level) != one.name
        found: list[_Open] = []
        is_within = True
        for level, name in names.items():
            if level >= self._levels:
                continue
            known = self._open_range(event.device, level, name, before) if is_within or level == MODULE else None
            is_within = is_within and known is not None
            if known is None:
                known = _Open(event.device, level, name, event.start_ns)
                self._found.append(known)
            found.append(known)
        self._bound()
        return found

    def _open_range(self, device: int, level: int, name: str, before: list[_Open]) -> _Open | None:
        """Find a range that its stream is still in, else another stream."""
        own = next((one for one in before if one.is_of(level, name)), None)
        if own is not None:
            return own
        others = (opened for (other, _), (_, opened) in self._streams.items() if other == device)
        return next((one for some in others for one in some if one.is_of(level, name) and not one.is_left), None)

    def _bound(self) -> None:
        """Leave the innermost level out where there are too many."""
        while len(self._found) > MOST_SPANS and self._levels > 0:
            self._levels -= 1
            self._found = [one for one in self._found if one.level < self._levels]
            self._streams = {
                key: (place, [one for one in opened if one.level < self._levels])
                for key, (place, opened) in self._streams.items()
            }

    def each(self, begin_ns: int) -> Iterator[LaneSpan]:
        """Yield all of them in the order in which they began."""
        for one in self._found:
            yield LaneSpan(one.device, one.level, one.name, one.start_ns - begin_ns, one.end_ns - begin_ns)
