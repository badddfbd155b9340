"""Damage reports as disks, copies and interrupted runs do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from rooflens.ingest.messages.messages import message

_MAGIC_BYTES = 4
_LENGTH_BYTES = 4
_CUT_PER_CENT = (1, 10, 25, 50, 75, 90, 99)


def block_starts(data: bytes) -> list[int]:
    """Return the offset of every block of the intact report `data`."""
    offset = _MAGIC_BYTES + _LENGTH_BYTES + _length_at(data, _MAGIC_BYTES)
    starts = []
    while offset < len(data):
        starts.append(offset)
        start = offset + _LENGTH_BYTES
        end = start + _length_at(data, offset)
        offset = end + message("BlockHeader").FromString(data[start:end]).PayloadSize
    return starts


def certain_damage(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of copies of `data` that no reader may accept as a report."""
    yield "empty", b""
    yield "no magic", b"XXXX" + data[_MAGIC_BYTES:]
    yield "first byte lost", data[1:]
    yield "last byte lost", data[:-1]
    yield "header only", data[:10]
    yield "one byte more", data + b"\0"
    yield "zeros after the end", data + bytes(4096)
    yield "text after the end", data + b"==PROF== Disconnected from process\n"
    yield "doubled", data + data
    yield from _cuts(data)
    yield from _broken_lengths(data)


def _cuts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield `data` cut at several places, except between blocks, which leaves a shorter but intact report."""
    starts = set(block_starts(data))
    for per_cent in _CUT_PER_CENT:
        end = len(data) * per_cent // 100
        yield f"cut at {per_cent} %", data[: end + 1 if end in starts else end]


def _broken_lengths(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield `data` with the length of the file header and of some blocks changed."""
    starts = block_starts(data)
    for offset in (_MAGIC_BYTES, starts[0], starts[len(starts) // 2], starts[-1]):
        yield f"length at {offset} flipped", _with_flipped(data, [offset, offset + 1])


def flipped_copies(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield `count` copies of `data` with 1 to 64 bytes flipped; some of them are still reports."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    for number in range(count):
        offsets = [chance.randrange(len(data)) for _ in range(chance.choice((1, 4, 64)))]
        yield f"flipped {number}", _with_flipped(data, offsets)


def _with_flipped(data: bytes, offsets: list[int]) -> bytes:
    """Return `data` with all bits of the bytes at `offsets` inverted."""
    copy = bytearray(data)
    for offset in offsets:
        copy[offset] ^= 0xFF
    return bytes(copy)


def _length_at(data: bytes, offset: int) -> int:
    """Return the little-endian length at `offset`."""
    return int.from_bytes(data[offset : offset + _LENGTH_BYTES], "little")


UNKNOWN = b"\xd8\x07\x01"
"""Field 123 with the value 1, which no message has."""


def with_unknown_fields(data: bytes, *, instead_of: bytes = b"") -> bytes:
    """Add an unknown field to every block header, result, metric, value and instance of the intact report `data`.

    Args:
        data: A report of kernels only.
        instead_of: Name of the metric whose value is to stand in an unknown field.
    """
    start = block_starts(data)[0]
    written, strings = [data[:start]], list[bytes]()
    for offset in block_starts(data):
        at = offset + _LENGTH_BYTES
        end = at + _length_at(data, offset)
        header = message("BlockHeader").FromString(data[at:end])
        strings += header.StringTable.Strings
        payload = b""
        at = end
        for number in range(header.NumSources + header.NumResults):
            end = at + _LENGTH_BYTES + _length_at(data, at)
            encoded = data[at + _LENGTH_BYTES : end]
            payload += _framed(encoded if number < header.NumSources else _with_unknown(encoded, strings, instead_of))
            at = end
        header.PayloadSize = len(payload)
        written.append(_framed(header.SerializeToString() + UNKNOWN) + payload)
    return b"".join(written)


def _with_unknown(encoded: bytes, strings: list[bytes], instead_of: bytes) -> bytes:
    """Add unknown fields to a kernel, since bytes appended to a message are an unknown field."""
    result = message("ProfileResult").FromString(encoded)
    metrics = [_changed(metric, is_lost=strings[metric.NameId] == instead_of) for metric in result.MetricResults]
    del result.MetricResults[:]
    bare = message("BareProfileResult").FromString(result.SerializeToString())
    bare.MetricResults.extend(metrics)
    return bare.SerializeToString() + UNKNOWN


def _changed(metric: Any, *, is_lost: bool) -> bytes:
    for pair in metric.MetricValueList:
        pair.ElementValue.MergeFromString(UNKNOWN)
        pair.MergeFromString(UNKNOWN)
    if is_lost:
        metric.MetricValue.Clear()
    if metric.HasField("MetricValue"):
        metric.MetricValue.MergeFromString(UNKNOWN)
    return metric.SerializeToString() + UNKNOWN


def _framed(encoded: bytes) -> bytes:
    return len(encoded).to_bytes(_LENGTH_BYTES, "little") + encoded
