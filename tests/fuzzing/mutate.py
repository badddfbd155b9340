"""Mutate reports and tables by chance: sometimes any bytes, mostly so that the outer structure stays valid."""

from __future__ import annotations

import re
from random import Random

from rooflens.ingest.messages.messages import message

_LENGTH_BYTES = 4
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_EDGES = (0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
_DOUBLES = (b"\0" * 8, b"\xff" * 8, b"\0" * 6 + b"\xf0\x7f", b"\0" * 6 + b"\xf0\xff", b"\xff" * 6 + b"\xef\x7f")
_VALUE = re.compile(rb'": ("(?:[^"\\]|\\.)*"|[-\w.]+)')
_VALUES = (b"null", b"-1", b"1e999", b"NaN", b"true", b'"\\q"', b'"\xff"', b"[]", b"{}", b"[[[[]]]]", b"9" * 400)
_CELLS = ("", '"', "nan", "inf", "-1", "1e999", "0x1p3", "1,234,567", "1.234,5", "n/a", "\0", "\r", "\ufeff", "9" * 400)

Field = tuple[int, int, bytes]
"""Field number, wire type, and the bytes after the tag; for a length-delimited field the bytes after the length."""


def mutated_report(data: bytes, chance: Random) -> bytes:
    """Mutate a report: one field of a message, with all lengths around it corrected, or any of its bytes."""
    if chance.random() < 0.2:
        return mutated_bytes(data, chance)
    try:
        return _in_container(data, chance)
    except (IndexError, ValueError):  # no longer a report
        return mutated_bytes(data, chance)


def mutated_table(data: bytes, chance: Random) -> bytes:
    """Mutate a table: a cell or a line, or any of its bytes."""
    if chance.random() < 0.3:
        return mutated_bytes(data, chance)
    lines = data.splitlines(keepends=True) or [b""]
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(5)
    if kind == 0:
        lines.insert(at, lines[other])
    elif kind == 1:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 2:
        del lines[at]
    else:
        cells = lines[at].split(b'","')
        place = chance.randrange(len(cells))
        cells[place] = chance.choice(_CELLS).encode() if kind == 3 else chance.choice(lines[other].split(b'","'))
        lines[at] = b'","'.join(cells)
    return b"".join(lines)


def mutated_json(data: bytes, chance: Random) -> bytes:
    """Mutate a trace: a value, an event duplicated or moved, or any of its bytes."""
    values = list(_VALUE.finditer(data))
    if not values or chance.random() < 0.3:
        return mutated_bytes(data, chance)
    if chance.random() < 0.7:
        value = chance.choice(values)
        return data[: value.start(1)] + chance.choice(_VALUES) + data[value.end(1) :]
    events = data.split(b"}, {")
    at, other = chance.randrange(len(events)), chance.randrange(len(events))
    events.insert(at, events[other])
    return b"}, {".join(events)


def mutated_bytes(data: bytes, chance: Random) -> bytes:
    """Flip, insert, remove, repeat or cut bytes."""
    copy = bytearray(data) or bytearray(b"\0")
    at = chance.randrange(len(copy))
    kind = chance.randrange(5)
    if kind == 0:
        copy[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        copy[at:at] = chance.randbytes(chance.choice((1, 4, 64)))
    elif kind == 2:
        del copy[at : at + chance.choice((1, 4, 64, 4096))]
    elif kind == 3:
        copy[at:at] = copy[at : at + chance.choice((16, 1024, 65536))]
    else:
        del copy[at:]
    return bytes(copy)


def _in_container(data: bytes, chance: Random) -> bytes:
    """Mutate a message of a block: its header, or one of those in its payload."""
    blocks, head = _blocks(data)
    header, payload = chance.choice(blocks)
    at = blocks.index((header, payload))
    messages = _framed(payload)
    if not messages or chance.random() < 0.2:
        header = _in_message(header, chance)
    else:
        place = chance.randrange(len(messages))
        messages[place] = _in_message(messages[place], chance)
        payload = b"".join(len(one).to_bytes(_LENGTH_BYTES, "little") + one for one in messages)
    sized = message("BlockHeader").FromString(header) if _parses(header) else None
    if sized is not None:
        sized.PayloadSize = len(payload)
        header = sized.SerializePartialToString()
    blocks[at] = (header, payload)
    return head + b"".join(len(first).to_bytes(_LENGTH_BYTES, "little") + first + rest for first, rest in blocks)


def _parses(header: bytes) -> bool:
    try:
        message("BlockHeader").FromString(header)
    except Exception:  # noqa: BLE001 - whichever of protobuf's: the header stays as it is
        return False
    return True


def _blocks(data: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Split a report: header and payload of each block, and what precedes the first."""
    start = offset = 2 * _LENGTH_BYTES + _length_at(data, _LENGTH_BYTES)
    found = []
    while offset < len(data):
        end = offset + _LENGTH_BYTES + _length_at(data, offset)
        header = data[offset + _LENGTH_BYTES : end]
        if not _parses(header):
            raise ValueError("no header of a block")
        offset = end + message("BlockHeader").FromString(header).PayloadSize
        found.append((header, data[end:offset]))
    return found, data[:start]


def _framed(payload: bytes) -> list[bytes]:
    offset, found = 0, []
    while offset + _LENGTH_BYTES <= len(payload):
        end = offset + _LENGTH_BYTES + _length_at(payload, offset)
        found.append(payload[offset + _LENGTH_BYTES : end])
        offset = end
    return found


def _length_at(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + _LENGTH_BYTES], "little")


def _in_message(data: bytes, chance: Random, depth: int = 0) -> bytes:
    """Mutate a field of an encoded message, or of a nested message."""
    found = _fields(data)
    if not found:
        return mutated_bytes(data, chance)
    at = chance.randrange(len(found))
    number, kind, value = found[at]
    what = chance.randrange(8)
    if kind == _BYTES and depth < 12 and _fields(value) and what < 6:
        found[at] = (number, kind, _in_message(value, chance, depth + 1))
    elif what == 6:
        found[at:at] = [found[at]] * chance.choice((1, 2, 50))
    elif what == 7:
        del found[at]
    else:
        found[at] = (number if what else chance.randrange(1, 64), *_other_value(kind, value, chance))
    return b"".join(_encoded(one) for one in found)


def _other_value(kind: int, value: bytes, chance: Random) -> tuple[int, bytes]:
    if kind == _VARINT:
        return kind, _varint(chance.choice(_EDGES))
    if kind == _EIGHT_BYTES:
        return kind, chance.choice(_DOUBLES)
    if kind == _FOUR_BYTES:
        return kind, chance.choice(_DOUBLES)[4:]
    if chance.random() < 0.3:
        return _VARINT, _varint(chance.choice(_EDGES))
    return kind, chance.choice((b"", value * 2, value[:-1], b"\xff\xfe\x80", mutated_bytes(value, chance)))


def _fields(data: bytes) -> list[Field]:
    """Split a message into fields; empty if it is no message."""
    offset, found = 0, []
    while offset < len(data):
        tag, offset = _read_varint(data, offset)
        kind, end = tag & 7, offset
        if kind == _VARINT:
            _, end = _read_varint(data, offset)
        elif kind == _BYTES:
            length, offset = _read_varint(data, offset)
            end = offset + length
        else:
            end += {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(kind, len(data))
        if end > len(data) or not tag >> 3:
            return []
        found.append((tag >> 3, kind, data[offset:end]))
        offset = end
    return found


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Read a number; an unterminated number reaches past the end of the data."""
    value = shift = 0
    while offset < len(data) and shift < 70:
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value, offset
    return value, len(data) + 1


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))


def _encoded(field: Field) -> bytes:
    number, kind, value = field
    length = _varint(len(value)) if kind == _BYTES else b""
    return _varint(number << 3 | kind) + length + value
