"""Prepare stdout and stderr for anything: closed, a pipe without a reader, a terminal that is not UTF-8."""

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
"""Errors of a pipe without a reader on Windows."""

_STDERR = 2
"""stdout refuses writes: end quietly, with the command's own exit code."""

STDOUT_CLOSED = "stdout is closed: nothing can be written to it"


def prepare() -> None:
    """Prepare stdout and stderr so that writing to them cannot end the command midway.

    A pipe whose reader is gone (`| head`) swallows the rest, and the command keeps its exit status. The same holds for
    a closed or full stderr; a closed stdout is an error as soon as something is written there.
    """
    _fill_closed()
    sys.stdout = _prepared(sys.stdout, 1, closed=sys.stdout is None)
    sys.stderr = _prepared(sys.stderr, _STDERR)


def _fill_closed() -> None:
    """Open the closed ones of the first three descriptors: otherwise the next opened file would become stdout."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                opened = os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor
                os.set_inheritable(opened, True)  # noqa: FBT003 - the system's signature; children need theirs too


def _prepared(stream: TextIO | None, descriptor: int, *, closed: bool = False) -> TextIO:
    if stream is None:
        return _text_stream(_Outlet(descriptor, closed=closed), "utf-8", line_buffering=descriptor == _STDERR)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
        # Windows' console is no file: it takes UTF-16 text, so its stream is kept.
        if stream in {sys.__stdout__, sys.__stderr__} and _is_file(stream):
            stream.flush()
            return _text_stream(_Outlet(descriptor), stream.encoding, line_buffering=stream.line_buffering)
    return stream  # a stream of a test or notebook


def _is_file(stream: io.TextIOWrapper) -> bool:
    return isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO)


def _text_stream(outlet: io.FileIO, encoding: str, *, line_buffering: bool) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(outlet)
    return io.TextIOWrapper(buffered, encoding, errors="replace", line_buffering=line_buffering)


class _Outlet(io.FileIO):
    """An output descriptor without a reader; stderr is redirected here once it cannot be written."""

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
    """Flush the output; a failed write is not retried when the process ends.

    Raises:
        OSError: The output cannot be written.
    """
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            sink(sys.stdout.fileno())
        raise


def sink(descriptor: int) -> None:
    """Discard everything written to a descriptor from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
