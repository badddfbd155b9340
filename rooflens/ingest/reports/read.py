"""Read a report, or an export of one: the entry point.

rooflens itself reads what ncu has written since 2019. NVIDIA's module, in a child process that may crash, supplies the
text of instructions.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.files import TEXT_HEAD_BYTES
from rooflens.format import LONGEST_NAME, as_unicode, notes_of_cut_names
from rooflens.ingest.metrics.stored import Stored
from rooflens.ingest.reports.container import outline, readable_part, regular_file_bytes
from rooflens.ingest.reports.jobs import unchanged
from rooflens.ingest.reports.protobuf import ResultReader
from rooflens.ingest.reports.report import Raw, Reader, ReadOptions, ReadReport, make_report, raw_table
from rooflens.ingest.reports.results import RawResult, is_measured, is_wanted, to_kernel
from rooflens.ingest.reports.unpacking import MAGIC, first_bytes, is_incomplete, unpacked
from rooflens.model.records import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rooflens.ingest.exports.kernels import ExportedKernel
    from rooflens.ingest.reports.container import Bytes
    from rooflens.model.records import Kernel

__all__ = ["Raw", "ReadOptions", "ReadReport", "Reader", "read_bytes", "read_report"]

_MOST_IN_MEMORY_BYTES = 64 << 20
"""Larger files are read from disk in pieces."""

_CHUNK_BYTES = 1 << 20
_LEAST_STEPS = 50
"""A percentage with this many units of its last digit is exact to 1 %."""


def read_report(
    path: Path, source: str, options: ReadOptions | None = None, on_read: Callable[[float], None] = lambda _: None
) -> ReadReport:
    """Read a report file.

    Args:
        path: The file, plain or compressed.
        source: The path as the user gave it: what records and messages show.
        options: What to read.
        on_read: Called with parts of the work as they are done, as far as that is known; they add up to 1 at most.

    Raises:
        InputError: The file is not a report, is damaged, or changed while it was read.
    """
    options = options or ReadOptions()
    if is_incomplete(path):
        return _incomplete(path, source, options)
    with unpacked(path, options.max_unpacked_bytes) as plain:
        is_there_later = plain == path
        return _read_plain(plain, source, options if is_there_later else replace(options, texts_later=False), on_read)


def _read_plain(
    plain: Path, source: str, options: ReadOptions, on_read: Callable[[float], None] = lambda _: None
) -> ReadReport:
    if _is_text(first_bytes(plain, TEXT_HEAD_BYTES)):
        with opened(plain) as (data, digest):
            return _exported(data[:], digest, source, options, on_read)
    with opened(plain) as (data, digest):
        report = _read_report_bytes(data, digest, source, options, plain.name, on_read)
    if options.texts_later or not (options.texts and report.untold):
        return report
    from rooflens.ingest.reports.texts import add_texts  # noqa: PLC0415 - a child: only where it is asked

    return add_texts([(plain, report)], options)[0]


def _incomplete(path: Path, source: str, options: ReadOptions) -> ReadReport:
    """Read the complete part of an interrupted report, and note what is missing."""
    with readable_part(path, options.max_unpacked_bytes) as part:
        if not part.result_count:
            raise InputError(f"holds no complete kernel{part.damage and f': {part.damage}'}", "profile again")
        report = _read_plain(part.path, source, replace(options, texts_later=False))
    kernels = f"{part.result_count:,} complete kernel{'' if part.result_count == 1 else 's'}"
    rest = f"the rest is left out: {part.damage}" if part.damage else "more may have followed"
    return replace(report, notes=(f"collecting it failed: {kernels} read; {rest}", *report.notes))


def read_bytes(data: Bytes, source: str, options: ReadOptions | None = None) -> ReadReport:
    """Read a report in memory, without file or child process; instructions have no text.

    Args:
        data: An uncompressed report, a CSV export, or ncu's text.
        source: The name that records and messages show.
        options: What to read.

    Raises:
        InputError: The data is no report, or is damaged.
    """
    digest = hashlib.sha256(bytes(data[:])).hexdigest()
    if _is_text(data[:TEXT_HEAD_BYTES]):
        return _exported(data[:], digest, source, options or ReadOptions())
    return _read_report_bytes(data, digest, source, options or ReadOptions())


def _is_text(head: bytes) -> bool:
    """Return whether a file that begins so is ncu's text, or another text that we can name."""
    if head[: len(MAGIC)] == MAGIC:
        return False
    from rooflens.ingest.exports.foreign import is_known  # noqa: PLC0415 - most reports are not exports
    from rooflens.ingest.exports.read import is_printed  # noqa: PLC0415 - as above

    return is_printed(head) or is_known(head)


def _exported(
    data: bytes, digest: str, source: str, options: ReadOptions, on_read: Callable[[float], None] = lambda _: None
) -> ReadReport:
    """Read an export.

    Args:
        data: The whole text, unpacked.
        digest: SHA-256 of it, in hex.
        source: The path as the user gave it: what records and messages show.
        options: What to read, and the GPU if the export does not name it.
        on_read: Called with parts of the work as they are done.

    Raises:
        InputError: The text is no export, or is unreadable.
    """
    from rooflens.ingest.exports.read import read_export  # noqa: PLC0415 - most reports are not exports

    source = as_unicode(source)
    raw = raw_table(digest, options)
    export = read_export(
        data,
        options.gpu,
        is_wanted if raw is None else lambda _: True,
        gpu_option=options.gpu_option,
        on_read=on_read,
    )
    kernels = []
    processes: dict[str | None, None] = {}
    cut_count = 0
    for found in export:
        cut_count += len(found.signature) > LONGEST_NAME
        if raw is not None:
            instances = {name: Stored(None, tuple(one), tuple(one.values())) for name, one in found.tables.items()}
            raw.add(found.index, {**dict.fromkeys(instances), **found.numbers, **found.texts}, instances)
        processes.setdefault(found.process_name)
        kernel = to_kernel(_raw_result(found), digest, source, synthetic=False)
        if found.lost is not None and not kernel.failed:
            kernel = replace(kernel, status="partial", status_reason=found.lost)
        kernels.append(_without_coarse_peaks(kernel, found, export.pct_digits))
    run = Run(
        digest=digest,
        source=source,
        file_bytes=len(data),
        kernel_count=len(kernels),
        synthetic=False,
        process_name=next(iter(processes)) if len(processes) == 1 else None,
        reader="text" if export.is_text else "csv",
    )
    values, stored_instances = raw.finish() if raw else (None, None)
    notes = (*export.notes, *notes_of_cut_names(cut_count))
    return ReadReport(run, tuple(kernels), values, stored_instances, notes, export.loss)


def _without_coarse_peaks(kernel: Kernel, exported: ExportedKernel, pct_digits: int) -> Kernel:
    """Drop peaks derived from too few digits of a percentage: from 0.01 %, a peak may be wrong by a factor of two."""
    least_pct = _LEAST_STEPS * 10.0**-pct_digits
    small = [name for name, value in exported.numbers.items() if value < least_pct and "pct_of_peak" in name]
    ends = tuple(f" / {name}" for name in small)
    coarse = {name for name, source in kernel.counter_sources.items() if ends and source.endswith(ends)}
    if not coarse:
        return kernel
    return replace(
        kernel,
        counters={name: value for name, value in kernel.counters.items() if name not in coarse},
        counter_sources={name: source for name, source in kernel.counter_sources.items() if name not in coarse},
    )


def _raw_result(exported: ExportedKernel) -> RawResult:
    return RawResult(
        index=exported.index,
        function_name=exported.function_name,
        signature=exported.signature,
        workload=exported.workload,
        numbers=exported.numbers,
        texts=exported.texts,
        tables=exported.tables,
        nan_count=sum(map(is_measured, exported.not_numbers)),
        rules=tuple(exported.rules),
        process=exported.process,
        nvtx_range=exported.nvtx_range,
    )


def _read_report_bytes(  # noqa: PLR0913, PLR0917 - what is read, and how
    data: Bytes,
    digest: str,
    source: str,
    options: ReadOptions,
    name: str = "",
    on_read: Callable[[float], None] = lambda _: None,
) -> ReadReport:
    """Read a report from its bytes, without the text of its instructions."""
    found = outline(data, digest, name)
    raw = raw_table(digest, options)
    reader = ResultReader(data, found, raw)
    report = make_report(reader.results(), found, source, raw, reads_code=options.reads_code, on_read=on_read)
    report = replace(report, notes=(*report.notes, *reader.code_notes))
    if not reader.unknown:
        return report
    version = f" of ncu {report.run.ncu_version}" if report.run.ncu_version else ""
    note = f"not read, as rooflens does not know it: {', '.join(sorted(reader.unknown))}{version}"
    return replace(report, notes=(*report.notes, note))


@contextmanager
def opened(path: Path) -> Iterator[tuple[Bytes, str]]:
    """Give the bytes of a file and their digest: in memory, or a `Window` on a large file.

    Raises:
        InputError: The file cannot be read, or changed in the meantime.
    """
    try:
        file_bytes = regular_file_bytes(path)
        with unchanged(path), path.open("rb") as file:
            if file_bytes <= _MOST_IN_MEMORY_BYTES:
                data = file.read()
                yield data, hashlib.sha256(data).hexdigest()
            else:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                yield Window(file.fileno(), file_bytes), digest
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from error


class Window:
    """The bytes of an open file, read on demand: a mapped file that is then truncated would kill the process."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size
        self._start = 0
        self._held = b""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        offset = start - self._start
        if offset < 0 or stop - self._start > len(self._held):
            self._held = self._read_bytes(start, max(stop - start, _CHUNK_BYTES))
            self._start, offset = start, 0
        return self._held[offset : offset + stop - start]

    def _read_bytes(self, start: int, count: int) -> bytes:
        """Read `count` bytes, fewer at the end; one system call returns at most 2 GiB."""
        parts: list[bytes] = []
        os.lseek(self._descriptor, start, os.SEEK_SET)  # Windows has no `pread`
        while count > 0 and (part := os.read(self._descriptor, count)):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
