"""Run programs so that none outlives us: each has its own session, and all processes that it started are ended.

Ending the session's process group is not enough: profilers and launchers start sessions of their own. So each program
also gets a mark in its environment, which its children inherit, and any process with the mark is ended too.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from rooflens.errors import EnvironmentMissingError, StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

MARK = "ROOFLENS_RUN"
"""Environment variable that marks the processes of a run."""

POLL_SECONDS = 0.05
_ENDINGS = (("SIGINT", 10.0), ("SIGTERM", 3.0), ("SIGKILL", 3.0))
"""Signals in order, each with a grace time in seconds: ncu unlocks the GPU's clocks on SIGINT, so that comes first."""

_LEFTOVER_SECONDS = 0.5
"""Grace period after each signal for processes that outlive the program: a shell's background jobs ignore SIGINT."""

_STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_QUERY_SECONDS = 60.0
_KILLED_SECONDS = 1.0
_LAST_WORDS_BYTES = 1 << 16
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Unit, in bytes, in which the system counts a process's memory."""
_HOMES = ("CUDA_HOME", "CUDA_PATH")


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a run.

    Attributes:
        status: Exit status of the program; negative for the signal that ended it; None if we ended it.
        wall_ns: Time from start to end in nanoseconds.
        timed_out: Whether it was ended because it exceeded its time limit.
    """

    status: int | None
    wall_ns: int
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class ProcessCommand:
    """A program to run.

    Attributes:
        stdout: File for its output; its standard input is empty.
        stderr: File for its messages.
        environment: Variables that override our own.
    """

    argv: tuple[str, ...]
    stdout: Path
    stderr: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Captured:
    """Exit status and output of a short program; the status is None if it hung and was ended."""

    status: int | None
    stdout: str
    stderr: str


def run(
    command: ProcessCommand, timeout_s: float | None = None, watch: Callable[[float], bool] = lambda _: True
) -> Finished:
    """Run a program to its end.

    Args:
        command: What to run.
        timeout_s: Seconds after which it is ended; None for no limit.
        watch: Called many times a second with the seconds since the start; returning False ends the program.

    Raises:
        EnvironmentMissingError: The program cannot be started.
        StoppedError: Ctrl-C, SIGTERM or SIGHUP; the program and all its children have been ended.
    """
    mark = uuid.uuid4().hex
    start_ns = time.monotonic_ns()
    with _stopping(), command.stdout.open("wb") as stdout, command.stderr.open("wb") as stderr:
        process: subprocess.Popen[bytes] | None = None
        try:
            process = _start_process(command, mark, stdout, stderr)
            ended = _wait(process, start_ns, timeout_s, watch)
        except KeyboardInterrupt:
            raise StoppedError("stopped before the end: nothing was written") from None
        finally:
            # After success, running processes were left behind on purpose: a server, a compiler's workers.
            if process is not None and process.returncode != 0:
                end_all(process, mark)
    return Finished(
        status=process.returncode if ended else None,
        wall_ns=time.monotonic_ns() - start_ns,
        timed_out=not ended and timeout_s is not None and _seconds_since(start_ns) >= timeout_s,
    )


def capture(argv: Sequence[str], timeout_s: float | None = None) -> Captured:
    """Run a tool that starts no programs itself: it belongs to our session, and ends with it.

    Raises:
        EnvironmentMissingError: The tool cannot be started.
    """
    out, err = subprocess.PIPE, subprocess.PIPE
    try:
        process = subprocess.Popen(argv, stdout=out, stderr=err, text=True, errors="replace")  # noqa: S603 - compilers and questions to tools that were found on this machine
    except OSError as error:
        raise _not_started(argv[0], error) from error
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _give_up(process)
        return Captured(None, "", "")
    except BaseException:
        _give_up(process)
        raise
    return Captured(process.returncode, stdout, stderr)


def _give_up(process: subprocess.Popen[str]) -> None:
    """Kill a program without waiting: a program that hangs in a driver may never end."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_KILLED_SECONDS)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def query(argv: Sequence[str]) -> str | None:
    """Return the output of a short program; None if it cannot be started, fails or hangs."""
    try:
        answer = capture(argv, _QUERY_SECONDS)
    except EnvironmentMissingError:
        return None
    return answer.stdout if answer.status == 0 else None


class Peer:
    """A process of our own at the other end of two pipes, until it is ended.

    Attributes:
        stdin: Where it is asked.
        stdout: Where it answers.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], *, leads_group: bool = False) -> None:
        """Start it.

        Args:
            argv: Our own interpreter, with our own module.
            environment: Variables that override our own.
            leads_group: Give it a session and a process group of its own, so that what it starts ends with it.

        Raises:
            OSError: It cannot be started.
        """
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter with our own module
            argv,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**os.environ, **environment},
            start_new_session=leads_group,
        )
        self.stdin = cast("IO[bytes]", self._process.stdin)
        self.stdout = cast("IO[bytes]", self._process.stdout)
        self._stderr = cast("IO[bytes]", self._process.stderr)
        self._leads_group = leads_group
        self._lock = threading.RLock()  # a signal's handler may kill while its own thread does
        self._last_words = bytearray()
        self._listener = threading.Thread(target=self._listen, name="rooflens-stderr", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """Keep the end of what it says on stderr, so that it never waits for a reader."""
        with suppress(OSError, ValueError):
            while said := os.read(self._stderr.fileno(), _LAST_WORDS_BYTES):
                self._last_words += said
                del self._last_words[:-_LAST_WORDS_BYTES]

    def is_alive(self) -> bool:
        """Return whether it still runs."""
        with self._lock:
            return self._process.poll() is None

    @contextmanager
    def limited(self, timeout_s: float) -> Iterator[threading.Event]:
        """Kill it if the block takes longer; the event that the block gets is set when that happens."""
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            self.kill()

        timer = threading.Timer(timeout_s, end)
        timer.daemon = True
        timer.start()
        try:
            yield is_late
        finally:
            timer.cancel()

    def kill(self) -> None:
        """Kill it, and what it started if it leads a group, without waiting."""
        with self._lock:
            if self._process.returncode is not None:  # its number may be another process's by now
                return
            if self._leads_group and sys.platform != "win32":
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def ended(self) -> tuple[int | None, bytes]:
        """Wait for its end; return its exit status, None if it hangs in the system, and its last words."""
        with self._lock, suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILLED_SECONDS)
        self._listener.join(_KILLED_SECONDS)
        return self._process.returncode, bytes(self._last_words)

    def end(self) -> None:
        """Kill it, and close the pipes."""
        self.kill()
        status, _ = self.ended()
        if status is None:  # its pipes may be in use for as long as it hangs
            return
        for pipe in (self.stdin, self.stdout, self._stderr):
            with suppress(OSError):  # what it did not read any more
                pipe.close()


def find_programs(
    name: str, environment: Mapping[str, str], patterns: Sequence[str] = (), root: Path = Path("/")
) -> Iterator[str]:
    """Yield programs of a name on PATH, then under CUDA_HOME and CUDA_PATH, then installed ones, newest version first.

    Args:
        name: Name of the programs.
        environment: Environment variables.
        patterns: Patterns of install locations below `root`.
        root: Root folder; tests use their own.
    """
    for folder in environment.get("PATH", "").split(os.pathsep):
        if folder and (on_path := shutil.which(name, path=folder)):
            yield on_path
    homes = (Path(home, "bin", name) for variable in _HOMES if (home := environment.get(variable)))
    installed = (path for pattern in patterns for path in sorted(root.glob(pattern), key=_version, reverse=True))
    yield from (str(path) for path in (*homes, *installed) if os.access(path, os.X_OK) and path.is_file())


def find_program(
    name: str, environment: Mapping[str, str], patterns: Sequence[str] = (), root: Path = Path("/")
) -> str | None:
    """Return the first of `find_programs`; None if there is none."""
    return next(find_programs(name, environment, patterns, root), None)


def _version(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def last_words(text: str) -> str:
    """Return the most informative line of a program's output: the last that begins with `error`, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith("error")]
    return (named or lines or [""])[-1].removeprefix("error: ")


def signal_name(number: int) -> str:
    """Return a signal's name, such as `SIGSEGV`; its number if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def peak_memory_bytes() -> int:
    """Return the peak memory of the largest program started so far; 0 if the system does not count it."""
    if sys.platform == "win32":
        return 0
    import resource  # noqa: PLC0415 - POSIX only

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * _RSS_UNIT


def _not_started(name: str, error: OSError) -> EnvironmentMissingError:
    return EnvironmentMissingError(
        f"`{name}` cannot be started: {error.strerror}", "give a program that is on PATH, or its path"
    )


def _start_process(command: ProcessCommand, mark: str, stdout: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **command.environment, MARK: mark}
    try:
        return subprocess.Popen(  # noqa: S603 - running the user's program is what this is for
            command.argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(command.argv[0], error) from error


def _wait(
    process: subprocess.Popen[bytes], start_ns: int, timeout_s: float | None, watch: Callable[[float], bool]
) -> bool:
    """Wait for the end; False if time ran out or `watch` returned False."""
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_SECONDS)
        elapsed_s = _seconds_since(start_ns)
        go_on = watch(elapsed_s)
        if process.returncode is not None:
            return True
        if not go_on or (timeout_s is not None and elapsed_s >= timeout_s):
            return False


def _seconds_since(start_ns: int) -> float:
    return (time.monotonic_ns() - start_ns) / 1e9


@contextmanager
def _stopping() -> Iterator[None]:
    """Let SIGTERM and SIGHUP act like Ctrl-C in the main thread, the only one that can handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = [number for number in _STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]  # nohup ignores SIGHUP
    before = {number: signal.signal(number, _interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def end_all(process: subprocess.Popen[bytes], mark: str) -> None:
    """End a process and everything that it started; another Ctrl-C only speeds this up."""
    if sys.platform == "win32":
        process.kill()  # its children continue: without process groups they cannot be signalled
        return
    for name, grace_s in _ENDINGS:
        try:
            if _ended(process, mark, getattr(signal, name), grace_s):
                return
        except KeyboardInterrupt:
            continue


def _ended(process: subprocess.Popen[bytes], mark: str, number: signal.Signals, grace_s: float) -> bool:
    """Send a signal to all remaining processes; return whether they are gone within the grace period."""
    deadline_s = time.monotonic() + grace_s
    left = _alive(process, mark)
    _send(process, left, number)
    while left and time.monotonic() < deadline_s:
        time.sleep(POLL_SECONDS)
        left = _alive(process, mark)
        if process.returncode is not None:
            deadline_s = min(deadline_s, time.monotonic() + _LEFTOVER_SECONDS)
    return not left


def _send(process: subprocess.Popen[bytes], left: set[int], number: signal.Signals) -> None:
    if sys.platform == "win32":
        return
    # The group as well: without /proc we know nothing else.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
    for pid in left:
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) != process.pid:
                os.kill(pid, number)


def _alive(process: subprocess.Popen[bytes], mark: str) -> set[int]:
    left = marked(mark)
    return left | {process.pid} if process.poll() is None else left - {process.pid}


def marked(mark: str) -> set[int]:
    """Return the processes whose environment has the mark; empty without /proc."""
    entry = f"{MARK}={mark}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return found
