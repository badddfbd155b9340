"""Analyze reports, from files or a store: the door of a notebook and of the command line alike.

    found = analyze_paths(["gemm.ncu-rep"])
    found.reports[0].analyses[0].verdict.sentence

Nothing is printed and nothing asked: what a user should hear of stands in the `Analyzed` that is returned.
"""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.files import read_text
from rooflens.ingest.children.memory import usable_cores
from rooflens.ingest.executors.opening import processes
from rooflens.ingest.executors.ordering import run_in_order
from rooflens.ingest.loading.load import load_reports
from rooflens.ingest.ncu.unprofiled import read_unprofiled
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.model.analyze import analyze
from rooflens.model.failed import BUG_HINT, bug_reason, failed_kernel
from rooflens.model.predict.measured import read_coverage
from rooflens.model.records import AnalyzedReport, Outside
from rooflens.model.roofline.attainable import find_attainable
from rooflens.model.roofline.calibrations import calibrations_folder, load_calibrations
from rooflens.model.totals import slimmed
from rooflens.model.verdict.thresholds import Thresholds, default_thresholds, override_thresholds
from rooflens.streaming import Gathered, Keeper
from rooflens.workloads.recognize import recognize

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rooflens.ingest.executors.opening import Workers
    from rooflens.ingest.reports.inputs import Inputs
    from rooflens.ingest.reports.pool import Outcome
    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.model.calibration import Attainable
    from rooflens.model.records import Analysis, Kernel, Run
    from rooflens.model.store.index import Index
    from rooflens.model.store.reading import Chunk
    from rooflens.model.store.store import Store
    from rooflens.model.totals import Total
    from rooflens.model.unprofiled import Unprofiled


_PIECE = 1024
"""Kernels of a report in a store that are analyzed and handed on together."""

_MUCH = 16_384
"""So many kernels are analyzed by several processes, each of which takes a second to begin."""


class Missing(Struct, frozen=True):
    """Kernels that a program launched and its report does not hold.

    Attributes:
        source: Path of the report as it was given.
        names: Names of the kernels, most launches first.
    """

    source: str
    names: tuple[str, ...]


class Analyzed(Struct, frozen=True):
    """What became of the reports that were asked for.

    Attributes:
        reports: Those that could be read, in the order they were asked for.
        limits: Thresholds the verdicts were reached with.
        failures: Path and error of each report that could not be read.
        skipped_count: Reports that were given twice under two names.
        ignored: Files of the folders given that are no reports; of a store, those in `runs` that no writer put there.
        missing: Reports that lack kernels: ncu took their launches for others', or was stopped.
        not_kept: Why the store did not take the verdicts; None where it did, or was not asked to.
        warnings: What could not be used beside a report, and the path of the report; calibrations have the path of
            their folder.
        notes: Path of a report, and what a user should know of how it was read.
        totals: All launches by kernel, where these were asked for in place of the analyses.
    """

    reports: tuple[AnalyzedReport, ...]
    limits: Thresholds
    failures: tuple[tuple[str, InputError], ...] = ()
    skipped_count: int = 0
    ignored: tuple[Path, ...] = ()
    missing: tuple[Missing, ...] = ()
    not_kept: InputError | None = None
    warnings: tuple[tuple[str, InputError], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    totals: tuple[Total, ...] = ()

    @property
    def report_count(self) -> int:
        """Reports that could be read."""
        return len(self.reports)


def analyze_paths(
    paths: Iterable[str | Path],
    limits: Thresholds | None = None,
    *,
    without_nvidia: bool = False,
    reading: ReadOptions | None = None,
) -> Analyzed:
    """Read reports, and folders of them, and analyze every kernel.

    Args:
        paths: Files and folders, subfolders included.
        limits: Thresholds of the verdicts; the shipped ones by default.
        without_nvidia: Withhold what NVIDIA's own rules say, so that the one can be checked against the other.
        reading: How the reports are read: by whom, and how large what is compressed may become.

    Raises:
        InputError: A path does not exist, or no folder holds a report; a damaged report is no error but a failure.
    """
    return analyze_inputs(
        find_inputs([str(path) for path in paths]), limits, without_nvidia=without_nvidia, reading=reading
    )


def analyze_inputs(
    inputs: Inputs,
    limits: Thresholds | None = None,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
    *,
    without_nvidia: bool = False,
    reading: ReadOptions | None = None,
) -> Analyzed:
    """Read the reports that were found and analyze every kernel; `on_outcome` hears of each report as it is read."""
    loaded = load_reports(inputs.jobs, on_outcome, reading)
    reports = _withheld(loaded.reports) if without_nvidia else loaded.reports
    found = _analyzed(reports, limits, lambda run: read_unprofiled(Path(run.source)))
    return replace(
        found,
        failures=(*loaded.failures, *found.failures),
        skipped_count=loaded.skipped_count,
        ignored=inputs.ignored,
        notes=tuple(loaded.notes),
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
) -> Analyzed:
    """Analyze the reports of a store.

    With `on_piece`, or with `totals`, memory is bounded: analyses are handed over or added up and not kept, and the
    reports that are returned hold none.

    Args:
        folder: A store that `rooflens ingest` wrote: a folder or an address.
        where: Which kernels, as `rooflens.model.store.where` reads it; all by default. No verdict depends on it.
        limits: Thresholds of the verdicts; the shipped ones by default.
        keep: Write positions and verdicts to the store's tables; otherwise nothing is written.
        without_nvidia: Withhold what NVIDIA's own rules say, so that the one can be checked against the other.
        on_piece: Takes each report in the order of the store, a large one in several pieces, one after the other.
        totals: Add launches up by kernel; what the store knows of that is not analyzed again.

    Raises:
        InputError: The folder is no store, or an empty one.
        UsageError: The condition cannot be read.
    """
    from rooflens.model.store.reading import Choice  # noqa: PLC0415 - loads pyarrow: only where there is a store
    from rooflens.model.store.store import Store  # noqa: PLC0415
    from rooflens.model.store.where import parse_where  # noqa: PLC0415

    limits, told, stamp = limits or default_thresholds(), _Told(), _known()
    choice = Choice(
        where=True if where is None else parse_where(where),
        is_whole=lambda run: recognize(run.command_line) is not None,
        at_once=_PIECE if on_piece or totals else None,
    )
    store = Store.existing(folder)
    stored: dict[str, list[Total]] = {}
    order: dict[str, Run] = {}
    parts: set[str] = set()

    def known(index: Index) -> Collection[str]:
        """Take the totals that the store knows; return the parts which need not be read."""
        parts.update(index.parts)
        order.update({digest: part.runs[digest] for part in index.parts.values() for digest in index.digests_of(part)})
        if not totals or on_piece or where is not None or without_nvidia:
            return ()
        stored.update(store.totals(index, limits, stamp))
        for key, of_part in stored.items():
            gathered.take((order[digest] for digest in index.digests_of(index.parts[key])), of_part)
        return stored.keys()

    def chunks(keeper: Keeper) -> Iterator[tuple[Chunk, bool]]:
        """Give what is to be analyzed, each with whether the store wants rows of it."""
        for chunk in coming:
            if isinstance(chunk, tuple):
                told.failures.append(chunk)
            else:
                yield chunk, keeper.needs(piece.run.digest for piece in chunk.pieces)

    is_slim = totals and on_piece is None
    gathered = Gathered(limits, on_piece, is_held=not (on_piece or totals), adds_up=totals or keep, are_slim=is_slim)
    coming = store.chunks(choice, known)
    is_kept = keep and where is None and stored.keys() < parts
    left = sum(run.kernel_count for digest, run in order.items() if digest not in gathered.totals)
    task = _ChunkTask(limits, told.calibrations(), without_nvidia, is_slim)
    workers = processes() if is_slim and where is None and left >= _MUCH and usable_cores() > 1 else None
    with Keeper(store.keeping(limits, stamp) if is_kept else None) as keeper:
        key = ""
        for (chunk, _), done in _each_done(task, chunks(keeper), workers):
            if chunk.key != key:  # the last report of a part is added up before the next part begins
                gathered.end(keeper)
                key = chunk.key
            _take(done if isinstance(done, _Done) else _lost(store, chunk, done), gathered, keeper, told)
        gathered.end(keeper)
    told.failures += gathered.failures
    found = gathered.sorted_reports([*order])
    return replace(
        told.about(found, limits),
        missing=tuple(sorted(told.missing, key=lambda missing: missing.source)),
        totals=tuple(total for report in found for total in gathered.totals.get(report.run.digest, ())),
        not_kept=keeper.error,
        ignored=tuple(Path(store.place.text_of("runs", name)) for name in store.foreign()),
    )


class _Done(Struct, frozen=True):
    """What became of a chunk of a store.

    Attributes:
        reports: Those that could be analyzed, in its order.
        told: What is to be heard of them.
        failed: Digests of the others.
        tables: Rows of their kernels for the store, where it wants them; or why they could not be made.
        kernel_count: Kernels of the reports.
    """

    reports: tuple[AnalyzedReport, ...]
    told: _Told
    failed: tuple[str, ...]
    tables: Mapping[str, Any] | InputError
    kernel_count: int


class _ChunkTask(Struct, frozen=True):
    """Analyze chunks of a store, here or in another process.

    Attributes:
        is_slim: Of the analyses only what totals are made of is given back.
    """

    limits: Thresholds
    calibrations: Sequence[Attainable]
    without_nvidia: bool
    is_slim: bool

    def __call__(self, given: tuple[Chunk, bool]) -> _Done | _Undecodable:
        """Analyze a chunk, given with whether rows are wanted for the store."""
        is_collecting = gc.isenabled()
        gc.disable()  # records hold no cycles, and a worker would look for some every 700 of them
        try:
            return self._analyzed(*given)
        finally:
            if is_collecting:
                gc.enable()

    def _analyzed(self, chunk: Chunk, is_kept: bool) -> _Done | _Undecodable:  # noqa: FBT001 - as it was given
        try:
            stored = chunk.reports()
        except (OSError, ValueError, TypeError, KeyError) as error:
            return _Undecodable(str(error))
        reports, told, failed = [], _Told(), []
        for found in stored:
            kernels = [replace(kernel, rules=()) for kernel in found.kernels] if self.without_nvidia else found.kernels
            try:
                report, missing = _analyze_report(found.run, kernels, found.unprofiled, self.limits, self.calibrations)
            except Exception as error:  # noqa: BLE001 - a bug that one report meets must not cost the others
                told.failures.append((found.run.source, InputError(bug_reason(error), BUG_HINT)))
                failed.append(found.run.digest)
                continue
            if missing:
                told.missing.append(Missing(found.run.source, missing))
            reports.append(_only(report, found.chosen))
        tables = self._tables(reports) if is_kept else {}
        kernel_count = sum(len(report.analyses) for report in reports)
        if self.is_slim:
            reports = [replace(report, analyses=tuple(map(slimmed, report.analyses))) for report in reports]
        return _Done(tuple(reports), told, tuple(failed), tables, kernel_count)

    def _tables(self, reports: Sequence[AnalyzedReport]) -> Mapping[str, Any] | InputError:
        from rooflens.model.store.verdicts import verdict_tables  # noqa: PLC0415 - loads pyarrow

        try:
            return verdict_tables([found for report in reports for found in report.analyses], self.limits.digest)
        except Exception as error:  # noqa: BLE001 - what cannot be stored is told all the same
            return InputError(bug_reason(error), BUG_HINT)


class _Undecodable(Struct, frozen=True):
    """Why the rows of a chunk are no kernels."""

    why: str


def _each_done(
    task: _ChunkTask, chunks: Iterator[tuple[Chunk, bool]], workers: Workers | None
) -> Iterator[tuple[tuple[Chunk, bool], _Done | _Undecodable | InputError]]:
    """Analyze chunks one after the other, here or side by side; give them in their order."""
    if workers is None:
        return ((chunk, task(chunk)) for chunk in chunks)
    return run_in_order(workers, task, chunks)


def _lost(store: Store, chunk: Chunk, why: _Undecodable | InputError) -> _Done:
    """Say what became of the reports of a chunk that could not be analyzed."""
    told = _Told()
    if isinstance(why, _Undecodable):
        told.failures.append(store.undecodable(chunk, why.why))
    else:
        told.failures += ((piece.run.source, why) for piece in chunk.pieces)
    return _Done((), told, tuple(piece.run.digest for piece in chunk.pieces), {}, 0)


def _take(done: _Done, gathered: Gathered, keeper: Keeper, told: _Told) -> None:
    """Take what became of a chunk."""
    told.add(done.told)
    for report in done.reports:
        gathered.add(report, keeper)
    keeper.add([report.run.digest for report in done.reports], done.tables, done.kernel_count)
    for digest in done.failed:
        keeper.leave(digest)


def _known() -> str:
    """Tell the calibrations that decide verdicts from others, in a few letters."""
    calibrations = load_calibrations(calibrations_folder(), lambda _: None)
    return hashlib.sha256(repr(calibrations).encode()).hexdigest()[:12]


def _only(report: AnalyzedReport, indices: frozenset[int] | None) -> AnalyzedReport:
    """Leave out the kernels that were not asked for and were needed for the verdicts of the others."""
    if indices is None:
        return report
    return replace(report, analyses=tuple(found for found in report.analyses if found.kernel.index in indices))


def _withheld(reports: Iterable[tuple[Run, Sequence[Kernel]]]) -> Iterator[tuple[Run, Sequence[Kernel]]]:
    """Leave out the results of NVIDIA's rules, before anything is made of them."""
    return ((run, [replace(kernel, rules=()) for kernel in kernels]) for run, kernels in reports)


def _analyzed(
    reports: Iterable[tuple[Run, Sequence[Kernel]]],
    limits: Thresholds | None,
    unprofiled_of: Callable[[Run], Unprofiled | None],
) -> Analyzed:
    """Analyze report by report, each with its un-profiled run and the calibration of its GPU, where there are any.

    What is wrong with one costs the others nothing.
    """
    limits, told = limits or default_thresholds(), _Told()
    return told.about(tuple(_analyze_each(reports, limits, unprofiled_of, told)), limits)


class _Told(Struct):
    """What a user should hear of, gathered while reports are analyzed."""

    failures: list[tuple[str, InputError]] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    warnings: list[tuple[str, InputError]] = field(default_factory=list)

    def calibrations(self) -> Sequence[Attainable]:
        """Load the calibrations that there are, and hear of the others."""
        folder = calibrations_folder()
        return load_calibrations(folder, lambda error: self.warnings.append((str(folder), error)))

    def add(self, other: _Told) -> None:
        """Put what was heard elsewhere beside it."""
        self.failures += other.failures
        self.missing += other.missing
        self.warnings += other.warnings

    def about(self, reports: tuple[AnalyzedReport, ...], limits: Thresholds) -> Analyzed:
        """Put it beside the reports."""
        return Analyzed(
            reports, limits, tuple(self.failures), missing=tuple(self.missing), warnings=tuple(self.warnings)
        )


def _analyze_each(
    reports: Iterable[tuple[Run, Sequence[Kernel]]],
    limits: Thresholds,
    unprofiled_of: Callable[[Run], Unprofiled | None],
    told: _Told,
) -> Iterator[AnalyzedReport]:
    """Analyze reports one after the other."""
    calibrations = told.calibrations()
    for run, kernels in reports:
        try:
            unprofiled = unprofiled_of(run)
        except InputError as error:
            told.warnings.append((run.source, error))
            unprofiled = None
        try:
            report, missing = _analyze_report(run, kernels, unprofiled, limits, calibrations)
        except Exception as error:  # noqa: BLE001 - a bug that one report meets must not cost the others
            told.failures.append((run.source, InputError(bug_reason(error), BUG_HINT)))
            continue
        if missing:
            told.missing.append(Missing(run.source, missing))
        yield report


def _analyze_report(
    run: Run,
    kernels: Sequence[Kernel],
    unprofiled: Unprofiled | None,
    limits: Thresholds,
    calibrations: Sequence[Attainable],
) -> tuple[AnalyzedReport, tuple[str, ...]]:
    """Analyze one report; return with it the names of the kernels it should hold and does not."""
    total_ns = sum(kernel.duration_ns or 0.0 for kernel in kernels)
    one_each = Outside(
        command_line=run.command_line,
        slowdown=unprofiled.slowdown(total_ns, len(kernels)) if unprofiled else None,
    )
    compulsory_bytes = _compulsory_bytes(run, kernels)
    profiled = Counter((kernel.name, kernel.grid, kernel.block) for kernel in kernels)
    analyses = []
    for kernel in kernels:
        shape = kernel.name, kernel.grid, kernel.block
        launches = unprofiled.launches_of(*shape, profiled[shape]) if unprofiled else 1
        outside = replace(
            one_each,
            launches=launches,
            in_program=unprofiled.in_program(*shape) if unprofiled else None,
            compulsory_bytes=compulsory_bytes if launches == 1 else None,
        )
        analyses.append(_analyze_kernel(kernel, limits, outside, calibrations))
    missing = unprofiled.names_without(profiled) if unprofiled and _should_hold_each(run) else ()
    return AnalyzedReport(run, tuple(analyses), unprofiled), tuple(missing)


def _analyze_kernel(
    kernel: Kernel, limits: Thresholds, outside: Outside, calibrations: Sequence[Attainable]
) -> Analysis:
    """Analyze one kernel; where that meets a bug of ours, it is a failed one that says so."""
    try:
        attainable = find_attainable(kernel.gpu, kernel.counters.get("sm_clock_hz"), calibrations)
        return analyze(kernel, limits, replace(outside, attainable=attainable))
    except Exception as error:  # noqa: BLE001 - a bug that one kernel meets must not cost the others
        return analyze(failed_kernel(kernel, bug_reason(error)), limits, Outside())


def _compulsory_bytes(run: Run, kernels: Sequence[Kernel]) -> float | None:
    """Return what a launch must move, where a bundled workload ran whose iterations are one launch each."""
    ran = recognize(run.command_line)
    alone = len({kernel.name for kernel in kernels}) == 1
    if ran is None or not alone or len(kernels) not in {1, ran.iterations}:
        return None
    return ran.case.byte_count(ran.parameters)


def _should_hold_each(run: Run) -> bool:
    """Return whether a report was to hold each distinct launch of its program."""
    coverage = read_coverage(run)
    return coverage.once_each and not coverage.in_range and "--kernel-" not in (run.command_line or "")


def read_thresholds(file: Path | None) -> Thresholds:
    """Read the thresholds that a TOML file puts over the shipped ones; without a file, return those.

    Raises:
        InputError: The file cannot be read, or is no file of thresholds.
    """
    if file is None:
        return default_thresholds()
    return override_thresholds(read_text(file, "docs/method.md shows a thresholds file"), str(file))
