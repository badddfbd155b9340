"""Read one report: the one door to the readers.

rooflens reads what ncu writes since 2019 itself. NVIDIA's module is asked, in a child that may die, for what is unknown
here, and for the text and the source lines of instructions.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.reports.container import Container, outline, regular_file_bytes
from rooflens.ingest.reports.direct import Direct, UnknownContentError
from rooflens.ingest.reports.pool import in_child, unchanged
from rooflens.ingest.reports.report import Raw, Reader, ReadOptions, Report, make_report, raw_table
from rooflens.ingest.reports.unpacking import unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from rooflens.ingest.metrics.code import Code
    from rooflens.ingest.reports.container import Bytes
    from rooflens.ingest.reports.results import RawResult

__all__ = ["Raw", "ReadOptions", "Reader", "Report", "read_bytes", "read_report"]

_MOST_IN_MEMORY_BYTES = 256 << 20
"""Larger files are read piece by piece."""

_CHUNK_BYTES = 1 << 20
_BUG = "this is a bug of rooflens: please report it with the file; --reader ncu-report asks NVIDIA's module"
_NO_TEXTS = "SASS text and source lines are missing"


def read_report(path: Path, source: str, options: ReadOptions | None = None) -> Report:
    """Read one report file.

    Args:
        path: The file, plain or compressed.
        source: The path as the user gave it: what records and messages show.
        options: What is wanted of it.

    Raises:
        InputError: The file is no report, is damaged, reads back with fewer results than it holds, or changed while it
            was read.
    """
    options = options or ReadOptions()
    with unpacked(path) as plain:
        if options.verify:
            _verify(plain, source, options)
        return (
            _with_nvidia(plain, source, options)
            if options.reader == "ncu-report"
            else _directly(plain, source, options)
        )


def read_bytes(data: Bytes, source: str, options: ReadOptions | None = None) -> Report:
    """Read a report that is in memory, with neither a file nor another process: instructions come without text.

    Args:
        data: A plain report.
        source: What records and messages show.
        options: What is wanted of it.

    Raises:
        InputError: It is no report, or damaged.
        UnknownContentError: It holds something that only NVIDIA's module may know.
    """
    digest = hashlib.sha256(bytes(data[:])).hexdigest()
    return _read(data, digest, source, options or ReadOptions(), None)


def _directly(path: Path, source: str, options: ReadOptions) -> Report:
    """Read a plain report here, or have it read where something in it is unknown."""
    try:
        with _opened(path) as (data, digest):
            return _read(data, digest, source, options, None if options.reader == "direct" else path)
    except UnknownContentError as unknown:
        if options.reader == "direct":
            raise InputError(f"the direct reader does not know {unknown}", "--reader auto asks NVIDIA's") from unknown
        report = _with_nvidia(path, source, options)
        return replace(report, notes=(*report.notes, f"read with NVIDIA's module: {unknown} is unknown"))


def _read(data: Bytes, digest: str, source: str, options: ReadOptions, path: Path | None) -> Report:
    """Read a report whose bytes are at hand; with a path, NVIDIA's module adds the texts of instructions."""
    found = outline(data, path.suffix.lower() if path else "")
    container = Container(digest, len(data), len(found.places), (), found.sessions, found.synthetic)
    raw = raw_table(digest, options)
    reading = _Reading(Direct(data, found, raw), path, options)
    report = make_report(reading, "direct", container, source, raw)
    return replace(report, notes=(*report.notes, *reading.notes))


class _Reading:
    """The direct reader at work, with NVIDIA's module for the texts."""

    def __init__(self, direct: Direct, path: Path | None, options: ReadOptions) -> None:
        self._direct = direct
        self._path = path
        self._options = options
        self.notes: list[str] = []

    def results(self) -> Iterator[RawResult]:
        """Read all results, in the order of the file."""
        return self._direct.results()

    def codes(self, wanted: Sequence[int]) -> Mapping[int, Code]:
        """Have the instructions of some results read with their text: none without a file, or where the module dies."""
        if self._path is None:
            self.notes.append(f"{_NO_TEXTS}: they need NVIDIA's module")
            return {}
        from rooflens.ingest.reports.ncu_reader import read_texts  # noqa: PLC0415 - it makes reports as well

        stored = {index: found for index in wanted if (found := self._direct.instructions(index))}
        try:
            texts: dict[int, Code] = in_child(read_texts, self._path, stored, deadline_s=self._options.deadline_s)
        except InputError as error:
            self.notes.append(f"{_NO_TEXTS}: {error}")
            return {}
        return texts


def _with_nvidia(path: Path, source: str, options: ReadOptions) -> Report:
    from rooflens.ingest.reports.ncu_reader import read_with_nvidia  # noqa: PLC0415 - it makes reports as well

    report: Report = in_child(read_with_nvidia, path, source, options, deadline_s=options.deadline_s)
    return report


def _verify(path: Path, source: str, options: ReadOptions) -> None:
    """Read a report with both readers, every stored value too, and hold them against each other.

    Raises:
        InputError: They differ, or only NVIDIA's can read it.
    """
    everything = replace(options, reader="auto", raw="all")
    ours = _directly(path, source, everything)
    if ours.run.reader != "direct":
        raise InputError(f"cannot be verified: {ours.notes[-1]}", "--verify holds the direct reader against NVIDIA's")
    differences = list(differences_of(ours, _with_nvidia(path, source, everything)))
    if differences:
        raise InputError(f"the readers differ in {len(differences):,} places: {'; '.join(differences[:3])}", _BUG)


def differences_of(ours: Report, theirs: Report) -> Iterator[str]:
    """Yield where two reports of one file differ, but for who read them."""
    if replace(ours.run, reader="") != replace(theirs.run, reader=""):
        yield "the run"
    if len(ours.kernels) != len(theirs.kernels):
        yield f"{len(ours.kernels)} kernels, not {len(theirs.kernels)}"
    for kernel, other in zip(ours.kernels, theirs.kernels, strict=False):
        names = [field.name for field in fields(kernel)]
        yield from (
            f"{name} of result {kernel.index}" for name in names if getattr(kernel, name) != getattr(other, name)
        )
    for what, table, other_table in (("values", ours.raw, theirs.raw), ("instances", ours.instances, theirs.instances)):
        if table is not None and other_table is not None and _rows(table) != _rows(other_table):
            yield f"stored {what}"


def _rows(table: pa.Table) -> list[str]:
    """Return the rows of a table in an order of their own: readers differ in theirs, and NaN is not itself."""
    return sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Bytes, str]]:
    """Give the bytes of a file and their digest: in memory, or where they are many as a window on the file.

    Raises:
        InputError: There is no file that can be read, or it changed in the meantime.
    """
    try:
        file_bytes = regular_file_bytes(path)
        with unchanged(path), path.open("rb") as file:
            if file_bytes <= _MOST_IN_MEMORY_BYTES:
                data = file.read()
                yield data, hashlib.sha256(data).hexdigest()
            else:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                yield _Window(file.fileno(), file_bytes), digest
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from error


class _Window:
    """The bytes of an open file, read where they are asked for: a mapped file that is cut ends the process."""

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
            self._held = self._read(start, max(stop - start, _CHUNK_BYTES))
            self._start, offset = start, 0
        return self._held[offset : offset + stop - start]

    def _read(self, start: int, count: int) -> bytes:
        """Read that many bytes, or all up to the end: one call gives 2 GiB at most."""
        parts: list[bytes] = []
        while count > 0 and (part := os.pread(self._descriptor, count, start)):
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return b"".join(parts)
