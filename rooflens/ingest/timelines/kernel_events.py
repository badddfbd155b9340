"""The kernel events of a trace of the PyTorch profiler as dictionaries, and what the values of any event mean.

Where programs are recorded there is only the standard library, so this needs no more.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Any

from rooflens.format import bounded_name
from rooflens.model.program.timeline import KernelEvent

LATEST_NS = 1 << 62
"""The year 2116: the sum of two times still fits into 64 bits."""

MOST_BLOCKS = 1 << 31

_PER_US = 1000
_DIGITS = 3
"""Digits of microseconds that are whole nanoseconds."""
_POWERS = (1, 10, 100, 1000)
_LONG = 30
_KEPT_TIMES = 1 << 14


def is_kernel(event: dict[str, Any]) -> bool:
    """Return whether an event is a kernel's run."""
    return text_of(event.get("cat")).lower() == "kernel" and event.get("ph") == "X"


def kernel_of(event: dict[str, Any]) -> KernelEvent | None:
    """Return the kernel of a kernel event; None if it lacks name or time."""
    span, name, args = span_of(event.get("ts"), event.get("dur")), event.get("name"), event.get("args")
    if span is None or not isinstance(name, str) or not name:
        return None
    if not isinstance(args, dict):
        args = {}
    return KernelEvent(
        name=bounded_name(name),
        grid=shape_of(args.get("grid")),
        block=shape_of(args.get("block")),
        start_ns=span[0],
        duration_ns=span[1],
        device=index_of(args.get("device", event.get("pid"))),
        stream=index_of(args.get("stream", event.get("tid"))),
    )


def span_of(ts: Any, dur: Any) -> tuple[int, int] | None:
    """Return an event's start and duration in nanoseconds; None if it does not state them.

    Args:
        ts: Its start in microseconds: a number, or the text of one.
        dur: Its duration, likewise.
    """
    start = _nanoseconds(ts)
    duration = _often(dur) if type(dur) is str else _length(dur)
    if start is None or duration is None or not -LATEST_NS < start < LATEST_NS:
        return None
    return (start, duration) if 0 <= duration < LATEST_NS - abs(start) else None


def _nanoseconds(value: Any) -> int | None:
    """Convert microseconds; numbers with up to three decimals without `Decimal`, which takes five times as long."""
    if type(value) is str:
        whole, _, rest = value.partition(".")
        if (length := len(rest)) <= _DIGITS and (digits := whole + rest).isdecimal() and len(digits) < _LONG:
            return int(digits) * _POWERS[_DIGITS - length]
    elif type(value) is int:
        return value * _PER_US
    try:
        exact = Decimal(value) * _PER_US
        return round(exact) if abs(exact) < LATEST_NS else None
    except (ArithmeticError, TypeError, ValueError):
        return None


def _length(value: Any) -> int | None:
    """Convert a duration, of which none is negative, however short."""
    found = _nanoseconds(value)
    return None if not found and found is not None and Decimal(value) < 0 else found


_often = lru_cache(maxsize=_KEPT_TIMES)(_length)
"""The same for texts, which recur."""


def text_of(value: Any) -> str:
    """Return a text, empty for anything else: other values may be nested as deeply as Python allows."""
    return value if isinstance(value, str) else ""


def id_of(value: Any) -> int | str | float | None:
    """Return an ID, which is a number or a text; None for anything else."""
    return value if isinstance(value, (int, str, float)) else None


def index_of(value: Any) -> int:
    """Return the index of a GPU or stream; 0 if it is not a number."""
    return int(value) if isinstance(value, int) and 0 <= value < MOST_BLOCKS else 0


def shape_of(value: Any) -> tuple[int, int, int] | None:
    """Return the three sizes of a grid or block; None for anything else."""
    if not isinstance(value, (list, tuple)) or len(value) != 3 or not all(map(_is_size, value)):
        return None
    return value[0], value[1], value[2]


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and 0 < value < MOST_BLOCKS
