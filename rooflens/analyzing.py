"""Analyze reports, from files or a store, for notebooks and the command line alike.

    found = analyze_paths(["gemm.ncu-rep"])
    found.reports[0].analyses[0].verdict.sentence

Nothing is printed: what a user should know is in the `Analyzed` that is returned.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens import __version__
from rooflens.errors import InputError
from rooflens.files import read_text
from rooflens.format import SENTENCE_NAME_WIDTH, count, cut_name, percent, plain_name, some
from rooflens.ingest.load import load_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.unpacking import sidecar
from rooflens.model.analyze import analyze, analyze_all
from rooflens.model.failed import bug_error, bug_reason, failed_kernel
from rooflens.model.findings.siblings import with_siblings
from rooflens.model.keys import Keys, function_of, launch_id, short_names
from rooflens.model.knowledge.roles import waits_for_ranks
from rooflens.model.records import AnalyzedReport, Outside, ratio
from rooflens.model.roofline.attainable import find_attainable
from rooflens.model.roofline.calibrations import calibrations_folder, load_calibrations
from rooflens.model.roofline.datasheets import name_key
from rooflens.model.store import no_report
from rooflens.model.verdict.library import with_fills_note
from rooflens.model.verdict.thresholds import Thresholds, default_thresholds, override_thresholds
from rooflens.workloads.recognize import recognize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rooflens.ingest.reports.inputs import Inputs
    from rooflens.ingest.reports.jobs import JobOutcome
    from rooflens.ingest.reports.report import ReadOptions
    from rooflens.ingest.running import Workers
    from rooflens.ingest.sources import SourceFolder
    from rooflens.model.calibration import MeasuredRates
    from rooflens.model.records import Analysis, Kernel, Run
    from rooflens.model.store.dataset import Store, StoredReport, StoredRun
    from rooflens.model.store.sums import Sums
    from rooflens.model.unprofiled import InProgram, LaunchCount, Unprofiled


_MOST_CHOSEN = 12
"""The maximum number of kernels named by a suggested command."""

_FUNCTION = re.compile(r"\w+", re.ASCII)
"""Names that need no quoting in a shell or in an expression of ncu, which rules out those of lambdas."""

MOST_HELD = 50_000
"""Kernels of a store of which each is held and can be shown: some 2 GB."""

_TOGETHER = 128
"""The number of kernels analyzed together, small enough for their data to stay in the CPU's caches."""


class Missing(Struct, frozen=True):
    """Kernels that a program launched but its report lacks.

    Attributes:
        source: Path of the report as given, or of the timeline if that shows them.
        names: Names of the kernels, the most expensive first.
        shares: Their shares of the program's kernel time; empty if they were not timed.
    """

    source: str
    names: tuple[str, ...]
    shares: tuple[float, ...] = ()

    @property
    def words(self) -> str:
        """The message for the user, in one line."""
        if self.shares:
            each = [
                f"{cut_name(plain_name(name), SENTENCE_NAME_WIDTH)} ({percent(share)})"
                for name, share in zip(self.names, self.shares, strict=True)
            ]
            part = f"{percent(sum(self.shares))} of the program's kernel time"
            what = (
                f"{count(len(self.names), 'kernel')} with {part} {'is' if len(self.names) == 1 else 'are'} in no report"
            )
            return f"{self.source}: {what}: {some(each)}"
        named = some(self.names)
        return f"{self.source}: launches of {count(len(self.names), 'kernel')} ran but are not in the report: {named}"

    @property
    def option(self) -> str:
        """The option of `collect` that profiles them.

        ncu matches function names, without namespaces, template arguments and parameters.
        """
        functions = [name for name in dict.fromkeys(map(function_of, self.names)) if _FUNCTION.fullmatch(name)]
        if not functions:
            return "--launch-count N"
        if len(functions) == 1:
            return f"--kernel {functions[0]}"
        return f"--kernel 'regex:^({'|'.join(functions[:_MOST_CHOSEN])})$'"


class AnalyzedTimeline(Struct, frozen=True):
    """A timeline as a whole.

    Attributes:
        source: Its path as it was given.
        program: Its contents.
        notes: Remarks on how it was read.
    """

    source: str
    program: Unprofiled
    notes: tuple[str, ...] = ()


class Basis(Struct, frozen=True, kw_only=True):
    """What verdicts are based on, beside the reports themselves.

    Attributes:
        limits: Thresholds of the verdicts; the shipped ones by default.
        without_nvidia: Ignore the results of NVIDIA's own rules, so that ours can be checked against them.
        timeline: The program's run without ncu, instead of the one that lies beside a report or in a store.
        sources: The folder that holds the kernels' source files, for reports that embed none.
    """

    limits: Thresholds = field(default_factory=default_thresholds)
    without_nvidia: bool = False
    timeline: AnalyzedTimeline | None = None
    sources: SourceFolder | None = None

    @property
    def program(self) -> Unprofiled | None:
        """The program on the timeline."""
        return self.timeline.program if self.timeline else None


class Summed(Struct, frozen=True):
    """A store with too many kernels to hold each, as sums of them."""

    sums: Sums
    report_count: int
    kernel_count: int


class Analyzed(Struct, frozen=True):
    """The result of analyzing reports.

    Attributes:
        reports: Those that could be read, in the requested order.
        limits: Thresholds of the verdicts.
        failures: Path and error of each report that could not be read.
        skipped_count: Number of copies of reports, given under another name as well.
        ignored: Files in the given folders that are not reports; for a store, foreign files in `runs`.
        missing: Reports that lack kernels which ran: ncu took their launches for another kernel's, or was stopped.
        not_kept: Why the store could not take the verdicts; None if it did, or was not asked to.
        kept_count: Reports whose verdicts were written into the store.
        warnings: Path and error of other unusable files: for a sidecar the path of its report, for a calibration
            that of the folder.
        notes: Path of a report, and a remark on how it was read.
        whole: If launches were chosen, the reports with all their launches; empty if none was left out.
        summed: All reports of a large store, instead of `reports`; None elsewhere.
    """

    reports: tuple[AnalyzedReport, ...]
    limits: Thresholds
    failures: tuple[tuple[str, InputError], ...] = ()
    skipped_count: int = 0
    ignored: tuple[Path, ...] = ()
    missing: tuple[Missing, ...] = ()
    not_kept: InputError | None = None
    kept_count: int = 0
    warnings: tuple[tuple[str, InputError], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    whole: tuple[AnalyzedReport, ...] = ()
    summed: Summed | None = None

    def only(self, reports: Iterable[AnalyzedReport]) -> Analyzed:
        """Return only the launches in these reports; findings that relate them to others stay."""
        return replace(self, reports=tuple(reports), whole=self.whole or self.reports)

    def whole_of(self, analysis: Analysis) -> AnalyzedReport:
        """Return the report of a launch with all of its launches."""
        return next(one for one in self.whole or self.reports if one.run.digest == analysis.kernel.digest)

    @property
    def report_count(self) -> int:
        """Reports that could be read."""
        return len(self.reports) if self.summed is None else self.summed.report_count

    @property
    def analyses(self) -> list[Analysis]:
        """The analyses of all kernels, in order."""
        return [analysis for report in self.reports for analysis in report.analyses]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on reading, one sentence each; `failures` has the reports that could not be read."""
        return (
            *(missing.words for missing in self.missing),
            *(f"{source}: left out: {error}; {error.hint}" for source, error in self.warnings),
            *(f"{source}: {note}" for source, note in self.notes),
            *([f"{count(self.skipped_count, 'report')} given twice but counted once"] if self.skipped_count else []),
            *([f"skipped {count(len(self.ignored), 'file')}: not reports"] if self.ignored else []),
        )

    def joined(self, others: Iterable[Analyzed]) -> Analyzed:
        """Concatenate these analyses with those of others, in order."""
        every = (self, *others)
        return Analyzed(
            tuple(report for one in every for report in one.reports),
            self.limits,
            tuple(failure for one in every for failure in one.failures),
            sum(one.skipped_count for one in every),
            tuple(file for one in every for file in one.ignored),
            tuple(missing for one in every for missing in one.missing),
            self.not_kept,
            self.kept_count,
            tuple(warning for one in every for warning in one.warnings),
            tuple(note for one in every for note in one.notes),
        )


def analyze_paths(paths: Iterable[str | Path]) -> Analyzed:
    """Read reports, and folders of them with their subfolders, and analyze every kernel.

    Raises:
        InputError: A path does not exist, or no report was found. A damaged report raises nothing: it is in `failures`.
    """
    return analyze_inputs(find_inputs([str(path) for path in paths]))


def analyze_inputs(  # noqa: PLR0913 - the last two hear of the work
    inputs: Inputs,
    basis: Basis | None = None,
    *,
    reading: ReadOptions | None = None,
    executor: Workers | None = None,
    on_read: Callable[[float], None] = lambda _: None,
    on_outcome: Callable[[JobOutcome], None] = lambda _: None,
) -> Analyzed:
    """Read the given reports, in this process or by workers, and analyze every kernel.

    `on_read` is called with parts of the work as they are done, which add up to 1 for each report: half for reading it,
    half for its analysis; `on_outcome` with each result.

    Raises:
        InputError: No kernel of any report is on the timeline.
    """
    basis = basis or Basis()
    analyzer = _Analyzer(basis, lambda part: on_read(part / 2))
    ahead: dict[tuple[str, str], Analyzed] = {}

    def heard(outcome: JobOutcome) -> None:
        on_outcome(outcome)
        if not isinstance(outcome.result, InputError):  # while another process may still be reading
            run = outcome.result.run
            ahead[run.digest, run.source] = analyzer.analyze_file(run, outcome.result.kernels)
        else:
            on_read(0.5)

    loaded = load_reports(inputs.jobs, heard, reading, executor, lambda part: on_read(part / 2))
    found = replace(
        analyzer.begun,
        failures=loaded.failures,
        skipped_count=loaded.skipped_count,
        ignored=inputs.ignored,
        notes=tuple(loaded.notes),
    ).joined(
        ahead.get((run.digest, run.source)) or analyzer.analyze_file(run, kernels) for run, kernels in loaded.reports
    )
    return _held_against(found, basis.timeline) if basis.timeline else found


def _held_against(analyzed: Analyzed, timeline: AnalyzedTimeline) -> Analyzed:
    """Say what the reports lack of a timeline, and the timeline of the reports.

    Raises:
        InputError: They have no kernel in common.
    """
    from rooflens.model.program.matching import Matching  # noqa: PLC0415 - only where there is a timeline

    source, program = timeline.source, timeline.program
    kernels = [analysis.kernel for analysis in analyzed.analyses]
    matching = Matching(kernels)
    alike = [matching.alike(entry.name, entry.grid, entry.block) for entry in program.launch_counts]
    if kernels and program.launch_counts and not any(alike):
        longest = sorted(program.launch_counts, key=lambda entry: -(entry.total_ns or 0))
        ran, held = (
            some(
                f"`{cut_name(name, SENTENCE_NAME_WIDTH)}`"
                for name in dict.fromkeys(plain_name(one.name) for one in every)
            )
            for every in (longest, kernels)
        )
        raise InputError(
            f"no kernel of the timeline `{source}` is in the reports: it has {ran}; they have {held}",
            "give a timeline and a report of the same program, run with the same arguments",
        )
    total_ns = program.kernels_ns
    lacking: Counter[str] = Counter()
    for entry, indices in zip(program.launch_counts, alike, strict=True):
        if not indices:
            lacking[entry.name] += entry.total_ns or 0
    missing: tuple[Missing, ...] = ()
    if lacking and total_ns:
        names, times = zip(*lacking.most_common(), strict=True)
        missing = (Missing(source, names, tuple(time_ns / total_ns for time_ns in times)),)
    notes = [(source, note) for note in timeline.notes]
    absent = len(kernels) - len({index for indices in alike for index in indices})
    if absent:
        notes.append((source, f"it has no launch of {count(absent, 'profile')} of the {len(kernels)}"))
    gpus = {kernel.gpu for kernel in kernels if kernel.gpu}
    others = [gpu for gpu in sorted(gpus) if program.gpu and name_key(gpu) != name_key(program.gpu)]
    notes += [
        (source, f"it was recorded on {program.gpu}, the report on {gpu}: compare their times with care")
        for gpu in others
    ]
    return replace(analyzed, missing=(*analyzed.missing, *missing), notes=(*analyzed.notes, *notes))


def analyze_store(
    place: str | Path, basis: Basis | None = None, *, digits: str = "", keep: bool = False, may_sum: bool = False
) -> Analyzed:
    """Analyze the reports of a store as `analyze_inputs` does with files.

    Args:
        place: A store that `rooflens ingest` wrote: a folder or an address.
        basis: What verdicts are based on; the shipped thresholds by default.
        digits: First digits of the digests of the wanted reports; empty for all reports.
        keep: Write verdicts and findings to the store, unless a timeline is given; otherwise nothing is written.
        may_sum: Sum up a store with more than `MOST_HELD` kernels, instead of holding each of them.

    Raises:
        InputError: It is not a store, or has no report, or none with such a digest.
    """
    from rooflens.model.store.dataset import Store  # noqa: PLC0415 - pyarrow: only where there is a store

    basis = basis or Basis()
    analyzer = _Analyzer(basis)
    stored = _Stored(Store.existing(place), analyzer, digits, is_kept=keep and not analyzer.has_other_inputs)
    with _without_collector():
        found = stored.with_store(stored.sums() if may_sum and stored.is_large else stored.analyses())
    if digits and not found.reports and not found.failures:
        raise no_report(str(place), digits)
    return _held_against(found, basis.timeline) if basis.timeline else found


class _Stored:
    """The reports of a store with their analyses: the stored ones where these depend on the same as today's."""

    def __init__(self, store: Store, analyzer: _Analyzer, digits: str, *, is_kept: bool) -> None:
        self.store = store
        self.analyzer = analyzer
        self._is_kept = is_kept
        self._runs, self._failures = store.runs(digits)
        self._not_kept: InputError | None = None
        self._report_count = self._anew_count = self._kept_count = 0

    def with_store(self, analyzed: Analyzed) -> Analyzed:
        """Add what became of the store to the result of its analysis."""
        notes = []
        if self._anew_count and not self.analyzer.has_other_inputs:
            which = f"{self._anew_count:,} of {count(self._report_count, 'report')}"
            why = "its verdicts are of another version, or of other thresholds, calibrations or data"
            notes = [(str(self.store), f"judged {which} anew: {why}")]
        return replace(
            analyzed,
            failures=(*self._failures, *analyzed.failures),
            ignored=tuple(Path(self.store.text_of("runs", name)) for name in self.store.foreign()),
            notes=(*analyzed.notes, *notes),
            not_kept=self._not_kept,
            kept_count=self._kept_count,
        )

    @property
    def is_large(self) -> bool:
        """Whether there are too many kernels to hold each."""
        return sum(one.run.kernel_count for one in self._runs) > MOST_HELD

    def analyses(self) -> Analyzed:
        """Analyze the reports in the order of their sources, some thousand kernels at a time."""
        from rooflens.model.store.dataset import together  # noqa: PLC0415 - pyarrow

        batches = map(self.store.read, together(self._runs))
        return self.analyzer.begun.joined(one for batch in batches for one in self._analyzed(batch))

    def sums(self) -> Analyzed:
        """Sum up the verdicts of all reports."""
        from rooflens.model.store.dataset import SUMMED_AT_ONCE, together  # noqa: PLC0415 - pyarrow
        from rooflens.model.store.sums import COLUMNS, Sums  # noqa: PLC0415 - as above
        from rooflens.model.store.tables import verdict_table  # noqa: PLC0415 - as above

        sums = Sums()
        for group in together(self._runs, SUMMED_AT_ONCE):
            programs = self.store.programs(group, self._failures)
            inputs = {one.run.digest: self.analyzer.inputs_digest(one, programs.get(one.run.digest)) for one in group}
            found, stale = self.store.verdicts(inputs, COLUMNS)
            for rows in found:
                sums.add(rows)
            self._report_count += len(group) - len(stale)
            for others in together([one for one in group if one.run.digest in stale]):
                for analyzed in self._analyzed(self.store.read(others)):
                    self._failures += analyzed.failures
                    sums.add(verdict_table(analyzed.analyses))
        kernel_count = sum(one.run.kernel_count for one in self._runs)
        return replace(self.analyzer.begun, summed=Summed(sums, self._report_count, kernel_count))

    def _analyzed(self, batch: Iterable[StoredReport | tuple[str, InputError]]) -> list[Analyzed]:
        """Analyze what was read, except for stored analyses, and keep what is new."""
        from rooflens.model.store.dataset import StoredReport  # noqa: PLC0415 - pyarrow

        each = [*batch]
        reports = [one for one in each if isinstance(one, StoredReport)]
        self._failures += [one for one in each if not isinstance(one, StoredReport)]
        analyzer = self.analyzer
        inputs = {one.run.digest: analyzer.inputs_digest(one, one.unprofiled) for one in reports}
        known = {} if analyzer.has_other_inputs else self.store.analyses(reports, inputs)
        found = [
            analyzer.analyze(one.run, one.kernels, analyzer.basis.program or one.unprofiled, known.get(one.run.digest))
            for one in reports
        ]
        anew = [report for one in found for report in one.reports if report.run.digest not in known]
        self._report_count += len(reports)
        self._anew_count += sum(report.run.digest in self.store.judged for report in anew)
        if self._is_kept and anew and self._not_kept is None:
            try:
                self.store.keep(anew, inputs)
                self._kept_count += len(anew)
            except Exception as error:  # noqa: BLE001 - the answer is valid without the store
                self._not_kept = error if isinstance(error, InputError) else bug_error(error)
        return found


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep the garbage collector off: records have no cycles, and it would look for them every 700 records."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Analyzer:
    """Analyzes reports one by one; an error in one report or kernel does not affect the others."""

    def __init__(self, basis: Basis, on_done: Callable[[float], None] = lambda _: None) -> None:
        self._on_done = on_done
        self.basis = basis
        folder, unread = calibrations_folder(), []
        self._calibrations = load_calibrations(folder, lambda error: unread.append((str(folder), error)))
        self._known = hashlib.sha256(repr((__version__, basis.limits.digest, self._calibrations)).encode())
        self.begun = Analyzed((), basis.limits, warnings=tuple(unread))

    @property
    def has_other_inputs(self) -> bool:
        """Whether verdicts depend on what no store has: a timeline or sources given, or NVIDIA's rules left out."""
        basis = self.basis
        return basis.program is not None or basis.without_nvidia or basis.sources is not None

    def inputs_digest(self, report: StoredReport | StoredRun, unprofiled: Unprofiled | None) -> str:
        """Return a short digest of what the verdicts of a stored report depend on besides it and the model."""
        known = self._known.copy()
        known.update(repr((report.run.digest, report.stored_unix_s, unprofiled)).encode())
        return known.hexdigest()[:12]

    def analyze_file(self, run: Run, kernels: Sequence[Kernel]) -> Analyzed:
        """Analyze a report with the run without the profiler beside it, if there is one."""
        if (program := self.basis.program) is not None:
            return self.analyze(run, kernels, program)
        report = Path(run.source)
        if not os.path.lexists(sidecar(report)):
            return self.analyze(run, kernels, None)
        from rooflens.ingest.reports.unprofiled import read_unprofiled  # noqa: PLC0415 - few reports have one

        try:
            return self.analyze(run, kernels, read_unprofiled(report))
        except InputError as error:
            return replace(self.analyze(run, kernels, None), warnings=((run.source, error),))

    def analyze(
        self,
        run: Run,
        kernels: Sequence[Kernel],
        unprofiled: Unprofiled | None,
        earlier: tuple[Analysis, ...] | None = None,
    ) -> Analyzed:
        """Analyze a report, unless its analyses are known, and name the kernels that it should have but lacks."""
        if earlier is not None and unprofiled is None:
            return Analyzed((AnalyzedReport(run, earlier),), self.basis.limits)
        if self.basis.without_nvidia:  # before any of them is used
            kernels = [replace(kernel, rules=()) for kernel in kernels]
        notes: tuple[str, ...] = ()
        try:
            if self.basis.sources is not None:
                kernels, notes = self.basis.sources.added_to_all(kernels)
            is_all = self.basis.timeline is not None
            outsides, missing = _outsides(run, kernels, unprofiled, self._calibrations, is_all=is_all)
            analyses: list[Analysis] = []
            for at in range(0, 0 if earlier is not None else len(kernels), _TOGETHER):
                together = slice(at, at + _TOGETHER)
                analyses += self._analyses(kernels[together], outsides[together])
                self._on_done(len(kernels[together]) / len(kernels))
        except Exception as error:  # noqa: BLE001 - a bug that one report meets must not cost the others
            return Analyzed((), self.basis.limits, ((run.source, bug_error(error)),))
        told = (
            with_fills_note(with_siblings(analyses, self.basis.limits), run.command_line)
            if earlier is None
            else earlier
        )
        report = AnalyzedReport(run, told, unprofiled)
        return Analyzed(
            (report,),
            self.basis.limits,
            missing=(Missing(run.source, missing),) if missing else (),
            notes=tuple((run.source, note) for note in notes),
        )

    def _analyses(self, kernels: Sequence[Kernel], outsides: Sequence[Outside]) -> list[Analysis]:
        """Analyze kernels; if a bug in rooflens affects one, it becomes a failed kernel that says so."""
        try:
            return analyze_all(kernels, self.basis.limits, outsides)
        except Exception as error:  # noqa: BLE001 - a bug that one kernel meets must not cost the others
            if len(kernels) > 1:
                alone = zip(kernels, outsides, strict=True)
                return [analysis for one, outside in alone for analysis in self._analyses([one], [outside])]
            failed = failed_kernel(kernels[0], bug_reason(error))
            return [analyze(failed, self.basis.limits, Outside(key=outsides[0].key))]


def _outsides(
    run: Run,
    kernels: Sequence[Kernel],
    unprofiled: Unprofiled | None,
    calibrations: Sequence[MeasuredRates],
    *,
    is_all: bool,
) -> tuple[list[Outside], tuple[str, ...]]:
    """Return what the program says about each kernel, and the names of kernels that ran but are not in the report.

    Args:
        run: The report.
        kernels: Its kernels.
        unprofiled: Its program without the profiler.
        calibrations: The measured rates of GPUs.
        is_all: The run without the profiler is a timeline, so a kernel that it lacks did not run.
    """
    total_ns = sum(kernel.duration_ns or 0.0 for kernel in kernels)
    slowdown = unprofiled.slowdown(total_ns, len(kernels)) if unprofiled else None
    placed: list[tuple[float, InProgram | None]] = [(1.0, None)] * len(kernels)
    lacking: list[LaunchCount] = []
    if unprofiled:
        from rooflens.model.program.matching import place  # noqa: PLC0415 - few reports have an un-profiled run

        placed, lacking = place(kernels, unprofiled)
    fewest = 0 if is_all and unprofiled and unprofiled.launches is not None else 1
    names = [kernel.name for kernel in kernels]
    compulsory_bytes = _compulsory_bytes(run, names)
    outsides, named, short = [], Keys(), short_names(names)
    for kernel, (ran, in_program) in zip(kernels, placed, strict=True):
        launches = max(fewest if not ran else 1, round(ran))
        outsides.append(
            Outside(
                in_program=in_program,
                command_line=run.command_line,
                slowdown=slowdown or (ratio(kernel.duration_ns, in_program.time_ns) if in_program else None),
                launches=launches,
                attainable=find_attainable(kernel.gpu, kernel.counters.get("sm_clock_hz"), calibrations),
                compulsory_bytes=compulsory_bytes if launches == 1 else None,
                key=named.next(launch_id(kernel)),
                short_name=short[kernel.name],
            )
        )
    if is_all or not lacking:
        return outsides, ()
    launches_of: Counter[str] = Counter()
    for entry in lacking:
        launches_of[entry.name] += entry.count
    return outsides, _left_out(run, [name for name, _ in launches_of.most_common()])


def _compulsory_bytes(run: Run, names: Sequence[str]) -> float | None:
    """Return the compulsory bytes of a bundled workload with one launch per iteration; None for others."""
    ran = recognize(run.command_line)
    if ran is None or len(set(names)) != 1 or len(names) not in {1, ran.iterations}:
        return None
    return ran.case.byte_count(ran.parameters)


def _left_out(run: Run, missing: Sequence[str]) -> tuple[str, ...]:
    """Return the missing kernels of a report that should have all, except those that wait for ranks."""
    from rooflens.collect.ranks import NO_COMMUNICATION  # noqa: PLC0415 - beside an un-profiled run
    from rooflens.model.predict.measured import read_coverage  # noqa: PLC0415 - as above

    coverage = read_coverage(run)
    chosen = re.search(r"--kernel-name|--kernel-id[ =]::[^:]", (run.command_line or "").replace(NO_COMMUNICATION, ""))
    if coverage.once_each and not coverage.in_range and chosen is None:
        return tuple(name for name in missing if not waits_for_ranks(name))
    return ()


def read_timeline(file: str | os.PathLike[str], on_read: Callable[[float], None] = lambda _: None) -> AnalyzedTimeline:
    """Read a timeline and summarize it.

    Args:
        file: The timeline.
        on_read: Called with parts of the work as they are done, as far as that is known; they add up to 1 at most.

    Raises:
        InputError: It cannot be read, is cut or not a timeline, or has no kernels.
        EnvironmentMissingError: It is a report of Nsight Systems, and nsys is not installed.
    """
    from rooflens.ingest.timelines.read import opened_timeline  # noqa: PLC0415 - sqlite3: only where there is one
    from rooflens.model.program.measure import measure  # noqa: PLC0415 - the same

    with opened_timeline(file, on_read) as timeline:
        return AnalyzedTimeline(timeline.source, measure(timeline).unprofiled, tuple(timeline.notes))


def read_thresholds(file: Path | None) -> Thresholds:
    """Return the shipped thresholds, with the changes in a TOML file.

    Raises:
        InputError: The file cannot be read, or does not contain thresholds.
    """
    if file is None:
        return default_thresholds()
    return override_thresholds(read_text(file, "`rooflens/model/verdict/thresholds.toml` is one"), str(file))
