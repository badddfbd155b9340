"""How a command ends when a signal asks it to."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNAL_STATUS = 128
"""Plus a signal's number, it is the exit status by which shells show that the signal ended a program."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block like an exception, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heeded = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]  # nohup ignores SIGHUP
    for number in heeded:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second signal ends it at once
    raise SystemExit(_SIGNAL_STATUS + number)
