"""An event as the PyTorch profiler writes it: only what is used of it, at the speed of a typed decoder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, field

from rooflens.ingest.timelines.kernel_events import LATEST_NS, shape_of, span_of, text_of

_NOTHING = Raw()


class Arguments(Struct, gc=False):
    """The arguments of an event, in the order in which they are written, which decodes fastest.

    What a call was made with stays text until it is wanted.

    Attributes:
        correlation: ID of a launch, at the launch and at the kernel.
        external: ID of the operator around it, at kernels and operators.
        step: Links an operator's forward step to its backward step.
        forward: At an operator that runs backward, the thread of its forward step.
        dims, types, strides, values: What an operator was called with; empty where the trace does not say. `old_dims`
            is how old traces call `dims`.
        stack: The Python functions around an operator.
        generated: The file that a compiler wrote its kernel to.
        hierarchy: The modules around it.
        num_gb, flop: GB that a kernel of Inductor moves and its FLOPs, by its own count, at the operator around it
            (`get_profiler_kwargs` in torch/_inductor/runtime/triton_heuristics.py of pytorch/pytorch).
        collective, in_elements, out_elements, gpus, dtype, group, description, ranks: What is communicated, at kernels
            of NCCL (`ChromeTraceLogger::appendCollectiveArgs` in libkineto/src/output_json.cpp of pytorch/kineto) and
            at the operator `record_param_comms` that launched them (`saveNcclMeta` in torch/csrc/profiler/util.cpp of
            pytorch/pytorch).
        moved_bytes: What a copy or a memset moved.
    """

    external: Any = field(name="External id", default=None)
    dims: Raw = field(name="Input Dims", default=_NOTHING)
    old_dims: Raw = field(name="Input dims", default=_NOTHING)
    types: Raw = field(name="Input type", default=_NOTHING)
    strides: Raw = field(name="Input Strides", default=_NOTHING)
    values: Raw = field(name="Concrete Inputs", default=_NOTHING)
    forward: Any = field(name="Fwd thread id", default=None)
    step: Any = field(name="Sequence number", default=None)
    hierarchy: Any = field(name="Module Hierarchy", default=None)
    stack: Any = field(name="Call stack", default=None)
    generated: Any = field(name="kernel_file", default=None)
    device: Any = UNSET
    stream: Any = UNSET
    correlation: Any = None
    num_gb: Raw = field(name="kernel_num_gb", default=_NOTHING)
    flop: Raw = field(name="kernel_flop", default=_NOTHING)
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    collective: Any = field(name="Collective name", default=None)
    in_elements: Any = field(name="In msg nelems", default=None)
    out_elements: Any = field(name="Out msg nelems", default=None)
    gpus: Any = field(name="Group size", default=None)
    dtype: Any = None
    group: Any = field(name="Process Group Name", default=None)
    description: Any = field(name="Process Group Description", default=None)
    ranks: Any = field(name="Process Group Ranks", default=None)
    moved_bytes: Any = field(name="bytes", default=None)


NO_ARGUMENTS = Arguments()


class Event(Struct, gc=False):
    """An event.

    Attributes:
        ph: Its kind in Chrome's format: `X` has a duration.
        cat: Its category.
        ts, dur: Start and duration in nanoseconds; None if it does not state both. The text has microseconds.
        pid, tid: Process and thread, or whatever stands in their place.
    """

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: Arguments | None = None


_decode_numbers = msgspec.json.Decoder(list[Event]).decode
_decode_digits = msgspec.json.Decoder(list[Event], float_hook=str).decode
_EXACT_US = float(1 << 43)
"""Up to here, 101 days, floats are less than a nanosecond apart; the PyTorch profiler counts times from the begin of
three months for their sake (`ChromeTraceBaseTime` in libkineto of pytorch/kineto)."""

_LATEST_US = LATEST_NS // 2000
"""Whole numbers may be larger: older profilers count from 1970."""


class EventDecoder:
    """Decodes the events of a trace, to the last nanosecond: from digits if any of its times has more than a float.

    The profiler writes three decimals; where others write more, times after 50 days may be a nanosecond off.
    """

    def __init__(self) -> None:
        self._needs_digits = False

    def __call__(self, text: str) -> list[Event]:
        """Decode a list of events.

        Raises:
            msgspec.MsgspecError: The text is no JSON that everybody reads, or a value has another type than it ever
                has.
            UnicodeEncodeError, RecursionError: It holds half a character, or is nested too deep.
        """
        if not self._needs_digits:
            events = _decode_numbers(text)
            if _are_exact(events):
                return events
            self._needs_digits = True
        events = _decode_digits(text)
        for event in events:
            event.ts, event.dur = span_of(event.ts, event.dur) or (None, None)
        return events


def _are_exact(events: Iterable[Event]) -> bool:
    """Convert the times of events to nanoseconds; False if that takes their digits, with some converted."""
    try:
        for event in events:
            ts, dur = event.ts, event.dur
            if ts is None or dur is None or dur < 0:
                event.ts = None
                continue
            most = _EXACT_US if ts.__class__ is float else _LATEST_US
            if not -most < ts < most or dur >= _EXACT_US:
                return False
            event.ts = start_ns = round(ts * 1000)
            event.dur = duration_ns = round(dur * 1000)
            if start_ns / 1000 != ts or duration_ns / 1000 != dur:
                # After 50 days, a product of floats may be a nanosecond off.
                event.ts = start_ns = int(ts) * 1000 + round((ts - int(ts)) * 1000)
                if start_ns / 1000 != ts or duration_ns / 1000 != dur:
                    return False
    except TypeError:  # times that are texts
        return False
    return True


_decode_value = msgspec.json.Decoder(float_hook=str).decode
_FIELDS = {one.name: one.encode_name for one in msgspec.structs.fields(Arguments)}
_SHAPES = {"grid", "block"}
_RAW = {one.name for one in msgspec.structs.fields(Arguments) if one.type is Raw}


def event_of(event: dict[str, Any]) -> Event:
    """Make the same of an event that the standard library decoded."""
    args = event.get("args")
    found = NO_ARGUMENTS
    if isinstance(args, dict):
        found = Arguments(**{name: _field_value(name, args[key]) for name, key in _FIELDS.items() if key in args})
    start_ns, duration_ns = span_of(event.get("ts"), event.get("dur")) or (None, None)
    return Event(
        ph=text_of(event.get("ph")),
        cat=text_of(event.get("cat")),
        name=name if isinstance(name := event.get("name"), str) else None,
        ts=start_ns,
        dur=duration_ns,
        pid=event.get("pid"),
        tid=event.get("tid"),
        args=found,
    )


def _field_value(name: str, value: Any) -> Any:
    if name in _SHAPES:
        return shape_of(value)
    if name not in _RAW:
        return value
    try:
        return Raw(json.dumps(value).encode("ascii"))
    except RecursionError:
        return _NOTHING


def value_of(text: bytes) -> Any:
    """Decode what stayed text; numbers with a fraction stay texts, and what cannot be decoded is None."""
    try:
        return _decode_value(text)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:  # half a character, which only the standard library takes
        return json.loads(text, parse_float=str)
    except (RecursionError, ValueError):
        return None
