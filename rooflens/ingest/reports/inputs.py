"""Find the reports among a user's paths: named files always, files in folders by ending, pipes by content."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.addresses import is_remote
from rooflens.errors import InputError
from rooflens.files import TEXT_HEAD_BYTES, encoding_of, is_utf16
from rooflens.foreign import is_summary_heading
from rooflens.format import natural
from rooflens.ingest.reports.jobs import Job, jobs_at
from rooflens.ingest.reports.unpacking import (
    LOG_SUFFIX,
    MAGIC,
    PACKED_SUFFIX,
    PLAIN_SUFFIX,
    UNPROFILED_SUFFIX,
    chunks,
    first_bytes,
    is_packed,
)
from rooflens.model.store import MARKER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rooflens.ingest.exports.kernels import ExportedKernel

STDIN = "-"
"""The path that stands for stdin; a file of this name is `./-`."""

ENDINGS = (PLAIN_SUFFIX, PACKED_SUFFIX, ".nsight-cuprof-report")
"""Endings of Nsight Compute's reports: plain, compressed, and the name used in 2018 and 2019."""

GZIP_SUFFIX = ".gz"
_TAKEN = (*ENDINGS, *(f"{ending}{GZIP_SUFFIX}" for ending in ENDINGS))
_TABLES = tuple(f"{ending}{packed}" for ending in (".csv", ".txt", ".log", ".out") for packed in ("", GZIP_SUFFIX))
"""Endings of tables and texts, which count as reports if their first lines show that ncu printed them."""

_PAGE = b"<!doctype html>"
"""How a page of ours begins."""

_COMPANIONS = (UNPROFILED_SUFFIX, LOG_SUFFIX)

SQLITE = b"SQLite format 3\0"
NSYS_REPORTS = (".nsys-rep", ".qdrep")
_TIMELINES = (".json", f".json{GZIP_SUFFIX}", ".sqlite", *NSYS_REPORTS)
BLANK = b"\xef\xbb\xbf \t\r\n"
_KEYS = (b'"traceEvents"', b'"deviceProperties"', b'"record_shapes"')
_EVENT = re.compile(rb'\[\s*\{[^{}]{0,4000}"ph"\s*:')
"""Start of a JSON array of events, which has no keys of its own."""


class Inputs(Struct, frozen=True):
    """The reports to read, each once, and what else the folders hold.

    Attributes:
        ignored: Other files, without those that belong to a report.
        closed: What was skipped, and why: `a named pipe`, `a folder that cannot be read: Permission denied`, `an export
            of a report that is read`.
    """

    jobs: tuple[Job, ...]
    ignored: tuple[Path, ...]
    closed: tuple[tuple[Path, str], ...] = ()


def find_inputs(
    paths: Sequence[str],
    pipes: Mapping[str, Job] | None = None,
) -> Inputs:
    """Find the reports among files and folders, in the order given; folders are searched in depth, sorted by name.

    Links to files are followed; links to folders are not.

    Args:
        paths: As the user gave them: files, folders, and addresses of either.
        pipes: Jobs already made for the paths that are pipes.

    Raises:
        InputError: No path was given, a path is inaccessible, or no folder holds a report.
    """
    jobs: dict[Path, Job] = {}
    ignored, closed = [], []
    exported: set[Path] = set()
    for given in paths:
        if pipes and given in pipes:
            jobs.setdefault(pipes[given].path, pipes[given])
        elif is_remote(given):
            at_address, others = _reports_at(given)
            jobs.update((job.path, job) for job in at_address)
            ignored += others
        elif not _is_folder(given):
            jobs.setdefault(Path(given).resolve(), Job(Path(given), given))
        else:
            for path, why_not in _within(Path(given)):
                if why_not:
                    closed.append((path, why_not))
                elif has_name_of_report(path):
                    jobs.setdefault(path.resolve(), Job(path, str(path)))
                elif _is_exported(path):
                    exported.add(path.resolve())
                    jobs.setdefault(path.resolve(), Job(path, str(path)))
                else:
                    ignored.append(path)
    closed += _drop_exports_of_reports(jobs, exported)
    closed += _drop_repeated_exports(jobs, exported)
    if not jobs:
        raise _no_reports(paths, closed)
    return Inputs(tuple(jobs.values()), tuple(_strangers(ignored, jobs.values())), tuple(closed))


def _strangers(files: Iterable[Path], jobs: Iterable[Job]) -> Iterator[Path]:
    """Return the files without a report; un-profiled runs and logs do not count, as they belong to a report."""
    own = {job.path.with_name(_stem(job.path.name) + suffix) for job in jobs for suffix in _COMPANIONS}
    return (file for file in files if file not in own)


def _reports_at(address: str) -> tuple[list[Job], list[Path]]:
    """List the reports and other files at a remote address; an address of one file counts as a report."""
    found = list(jobs_at(address))
    if [job.address for job in found] == [address]:
        return found, []
    return [job for job in found if has_name_of_report(job.path)], [
        job.path for job in found if not has_name_of_report(job.path)
    ]


def _drop_exports_of_reports(jobs: dict[Path, Job], exported: Collection[Path]) -> Iterator[tuple[Path, str]]:
    """Leave out exports in folders whose report is read too, or their kernels would count twice.

    An export belongs to the report of the same name beside it or in a folder above.
    """
    places = (Path(os.path.abspath(job.path)) for job in jobs.values() if has_name_of_report(job.path))  # noqa: PTH100 - links stay
    reports = {(place.parent, _stem(place.name)) for place in places}
    for key in sorted(exported):
        place = Path(os.path.abspath(jobs[key].path))  # noqa: PTH100 - as above
        parts = place.name.split(".")
        stems = [".".join(parts[:count]) for count in range(1, len(parts))]
        if any((folder, stem) in reports for folder in place.parents for stem in stems):
            yield jobs.pop(key).path, "an export of a report that is read"


def _drop_repeated_exports(jobs: dict[Path, Job], exported: Collection[Path]) -> Iterator[tuple[Path, str]]:
    """Leave out exports in folders if another export holds the same launches, which would count twice."""
    left = sorted(jobs.keys() & exported)
    if len(left) < 2:
        return
    from rooflens.ingest.exports.same import process_of, repeated  # noqa: PLC0415 - only where there are several

    by_process: dict[tuple[str, ...], list[Path]] = {}
    for key in left:
        launch = next((kernel.launch for kernel in _export_launches(jobs[key].path, TEXT_HEAD_BYTES, 1)), None)
        if launch:
            by_process.setdefault(process_of(launch), []).append(key)
    for keys in by_process.values():
        if len(keys) > 1:
            launches = {key: _export_launches(jobs[key].path) for key in keys}
            for key, (other, has_all) in repeated(launches).items():
                lacks = "" if has_all else ", which lacks some of its values"
                yield jobs.pop(key).path, f"an export of the same run as `{jobs[other].path}`{lacks}"


def _export_launches(path: Path, most_bytes: int | None = None, most: int | None = None) -> list[ExportedKernel]:
    """Return the launches of an export up to any damage, which is reported when the export is read in full."""
    from rooflens.ingest.exports.read import read_export  # noqa: PLC0415 - as above

    found: list[ExportedKernel] = []
    with suppress(InputError, OSError, ValueError):
        found.extend(islice(read_export(_content(path, most_bytes)), most))
    return found


def _content(path: Path, most_bytes: int | None) -> bytes:
    if is_packed(path):
        pieces = chunks(path)
        return next(pieces) if most_bytes is not None else b"".join(pieces)
    return path.read_bytes() if most_bytes is None else first_bytes(path, most_bytes)


def _stem(name: str) -> str:
    """Return a report's file name without its ending."""
    return next(
        (name.removesuffix(ending) for ending in sorted(_TAKEN, key=len, reverse=True) if name.endswith(ending)), name
    )


def is_pipe(given: str) -> bool:
    """Return whether a path can be read only once: stdin, or a named pipe such as `<(command)`."""
    if given in {STDIN, "/dev/stdin"}:
        return True
    try:
        return Path(given).is_fifo()
    except (OSError, ValueError):
        return False


def has_name_of_report(path: Path) -> bool:
    """Return whether a file has the name of an ncu report, gzipped or not."""
    return path.name.endswith(_TAKEN)


def is_report(path: Path) -> bool:
    """Return whether a file is a report by content or name, so that output must not overwrite it."""
    head = first_bytes(path, len(_PAGE))
    if has_name_of_report(path) or is_packed(path) or head.startswith(MAGIC):
        return True
    # Nothing is there yet, or the page of the last time, which may quote a report: no reader of exports is needed.
    return bool(head) and head.lower() != _PAGE and is_table(path)


def _is_exported(path: Path) -> bool:
    """Return whether a table or text, by its ending, was printed by ncu."""
    if not path.name.endswith(_TABLES):
        return False
    try:
        return is_table(path, next(chunks(path)) if is_packed(path) else None)
    except (InputError, OSError):
        return False


def is_table(path: Path, unpacked: bytes | None = None) -> bool:
    """Return whether a file begins like ncu's output."""
    from rooflens.ingest.exports.read import is_printed  # noqa: PLC0415 - most reports are not exports

    return is_printed(first_bytes(path, TEXT_HEAD_BYTES) if unpacked is None else unpacked)


def _is_folder(given: str) -> bool:
    """Return whether a path is a folder; False for a file.

    Raises:
        InputError: The path is neither, or is inaccessible.
    """
    path = Path(given)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise InputError(f"`{given}` {_missing(path)}", _file_beside(path)) from error
    except (OSError, ValueError) as error:
        raise InputError(f"`{given}` cannot be opened: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise InputError(f"`{given}` is {_special(mode)}, not a report")
    return stat.S_ISDIR(mode)


def _no_reports(paths: Sequence[str], closed: Sequence[tuple[Path, str]]) -> InputError:
    unread = "".join(f"; `{path}` is {reason}" for path, reason in closed[:1])
    hint = f"the name of a report ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
    return InputError(f"no reports in {', '.join(f'`{path}`' for path in paths)}{unread}", hint)


def _missing(path: Path) -> str:
    try:
        return f"is a link to `{path.readlink()}`, which does not exist"
    except OSError:
        return "does not exist"


def _file_beside(missing: Path) -> str:
    """Point to a compressed or uncompressed file of the same report, if it exists."""
    if "*" in missing.name or "?" in missing.name:
        return "no file is called so: leave it out of quotes, or give the folder; in Python, `Path().glob(...)`"
    if not has_name_of_report(missing):
        is_a_word = not missing.suffix and len(missing.parts) == 1
        kernel = f"; if it is a kernel: `--kernel {quote(str(missing))}`" if is_a_word else ""
        return f"give a report file, or a folder of them{kernel}"
    other = missing.with_suffix(PACKED_SUFFIX if missing.suffix == PLAIN_SUFFIX else PLAIN_SUFFIX)
    if missing.suffix in ENDINGS and other.is_file():
        return f"`{other}` does: ncu compresses its reports from 2026.3 on"
    gzipped = missing.with_name(f"{missing.name}{GZIP_SUFFIX}")
    if gzipped.is_file():
        return f"`{gzipped}` does, and can be read as it is"
    return "give a report file, or a folder of them"


_A_FOLDER = "a folder"
_STORE = "a store: --store reads it"


def _within(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files below a folder at any depth, in natural order of their names.

    Each comes with the reason why it cannot be read, which is empty for a regular file.
    """
    waiting = [(str(folder), _A_FOLDER)]
    while waiting:
        place, kind = waiting.pop()
        if kind == _A_FOLDER:
            try:
                with os.scandir(place) as entries:
                    found = list(entries)
            except OSError as error:
                yield Path(place), f"a folder that cannot be read: {error.strerror}"
                continue
            if any(entry.name == MARKER for entry in found):
                yield Path(place), _STORE
            else:
                ordered = sorted(found, key=lambda entry: natural(entry.name), reverse=True)
                waiting += [(entry.path, _entry_kind(entry)) for entry in ordered]
        else:
            yield Path(place), kind


def _entry_kind(entry: os.DirEntry[str]) -> str:
    """Say what an entry of a folder is; empty for a file."""
    if entry.is_dir(follow_symlinks=False):
        return _A_FOLDER
    try:
        mode = entry.stat().st_mode
    except OSError as error:
        dangling = entry.is_symlink() and isinstance(error, FileNotFoundError)
        return "a broken link" if dangling else f"unreachable: {error.strerror}"
    if stat.S_ISDIR(mode):
        return "a link to a folder"
    return "" if stat.S_ISREG(mode) else _special(mode)


def _special(mode: int) -> str:
    """Name an entry that is neither file nor folder."""
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def timelines_in(folder: Path, *, beside_reports: bool = False) -> tuple[Path, ...]:
    """Return the timelines in a folder at any depth, in natural order of their names.

    If a Nsight Systems report has its export beside it, only the export counts.

    Args:
        folder: Where to look.
        beside_reports: Whether timelines count in a folder with reports; usually the user means the reports alone.
    """
    found = []
    for path, why_not in _within(folder):
        if not beside_reports and not why_not and (has_name_of_report(path) or _is_exported(path)):
            return ()
        if not why_not and path.name.endswith(_TIMELINES) and is_timeline(path):
            found.append(path)
    exports = {path.with_suffix("") for path in found if path.suffix not in NSYS_REPORTS}
    return tuple(path for path in found if path.suffix not in NSYS_REPORTS or path.with_suffix("") not in exports)


_JSON = re.compile(rb"\s*(?:\{|\[\s*[\[{\]])")
"""The begin of a trace, in which a search for a table takes longer than to read it; a log may begin with `[`."""


def is_timeline(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a timeline, by its content or a Nsight Systems file name; False for a folder."""
    file = Path(path)
    begin = first_bytes(file, len(SQLITE))
    if file.suffix in NSYS_REPORTS or begin == SQLITE:
        return bool(begin)
    if is_summary(file):
        return True
    if not is_packed(file) and begin.lstrip(BLANK)[:1] not in {b"{", b"["}:
        return False
    try:
        text = next(chunks(file), b"").lstrip(BLANK)
    except (InputError, OSError):
        return False
    return text[:1] in {b"{", b"["} and (any(key in text for key in _KEYS) or _EVENT.match(text) is not None)


def is_summary(file: Path) -> bool:
    """Return whether a text holds a table of kernels of another profiler: `nsys stats`, or PyTorch's `key_averages`.

    What ncu printed beside it counts more: it has counters.
    """
    try:
        parts = [next(chunks(file), b"")[:TEXT_HEAD_BYTES]] if is_packed(file) else _head_and_tail(file)
    except (InputError, OSError):
        return False
    if not any(parts) or _JSON.match(parts[0]) or (b"\0" in parts[0] and not is_utf16(parts[0])):
        return False
    encoding = encoding_of(parts[0])
    if not any(
        map(is_summary_heading, (line for part in parts for line in part.decode(encoding, "replace").splitlines()))
    ):
        return False
    return not is_table(file, parts[0])


def _head_and_tail(file: Path) -> list[bytes]:
    """Return the first and the last bytes of a file; empty if it is not a readable file."""
    head = first_bytes(file, TEXT_HEAD_BYTES)
    if len(head) < TEXT_HEAD_BYTES:
        return [head]
    with file.open("rb") as stream:
        stream.seek(max(TEXT_HEAD_BYTES, file.stat().st_size - TEXT_HEAD_BYTES))
        return [head, stream.read()]
