"""Decode many results of one layout at once, straight from their bytes.

Kernels of a report store the same metrics in the same order, so one encoded kernel shows where the values of all are. A
shape is learnt from one result; each step of it is then taken for thousands of results together, in columns. Results
that differ from it in a single byte outside their values do not match, and are left to the reader of single results:
nothing is guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rooflens.ingest.metrics.layouts import DOUBLE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Offsets: TypeAlias = NDArray[np.int64]
Kind: TypeAlias = Literal["double", "count", "other"]

VARINT, LENGTHY = 0, 2
"""Protobuf wire types that results use."""

PADDING = 1 << 16
"""How many bytes follow the results in a buffer: no step looks further beyond the end of a result."""

_MOST_IN_BLOCK = 1_000
"""The most doubles that are matched together; they take fewer bytes than `PADDING`."""

_SHORT = 0x80
"""Numbers below it take one byte."""

_AROUND_COUNT = bytes([2 << 3 | LENGTHY, 0, 5 << 3])
"""What precedes a whole number: a tag, the length of the value, and a tag."""

_TOO_LONG = 1 << 40
"""Given as the size of a number of 9 or 10 bytes, of which only 8 are looked at: no result is as long."""

_MORE = np.uint64(0x8080808080808080)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
_JOINS = tuple(
    tuple(map(np.uint64, row))
    for row in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
"""Steps that close the gaps in a varint: mask of the low groups, mask of the high groups, shift of the high ones."""


class Entry(NamedTuple):
    """One metric of a result, as its shape has it.

    Attributes:
        kind: One double, one whole number, or something else.
        before: The bytes before the double, or before the tag of the value that holds the whole number.
        tail: The bytes after the value.
    """

    kind: Kind
    before: bytes = b""
    tail: bytes = b""


class Field(NamedTuple):
    """One encoded field of a message: its number, its wire type, and where its value starts and ends."""

    number: int
    wire: int
    start: int
    end: int


class Matched(NamedTuple):
    """What results of one shape hold; all offsets are into the buffer.

    Attributes:
        which: Their places among the results that were tried.
        begins, ends: Where each result begins and ends.
        first, last: Where the metrics of each begin and end.
        doubles: A row for each metric that is one double, a column for each result.
        counts: The same for metrics that are one whole number.
        starts, stops: The same for all others: where each is.
    """

    which: Offsets
    begins: Offsets
    ends: Offsets
    first: Offsets
    last: Offsets
    doubles: NDArray[np.float64]
    counts: NDArray[np.uint64]
    starts: Offsets
    stops: Offsets


class Buffer:
    """Bytes of many results.

    Args:
        data: The results, and `PADDING` bytes of anything after them.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes = np.frombuffer(data, np.uint8)
        self.words = np.ndarray((len(data) - DOUBLE_BYTES,), "<u8", data, strides=(1,))

    def blocks(self, size: int, at: Offsets) -> NDArray[np.uint8]:
        """Return so many bytes from each offset on."""
        windows = np.ndarray((len(self.data) - size,), f"V{size}", self.data, strides=(1,))
        return windows[at].view(np.uint8).reshape(len(at), size)

    def numbers(self, at: Offsets) -> tuple[NDArray[np.uint64], Offsets]:
        """Return the varint at each offset, and how many bytes it takes: `_TOO_LONG` for 9 or 10."""
        first = self.bytes[at]
        if first.max(initial=0) < _SHORT:
            return first.astype(np.uint64), np.ones(at.shape, np.int64)
        words = self.words[at]
        ends = ~words & _MORE
        last = ends & (~ends + np.uint64(1))  # the lowest bit that is set
        values = words & ((last << np.uint64(1)) - np.uint64(1)) & _SEVENS
        for low, high, shift in _JOINS:
            values = values & low | (values & high) >> shift
        sizes = np.frexp(last.astype(np.float64))[1].astype(np.int64) // 8
        return values, np.where(last == 0, _TOO_LONG, sizes)


class Shape:
    """How results of one layout are encoded, apart from their values.

    Args:
        head: Tag and wire type of each field before the metrics; tags take one byte.
        tag: Tag of a metric.
        entries: The metrics, in order; whole numbers all have the same tail, or none.
    """

    def __init__(self, head: Sequence[tuple[int, int]], tag: int, entries: Sequence[Entry]) -> None:
        self._head = head
        self._tag = tag
        self._steps = list(_steps(entries, tag))
        self._kinds = [entry.kind for entry in entries]
        counts = [entry for entry in entries if entry.kind == "count"]
        self._offsets = _upright([len(entry.before) + len(_AROUND_COUNT) for entry in counts])
        self._lengths = _upright([8 * (len(entry.before) + 1) for entry in counts]).astype(np.uint64)
        self._before = _upright([_word(entry.before + _AROUND_COUNT) for entry in counts], np.uint64)
        self._masks = _upright([_word(b"\xff" * len(entry.before) + b"\xff\x00\xff") for entry in counts], np.uint64)
        self._tails = _upright([len(entry.tail) for entry in counts])
        (self._tail,) = {entry.tail for entry in counts if entry.tail} or (b"",)

    def match(self, buffer: Buffer, starts: Offsets, ends: Offsets) -> Matched:
        """Decode the results that have this shape.

        Args:
            buffer: Holds the results.
            starts: Where each begins.
            ends: Where each ends.
        """
        walk = _Walk(buffer, starts, ends)
        for tag, wire in self._head:
            walk.field(tag, has_length=wire == LENGTHY)
        first = walk.at
        doubles = np.empty((self._kinds.count("double"), len(starts)))
        places = {kind: np.empty((2, self._kinds.count(kind), len(starts)), np.int64) for kind in ("count", "other")}
        done = dict.fromkeys(("double", "count", "other"), 0)
        for step in self._steps:
            if not walk.fits.any():
                break
            if isinstance(step, _Block):
                size = len(step.places)
                doubles[done["double"] : done["double"] + size] = walk.block(step)
                done["double"] += size
            else:
                places[step][:, done[step]] = walk.field(self._tag)
                done[step] += 1
        walk.end(self._tag)
        if not walk.fits.any():
            doubles[:], places["count"][:], places["other"][:] = 0, 0, 0
        values, are_counts = self._counts(buffer, *places["count"])
        (which,) = np.nonzero(walk.fits & are_counts)
        rows = (starts, ends, first, walk.at, doubles, values, *places["other"])
        return Matched(which, *(rows if len(which) == len(starts) else (some[..., which] for some in rows)))

    def _counts(self, buffer: Buffer, starts: Offsets, ends: Offsets) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the whole numbers, and which results have them where they should be."""
        words = buffer.words[starts]
        values, sizes = buffer.numbers(starts + self._offsets)
        fits = (words & self._masks) == self._before
        fits &= (words >> self._lengths & np.uint64(0xFF)) == (sizes + 1).astype(np.uint64)
        fits &= ends == starts + self._offsets + sizes + self._tails
        for place, byte in enumerate(self._tail):
            fits &= (self._tails == 0) | (buffer.bytes[ends - len(self._tail) + place] == byte)
        return values, fits.all(axis=0)


class _Block(NamedTuple):
    """Consecutive doubles: they take the same number of bytes in every result.

    Attributes:
        mask, around: Which bits are not part of a value, and what they must be.
        places: Where the bytes of each double are.
    """

    mask: NDArray[np.uint8]
    around: NDArray[np.uint8]
    places: Offsets


class _Walk:
    """A cursor in each of some results, moving from field to field."""

    def __init__(self, buffer: Buffer, starts: Offsets, ends: Offsets) -> None:
        self._buffer = buffer
        self._ends = ends
        self.at = starts
        self.fits = np.ones(len(starts), np.bool_)

    def field(self, tag: int, *, has_length: bool = True) -> tuple[Offsets, Offsets]:
        """Pass over a field; return where its value starts and ends, if it has a length."""
        self.fits &= self._buffer.bytes[self.at] == tag
        values, sizes = self._buffer.numbers(self.at + 1)
        starts = self.at + 1 + sizes
        self._move(starts + values.astype(np.int64) if has_length else starts)
        return np.minimum(starts, self._ends), self.at

    def end(self, tag: int) -> None:
        """Drop results in which another field with this tag follows."""
        self.fits &= (self.at == self._ends) | (self._buffer.bytes[self.at] != tag)

    def block(self, block: _Block) -> NDArray[np.float64]:
        """Pass over doubles, and return them."""
        found = self._buffer.blocks(len(block.mask), self.at)
        self.fits &= ((found & block.mask) == block.around).all(axis=1)
        self._move(self.at + len(block.mask))
        return found.take(block.places.ravel(), axis=1).view("<f8").T

    def _move(self, to: Offsets) -> None:
        """Move on, at most to the end of each result."""
        self.fits &= to <= self._ends
        self.at = np.minimum(to, self._ends)


def _steps(entries: Sequence[Entry], tag: int) -> Iterator[_Block | Literal["count", "other"]]:
    """Join neighbouring doubles into blocks of at most `_MOST_IN_BLOCK`."""
    parts: list[tuple[bytes, bytes]] = []
    for entry in entries:
        if parts and (entry.kind != "double" or len(parts) == _MOST_IN_BLOCK):
            yield _block(parts)
            parts = []
        if entry.kind == "double":
            length = len(entry.before) + DOUBLE_BYTES + len(entry.tail)
            parts.append((bytes([tag, length]) + entry.before, entry.tail))
        else:
            yield entry.kind
    if parts:
        yield _block(parts)


def _block(parts: Sequence[tuple[bytes, bytes]]) -> _Block:
    around = b"".join(before + bytes(DOUBLE_BYTES) + after for before, after in parts)
    mask = b"".join(b"\xff" * len(before) + bytes(DOUBLE_BYTES) + b"\xff" * len(after) for before, after in parts)
    (places,) = np.nonzero(np.frombuffer(mask, np.uint8) == 0)
    return _Block(np.frombuffer(mask, np.uint8), np.frombuffer(around, np.uint8), places.reshape(-1, DOUBLE_BYTES))


def _word(few: bytes) -> int:
    return int.from_bytes(few, "little")


def _upright(numbers: Sequence[int], kind: type[np.integer[Any]] = np.int64) -> NDArray[Any]:
    """Make a column of one number for each metric."""
    return np.array(numbers, kind).reshape(-1, 1)


def fields_of(encoded: bytes) -> list[Field] | None:
    """Return the fields of a message in order; None where one has another wire type, or is cut."""
    found: list[Field] = []
    at = 0
    while at < len(encoded):
        tag, at = _number(encoded, at)
        start = at
        if tag & 7 == VARINT:
            _, at = _number(encoded, at)
        elif tag & 7 == LENGTHY:
            size, start = _number(encoded, at)
            at = start + size
        else:
            return None
        found.append(Field(tag >> 3, tag & 7, start, at))
    return found if at == len(encoded) else None


def _number(encoded: bytes, at: int) -> tuple[int, int]:
    """Return the varint at an offset, and where it ends: beyond the end of the data if it is cut."""
    value = shift = 0
    while at < len(encoded):
        byte = encoded[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < _SHORT:
            return value, at
    return value, len(encoded) + 1
