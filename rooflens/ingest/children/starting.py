"""Start children that end when we do, however that comes about."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import IO, TYPE_CHECKING

from msgspec.structs import asdict

from rooflens.processes import Piped, start_piped

if TYPE_CHECKING:
    from rooflens.ingest.children.child import Setup

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from rooflens.ingest.children.child import Setup, main; main(Setup(**json.loads(sys.argv[2])))"
)


def _interpreter() -> str:
    """Return the Python to start; a program frozen into one file tells `multiprocessing` which one that is."""
    if getattr(sys, "frozen", False) or not sys.executable:
        from multiprocessing import spawn  # noqa: PLC0415 - only there

        return os.fsdecode(spawn.get_executable())
    return sys.executable


class _Starter:
    """The one thread that starts children: Linux ends a child when the thread that started it ends."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[list[str], IO[bytes] | None, queue.SimpleQueue[Piped | OSError]]]
        self._orders = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="rooflens-starter", daemon=True).start()

    def start(self, argv: list[str], stderr: IO[bytes] | None) -> Piped:
        done: queue.SimpleQueue[Piped | OSError] = queue.SimpleQueue()
        self._orders.put((argv, stderr, done))
        started = done.get()
        if isinstance(started, OSError):
            raise started
        return started

    def _serve(self) -> None:
        while True:
            argv, stderr, done = self._orders.get()
            try:
                done.put(start_piped(argv, stderr))
            except OSError as error:
                done.put(error)


_starter: _Starter | None = None
_starter_lock = threading.Lock()


def _forget() -> None:
    """Start afresh in a fork: it has none of its parent's threads."""
    global _starter, _starter_lock
    _starter, _starter_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def start(setup: Setup, stderr: IO[bytes] | None) -> Piped:
    """Start a child: our interpreter with our search path; our main module is not run again.

    Raises:
        OSError: It cannot be started.
    """
    global _starter  # noqa: PLW0603 - one a process
    argv = [_interpreter(), "-c", _BOOT, json.dumps([str(place) for place in sys.path]), json.dumps(asdict(setup))]
    with _starter_lock:
        _starter = _starter or _Starter()
        return _starter.start(argv, stderr)
