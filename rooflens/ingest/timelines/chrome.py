"""Read traces of the PyTorch profiler (Kineto), in Chrome's Trace Event Format.

A trace is read twice: first for kernels and their launches, then for what was open on the host at each launch. So
memory holds only data about kernels, whatever else the trace contains.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from rooflens.errors import InputError
from rooflens.format import bounded_name, count
from rooflens.ingest.timelines.budget import KEPT, NAME_CHARACTERS, Budget
from rooflens.ingest.timelines.events import Piece, read_pieces
from rooflens.ingest.timelines.ranges import OpenRanges, Paths, Range
from rooflens.model.timeline import BusyEvent, KernelEvent, Operands, Timeline

KIND = "PyTorch profiler"

_OTHERS = {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
_RUNTIME = {"cuda_runtime", "cuda_driver", "runtime"}
_OPERATORS = {"cpu_op", "operator"}

_MODULE = "nn.Module: "
_FRAME = re.compile(r"(?P<file>[^()<>;]+\.py)\((?P<line>\d+)\): ")
_LIBRARY = re.compile(r"(^|[/\\])(torch|python3(\.\d+)?)[/\\]")
_FUSED = re.compile(r"triton_\w+?_fused_(?P<nodes>\w+)")

_LATEST_NS = 1 << 62
"""The year 2116: the sum of two times still fits into 64 bits."""

_MOST_BLOCKS = 1 << 31
_MOST_ARGUMENTS, _MOST_DIMENSIONS, _LONGEST_ARGUMENT = 64, 16, 100
"""Limits of a call: arguments of an operator, dimensions of a tensor, characters of a type or value."""

_CHECKED = 4096
"""Launches between two checks of the clock."""

_RECORD_HINT = "record it with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] while the program uses the GPU"


def read_trace(path: Path) -> Timeline:
    """Read the kernels of a trace, each with the operator, module, ranges and code that launched it.

    Raises:
        InputError: The file is unreadable or cut, is no trace, or has no kernels.
    """
    budget = Budget(path, str(path))
    device_work = _DeviceWork(budget)
    for piece in read_pieces(path, budget):
        device_work.take(piece)
    if not device_work.kernels:
        events = count(device_work.event_count, "event")
        raise InputError(f"the trace `{path}` has no GPU kernel among its {events}", _RECORD_HINT)
    host = _Host(device_work, budget)
    for piece in read_pieces(path, budget):
        if piece.event is not None:
            host.take(piece.event)
    kernels = sorted(host.launched(), key=attrgetter("start_ns"))
    used = {one.kernel.device for one in device_work.kernels}
    names = {name for device, name in device_work.gpus.items() if device in used}
    return Timeline(
        source=str(path),
        kind=KIND,
        kernels=tuple(kernels),
        others=tuple(sorted(device_work.others, key=lambda other: other.start_ns)),
        gpu=names.pop() if len(names) == 1 else None,
        notes=(*device_work.notes(), *budget.notes()),
        is_synthetic=device_work.is_synthetic,
        rank=device_work.rank,
    )


def is_kernel(event: dict[str, Any]) -> bool:
    """Return whether an event is a kernel's run."""
    return _category(event) == "kernel" and event.get("ph") == "X"


def kernel_of(event: dict[str, Any]) -> KernelEvent | None:
    """Return the kernel of a kernel event; None if it lacks name or time."""
    span, name, args = span_of(event), event.get("name"), _args(event)
    if span is None or not isinstance(name, str) or not name:
        return None
    return KernelEvent(
        name=bounded_name(name),
        grid=_shape(args.get("grid")),
        block=_shape(args.get("block")),
        start_ns=span[0],
        duration_ns=span[1],
        device=_index(args.get("device", event.get("pid"))),
        stream=_index(args.get("stream", event.get("tid"))),
    )


def span_of(event: dict[str, Any]) -> tuple[int, int] | None:
    """Return an event's start and duration in nanoseconds; None if it does not state them."""
    try:
        start, duration = (Decimal(event[key]) * 1000 for key in ("ts", "dur"))
        is_real = abs(start) < _LATEST_NS and 0 <= duration < _LATEST_NS - abs(start)
        return (round(start), round(duration)) if is_real else None
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None


class _Launch(NamedTuple):
    """A kernel, and the IDs that lead to its launch and to the operator around the launch."""

    kernel: KernelEvent
    correlation: Any
    external: Any


class _DeviceWork:
    """What the GPU ran, and when the host launched it."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.kernels: list[_Launch] = []
        self.others: list[BusyEvent] = []
        self.launches: dict[Any, tuple[Any, int] | None] = {}
        self.forwards: dict[Any, tuple[Any, int] | None] = {}
        self.gpus: dict[int, str] = {}
        self.rank: int | None = None
        self.event_count = 0
        self.is_synthetic = False
        self._is_cut = False
        self._untimed_count = 0
        self._shared: dict[Any, Any] = {}

    def take(self, piece: Piece) -> None:
        """Keep what is needed from a part of the trace."""
        if piece.key == "deviceProperties":
            self.gpus = _gpu_names(piece.value)
        if piece.key == "distributedInfo":
            self.rank = _rank(piece.value)
        self._is_cut |= piece.key == "cut"
        self.is_synthetic |= piece.key == "synthetic" and bool(piece.value)
        if (event := piece.event) is None:
            return
        self.event_count += 1
        category = _category(event)
        if category in _RUNTIME:
            self._take_launch(event)
        elif category in _OPERATORS:
            self._take_forward(event)
        elif is_kernel(event):
            self._take_kernel(event)
        elif category in _OTHERS and (span := span_of(event)) is not None:
            args = _args(event)
            self._budget.take(KEPT)
            self.others.append(BusyEvent(*span, _index(args.get("device")), _index(args.get("stream"))))

    def notes(self) -> Iterator[str]:
        """Yield a sentence for everything unexpected."""
        if self._is_cut:
            yield "the trace does not end, as Chrome's format allows: it may have been cut"
        if self._untimed_count:
            yield f"left out {count(self._untimed_count, 'kernel event')} without a name or time"

    def _take_launch(self, event: dict[str, Any]) -> None:
        """Keep when a thread launched something; an ID used by several threads leads to none of them."""
        correlation, span = _id(_args(event).get("correlation")), span_of(event)
        if correlation is None or span is None or "launch" not in _text(event.get("name")).lower():
            return
        middle = span[0] + span[1] // 2  # the start may be rounded to that of the operator, or to the end of the last
        self._keep(self.launches, correlation, event, middle)

    def _take_forward(self, event: dict[str, Any]) -> None:
        """Keep where a step of the forward pass began; of nested operators the innermost has the step."""
        step, span = _step_of(event), span_of(event)
        if not step or span is None or _is_backward(event):
            return
        self._keep(self.forwards, step, event, span[0])
        if (known := self.forwards[step]) is not None:
            self.forwards[step] = (known[0], max(known[1], span[0]))

    def _keep(self, places: dict[Any, tuple[Any, int] | None], key: Any, event: dict[str, Any], moment: int) -> None:
        """Keep an event's thread and time by its key; a key used by several threads is ambiguous and dropped."""
        thread = self._share((_id(event.get("pid")), _id(event.get("tid"))))
        if key not in places:
            self._budget.take(KEPT)
        known = places.setdefault(key, (thread, moment))
        if known is not None and known[0] != thread:
            places[key] = None

    def _take_kernel(self, event: dict[str, Any]) -> None:
        """Keep a kernel."""
        if (kernel := kernel_of(event)) is None:
            self._untimed_count += 1
            return
        self._budget.take(KEPT)
        if kernel.name not in self._shared:
            self._budget.take(NAME_CHARACTERS, len(kernel.name))
            if kernel.name != event["name"]:
                self._budget.cut_names.add(kernel.name)
        fused = _FUSED.match(kernel.name)
        shared = kernel._replace(
            name=self._share(kernel.name),
            grid=self._share(kernel.grid),
            block=self._share(kernel.block),
            code=self._share(f"node {fused['nodes']}") if fused else None,
        )
        args = _args(event)
        self.kernels.append(_Launch(shared, _id(args.get("correlation")), _id(args.get("External id"))))

    def _share(self, value: Any) -> Any:
        """Return a shared copy of an equal value: kernels are launched thousands of times."""
        return self._shared.setdefault(value, value)


class _Innermost:
    """The innermost event of a kind around each of some moments: the shortest, or the first of equally short events.

    A tree over the moments: an event is noted at the few nodes that together cover exactly its moments, however many
    moments these are.
    """

    def __init__(self, moment_count: int) -> None:
        self._count = moment_count
        self._best: list[tuple[int, int, str] | None] = [None] * (2 * moment_count)

    def add(self, first: int, end: int, found: tuple[int, int, str]) -> None:
        """Note an event around the moments `first` to `end` (excluded): its duration, order and text."""
        best = self._best
        left, right = first + self._count, end + self._count
        while left < right:
            if left & 1:
                if (known := best[left]) is None or found < known:
                    best[left] = found
                left += 1
            if right & 1:
                right -= 1
                if (known := best[right]) is None or found < known:
                    best[right] = found
            left >>= 1
            right >>= 1

    def finish(self) -> list[tuple[int, int, str] | None]:
        """Return the event noted at each moment: duration, order and text."""
        best = self._best
        for node in range(2, 2 * self._count):
            if (above := best[node >> 1]) is not None and ((own := best[node]) is None or above < own):
                best[node] = above
        return best[self._count :]


class _Around:
    """What was open on the host at some moments of a thread, in time order."""

    def __init__(self, moments: Sequence[int]) -> None:
        self._moments = moments
        self._ranges: list[Range] = []
        self._kinds: dict[str, _Innermost] = {}
        self._found: dict[str, list[tuple[int, int, str] | None]] = {}

    def enclosed(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """Return the first moment between two times, and the moment after the last."""
        return bisect_left(self._moments, start_ns), bisect_right(self._moments, end_ns)

    def add(self, kind: str, enclosed: tuple[int, int], found: tuple[int, int, str]) -> None:
        """Note an event around some of the moments: its duration, order and text."""
        if kind not in self._kinds:
            self._kinds[kind] = _Innermost(len(self._moments))
        self._kinds[kind].add(*enclosed, found)

    def add_range(self, start_ns: int, end_ns: int, name: str) -> None:
        """Note a range around some of the moments."""
        self._ranges.append((start_ns, -end_ns, name))

    def finish(self) -> None:
        """Find the innermost events at each moment."""
        self._found = {kind: innermost.finish() for kind, innermost in self._kinds.items()}
        self._kinds = {}

    def text(self, place: int, kind: str) -> str | None:
        """Return the text of the innermost event of a kind around a moment."""
        found = self._found[kind][place] if kind in self._found else None
        return found[2] if found else None

    def call(self, place: int) -> int:
        """Return the order of the innermost operator around a moment; 0 if there is none."""
        found = self._found["operator"][place] if "operator" in self._found else None
        return found[1] if found else 0

    def module(self, place: int) -> str | None:
        """Return the innermost module around a moment."""
        return self.text(place, "module") or self.text(place, "hierarchy")

    def line(self, place: int) -> str | None:
        """Return file and line of the innermost function that is neither PyTorch's nor Python's."""
        return self.text(place, "frame") or self.text(place, "stack")

    def paths(self, paths: Paths) -> list[str | None]:
        """Return the ranges at each moment."""
        if not self._ranges:
            return [None] * len(self._moments)
        opened, changes, path = OpenRanges(sorted(self._ranges)), -1, None
        found = []
        for moment in self._moments:
            opened.go_to(moment)
            if opened.changes != changes:
                changes, path = opened.changes, paths.of(opened)
            found.append(path)
        return found


_Place = tuple[_Around, int]


class _Host:
    """What the host had open when it launched each kernel."""

    def __init__(self, work: _DeviceWork, budget: Budget) -> None:
        self._kernels, self._budget = work.kernels, budget
        self._places: dict[Any, _Place] = {}
        self._forwards: dict[str, _Place] = {}
        self._order = 0
        moments: defaultdict[Any, list[tuple[int, int, Any, dict[Any, _Place]]]] = defaultdict(list)
        by_id: dict[Any, None] = {}
        known = set()
        for one in work.kernels:
            if (launch := work.launches.get(one.correlation)) is not None:
                if one.correlation not in known:
                    known.add(one.correlation)
                    moments[launch[0]].append((launch[1], len(known), one.correlation, self._places))
            elif one.external not in {None, one.correlation}:
                by_id[one.external] = None
        for number, (step, began) in enumerate(work.forwards.items(), len(known) + 1):
            if began is not None:
                moments[began[0]].append((began[1], number, step, self._forwards))
        self._threads: dict[Any, _Around] = {}
        for thread, found in moments.items():
            found.sort(key=itemgetter(0, 1))
            around = self._threads[thread] = _Around([moment for moment, *_ in found])
            for place, (_, _, key, places) in enumerate(found):
                places[key] = around, place
        self._by_id = _Around(range(len(by_id)))
        self._operators: dict[Any, _Place] = {key: (self._by_id, place) for place, key in enumerate(by_id)}
        self._shared: dict[str, str] = {}
        self._operands: dict[int, Operands] = {}
        self._shared_operands: dict[Operands, Operands] = {}

    def take(self, event: dict[str, Any]) -> None:
        """Note an event of the host at each launch inside it."""
        texts = dict(_texts_of(event))
        if not texts or (span := span_of(event)) is None:
            return
        start, duration = span
        found: list[tuple[_Around, tuple[int, int]]] = []
        if (around := self._threads.get((_id(event.get("pid")), _id(event.get("tid"))))) is not None:
            first, end = around.enclosed(start, start + duration)
            if first < end:
                found.append((around, (first, end)))
        if "operator" in texts and (by_id := self._operators.get(_id(_args(event).get("External id")))):
            found.append((by_id[0], (by_id[1], by_id[1] + 1)))
        if not found:
            return
        self._order += 1
        if "operator" in texts:
            self._keep_operands(event)
        for kind, text in texts.items():
            kept = self._kept(text)
            for one, enclosed in found:
                if kind == "range":
                    self._budget.take(KEPT)
                    one.add_range(start, start + duration, kept)
                else:
                    one.add(kind, enclosed, (duration, self._order, kept))

    def _keep_operands(self, event: dict[str, Any]) -> None:
        """Keep the arguments of the operator that was noted last; equal ones are stored once."""
        if (operands := _operands_of(event)) is None:
            return
        self._budget.take(KEPT)
        if operands not in self._shared_operands:
            sizes = 8 * sum(map(len, (*operands.dims, *operands.strides)))
            self._budget.take(NAME_CHARACTERS, sizes + sum(map(len, (*operands.types, *operands.values))))
        self._operands[self._order] = self._shared_operands.setdefault(operands, operands)

    def _kept(self, text: str) -> str:
        """Return a shared copy of a text, cut to the length of a name."""
        name = bounded_name(text)
        if name not in self._shared:
            self._budget.take(NAME_CHARACTERS, len(name))
            self._shared[name] = name
            if name != text:
                self._budget.cut_names.add(name)
        return self._shared[name]

    def launched(self) -> Iterator[KernelEvent]:
        """Yield the kernels, each with what launched it."""
        paths = Paths(self._budget)
        ranges: dict[int, list[str | None]] = {}
        for around in (*self._threads.values(), self._by_id):
            around.finish()
            ranges[id(around)] = around.paths(paths)
            self._budget.check_time()
        for number, one in enumerate(self._kernels):
            if not number % _CHECKED:
                self._budget.check_time()
            found = self._places.get(one.correlation) or self._operators.get(one.external)
            if found is None:
                yield one.kernel
                continue
            around, place = found
            forward, step = self._forwards.get(around.text(place, "step") or "", found)
            yield one.kernel._replace(
                nvtx_range=ranges[id(around)][place],
                operator=around.text(place, "operator"),
                module=around.module(place) or forward.module(step),
                code=self._code(one.kernel, around, place) or forward.line(step),
                call=(call := around.call(place)),
                operands=self._operands.get(call),
            )

    def _code(self, kernel: KernelEvent, around: _Around, place: int) -> str | None:
        """Return where a kernel comes from: the file that a compiler wrote, else the line of the innermost function."""
        if generated := around.text(place, "generated"):
            return self._kept(f"{generated}, {kernel.code}" if kernel.code else generated)
        return kernel.code or around.line(place)


def _texts_of(event: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a host event says about the launches in it, by kind."""
    category, name = _category(event), event.get("name")
    if not isinstance(name, str):
        return
    if category == "user_annotation":
        yield "range", name
    elif category == "python_function" and name.startswith(_MODULE):
        yield "module", name.removeprefix(_MODULE)
    elif category == "python_function":
        if frame := _own_frame(name):
            yield "frame", frame
    elif category in _OPERATORS:
        yield from _texts_of_operator(event, name)


def _texts_of_operator(event: dict[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Yield what an operator says about the launches in it."""
    yield "operator", name
    if _is_backward(event) and (step := _step_of(event)):
        yield "step", step
    args = _args(event)
    for key, kind in (("kernel_file", "generated"), ("Module Hierarchy", "hierarchy")):
        if isinstance(text := args.get(key), str) and text:
            yield kind, text
    stack = _text(args.get("Call stack")).split(";")
    if frame := next(filter(None, map(_own_frame, stack)), None):
        yield "stack", frame


def _operands_of(event: dict[str, Any]) -> Operands | None:
    """Return an operator's arguments; None if the trace does not give them, or gives more than a real call has."""
    args = _args(event)
    dims, types = _lists(args.get("Input Dims", args.get("Input dims"))), _texts(args.get("Input type"))
    if dims is None or types is None or len(types) != len(dims):
        return None
    strides, values = _lists(args.get("Input Strides")), _texts(args.get("Concrete Inputs"))
    return Operands(
        dims,
        types,
        strides if strides is not None and len(strides) == len(dims) else (),
        values if values is not None and len(values) == len(dims) else (),
    )


def _lists(value: Any) -> tuple[tuple[int, ...], ...] | None:
    """Return a list of sizes per argument, empty for a list of tensors; None if the value has another form."""
    if not isinstance(value, list) or len(value) > _MOST_ARGUMENTS:
        return None
    found = []
    for one in value:
        if not isinstance(one, list):
            return None
        is_sizes = len(one) <= _MOST_DIMENSIONS and all(type(size) is int and 0 <= size < _LATEST_NS for size in one)
        found.append(tuple(one) if is_sizes else ())
    return tuple(found)


def _texts(value: Any) -> tuple[str, ...] | None:
    """Return a text per argument, empty for a list; None if the value has another form."""
    if not isinstance(value, list) or len(value) > _MOST_ARGUMENTS:
        return None
    return tuple(_text(one) if len(_text(one)) <= _LONGEST_ARGUMENT else "" for one in value)


def _step_of(event: dict[str, Any]) -> str:
    """Return what links an operator's forward step to its backward step; empty if it has neither."""
    number = _args(event).get("Sequence number")
    return f"{_id(event.get('pid'))} {number}" if isinstance(number, int) and number >= 0 else ""


def _is_backward(event: dict[str, Any]) -> bool:
    """Return whether an operator runs backward: such an operator names the thread of its forward step."""
    return bool(_args(event).get("Fwd thread id"))


def _own_frame(text: str) -> str | None:
    """Return file and line of a Python frame, `train.py(12): step`; None for frames of PyTorch and of Python."""
    match = _FRAME.match(text.strip())
    if match is None or _LIBRARY.search(file := match["file"]):
        return None
    is_standard = re.split(r"[/\\.]", file)[0] in sys.stdlib_module_names
    return None if is_standard else f"{file}:{match['line']}"


def _gpu_names(properties: Any) -> dict[int, str]:
    """Return the names of GPUs by their index."""
    devices = [one for one in properties if isinstance(one, dict)] if isinstance(properties, list) else []
    return {_index(one.get("id")): one["name"] for one in devices if isinstance(one.get("name"), str)}


def _rank(info: Any) -> int | None:
    """Return the rank of the process that wrote the trace; None if it was the only one, or the trace does not say."""
    if not isinstance(info, dict):
        return None
    rank, size = info.get("rank"), info.get("world_size")
    if not isinstance(rank, int) or not isinstance(size, int):
        return None
    return rank if 0 <= rank < size <= _MOST_BLOCKS and size > 1 else None


def _category(event: dict[str, Any]) -> str:
    """Return the category of an event in lower case; old traces capitalise it."""
    return _text(event.get("cat")).lower()


def _args(event: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an event."""
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _text(value: Any) -> str:
    """Return a text, empty for anything else: other values may be nested as deeply as Python allows."""
    return value if isinstance(value, str) else ""


def _id(value: Any) -> Any:
    """Return an ID, which is a number or a text; None for anything else."""
    return value if isinstance(value, (int, str)) else None


def _index(value: Any) -> int:
    """Return the index of a GPU or stream; 0 if it is not a number."""
    return value if isinstance(value, int) and 0 <= value < _MOST_BLOCKS else 0


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and 0 < value < _MOST_BLOCKS


def _shape(value: Any) -> tuple[int, int, int] | None:
    """Return the three sizes of a grid or block; None for anything else."""
    if not isinstance(value, list) or len(value) != 3 or not all(_is_size(one) for one in value):
        return None
    return value[0], value[1], value[2]
