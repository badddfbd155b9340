"""What a report comes to: facts, counts, shares of time, and what to fix first; no HTML."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from rooflens import format as fmt
from rooflens.model.failed import ALL_NAN
from rooflens.model.records import Analysis, Confidence, Run, timed
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.roofline.roofs import BAND_FROM_RATIO
from rooflens.model.summary import (
    KernelSummary,
    Launch,
    cautions,
    class_times_ns,
    identity,
    summarize,
    time_part,
)
from rooflens.model.verdict.thresholds import Thresholds, default_thresholds
from rooflens.model.verdict_classes import ShownClass
from rooflens.report.words.findings import least_sure, sureness
from rooflens.report.words.gain_and_limit import limit_words, reason_words, time_figure
from rooflens.report.words.labels import BOUND_LABELS, flag_label, flag_name
from rooflens.report.words.verdict import unmeasured_words

if TYPE_CHECKING:  # a table takes words from here, and needs no page
    from rooflens.report.content import Content

MOVE_WORDS = 30

_CLAUSE = re.compile(r"((?:[;:,]| \() ?)")

GPUS_NAMED = 3

KERNELS_NAMED = 3

NAME_WIDTH = 40

LIMITED_FROM_SHARE = 0.01
"""Less of the GPU time than this at a hardware limit is not worth a line."""

LOW_CLOCK = 0.5
"""SM clocks below this part of boost are a caveat: many verdicts would be others at the full clock."""

BUSY_FROM_SHARE = 0.05
"""A unit that is less busy than this says nothing of a kernel but that it waits."""

FEW_SHARE = 0.05
"""Launches with less of the GPU time than this are short ones."""

CLOCK_WORDS = {
    "base": "locked to base by ncu",
    "boost": "locked to boost by ncu",
    "force-boost": "locked to boost by ncu",
    "none": "as found",
}


class Segment(Struct, frozen=True):
    """One verdict class in the bar of GPU time, an open one apart from the sure one."""

    bound: ShownClass
    time_ns: float
    share: float
    launches: int


class ReportTime(Struct, frozen=True):
    """The GPU time of a report."""

    label: str
    time_ns: float


class Caveat(Struct, frozen=True):
    """A caveat about verdicts, with the number of launches it concerns.

    Attributes:
        name: The same in a few words.
        about: The kernels and the reports that it is about, the first few by name; empty if it is about all.
    """

    name: str
    meaning: str
    launches: int
    about: str = ""


def synthetic_words(runs: Sequence[Run]) -> str:
    """Say of a page with synthetic data which part of it was written by a generator."""
    amount, synthetic = len(runs), sum(run.synthetic for run in runs)
    if not synthetic:
        subject = "Some of these kernels were"
    elif amount == 1:
        subject = "This report was"
    else:
        subject = f"All {amount} reports were" if synthetic == amount else f"{synthetic} of {amount} reports were"
    whole = amount > 0 and synthetic == amount
    worth = "No number below is a measurement." if whole else "Numbers that include it are not measurements."
    return f"{subject} written by a generator, not recorded on a GPU. {worth}"


def segments(launches: Sequence[Launch]) -> tuple[Segment, ...]:
    """Sum GPU time up by verdict, the most first."""
    times_ns = class_times_ns(launches)
    total_ns = sum(times_ns.values())
    return tuple(
        Segment(shown, ns, ns / total_ns, sum(one.analysis.launches for one in launches if one.shown_class == shown))
        for shown, ns in sorted(times_ns.items(), key=lambda item: -item[1])
    )


def _report_times(content: Content) -> tuple[ReportTime, ...]:
    """Part the GPU time by report where all are versions: no program took the time of all its versions.

    Returns:
        In the order of recording; none where a report shares no kernel of its GPU with another one.
    """
    launches: defaultdict[str, list[Launch]] = defaultdict(list)
    homes: defaultdict[tuple[str | None, str], set[str]] = defaultdict(set)
    for launch in content.counted:
        kernel = launch.analysis.kernel
        launches[kernel.digest].append(launch)
        homes[kernel.gpu, launch.name].add(kernel.digest)
    shared = set().union(*(digests for digests in homes.values() if len(digests) > 1))
    if not shared or launches.keys() - shared:
        return ()
    times = (
        ReportTime(label, sum(launch.duration_ns or 0.0 for launch in launches[digest]))
        for digest, label in content.report_labels.items()
    )
    return tuple(one for one in times if one.time_ns)


def report_times(content: Content) -> dict[str, ReportTime]:
    """Map each kernel's key to the time of its own report if all reports are versions; else empty.

    A share of the time of all versions together would say nothing of any of them.
    """
    times = {one.label: one for one in _report_times(content)}
    found = {}
    for group in content.kernels:
        digests = {launch.analysis.kernel.digest for launch in group.launches}
        label = content.report_labels.get(next(iter(digests))) if len(digests) == 1 else None
        if label in times:
            found[group.key] = times[label]
    return found


def figure_of(group: KernelSummary) -> str:
    """Say the time of all launches and what the best move leaves of it, or else what lies above the floor."""
    gain = group.analysis.verdict.gain
    return time_figure(gain, group.duration_ns, several_launches(group), above_floor_ns(group))


def several_launches(group: KernelSummary) -> int:
    """Count the launches that a time is the sum of; 1 where each kernel of a row ran once, as its name says so."""
    return group.launch_count if group.launch_count > max(1, len(group.members)) else 1


def above_floor_ns(group: KernelSummary) -> float | None:
    """Return what of the time of a kernel lies above its floor, by which it is ranked where no gain is known."""
    is_ranked_so = group.analysis.verdict.gain is None and group.analysis.role != "fill"
    return group.winnable_ns if is_ranked_so else None


def group_sureness(group: KernelSummary) -> Confidence | None:
    """Return how sure verdict and first move of a kernel are, of several the least; None if nothing is judged."""
    if group.representative.shown_class == "unknown":
        return None
    return least_sure(
        sureness(verdict, one.analysis.findings, next((move.finding for move in verdict.moves), None))
        for one in group.members or (group,)
        for verdict in (one.analysis.verdict,)
    )


def brief_move(move: str, most_words: int = MOVE_WORDS) -> str:
    """Shorten a move to what to do, with as many of its numbers as leave it readable at a glance; commands stay whole.

    What explains it is left out from the end, by clauses.
    """
    said, command = move.partition("`")[0], "`" in move
    if command or len(said.split()) <= most_words:
        return move
    clauses = _CLAUSE.split(said)
    while len(clauses) > 1 and len("".join(clauses).split()) > most_words:
        clauses = clauses[:-2]
    return " ".join("".join(clauses).split()[:most_words])


def limiter(analysis: Analysis) -> str:
    """Name the verdict with the resource nearest its peak; where none is busy at all, with why."""
    verdict = analysis.verdict
    label = "near two limits" if verdict.bound == "balanced" else BOUND_LABELS[verdict.shown_class]
    label += f" ({unmeasured_words(verdict)})" if verdict.or_bound else ""
    if verdict.bottleneck is None:
        return label
    is_idle = verdict.bound in {"latency", "overhead"} and verdict.bottleneck.share < BUSY_FROM_SHARE
    reason = reason_words(analysis) if is_idle else ""
    if reason:
        return f"{label}: {reason}"
    is_said = verdict.bound in {"memory", "compute", "balanced"} or verdict.bottleneck.resource is None
    near = "" if is_said else "busiest unit "
    roof = ", at the roof" if verdict.at_roof else ""
    return f"{label}: {near}{limit_words(analysis)}{roof}"


def at_limit(content: Content) -> str:
    """Say how much of the GPU time runs at a hardware limit, and by which kernels; empty if hardly any."""
    limited = [launch for launch in content.counted if launch.analysis.verdict.at_roof]
    share = time_part(limited)
    if share is None or share < LIMITED_FROM_SHARE:
        return ""
    kernels = summarize([launch.analysis for launch in limited])
    named = [
        f"{fmt.cut_middle(kernel.shown, NAME_WIDTH)}{_of_report(content, longest)} ({limit_words(longest.analysis)})"
        for kernel in kernels[:KERNELS_NAMED]
        for longest in kernel.launches[:1]
    ]
    return f"{fmt.percent(share)} of GPU time: a unit is saturated: {_and_more(named, len(kernels))}."


def _of_report(content: Content, launch: Launch) -> str:
    """Name the report of a launch after the name of its kernel; nothing if the page has one report."""
    label = content.report_labels.get(launch.analysis.kernel.digest, "")
    return f", {label}" if label and len(content.runs) > 1 else ""


def cannot_tell(reports: int, kernels: int) -> str:
    """Say of a page where no kernel has what a verdict needs that it cannot tell."""
    report = "This report has" if reports == 1 else f"These {reports} reports have"
    what = "this kernel" if kernels == 1 else "these kernels"
    return f"{report} no throughput counters, so what limits {what} cannot be told."


def origin(content: Content) -> list[str]:
    """List GPU and date, then what was measured: what a reader must know before the first number; charts say the clock.

    A page of one launch says its time in its headline; one of several reports has their dates and launches in its list.
    """
    dates = sorted(fmt.date(run.created_unix_s) for run in content.runs if run.created_unix_s)
    gpus = content.gpus[0] if len(content.gpus) == 1 else fmt.count(len(content.gpus), "GPU") if content.gpus else ""
    when = dates[0] if dates and len(content.runs) == 1 else ""
    alone = len(content.kernels) == 1 and len(content.analyses) == 1
    several = len(content.runs) > 1
    what = [] if alone else [one for one in counts(content) if not (several and "launch" in one)]
    return [*filter(None, (gpus, when)), *what]


class ProfiledLaunch(Struct, frozen=True):
    """A launch that did not fail, as clocks and caveats are told of it.

    Attributes:
        sm_clock_hz: What its SMs ran at under the profiler; None if its report does not say.
        cautions: Flags without which its verdict would be another.
    """

    gpu: str
    name: str
    digest: str
    time_ns: float
    sm_clock_hz: float | None
    cautions: tuple[str, ...]


def _profiled(analyses: Iterable[Analysis]) -> list[ProfiledLaunch]:
    return [
        ProfiledLaunch(*identity(one), one.gpu_time_ns or 0.0, one.kernel.counters.get("sm_clock_hz"), cautions(one))
        for one in timed(analyses)
    ]


def changed_thresholds(limits: Thresholds) -> list[str]:
    """List the thresholds that are not the shipped ones, each with its value."""
    usual = default_thresholds()
    return [f"{name} {value:g}" for name, value in asdict(limits).items() if value != getattr(usual, name)]


def facts(content: Content) -> list[str]:
    """List GPU, compute capability, clock, ncu and date, as far as reports state them."""
    capabilities = sorted({capability for one in content.analyses if (capability := one.kernel.compute_capability)})
    passes = [round(known) for one in content.analyses if (known := one.kernel.counters.get("passes")) is not None]
    dates = sorted(fmt.date(run.created_unix_s) for run in content.runs if run.created_unix_s)
    clock = _clock_words(_profiled(content.analyses)) if len(content.gpus) == 1 else ""
    facts = [
        _few_or_count(content.gpus, "GPUs"),
        f"CC {', '.join(capabilities)}" if len(content.gpus) == 1 and capabilities else "",
        f"SM {clock} ({_clock_control(content.runs)})" if clock else "",
        _few_or_count(sorted({f"ncu {run.ncu_version}" for run in content.runs if run.ncu_version}), "ncu versions"),
        f"{fmt.span(str(min(passes)), str(max(passes)))} {'pass' if max(passes) == 1 else 'passes'}" if passes else "",
        f"recorded {fmt.span(dates[0], dates[-1])}" if dates else "",
    ]
    return [fact for fact in facts if fact]


def _clock_control(runs: Sequence[Run]) -> str:
    modes = {run.clock_control for run in runs}
    words = {CLOCK_WORDS.get(mode, mode) if mode else "clock control not stated" for mode in modes}
    return words.pop() if len(words) == 1 else "clock control differs between reports"


def _clock_words(launches: Sequence[ProfiledLaunch]) -> str:
    """Say the clock of the launch that takes most time first: a short one may run at an idle clock."""
    known = [(hz, one.time_ns) for one in launches if (hz := one.sm_clock_hz)]
    if not known:
        return ""
    main_hz = max(known, key=lambda pair: pair[1])[0]
    low, high = min(hz for hz, _ in known), max(hz for hz, _ in known)
    moved = [
        f"{word} {fmt.si(hz, 'Hz')}"
        for word, hz in (("down to", low), ("up to", high))
        if max(hz / main_hz, main_hz / hz) >= BAND_FROM_RATIO
    ]
    if not moved:
        return fmt.si(main_hz, "Hz")
    others_ns = sum(time_ns for hz, time_ns in known if max(hz / main_hz, main_hz / hz) >= BAND_FROM_RATIO)
    total_ns = sum(one.time_ns for one in launches)
    which = "short launches" if others_ns < FEW_SHARE * total_ns or not total_ns else "other launches"
    return f"{fmt.si(main_hz, 'Hz')}, {' and '.join(moved)} in {which}"


def _few_or_count(names: Iterable[str], plural: str) -> str:
    known = list(names)
    return ", ".join(known) if len(known) <= GPUS_NAMED else f"{len(known)} {plural}"


def counts(content: Content) -> list[str]:
    """Count kernels, launches and reports, and sum up the GPU time."""
    kernels, launches = len(content.kernels), sum(group.launch_count for group in content.kernels)
    parts = [fmt.count(kernels, "kernel")] if kernels or not content.failed_count else []
    parts += launch_counts(launches, content.failed_count, kernels)
    if len(content.runs) > 1:
        parts.append(fmt.count(len(content.runs), "report"))
    if content.total_ns and content.ladder is None:
        parts.append(f"{fmt.duration(content.total_ns)} of GPU time")
    return parts


def launch_counts(launches: int, failed: int, kernels: int) -> list[str]:
    """Count launches, where they are not one a kernel, and apart from them those that failed."""
    counted = [fmt.count(launches, "launch")] if launches != kernels else []
    return [*counted, fmt.count(failed, "failed launch")] if failed else counted


def failed_words(kernels: Sequence[KernelSummary], noun: str) -> str:
    """Say how many results of kernels failed, and of which kernels; empty without any."""
    if not kernels:
        return ""
    amount = sum(len(group.launches) for group in kernels)
    names = [group.shown for group in kernels[:KERNELS_NAMED]]
    return f"{fmt.count(amount, noun)} failed: {_and_more(names, len(kernels))}"


def flag_counts(flags: Iterable[Sequence[str]]) -> list[tuple[str, int]]:
    """Count the launches that have each flag, the most frequent first."""
    return most_first(Counter(flag for own in flags for flag in own))


def failure_counts(analyses: Iterable[Analysis]) -> list[tuple[str, int]]:
    """Count the launches by the reason they were not analyzed for, the most frequent first; failed profiles apart."""
    reasons = (analysis.kernel.status_reason or ALL_NAN for analysis in analyses if analysis.kernel.failed)
    return Counter(reason for reason in reasons if reason != ALL_NAN).most_common()


def most_first(amounts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Put names in the order of falling amounts, equal ones by name."""
    return sorted(amounts.items(), key=lambda item: (-item[1], item[0]))


def caveats(content: Content) -> tuple[Caveat, ...]:
    """Say a clock far below boost, then each trap that changes verdicts, the most frequent first, with its launches."""
    launches = _profiled(content.analyses)
    low = [one for gpu in content.gpus for one in _low_clock(gpu, [each for each in launches if each.gpu == gpu])]
    flagged = [
        (flag_name(flag), flag_label(flag), [one for one in launches if flag in one.cautions])
        for flag, _ in flag_counts(one.cautions for one in launches)
    ]
    kernels = len({group.name for group in content.kernels})
    return tuple(
        Caveat(name, words, len(own), _about(own, kernels, content.report_labels))
        for name, words, own in (*low, *flagged)
    )


def _low_clock(gpu: str, launches: Sequence[ProfiledLaunch]) -> Iterator[tuple[str, str, list[ProfiledLaunch]]]:
    """Say at which clock a GPU was profiled, and of which launches, if that is far below its clock without ncu."""
    sheet = datasheet_of(gpu)
    if sheet is None:
        return
    boost_hz = sheet.boost_clock.value
    low = [(one, hz) for one in launches if (hz := one.sm_clock_hz) and hz < LOW_CLOCK * boost_hz]
    # Launches as short as to run at an idle clock say nothing of the others.
    if not low or sum(one.time_ns for one, _ in low) < FEW_SHARE * sum(one.time_ns for one in launches):
        return
    hz = median(hz for _, hz in low)
    words = (
        f"Profiled at {fmt.si(hz, 'Hz')}, far below the {fmt.si(boost_hz, 'Hz')} that this GPU boosts to: without "
        f"the profiler arithmetic, L1 and shared memory may run up to {fmt.factor(boost_hz / hz)} as fast, and "
        "another unit may be the limit."
    )
    yield f"profiled at {fmt.si(hz, 'Hz')} of {fmt.si(boost_hz, 'Hz')}", words, [one for one, _ in low]


def _about(launches: Sequence[ProfiledLaunch], kernels: int, report_labels: Mapping[str, str]) -> str:
    """Name the kernels in order of falling time, and the reports in that of recording, where not all are meant.

    Args:
        launches: Those that are meant.
        kernels: Names of kernels that the page has.
        report_labels: Its reports by digest.
    """
    times_ns: defaultdict[str, float] = defaultdict(float)
    for one in launches:
        times_ns[one.name] += one.time_ns
    digests = {one.digest for one in launches}
    names = sorted(times_ns, key=lambda name: -times_ns[name])
    named = [fmt.cut_middle(fmt.plain_name(name), NAME_WIDTH) for name in names[:KERNELS_NAMED]]
    labels = [label for digest, label in report_labels.items() if digest in digests]
    reports = [fmt.cut_middle(label, NAME_WIDTH) for label in labels[:KERNELS_NAMED]]
    return ("" if len(names) == kernels else f": {_and_more(named, len(names))}") + (
        "" if len(labels) == len(report_labels) else f" in {_and_more(reports, len(labels))}"
    )


def _and_more(named: Sequence[str], amount: int) -> str:
    others = amount - len(named)
    return ", ".join(named) + (f" and {others:,} more" if others else "")
