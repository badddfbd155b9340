"""Read one report: the entry point to all readers.

rooflens itself reads what ncu has written since 2019. NVIDIA's module is asked, in a child that may die, for reports
with unknown content, and for the text and source lines of instructions.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import as_unicode
from rooflens.ingest.metrics.stored import Stored
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.container import Container, outline, readable_part, regular_file_bytes
from rooflens.ingest.reports.direct import Direct
from rooflens.ingest.reports.encoded import UnknownContentError
from rooflens.ingest.reports.jobs import unchanged
from rooflens.ingest.reports.report import (
    MOST_IN_TEXT,
    Codes,
    Raw,
    Reader,
    ReadOptions,
    Report,
    Rows,
    make_parts,
    raw_table,
    results_of,
)
from rooflens.ingest.reports.results import RawResult, is_measured, is_wanted, to_kernel
from rooflens.ingest.reports.unpacking import MAGIC, first_bytes, is_incomplete, unpacked
from rooflens.model.records import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from rooflens.ingest.exports.kernels import ExportedKernel
    from rooflens.ingest.metrics.code import Code, Instructions
    from rooflens.ingest.reports.container import Bytes
    from rooflens.model.records import Kernel

__all__ = ["Raw", "ReadOptions", "Reader", "Report", "read_bytes", "read_parts", "read_report"]

_MOST_IN_MEMORY_BYTES = 256 << 20
"""Larger files are read from disk piece by piece."""

_CHUNK_BYTES = 1 << 20
_LEAST_STEPS = 50
"""A rounded percentage of so many units of its last digit is exact to one in a hundred."""

_BUG = "this is a bug in rooflens: please report it with the file; `--reader ncu-report` reads it with NVIDIA's module"


def read_report(path: Path, source: str, options: ReadOptions | None = None) -> Report:
    """Read one report file.

    Args:
        path: The file, plain or compressed.
        source: The path as the user gave it: what records and messages show.
        options: What is wanted of it.

    Raises:
        InputError: The file is not a report, is damaged, or changed while it was read.
    """
    options = options or ReadOptions()
    if is_incomplete(path):
        return _incomplete(path, source, options)
    with unpacked(path, options.max_unpacked_bytes) as plain:
        return _plain(plain, source, options)


def _plain(plain: Path, source: str, options: ReadOptions) -> Report:
    if _is_text(plain):
        with opened(plain) as (data, digest):
            return _exported(data[:], digest, source, options)
    if options.verify:
        _verify(plain, source, options)
    return _with_nvidia(plain, source, options) if options.reader == "ncu-report" else _directly(plain, source, options)


def _incomplete(path: Path, source: str, options: ReadOptions) -> Report:
    """Read the complete part of a report whose collection failed, and note what is missing."""
    with readable_part(path, options.max_unpacked_bytes) as part:
        if not part.result_count:
            raise InputError(f"holds no complete kernel{part.damage and f': {part.damage}'}", "profile again")
        report = _plain(part.path, source, options)
    kernels = f"{part.result_count:,} complete kernel{'' if part.result_count == 1 else 's'}"
    rest = f"the rest is left out: {part.damage}" if part.damage else "more may have followed"
    return replace(report, notes=(f"collecting it failed: {kernels} read; {rest}", *report.notes))


def read_parts(path: Path, source: str, options: ReadOptions, kernels_at_once: int) -> Iterator[Report]:
    """Read a report piece by piece, each a report of some of its kernels and of their values.

    It comes in one piece if it is an export, is to be verified, or needs NVIDIA's module.

    Args:
        path: The file, plain or compressed.
        source: The path as the user gave it.
        options: What is wanted of it.
        kernels_at_once: Least number of kernels in a piece; the last may have fewer.

    Raises:
        InputError: As `read_report`; pieces that came before are then not to be trusted.
        UnknownContentError: After some pieces came something that only NVIDIA's module may know; call `read_report`.
    """
    if is_incomplete(path):
        yield read_report(path, source, options)
        return
    with unpacked(path, options.max_unpacked_bytes) as plain:
        if _is_text(plain) or options.verify or options.reader == "ncu-report":
            yield read_report(plain, source, options)
            return
        some_came = False
        try:
            with opened(plain) as (data, digest):
                texts_of = None if options.reader == "direct" else plain
                for part in _parts(data, digest, source, options, texts_of, kernels_at_once=kernels_at_once):
                    yield part
                    some_came = True
        except UnknownContentError:
            if some_came:
                raise
            yield read_report(plain, source, options)


def read_bytes(data: Bytes, source: str, options: ReadOptions | None = None) -> Report:
    """Read a report in memory, without a file or another process; instructions come without text.

    Args:
        data: A plain report, or a CSV export.
        source: The name that records and messages show.
        options: What is wanted of it.

    Raises:
        InputError: It is not a report, or damaged.
        UnknownContentError: It holds something that only NVIDIA's module may know.
    """
    digest = hashlib.sha256(bytes(data[:])).hexdigest()
    if _is_export(data):
        return _exported(data[:], digest, source, options or ReadOptions())
    return _read(data, digest, source, options or ReadOptions(), None)


def _is_export(data: Bytes) -> bool:
    if data[: len(MAGIC)] == MAGIC:
        return False
    from rooflens.ingest.exports.tables import HEAD_BYTES, is_export  # noqa: PLC0415 - most reports are no exports

    return is_export(data[:HEAD_BYTES])


def _is_text(path: Path) -> bool:
    """Return whether a file is text of ncu, or other text that we can name; False where it cannot be opened."""
    if first_bytes(path, len(MAGIC)) == MAGIC:
        return False
    from rooflens.ingest.exports.foreign import is_known  # noqa: PLC0415 - as above
    from rooflens.ingest.exports.tables import HEAD_BYTES, is_export  # noqa: PLC0415 - as above

    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    return is_export(head) or is_known(head)


def _exported(data: bytes, digest: str, source: str, options: ReadOptions) -> Report:
    """Read an export.

    Args:
        data: The whole text, unpacked.
        digest: SHA-256 of it, in hex.
        source: The path as the user gave it: what records and messages show.
        options: What is wanted of it; they name the GPU where the export does not.

    Raises:
        InputError: This is not an export, or cannot be read.
    """
    from rooflens.ingest.exports.read import read_export  # noqa: PLC0415 - most reports are no exports

    source = as_unicode(source)
    raw = raw_table(digest, options)
    export = read_export(data, options.gpu, is_wanted if raw is None else lambda _: True)
    kernels = []
    processes: dict[str | None, None] = {}
    for found in export:
        if raw is not None:
            instances = {name: Stored(None, tuple(one), tuple(one.values())) for name, one in found.tables.items()}
            raw.add(found.index, {**dict.fromkeys(instances), **found.numbers, **found.texts}, instances)
        processes.setdefault(found.process_name)
        kernel = to_kernel(_raw_result(found), digest, source, synthetic=False)
        kernels.append(_without_coarse_peaks(kernel, found, export.pct_digits))
    run = Run(
        digest=digest,
        source=source,
        file_bytes=len(data),
        kernel_count=len(kernels),
        synthetic=False,
        process_name=next(iter(processes)) if len(processes) == 1 else None,
        reader="csv",
    )
    values, stored_instances = raw.finish() if raw else (None, None)
    notes = (*export.notes, "not verified: exports have only one reader") if options.verify else export.notes
    return Report(run, tuple(kernels), values, stored_instances, notes)


def _without_coarse_peaks(kernel: Kernel, found: ExportedKernel, pct_digits: int) -> Kernel:
    """Drop peaks derived from a percentage with too few digits: with 0.01 % they may be half or twice as high."""
    least_pct = _LEAST_STEPS * 10.0**-pct_digits
    small = [name for name, value in found.numbers.items() if value < least_pct and "pct_of_peak" in name]
    ends = tuple(f" / {name}" for name in small)
    coarse = {name for name, source in kernel.counter_sources.items() if ends and source.endswith(ends)}
    if not coarse:
        return kernel
    return replace(
        kernel,
        counters={name: value for name, value in kernel.counters.items() if name not in coarse},
        counter_sources={name: source for name, source in kernel.counter_sources.items() if name not in coarse},
    )


def _raw_result(found: ExportedKernel) -> RawResult:
    return RawResult(
        index=found.index,
        function_name=found.function_name,
        signature=found.signature,
        workload=found.workload,
        numbers=found.numbers,
        texts=found.texts,
        tables=found.tables,
        nan_count=sum(map(is_measured, found.not_numbers)),
        rules=tuple(found.rules),
        process=found.process,
        nvtx_range=found.nvtx_range,
    )


def _directly(path: Path, source: str, options: ReadOptions) -> Report:
    """Read a plain report here, or with NVIDIA's module if it holds something unknown."""
    try:
        with opened(path) as (data, digest):
            return _read(data, digest, source, options, None if options.reader == "direct" else path)
    except UnknownContentError as unknown:
        if options.reader == "direct":
            hint = "`--reader auto` has NVIDIA's module read it"
            raise InputError(f"the direct reader does not know {unknown}", hint) from unknown
        report = _with_nvidia(path, source, options)
        return replace(report, notes=(*report.notes, f"read with NVIDIA's module: {unknown} is unknown"))


def _read(data: Bytes, digest: str, source: str, options: ReadOptions, path: Path | None) -> Report:
    """Read a report from its bytes; with a path, NVIDIA's module adds the text of instructions."""
    (whole,) = _parts(data, digest, source, options, path)
    return replace(whole, kernels=tuple(sorted(whole.kernels, key=lambda kernel: kernel.index)))


def _parts(  # noqa: PLR0913 - as `_read`
    data: Bytes,
    digest: str,
    source: str,
    options: ReadOptions,
    path: Path | None,
    *,
    kernels_at_once: int | None = None,
) -> Iterator[Report]:
    """Read a report from its bytes, piece by piece; the notes come with the last piece."""
    found = outline(data, path.suffix.lower() if path else "")
    container = Container(digest, len(data), len(found.places), (), found.sessions, found.synthetic)
    raw = raw_table(digest, options)
    direct = Direct(data, found, raw, with_lines=len(found.places) <= MOST_IN_TEXT)
    reading = Reading(direct, digest, path, options, results_of(direct, raw, container, options))
    for part in make_parts(reading, "direct", container, source, raw, kernels_at_once=kernels_at_once):
        notes, reading.notes = reading.notes, []
        yield replace(part, notes=(*part.notes, *notes), untold=reading.untold)


class Reading:
    """The direct reader at work, with NVIDIA's module for the text of instructions.

    Args:
        direct: The reader.
        digest: SHA-256 of the report, in hex.
        path: The report; None where NVIDIA's module must not be asked.
        options: What is wanted of it.
        results: The results as they are read; by default each by itself.
    """

    def __init__(
        self,
        direct: Direct,
        digest: str,
        path: Path | None,
        options: ReadOptions,
        results: Iterator[RawResult | Rows] | None = None,
    ) -> None:
        self._direct = direct
        self._digest = digest
        self._results = results
        self._path = path
        self._options = options
        self.notes: list[str] = []
        self.untold: Codes = {}

    def results(self) -> Iterator[RawResult | Rows]:
        """Read all results, in the order of the file."""
        return self._direct.results() if self._results is None else self._results

    def codes(self, wanted: Sequence[int]) -> Codes:
        """Read the instructions of some results again, with their source lines and, if wanted, their text."""
        known: dict[int, Code] = {}
        unknown: dict[int, Instructions] = {}
        for index in wanted:
            if (code := self._direct.known_code(index)) is not None:
                known[index] = code
                continue
            stored = self._direct.instructions(index)
            if stored is None or stored.figures is not None:
                continue  # published figures hold all that there is
            code = self._direct.lined_code(index, stored)
            if code is None or code.needs_texts:
                unknown[index] = stored
            else:
                known[index] = code
        return {**self._with_sass(known), **(self._read_elsewhere(unknown) if unknown else {})}

    def _with_sass(self, known: Codes) -> Codes:
        """Add the text, from the cache or from NVIDIA's disassembler."""
        from rooflens.ingest.cubin.kept_sass import kept_sass  # noqa: PLC0415 - only for instructions
        from rooflens.ingest.metrics.sass import addresses, with_sass  # noqa: PLC0415 - as above

        asked = addresses(known) if self._options.texts else {}
        if not asked:
            return known
        may_be_kept = self._path is not None and not self._options.verify
        if may_be_kept and (sass := kept_sass(self._digest, asked)) is not None:
            return with_sass(known, sass)
        if self._path is not None and self._options.texts_later:
            self.untold = {index: known[index] for index in asked}
            return known
        codes, notes = disassembled(self._path, self._digest, known, self._options)
        self.notes += notes
        return codes

    def _read_elsewhere(self, unknown: Mapping[int, Instructions]) -> Codes:
        """Have NVIDIA's module read code of which our own reader cannot tell enough."""
        from rooflens.ingest.reports.ncu_reader import read_texts  # noqa: PLC0415 - it makes reports as well

        missing = "SASS text and source lines are missing"
        found, notes = _in_child(read_texts, missing, self._path, self._options, unknown)
        self.notes += notes
        return found or {}


def disassembled(path: Path | None, digest: str, codes: Codes, options: ReadOptions) -> tuple[Codes, tuple[str, ...]]:
    """Have NVIDIA's disassembler give the text of the hottest instructions, and keep it.

    Args:
        path: A plain report; None where NVIDIA's module must not be asked.
        digest: SHA-256 of the report, in hex.
        codes: Its code, by index of the result.
        options: What is wanted of it.

    Returns:
        The code with its text, and no note; or as it was, with a note, if there is no disassembler, or it dies.
    """
    from rooflens.ingest.cubin.kept_sass import keep_sass  # noqa: PLC0415 - only for instructions
    from rooflens.ingest.metrics.sass import addresses, with_sass  # noqa: PLC0415 - as above
    from rooflens.ingest.reports.nvidia import read_sass  # noqa: PLC0415 - as above

    asked = addresses(codes)
    found, notes = _in_child(read_sass, "SASS text is missing", path, options, asked, digest)
    if found is None:
        return codes, notes
    keep_sass(digest, asked, found)
    return with_sass(codes, found), notes


def _in_child(
    read: Callable[..., Any], missing: str, path: Path | None, options: ReadOptions, *asked: Any
) -> tuple[dict[int, Any] | None, tuple[str, ...]]:
    """Ask NVIDIA's module; None, with a note of what is missing, if it must not be asked, fails or dies."""
    if path is None:
        return None, (f"{missing}: NVIDIA's module was not asked",)
    try:
        return in_child(read, path, *asked, deadline_s=options.deadline_s), ()
    except InputError as error:
        return None, (f"{missing}: {error}",)


def _with_nvidia(path: Path, source: str, options: ReadOptions) -> Report:
    from rooflens.ingest.reports.ncu_reader import read_with_nvidia  # noqa: PLC0415 - it makes reports as well

    wanted = replace(options, read_rows=None)
    report: Report = in_child(read_with_nvidia, path, source, wanted, deadline_s=options.deadline_s)
    return report


def _verify(path: Path, source: str, options: ReadOptions) -> None:
    """Read a report with both readers, with every stored value, and compare what they read.

    Raises:
        InputError: They differ, or only NVIDIA's reader can read it.
    """
    everything = replace(options, reader="auto", raw="all", read_rows=None, texts=True)
    ours = _directly(path, source, everything)
    if ours.run.reader != "direct":
        hint = "`--verify` compares the direct reader with NVIDIA's: leave it out"
        raise InputError(f"cannot be verified: {ours.notes[-1]}", hint)
    differences = list(differences_of(ours, _with_nvidia(path, source, everything)))
    if differences:
        places = "1 place" if len(differences) == 1 else f"{len(differences):,} places"
        raise InputError(f"the readers differ in {places}: {'; '.join(differences[:3])}", _BUG)


def differences_of(ours: Report, theirs: Report) -> Iterator[str]:
    """Yield where two reports of one file differ, apart from who read them."""
    if replace(ours.run, reader="") != replace(theirs.run, reader=""):
        yield "the run"
    if len(ours.kernels) != len(theirs.kernels):
        yield f"{len(ours.kernels)} kernels, not {len(theirs.kernels)}"
    for kernel, other in zip(ours.kernels, theirs.kernels, strict=False):
        names = kernel.__struct_fields__
        yield from (
            f"{name} of result {kernel.index}" for name in names if getattr(kernel, name) != getattr(other, name)
        )
    for what, table, other_table in (("values", ours.raw, theirs.raw), ("instances", ours.instances, theirs.instances)):
        if table is not None and other_table is not None and not comparable(table).equals(comparable(other_table)):
            yield f"stored {what}"


def comparable(table: pa.Table) -> pa.Table:
    """Return a table with its rows sorted, as readers differ in their order, and doubles as their bits."""
    import pyarrow as pa  # noqa: PLC0415 - only where stored values were asked for

    columns: dict[str, pa.Array] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        columns[name] = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, whole.type)
    bits = columns["value_double"].view(pa.int64())
    order = [(name, "ascending") for name in ("kernel_index", "name", "instance") if name in columns]
    return pa.table(columns | {"value_double": bits}).sort_by(order)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Bytes, str]]:
    """Give the bytes of a file and their digest: in memory, or for a large file as a window on it.

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
    """The bytes of an open file, read on demand: if it were mapped and then cut, the process would be killed."""

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
        """Read that many bytes, or all up to the end; one system call gives 2 GiB at most."""
        parts: list[bytes] = []
        while count > 0 and (part := os.pread(self._descriptor, count, start)):
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return b"".join(parts)
