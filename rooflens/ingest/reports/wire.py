"""Walk a report's container and messages field by field, and write them back with some fields changed.

Unknown fields are copied unchanged, so that only the intended bytes change. Standard library only: it runs on GPU
machines where little else is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

from rooflens.errors import InputError
from rooflens.ingest.messages.messages import FIELDS
from rooflens.ingest.reports.unpacking import INTACT_HINT, MAGIC

Treatment: TypeAlias = "Callable[[bytes], bytes] | Mapping[int, Treatment] | None"
"""How to treat a field: map its bytes, treat its message field by field, or drop it (None)."""

_VERSION = b"\x08\x07"  # the file header of version 7, which every known Nsight Compute writes
_LENGTH_BYTES = 4
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT_BYTES = 10

# Fields of BlockHeader.
SOURCES, RESULTS, PAYLOAD_SIZE, RANGES, COMMAND_LISTS, GRAPHS, DRAWINGS = 1, 2, 5, 7, 8, 9, 10
_REQUIRED = (SOURCES, RESULTS, PAYLOAD_SIZE)
_IN_ORDER = (SOURCES, DRAWINGS, RESULTS, RANGES, COMMAND_LISTS, GRAPHS)
"""What a payload holds, by the header field that counts it."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a report; `numbers` are the header's numeric fields."""

    header: bytes
    numbers: Mapping[int, int]
    payload: bytes

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """Yield the messages of the payload, each with the header field that counts its kind; they fill it exactly.

        Raises:
            InputError: The messages do not fill the payload.
        """
        offset = 0
        for kind in _IN_ORDER:
            for _ in range(self.numbers.get(kind, 0)):
                found, offset = framed_at(self.payload, offset)
                yield kind, found
        if offset != len(self.payload):
            raise damaged(offset)


def blocks_of(report: bytes) -> tuple[bytes, list[Block]]:
    """Return the bytes before the first block, and all blocks.

    Raises:
        InputError: The report cannot be walked to its exact end, or is of an unknown version.
    """
    start = len(MAGIC) + _LENGTH_BYTES
    if report[: len(MAGIC)] != MAGIC:
        raise InputError("no report of Nsight Compute: it does not start with `NVR`", INTACT_HINT)
    offset = start + _length_at(report, len(MAGIC))
    if report[start:offset] != _VERSION:
        raise InputError("the report is of an unknown version, or damaged", INTACT_HINT)
    blocks = list(_blocks(report, offset))
    if not blocks:
        raise damaged(offset)
    return report[:offset], blocks


def encode_block(header: bytes, messages: Sequence[tuple[int, bytes]], treatment: Treatment) -> bytes:
    """Write a block again with some of its messages.

    Args:
        header: The original header.
        messages: The messages to keep, in payload order.
        treatment: How to change the header's fields.
    """
    # The header holds counts and size, so a block that loses a message needs a new header.
    payload = b"".join(framed(message) for _, message in messages)
    kinds = [kind for kind, _ in messages]
    numbers = {PAYLOAD_SIZE: len(payload), **{kind: kinds.count(kind) for kind in _IN_ORDER}}
    return framed(treated(header, treatment, numbers)) + payload


def _blocks(report: bytes, offset: int) -> Iterator[Block]:
    while offset < len(report):
        header, offset = framed_at(report, offset)
        numbers = {one.number: one.value for one in fields(header)}
        if any(number not in numbers for number in _REQUIRED):
            raise damaged(offset)
        end = offset + numbers[PAYLOAD_SIZE]
        if end > len(report):
            raise damaged(offset)
        yield Block(header, numbers, report[offset:end])
        offset = end


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an encoded message, from `start` to `end`; its content begins at `content`."""

    number: int
    kind: int
    value: int
    start: int
    content: int
    end: int


def fields(encoded: bytes) -> Iterator[Field]:
    """Yield the fields, which must fill the message exactly."""
    offset = 0
    while offset < len(encoded):
        key, content = _varint_at(encoded, offset)
        number, kind, value = key >> 3, key & 7, 0
        if kind == _VARINT:
            value, end = _varint_at(encoded, content)
        elif kind == _DELIMITED:
            length, content = _varint_at(encoded, content)
            end = content + length
        elif kind in {_FIXED32, _FIXED64}:
            end = content + (8 if kind == _FIXED64 else 4)
        else:
            raise damaged(offset)
        # Field number 0 is forbidden by the format: seeing it means that these bytes are not a message.
        if not number or end > len(encoded):
            raise damaged(offset)
        yield Field(number, kind, value, offset, content, end)
        offset = end


def contents(encoded: bytes, number: int, *further: int) -> Iterator[bytes]:
    """Yield the content of each field with this number, or of the nested fields given by `further`."""
    for one in fields(encoded):
        if one.number == number and one.kind == _DELIMITED:
            content = encoded[one.content : one.end]
            if further:
                yield from contents(content, *further)
            else:
                yield content


def decoded(name: str, encoded: bytes) -> Any:
    """Decode a message of `FIELDS` without protocol buffers; absent fields are zero, empty, or None for a message.

    Raises:
        InputError: The bytes are no message.
    """
    rows = {number: row for *row, number in FIELDS[name]}
    found: dict[str, Any] = {attribute: _nothing(label, kind) for label, kind, attribute in rows.values()}
    for one in fields(encoded):
        label, kind, attribute = rows.get(one.number, ("", "", ""))
        if not attribute or (one.kind == _DELIMITED) != (kind == "bytes" or kind in FIELDS):
            continue
        content: Any = encoded[one.content : one.end] if one.kind == _DELIMITED else one.value
        value = decoded(kind, content) if kind in FIELDS else content
        if label == "repeated":
            found[attribute].append(value)
        else:
            found[attribute] = value
    return SimpleNamespace(**found)


def _nothing(label: str, kind: str) -> Any:
    """Return the default of an absent field."""
    if label == "repeated":
        return []
    return None if kind in FIELDS else b"" if kind == "bytes" else 0


def treated(encoded: bytes, treatment: Treatment, numbers: Mapping[int, int] | None = None) -> bytes:
    """Apply a treatment to a field's content; `numbers` gives new values of numeric fields."""
    if treatment is None:
        return b""
    if callable(treatment):
        return treatment(encoded)
    parts, copied = [], 0
    for one in fields(encoded):
        new = encoded[one.start : one.end]
        if one.kind == _VARINT and numbers and one.number in numbers:
            new = encode_field(one.number, numbers[one.number])
        elif one.kind == _DELIMITED and one.number in treatment:
            new = _treated_field(new, encoded[one.content : one.end], one.number, treatment[one.number])
        if new != encoded[one.start : one.end]:
            parts += [encoded[copied : one.start], new]
            copied = one.end
    return b"".join([*parts, encoded[copied:]])


def _treated_field(old: bytes, content: bytes, number: int, treatment: Treatment) -> bytes:
    """Treat one field; if nothing changes, its bytes stay the same."""
    if treatment is None:
        return b""
    new = treated(content, treatment)
    # Encoding is not unique (a length may have spare bytes), so an untouched field is copied, not encoded again.
    return old if new == content else encode_field(number, new)


def _varint_at(encoded: bytes, offset: int) -> tuple[int, int]:
    """Return the varint at `offset` (seven bits per byte), and where it ends."""
    value = 0
    for index, byte in enumerate(encoded[offset : offset + _LONGEST_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, offset + index + 1
    raise damaged(offset)


def encode_field(number: int, content: bytes | int) -> bytes:
    """Encode a field: bytes or a message, or a number."""
    if isinstance(content, int):
        return varint(number << 3 | _VARINT) + varint(content)
    return varint(number << 3 | _DELIMITED) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Encode a number with seven bits per byte."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def framed(encoded: bytes) -> bytes:
    """Prefix a message with its length."""
    return len(encoded).to_bytes(_LENGTH_BYTES, "little") + encoded


def framed_at(data: bytes, offset: int) -> tuple[bytes, int]:
    """Return the length-prefixed message at `offset`, and where it ends."""
    start = offset + _LENGTH_BYTES
    end = start + _length_at(data, offset)
    if max(start, end) > len(data):
        raise damaged(offset)
    return data[start:end], end


def _length_at(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + _LENGTH_BYTES], "little")


def damaged(offset: int) -> InputError:
    """Make the error for bytes that are no message."""
    return InputError(
        f"damaged: it cannot be walked past offset {offset:,} of the report or of a part of it", INTACT_HINT
    )
