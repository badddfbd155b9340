"""What was found inside of kernels, kept in the user's cache: to find it takes as long as all else of a report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from rooflens.cache import keep, kept, trim
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.reports.texts import disassembler
from rooflens.model.records import Inside

MOST_BYTES = 32 << 20
"""How much is kept, enough for some hundred kernels; beyond that the oldest are dropped."""

_FOLDER = "inside-1"
_PACKAGE = Path(__file__).parents[2]
_FINDERS = (
    "ingest/cubin/*.py",
    "ingest/metrics/*.py",
    "ingest/reports/machine_code.py",
    "ingest/reports/insides.py",
    "model/inside/*.py",
    "model/records.py",
    "model/roofline/opcodes.py",
)
"""The code that decides what is found."""


def read_insides(path: Path, digest: str, indices: Iterable[int], options: ReadOptions) -> dict[int, Inside]:
    """Look into some results of a report; one whose code cannot be read has a note that says why.

    Args:
        path: The report, plain or compressed.
        digest: Its digest when its kernels were read.
        indices: Positions of the results in the report.
        options: How reports are read.

    Raises:
        InputError: It cannot be opened, or is another report by now.
    """
    module = "" if options.reader == "direct" else disassembler()
    names = {index: _name(digest, index, module) if module else "" for index in indices}
    found = {index: inside for index, name in names.items() if name and (inside := _kept(name)) is not None}
    lacking = [index for index in names if index not in found]
    return found | (_looked_into(path, digest, lacking, options, names) if lacking else {})


def _looked_into(
    path: Path, digest: str, indices: Iterable[int], options: ReadOptions, names: dict[int, str]
) -> dict[int, Inside]:
    """Look into results that the cache does not know."""
    # What was kept needs none of this.
    from rooflens.ingest.reports.machine_code import read_machine_code  # noqa: PLC0415
    from rooflens.model.inside.look import look_inside  # noqa: PLC0415

    found = {}
    for index, code in read_machine_code(path, digest, indices, options).items():
        found[index] = Inside(note=code) if isinstance(code, str) else look_inside(code)
        if names[index] and not isinstance(code, str):
            keep(names[index], msgspec.msgpack.encode(found[index]), private=True)
    trim(_FOLDER, MOST_BYTES)
    return found


def _kept(name: str) -> Inside | None:
    data = kept(name)
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=Inside)
    except msgspec.DecodeError:
        return None


def _name(digest: str, index: int, module: str) -> str:
    """Name what was found in a kernel by all that it was found with."""
    key = f"{digest} {index} {module} {_finders()}"
    return f"{_FOLDER}/{hashlib.sha256(key.encode()).hexdigest()}"


@cache
def _finders() -> str:
    """Return a digest of the code that looks into kernels: what another version of it found does not count."""
    files = [file for pattern in _FINDERS for file in sorted(_PACKAGE.glob(pattern))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
