"""stdout and stderr as they may be: closed, a pipe whose reader went, a terminal that is not UTF-8."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BROKEN_ON_WINDOWS = ("win32", errno.EINVAL)
"""What a pipe whose reader went answers there."""

_STDERR = 2
"""stdout refuses writes: end quietly, with the command's own exit code."""

STDOUT_CLOSED = "stdout is closed: nothing can be written to it"


def prepare() -> None:
    """Make stdout and stderr such that writing to them does not end the command in the middle.

    A pipe whose reader went (`| head`) takes all that comes after, and the command ends with the status it has. A
    closed or full stderr does too; a closed stdout is an error as soon as something is to be written there.
    """
    _fill_closed()
    sys.stdout = _prepared(sys.stdout, 1, closed=sys.stdout is None)
    sys.stderr = _prepared(sys.stderr, _STDERR)


def _fill_closed() -> None:
    """Open those of the first three descriptors that are closed: else the next file opened would become stdout."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                opened = os.open(os.devnull, os.O_RDWR)  # the lowest one that is free
                os.set_inheritable(opened, True)  # noqa: FBT003 - the system's signature; children need theirs too


def _prepared(stream: TextIO | None, descriptor: int, *, closed: bool = False) -> TextIO:
    if stream is None:
        return _text(_Outlet(descriptor, closed=closed), "utf-8", line_buffering=descriptor == _STDERR)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
        # Windows' own console is no file: it takes text in UTF-16, and its stream stays.
        if stream in {sys.__stdout__, sys.__stderr__} and _is_file(stream):
            stream.flush()
            return _text(_Outlet(descriptor), stream.encoding, line_buffering=stream.line_buffering)
    return stream  # a test's, or a notebook's


def _is_file(stream: io.TextIOWrapper) -> bool:
    return isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO)


def _text(outlet: io.FileIO, encoding: str, *, line_buffering: bool) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(outlet)
    return io.TextIOWrapper(buffered, encoding, errors="replace", line_buffering=line_buffering)


class _Outlet(io.FileIO):
    """A descriptor for output that has no reader any more; stderr goes here once it cannot be written."""

    def __init__(self, descriptor: int, *, closed: bool = False) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._was_closed = closed

    def write(self, data: ReadableBuffer, /) -> int:
        if self._was_closed:
            self._was_closed = False
            raise OSError(errno.EBADF, STDOUT_CLOSED)
        try:
            return super().write(data)
        except OSError as error:
            has_gone = isinstance(error, BrokenPipeError) or (sys.platform, error.errno) == _BROKEN_ON_WINDOWS
            if not has_gone and self.fileno() != _STDERR:
                raise
            sink(self.fileno())
            return memoryview(data).nbytes


def flush() -> None:
    """Flush the output; a failed write is not tried again when the process ends.

    Raises:
        OSError: It cannot be written.
    """
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            sink(sys.stdout.fileno())
        raise


def sink(descriptor: int) -> None:
    """Let all that is written to a descriptor from now on go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
