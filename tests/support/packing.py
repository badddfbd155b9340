"""Compress reports as ncu 2026.3 does: the whole container as one zstd frame."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa


def packed(report: bytes) -> bytes:
    """Return the content of a `.ncu-repz` file."""
    return bytes(pa.Codec("zstd").compress(report, asbytes=True))


def pack(report: Path, place: Path) -> Path:
    """Write a report, compressed, to `place`, and return `place`."""
    place.write_bytes(packed(report.read_bytes()))
    return place
