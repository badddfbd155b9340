"""What a trace of the PyTorch profiler holds of kernels, and of the host that launched them, in columns.

Events come in any order, so all are kept to the end, some fifty bytes each; texts and calls that recur are kept once.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import count as counting
from math import prod
from typing import Any, NamedTuple

from msgspec import UNSET

from rooflens.format import bounded_name, count
from rooflens.ingest.timelines.budget import KEPT, NAME_CHARACTERS, TimelineBudget
from rooflens.ingest.timelines.events import Piece
from rooflens.ingest.timelines.kernel_events import LATEST_NS, MOST_BLOCKS, id_of, index_of, text_of
from rooflens.ingest.timelines.kineto import NO_ARGUMENTS, Arguments, Event, event_of, value_of
from rooflens.ingest.timelines.spans import NONE, Spans
from rooflens.model.program.timeline import LONG_CALL_NS, BusyEvent, BusyKind, CollectiveCall, waits_for_gpu

_OTHERS = ("gpu_memcpy", "gpu_memset", "memcpy", "memset")
_RUNTIME = ("cuda_runtime", "cuda_driver", "runtime")
_OPERATORS = ("cpu_op", "operator")
_MOST_CATEGORIES = 256

_MOST_TENSORS, _MOST_DIMENSIONS = 4096, 16
"""Limits of what one collective sends."""

_MODULE = "nn.Module: "
_TITLE = "nccl:"
_FRAME = re.compile(r"(?P<file>[^()<>;]+\.py)\((?P<line>\d+)\): ")
_LIBRARY = re.compile(r"(^|[/\\])(torch|python3(\.\d+)?)[/\\]")
_TEXTS_KEPT = 1 << 14

_MOST_NUMBERS, _NUMBERS_AHEAD = 8, 1 << 16
"""IDs up to so many times the launches, and some more, are held in a column: most calls of CUDA launch nothing."""

UNSEEN, SEVERAL = -1, -2
"""In place of a thread: no launch was seen yet, or several threads have one."""

BACKWARD = -2
"""A step that runs backward is this minus its number."""


Call = bytes
"""What an operator was called with, as the trace has it: sizes, types, strides and values of the arguments, and the GB
and FLOPs that a compiler counted, with a zero between them, which JSON has nowhere."""

BETWEEN = b"\0"


class OperatorFacts(NamedTuple):
    """What an operator says about the launches in it; None where it says nothing.

    Attributes:
        operator: Its name.
        call: Index of what it was called with; `NONE` if the trace does not say.
    """

    operator: str
    call: int
    generated: str | None = None
    hierarchy: str | None = None
    stack: str | None = None


class Kernels:
    """The kernels in columns, in the order of the file.

    Attributes:
        starts, durations: In nanoseconds.
        lanes, names, shapes: Indices of `streams`, of the trace's texts and of `sizes`.
        launches: Index of the launch; `NONE` if it has no ID.
        externals: ID of the operator around the launch; None if it has none, or the launch's own.
        collectives: Index of what it communicates; `NONE` if it does not say.
        streams: GPU and number of each stream.
        sizes: Each grid with each block, as the trace has them.
    """

    def __init__(self) -> None:
        self.starts, self.durations = array("q"), array("q")
        self.lanes, self.names, self.shapes = array("i"), array("i"), array("i")
        self.launches, self.externals = array("i"), Ids()
        self.collectives = array("i")
        self.streams: list[tuple[int, int]] = []
        self.sizes: list[tuple[Any, Any]] = []


class LaunchColumns:
    """The launches in columns: where the host was when it launched what has an ID.

    Attributes:
        threads: The thread, `UNSEEN` or `SEVERAL`: an ID used by several threads leads to none of them.
        starts, ends: When the call began and returned, in nanoseconds.
        graphs: Indices of those that launched a graph.
    """

    def __init__(self) -> None:
        # CUPTI numbers all calls of a process: a column of indices takes a twentieth of a dictionary's memory.
        self._of_number, self._of_others = array("i"), dict[Any, int]()
        self.threads, self.starts, self.ends = array("i"), array("q"), array("q")
        self.graphs = array("I")
        self._count = 0

    def places(self, keys: Iterable[Any]) -> list[int]:
        """Return the index of each of some IDs; `NONE` for what is none."""
        known = self._of_number
        found = [
            index if type(key) is int and 0 <= key < len(known) and (index := known[key]) != NONE else self._other(key)
            for key in keys
        ]
        if (lacking := self._count - len(self.threads)) > 0:
            self.threads.fromlist([UNSEEN] * lacking)
            self.starts.fromlist([0] * lacking)
            self.ends.fromlist([0] * lacking)
        return found

    def _other(self, key: Any) -> int:
        """Return the index of what is not in the column yet."""
        if id_of(key) is None:
            return NONE
        if (found := self._of_others.get(key)) is not None:
            return found
        index, self._count = self._count, self._count + 1
        if type(key) is int and 0 <= key < _MOST_NUMBERS * index + _NUMBERS_AHEAD:
            if (lacking := key + 1 - len(self._of_number)) > 0:
                self._of_number.fromlist([NONE] * max(lacking, _NUMBERS_AHEAD))
            self._of_number[key] = index
        else:
            self._of_others[key] = index
        return index

    def share_of_numbered(self, calls: int) -> float | None:
        """Return which part `calls` are of all calls that CUPTI numbered meanwhile; None where IDs do not tell.

        IDs that are in the column are dense by themselves.
        """
        numbers = [key for key in self._of_others if type(key) is int]
        if 2 * len(numbers) <= len(self.threads) or (numbered := max(numbers) - min(numbers)) <= 0:
            return None
        return min(1.0, calls / numbered)

    def forget_ids(self) -> None:
        """Forget which index belongs to which ID."""
        self._of_number = array("i")
        self._of_others.clear()

    def moments(self, places: Iterable[int]) -> array[int]:
        """Return the middles of some: a start may be rounded to that of the operator, or to the end of the last one."""
        starts, ends = self.starts, self.ends
        return array("q", ((starts[at] + ends[at]) // 2 for at in places))


class Ids:
    """IDs in a column: numbers of 64 bits, and whatever else is an ID beside them."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._others: dict[int, Any] = {}

    def extend(self, given: Sequence[Any]) -> None:
        """Add IDs; anything else than a number or a text is none."""
        numbers = [one if type(one) is int and NONE < one < LATEST_NS else NONE for one in given]
        if numbers.count(NONE) != given.count(None):
            others = enumerate(zip(given, numbers, strict=True), len(self._numbers))
            self._others |= {at: one for at, (one, number) in others if number == NONE and id_of(one) is not None}
        self._numbers.fromlist(numbers)

    def __getitem__(self, at: int) -> Any:
        """Return an ID; None where there is none."""
        number = self._numbers[at]
        return self._others.get(at) if number == NONE else number


class Operators(Spans):
    """The operators in columns.

    Attributes:
        steps: The number that links a forward step to its backward step; at the latter `BACKWARD` minus that; `NONE`.
        externals: Its ID.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.externals = array("q"), Ids()


class Texts(dict[str, int]):
    """The index of each text, which is cut to the length of a name.

    Attributes:
        each: The texts.
    """

    def __init__(self, budget: TimelineBudget) -> None:
        super().__init__()
        self._budget = budget
        self.each: list[str] = []

    def __missing__(self, given: str) -> int:
        """Keep another text, within the budget."""
        text = bounded_name(given)
        index = self.get(text)
        if index is None:
            self._budget.take(NAME_CHARACTERS, len(text))
            if text != given:
                self._budget.cut_names.add(text)
            index = self[text] = len(self.each)
            self.each.append(text)
        return index


class TraceColumns:
    """What a trace holds of kernels, and of the host where it may have launched them."""

    def __init__(self, budget: TimelineBudget) -> None:
        self._budget = budget
        self.kernels, self.launches, self.operators = Kernels(), LaunchColumns(), Operators()
        self.modules, self.frames, self.ranges, self.runtime = Spans(), Spans(), Spans(), Spans()
        self.communications, self.titles = Spans(), Spans()
        """Operators that say what they communicate, and ranges within these that say as much in old traces."""
        self.collectives: list[CollectiveCall] = []
        self.others: list[BusyEvent] = []
        self._text_indices = Texts(budget)
        self.texts = self._text_indices.each
        self.said: list[OperatorFacts] = []
        self.calls: list[Call] = []
        self.gpus: dict[int, str] = {}
        self.rank: int | None = None
        self.world_size: int | None = None
        self.event_count = 0
        self.is_synthetic = False
        self.calls_share: float | None = None
        self._is_cut = False
        self._call_count = 0
        self._untimed_count = 0
        self._kept_count = 0
        self._threads: dict[Any, int] = {}
        self.processes: list[Any] = []
        """The process of each thread."""
        self._lanes: dict[tuple[Any, Any], int] = {}
        self._sizes = defaultdict[Any, int](counting().__next__)
        self._said_indices: dict[Any, int] = {}
        self._call_indices: dict[Call, int] = {}
        self._collective_indices: dict[Any, int] = {}
        self._unwanted: list[Event] = []
        self._waiting: dict[str | None, list[Event]] = {}
        """Events of a part of the trace by category; those that are kept in one way share a list."""
        self._takers: list[tuple[list[Event], Callable[[Sequence[Event]], None]]] = []
        for categories, take in (
            (("kernel",), self._take_kernels),
            (("user_annotation",), self._take_ranges),
            (("python_function",), self._take_functions),
            (_RUNTIME, self._take_calls),
            (_OPERATORS, self._take_operators),
            (_OTHERS, self._take_others),
        ):
            events: list[Event] = []
            self._takers.append((events, take))
            self._waiting |= dict.fromkeys(categories, events)

    def take(self, piece: Piece) -> None:
        """Keep what is needed from a part of the trace."""
        if piece.key == "deviceProperties":
            self.gpus = _gpu_names(piece.value)
        if piece.key == "distributedInfo":
            self.rank, self.world_size = _rank(piece.value)
        self._is_cut |= piece.key == "cut"
        self.is_synthetic |= piece.key == "synthetic" and bool(piece.value)
        events = piece.events if piece.event is None else (event_of(piece.event),)
        waiting = self._waiting
        for event in events:
            try:
                waiting[event.cat].append(event)
            except KeyError:
                self._events_of(event.cat).append(event)
        for some, take in self._takers:
            if some:
                take(some)
                some.clear()
        self._unwanted.clear()
        self.event_count += len(events)
        self._budget.take(KEPT, self._kept_count)
        self._kept_count = 0

    @cached_property
    def says_more(self) -> bool:
        """Whether any operator says more than its name."""
        return any(one[2:] != (None, None, None) for one in self.said)

    def finish(self) -> None:
        """Forget what only helped to add events."""
        self.kernels.sizes = [*self._sizes]
        for lookup in (
            self._lanes,
            self._sizes,
            self._text_indices,
            self._said_indices,
            self._call_indices,
        ):
            lookup.clear()
        self._collective_indices.clear()
        self.calls_share = self.launches.share_of_numbered(self._call_count)
        self.launches.forget_ids()

    def forget_origins(self) -> None:
        """Forget what is asked for at launches alone: modules, collectives, and which operator has which ID."""
        self.modules, self.communications, self.titles = Spans(), Spans(), Spans()
        self.operators.externals = Ids()

    def notes(self) -> Iterator[str]:
        """Yield a sentence for everything unexpected."""
        if self._is_cut:
            yield "the trace does not end, as Chrome's format allows: it may have been cut"
        if self._untimed_count:
            yield f"left out {count(self._untimed_count, 'kernel event')} without a name or time"

    def _events_of(self, category: str | None) -> list[Event]:
        """Return the list of the events of a category in another spelling: old traces capitalise it."""
        events = self._waiting.get((category or "").lower(), self._unwanted)
        if len(self._waiting) < _MOST_CATEGORIES:
            self._waiting[category] = events
        return events

    def _take_calls(self, events: Sequence[Event]) -> None:
        """Keep calls of CUDA that launch something, wait, or take long; of a thread's with one ID the first."""
        self._call_count += len(events)
        timed = [one for one in events if one.ts is not None]
        kinds = [*map(_call_kind, [one.name or "" for one in timed])]
        long = [one for one, kind in zip(timed, kinds, strict=True) if kind.waits or one.dur >= LONG_CALL_NS]
        self._keep(self.runtime, long, self._indices_of_texts([one.name or "" for one in long]))
        launching = [(one, kind) for one, kind in zip(timed, kinds, strict=True) if kind.launches]
        each = [one for one, _ in launching]
        launches = self.launches
        threads, starts, ends = launches.threads, launches.starts, launches.ends
        places = launches.places([(one.args or NO_ARGUMENTS).correlation for one in each])
        for (event, kind), place, thread in zip(launching, places, self._threads_of(each), strict=True):
            if place == NONE:
                continue
            if (known := threads[place]) == UNSEEN:
                self._kept_count += 1
                threads[place], starts[place], ends[place] = thread, event.ts, event.ts + event.dur
                if kind.is_graph:
                    launches.graphs.append(place)
            elif known != thread:
                threads[place] = SEVERAL

    def _take_kernels(self, events: Sequence[Event]) -> None:
        timed = [one for one in events if one.ph == "X" and one.ts is not None and one.name]
        args = [one.args or NO_ARGUMENTS for one in timed]
        self._untimed_count += [one.ph for one in events].count("X") - len(timed)
        self._kept_count += len(timed)
        kernels = self.kernels
        kernels.starts.fromlist([one.ts for one in timed])
        kernels.durations.fromlist([one.dur for one in timed])
        kernels.lanes.fromlist(self._lanes_of(timed, args))
        kernels.names.fromlist(self._indices_of_texts([one.name or "" for one in timed]))
        kernels.shapes.fromlist([self._sizes[one.grid, one.block] for one in args])
        kernels.launches.fromlist(self.launches.places([one.correlation for one in args]))
        kernels.externals.extend([None if one.external == one.correlation else one.external for one in args])
        kernels.collectives.fromlist([NONE if one.collective is None else self._collective(one) for one in args])

    def _lanes_of(self, kernels: Sequence[Event], args: Sequence[Arguments]) -> list[int]:
        """Return the index of each kernel's stream."""
        every = [*zip(kernels, args, strict=True)]
        devices = [one.pid if own.device is UNSET else own.device for one, own in every]
        streams = [one.tid if own.stream is UNSET else own.stream for one, own in every]
        return _indices_of(devices, streams, self._lanes, self._lane)

    def _lane(self, device: Any, stream: Any) -> int:
        key = index_of(device), index_of(stream)
        lane = self._lanes.setdefault(key, len(self._lanes))
        if lane == len(self.kernels.streams):
            self.kernels.streams.append(key)
        return lane

    def _take_others(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.ts is None:
                continue
            self._kept_count += 1
            args = event.args or NO_ARGUMENTS
            device, stream = (0 if one is UNSET else index_of(one) for one in (args.device, args.stream))
            name = None if event.name is None else self._shared_text(event.name)
            launch = self.launches.places((args.correlation,))[0]
            kind: BusyKind = "memset" if "memset" in (event.cat or "").lower() else "copy"
            self.others.append(
                BusyEvent(event.ts, event.dur, device, stream, kind, name, _elements(args.moved_bytes), launch)
            )

    def _take_ranges(self, events: Sequence[Event]) -> None:
        named = [one for one in events if one.name is not None and one.ts is not None]
        self._keep(self.ranges, named, self._indices_of_texts([one.name or "" for one in named]))
        titled = [one for one in named if (one.name or "").startswith(_TITLE)]
        self._keep(self.titles, titled, [self._title(one.name or "", one.args or NO_ARGUMENTS) for one in titled])

    def _take_functions(self, events: Sequence[Event]) -> None:
        """Keep calls of modules, and of functions that are neither PyTorch's nor Python's."""
        timed = [one for one in events if one.ts is not None]
        functions = [*zip(timed, map(_own_function, [one.name or "" for one in timed]), strict=True)]
        for spans, is_module in ((self.modules, True), (self.frames, False)):
            own = [(one, said[1]) for one, said in functions if said and said[0] is is_module]
            self._keep(spans, [one for one, _ in own], self._indices_of_texts([name for _, name in own]))

    def _take_operators(self, events: Sequence[Event]) -> None:
        named = [one for one in events if one.name is not None and one.ts is not None]
        args = [one.args or NO_ARGUMENTS for one in named]
        self._keep(self.operators, named, [*map(self._say, [one.name or "" for one in named], args)])
        self.operators.steps.fromlist(
            [
                # Only what runs backward names the thread of its forward step.
                NONE
                if type(step := one.step) is not int or not 0 <= step < LATEST_NS
                else BACKWARD - step
                if one.forward
                else step
                for one in args
            ]
        )
        self.operators.externals.extend([one.external for one in args])
        sending = [(one, own) for one, own in zip(named, args, strict=True) if own.collective is not None]
        self._keep(self.communications, [one for one, _ in sending], [self._collective(own) for _, own in sending])

    def _keep(self, spans: Spans, events: Sequence[Event], facts: list[int]) -> None:
        """Keep events of the host, each with what it says."""
        self._kept_count += len(events)
        ends = [one.ts + one.dur for one in events]
        spans.extend(self._threads_of(events), [one.ts for one in events], ends, facts)

    def _say(self, name: str, args: Arguments) -> int:
        call = b""
        more: tuple[str | None, ...] = ()
        if args.types or args.num_gb:
            dims = args.dims or args.old_dims
            call = BETWEEN.join((dims, args.types, args.strides, args.values, args.num_gb, args.flop))
        if args.stack is not None or args.generated is not None or args.hierarchy is not None:
            more = text_of(args.generated) or None, text_of(args.hierarchy) or None, _user_frame_of(args.stack)
        key = name, call, more
        index = self._said_indices.get(key)
        if index is None:
            index = self._said_indices[key] = len(self.said)
            shared = (text if text is None else self._shared_text(text) for text in more)
            self.said.append(OperatorFacts(self._shared_text(name), self._call(call) if call else NONE, *shared))
        return index

    def _call(self, call: Call) -> int:
        index = self._call_indices.get(call)
        if index is None:
            self._budget.take(NAME_CHARACTERS, len(call))
            index = self._call_indices[call] = len(self.calls)
            self.calls.append(call)
        return index

    def _collective(self, args: Arguments) -> int:
        """Return the index of what a kernel or an operator says that it communicates."""
        call = CollectiveCall(
            name=text_of(args.collective),
            in_elements=_elements(args.in_elements),
            out_elements=_elements(args.out_elements),
            dtype=text_of(args.dtype) or None,
            gpus=_elements(args.gpus),
            group=text_of(args.group) or None,
            description=text_of(args.description) or None,
            ranks=text_of(args.ranks) or None,
        )
        return self._shared_collective(call, call)

    def _title(self, name: str, args: Arguments) -> int:
        """Return the index of what a range that PyTorch opens around a collective says of it.

        It is named `nccl:` and the collective, and its inputs are what the rank gives (the constructor of `Work` in
        torch/csrc/distributed/c10d/Work.cpp of pytorch/pytorch).
        """
        key = name, bytes(args.dims or args.old_dims), bytes(args.types)
        known = self._collective_indices.get(key)
        if known is not None:
            return known
        self._budget.take(NAME_CHARACTERS, len(key[1]) + len(key[2]))
        types = value_of(key[2])
        kinds = {text_of(one) for one in types} if isinstance(types, list) else set()
        dtype = kinds.pop() or None if len(kinds) == 1 else None
        return self._shared_collective(key, CollectiveCall(name, _elements_of(value_of(key[1])), None, dtype))

    def _shared_collective(self, key: Any, call: CollectiveCall) -> int:
        """Return the index of a call, whose texts are cut to the length of a name."""
        index = self._collective_indices.get(key)
        if index is None:
            texts = (call.name, call.dtype, call.group, call.description, call.ranks)
            name, *rest = (text if text is None else self._shared_text(text) for text in texts)
            index = self._collective_indices[key] = len(self.collectives)
            dtype, group, description, ranks = rest
            self.collectives.append(
                call._replace(name=name or "", dtype=dtype, group=group, description=description, ranks=ranks)
            )
        return index

    def _threads_of(self, events: Sequence[Event]) -> list[int]:
        """Return the index of each event's thread."""
        return _indices_of([one.pid for one in events], [one.tid for one in events], self._threads, self._thread)

    def _thread(self, process: Any, number: Any) -> int:
        key = id_of(process), id_of(number)
        thread = self._threads.setdefault(key, len(self._threads))
        if thread == len(self.processes):
            self.processes.append(key[0])
        return thread

    def _indices_of_texts(self, texts: Sequence[str]) -> list[int]:
        return [*map(self._text_indices.__getitem__, texts)]

    def _shared_text(self, given: str) -> str:
        """Return a text, which is cut to the length of a name, and kept once."""
        return self.texts[self._text_indices[given]]


def _indices_of(
    outer: list[Any], inner: list[Any], known: Mapping[Any, int], add: Callable[[Any, Any], int]
) -> list[int]:
    """Look pairs up; those that are not known, or could not be keys, are added one by one."""
    are_one = outer and outer.count(outer[0]) == inner.count(inner[0]) == len(outer)
    pairs, times = ([(outer[0], inner[0])], len(outer)) if are_one else ([*zip(outer, inner, strict=True)], 1)
    try:
        return [*map(known.__getitem__, pairs)] * times
    except (KeyError, TypeError):
        return [add(*pair) for pair in pairs] * times


class _CallKind(NamedTuple):
    """What a call of CUDA does: it gives the GPU something to do, or may wait for it."""

    launches: bool
    waits: bool
    is_graph: bool


@lru_cache(maxsize=_TEXTS_KEPT)
def _call_kind(name: str) -> _CallKind:
    small = name.lower()
    moves = "memcpy" in small or "memset" in small
    return _CallKind("launch" in small or moves, waits_for_gpu(name), "graphlaunch" in small)


@lru_cache(maxsize=_TEXTS_KEPT)
def _own_function(name: str) -> tuple[bool, str] | None:
    """Return whether a function is a module's, and the module, or its file and line; None for what is not kept."""
    if name.startswith(_MODULE):
        return True, name.removeprefix(_MODULE)
    frame = _user_frame(name)
    return None if frame is None else (False, frame)


@lru_cache(maxsize=_TEXTS_KEPT)
def _user_frame(text: str) -> str | None:
    """Return file and line of a Python frame, `train.py(12): step`; None for frames of PyTorch and of Python."""
    match = _FRAME.match(text.strip())
    if match is None or _LIBRARY.search(file := match["file"]):
        return None
    is_standard = re.split(r"[/\\.]", file)[0] in sys.stdlib_module_names
    return None if is_standard else f"{file}:{match['line']}"


def _user_frame_of(stack: Any) -> str | None:
    """Return the innermost frame of a stack that is neither PyTorch's nor Python's."""
    return next(filter(None, map(_user_frame, text_of(stack).split(";"))), None)


def _gpu_names(properties: Any) -> dict[int, str]:
    devices = [one for one in properties if isinstance(one, dict)] if isinstance(properties, list) else []
    return {index_of(one.get("id")): one["name"] for one in devices if isinstance(one.get("name"), str)}


def _rank(info: Any) -> tuple[int | None, int | None]:
    """Return the rank of the process that wrote the trace, and of how many; None if it was alone, or does not say."""
    if not isinstance(info, dict):
        return None, None
    rank, size = info.get("rank"), info.get("world_size")
    if not isinstance(rank, int) or not isinstance(size, int):
        return None, None
    return (rank, size) if 0 <= rank < size <= MOST_BLOCKS and size > 1 else (None, None)


def _elements_of(dims: Any) -> int | None:
    """Add up the elements of tensors by the sizes of each; None if that is no list of sizes of tensors."""
    if not isinstance(dims, list) or not 0 < len(dims) <= _MOST_TENSORS:
        return None
    found = 0
    for one in dims:
        is_tensor = isinstance(one, list) and len(one) <= _MOST_DIMENSIONS
        if not is_tensor or any(_elements(size) is None for size in one):
            return None
        found += prod(one)
    return _elements(found)


def _elements(count: Any) -> int | None:
    """Return a count of elements or ranks; None for anything else."""
    return count if type(count) is int and 0 <= count < LATEST_NS else None
