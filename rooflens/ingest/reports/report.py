"""What a reader is asked for, and how the results of any reader become a report."""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import LONGEST_NAME, as_unicode, notes_of_cut_names
from rooflens.ingest.cubin.budget import TooMuchError
from rooflens.ingest.messages.sessions import Session
from rooflens.ingest.metrics.code import read_code
from rooflens.ingest.reports.limits import deadline_s, max_unpacked_bytes
from rooflens.ingest.reports.results import shortened, to_kernel, unread_reason, with_code
from rooflens.ingest.reports.unpacking import RERECORD_HINT
from rooflens.model.records import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from rooflens.ingest.metrics.code import Code, Instructions
    from rooflens.ingest.metrics.raw import RawTable
    from rooflens.ingest.reports.container import Outline
    from rooflens.ingest.reports.machine_code import Insides
    from rooflens.ingest.reports.results import RawResult
    from rooflens.model.records import Inside, Kernel

Reader: TypeAlias = Literal["auto", "direct", "ncu-report"]
"""Who reads: rooflens itself, with the text of instructions from NVIDIA's module (`auto`) or alone, or that module."""

Raw: TypeAlias = Literal["none", "values", "all"]
"""Which stored values are kept beside the kernels: none, one for each metric, or those of all instances too."""

Codes: TypeAlias = "Mapping[int, Code]"
"""Code of kernels by index of the result."""

MOST_IN_TEXT = 20
"""How many kernels, the longest, have their hottest instructions as SASS text and by source line."""


_NEWER_HINT = "a newer version of rooflens may know them; `--reader ncu-report` reads with NVIDIA's module"


class ReadOptions(Struct, frozen=True):
    """What to read of a report.

    Attributes:
        reader: Who is to read it.
        raw: Which stored values are kept.
        max_unpacked_bytes: A compressed file that unpacks to more is refused.
        gpu: Short or display name of the GPU, for exports that do not name it.
        gpu_option: The option that gives it, for notes and hints.
        deadline_s: Seconds that NVIDIA's module may take, before its allowance for the size of the file.
        texts: Have NVIDIA's disassembler give the text of the hottest instructions, which takes a second.
        texts_later: Leave what only NVIDIA's module can tell to the caller (`rooflens.ingest.reports.texts`).
    """

    reader: Reader = "auto"
    raw: Raw = "none"
    max_unpacked_bytes: int = field(default_factory=max_unpacked_bytes)
    gpu: str | None = None
    gpu_option: str = "--gpu"
    deadline_s: float = field(default_factory=deadline_s)
    texts: bool = True
    texts_later: bool = False


class Report(Struct, frozen=True):
    """One report that was read.

    Attributes:
        raw: Stored values, rows of the table `metrics`; None when they were not asked for.
        instances: Values of instances, rows of the table `instances`; None when they were not asked for.
        notes: What a user should know about how it was read.
        loss: What could not be read of kernels that are there all the same; None where everything could.
        untold: Code whose hottest instructions still lack their text.
        unlisted: What is stored by instruction of kernels whose code only NVIDIA's module may know.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    raw: pa.Table | None = None
    instances: pa.Table | None = None
    notes: tuple[str, ...] = ()
    loss: InputError | None = None
    untold: Codes = field(default_factory=dict)
    unlisted: Mapping[int, Instructions] = field(default_factory=dict)


def make_report(
    results: Iterable[RawResult], reader: str, container: Outline, source: str, raw: RawTable | None = None
) -> Report:
    """Make a report of its results; of many kernels, only the longest have their code by source line.

    Args:
        results: All results, in the order of the file.
        reader: Name of who read them.
        container: What the report says of itself.
        source: The path as the user gave it: what records and messages show.
        raw: Where the reader put stored values.

    Raises:
        InputError: Fewer results can be read than it holds, or it is damaged.
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
        if result.instructions is not None and not kernel.failed:
            kernel = with_code(kernel, codes.read(result, result.instructions, kernel.duration_ns or 0.0))
            kernel = replace(kernel, inside=codes.inside(result)) if not kernel.failed else kernel
        kernels.append(kernel)
    if len(kernels) != container.result_count:
        raise InputError(f"damaged: only {len(kernels)} of {container.result_count} results can be read", RERECORD_HINT)
    told = codes.of_longest()
    values, instances = raw.finish() if raw else (None, None)
    lost = unread_reason([*unread])
    return Report(
        run=_run(container, source, reader),
        kernels=tuple(with_codes(kernels, told)),
        raw=values,
        instances=instances,
        notes=(*(container.sessions[0].notes if container.sessions else ()), *notes_of_cut_names(cut_count)),
        loss=InputError(lost, _NEWER_HINT) if lost else None,
        untold={index: code for index, code in told.items() if index not in codes.unlisted.keys() | codes.refused},
        unlisted=codes.unlisted,
    )


def lacks_texts(report: Report, options: ReadOptions) -> bool:
    """Return whether only NVIDIA's module can tell what is still wanted of a report's code."""
    return bool(report.unlisted or (options.texts and report.untold))


class _Codes:
    """Reads the code of kernels: of few all with their source lines, of many only that of the longest.

    Attributes:
        unlisted: What is stored by instruction of results whose code only NVIDIA's module may know.
        refused: Results whose code takes too much to read: NVIDIA's module is not to try either.
    """

    def __init__(self, *, are_few: bool) -> None:
        self.unlisted: dict[int, Instructions] = {}
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
        """Read the code of a result, and remember it if it is one of the longest so far."""
        if stored.figures is not None:
            return read_code(stored, None)  # published figures hold all that there is
        code = self._listed(result, stored) if self._are_few else read_code(stored, None)
        if code.needs_texts and not self._are_few:
            code = self._listed(result, stored)
        if code.hotspots:
            (heappush if len(self._longest) < MOST_IN_TEXT else heappushpop)(
                self._longest, (duration_ns, -result.index, result, code)
            )
        return code

    def of_longest(self) -> dict[int, Code]:
        """Return the code of the longest results, with their source lines, in the order of the file."""
        found: dict[int, Code] = {}
        for _, _, result, code in sorted(self._longest, key=lambda hot: hot[1], reverse=True):
            stored = result.instructions
            found[result.index] = code if self._are_few or stored is None else self._listed(result, stored)
        return found

    def _listed(self, result: RawResult, stored: Instructions) -> Code:
        try:
            listing = result.listing(stored.start)
        except TooMuchError:
            self.refused.add(result.index)
            return read_code(stored, None)
        code = read_code(stored, listing)
        if listing is None or code.needs_texts:
            self.unlisted[result.index] = stored
        return code


def with_codes(kernels: Iterable[Kernel], codes: Codes) -> Iterator[Kernel]:
    """Yield kernels with their code, where there is any for them."""
    for kernel in kernels:
        found = codes.get(kernel.index)
        yield kernel if found is None else with_code(kernel, found)


def raw_table(digest: str, options: ReadOptions) -> RawTable | None:
    """Make the table for stored values; None if none are to be kept."""
    if options.raw == "none":
        return None
    from rooflens.ingest.metrics.raw import RawTable  # noqa: PLC0415 - pyarrow: only where values are kept

    return RawTable(digest, with_instances=options.raw == "all")


def _run(container: Outline, source: str, reader: str) -> Run:
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
        reader=reader,
    )
