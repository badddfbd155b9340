from __future__ import annotations

import random

import numpy as np

from rooflens.ingest.columns.walking import PADDING, Buffer, fields_of
from rooflens.ingest.messages.messages import message


def _encoded(value: int, size: int) -> bytes:
    """Encode a number in so many bytes, more than it needs if they are."""
    groups = [value >> 7 * place & 0x7F for place in range(size)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def test_numbers_of_one_to_eight_bytes_are_decoded() -> None:
    """Each number comes out with its length; one of more than eight bytes is longer than any result."""
    chance = random.Random(3)  # noqa: S311 - no secret
    expected = [(chance.getrandbits(7 * size), size) for size in range(1, 9) for _ in range(50)]
    expected += [(0, 3), (1, 8), (127, 1), (128, 2), ((1 << 56) - 1, 8)]
    pieces = [_encoded(*one) for one in expected] + [_encoded(1 << 60, 9)]
    starts = np.cumsum([0, *map(len, pieces)])[:-1]
    values, sizes = Buffer(b"".join(pieces) + bytes(PADDING)).numbers(starts)
    assert [*zip(values[:-1].tolist(), sizes[:-1].tolist(), strict=True)] == expected
    assert sizes[-1] > 1 << 32


def test_the_fields_of_a_message_are_found_where_they_stand() -> None:
    """Numbers, and where values begin and end; a message that is cut, or has other wire types, has none."""
    encoded = message("SourceData")(Reference=300, Code=b"abc", Binary=b"").SerializeToString()
    fields = fields_of(encoded)
    assert fields is not None
    assert [(field.number, encoded[field.start : field.end]) for field in fields] == [
        (1, b"\xac\x02"),
        (2, b"abc"),
        (4, b""),
    ]
    assert fields_of(encoded[:-1]) is None
    assert fields_of(message("MetricValue")(DoubleValue=1.0).SerializeToString()) is None
