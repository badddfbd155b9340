"""Read reports with NVIDIA's module, all in the single child that calls this."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rooflens.errors import InputError
from rooflens.ingest.reports.nvidia import read_with_nvidia
from rooflens.ingest.reports.report import ReadOptions, ReadReport
from rooflens.ingest.reports.unpacking import unpacked


def read_all(files: Sequence[Path], options: ReadOptions) -> list[ReadReport | InputError]:
    """Read each file, plain or compressed."""
    return [_read(file, options) for file in files]


def _read(file: Path, options: ReadOptions) -> ReadReport | InputError:
    try:
        with unpacked(file) as plain:
            return read_with_nvidia(plain, file.name, options)
    except InputError as error:
        return error
