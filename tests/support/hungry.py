"""Reports that need more memory than available, but little of the disk: sparse, or compressed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, repeat
from pathlib import Path

import pyarrow as pa
from support.damage import block_starts
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report

from rooflens.ingest.messages.messages import message
from rooflens.ingest.reports.container import outline

_HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","gpu__time_duration.sum"\n'
)
_ROW = '"0","1","a.out","127.0.0.1","k()","1","7","(256, 1, 1)","(1, 1, 1)","0","9.0","1"\n'
_TABLE = "sass__inst_executed_per_opcode"
_NAME, _METRIC = b"\x3a", b"\x6a"
"""Tags of a result's demangled name, and of a metric."""

_LENGTH_BYTES = 4
_CHUNK_BYTES = 1 << 20
_NOISE = random.Random(1).randbytes(8 << 20)  # noqa: S311 - no secret
"""What does not shrink: with it a compressed report seems large enough for workers."""

_PAIR = b"\x1a\x13\x0a\x06\x0a\x04IMAD\x12\x09\x19"
"""An instance, but for the eight bytes of its value."""


def write_csv(file: Path, byte_count: int) -> None:
    """Write an export that continues with zeros, which a sparse file does not store; one line is read three times."""
    with file.open("w") as text:
        text.write(_HEADER + 1_000 * _ROW)
        text.truncate(byte_count)


def write_name(file: Path, byte_count: int) -> None:
    """Write a sparse report of a kernel with a long name."""
    with file.open("wb") as report:
        report.write(_opened(_NAME, byte_count))
        report.truncate(report.tell() + byte_count)


def _pack_name(file: Path, byte_count: int) -> None:
    """Write the same, compressed."""
    count = (byte_count - len(_NOISE)) // _CHUNK_BYTES
    size = len(_NOISE) + count * _CHUNK_BYTES
    _pack(file, chain([_opened(_NAME, size), _NOISE], repeat(bytes(_CHUNK_BYTES), count)))


def _pack_table(file: Path, byte_count: int) -> None:
    """Write a report of a kernel with a metric of many instances, compressed."""
    noisy = b"".join(_PAIR + _NOISE[at : at + 8] for at in range(0, len(_NOISE), 8))
    alike = _CHUNK_BYTES // len(_PAIR) * (_PAIR + bytes(8))
    count = (byte_count - len(noisy)) // len(alike)
    start = bytes([8, outline(_report()).strings.index(_TABLE.encode())]) + noisy
    _pack(file, chain([_opened(_METRIC, len(start) + count * len(alike)), start], repeat(alike, count)))


HUNGRY: Mapping[str, tuple[str, Callable[[Path], None]]] = {
    "sparse CSV": (".csv", partial(write_csv, byte_count=2_000_000_000)),
    "sparse name": (".ncu-rep", partial(write_name, byte_count=1_900_000_000)),
    "zstd bomb": (".ncu-repz", partial(_pack_name, byte_count=1_900_000_000)),
    "instances": (".ncu-repz", partial(_pack_table, byte_count=1_200_000_000)),
}
"""What exhausts 3 GB: the ending of its name, and what writes it."""


def _report() -> bytes:
    return encode_report(
        ReportSpec([KernelSpec("k()", {"gpu__time_duration.sum": 1.0, _TABLE: Instances({"A": 1.0})})])
    )


def _opened(tag: bytes, byte_count: int) -> bytes:
    """Return a report that ends within its only result, before a field of this many bytes."""
    data = _report()
    (place,) = outline(data).places
    start = max(start for start in block_starts(data) if start < place.start)
    header = message("BlockHeader").FromString(data[start + _LENGTH_BYTES : place.start - _LENGTH_BYTES])
    result = data[place.start : place.end] + tag + _varint(byte_count)
    size = len(result) + byte_count
    header.PayloadSize = _LENGTH_BYTES + size
    return data[:start] + _framed(header.SerializeToString()) + size.to_bytes(_LENGTH_BYTES, "little") + result


def _framed(encoded: bytes) -> bytes:
    return len(encoded).to_bytes(_LENGTH_BYTES, "little") + encoded


def _varint(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _pack(file: Path, parts: Iterable[bytes]) -> None:
    with pa.CompressedOutputStream(str(file), "zstd") as packed:
        for part in parts:
            packed.write(part)
