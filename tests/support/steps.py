"""Count what Python does, so that growth is held by numbers that are the same on any machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(run: Callable[[], object]) -> int:
    """Return how many instructions of Python's own machine a function takes.

    What is written in C counts as one, however long it takes: searching a text, sorting, reading JSON.
    """
    count = 0

    def step(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG001 - as Python calls it
        nonlocal count
        count += event == "opcode"
        return step

    def begin(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG001 - as above
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return step

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        run()
    finally:
        sys.settrace(before)
    return count
