"""Split a report of many cases, each in its own range, into one report per case.

Starting ncu and PyTorch once for all cases saves minutes, but reports are read, compared and kept per case. Each result
is copied byte by byte into its case's report, with all names that it may refer to, the code of its modules and the
facts about its process. Standard library only, like collecting.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from rooflens.errors import InputError
from rooflens.files import write_whole
from rooflens.ingest.messages.messages import contents, decoded, fields
from rooflens.ingest.messages.sessions import open_ranges
from rooflens.ingest.reports.container import DRAWING, KERNEL, SOURCE, ReportBlock, blocks, file_head, payload
from rooflens.ingest.reports.unpacking import unpacked
from rooflens.ingest.reports.wire import Treatment, encode_block, encode_field, framed, treated

PART_PROVIDER = "rooflens part of a report"
"""Provider of the version entry that names a part's case and the SHA-256 of the whole report."""

UNMARKED = ""
"""Stands for the case of results outside every case's range."""

_CASE = re.compile(r"[a-z][a-z0-9_]*\.[A-Za-z0-9_]+")
"""Form of a case's range name, such as `gemm.bf16_4096`, which becomes a file name."""

# Fields of BlockHeader, of session details and of results, numbered as in NVIDIA's definitions.
_SOURCES, _RESULTS, _DETAILS, _STRINGS, _PAYLOAD_SIZE, _PROCESS = 1, 2, 3, 4, 5, 6
_PROCESS_ID, _VERSION_INFO, _COMMAND_LINE = 1, 8, 11
_PROVIDER, _VERSION = 1, 2


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The report of one case.

    Attributes:
        results: Number of results in it.
    """

    report: bytes
    results: int


@dataclass(frozen=True, slots=True)
class _Message:
    """A message of a block's payload.

    Attributes:
        kind: As `blocks.payload` names it.
        case: The case of a result; None for other messages.
        module: Number of the module that holds a result's code, or of a source's module; None for others.
    """

    kind: str
    encoded: bytes
    case: str | None
    module: int | None


@dataclass(frozen=True, slots=True)
class _SplitBlock:
    """A block of the whole report.

    Attributes:
        process: ID of its process.
        process_info: The encoded facts about that process.
        details: Kind of its session details; None if it has no details.
    """

    header: bytes
    process: int
    process_info: bytes
    details: tuple[object, ...] | None
    messages: tuple[_Message, ...]


def split_report(
    report: Path, outer: str, place: Callable[[str], Path], command_of: Callable[[str, str], str] | None = None
) -> dict[str, int]:
    """Write a report for each case in a report; return the number of results per case.

    Args:
        report: The whole report, compressed or not.
        outer: Name of the profiled range; the ranges directly inside it are the cases.
        place: Returns where to write the report of a case.
        command_of: As for `split`.

    Returns:
        Counts by case, in report order; `UNMARKED` counts the results outside every case, which are written nowhere.

    Raises:
        InputError: The report is damaged, or a part cannot be written.
    """
    with unpacked(report) as plain:
        parts, unmarked = split(plain.read_bytes(), outer, command_of)
    for case, part in parts.items():
        write_whole(place(case), part.report, hint="is the disk full, or the folder not yours?")
    return {case: part.results for case, part in parts.items()} | ({UNMARKED: unmarked} if unmarked else {})


def split(
    report: bytes, outer: str, command_of: Callable[[str, str], str] | None = None
) -> tuple[dict[str, CaseReport], int]:
    """Split an uncompressed report by the ranges (of any kind) directly inside the outer range.

    Args:
        report: The whole report.
        outer: Name of the profiled range.
        command_of: Turns ncu's command line and a case into the part's command line; by default the whole line.

    Returns:
        The parts by case in report order, and the number of results outside every case.

    Raises:
        InputError: The report is damaged.
    """
    start = file_head(report)
    head, read = report[:start], [_read_block(report, block, outer.encode()) for block in blocks(report, start)]
    counts = Counter(one.case for block in read for one in block.messages if one.case is not None)
    digest = hashlib.sha256(report).hexdigest()
    parts = {}
    for case, count in counts.items():
        if case != UNMARKED:
            told = [*_blocks_of(read, case, partial(_command_line, command_of, case) if command_of else None)]
            mark = _mark(next(block for block in read if _is_of(block, case)), f"{case} of {digest}")
            parts[case] = CaseReport(b"".join([head, *told, mark]), count)
    return parts, counts[UNMARKED]


def _command_line(command_of: Callable[[str, str], str], case: str, line: bytes) -> bytes:
    """Reduce a command line to what concerns one case; undecodable bytes are kept."""
    return command_of(line.decode("utf-8", "surrogateescape"), case).encode("utf-8", "surrogateescape")


def _read_block(report: bytes, block: ReportBlock, outer: bytes) -> _SplitBlock:
    """Read the parts of a block that decide where its content goes."""
    header = decoded("BlockHeader", block.header)
    process_info = b"".join(contents(block.header, _PROCESS))
    return _SplitBlock(
        block.header,
        header.Process.ProcessID if header.Process else 0,
        process_info,
        None if header.SessionDetails is None else _kind_of(*contents(block.header, _DETAILS)),
        tuple(_message(kind, report[start:end], outer) for kind, start, end in payload(report, block)),
    )


def _kind_of(*details: bytes) -> tuple[object, ...]:
    """Return the kind of some details: their fields and, for a version, its provider."""
    providers = tuple(provider for one in details for provider in contents(one, _VERSION_INFO, _PROVIDER))
    return (*sorted({one.number for encoded in details for one in fields(encoded)} - {_PROCESS_ID}), providers)


def _message(kind: str, encoded: bytes, outer: bytes) -> _Message:
    if kind == SOURCE:
        return _Message(kind, encoded, None, decoded("SourceData", encoded).Reference)
    if kind == DRAWING:
        return _Message(kind, encoded, None, None)
    # Ranges, command lists and graphs are equal in everything that is read here.
    message = decoded("BareProfileResult" if kind == KERNEL else "BareRangeResult", encoded)
    module = decoded("SourceData", message.Source).Reference if kind == KERNEL else None
    return _Message(kind, encoded, _case_of(message.Nvtx, message.ThreadID, outer), module)


@lru_cache(maxsize=1024)
def _case_of(state: bytes, thread_id: int, outer: bytes) -> str:
    """Name the case whose range is directly inside the outer range; `UNMARKED` if there is no such range.

    If two ranges begin without a CUDA call between them, only their numbers tell which is the outer one.
    """
    try:
        names = [name for _, name in open_ranges(decoded("NvtxState", state), thread_id)]
    except InputError:  # its numbers are whole
        return UNMARKED
    if outer not in names:
        return UNMARKED
    at = names.index(outer)
    beside = (name.decode("utf-8", "replace") for name in (*names[at + 1 : at + 2], *names[max(at - 1, 0) : at]))
    return next((name for name in beside if _CASE.fullmatch(name)), UNMARKED)


def _is_of(block: _SplitBlock, case: str) -> bool:
    return any(one.case == case for one in block.messages)


def _blocks_of(blocks: Sequence[_SplitBlock], case: str, line_of: Callable[[bytes], bytes] | None) -> Iterator[bytes]:
    """Yield the blocks of a case's report: the session's facts, the code of its results, and the results."""
    own = [block for block in blocks if _is_of(block, case)]
    processes = {block.process: block for block in own}
    modules = {(block.process, one.module) for block in own for one in block.messages if one.case == case}
    known = {block.details for block in blocks if block.process in processes}
    # Names are numbered across all blocks, so the tables of names are copied unchanged.
    names = b"".join(content for block in blocks for content in contents(block.header, _STRINGS))
    for block in blocks:
        kept = [one for one in block.messages if _belongs(one, case, block.process, modules)]
        if not kept and (block.details is None or (block.process not in processes and block.details in known)):
            continue
        header = treated(block.header, {_STRINGS: None})
        if names and any(one.case for one in kept):
            header, names = header + encode_field(_STRINGS, names), b""
        # Some details appear once in a report, for the first process: they hold for all.
        of_process = block if block.process in processes else own[0]
        details: Treatment = partial(_of_process, of_process.process, {_COMMAND_LINE: line_of} if line_of else {})
        treatment: Treatment = {_PROCESS: partial(_instead, of_process.process_info), _DETAILS: details}
        yield encode_block(header, [(one.kind, one.encoded) for one in kept], treatment)


def _belongs(message: _Message, case: str, process: int, modules: Container[tuple[int, int | None]]) -> bool:
    """Return whether a message is a result or code of a case; the viewer's graph drawings belong to no case."""
    if message.case is None:
        return message.module is not None and (process, message.module) in modules
    return message.case == case


def _instead(new: bytes, _: bytes) -> bytes:
    return new


def _of_process(process: int, treatment: Treatment, details: bytes) -> bytes:
    return treated(details, treatment, {_PROCESS_ID: process})


def _mark(block: _SplitBlock, text: str) -> bytes:
    """Write the block that says which report and case a part comes from."""
    version = encode_field(_PROVIDER, PART_PROVIDER.encode()) + encode_field(_VERSION, text.encode())
    details = encode_field(_PROCESS_ID, block.process) + encode_field(_VERSION_INFO, version)
    header = (
        encode_field(_SOURCES, 0),
        encode_field(_RESULTS, 0),
        encode_field(_DETAILS, details),
        encode_field(_PAYLOAD_SIZE, 0),
        encode_field(_PROCESS, block.process_info),
    )
    return framed(b"".join(header))
