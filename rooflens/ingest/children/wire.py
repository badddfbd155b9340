"""The protocol of parent and child over two pipes: frames of a kind, a length and that many bytes.

A child sends `READY` once it runs, `TAKEN` for each call before it begins, and `ANSWER` with what became of it. So the
parent knows whether a child that died never began, died at work, or died while it sent its answer.
"""

from __future__ import annotations

import struct
from typing import Final

READY: Final = b"R"
TAKEN: Final = b"T"
ANSWER: Final = b"A"
CALL: Final = b"C"

HEADER = struct.Struct("<cQ")


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """Return the head of a frame; the payload follows it."""
    return HEADER.pack(kind, len(payload))
