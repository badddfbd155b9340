"""The options of a reader, and how the results of any reader become a report."""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import LONGEST_NAME, as_unicode, notes_of_cut_names
from rooflens.ingest.cubin.budget import TooMuchCodeError
from rooflens.ingest.messages.sessions import Session
from rooflens.ingest.metrics.code import read_code
from rooflens.ingest.reports.limits import deadline_s, max_unpacked_bytes
from rooflens.ingest.reports.results import shortened, to_kernel, unread_reason, with_code
from rooflens.ingest.reports.unpacking import RERECORD_HINT
from rooflens.model.records import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from rooflens.ingest.metrics.code import Code, Instructions
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.reports.container import Outline
    from rooflens.ingest.reports.machine_code import Insides
    from rooflens.ingest.reports.results import RawResult
    from rooflens.model.records import Inside, Kernel

Reader: TypeAlias = Literal["auto", "direct"]
"""The reader: rooflens with instruction text from NVIDIA's module (`auto`), or rooflens alone."""

Raw: TypeAlias = Literal["none", "values", "all"]
"""Which stored values are kept besides the kernels: none, one per metric, or those of all instances too."""

Codes: TypeAlias = "Mapping[int, Code]"
"""Code of kernels, by index of the result."""

_AT_ONCE = 64
"""Results after which to tell how far a report is read."""

MOST_IN_TEXT = 20
"""How many of the longest kernels have their hottest instructions as SASS text and by source line."""


class ReadOptions(Struct, frozen=True):
    """What to read of a report.

    Attributes:
        reader: Which reader reads it.
        raw: Which stored values are kept.
        max_unpacked_bytes: Limit on the unpacked size of a compressed file.
        gpu: Short or display name of the GPU, for exports that do not name it.
        gpu_option: The option that sets `gpu`, for notes and hints.
        deadline_s: Seconds that NVIDIA's module may take.
        reads_code: Whether to read machine code: hot lines, loops and waits. Every verdict asks for it; names, GPUs and
            stored values do not.
        texts: Whether to get the text of the hottest instructions from NVIDIA's disassembler, which takes a second.
        texts_later: Whether the caller gets that text (`rooflens.ingest.reports.texts`).
    """

    reader: Reader = "auto"
    raw: Raw = "none"
    max_unpacked_bytes: int = field(default_factory=max_unpacked_bytes)
    gpu: str | None = None
    gpu_option: str = "--gpu"
    deadline_s: float = field(default_factory=deadline_s)
    reads_code: bool = True
    texts: bool = True
    texts_later: bool = False


class ReadReport(Struct, frozen=True):
    """A report that was read.

    Attributes:
        raw: Stored values, rows of the table `metrics`; None if they were not requested.
        instances: Values of instances, rows of the table `instances`; None if they were not requested.
        notes: What a user should know about the reading.
        loss: What could not be read of the kernels that are present; None if everything was read.
        untold: Code whose hottest instructions have opcodes, and still lack their text.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    raw: pa.Table | None = None
    instances: pa.Table | None = None
    notes: tuple[str, ...] = ()
    loss: InputError | None = None
    untold: Codes = field(default_factory=dict)


def make_report(  # noqa: PLR0913 - what is read, and how, of which the last three have their defaults
    results: Iterable[RawResult],
    container: Outline,
    source: str,
    raw: RawTable | None = None,
    *,
    reads_code: bool = True,
    on_read: Callable[[float], None] = lambda _: None,
) -> ReadReport:
    """Make a report from its results; if there are many kernels, only the longest get their code by source line.

    Args:
        results: All results in file order.
        container: The outline of the report's container.
        source: The path as the user gave it: what records and messages show.
        raw: Table that the reader filled with stored values.
        reads_code: Whether to read machine code.
        on_read: Called with parts of the results as they are read.

    Raises:
        InputError: The report is damaged, or not all of its results can be read.
    """
    source = as_unicode(source)
    kernels: list[Kernel] = []
    codes = _Codes(are_few=container.result_count <= MOST_IN_TEXT)
    unread: dict[str, None] = {}
    cut_count = 0
    for result in results:
        kernel = to_kernel(result, container.digest, source, synthetic=container.synthetic)
        unread |= dict.fromkeys(result.unread)
        cut_count += len(result.signature) > LONGEST_NAME
        if reads_code and result.instructions is not None and not kernel.failed:
            kernel = with_code(kernel, codes.read(result, result.instructions, kernel.duration_ns or 0.0))
            kernel = replace(kernel, inside=codes.inside(result)) if not kernel.failed else kernel
        kernels.append(kernel)
        if not len(kernels) % _AT_ONCE:
            on_read(_AT_ONCE / container.result_count)
    if len(kernels) != container.result_count:
        raise InputError(f"damaged: only {len(kernels)} of {container.result_count} results can be read", RERECORD_HINT)
    told = codes.of_longest()
    values, instances = raw.finish() if raw else (None, None)
    lost = unread_reason([*unread])
    return ReadReport(
        run=_run_record(container, source),
        kernels=tuple(with_codes(kernels, told)),
        raw=values,
        instances=instances,
        notes=(*(container.sessions[0].notes if container.sessions else ()), *notes_of_cut_names(cut_count)),
        loss=InputError(lost, "a newer version of rooflens may know them") if lost else None,
        untold={index: code for index, code in told.items() if index not in codes.refused},
    )


class _Codes:
    """Read the code of kernels: with source lines for all of a few kernels, else for the longest.

    Attributes:
        refused: Results whose code is too large to read: NVIDIA's module must not try it either.
    """

    def __init__(self, *, are_few: bool) -> None:
        self.refused: set[int] = set()
        self._are_few = are_few
        self._longest: list[tuple[float, int, RawResult, Code]] = []
        self._insides: Insides | None = None

    def inside(self, result: RawResult) -> Inside | None:
        """Look into a result; None if nothing was counted by instruction."""
        if self._insides is None:
            from rooflens.ingest.reports.machine_code import Insides  # noqa: PLC0415 - most reports hold no code

            self._insides = Insides()
        return self._insides.of(result)

    def read(self, result: RawResult, stored: Instructions, duration_ns: float) -> Code:
        """Read the code of a result, and remember the result if it is among the longest so far."""
        if stored.figures is not None:
            return read_code(stored, None)  # published figures are complete
        code = self._code_of_listing(result, stored) if self._are_few else read_code(stored, None)
        if code.needs_kinds and not self._are_few:
            code = self._code_of_listing(result, stored)
        if code.hotspots:
            (heappush if len(self._longest) < MOST_IN_TEXT else heappushpop)(
                self._longest, (duration_ns, -result.index, result, code)
            )
        return code

    def of_longest(self) -> dict[int, Code]:
        """Return the code of the longest results, with source lines, in file order."""
        found: dict[int, Code] = {}
        for _, _, result, code in sorted(self._longest, key=lambda hot: hot[1], reverse=True):
            stored = result.instructions
            found[result.index] = code if self._are_few or stored is None else self._code_of_listing(result, stored)
        return found

    def _code_of_listing(self, result: RawResult, stored: Instructions) -> Code:
        try:
            listing = result.listing(stored.start)
        except TooMuchCodeError:
            self.refused.add(result.index)
            return read_code(stored, None)
        return read_code(stored, listing)


def with_codes(kernels: Iterable[Kernel], codes: Codes) -> Iterator[Kernel]:
    """Yield kernels, adding their code if there is any."""
    for kernel in kernels:
        found = codes.get(kernel.index)
        yield kernel if found is None else with_code(kernel, found)


def raw_table(digest: str, options: ReadOptions) -> RawTable | None:
    """Make the table for stored values; None if no values are kept."""
    if options.raw == "none":
        return None
    from rooflens.ingest.metrics.raw import RawTable  # noqa: PLC0415 - pyarrow: only where values are kept

    return RawTable(digest, with_instances=options.raw == "all")


def _run_record(container: Outline, source: str) -> Run:
    session = container.sessions[0] if container.sessions else Session(process_id=0)
    return Run(
        digest=container.digest,
        source=source,
        file_bytes=container.file_bytes,
        kernel_count=container.result_count,
        synthetic=container.synthetic,
        ncu_version=shortened(session.ncu_version),
        command_line=session.command_line,
        host=shortened(session.host),
        process_name=shortened(session.process_name),
        clock_control=shortened(session.clock_control),
        cache_control=shortened(session.cache_control),
        replay_mode=shortened(session.replay_mode),
        created_unix_s=session.created_unix_s,
        reader="direct",
    )
