"""What is asked of a reader, and the report that any of them makes of its results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from rooflens.errors import InputError
from rooflens.ingest.reports.results import to_kernel
from rooflens.ingest.reports.unpacking import MAX_UNPACKED_BYTES
from rooflens.model.records import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from rooflens.ingest.metrics.code import Code
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.reports.container import Container
    from rooflens.ingest.reports.results import RawResult
    from rooflens.model.records import Kernel

Reader: TypeAlias = Literal["auto", "direct", "ncu-report"]
"""Who reads: rooflens itself, NVIDIA's module, or by default the first where it knows all that the report holds."""

Raw: TypeAlias = Literal["none", "values", "all"]
"""Which stored values are kept beside the kernels: none, one for each metric, or those of all instances too."""

MOST_IN_TEXT = 20
"""So many kernels, those that took longest, have their hottest instructions in text and by source line."""

_RERECORD = "record the report again, or copy it again from where it was made"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is wanted of a report.

    Attributes:
        reader: Who is to read it.
        verify: Read it with both readers, and say where they differ.
        raw: Which stored values are kept.
        max_unpacked_bytes: A compressed file that unpacks to more is refused.
        gpu: Name of the GPU, for exports that do not say it.
        deadline_s: Seconds that NVIDIA's module may take for a file of no size.
    """

    reader: Reader = "auto"
    verify: bool = False
    raw: Raw = "none"
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES
    gpu: str | None = None
    deadline_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Report:
    """One report, read.

    Attributes:
        raw: Stored values, rows of the table `metrics`; None when they were not asked for.
        instances: Values of instances, rows of the table `instances`; None as well.
        notes: What a user should know of how it was read.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    raw: pa.Table | None = None
    instances: pa.Table | None = None
    notes: tuple[str, ...] = ()


class Results(Protocol):
    """A reader at work on one report."""

    def results(self) -> Iterator[RawResult]:
        """Read all results, in the order of the file."""

    def codes(self, wanted: Sequence[int]) -> Mapping[int, Code]:
        """Read the instructions of some results again, with their text; what cannot be had is left out."""


def make_report(
    reading: Results, reader: str, container: Container, source: str, raw: RawTable | None = None
) -> Report:
    """Read all of a report.

    Args:
        reading: Reader of its results.
        reader: What that is called.
        container: What the report says of itself.
        source: The path as the user gave it: what records and messages show.
        raw: Where the reader puts stored values.

    Raises:
        InputError: It reads back with fewer results than it holds, or is damaged.
    """
    source = source.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    kernels: list[Kernel] = []
    lacking: list[int] = []
    for result in reading.results():
        kernels.append(to_kernel(result, container.digest, source, synthetic=container.synthetic))
        if result.code.needs_texts and not kernels[-1].failed:
            lacking.append(result.index)
    if len(kernels) != container.result_count:
        raise InputError(f"damaged: {len(kernels)} of {container.result_count} results can be read", _RERECORD)
    wanted = sorted({*lacking, *_longest(kernels)})
    for index, found in (reading.codes(wanted) if wanted else {}).items():
        kernels[index] = replace(kernels[index], hotspots=found.hotspots, code_totals=found.totals)
    raw_table, instances = raw.finish() if raw else (None, None)
    notes = container.sessions[0].notes if container.sessions else ()
    return Report(_run(container, source, reader), tuple(kernels), raw_table, instances, notes)


def raw_table(digest: str, options: ReadOptions) -> RawTable | None:
    """Make the place for the stored values that are to be kept; None where none are."""
    if options.raw == "none":
        return None
    from rooflens.ingest.metrics.raw import RawTable  # noqa: PLC0415 - pyarrow: only where values are kept

    return RawTable(digest, with_instances=options.raw == "all")


def _longest(kernels: Sequence[Kernel]) -> list[int]:
    """Return the numbers of those kernels, of all with amounts by instruction, that took longest."""
    known = [position for position, kernel in enumerate(kernels) if kernel.hotspots]
    return nsmallest(MOST_IN_TEXT, known, key=lambda position: -(kernels[position].duration_ns or 0.0))


def _run(container: Container, source: str, reader: str) -> Run:
    session = container.sessions[0] if container.sessions else None
    return Run(
        digest=container.digest,
        source=source,
        file_bytes=container.file_bytes,
        kernel_count=container.result_count,
        synthetic=container.synthetic,
        ncu_version=session.ncu_version if session else None,
        command_line=session.command_line if session else None,
        host=session.host if session else None,
        process_name=session.process_name if session else None,
        clock_control=session.clock_control if session else None,
        cache_control=session.cache_control if session else None,
        replay_mode=session.replay_mode if session else None,
        created_unix_s=session.created_unix_s if session else None,
        reader=reader,
    )
