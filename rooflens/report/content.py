"""Analyses as the page counts them: launches in order of time, summed up by kernel, with shares and what can be won.

Up to `MAX_LAUNCHES` records each is drawn. Of more, the median launch of each kernel is drawn for all of its launches;
kernels beyond `MAX_KERNELS` are counted everywhere and drawn as one `Other`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.model.compare.versions import detected_ladders, report_labels
from rooflens.model.ranking import RANKED_SHOWN, failed_lead, in_rank, opportunities, worth_a_line
from rooflens.model.records import ratio
from rooflens.model.roofline.work import main_work
from rooflens.model.same_work import same_work
from rooflens.model.summary import ranked_launches, rest_of, roofs_by_gpu, summarize, total_ns_of, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rooflens.errors import InputError
    from rooflens.model.compare.ladder import Ladder
    from rooflens.model.predict.measured import Checked
    from rooflens.model.records import Analysis, AnalyzedReport, Run
    from rooflens.model.roofline.roofs import RoofSet
    from rooflens.model.summary import KernelSummary, Launch, Other
    from rooflens.model.verdict.thresholds import Thresholds


MAX_LAUNCHES = 400
"""Records drawn one by one: 500 take twice as long to open as `MAX_KERNELS` kernels (`benchmarks/report.py`)."""

MAX_KERNELS = 200
"""Kernels drawn where launches are not drawn one by one: those with most GPU time."""

FIRST_KEPT = 10
"""Kernels with most recoverable time are always drawn: the first screen names the first of them."""

MAX_CARDS = 80
"""Cards written: of the median launch of each kernel first, then of the longest of each verdict and grid."""

MAX_FAILED = 20
"""Failed launches listed where launches are not drawn one by one; all are counted."""


class Replaced(Struct, frozen=True):
    """A kernel, and its version to go on from."""

    kernel: KernelSummary
    by: KernelSummary


class Content(Struct, frozen=True):
    """Everything a section of the page may read.

    Attributes:
        limits: The thresholds the verdicts were reached with.
        reports: Every report as it was given, its failed kernels too.
        unprofiled: Those of them whose programs ran without the profiler, too.
        analyses: Every record, failed ones too.
        failed_count: How many launches failed while they were profiled.
        launches: What is drawn, in order of falling time, failed ones last: `timed`, then `failed`.
        carded: Those that get a card: few, and different ones.
        counted: Launches that did not fail, drawn or not: the ones that sums are made of.
        kernels: Every kernel that did not fail, drawn or not, in order of falling time.
        failed_kernels: Those whose launches failed.
        listed: Those that are drawn, longest first; then those that failed, whose `key` begins with `f`.
        earlier: Kernels that another version replaces, by key: the fastest version of their ladder, or the newest of a
            later report that holds them again, doing the same work.
        rows: What to do, in order, each kernel as its newest version: kernels that one move is for are one row.
        first: The first few of these rows, as far as they are worth a line.
        runs: Provenance of the reports.
        synthetic: Any report or kernel of the page was written by a generator.
        unread: Path and error of each report that could not be read, or of a file of a store that held some.
        unread_count: Reports that could not be read, as far as that is known.
        gpus: Names of the GPUs, the one with the longest launch first.
        aggregated: True where a launch that is drawn stands for all of its kernel.
        other: The kernels that are not drawn; None if all are.
        predictions: The reports and kernels with a prediction, each beside what was measured.
        report_labels: What sets each report's name apart, by digest, in the order of their versions.
        ladder: All reports as versions of a program; None if they are not.
        ladders: Every ladder that they hold, that one included.
        other_ladders: Those of them that are not of all reports.
        ladders_lead: Each report is in one of the other ladders: they answer for the page, and stand first.
        lines: What joins the versions of a kernel: a name for each digest and kernel name of the ladder.
        climbers: What the versions of the kernel that the ladder follows are called, likewise; the fastest first.
        noun: What the page counts, wherever it counts results: launches where kernels ran more than once.
        is_judged: False where of no kernel it is known what limits it.
        has_modules: A timeline says of a launch which module of its program it is of.
        roofs: The roofs of each GPU, over all its launches that are drawn: every plane of the page has these.
    """

    title: str
    reports: tuple[AnalyzedReport, ...]
    unprofiled: tuple[AnalyzedReport, ...]
    limits: Thresholds
    analyses: tuple[Analysis, ...]
    failed_count: int
    launches: tuple[Launch, ...]
    timed: tuple[Launch, ...]
    failed: tuple[Launch, ...]
    carded: tuple[Launch, ...]
    counted: tuple[Launch, ...]
    kernels: tuple[KernelSummary, ...]
    failed_kernels: tuple[KernelSummary, ...]
    listed: tuple[KernelSummary, ...]
    earlier: Mapping[str, Replaced]
    rows: tuple[KernelSummary, ...]
    first: tuple[KernelSummary, ...]
    total_ns: float
    runs: tuple[Run, ...]
    synthetic: bool
    unread: tuple[tuple[str, InputError], ...] = ()
    unread_count: int = 0
    gpus: tuple[str, ...] = ()
    aggregated: bool = False
    other: Other | None = None
    predictions: tuple[Checked, ...] = ()
    report_labels: Mapping[str, str] = field(default_factory=dict)
    ladder: Ladder | None = None
    ladders: tuple[Ladder, ...] = ()
    other_ladders: tuple[Ladder, ...] = ()
    ladders_lead: bool = False
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)
    climbers: Mapping[tuple[str, str], str] = field(default_factory=dict)
    noun: str = "launch"
    is_judged: bool = True
    has_modules: bool = False
    roofs: Mapping[str, RoofSet] = field(default_factory=dict)

    @property
    def is_of_one(self) -> bool:
        """The page has a single kernel, failed or not: it shows its card instead of a table of kernels."""
        return len(self.listed) == 1 and self.other is None

    @property
    def only(self) -> KernelSummary | None:
        """The only kernel, which the first screen is about; None of several, and where one failed that matters more."""
        is_one = len(self.kernels) == 1 and self.ladder is None
        return self.kernels[0] if is_one and not failed_lead([*self.kernels, *self.failed_kernels]) else None


def build_content(
    reports: Sequence[AnalyzedReport],
    title: str,
    limits: Thresholds,
    unread: Sequence[tuple[str, InputError]] = (),
    predictions: Sequence[Checked] = (),
) -> Content:
    """Derive all rows of the page from the records."""
    analyses = tuple(analysis for report in reports for analysis in report.analyses)
    runs = tuple(report.run for report in reports)
    total_ns = total_ns_of(analyses)
    ladders = detected_ladders(reports)
    climbed = _of_all(ladders, len(reports))
    others = tuple(ladder for ladder in ladders if ladder is not climbed)
    summaries = tuple(map(_shares_of_reports(reports), summarize(analyses))) if climbed else summarize(analyses)
    kernels = tuple(kernel for kernel in summaries if not kernel.is_failed)
    counted = tuple(launch for kernel in kernels for launch in kernel.launches)
    launches = ranked_launches(summaries, total_ns)
    is_crowd = len(analyses) > MAX_LAUNCHES
    drawn = _drawn_launches(kernels, launches, total_ns) if is_crowd else launches
    groups = {launch.group_key for launch in drawn}
    listed = tuple(kernel for kernel in summaries if kernel.key in groups)
    well = tuple(launch for launch in drawn if not launch.failed)
    cards = _carded(listed, well)
    labels = report_labels(runs)
    beaten = _beaten(kernels, ladders) if ladders else {}
    unbeaten = [kernel for kernel in kernels if kernel.key not in beaten]
    again = _earlier(unbeaten, runs, list(labels)) if len(runs) > 1 else {}
    chosen = {key: again.get(best.key, best) for key, best in beaten.items()} | again
    earlier = {kernel.key: Replaced(kernel, chosen[kernel.key]) for kernel in kernels if kernel.key in chosen}
    rows = opportunities([kernel for kernel in kernels if kernel.key not in earlier], opening=True)
    return Content(
        title=title,
        reports=tuple(reports),
        unprofiled=tuple(report for report in reports if report.unprofiled),
        limits=limits,
        analyses=analyses,
        failed_count=sum(launch.failed for launch in launches),
        launches=drawn,
        timed=well,
        failed=tuple(launch for launch in drawn if launch.failed),
        carded=tuple(launch for launch in drawn if launch.key in cards),
        counted=counted,
        kernels=kernels,
        failed_kernels=summaries[len(kernels) :],
        listed=listed,
        earlier=earlier,
        rows=tuple(rows),
        first=tuple(worth_a_line(rows)[:RANKED_SHOWN]),
        total_ns=total_ns,
        runs=runs,
        synthetic=any(run.synthetic for run in runs) or any(a.kernel.synthetic for a in analyses),
        unread=tuple(unread),
        unread_count=sum(1 if error.report_count is None else error.report_count for _, error in unread),
        gpus=tuple(dict.fromkeys(launch.gpu for launch in launches)),
        aggregated=is_crowd,
        other=rest_of(kernels, drawn, total_ns),
        predictions=tuple(predictions),
        report_labels=labels,
        ladder=climbed,
        ladders=ladders,
        other_ladders=others,
        ladders_lead=climbed is None and _answer_for(others, runs),
        lines=_lines_of_ladder(climbed) if climbed else {},
        climbers=_climbers(climbed) if climbed else {},
        noun="kernel" if len(kernels) == sum(kernel.launch_count for kernel in kernels) else "launch",
        is_judged=not counted or any(launch.shown_class != "unknown" for launch in counted),
        roofs=roofs_by_gpu(one.analysis for one in well),
        has_modules=any(place is not None and place.module for place in (one.analysis.in_program for one in drawn)),
    )


def _carded(kernels: Sequence[KernelSummary], launches: Sequence[Launch]) -> set[str]:
    """Choose the launches that get a card, by their keys: cards of one kernel, verdict and grid would look alike."""
    first = dict.fromkeys(kernel.representative.key for kernel in (*in_rank(kernels)[:FIRST_KEPT], *kernels))
    alike: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
    for launch in launches:
        alike[launch.group_key, launch.shown_class, launch.analysis.kernel.grid].append(launch.key)
    unlike = [keys[0] for keys in alike.values() if first.keys().isdisjoint(keys)]
    return {*[*first, *unlike][:MAX_CARDS]}


def _beaten(kernels: Sequence[KernelSummary], ladders: Sequence[Ladder]) -> dict[str, KernelSummary]:
    """Map the key of each kernel that a ladder compares to the one of the fastest version, which beats it.

    Of versions of one name and one time the newest is the one to go on from, as without a ladder.
    """
    groups = {(group.analysis.kernel.digest, group.name): group for group in kernels}
    found = {}
    for ladder in ladders:
        at = next((at for at, rung in enumerate(ladder.rungs) if rung.is_fastest), None)
        for one in (ladder,) if ladder.followed else ladder.kernels:
            analysis = one.rungs[at].analysis if at is not None else None
            best = groups.get((analysis.kernel.digest, analysis.kernel.name)) if analysis else None
            names = ((rung.side.digests, rung.analysis.kernel.name) for rung in one.versions if rung.analysis)
            keys = ((digest, name) for digests, name in names for digest in digests)
            for own in filter(None, map(groups.get, keys)):
                if best and (own.name != best.name or _launch_ns(own) > _launch_ns(best)):
                    found[own.key] = best
    return found


def _launch_ns(group: KernelSummary) -> float:
    return group.analysis.kernel.duration_ns or 0.0


def _earlier(
    kernels: Sequence[KernelSummary], runs: Sequence[Run], in_order: Sequence[str]
) -> dict[str, KernelSummary]:
    """Map the key of each kernel that a later report holds again, doing the same work, to its newest version.

    Kernels whose FLOPs are unknown or none stay apart: nothing tells that they do the same. So do those of reports that
    do not say when they were recorded: none of them is known to be the later one.

    Args:
        kernels: All that did not fail.
        runs: The reports.
        in_order: Their digests, in the order of their versions.
    """
    dated = {run.digest for run in runs if run.created_unix_s}
    families: defaultdict[tuple[str, str], list[KernelSummary]] = defaultdict(list)
    for digest in in_order:
        for group in kernels:
            if group.analysis.kernel.digest == digest and digest in dated:
                families[group.gpu, group.name].append(group)
    return {
        group.key: own[-1]
        for own in families.values()
        for group in own[:-1]
        if all(main_work(one.analysis).total for one in (group, own[-1]))
        and same_work(group.analysis, own[-1].analysis).same
    }


def _shares_of_reports(reports: Sequence[AnalyzedReport]) -> Callable[[KernelSummary], KernelSummary]:
    """Make shares those of a kernel's own report: nothing is added up over versions."""
    totals = {one.run.digest: total_ns_of(one.analyses) for one in reports}

    def shared(kernel: KernelSummary) -> KernelSummary:
        whole_ns = totals[kernel.analysis.kernel.digest]
        launches = tuple(replace(one, time_share=ratio(one.duration_ns, whole_ns)) for one in kernel.launches)
        representative = launches[kernel.launches.index(kernel.representative)]
        share = ratio(kernel.duration_ns, whole_ns)
        return replace(kernel, launches=launches, representative=representative, time_share=share)

    return shared


def _of_all(ladders: Sequence[Ladder], reports: int) -> Ladder | None:
    """Read all reports as versions of a program; None if they are not, or some have no kernel."""
    if reports == 1 or len(ladders) != 1:
        return None
    held = sum(len(rung.side.reports) for rung in ladders[0].rungs)
    return ladders[0] if held == reports else None


def _answer_for(ladders: Sequence[Ladder], runs: Iterable[Run]) -> bool:
    """Return whether each report is in one of some ladders."""
    held = {digest for ladder in ladders for rung in ladder.rungs for digest in rung.side.digests}
    return bool(held) and all(run.digest in held for run in runs)


def _lines_of_ladder(ladder: Ladder) -> dict[tuple[str, str], str]:
    held = ((one.name, rung.side.runs[0].digest, rung.analysis) for one in ladder.kernels for rung in one.present)
    return {(digest, analysis.kernel.name): name for name, digest, analysis in held if analysis}


def _climbers(ladder: Ladder) -> dict[tuple[str, str], str]:
    ordered = sorted(ladder.rungs if ladder.followed else (), key=lambda rung: not rung.is_fastest)
    names = ((rung.side.digests, rung.analysis.kernel.name, rung.label) for rung in ordered if rung.analysis)
    return {(digest, name): label for digests, name, label in names for digest in digests}


def _drawn_launches(
    kernels: Sequence[KernelSummary], launches: Sequence[Launch], total_ns: float
) -> tuple[Launch, ...]:
    """Choose kernels, each as one mark: those with most time at stake, then those that take most time."""
    first = in_rank(kernels)[:FIRST_KEPT]
    kept = list(dict.fromkeys(kernel.key for kernel in (*first, *kernels)))[:MAX_KERNELS]
    wholes = [replace(kernel, launches=(whole(kernel),)) for kernel in kernels if kernel.key in kept]
    failed = [launch for launch in launches if launch.failed]
    return (*ranked_launches(wholes, total_ns), *failed[:MAX_FAILED])
