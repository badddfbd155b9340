"""Call a function in a child process, which may crash, hang or exhaust memory: NVIDIA's reader does all three.

A child serves one call and ends. It imports only the modules that its parent or the pickled call needs.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from rooflens.errors import InputError, RooflensError
from rooflens.ingest.reports.jobs import said, unchanged
from rooflens.ingest.reports.unpacking import RERECORD_HINT, likely_bytes
from rooflens.machine import collect_seldom, limit_memory, without_pandas
from rooflens.model.failed import MEMORY_HINT

DEADLINE_SECONDS = 120.0
SECONDS_PER_BYTE = 1e-6
"""Deadline for a file: two minutes, plus a second per megabyte unpacked; far more than any report needs."""

_WHO = "NVIDIA's reader"
_ORPHAN_SECONDS = 10.0
"""Seconds after its deadline at which a child ends itself: its parent, which should have ended it, must be gone."""

_BOOT = "import sys; sys.path[:] = {!r}; from rooflens.ingest.reports.child import serve; serve({!r})"
_PR_SET_PDEATHSIG = 1
_MEMORY_WORDS = (b"bad_alloc", b"MemoryError", b"Cannot allocate memory", b"out of memory")
_KILLED_HINT = "read fewer reports at once, or on a machine with more memory"
_DEADLINE_HINT = "ROOFLENS_DEADLINE_S=SECONDS gives it longer; if it hangs, record the report again"
_START_HINT = "close other programs, or raise the limits on processes and open files (`ulimit -a` shows them)"


def in_child(function: Callable[..., Any], *arguments: Any, deadline_s: float = DEADLINE_SECONDS) -> Any:
    """Call a function in a child process, and return its result.

    Args:
        function: Importable by name.
        arguments: Pickled. Files among them (of type `Path`) must not change during the call.
        deadline_s: Seconds that the call may take; an allowance for the size of those files is added.

    Raises:
        InputError: The function raised it or has a bug, a file changed, or the child died or did not finish in time.
    """
    import tempfile  # noqa: PLC0415 - most reports need no child

    from rooflens.processes import answered  # noqa: PLC0415 - as above

    files = [one for one in arguments if isinstance(one, Path)]
    most_s = deadline_s + sum(map(likely_bytes, files)) * SECONDS_PER_BYTE
    boot = _BOOT.format([str(place) for place in sys.path], (os.getpid(), most_s + _ORPHAN_SECONDS))
    call = pickle.dumps((function, arguments), protocol=5)
    try:
        with tempfile.TemporaryDirectory(prefix="rooflens-", ignore_cleanup_errors=True) as scratch:
            done = answered((sys.executable, "-c", boot), call, most_s, {"TMPDIR": scratch})
    except OSError as error:
        raise InputError(f"cannot start a process to read it in: {error.strerror or error}", _START_HINT) from error
    if done is None:
        raise InputError(f"{_WHO} did not finish within {most_s:g} s", _DEADLINE_HINT)
    if done.returncode != 0:
        raise _death(done.returncode, done.stderr)
    is_error, value = pickle.loads(done.stdout)  # noqa: S301 - from our own child
    if is_error:
        raise value
    return value


def _death(status: int, told: bytes) -> InputError:
    """Say how a child ended without an answer."""
    from rooflens.processes import signal_name  # noqa: PLC0415 - most reports need no child

    how = signal_name(-status)
    if how == "SIGKILL":
        return InputError(f"{_WHO} was killed (SIGKILL), as the system does when memory runs out", _KILLED_HINT)
    if any(word in told for word in _MEMORY_WORDS):
        return InputError(f"{_WHO} needed more memory than it may use", MEMORY_HINT)
    if status > 0:
        last_words = told.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return InputError(f"damaged: {_WHO} ended with status {status}: {last_words}".rstrip(": "), RERECORD_HINT)
    how = f"signal {how}" if how.isdigit() else how
    return InputError(f"damaged: {_WHO} ended with {how}", RERECORD_HINT)


def serve(parent: tuple[int, float]) -> None:
    """Run in the child: make the one call read from stdin, and write the answer to stdout.

    Args:
        parent: ID of the parent process, and the seconds after which this process must end.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries may print there
    _end_with(*parent)
    limit_memory()
    collect_seldom()
    try:
        answer = pickle.dumps((False, _called(sys.stdin.buffer.read())), protocol=5)
    except RooflensError as error:
        error.__cause__ = error.__context__ = None  # the parent may not be able to unpickle them
        answer = pickle.dumps((True, error))
    with answers:
        answers.write(answer)
    os._exit(0)  # the answer is sent; libraries may crash while they unload


def _called(call: bytes) -> Any:
    with ExitStack() as stack:
        stack.enter_context(said())
        function, arguments = pickle.loads(call)  # noqa: S301 - from our parent
        for one in arguments:
            if isinstance(one, Path):
                stack.enter_context(unchanged(one))
        stack.enter_context(without_pandas())
        return function(*arguments)


def _end_with(parent: int, most_s: float) -> None:
    """Have the system end this process when its parent ends, for whatever reason, or when its time is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    if sys.platform == "win32":
        return  # a virtual environment's launcher is a process between us and the parent
    signal.setitimer(signal.ITIMER_REAL, most_s)
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only there

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before we asked
        os._exit(0)
