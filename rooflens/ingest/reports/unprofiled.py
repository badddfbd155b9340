"""The un-profiled run of a program, stored beside its report as `NAME.unprofiled.json`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.files import read_text, write_whole
from rooflens.ingest.reports.unpacking import sidecar
from rooflens.model.unprofiled import Unprofiled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA_VERSION = 1
_MOST = 2**63 - 1
"""Largest integer that a store can hold."""


def write_unprofiled(report: Path, unprofiled: Unprofiled) -> Path:
    """Store an un-profiled run beside its report."""
    path = sidecar(report)
    values = {"schema_version": _SCHEMA_VERSION, **asdict(unprofiled), "gap_share": unprofiled.gap_share}
    write_whole(path, json.dumps(values, indent=2) + "\n")
    return path


def read_unprofiled(report: Path) -> Unprofiled | None:
    """Return the un-profiled run stored beside a report; None if there is no file.

    Raises:
        InputError: The file is not a valid record.
    """
    import msgspec  # noqa: PLC0415 - a bare GPU box, which only writes records, lacks it

    path = sidecar(report)
    if not os.path.lexists(path):
        return None
    hint = "delete it, or collect again"
    try:
        found = msgspec.json.decode(read_text(path, hint, is_named=False), type=Unprofiled)
        _check_amounts(found)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"`{path}` is not a record of an un-profiled run: {error}", hint) from error
    return found


def _check_amounts(found: Unprofiled) -> None:
    """Check that all times and counts can be, and that nothing is divided by zero.

    Raises:
        ValueError: One cannot.
    """
    launches, gaps = ([one.count for one in entries] for entries in (found.launch_counts, found.gaps_after))
    counts = [found.iterations, *launches, *gaps]
    for least, amounts in ((1, counts), (0, _integers(asdict(found)))):
        for amount in amounts:
            if not least <= amount <= _MOST:
                raise ValueError(f"{amount} is no time, and no count")


def _integers(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, (dict, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _integers(part)
