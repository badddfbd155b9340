"""How a command ends that is asked to by a signal."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNAL_STATUS = 128
"""Added to the number of a signal it is the status that a shell gives a program that the signal ended."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the block as an exception does, so that temporary files go with it."""
    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heeded = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]  # nohup ignores one
    for number in heeded:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
    raise SystemExit(_SIGNAL_STATUS + number)
