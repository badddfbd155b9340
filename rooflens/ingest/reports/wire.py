"""Write the blocks and messages of a report again with some fields changed.

Unknown fields are copied unchanged, so that only the intended bytes change. Standard library only: it runs on GPU
machines where little else is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from rooflens.ingest.messages.messages import DELIMITED, VARINT, fields
from rooflens.ingest.reports.container import COUNTS, PAYLOAD_SIZE

Treatment: TypeAlias = "Callable[[bytes], bytes] | Mapping[int, Treatment] | None"
"""How to treat a field: map its bytes, treat its message field by field, or drop it (None)."""

_LENGTH_BYTES = 4


def encode_block(header: bytes, messages: Sequence[tuple[str, bytes]], treatment: Treatment) -> bytes:
    """Write a block again with some of its messages.

    Args:
        header: The original header.
        messages: The messages to keep with their kinds, in payload order.
        treatment: How to change the header's fields.
    """
    # The header holds counts and size, so a block that loses a message needs a new header.
    written = b"".join(framed(message) for _, message in messages)
    kinds = [kind for kind, _ in messages]
    numbers = {PAYLOAD_SIZE: len(written), **{field: kinds.count(kind) for kind, field in COUNTS.items()}}
    return framed(treated(header, treatment, numbers)) + written


def treated(encoded: bytes, treatment: Treatment, numbers: Mapping[int, int] | None = None) -> bytes:
    """Apply a treatment to a field's content; `numbers` gives new values of numeric fields."""
    if treatment is None:
        return b""
    if callable(treatment):
        return treatment(encoded)
    parts, copied = [], 0
    for one in fields(encoded):
        new = encoded[one.start : one.end]
        if one.kind == VARINT and numbers and one.number in numbers:
            new = encode_field(one.number, numbers[one.number])
        elif one.kind == DELIMITED and one.number in treatment:
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


def encode_field(number: int, content: bytes | int) -> bytes:
    """Encode a field: bytes or a message, or a number."""
    if isinstance(content, int):
        return varint(number << 3 | VARINT) + varint(content)
    return varint(number << 3 | DELIMITED) + varint(len(content)) + content


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
