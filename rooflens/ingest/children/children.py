"""The parent's side: call a function in a child, and say what happened if no answer comes.

    readers = Children("NVIDIA's reader")
    kernels = readers.call(read, (path,), deadline_s=120)

A child that dies, hangs or takes too much memory costs only its call: `ChildDiedError` says which it was.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import shutil
import signal
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from rooflens.errors import InputError
from rooflens.ingest.children.child import Setup
from rooflens.ingest.children.memory import inherited_sharers, limit_bytes
from rooflens.ingest.children.starting import start
from rooflens.ingest.children.wire import ANSWER, CALL, HEADER, READY, TAKEN, frame
from rooflens.processes import end_piped

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rooflens.ingest.children.child import Answer

RETIRED_CALLS = 200
RETIRED_BYTES = 1 << 30
"""A child is replaced after so many calls, or when it holds so much memory: NVIDIA's reader keeps 10 to 16 times the
size of each report that it has read."""

_START_SECONDS = 60.0
"""How long a child may take to start, on a busy machine."""

_MEMORY_WORDS = (b"bad_alloc", b"MemoryError", b"Cannot allocate memory", b"out of memory")
_SAID_BYTES = 4096
_ENDING_SECONDS = 10.0
"""How long a child may take to exit once it has closed its pipe: writing a core file takes a while."""

_DAMAGE_HINT = "record the report again, or copy it again from where it was made"
_MEMORY_HINT = "read it on a machine with more memory, or profile fewer kernels into one report"
_KILLED_HINT = "read fewer reports at once, or on a machine with more memory"
_DEADLINE_HINT = "`--deadline SECONDS` gives it longer; if it hangs, record the report again"
_START_HINT = "close other programs, or raise the limits on processes and open files (`ulimit -a` shows them)"


class ChildDiedError(InputError):
    """A child ended, or was ended, without an answer to its call."""


class _NotBegunError(Exception):
    """A child ended before it began its call, so the call can be made again."""


class _Deadline(Struct):
    """When a call must have been answered, or that it has no limit."""

    seconds: float | None
    end_s: float

    @classmethod
    def after(cls, seconds: float | None) -> _Deadline:
        return cls(seconds, time.monotonic() + (float("inf") if seconds is None else seconds))

    @property
    def left_s(self) -> float:
        return self.end_s - time.monotonic()


class _Child:
    """One child process, with at most one call in flight."""

    def __init__(self, who: str, memory_bytes: int | None, sharers: int) -> None:
        self._who = who
        self._memory_bytes = memory_bytes
        self._scratch = _scratch_folder()
        self._stderr = _stderr_file()
        setup = Setup(os.getpid(), memory_bytes, self._scratch, sharers)
        try:
            self._process = start(setup, self._stderr)
        except OSError:
            self._drop_files()
            raise
        self._is_ready = False
        self.call_count = 0
        self.resident_bytes = 0

    @property
    def is_worn(self) -> bool:
        """Whether it has answered so often, or holds so much memory, that a new one should take its place."""
        most_bytes = min(RETIRED_BYTES, (self._memory_bytes or 4 * RETIRED_BYTES) // 4)
        return self.call_count >= RETIRED_CALLS or self.resident_bytes > most_bytes

    def call(self, payload: bytes, deadline_s: float | None) -> Answer:
        """Give the child a pickled call, and wait for its answer.

        Raises:
            _NotBegunError: It ended before it began.
            ChildDiedError: It ended during the call, or did not answer in time.
        """
        self._begin(payload)
        deadline = _Deadline.after(deadline_s)
        try:
            head = self._read_head(ANSWER, deadline)
        except EOFError:
            raise self._death("while reading") from None
        except TimeoutError:
            raise self._late(deadline_s) from None
        try:
            answer: Answer = pickle.loads(self._read(head, deadline))  # noqa: S301 - from our own child
        except EOFError:
            raise self._death("while sending what it had read") from None
        except TimeoutError:
            raise self._late(deadline_s) from None
        self.call_count += 1
        self.resident_bytes = answer.resident_bytes or 0
        return answer

    def _begin(self, payload: bytes) -> None:
        """Hand over the call; return once the child has taken it."""
        start = _Deadline.after(_START_SECONDS)
        try:
            self._write(frame(CALL, payload) + payload)
            if not self._is_ready:
                self._read_head(READY, start)
                self._is_ready = True
            self._read_head(TAKEN, start)
        except (OSError, EOFError) as error:  # a timeout is one of the former
            raise _NotBegunError(self._last_words() or str(error) or "it ended at once") from error

    def _write(self, data: bytes) -> None:
        pipe = self._process.stdin
        if pipe is None:
            raise EOFError
        view = memoryview(data)
        while view:
            view = view[pipe.write(view) or 0 :]

    def _read_head(self, kind: bytes, deadline: _Deadline) -> int:
        """Read the head of a frame of this kind; return how many bytes follow it."""
        got, length = HEADER.unpack(self._read(HEADER.size, deadline))
        if got != kind:
            raise EOFError
        return int(length)

    def _read(self, size: int, deadline: _Deadline) -> bytearray:
        """Read so many bytes.

        Raises:
            EOFError: The child has ended.
            TimeoutError: The deadline has passed.
        """
        pipe = self._process.stdout
        if pipe is None:
            raise EOFError
        data = bytearray(size)
        view = memoryview(data)
        while view:
            if not _is_readable(pipe, deadline):
                raise TimeoutError
            count = pipe.readinto(view)  # type: ignore[attr-defined]  # unbuffered: a raw file
            if not count:
                raise EOFError
            view = view[count:]
        return data

    def _late(self, deadline_s: float | None) -> ChildDiedError:
        message = f"{self._who} did not finish within {deadline_s:g} s"
        return ChildDiedError(message, _DEADLINE_HINT)

    def _death(self, when: str) -> ChildDiedError:
        """Say how the child ended: its pipe is closed, so it has ended or is about to."""
        status = end_piped(self._process, _ENDING_SECONDS)
        said = self._said()
        if status == -signal.SIGKILL:
            return ChildDiedError(
                f"{self._who} was killed (SIGKILL) {when}, as the system does when memory runs out", _KILLED_HINT
            )
        if any(word in said for word in _MEMORY_WORDS):
            return self.out_of_memory()
        how = signal.Signals(-status).name if -status in set(signal.Signals) else f"status {status}"
        return ChildDiedError(f"damaged: {self._who} ended with {how} {when}", _DAMAGE_HINT)

    def out_of_memory(self) -> ChildDiedError:
        """Say that the child needed more memory than its limit."""
        most = f"the {self._memory_bytes / 2**30:.1f} GiB of memory" if self._memory_bytes else "the memory"
        return ChildDiedError(f"{self._who} needed more than {most} that it may use", _MEMORY_HINT)

    def _said(self) -> bytes:
        """Return the end of what the child wrote to stderr."""
        if self._stderr is None:
            return b""
        with suppress(OSError, ValueError):
            size = self._stderr.seek(0, os.SEEK_END)
            self._stderr.seek(max(0, size - _SAID_BYTES))
            return self._stderr.read()
        return b""

    def _last_words(self) -> str:
        lines = self._said().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def stop(self) -> None:
        """End the child at once, and remove its temporary files."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._drop_files()

    def kill(self) -> None:
        """End the child at once; the thread that waits for its answer gets an error."""
        with suppress(OSError):
            self._process.kill()

    def _drop_files(self) -> None:
        if self._stderr is not None:
            self._stderr.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _is_readable(pipe: IO[bytes], deadline: _Deadline) -> bool:
    """Wait until there is something to read, or the pipe closes; False if the deadline passes first."""
    while (left_s := deadline.left_s) > 0:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            if poll.poll(1000 * min(left_s, 3600.0)):
                return True
        elif select.select([pipe], [], [], min(left_s, 3600.0))[0]:
            return True
    return False


class Children:
    """A pool of children: as many as there are calls at once, kept for later calls and replaced when worn.

    Args:
        who: What runs in them, as messages call it.
        limited: Whether each is held to its share of the machine's memory.
        sharers: How many processes share that memory, where the caller knows; None for the machine's usual number.
    """

    def __init__(self, who: str, *, limited: bool = True, sharers: int | None = None) -> None:
        self._who = who
        self._limited = limited
        self._sharers = sharers
        self._forget()
        _all_children.add(self)
        atexit.register(self.close)

    def _forget(self) -> None:
        """Start with no children: in a fork, those are the parent's."""
        self._idle: list[_Child] = []
        self._busy: dict[_Child, int] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], deadline_s: float | None = None) -> Any:
        """Call a function in a child, and return what it returns or raise what it raises.

        Args:
            function: One that can be imported by its name, which is what is pickled.
            arguments: Pickled, as is what comes back.
            deadline_s: Seconds until the child is ended; None for no limit.

        Raises:
            ChildDiedError: No answer came; it says why.
        """
        child, answer = self._answered(pickle.dumps((function, arguments, deadline_s), protocol=5), deadline_s)
        if answer.raised and isinstance(answer.value, MemoryError):
            child.stop()
            raise child.out_of_memory()
        with self._lock:
            is_kept = not (child.is_worn or self._is_closed)
            if is_kept:
                self._idle.append(child)
        if not is_kept:
            child.stop()
        if answer.raised:
            raise answer.value
        return answer.value

    def _answered(self, payload: bytes, deadline_s: float | None) -> tuple[_Child, Answer]:
        """Have a call answered; a child that died before it began is replaced once."""
        why = ""
        for _ in range(2):
            child = self._take(new=bool(why))
            answer = None
            try:
                answer = child.call(payload, deadline_s)
            except _NotBegunError as error:
                why = str(error)
            finally:  # for Ctrl-C as well
                with self._lock:
                    self._busy.pop(child, None)
                if answer is None:
                    child.stop()
            if answer is not None:
                return child, answer
        raise ChildDiedError(f"the process to read it in ended before it began: {why}", _START_HINT)

    def _take(self, *, new: bool) -> _Child:
        with self._lock:
            child = self._idle.pop() if self._idle and not new else None
        if child is None:
            child = self._started()
        with self._lock:
            self._busy[child] = threading.get_ident()
            if self._is_closed:  # in the meantime
                child.kill()
        return child

    def _started(self) -> _Child:
        sharers = self._sharers or inherited_sharers()
        try:
            return _Child(self._who, limit_bytes(sharers) if self._limited else None, sharers)
        except OSError as error:
            message = f"cannot start a process to read it in: {error.strerror or error}"
            raise ChildDiedError(message, _START_HINT) from error

    def abandon(self, threads: Collection[int]) -> None:
        """End the children at work for these threads, whose calls then fail."""
        with self._lock:
            busy = [child for child, thread in self._busy.items() if thread in threads]
        for child in busy:
            child.kill()

    def rest(self) -> None:
        """End the idle children: they hold memory."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.stop()

    def close(self) -> None:
        """End all children, also those at work, and keep none that starts later."""
        with self._lock:
            self._is_closed = True
            threads = set(self._busy.values())
        self.rest()
        self.abandon(threads)
        atexit.unregister(self.close)


_all_children: weakref.WeakSet[Children] = weakref.WeakSet()


def _scratch_folder() -> str | None:
    """Make the folder for a child's temporary files, which the parent removes, since the child may die.

    None where none can be made: plain reports are read without one.
    """
    try:
        return tempfile.mkdtemp(prefix="rooflens-")
    except OSError:
        return None


def _stderr_file() -> IO[bytes] | None:
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return None


def _forget_all() -> None:
    """Start afresh in a fork: its parent's children are not its own."""
    for children in list(_all_children):
        children._forget()  # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
