"""Find the reports among the paths a user gives: files as they are, folders by ending."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.errors import InputError
from rooflens.ingest.reports.pool import Job
from rooflens.ingest.reports.unpacking import PACKED_SUFFIX, PLAIN_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENDINGS = (PLAIN_SUFFIX, PACKED_SUFFIX, ".nsight-cuprof-report")
"""Nsight Compute's report, plain and compressed, and under its name of 2018 to 2019."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Reports to read, each once, and the other files that stood in the folders."""

    jobs: tuple[Job, ...]
    ignored: tuple[Path, ...]


def find_inputs(paths: Sequence[str]) -> Inputs:
    """Find the reports of files and folders (with their subfolders), in the order given, folders sorted by name.

    Raises:
        InputError: Nothing was given, a path does not exist, or no folder holds a report.
    """
    files = [found for path in paths for found in _files(path)]
    jobs = {job.path.resolve(): job for job, is_report in reversed(files) if is_report}
    if not jobs:
        raise InputError(
            f"no reports in {', '.join(f'`{path}`' for path in paths)}",
            f"a report ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}",
        )
    ignored = tuple(job.path for job, is_report in files if not is_report)
    return Inputs(tuple(reversed(jobs.values())), ignored)


def _files(given: str) -> Iterator[tuple[Job, bool]]:
    path = Path(given)
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield Job(file, str(file)), file.name.endswith(ENDINGS)
    elif path.exists():
        yield Job(path, given), True
    else:
        raise InputError(f"`{given}` does not exist", _near(path))


def _near(missing: Path) -> str:
    """Point to the report that was compressed, or was not, where the other kind was asked for."""
    other = missing.with_suffix(PACKED_SUFFIX if missing.suffix == PLAIN_SUFFIX else PLAIN_SUFFIX)
    if missing.suffix in ENDINGS and other.is_file():
        return f"`{other}` does: ncu compresses its reports from 2026.3 on"
    return "give a report file, or a folder of them"
