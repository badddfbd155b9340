"""What is asked of a reader, and how the results of any reader become a report."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import as_unicode
from rooflens.ingest.reports.limits import deadline_s, max_unpacked_bytes
from rooflens.ingest.reports.results import shortened, to_kernel
from rooflens.model.records import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from rooflens.ingest.metrics.code import Code
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.reports.container import Container
    from rooflens.ingest.reports.direct import Direct
    from rooflens.ingest.reports.results import RawResult
    from rooflens.model.records import Kernel

Reader: TypeAlias = Literal["auto", "direct", "ncu-report"]
"""Who reads: rooflens itself (`direct`), NVIDIA's module, or by default the first if it knows all that is stored."""

Raw: TypeAlias = Literal["none", "values", "all"]
"""Which stored values are kept beside the kernels: none, one for each metric, or those of all instances too."""

Codes: TypeAlias = "Mapping[int, Code]"
"""Code of kernels by index of the result."""

MOST_IN_TEXT = 20
"""How many kernels, the longest, have their hottest instructions as SASS text and by source line."""

_RERECORD = "record the report again, or copy it again from where it was made"


class ReadOptions(Struct, frozen=True):
    """What is wanted of a report.

    Attributes:
        reader: Who is to read it.
        verify: Read it with both readers, and fail where they differ.
        raw: Which stored values are kept.
        max_unpacked_bytes: A compressed file that unpacks to more is refused.
        gpu: Short or display name of the GPU, for exports that do not name it.
        deadline_s: Seconds that NVIDIA's module may take, before its allowance for the size of the file.
        read_rows: Reads kernels straight into rows; None for records of kernels.
        texts: Have NVIDIA's disassembler give the text of the hottest instructions, which takes a second.
        texts_later: Leave text that is not in the cache to the caller: `Report.untold` says what lacks it.
    """

    reader: Reader = "auto"
    verify: bool = False
    raw: Raw = "none"
    max_unpacked_bytes: int = field(default_factory=max_unpacked_bytes)
    gpu: str | None = None
    deadline_s: float = field(default_factory=deadline_s)
    read_rows: RowReader | None = None
    texts: bool = True
    texts_later: bool = False


class Report(Struct, frozen=True):
    """One report that was read.

    Attributes:
        rows: More kernels, as rows of the table `kernels`; None where there are none.
        raw: Stored values, rows of the table `metrics`; None when they were not asked for.
        instances: Values of instances, rows of the table `instances`; None when they were not asked for.
        notes: What a user should know about how it was read.
        untold: Code whose hottest instructions still lack their text.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    raw: pa.Table | None = None
    instances: pa.Table | None = None
    notes: tuple[str, ...] = ()
    rows: pa.Table | None = None
    untold: Codes = field(default_factory=dict)


class Rows(NamedTuple):
    """Some kernels of a report as rows of the table `kernels`."""

    table: pa.Table


RowReader: TypeAlias = "Callable[[Direct, RawTable | None, Container], Iterator[RawResult | Rows]]"
"""Reads results that are encoded alike into rows, and others one by one."""


class Results(Protocol):
    """A reader at work on one report."""

    def results(self) -> Iterator[RawResult | Rows]:
        """Read all results, in the order of the file."""

    def codes(self, wanted: Sequence[int]) -> Mapping[int, Code]:
        """Read the instructions of some results again, with their text; results for which that fails are left out."""


def make_report(
    reading: Results, reader: str, container: Container, source: str, raw: RawTable | None = None
) -> Report:
    """Read all of a report; arguments and errors as for `make_parts`."""
    (whole,) = make_parts(reading, reader, container, source, raw)
    return replace(whole, kernels=tuple(sorted(whole.kernels, key=lambda kernel: kernel.index)))


def make_parts(  # noqa: PLR0913 - what a report is made of
    reading: Results,
    reader: str,
    container: Container,
    source: str,
    raw: RawTable | None = None,
    *,
    kernels_at_once: int | None = None,
) -> Iterator[Report]:
    """Read a report piece by piece, each a report of some of the kernels: memory does not grow with their number.

    Kernels that may be among those with text are held back until that is certain, and come last; all others are in the
    order of the file.

    Args:
        reading: Reads its results.
        reader: Name of that reader.
        container: What the report says of itself.
        source: The path as the user gave it: what records and messages show.
        raw: Where the reader puts stored values.
        kernels_at_once: Least number of kernels in a piece; None for one piece.

    Raises:
        InputError: Fewer results can be read than it holds, or it is damaged.
    """
    held = Held()
    ahead: Report | None = None
    for piece in make_pieces(reading.results(), reader, container, source, raw, held, kernels_at_once=kernels_at_once):
        if ahead is not None:
            yield ahead
        ahead = piece
    if ahead is not None:
        yield replace(ahead, kernels=(*ahead.kernels, *with_texts(held, reading)), notes=notes_of(container))


def notes_of(container: Container) -> tuple[str, ...]:
    """Return what a user should know according to the report itself."""
    return container.sessions[0].notes if container.sessions else ()


def with_texts(held: Held, reading: Results) -> Iterator[Kernel]:
    """Return the kernels that were held back, with the text of their instructions where it can be read."""
    texts = reading.codes(sorted(held.kernels)) if held.kernels else {}
    return with_codes(held.kernels.values(), texts)


def with_codes(kernels: Iterable[Kernel], codes: Codes) -> Iterator[Kernel]:
    """Yield kernels with their code, where there is any for them."""
    for kernel in kernels:
        found = codes.get(kernel.index)
        yield kernel if found is None else replace(kernel, hotspots=found.hotspots, code_totals=found.totals)


def make_pieces(  # noqa: PLR0913, PLR0917 - as `make_parts`
    results: Iterable[RawResult | Rows],
    reader: str,
    container: Container,
    source: str,
    raw: RawTable | None,
    held: Held,
    *,
    kernels_at_once: int | None = None,
    count: int | None = None,
) -> Iterator[Report]:
    """Read results piece by piece, the last with what is left; errors as for `make_parts`.

    Args:
        results: All of a report, or consecutive ones.
        reader: Name of the reader.
        container: What the report says of itself.
        source: The path as the user gave it.
        raw: Where the reader puts stored values.
        held: Takes the kernels whose instructions may be wanted with text.
        kernels_at_once: Least number of kernels in a piece; None for one piece.
        count: How many results there must be; by default all of the report.
    """
    source = as_unicode(source)
    run = _run(container, source, reader)
    count = container.result_count if count is None else count
    ready: list[Kernel] = []
    rows: list[pa.Table] = []
    read_count = waiting_count = 0
    for result in results:
        if isinstance(result, Rows):
            read_count += result.table.num_rows
            waiting_count += result.table.num_rows
            rows.append(result.table)
        else:
            read_count += 1
            kernel = to_kernel(result, container.digest, source, synthetic=container.synthetic)
            released = held.put(kernel, is_lacking=result.code.needs_texts and not kernel.failed)
            waiting_count += len(released)
            ready += released
        if kernels_at_once is not None and waiting_count >= kernels_at_once:
            yield _piece(run, ready, rows, raw)
            ready, rows, waiting_count = [], [], 0
    if read_count != count:
        raise InputError(f"damaged: only {read_count} of {count} results can be read", _RERECORD)
    yield _piece(run, ready, rows, raw)


def _piece(run: Run, kernels: Sequence[Kernel], rows: Sequence[pa.Table], raw: RawTable | None) -> Report:
    values, instances = raw.finish() if raw else (None, None)
    return Report(run, tuple(kernels), values, instances, rows=_joined(rows))


def _joined(tables: Sequence[pa.Table]) -> pa.Table | None:
    if len(tables) < 2:
        return tables[0] if tables else None
    import pyarrow as pa  # noqa: PLC0415 - there are tables only where it is loaded

    return pa.concat_tables(tables)


def results_of(
    direct: Direct, raw: RawTable | None, container: Container, options: ReadOptions
) -> Iterator[RawResult | Rows]:
    """Read the results of a report, into rows where that is wanted; errors as for `make_parts`."""
    return direct.results() if options.read_rows is None else options.read_rows(direct, raw, container)


class Held:
    """Kernels whose instructions are to be read with text: those that cannot do without, and the longest."""

    def __init__(self) -> None:
        self.kernels: dict[int, Kernel] = {}
        self._lacking: set[int] = set()
        self._longest: list[tuple[float, int]] = []

    def put(self, kernel: Kernel, *, is_lacking: bool) -> list[Kernel]:
        """Hold a kernel if need be; return the kernels that need not be held, or no longer."""
        if not kernel.hotspots and not is_lacking:
            return [kernel]
        self.kernels[kernel.index] = kernel
        if is_lacking:
            self._lacking.add(kernel.index)
        if kernel.hotspots:
            heappush(self._longest, (kernel.duration_ns or 0.0, -kernel.index))
        if len(self._longest) <= MOST_IN_TEXT:
            return []
        index = -heappop(self._longest)[1]
        return [] if index in self._lacking else [self.kernels.pop(index)]

    def put_all(self, other: Held) -> list[Kernel]:
        """Take over what another holds of the same report; return the kernels that are no longer held."""
        return [
            kernel
            for index, one in other.kernels.items()
            for kernel in self.put(one, is_lacking=index in other._lacking)
        ]


def raw_table(digest: str, options: ReadOptions) -> RawTable | None:
    """Make the table for stored values; None where none are to be kept."""
    if options.raw == "none":
        return None
    from rooflens.ingest.metrics.raw import RawTable  # noqa: PLC0415 - pyarrow: only where values are kept

    return RawTable(digest, with_instances=options.raw == "all")


def _run(container: Container, source: str, reader: str) -> Run:
    session = container.sessions[0] if container.sessions else None
    return Run(
        digest=container.digest,
        source=source,
        file_bytes=container.file_bytes,
        kernel_count=container.result_count,
        synthetic=container.synthetic,
        ncu_version=shortened(session.ncu_version) if session else None,
        command_line=session.command_line if session else None,
        host=shortened(session.host) if session else None,
        process_name=shortened(session.process_name) if session else None,
        clock_control=shortened(session.clock_control) if session else None,
        cache_control=shortened(session.cache_control) if session else None,
        replay_mode=shortened(session.replay_mode) if session else None,
        created_unix_s=session.created_unix_s if session else None,
        reader=reader,
    )
