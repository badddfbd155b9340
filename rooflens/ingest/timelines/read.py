"""The entry point to timelines: the content of a file decides what it is."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.reports.inputs import BLANK, NSYS_REPORTS, SQLITE
from rooflens.ingest.reports.jobs import CHANGED, unchanged
from rooflens.ingest.reports.unpacking import HEAD_BYTES, PERFETTO_HINT, first_bytes, foreign_format, is_packed
from rooflens.ingest.timelines.nsys import exported, read_export

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from rooflens.model.program.timeline import Timeline

_HINT = (
    "give an SQLite export of nsys (`nsys export --type sqlite REPORT.nsys-rep`) "
    "or a trace of the PyTorch profiler (`.json`, `.json.gz`)"
)


@contextmanager
def opened_timeline(
    path: str | os.PathLike[str], on_read: Callable[[float], None] = lambda _: None
) -> Iterator[Timeline]:
    """Read a timeline, which stays valid until the block ends: its kernels may be read from the file.

    Args:
        path: The file.
        on_read: Called with parts of the work as they are done, as far as that is known; they add up to 1 at most.

    Raises:
        InputError: The file is unreadable or cut, no timeline, or has no kernels.
        EnvironmentMissingError: The file is a Nsight Systems report, and nsys is not installed.
    """
    file = Path(path)
    begin = _begin(file)
    if file.suffix in NSYS_REPORTS and begin != SQLITE:
        with exported(file) as export:
            yield read_export(export, str(file))
    elif begin == SQLITE:
        with _unchanged(file):
            yield read_export(file)
    elif is_packed(file) or begin.lstrip(BLANK)[:1] in {b"{", b"["}:
        from rooflens.ingest.timelines.chrome import read_trace  # noqa: PLC0415 - only where it is one

        with _unchanged(file):
            yield read_trace(file, on_read)
    else:
        is_perfetto = file.suffix in {".pftrace", ".perfetto-trace"}
        hint = PERFETTO_HINT if is_perfetto else foreign_format(first_bytes(file, HEAD_BYTES)) or _HINT
        raise InputError(f"`{file}` is no timeline: it is neither an SQLite database nor JSON", hint)


@contextmanager
def _unchanged(file: Path) -> Iterator[None]:
    """Check that a file does not change within the block: exports are opened without a lock, traces are read twice.

    Raises:
        InputError: The file was changed.
    """
    try:
        with unchanged(file):
            yield
    except InputError as error:
        if str(error) != CHANGED:
            raise
        raise InputError(f"cannot read the timeline `{file}`: {CHANGED}", error.hint) from error


def _begin(file: Path) -> bytes:
    """Return the first bytes of a file."""
    try:
        with file.open("rb") as stream:
            return stream.read(len(SQLITE))
    except OSError as error:
        raise InputError(f"cannot read the timeline `{file}`: {error.strerror}", "check the path") from error
