"""One large report read by several workers: each takes a span of its results, and the first look at it is shared.

Planning the spans reads the file once, for its digest and for where its results are. Reading a span checks that the
file is still the same. Kernels whose instructions may be wanted with text are handed back as they are: which ones those
are is certain only when all spans are read.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.ingest.reports.container import Container, Outline, outline
from rooflens.ingest.reports.direct import Direct
from rooflens.ingest.reports.encoded import UnknownContentError
from rooflens.ingest.reports.pool import stamp_of, unchanged
from rooflens.ingest.reports.read import Reading, Window, opened
from rooflens.ingest.reports.report import Held, make_pieces, notes_of, raw_table, results_of, with_texts
from rooflens.ingest.reports.unpacking import MAGIC, first_bytes, is_incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflens.ingest.reports.container import Place
    from rooflens.ingest.reports.pool import Job, Stamp
    from rooflens.ingest.reports.report import ReadOptions, Report
    from rooflens.model.records import Kernel


class Span(Struct, frozen=True):
    """Consecutive results of a report.

    Attributes:
        job: The report.
        number: Position among the report's spans, from 0.
        count: How many spans the report has.
        first: Index in the report of its first result.
        found: What the report's container says, with the places of these results only.
        container: What the report says of itself.
        stamp: Stamp of the file when the spans were planned.
    """

    job: Job
    number: int
    count: int
    first: int
    found: Outline
    container: Container
    stamp: Stamp


def may_be_split(job: Job, options: ReadOptions) -> bool:
    """Return whether a report can be read in spans, which only the direct reader can do.

    A compressed one would have to be unpacked by each worker; an incomplete one may be cut anywhere.
    """
    if options.reader == "ncu-report" or options.verify or is_incomplete(job.path):
        return False
    return first_bytes(job.path, len(MAGIC)) == MAGIC


def plan_spans(job: Job, options: ReadOptions, most_bytes: int) -> tuple[Span, ...]:
    """Divide a report into spans of so many bytes; none if it is small, damaged, or left to NVIDIA's module."""
    path = job.path
    if not may_be_split(job, options):
        return ()
    stamp = stamp_of(path)
    try:
        with opened(path) as (data, digest):
            found = outline(data, path.suffix.lower())
            file_bytes = len(data)
    except InputError:
        return ()  # reading it whole will say what is wrong
    groups = list(_groups(found.places, most_bytes))
    if found.unknown or len(groups) < 2:
        return ()
    container = Container(digest, file_bytes, len(found.places), (), found.sessions, found.synthetic)
    return tuple(
        Span(job, number, len(groups), first, replace(found, places=places), container, stamp)
        for number, (first, places) in enumerate(groups)
    )


def _groups(places: Sequence[Place], most_bytes: int) -> Iterator[tuple[int, Sequence[Place]]]:
    start = group_bytes = 0
    for index, place in enumerate(places):
        place_bytes = place.end - place.start
        if index > start and group_bytes + place_bytes > most_bytes:
            yield start, places[start:index]
            start, group_bytes = index, 0
        group_bytes += place_bytes
    yield start, places[start:]


def read_span(span: Span, options: ReadOptions, held: Held, kernels_at_once: int | None = None) -> Iterator[Report]:
    """Read a span piece by piece.

    Args:
        span: The span.
        options: What is wanted of its report.
        held: Takes the kernels whose instructions may be wanted with text.
        kernels_at_once: Least number of kernels in a piece; None for one piece.

    Raises:
        InputError: It is damaged, holds something unknown, or the file has changed since the span was planned.
    """
    path, container = span.job.path, span.container
    try:
        with unchanged(path, span.stamp), path.open("rb") as file:
            raw = raw_table(container.digest, options)
            direct = Direct(Window(file.fileno(), container.file_bytes), span.found, raw, span.first)
            yield from make_pieces(
                results_of(direct, raw, container, options),
                "direct",
                container,
                span.job.source,
                raw,
                held,
                kernels_at_once=kernels_at_once,
                count=len(span.found.places),
            )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from error
    except UnknownContentError as unknown:
        raise InputError(f"{unknown} is unknown") from unknown


def finish_spans(
    spans: Sequence[Span], options: ReadOptions, held: Sequence[Held]
) -> tuple[tuple[Kernel, ...], tuple[str, ...]]:
    """Read the text of instructions, once all spans of a report are read.

    Args:
        spans: All of them, in order.
        options: What is wanted of the report.
        held: The kernels that were held back while they were read.

    Returns:
        The kernels that were held back, and what a user should know about how the report was read.

    Raises:
        InputError: The file has changed.
    """
    job, notes = spans[0].job, notes_of(spans[0].container)
    whole = Held()
    kernels = [kernel for one in held for kernel in whole.put_all(one)]
    try:
        with unchanged(job.path, spans[0].stamp), job.path.open("rb") as file:
            places = [*chain.from_iterable(span.found.places for span in spans)]
            direct = Direct(
                Window(file.fileno(), spans[0].container.file_bytes), replace(spans[0].found, places=places)
            )
            path = None if options.reader == "direct" else job.path
            reading = Reading(direct, spans[0].container.digest, path, options)
            kernels += with_texts(whole, reading)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from error
    return tuple(kernels), (*notes, *reading.notes)
