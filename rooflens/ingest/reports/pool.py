"""Read many reports in child processes that may die: a damaged file costs itself and nothing else.

NVIDIA's reader can abort the whole process. Each child has one file in flight; a child that dies or hangs is replaced,
its file becomes an error, and the others go on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.reports.reader import Report, read_report
from rooflens.ingest.reports.unpacking import likely_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

MAX_CHILDREN = 8
SECONDS_PER_FILE = 120.0
SECONDS_PER_BYTE = 1e-6
"""A file may take two minutes and a second more for each megabyte, unpacked: far over what any report needs."""

_RERECORD = "record the report again, or copy it again from where it was made"
_BUG = "this is a bug of rooflens, the other reports are not touched by it: please report it with the file"
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Job:
    """One file to read: where it is, and what the user called it."""

    path: Path
    source: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one job: a report, or the error that says why not."""

    job: Job
    result: Report | InputError


class _Child:
    """One child process with at most one file in flight."""

    def __init__(self, read: Callable[..., Report], *, with_raw: bool) -> None:
        self.connection, theirs = _SPAWN.Pipe()
        self._scratch = _scratch_folder()
        scratch = self._scratch and self._scratch.name
        self.process: SpawnProcess = _SPAWN.Process(target=_serve, args=(theirs, read, with_raw, scratch), daemon=True)
        with _without_main():
            self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.deadline_s = 0.0

    def give(self, job: Job) -> None:
        self.job = job
        self.deadline_s = time.monotonic() + SECONDS_PER_FILE + likely_bytes(job.path) * SECONDS_PER_BYTE
        self.connection.send(job)

    def finish(self) -> tuple[Job, Report | InputError]:
        """Return the job in flight and its result, or the error that says how the child died."""
        if self.job is None:
            raise RuntimeError("no job in flight")
        job, self.job = self.job, None
        return job, self._result()

    def _result(self) -> Report | InputError:
        if not self.connection.poll():
            self.process.kill()
            self.process.join()
            return InputError("NVIDIA's reader did not finish with it", _RERECORD)
        try:
            result = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return _death(self.process.exitcode)
        return result  # type: ignore[no-any-return]  # a pipe carries any object; `_serve` sends only these

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()
        if self._scratch:
            self._scratch.cleanup()


def _scratch_folder() -> TemporaryDirectory[str] | None:
    """Make the folder for a child's temporary files: it is the parent's to remove, since the child may die.

    None where none can be made: plain reports are read without one.
    """
    try:
        return TemporaryDirectory(prefix="rooflens-", ignore_cleanup_errors=True)
    except OSError:
        return None


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the file of the main module from children that start.

    They would run it again to find its names, and a script without `if __name__ == "__main__"` would start readers
    without end. Nothing that children need stands in it.
    """
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    vars(main).pop("__file__", None)
    vars(main)["__spec__"] = None
    try:
        yield
    finally:
        vars(main).update(kept)


def _serve(connection: Connection, read: Callable[..., Report], with_raw: bool, scratch: str | None) -> None:  # noqa: FBT001 - pickled by position
    """Read files until the parent hangs up, with temporary files in `scratch`. Runs in the child."""
    tempfile.tempdir = scratch
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its children
    # NVIDIA's reader writes protobuf and abort messages here; the parent says what happened in its own words.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_answer(job, read, with_raw=with_raw))


def _answer(job: Job, read: Callable[..., Report], *, with_raw: bool) -> Report | InputError:
    try:
        return read(job.path, job.source, with_raw=with_raw)
    except InputError as error:
        return error
    except Exception as error:  # noqa: BLE001 - one file's trouble must not cost the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return InputError(f"cannot be read: {type(error).__name__} at {where}: {error}", _BUG)


def _death(exit_code: int | None) -> InputError:
    how = f"status {exit_code}"
    if exit_code is not None and exit_code < 0:
        how = signal.Signals(-exit_code).name
    return InputError(f"damaged: NVIDIA's reader ended with {how} on it", _RERECORD)


def read_reports(
    jobs: Sequence[Job], *, with_raw: bool, children: int | None = None, read: Callable[..., Report] = read_report
) -> Iterator[Outcome]:
    """Read reports in parallel and yield each outcome as it comes, in no fixed order.

    Args:
        jobs: Files to read.
        with_raw: Also return every stored value.
        children: How many processes to read in; by default one a core, at most `MAX_CHILDREN`.
        read: What reads one file in the child; tests put a crashing one here.

    """
    waiting = deque(jobs)
    count = min(len(jobs), children or min(os.cpu_count() or 1, MAX_CHILDREN))
    pool = [_Child(read, with_raw=with_raw) for _ in range(count)]
    try:
        while waiting or any(child.job for child in pool):
            for child in pool:
                if child.job is None and waiting:
                    child.give(waiting.popleft())
            for position in _finished(pool):
                child = pool[position]
                job, result = child.finish()
                if not child.process.is_alive():
                    child.stop()
                    pool[position] = _Child(read, with_raw=with_raw)
                yield Outcome(job, result)
    finally:
        for child in pool:
            child.stop()


def _finished(pool: Sequence[_Child]) -> list[int]:
    """Wait for children that have an answer, have died, or are over their time; return their positions."""
    busy = {child.connection: position for position, child in enumerate(pool) if child.job is not None}
    soonest_s = min(pool[position].deadline_s for position in busy.values())
    ready = wait(list(busy), timeout=max(0.0, soonest_s - time.monotonic()))
    late = [position for position in busy.values() if time.monotonic() > pool[position].deadline_s]
    return sorted({busy[connection] for connection in ready if connection in busy} | set(late))
