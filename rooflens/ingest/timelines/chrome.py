"""Read traces of the PyTorch profiler (Kineto), in Chrome's Trace Event Format.

They are read twice: first for kernels and their launches, then for what was open on the host at each launch. So memory
holds what belongs to kernels, whatever else the trace has.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from rooflens.errors import InputError
from rooflens.format import count
from rooflens.ingest.timelines.events import Piece, read_pieces
from rooflens.model.timeline import BusyEvent, KernelEvent, Timeline

KIND = "PyTorch profiler"

_OTHERS = {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
_RUNTIME = {"cuda_runtime", "cuda_driver", "runtime"}
_OPERATORS = {"cpu_op", "operator"}

_MODULE = "nn.Module: "
_FRAME = re.compile(r"(?P<file>[^()<>;]+\.py)\((?P<line>\d+)\): ")
_LIBRARY = re.compile(r"(^|[/\\])(torch|python3(\.\d+)?)[/\\]")
_FUSED = re.compile(r"triton_\w+?_fused_(?P<nodes>\w+)")

_LATEST_NS = 1 << 63

_RECORD_HINT = "record it with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] while the program uses the GPU"


def read_trace(path: Path) -> Timeline:
    """Read the kernels of a trace, and the operator, module, ranges and code that launched each.

    Raises:
        InputError: It cannot be read, is cut, is not a trace, or has no kernels.
    """
    device_work = _DeviceWork()
    for piece in read_pieces(path):
        device_work.take(piece)
    if not device_work.kernels:
        events = count(device_work.event_count, "event")
        raise InputError(f"the trace `{path}` has no GPU kernel among its {events}", _RECORD_HINT)
    host = _Host(device_work)
    for piece in read_pieces(path):
        if piece.event is not None:
            host.take(piece.event)
    used = {one.kernel.device for one in device_work.kernels}
    names = {name for device, name in device_work.gpus.items() if device in used}
    return Timeline(
        source=str(path),
        kind=KIND,
        kernels=tuple(sorted(host.launched(), key=lambda kernel: kernel.start_ns)),
        others=tuple(sorted(device_work.others, key=lambda other: other.start_ns)),
        gpu=names.pop() if len(names) == 1 else None,
        notes=tuple(device_work.notes()),
    )


def is_kernel(event: dict[str, Any]) -> bool:
    """Return whether an event is the run of a kernel."""
    return _category(event) == "kernel" and event.get("ph") == "X"


def kernel_of(event: dict[str, Any]) -> KernelEvent | None:
    """Return the kernel of a kernel's event; None without a name or time."""
    span, name, args = span_of(event), event.get("name"), _args(event)
    if span is None or not isinstance(name, str) or not name:
        return None
    return KernelEvent(
        name=name,
        grid=_shape(args.get("grid")),
        block=_shape(args.get("block")),
        start_ns=span[0],
        duration_ns=span[1],
        device=_index(args.get("device", event.get("pid"))),
        stream=_index(args.get("stream", event.get("tid"))),
    )


def span_of(event: dict[str, Any]) -> tuple[int, int] | None:
    """Return when an event began and how long it took, in nanoseconds; None where it does not say."""
    try:
        start, duration = (Decimal(event[key]) * 1000 for key in ("ts", "dur"))
        return (round(start), round(duration)) if abs(start) < _LATEST_NS and 0 <= duration < _LATEST_NS else None
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None


class _Launch(NamedTuple):
    """A kernel, and the ids that lead to its launch and to the operator around that."""

    kernel: KernelEvent
    correlation: Any
    external: Any


class _DeviceWork:
    """What the GPU did, and when the host launched it."""

    def __init__(self) -> None:
        self.kernels: list[_Launch] = []
        self.others: list[BusyEvent] = []
        self.launches: dict[Any, tuple[Any, int] | None] = {}
        self.forwards: dict[Any, tuple[Any, int] | None] = {}
        self.gpus: dict[int, str] = {}
        self.event_count = 0
        self._is_cut = False
        self._untimed_count = 0
        self._shared: dict[Any, Any] = {}

    def take(self, piece: Piece) -> None:
        """Keep what is needed of a part of the trace."""
        if piece.key == "deviceProperties":
            self.gpus = _gpu_names(piece.value)
        self._is_cut |= piece.key == "cut"
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
            self.others.append(BusyEvent(*span, _index(args.get("device")), _index(args.get("stream"))))

    def notes(self) -> Iterator[str]:
        """Yield a sentence on each thing that is not as it should be."""
        if self._is_cut:
            yield "the trace does not end, as Chrome's format allows: it may have been cut"
        if self._untimed_count:
            yield f"left out {count(self._untimed_count, 'kernel event')} without a name or time"

    def _take_launch(self, event: dict[str, Any]) -> None:
        """Keep when a thread launched something; where several threads used the same id, it leads to none of them."""
        correlation, span = _id(_args(event).get("correlation")), span_of(event)
        if correlation is None or span is None or "launch" not in str(event.get("name")).lower():
            return
        middle = span[0] + span[1] // 2  # its start may be rounded to that of its operator, or to the end of the last
        self._keep(self.launches, correlation, event, middle)

    def _take_forward(self, event: dict[str, Any]) -> None:
        """Keep where a step of the forward pass began: of operators within one another, the innermost one has it."""
        step, span = _step_of(event), span_of(event)
        if not step or span is None or _is_backward(event):
            return
        self._keep(self.forwards, step, event, span[0])
        if (known := self.forwards[step]) is not None:
            self.forwards[step] = (known[0], max(known[1], span[0]))

    def _keep(self, places: dict[Any, tuple[Any, int] | None], key: Any, event: dict[str, Any], moment: int) -> None:
        """Keep on which thread something happened, and when; a key that several threads gave leads to none of them."""
        thread = self._share((_id(event.get("pid")), _id(event.get("tid"))))
        known = places.setdefault(key, (thread, moment))
        if known is not None and known[0] != thread:
            places[key] = None

    def _take_kernel(self, event: dict[str, Any]) -> None:
        """Keep a kernel."""
        if (kernel := kernel_of(event)) is None:
            self._untimed_count += 1
            return
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
        """Return an equal value that is kept once: kernels are launched a thousand times."""
        return self._shared.setdefault(value, value)


class _Around:
    """What was open on the host at one launch: the shortest of each kind is the innermost."""

    __slots__ = ("innermost", "ranges")

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int, str]] = []
        self.innermost: dict[str, tuple[int, str]] = {}

    def add(self, kind: str, duration_ns: int, text: str) -> None:
        """Keep a text if it belongs to the innermost event of its kind so far."""
        if kind not in self.innermost or duration_ns < self.innermost[kind][0]:
            self.innermost[kind] = (duration_ns, text)

    def text(self, kind: str) -> str | None:
        """Return the text of the innermost event of a kind."""
        return self.innermost.get(kind, (0, None))[1]

    @property
    def module(self) -> str | None:
        """The innermost module."""
        return self.text("module") or self.text("hierarchy")

    @property
    def line(self) -> str | None:
        """File and line of the innermost function that is neither PyTorch's nor Python's."""
        return self.text("frame") or self.text("stack")


class _Host:
    """What the host had open when it launched each kernel."""

    def __init__(self, work: _DeviceWork) -> None:
        self._kernels = work.kernels
        self._around: dict[Any, _Around] = {}
        self._operators: dict[Any, _Around] = {}
        self._forwards: dict[str, _Around] = {}
        threads: dict[Any, list[tuple[int, _Around]]] = {}
        for one in work.kernels:
            if (launch := work.launches.get(one.correlation)) is not None:
                if one.correlation not in self._around:
                    self._around[one.correlation] = _Around()
                    threads.setdefault(launch[0], []).append((launch[1], self._around[one.correlation]))
            elif one.external not in {None, one.correlation}:
                self._operators[one.external] = _Around()
        for step, began in work.forwards.items():
            if began is not None:
                around = self._forwards[step] = _Around()
                threads.setdefault(began[0], []).append((began[1], around))
        self._threads = {
            thread: ([moment for moment, _ in found], [around for _, around in found])
            for thread, found in ((thread, sorted(found, key=itemgetter(0))) for thread, found in threads.items())
        }
        self._shared: dict[str, str] = {}

    def take(self, event: dict[str, Any]) -> None:
        """Note an event of the host at each launch that it encloses."""
        texts = dict(_texts_of(event))
        if not texts or (span := span_of(event)) is None:
            return
        start, duration = span
        moments, around = self._threads.get((_id(event.get("pid")), _id(event.get("tid"))), ([], []))
        enclosed = around[bisect_left(moments, start) : bisect_right(moments, start + duration)]
        if "operator" in texts and (by_id := self._operators.get(_id(_args(event).get("External id")))):
            enclosed = [*enclosed, by_id]
        if enclosed:
            for kind, text in texts.items():
                kept = self._shared.setdefault(text, text)
                for one in enclosed:
                    if kind == "range":
                        one.ranges.append((start, -duration, kept))
                    else:
                        one.add(kind, duration, kept)

    def launched(self) -> Iterator[KernelEvent]:
        """Yield the kernels with what launched them."""
        for one in self._kernels:
            around = self._around.get(one.correlation) or self._operators.get(one.external)
            if around is None:
                yield one.kernel
                continue
            ranges = "/".join(name for *_, name in sorted(around.ranges))
            forward = self._forwards.get(around.text("step") or "", around)
            yield one.kernel._replace(
                nvtx_range=self._shared.setdefault(ranges, ranges) or None,
                operator=around.text("operator"),
                module=around.module or forward.module,
                code=self._code(one.kernel, around) or forward.line,
            )

    def _code(self, kernel: KernelEvent, around: _Around) -> str | None:
        """Return where a kernel comes from: what a compiler wrote, else the line of the innermost function."""
        if generated := around.text("generated"):
            text = f"{generated}, {kernel.code}" if kernel.code else generated
            return self._shared.setdefault(text, text)
        return kernel.code or around.line


def _texts_of(event: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what an event of the host says of the launches in it, by kind."""
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
    """Yield what an operator says of the launches in it."""
    yield "operator", name
    if _is_backward(event) and (step := _step_of(event)):
        yield "step", step
    args = _args(event)
    for key, kind in (("kernel_file", "generated"), ("Module Hierarchy", "hierarchy")):
        if isinstance(text := args.get(key), str) and text:
            yield kind, text
    stack = str(args.get("Call stack", "")).split(";")
    if frame := next(filter(None, map(_own_frame, stack)), None):
        yield "stack", frame


def _step_of(event: dict[str, Any]) -> str:
    """Return what an operator's step of the forward pass and its step backward share; empty where it has neither."""
    number = _args(event).get("Sequence number")
    return f"{event.get('pid')} {number}" if isinstance(number, int) and number >= 0 else ""


def _is_backward(event: dict[str, Any]) -> bool:
    """Return whether an operator runs backward: then it names the thread of its step forward."""
    return bool(_args(event).get("Fwd thread id"))


def _own_frame(text: str) -> str | None:
    """Return file and line of a Python frame, `train.py(12): step`; None for frames of PyTorch and of Python itself."""
    match = _FRAME.match(text.strip())
    if match is None or _LIBRARY.search(file := match["file"]):
        return None
    is_standard = re.split(r"[/\\.]", file)[0] in sys.stdlib_module_names
    return None if is_standard else f"{file}:{match['line']}"


def _gpu_names(properties: Any) -> dict[int, str]:
    """Return the names of GPUs by their index."""
    devices = [one for one in properties if isinstance(one, dict)] if isinstance(properties, list) else []
    return {_index(one.get("id")): one["name"] for one in devices if isinstance(one.get("name"), str)}


def _category(event: dict[str, Any]) -> str:
    """Return the category of an event; old traces write it with a capital."""
    return str(event.get("cat", "")).lower()


def _args(event: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an event."""
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _id(value: Any) -> Any:
    """Return an id, a number or a text; None for anything else."""
    return value if isinstance(value, (int, str)) else None


def _index(value: Any) -> int:
    """Return the index of a GPU or stream; 0 where it is none."""
    return value if isinstance(value, int) and value >= 0 else 0


def _shape(value: Any) -> tuple[int, int, int] | None:
    """Return a grid or block of three sizes; None for anything else."""
    if not isinstance(value, list) or len(value) != 3 or not all(isinstance(one, int) and one > 0 for one in value):
        return None
    return value[0], value[1], value[2]
