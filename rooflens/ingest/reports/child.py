"""Make calls in a child process, which may crash, hang or exhaust memory: NVIDIA's reader does all three.

A child imports only the modules that its parent or the pickled calls need.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rooflens.errors import InputError, RooflensError
from rooflens.ingest.reports.jobs import said
from rooflens.ingest.reports.unpacking import RERECORD_HINT
from rooflens.machine import collect_seldom, limit_memory, without_pandas
from rooflens.model.failed import MEMORY_HINT
from rooflens.processes import Peer, signal_name

DEADLINE_SECONDS = 120.0

_WHO = "NVIDIA's reader"
_ORPHAN_SECONDS = 10.0
"""Seconds after its deadline at which a child ends itself: its parent, which should have ended it, must be gone."""

_BOOT = "import sys; sys.path[:] = {!r}; from rooflens.ingest.reports.child import serve; serve(*{!r})"
_PR_SET_PDEATHSIG = 1
_MEMORY_WORDS = (b"bad_alloc", b"MemoryError", b"Cannot allocate memory", b"out of memory")
_KILLED_HINT = "read fewer reports at once, or on a machine with more memory"
_DEADLINE_HINT = "ROOFLENS_DEADLINE_S=SECONDS gives it longer; if it hangs, record the report again"
_START_HINT = "close other programs, or raise the limits on processes and open files (`ulimit -a` shows them)"


class Child:
    """A process of our own that makes calls for us, one after another, until one is too late or kills it."""

    def __init__(self, who: str = _WHO, late_hint: str = _DEADLINE_HINT, *, module: str = "", sharers: int = 0) -> None:
        """Start it.

        Args:
            who: What errors call it.
            late_hint: What to do about a call that does not finish in time.
            module: Imported at the start, so that no call waits for it; what that needs may start processes itself.
            sharers: How many such children share the memory, each with what it starts; 0 for a child that is alone,
                and starts nothing.

        Raises:
            InputError: It cannot be started.
        """
        self._who, self._late_hint = who, late_hint
        self._scratch = tempfile.TemporaryDirectory(prefix="rooflens-", ignore_cleanup_errors=True)
        boot = _BOOT.format([str(place) for place in sys.path], (os.getpid(), module, sharers or 1))
        environment = {"TMPDIR": self._scratch.name}
        try:
            self._peer = Peer((sys.executable, "-c", boot), environment, leads_group=sharers > 0)
        except OSError as error:
            self._scratch.cleanup()
            raise InputError(f"cannot start a process to read it in: {error.strerror or error}", _START_HINT) from error

    def call(self, function: Callable[..., Any], *arguments: Any, deadline_s: float) -> Any:
        """Call a function there, and return its result.

        Args:
            function: Importable by name.
            arguments: Pickled.
            deadline_s: Seconds that the call may take.

        Raises:
            InputError: The function raised it or has a bug, or the child died or did not finish in time. In the last
                two cases it makes no more calls.
        """
        call = pickle.dumps((function, arguments), protocol=5)
        with self._peer.limited(deadline_s) as is_late:
            try:
                pickle.dump((deadline_s + _ORPHAN_SECONDS, call), self._peer.stdin, protocol=5)
                self._peer.stdin.flush()
                is_error, value = pickle.load(self._peer.stdout)  # noqa: S301 - from our own child
            except (OSError, EOFError, pickle.UnpicklingError):
                raise self._death(deadline_s, is_late=is_late.is_set()) from None
        if is_late.is_set():  # just after its answer
            self._peer.ended()
        if is_error:
            raise value
        return value

    def _death(self, deadline_s: float, *, is_late: bool) -> InputError:
        """Say how it ended without an answer."""
        status, told = self._peer.ended()
        if is_late:
            return InputError(f"{self._who} did not finish within {deadline_s:g} s", self._late_hint)
        return _death(self._who, status, told)

    def is_alive(self) -> bool:
        """Return whether it can make calls."""
        return self._peer.is_alive()

    def kill(self) -> None:
        """Kill it, with what it started, without waiting; a call that waits for it fails."""
        self._peer.kill()

    def end(self) -> None:
        """Kill the child with its own children and temporary files; a waiting call fails."""
        self._peer.end()
        self._scratch.cleanup()


def in_child(function: Callable[..., Any], *arguments: Any, deadline_s: float = DEADLINE_SECONDS) -> Any:
    """Call a function in a child process of its own, and return its result.

    Args:
        function: Importable by name.
        arguments: Pickled.
        deadline_s: Seconds that the call may take.

    Raises:
        InputError: The function raised it or has a bug, or the child died or did not finish in time.
    """
    child = Child()
    try:
        return child.call(function, *arguments, deadline_s=deadline_s)
    finally:
        child.end()


def _death(who: str, status: int | None, message: bytes) -> InputError:
    """Say how a child ended without an answer."""
    if status is None:
        return InputError(f"damaged: {who} neither answers nor ends", RERECORD_HINT)
    how = signal_name(-status)
    if how == "SIGKILL":
        return InputError(f"{who} was killed (SIGKILL), as the system does when memory runs out", _KILLED_HINT)
    if any(word in message for word in _MEMORY_WORDS):
        return InputError(f"{who} needed more memory than it may use", MEMORY_HINT)
    if status > 0:
        last_words = message.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return InputError(f"damaged: {who} ended with status {status}: {last_words}".rstrip(": "), RERECORD_HINT)
    how = f"signal {how}" if how.isdigit() else how
    return InputError(f"damaged: {who} ended with {how}", RERECORD_HINT)


def serve(parent: int, module: str, sharers: int) -> None:
    """Run in the child: make the calls that come through stdin, and write the answers to stdout.

    Args:
        parent: ID of the parent process, with which this process ends.
        module: Imported before the first call; may be empty.
        sharers: Number of children that share the memory.
    """
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries may print there
    _end_with(parent)
    limit_memory(sharers)
    collect_seldom()
    if module:
        importlib.import_module(module)
    with suppress(EOFError, pickle.UnpicklingError):  # the parent wants no more calls, or is gone
        while True:
            most_s, call = pickle.load(calls)  # noqa: S301 - from our parent
            _limit_time(most_s)
            try:
                answer = pickle.dumps((False, _called(call)), protocol=5)
            except RooflensError as error:
                error.__cause__ = error.__context__ = None  # the parent may not be able to unpickle them
                answer = pickle.dumps((True, error))
            _limit_time(0)
            answers.write(answer)
            answers.flush()
    os._exit(0)  # libraries may crash while they unload


def _called(call: bytes) -> Any:
    with said(), without_pandas():
        function, arguments = pickle.loads(call)  # noqa: S301 - from our parent
        return function(*arguments)


def _limit_time(most_s: float) -> None:
    """Set an alarm that ends this process after `most_s` seconds; 0 for never."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, most_s)


def _end_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies (PR_SET_PDEATHSIG)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    if sys.platform == "win32":
        return  # a virtual environment's launcher is a process between us and the parent
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only there

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before we asked
        os._exit(0)
