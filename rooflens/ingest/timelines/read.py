"""The entry point to timelines: the content of a file decides what it is."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.foreign import foreign_file
from rooflens.ingest.reports.inputs import BLANK, NSYS_REPORTS, SQLITE, is_summary
from rooflens.ingest.reports.jobs import CHANGED, unchanged
from rooflens.ingest.reports.unpacking import HEAD_BYTES, first_bytes, is_packed
from rooflens.ingest.timelines.nsys import exported, read_export

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from rooflens.model.program.timeline import Timeline
    from rooflens.model.program.totals import Totals

_TIMELINE_HINT = (
    "give an SQLite export of nsys (`nsys export --type sqlite REPORT.nsys-rep`) "
    "or a trace of the PyTorch profiler (`.json`, `.json.gz`)"
)


@contextmanager
def opened_timeline(
    path: str | os.PathLike[str], on_read: Callable[[float], None] = lambda _: None
) -> Iterator[Timeline | Totals]:
    """Read a timeline, or a printed summary, which stays valid until the block ends: it may be read from its file.

    Args:
        path: The file.
        on_read: Called with parts of the work as they are done, as far as that is known; they add up to 1 at most.

    Raises:
        InputError: The file is unreadable or cut, no timeline, or has no kernels.
        EnvironmentMissingError: The file is a Nsight Systems report, and nsys is not installed.
    """
    file = Path(path)
    begin = _first_bytes(file)
    if file.suffix in NSYS_REPORTS and begin != SQLITE:
        with exported(file) as export:
            yield read_export(export, str(file))
    elif begin == SQLITE:
        with _unchanged(file):
            yield read_export(file)
    elif is_summary(file):
        with _unchanged(file):
            yield read_printed(file, on_read)
    elif is_packed(file) or begin.lstrip(BLANK)[:1] in {b"{", b"["}:
        from rooflens.ingest.timelines.chrome import read_trace  # noqa: PLC0415 - only where it is one

        with _unchanged(file):
            yield read_trace(file, on_read)
    else:
        if (other := foreign_file(first_bytes(file, HEAD_BYTES), file.name)) is not None:
            raise InputError(f"`{file}` is no timeline, but {other.what}", other.instead)
        raise InputError(f"`{file}` is no timeline: it is neither an SQLite database nor JSON", _TIMELINE_HINT)


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


def read_printed(file: Path, on_read: Callable[[float], None] = lambda _: None) -> Timeline | Totals:
    """Read what `nsys stats` or PyTorch's `key_averages().table()` printed, among anything else.

    Raises:
        InputError: No table has times of kernels, or there is more than any real text has.
    """
    from rooflens.ingest.timelines.averages import is_averages, read_averages  # noqa: PLC0415 - few are printed
    from rooflens.ingest.timelines.budget import READING, TimelineBudget  # noqa: PLC0415 - as above
    from rooflens.ingest.timelines.printed import read_text, tables_in  # noqa: PLC0415 - as above
    from rooflens.ingest.timelines.stats import form_of, has_kernels, read_stats  # noqa: PLC0415 - as above

    source = str(file)
    budget = TimelineBudget(file, source, on_read)
    text = read_text(file, source)
    found = [*tables_in(text, lambda columns: is_averages(columns) or form_of(columns) is not None, budget)]
    budget.moved(READING)
    averages = [one for one in found if is_averages(one.columns)]
    stats = [one for one in found if not is_averages(one.columns)]
    if not averages or has_kernels(stats):
        recorded = read_stats(stats, source)
        if averages:
            note = "the table of PyTorch's profiler in the same text is left out: it is of the same kernels"
            recorded = replace(recorded, notes=(*recorded.notes, note))
        return recorded
    return read_averages(averages, source)


def _first_bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(len(SQLITE))
    except OSError as error:
        raise InputError(f"cannot read the timeline `{file}`: {error.strerror}", "check the path") from error
