"""The child's side: take calls from one pipe, make them, and answer over another until the parent is gone.

Little is imported here: the pickle of a call names the modules that the call needs. `multiprocessing` will not do: it
starts nothing from daemonic workers, and runs a script that has no main guard a second time.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from rooflens.ingest.children.memory import SHARERS, collect_seldom
from rooflens.ingest.children.wire import ANSWER, CALL, HEADER, READY, TAKEN, frame
from rooflens.ingest.children.without_pandas import without_pandas

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_ORPHAN_SECONDS = 10.0
"""How long after its deadline a child ends by itself: its parent, which should have ended it, is gone."""


class Setup(Struct, frozen=True):
    """What a child is told when it starts.

    Attributes:
        parent: Id of the process that started it.
        memory_bytes: The most it may allocate; None for no limit.
        scratch: Folder for temporary files; None for the usual one.
        sharers: How many processes share the machine's memory; handed on to the child's own children.
    """

    parent: int
    memory_bytes: int | None
    scratch: str | None
    sharers: int


class Answer(Struct, frozen=True):
    """What became of a call.

    Attributes:
        value: What it returned, or the exception that it raised.
        raised: Whether `value` is an exception that was raised.
        resident_bytes: Resident memory of the child after the call; None where the system does not say.
    """

    value: Any
    raised: bool
    resident_bytes: int | None


def main(setup: Setup) -> None:
    """Serve calls until the parent hangs up."""
    with without_pandas():
        _serve(setup)


def _serve(setup: Setup) -> None:
    calls, answers = _take_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its children
    _die_with(setup.parent)
    _limit_memory(setup.memory_bytes)
    tempfile.tempdir = setup.scratch
    collect_seldom()
    keep_freed()
    os.environ[SHARERS] = str(setup.sharers)
    _send(answers, READY)
    while (payload := _next_call(calls)) is not None:
        _forget_messages()
        call = _unpickled(payload)  # this imports modules, which does not count against the deadline
        _send(answers, TAKEN)
        _send(answers, ANSWER, _answer(call))


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Move the pipes away from stdin and stdout, so that libraries that print or read do not touch them."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return calls, answers


def _die_with(parent: int) -> None:
    """Ask Linux to end us when the parent dies, however it dies; elsewhere a busy child ends after its deadline."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only there

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(0)


_KEPT_BYTES = {-3: 32 << 20, -1: 64 << 20}
"""Options of glibc's `mallopt`: M_MMAP_THRESHOLD, up to which blocks are kept, and M_TRIM_THRESHOLD, how many bytes."""


def keep_freed() -> None:
    """Keep freed blocks of a few MB for the next ones, such as pickled calls and their answers; only with glibc.

    Otherwise glibc maps and unmaps each of them, and the kernel clears every page anew.
    """
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - only there

    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, size_bytes in _KEPT_BYTES.items():
            mallopt(option, size_bytes)


def _limit_memory(most_bytes: int | None) -> None:
    """Limit data memory: what is allocated or mapped privately, without mapped files and code."""
    if most_bytes is None:
        return
    try:
        import resource  # noqa: PLC0415 - POSIX only
    except ImportError:
        return
    with suppress(ValueError, OSError):  # where the system's own limit is lower, that stays
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, hard))


def _next_call(calls: IO[bytes]) -> bytes | None:
    """Return the next pickled call; None when the parent has hung up."""
    head = calls.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    kind, length = HEADER.unpack(head)
    payload = calls.read(length)
    return payload if kind == CALL and len(payload) == length else None


def _forget_messages() -> None:
    """Empty the file behind stderr, so that what it holds if we die is about this call."""
    with suppress(OSError):
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)


def _unpickled(payload: bytes) -> Callable[[], Any]:
    """Return the call as a function without arguments; where unpickling failed, it raises that error."""
    try:
        function, arguments, deadline_s = pickle.loads(payload)  # noqa: S301 - our parent's
    except Exception as error:  # noqa: BLE001 - importing runs any code
        return partial(_raise, error)
    return partial(_made, function, arguments, deadline_s)


def _raise(error: Exception) -> None:
    raise error


def _answer(call: Callable[[], Any]) -> bytes:
    """Make a call and return its pickled answer; a result that cannot be pickled counts as raised."""
    try:
        try:
            answer = Answer(call(), raised=False, resident_bytes=None)
        except Exception as error:  # noqa: BLE001 - the parent raises it again
            answer = Answer(_bare(error), raised=True, resident_bytes=None)
        return pickle.dumps(Answer(answer.value, answer.raised, _resident_bytes()), protocol=5)
    except MemoryError:
        return pickle.dumps(Answer(MemoryError(), raised=True, resident_bytes=_resident_bytes()))
    except Exception as error:  # noqa: BLE001 - pickling calls methods of any object
        refused = TypeError(f"its answer cannot be sent: {type(error).__name__}: {error}")
        return pickle.dumps(Answer(refused, raised=True, resident_bytes=_resident_bytes()))


def _made(function: Callable[..., Any], arguments: tuple[Any, ...], deadline_s: float | None) -> Any:
    _end_late(deadline_s)
    try:
        return function(*arguments)
    finally:
        _end_late(None)


def _end_late(deadline_s: float | None) -> None:
    """Have the system end us some time after the deadline, whatever hangs; None cancels that."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0 if deadline_s is None else deadline_s + _ORPHAN_SECONDS)


def _bare(error: Exception) -> Exception:
    """Drop the exceptions that led to this one: the parent may not be able to unpickle them."""
    error.__cause__ = error.__context__ = None
    return error


def _resident_bytes() -> int | None:
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - no pathlib where memory may be out
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, MemoryError):
        return None


def _send(answers: IO[bytes], kind: bytes, payload: bytes = b"") -> None:
    try:
        answers.write(frame(kind, payload))
        answers.write(payload)
        answers.flush()
    except BrokenPipeError:  # nobody listens
        os._exit(0)
