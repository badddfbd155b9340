"""Mutate inputs by chance: sometimes any bytes, mostly so that the outer structure stays valid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rooflens.ingest.messages.messages import message

_LENGTH_BYTES = 4
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_EDGES = (0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
_DOUBLES = (b"\0" * 8, b"\xff" * 8, b"\0" * 6 + b"\xf0\x7f", b"\0" * 6 + b"\xf0\xff", b"\xff" * 6 + b"\xef\x7f")
_VALUE = re.compile(rb'": ("(?:[^"\\]|\\.)*"|[-\w.]+)')
_VALUES = (b"null", b"-1", b"1e999", b"NaN", b"true", b'"\\q"', b'"\xff"', b"[]", b"{}", b"[[[[]]]]", b"9" * 400)
_CELLS = ("", '"', "nan", "inf", "-1", "1e999", "0x1p3", "1,234,567", "1.234,5", "n/a", "\0", "\r", "\ufeff", "9" * 400)

_SETTINGS = (
    *(
        '"x"',
        '""',
        '"5%"',
        '"-1"',
        '"\\u0000"',
        '"a,b"',
        "1",
        "-1",
        "0",
        "1.5",
        "inf",
        "-inf",
        "nan",
        "true",
        "false",
        "[]",
    ),
    *("[1, 2]", '["a", 1]', "[[1]]", "{}", "{ a = 1 }", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "9" * 400),
    *('"' + "x" * 70_000 + '"', "[" * 3000 + "]" * 3000),
)
"""Values of settings: each kind that TOML has, and some that nobody means."""
_ARGUMENTS = (
    *("True", "False", "None", "-1", "0", "1", "inf", "nan", "1e999", "1j", "...", "''", "b''", "{}", "[]", "[0, 0]"),
    *("[1, 1]", "[-1]", "[True, False, True]", "[[1], [2]]", "[1e400, 'a']", "(", "[" * 300, "9" * 5000, "\0", "x"),
)
_TYPES = ("float", "double", "c10::Half", "c10::BFloat16", "c10::Float8_e4m3fn", "long int", "bool", "Scalar", "", "x")
_OPERANDS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
_SIZES = (0, 1, 2, 3, 7, 64, 4096, 2**31, 2**53, 10**15, 2**63, 10**30, -1)

_ITEMS: tuple[tuple[Callable[[pa.DataType], bool], tuple[Any, ...]], ...] = (
    (pa.types.is_floating, (0.0, -1.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan"), 1e18)),
    (pa.types.is_integer, (0, -1, 1, 127, 2**31 - 1, 2**63 - 1, -(2**63))),
    (pa.types.is_boolean, (True, False)),
)
_TEXTS = ("", "\0", "x" * 70_000, "\ufeff", "nan", "-1", "\N{RIGHT-TO-LEFT OVERRIDE}x", "a" * 64, "{}", "[")
"""What columns of a store get, by their types."""

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


def mutated_operands(data: bytes, chance: Random) -> bytes:
    """Mutate a trace: an argument of an operator, one taken from another operator, or as any JSON."""
    try:
        trace = json.loads(data)
        called = [event["args"] for event in trace["traceEvents"] if "Input Dims" in event["args"]]
        key = chance.choice(_OPERANDS)
        # Hypothesis draws from an empty list what it cannot repeat.
        filled = [args for args in called if args[key]]
        if not filled:
            return mutated_json(data, chance)
        args, other = chance.choice(filled), chance.choice(filled)
        at, given = chance.randrange(len(args[key])), chance.choice(other[key])
    except (ValueError, LookupError, TypeError):  # no longer such a trace
        return mutated_json(data, chance)
    kind = chance.randrange(5)
    if kind == 0:
        return mutated_json(data, chance)
    if kind == 1:
        args[key][at] = given
    elif kind == 2:
        for one in _OPERANDS:
            if isinstance(args.get(one), list):
                del args[one][at : at + 1]
    elif key in {"Input type", "Concrete Inputs"}:
        args[key][at] = chance.choice(_TYPES if key == "Input type" else _ARGUMENTS)
    elif isinstance(args[key][at], list) and args[key][at] and kind == 3:
        args[key][at][chance.randrange(len(args[key][at]))] = chance.choice(_SIZES)
    else:
        args[key][at] = [chance.choice(_SIZES) for _ in range(chance.randrange(6))]
    return json.dumps(trace).encode()


def mutated_settings(data: bytes, chance: Random) -> bytes:
    """Mutate settings: a value of any kind, a line or table elsewhere, or any of its bytes."""
    lines = data.split(b"\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(8)
    if kind == 0:
        return mutated_bytes(data, chance)
    if kind == 1:
        lines.insert(at, lines[other])
    elif kind == 2:
        del lines[at]
    else:
        lines[at] = lines[at].partition(b"=")[0] + b"= " + chance.choice(_SETTINGS).encode()
    return b"\n".join(lines)


def mutated_code(data: bytes, chance: Random) -> bytes:
    """Mutate the code of kernels: bits of an instruction, one elsewhere or many times, or any bytes of the file."""
    if chance.random() < 0.3 or len(data) < 64:
        return mutated_bytes(data, chance)
    copy = bytearray(data)
    at, other = (16 * chance.randrange(len(copy) // 16) for _ in range(2))
    kind = chance.randrange(3)
    if kind == 0:
        for _ in range(chance.randint(1, 4)):
            copy[at + chance.randrange(16)] ^= 1 << chance.randrange(8)
    elif kind == 1:
        copy[at : at + 16] = copy[other : other + 16]
    else:
        copy[at : at + 16 * chance.choice((1, 4, 16))] = copy[other : other + 16] * chance.choice((1, 4, 16))
    return bytes(copy)


def mutated_store(data: bytes, chance: Random) -> bytes:
    """Mutate the files of a store: a column of a table, which is then written as a valid file, or any bytes of one."""
    files = unpacked_files(data)
    if not files:
        return mutated_bytes(data, chance)
    name = chance.choice([*files])
    kind = chance.randrange(4)
    if kind == 0:
        files[name] = mutated_bytes(files[name], chance)
    elif kind == 1:
        files[chance.choice([*files])] = files[name]
    else:
        try:
            files[name] = _other_table(files[name], chance)
        except Exception:  # noqa: BLE001 - whatever Arrow says of values that fit no column
            files[name] = mutated_bytes(files[name], chance)
    return packed_files(files)


def packed_files(files: Mapping[str, bytes]) -> bytes:
    """Write files as one input: the length of each name, the name, the length of the content, the content."""
    parts = (part for name, content in files.items() for part in (name.encode(), content))
    return b"".join(len(part).to_bytes(_LENGTH_BYTES, "little") + part for part in parts)


def unpacked_files(data: bytes) -> dict[str, bytes]:
    """Read the files of an input, as far as they can be."""
    parts = _framed(data)
    return {name.decode(errors="replace"): content for name, content in zip(parts[::2], parts[1::2], strict=False)}


def _other_table(content: bytes, chance: Random) -> bytes:
    """Write a Parquet file with another column, another value in it, or other notes."""
    table = pq.read_table(pa.BufferReader(content))
    at = chance.randrange(table.num_columns)
    field = table.schema.field(at)
    values = table.column(at).to_pylist()
    kind = chance.randrange(6)
    if kind == 0:
        table = table.remove_column(at)
    elif kind == 1:
        table = table.set_column(at, field.with_type(pa.string()), pa.array([str(one) for one in values], pa.string()))
    elif kind == 2:
        table = pa.concat_tables([table] * 2) if chance.random() < 0.5 else table.slice(1)
    elif kind == 3 and table.schema.metadata:
        notes = {key: mutated_bytes(value, chance) for key, value in table.schema.metadata.items()}
        table = table.replace_schema_metadata(notes)
    elif values:
        values[chance.randrange(len(values))] = _other_item(field.type, values, chance)
        table = table.set_column(at, field, pa.array(values, field.type))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _other_item(kind: pa.DataType, values: list[Any], chance: Random) -> Any:
    """Return another value of a type, deep in lists and maps too."""
    if chance.random() < 0.2:
        return None
    if pa.types.is_nested(kind):
        before = (chance.choice(values) if values else None) or []
        if pa.types.is_struct(kind):
            return {field.name: _other_item(field.type, [], chance) for field in kind}
        if pa.types.is_map(kind):
            return [*before, (_other_item(kind.key_type, [], chance) or "", _other_item(kind.item_type, [], chance))]
        return [*before, _other_item(kind.value_type, [], chance)]
    return chance.choice(next((items for is_kind, items in _ITEMS if is_kind(kind)), _TEXTS))


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
