"""Analyze a store as it is read: pass analyses on, add launches up, and write the verdicts back to the store."""

from __future__ import annotations

import gc
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.analyzing import Analyzed, Missing, Told, analyze_report
from rooflens.errors import InputError, NothingChosenError
from rooflens.machine import usable_cores
from rooflens.model.failed import bug_error, tells_bug
from rooflens.model.records import AnalyzedReport
from rooflens.model.store.address import shown
from rooflens.model.totals import parts_of, totals_of_parts
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.workloads.recognize import recognize

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rooflens.model.calibration import Attainable
    from rooflens.model.records import Run
    from rooflens.model.store.index import Index
    from rooflens.model.store.reading import Chunk, Failure
    from rooflens.model.store.store import Store
    from rooflens.model.totals import PartTotal, Total
    from rooflens.model.verdict.thresholds import Thresholds

_Given: TypeAlias = "tuple[Chunk, bool]"
"""A chunk of a store, and whether rows of it are wanted there."""

_PIECE = 1024
"""Kernels of a report in a store that are analyzed and handed on together."""

_MUCH = 16_384
"""From so many kernels on, several processes share the work; each takes a second to start."""


class _Part(Struct):
    """What an analysis adds to a part of a store.

    Attributes:
        pieces: Digests of reports, their rows by table, and how many kernels these are.
        totals: Launches of a report added up, by its digest.
        has_bug: Whether some of these met a bug in rooflens, which a later version may not have.
        is_left: Whether a report could not be analyzed, so that the part stays as it is.
    """

    key: str
    pieces: list[tuple[list[str], Mapping[str, Any], int]] = field(default_factory=list)
    totals: dict[str, list[Total]] = field(default_factory=dict)
    has_bug: bool = False
    is_left: bool = False


class _Gathered:
    """Collects reports as they arrive, large ones in pieces.

    Attributes:
        reports: By digest, with their analyses where these are held.
        totals: By digest, where they are added up.
        told: Messages for the user.
    """

    def __init__(
        self,
        told: Told,
        on_piece: Callable[[AnalyzedReport], None] | None,
        keep: Callable[[_Part], None] | None,
        *,
        is_held: bool,
    ) -> None:
        """Start empty.

        Args:
            told: Messages for the user so far.
            on_piece: Called with each report, or piece of one, as it arrives.
            keep: Called with each part of the store, when all of its reports have arrived.
            is_held: Whether all analyses are kept in memory.
        """
        self.reports: dict[str, AnalyzedReport] = {}
        self.totals: dict[str, list[Total]] = {}
        self.told = told
        self._on_piece = on_piece
        self._keep = keep
        self._is_held = is_held
        self._parts: list[PartTotal] = []
        self._current: Run | None = None
        self._part: _Part | None = None

    def take(self, runs: Iterable[Run], totals: Iterable[Total]) -> None:
        """Take reports whose totals the store already holds."""
        for run in runs:
            self.reports[run.digest] = AnalyzedReport(run, ())
            self.totals[run.digest] = []
        for total in totals:
            self.totals[total.digest].append(total)

    def add(self, chunk: Chunk, done: _Done) -> None:
        """Take what became of a chunk."""
        if self._part is None or self._part.key != chunk.key:
            self.end()
            self._part = _Part(chunk.key)
        self.told.add(done.told)
        self._part.is_left |= bool(done.failed)
        self._part.pieces.append(([one.report.run.digest for one in done.found], done.tables, done.kernel_count))
        for found in done.found:
            report = found.report
            if self._current is None or self._current.digest != report.run.digest:
                self._end_report()
                self._current = report.run
            self._parts += found.parts
            if self._is_held or report.run.digest not in self.reports:
                self.reports[report.run.digest] = report if self._is_held else replace(report, analyses=())
            if self._on_piece is not None:
                self._on_piece(report)

    def end(self) -> None:
        """End the current part, whose reports have all arrived."""
        self._end_report()
        if self._part is not None and self._keep is not None:
            self._keep(self._part)
        self._part = None

    def _end_report(self) -> None:
        """Add up the current report, whose pieces have all arrived."""
        run, parts = self._current, self._parts
        self._current, self._parts = None, []
        if run is not None and self._part is not None:
            totals = totals_of_parts(parts)
            self.totals[run.digest] = self._part.totals[run.digest] = totals
            self._part.has_bug |= any(tells_bug(reason) for total in totals for reason in total.reasons)

    def sorted_reports(self, order: Sequence[str]) -> tuple[AnalyzedReport, ...]:
        """Return the reports sorted by path; those of one path are in the given order of digests."""
        places = {digest: place for place, digest in enumerate(order)}
        return tuple(
            sorted(
                self.reports.values(),
                key=lambda report: (report.run.source, places.get(report.run.digest, len(places))),
            )
        )


def analyze_store(  # noqa: PLR0913 - each says one thing of what is wanted
    folder: str | Path,
    limits: Thresholds | None = None,
    *,
    where: str | None = None,
    keep: bool = False,
    without_nvidia: bool = False,
    on_piece: Callable[[AnalyzedReport], None] | None = None,
    totals: bool = False,
    parallel: bool = False,
) -> Analyzed:
    """Analyze the reports of a store.

    With `on_piece` or `totals` memory is bounded: analyses are passed on or added up instead of kept, and the reports
    that are returned hold none.

    Args:
        folder: A store that `rooflens ingest` wrote: a folder or an address.
        where: Condition that chooses kernels (see `rooflens.model.store.where`); None for all. It changes no verdict.
        limits: Thresholds of the verdicts; the shipped ones by default.
        keep: Write roofline positions and verdicts to the store; otherwise nothing is written.
        without_nvidia: Ignore the results of NVIDIA's own rules, so that ours can be checked against them.
        on_piece: Called with each report in the order of the store; a large one comes in several pieces.
        totals: Add launches up by kernel; totals that the store holds are not computed again.
        parallel: Use processes of this machine for many kernels. They import the main module again, so that only a
            program that allows for it may ask for this, as the command line does.

    Raises:
        InputError: The folder is not a store, or holds no reports.
        UsageError: The condition cannot be read.
    """
    from rooflens.model.store.reading import Choice  # noqa: PLC0415 - loads pyarrow: only where there is a store
    from rooflens.model.store.store import Store  # noqa: PLC0415
    from rooflens.model.store.where import parse_where  # noqa: PLC0415

    limits, told = limits or default_thresholds(), Told()
    calibrations = told.calibrations()
    stamp = _stamp(calibrations)
    choice = Choice(
        where=True if where is None else parse_where(where),
        is_whole=lambda run: recognize(run.command_line) is not None,
        at_once=_PIECE if on_piece or totals else None,
        are_named=not totals,
    )
    store = Store.existing(folder)
    is_all, is_slim = where is None, totals and on_piece is None
    keeping = _Keeping(store, limits, stamp) if keep and is_all else None
    gathered = _Gathered(told, on_piece, keeping.keep if keeping else None, is_held=not (on_piece or totals))
    are_told = is_slim and is_all and not without_nvidia
    known = _Known(gathered, lambda index: store.totals(index, limits, stamp) if are_told else {})
    coming = store.chunks(choice, known.look)
    task = _ChunkTask(
        limits,
        calibrations,
        without_nvidia,
        adds_up=totals or keep,
        is_slim=is_slim,
    )
    are_many = is_slim and is_all and known.kernels_left >= _MUCH and usable_cores() > 1
    for chunk, done in _analyzed(task, _given(coming, told, keeping), in_processes=parallel and are_many):
        gathered.add(chunk, done if isinstance(done, _Done) else _lost(store, chunk, done))
    gathered.end()
    found = gathered.sorted_reports([*known.order])
    return replace(
        told.about(found, limits),
        missing=tuple(sorted(told.missing, key=lambda missing: missing.source)),
        totals=tuple(total for report in found for total in gathered.totals.get(report.run.digest, ())),
        not_kept=keeping.error if keeping else None,
        ignored=tuple(Path(store.place.text_of("runs", name)) for name in store.foreign()),
    )


class _Keeping:
    """Writes verdicts back to the store, part by part.

    Attributes:
        error: Why the verdicts were not kept: the answer stands without; None where they were.
    """

    def __init__(self, store: Store, limits: Thresholds, known: str) -> None:
        self.error: InputError | None = None
        self._store = store
        self._limits = limits
        self._known = known
        self._missing: dict[str, tuple[str, ...]] = {}

    def missing(self, key: str) -> tuple[str, ...]:
        """Return the tables that are to be written for a part."""
        if self.error is not None:
            return ()
        if key not in self._missing:
            self._missing[key] = self._store.missing_verdicts(key, self._limits, self._known)
        return self._missing[key]

    def keep(self, part: _Part) -> None:
        """Write what was found of a part; after an error nothing is written any more."""
        if part.is_left or not self.missing(part.key):
            return
        try:
            with self._store.keeping(self._limits, self._known) as writer:
                for digests, tables, kernel_count in part.pieces:
                    writer.add(digests, tables, kernel_count)
                for digest, totals in part.totals.items():
                    if part.has_bug:
                        writer.leave_totals(digest)
                    else:
                        writer.add_totals(digest, totals)
        except Exception as error:  # noqa: BLE001 - the answer stands without the store
            self.error = error if isinstance(error, InputError) else bug_error(error)


class _Known:
    """What is known of a store's reports before they are read.

    Attributes:
        order: All runs by digest, in the order of the store.
    """

    def __init__(self, gathered: _Gathered, totals_of: Callable[[Index], Mapping[str, list[Total]]]) -> None:
        self.order: dict[str, Run] = {}
        self._gathered = gathered
        self._totals_of = totals_of
        self._parts: set[str] = set()
        self._done: set[str] = set()

    def look(self, index: Index) -> Collection[str]:
        """Take the totals that the store holds; return the keys of the parts that need not be read."""
        self._parts.update(index.parts)
        for part in index.parts.values():
            self.order.update((digest, part.runs[digest]) for digest in index.digests_of(part))
        for key, totals in self._totals_of(index).items():
            self._gathered.take((self.order[digest] for digest in index.digests_of(index.parts[key])), totals)
            self._done.add(key)
        return self._done

    @property
    def kernels_left(self) -> int:
        """How many kernels there are to analyze."""
        return sum(run.kernel_count for digest, run in self.order.items() if digest not in self._gathered.totals)


def _given(coming: Iterable[Chunk | Failure], told: Told, keeping: _Keeping | None) -> Iterator[_Given]:
    """Yield each chunk with whether the store wants its rows; failures go to the messages."""
    for chunk in coming:
        if isinstance(chunk, tuple):
            told.failures.append(chunk)
        else:
            yield chunk, keeping is not None and any(table != "totals" for table in keeping.missing(chunk.key))


def _analyzed(
    task: _ChunkTask, given: Iterable[_Given], *, in_processes: bool
) -> Iterator[tuple[Chunk, _Done | _Undecodable | InputError]]:
    """Analyze chunks one after another, or in processes of this machine; yield them in their order."""
    groups = ((one,) for one in given)
    results: Iterable[tuple[tuple[_Given, ...], _Done | _Undecodable | InputError]]
    if in_processes:
        from rooflens.ingest.running import processes, run  # noqa: PLC0415 - 20 ms: only where there is much

        results = run(task, groups, processes())
    else:
        results = ((group, task(group)) for group in groups)
    for ((chunk, _),), done in results:
        yield chunk, done


def check_chosen(found: Analyzed, folder: str | Path) -> None:
    """Raise an error if a condition left no kernel of a store.

    Raises:
        NothingChosenError: No kernel met it.
    """
    if not found.reports and not found.failures:
        message = f"no kernel of `{shown(str(folder))}` meets the condition"
        raise NothingChosenError(message, "drop it to see them all")


class _Found(Struct, frozen=True):
    """A report, or a piece of one, after analysis.

    Attributes:
        report: With its analyses, unless only totals are wanted.
        parts: Its launches added up; empty where totals are not wanted.
    """

    report: AnalyzedReport
    parts: Sequence[PartTotal]


class _Done(Struct, frozen=True):
    """The result of analyzing a chunk.

    Attributes:
        found: Reports that could be analyzed, in the order of the chunk.
        told: Messages for the user.
        failed: Digests of the reports that could not be analyzed.
        tables: Rows for the store by table; empty where it wants none.
        kernel_count: Number of kernels analyzed.
    """

    found: tuple[_Found, ...]
    told: Told
    failed: tuple[str, ...]
    tables: Mapping[str, Any]
    kernel_count: int


class _ChunkTask(Struct, frozen=True):
    """Analyze chunks of a store, here or in another process.

    Attributes:
        adds_up: Whether launches are added up by kernel.
        is_slim: Whether analyses are dropped once they are added up.
    """

    limits: Thresholds
    calibrations: Sequence[Attainable]
    without_nvidia: bool
    adds_up: bool
    is_slim: bool

    def __call__(self, group: tuple[_Given, ...]) -> _Done | _Undecodable:
        """Analyze one chunk."""
        is_collecting = gc.isenabled()
        gc.disable()  # records hold no cycles, and the collector would look for some every 700 of them
        try:
            return self._analyzed(*group[0])
        finally:
            if is_collecting:
                gc.enable()

    def _analyzed(self, chunk: Chunk, is_kept: bool) -> _Done | _Undecodable:  # noqa: FBT001 - unpacked from _Given
        try:
            stored = chunk.reports()
        except (OSError, ValueError, TypeError, KeyError) as error:
            return _Undecodable(str(error))
        reports, told, failed = [], Told(), []
        for found in stored:
            kernels = [replace(kernel, rules=()) for kernel in found.kernels] if self.without_nvidia else found.kernels
            try:
                report, missing = analyze_report(
                    found.run,
                    kernels,
                    found.unprofiled,
                    self.limits,
                    self.calibrations,
                    keys=found.keys,
                    with_evidence=not self.is_slim,
                )
            except Exception as error:  # noqa: BLE001 - a bug that one report meets must not cost the others
                told.failures.append((found.run.source, bug_error(error)))
                failed.append(found.run.digest)
                continue
            if missing:
                told.missing.append(Missing(found.run.source, missing))
            reports.append(_only(report, found.chosen))
        kernel_count = sum(len(report.analyses) for report in reports)
        tables = self._tables(reports) if is_kept else {}
        return _Done(tuple(map(self._found, reports)), told, tuple(failed), tables, kernel_count)

    def _found(self, report: AnalyzedReport) -> _Found:
        parts = parts_of(report.analyses) if self.adds_up else ()
        return _Found(replace(report, analyses=()) if self.is_slim else report, parts)

    def _tables(self, reports: Sequence[AnalyzedReport]) -> Mapping[str, Any]:
        from rooflens.model.store.verdicts import verdict_tables  # noqa: PLC0415 - loads pyarrow

        return verdict_tables([found for report in reports for found in report.analyses], self.limits.digest)


class _Undecodable(Struct, frozen=True):
    """Why the rows of a chunk could not be turned into kernels."""

    why: str


def _lost(store: Store, chunk: Chunk, why: _Undecodable | InputError) -> _Done:
    """Return the result of a chunk of which no report could be analyzed."""
    told = Told()
    if isinstance(why, _Undecodable):
        told.failures.append(store.undecodable(chunk, why.why))
    else:
        told.failures += ((piece.run.source, why) for piece in chunk.pieces)
    return _Done((), told, tuple(piece.run.digest for piece in chunk.pieces), {}, 0)


def _stamp(calibrations: Sequence[Attainable]) -> str:
    """Return a short digest of the calibrations, for verdicts depend on them."""
    return hashlib.sha256(repr(calibrations).encode()).hexdigest()[:12]


def _only(report: AnalyzedReport, indices: frozenset[int] | None) -> AnalyzedReport:
    """Drop the kernels that were analyzed only because the verdicts of the chosen ones depend on them."""
    if indices is None:
        return report
    return replace(report, analyses=tuple(found for found in report.analyses if found.kernel.index in indices))
