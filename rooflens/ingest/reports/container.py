r"""Walk the container of an Nsight Compute report, the same way wherever it is read, split or written again.

NVIDIA's reader silently opens a damaged file as a report with fewer kernels, or with no kernels. Walking the container
finds that, because its blocks must end exactly where the file ends:

    "NVR\0" | u32 n | FileHeader (n bytes)
    blocks:    u32 n | BlockHeader (n bytes) | payload (PayloadSize bytes)
    payload:   (u32 n | message (n bytes)) for each source, drawing of a graph (ncu 2025 on), and kernel, range,
               command list and graph result

Only a cut exactly between two blocks goes unnoticed: it leaves a shorter but flawless report, unless the strings that
the remaining results refer to are gone too. A bare GPU machine checks, splits and slims what ncu wrote: standard
library only, except for decoding (`outline`, `inspect`).
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple, Protocol

from rooflens.errors import INTACT_HINT, InputError
from rooflens.foreign import foreign_file
from rooflens.ingest.messages.messages import VARINT, decode, decoded, fields, unknown_fields
from rooflens.ingest.messages.sessions import Session, gather_sessions, is_synthetic
from rooflens.ingest.reports.unpacking import (
    HEAD_BYTES,
    INCOMPLETE_SUFFIX,
    MAGIC,
    NOT_A_REPORT_HINT,
    PLAIN_SUFFIX,
    temporary_file,
    unpacked,
)

_CUT_HINT = f"{INTACT_HINT}; its complete part is read under a name that ends in `{INCOMPLETE_SUFFIX}`"

_LENGTH_BYTES = 4
_CHUNK_BYTES = 1 << 20
FORMAT_VERSION = 7
_MOST_KNOWN = 1024
"""Headers kept for comparison with later ones."""
_LONGEST_HEADER_BYTES = 1 << 28  # real ones stay below 1 MB; four bytes of text read as a length give more than this

KERNEL, RANGE, COMMAND_LIST, GRAPH = "kernel", "range", "command list", "graph"
"""Kinds of results."""
SOURCE, DRAWING = NO_RESULTS = "source", "drawing of a graph"
"""The other kinds of messages."""

# Fields of FileHeader and BlockHeader, numbered as in NVIDIA's definitions.
_VERSION = 1
PAYLOAD_SIZE = 5
_NEW = frozenset((3, 4))
"""Session details and names, which a header with them adds to those before."""
COUNTS = {SOURCE: 1, DRAWING: 10, KERNEL: 2, RANGE: 7, COMMAND_LIST: 8, GRAPH: 9}
"""The field that counts the messages of each kind, in the order of the payload."""
_REQUIRED = frozenset((COUNTS[SOURCE], COUNTS[KERNEL], PAYLOAD_SIZE))

_BARE = {
    KERNEL: "BareProfileResult",
    RANGE: "BareRangeResult",
    COMMAND_LIST: "BareCommandListResult",
    GRAPH: "BareGraphResult",
}

_SUFFIX_HINTS = {
    ".csv": "rooflens reads ncu's tables only: `ncu --import REPORT --page raw --csv --print-units base` writes one",
    ".ncu-repz": "the name is a report's, but its first bytes are not: copy it again, or profile again",
    ".ncu-rep": "the name is a report's, but its first bytes are not: copy it again, or profile again",
    ".nsight-cuprof-report": "the name is a report's, but its first bytes are not: copy it again",
}


class Bytes(Protocol):
    """The bytes of an uncompressed report, in memory or in a file."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes: ...


class ResultSpan(NamedTuple):
    """Start and end of a result in a report, in bytes, and the ID of the process that launched it."""

    kind: str
    process_id: int
    start: int
    end: int


class Outline(NamedTuple):
    """What the container of a report says before any result is decoded.

    Attributes:
        digest: SHA-256 of the uncompressed file, in hex, so that a report has the same digest compressed or not.
        file_bytes: Size of the uncompressed file.
        places: One for each result, in the order of the file: kernels, ranges, command lists and graphs.
        strings: Names of metrics as stored, by index.
        sessions: One for each profiled process, in the order of the file.
        synthetic: The report says that it was generated, not recorded.
        labels: Name and ID of each process, by its ID.
        unknown: Fields of block headers that our definitions lack.
        sources: Start and end of each message with compiled code, as offsets from the start of the report.
    """

    digest: str
    file_bytes: int
    places: Sequence[ResultSpan]
    strings: Sequence[bytes]
    sessions: tuple[Session, ...]
    synthetic: bool
    labels: Mapping[int, str | None]
    unknown: frozenset[str]
    sources: Sequence[tuple[int, int]] = ()

    @property
    def result_count(self) -> int:
        """Number of results of any kind."""
        return len(self.places)


class ReportBlock(NamedTuple):
    """One block of the container; offsets count from the start of the file.

    Attributes:
        number: Of the block in the file, from 0.
        header: Its encoded header.
        counts: Kind and count of the messages in the payload, in order, without counts of zero.
        first: Number of the first block with an equal header, which alone says something new.
    """

    number: int
    offset: int
    header: bytes
    counts: tuple[tuple[str, int], ...]
    first: int
    payload_start: int
    payload_end: int


def inspect(path: Path) -> Outline:
    """Check the container of an uncompressed report and each of its results, and return the outline.

    The file is mapped, not loaded, and each result is decoded once. Errors leave naming the path to the caller.

    Raises:
        InputError: The file is missing, not a report, of an unknown version, damaged or without results.
    """
    with mapped(path) as data:
        found = outline(data, hashlib.sha256(data).hexdigest(), path.name)
        for index, place in enumerate(found.places):
            result = bare_result(data, index, place)
            metrics = [decode("MergedMetricResult", encoded) for encoded in result.MetricResults]
            if None in metrics:
                raise damaged_result(index, place)
            check_names((metric.NameId for metric in metrics), index, found.strings)
        return found


def outline(data: Bytes, digest: str = "", name: str = "") -> Outline:
    """Walk the container from first byte to last without decoding its results.

    Args:
        data: The whole report.
        digest: SHA-256 of it, in hex.
        name: The file's name, which helps to say what a file is that is not a report.

    Raises:
        InputError: The data is no report, is of an unknown version or damaged, or has no results.
    """
    places: list[ResultSpan] = []
    sources: list[tuple[int, int]] = []
    strings: list[bytes] = []
    known: dict[bytes, bytes] = {}  # names repeated in many blocks are kept, and sent to workers, once
    headers: list[Any] = []
    process_ids: set[int] = set()
    processes: list[int] = []  # of each block
    unknown: set[int] = set()
    for block in blocks(data, file_head(data, name)):
        is_new = block.first == block.number
        header: Any = decode("BlockHeader", block.header) if is_new else None
        if is_new and header is None:
            raise _undecodable(block.number, block.offset)
        process_id = header.Process.ProcessID if is_new else processes[block.first]
        processes.append(process_id)
        for kind, start, end in payload(data, block):
            if kind not in NO_RESULTS:
                places.append(ResultSpan(kind, process_id, start, end))
            elif kind == SOURCE:
                sources.append((start, end))
        if not is_new:
            continue
        strings += (known.setdefault(name, name) for name in header.StringTable.Strings)
        # The names were taken above: keeping them in the header too would double the memory.
        header.ClearField("StringTable")
        unknown |= unknown_fields(header)
        if header.HasField("SessionDetails") or process_id not in process_ids:
            headers.append(header)  # repeated headers say nothing new, and there may be 100,000
            process_ids.add(process_id)
    if not places:
        raise no_results()
    what = frozenset(f"field {number} of the header of a block" for number in unknown)
    sessions = gather_sessions(headers)
    labels = {session.process_id: session.process_label for session in sessions}
    return Outline(digest, len(data), places, strings, sessions, is_synthetic(headers), labels, what, sources)


def bare_result(data: Bytes, index: int, place: ResultSpan) -> Any:
    """Decode a result, leaving its metrics, rules and ranges encoded.

    Raises:
        InputError: The result cannot be decoded.
    """
    result = decode(_BARE[place.kind], data[place.start : place.end])
    if result is None:
        raise damaged_result(index, place)
    return result


def damaged_result(index: int, place: ResultSpan) -> InputError:
    """Make the error for a result that cannot be decoded."""
    return InputError(
        f"damaged: {place.kind} result {index}, {place.end - place.start:,} bytes at offset {place.start:,}, cannot be "
        "decoded",
        INTACT_HINT,
    )


def check_names(name_ids: Iterable[int], index: int, strings: Sequence[bytes]) -> None:
    """Check that the report has the names of a result's metrics.

    Raises:
        InputError: A name is missing.
    """
    highest = max(name_ids, default=-1)
    if highest >= len(strings):
        raise InputError(
            f"damaged: result {index} refers to string {highest:,}, but the report holds {len(strings):,} strings: its "
            "end is missing or bytes changed",
            INTACT_HINT,
        )


def regular_file_bytes(path: Path) -> int:
    """Return the size of the file at `path`.

    Raises:
        InputError: The path is no regular file, or the file is empty.
    """
    if not path.exists():
        raise InputError("no such file")
    if path.is_dir():
        raise InputError("is a directory, not a report")
    if not path.is_file():
        raise InputError("is not a regular file")
    if not (file_bytes := path.stat().st_size):
        raise InputError("the file is empty", INTACT_HINT)
    return file_bytes


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Map an uncompressed report instead of loading it.

    Raises:
        InputError: The path is no regular file, or the file is empty or cannot be read.
    """
    try:
        size = regular_file_bytes(path)
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from error
    with data:
        yield data


class Counts(NamedTuple):
    """How much a report holds: results, and modules of machine code."""

    results: int = 0
    modules: int = 0


def counts_of(path: Path) -> Counts:
    """Count what a plain report holds by the headers of its blocks alone, up to the first damage."""
    results = modules = 0
    with suppress(InputError), mapped(path) as data:
        for block in blocks(data, file_head(data, path.name)):
            for kind, count in block.counts:
                results += count if kind not in NO_RESULTS else 0
                modules += count if kind == SOURCE else 0
    return Counts(results, modules)


def result_count(path: Path) -> int:
    """Walk a plain report to its exact end, and count its results without decoding them.

    Raises:
        InputError: It cannot be read, is cut or damaged, or holds no results.
    """
    with mapped(path) as data:
        _, count, damage = _whole_part(data)
    if damage is not None:
        raise damage
    if not count:
        raise no_results()
    return count


def no_results() -> InputError:
    """Make the error for a report without results."""
    return InputError(
        "the report holds no results",
        "no kernel was profiled: check ncu's filters, and that the program ran to its end",
    )


class CompletePart(NamedTuple):
    """The complete part of a report that may have been cut.

    Attributes:
        path: An uncompressed report of that part.
        result_count: How many results it has.
        damage: What is wrong with the rest; empty if the report is complete.
    """

    path: Path
    result_count: int
    damage: str


@contextmanager
def readable_part(path: Path, max_bytes: int | None = None) -> Iterator[CompletePart]:
    """Give the complete part of a report, compressed or not, that was cut while it was written.

    ncu writes a block for each kernel, preceded by blocks with its code and its new names. So everything before the
    first damaged block is a report with fewer kernels. If nothing is damaged, the result is the file itself, else a
    temporary file that is removed when the `with` block ends.

    Raises:
        InputError: The file does not begin like a report, or cannot be unpacked.
    """
    with unpacked(path, max_bytes, to_damage=True) as plain, mapped(plain) as data:
        end, count, damage = _whole_part(data)
        if damage is None:
            yield CompletePart(plain, count, "")
            return
        pieces = (data[at : min(at + _CHUNK_BYTES, end)] for at in range(0, end, _CHUNK_BYTES))
        with temporary_file(pieces, f"report{PLAIN_SUFFIX}") as place:
            yield CompletePart(place, count, str(damage))


def _whole_part(data: Bytes) -> tuple[int, int, InputError | None]:
    """Return the end of the complete part of a report, the number of results in it, and the damage that follows."""
    end, count = file_head(data), 0
    try:
        for block in blocks(data, end):
            decoded("BlockHeader", block.header)
            results = sum(kind not in NO_RESULTS for kind, _, _ in payload(data, block))
            end, count = block.payload_end, count + results
    except InputError as error:
        return end, count, error
    return end, count, None


def file_head(data: Bytes, name: str = "") -> int:
    """Check magic and version, and return the offset of the first block.

    Args:
        data: The whole report.
        name: The file's name, which helps to say what a file is that is not a report.

    Raises:
        InputError: The data is no report, or one of an unknown version.
    """
    if data[: len(MAGIC)] != MAGIC:
        if (other := foreign_file(data[:HEAD_BYTES], name)) is not None:
            raise InputError(f"not an Nsight Compute report, but {other.what}", other.instead)
        hint = _SUFFIX_HINTS.get(PurePath(name.lower()).suffix) or NOT_A_REPORT_HINT
        raise InputError("not an Nsight Compute report: it does not start with `NVR`", hint)
    start = len(MAGIC) + _LENGTH_BYTES
    end = start + _length_at(data, len(MAGIC))
    if len(data) < start or len(data) < end:
        raise InputError(f"truncated: the file ends inside its header, at offset {len(data):,}", INTACT_HINT)
    version = _header_numbers(data[start:end]).get(_VERSION)
    if version is None:
        raise InputError(f"damaged: the file header at offset {start} cannot be decoded", INTACT_HINT)
    # In another version field numbers may mean something else; no numbers are better than wrong ones.
    if version != FORMAT_VERSION:
        raise InputError(
            f"version {version} of the report format is unknown: rooflens reads version {FORMAT_VERSION}",
            "if a newer Nsight Compute wrote this report, rooflens needs an update; otherwise the file is damaged",
        )
    return end


def blocks(data: Bytes, offset: int) -> Iterator[ReportBlock]:
    """Yield the blocks from `offset` to the exact end of the file, each with a complete payload.

    Raises:
        InputError: The file is cut or damaged.
    """
    # Headers without names and session, by their bytes: a process repeats equal headers, so they are walked once.
    known: dict[bytes, tuple[int, Mapping[int, int]]] = {}
    number = 0
    while offset < len(data):
        start = offset + _LENGTH_BYTES
        first_bytes = data[offset:start]
        # `cat a b` joins two reports; taken as a block, the magic would be a length of 5 MB.
        if first_bytes == MAGIC:
            raise InputError(f"two reports in one file: a second report starts at offset {offset:,}", INTACT_HINT)
        payload_start = start + int.from_bytes(first_bytes, "little")
        left_bytes = len(data) - offset
        # In foreign data a length is four arbitrary bytes, so an absurd length means "not a block", not "truncated".
        if left_bytes < _LENGTH_BYTES or payload_start - start > max(left_bytes, _LONGEST_HEADER_BYTES):
            raise InputError(
                f"damaged: the last {left_bytes:,} bytes, from offset {offset:,}, are not a block: "
                f"block {number} is cut off or foreign bytes follow the report",
                _CUT_HINT,
            )
        _check_end(data, payload_start, f"the header of block {number}")
        header = data[start:payload_start]
        first, numbers = known.get(header) or (number, _header_numbers(header))
        if not numbers.keys() >= _REQUIRED:
            raise _undecodable(number, offset)
        if len(known) < _MOST_KNOWN and _NEW.isdisjoint(numbers):
            known.setdefault(header, (first, numbers))
        payload_end = payload_start + numbers[PAYLOAD_SIZE]
        _check_end(data, payload_end, f"block {number}")
        counts = tuple((kind, numbers[field]) for kind, field in COUNTS.items() if numbers.get(field))
        yield ReportBlock(number, offset, header, counts, first, payload_start, payload_end)
        offset = payload_end
        number += 1


def payload(data: Bytes, block: ReportBlock) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each message in the payload of a block; together they must fill it exactly.

    Raises:
        InputError: They do not.
    """
    offset = block.payload_start
    for kind, count in block.counts:
        for ordinal in range(count):
            start = offset + _LENGTH_BYTES
            end = start + _length_at(data, offset)
            if max(start, end) > block.payload_end:
                raise InputError(
                    f"damaged: {kind} {ordinal} of block {block.number} at offset {offset:,} passes the end of the "
                    f"block at offset {block.payload_end:,}",
                    INTACT_HINT,
                )
            yield kind, start, end
            offset = end
    # Bytes that belong to no message mean a wrong count or length, so what was read cannot be trusted either.
    if offset != block.payload_end:
        raise InputError(
            f"damaged: block {block.number} holds {block.payload_end - offset:,} bytes at offset {offset:,} that "
            "belong to none of its results",
            INTACT_HINT,
        )


def _header_numbers(header: bytes) -> Mapping[int, int]:
    """Return the numeric fields of a header, and zero for names and session; empty if it is no message."""
    try:
        return {one.number: one.value for one in fields(header) if one.kind == VARINT or one.number in _NEW}
    except InputError:
        return {}


def _undecodable(number: int, offset: int) -> InputError:
    return InputError(
        f"damaged: the header of block {number} at offset {offset:,} cannot be decoded: its bytes changed or foreign "
        "bytes follow the report",
        INTACT_HINT,
    )


def _check_end(data: Bytes, end: int, what: str) -> None:
    """Raise unless the file reaches offset `end`."""
    if end > len(data):
        missing_bytes = end - len(data)
        raise InputError(f"truncated: {what} needs {missing_bytes:,} more bytes at offset {len(data):,}", _CUT_HINT)


def _length_at(data: Bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + _LENGTH_BYTES], "little")
