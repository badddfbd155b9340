"""Versions of a program: which reports are some, their order, and what sets their names apart.

Names that number the versions (v1, v2, v10) give the order. Where they do not, files that somebody named one by one, in
an order that no folder has, stand in that order; else the time of recording gives it, and last the names. Two
recordings of one version have the same code: its registers, shared memory and instructions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import date, natural
from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Side, asked_alike
from rooflens.model.compare.ladder import Ladder, beside, ladder, ladder_of_kernels, pair_name
from rooflens.model.compare.pairing import (
    NAME_WORDS,
    REPORT_ENDINGS,
    Unpaired,
    is_repeated,
    pair_sides,
    program_name,
    shared_name,
    version_name,
)
from rooflens.model.keys import function_of
from rooflens.model.records import Analysis, AnalyzedReport, Run, at_work
from rooflens.model.same_work import (
    Asked,
    are_loops_apart,
    as_many_operations,
    does_no_less,
    halves,
    named_alike,
    same_work,
)
from rooflens.model.summary import KernelSummary, summarize
from rooflens.model.verdict.thresholds import default_thresholds

MOST_SIDES = 50
"""Versions that one ladder holds."""


_ENDING = re.compile(f"(?:{'|'.join(map(re.escape, REPORT_ENDINGS))})$")

_NUMBERED = re.compile(r"([a-z]*?)[-_. ]?\d+[a-z]?(?=[-_. ()]|\Z)", re.IGNORECASE)
"""A label that begins with a number, or with a word and one: v3_unrolled, variant2, 04."""


def report_labels(runs: Sequence[Run]) -> Mapping[str, str]:
    """Name each report by what sets it apart from the others: `v4` and `v5` of `v4_causal` and `v5_causal`.

    Returns:
        Label by digest, in the order of `in_order`; labels are never empty and never the same. Files of one name are
        named with as many of their folders as it takes.
    """
    ordered = in_order(runs)
    return dict(zip((run.digest for run in ordered), path_labels([run.source for run in ordered]), strict=True))


def path_labels(sources: Sequence[str]) -> list[str]:
    """Name paths by what sets them apart, as `report_labels` does."""
    paths = [PurePath(_ENDING.sub("", source.replace("\\", "/"))) for source in sources]
    names: list[str] = []
    for parts in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return _numbered(_apart(names)) if names else list(sources)


def in_order(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Order reports: by the numbers of versions in their names, else as they were given, by their time, or by name.

    One name may lack a number: it comes first, or last where it was recorded after all others.

    Args:
        runs: The reports as they were given. In the order of their names it was a folder or a shell that ordered them.
    """
    once = {run.digest: run for run in reversed(runs)}
    given = [once[digest] for digest in dict.fromkeys(run.digest for run in runs)]
    by_name = sorted(given, key=lambda run: natural(run.source))
    if numbered := _by_their_numbers(by_name):
        return numbered
    if not _is_by_name([run.source for run in given]):
        return tuple(given)
    return tuple(sorted(by_name, key=lambda run: run.created_unix_s or float("inf")))


def _is_by_name(sources: Sequence[str]) -> bool:
    """Return whether paths are sorted, as a folder or a shell in any locale sorts them."""
    paths = [PurePath(source) for source in sources]
    return any(paths == sorted(paths, key=key) for key in (PurePath.as_posix, _by_numbers, _by_letters))


def _by_numbers(path: PurePath) -> list[object]:
    return [natural(part) for part in path.parts]


def _by_letters(path: PurePath) -> str:
    return "".join(filter(str.isalnum, path.as_posix())).casefold()


def _by_their_numbers(by_name: Sequence[Run]) -> tuple[Run, ...]:
    """Order reports by the numbers in their names; empty where these do not number versions."""
    numbers = [_NUMBERED.match(label) for label in path_labels([run.source for run in by_name])]
    unnumbered = [run for run, number in zip(by_name, numbers, strict=True) if number is None]
    numbered = [run for run in by_name if run not in unnumbered]
    is_one_count = len({number[1].casefold() for number in numbers if number}) == 1
    if len(unnumbered) > 1 or len(numbered) < 2 or not is_one_count:
        return ()
    latest = max(run.created_unix_s or float("inf") for run in numbered)
    is_last = any((run.created_unix_s or 0) > latest for run in unnumbered)
    return (*numbered, *unnumbered) if is_last else (*unnumbered, *numbered)


def _apart(names: Sequence[str]) -> list[str]:
    """Cut the words that all names begin and end with; a name that would become empty stays whole."""
    split = [NAME_WORDS.findall(name) for name in names]
    shortest = min(len(words) for words in split)
    if len(names) == 1 or shortest == 0:
        return list(names)
    first = next((i for i in range(shortest) if len({words[i] for words in split}) > 1), shortest)
    room = shortest - first
    last = next((i for i in range(room) if len({words[-1 - i] for words in split}) > 1), room)
    cut = ["".join(words[first : len(words) - last]).strip(" ._/\\@-") for words in split]
    return [short or name for short, name in zip(cut, names, strict=True)]


def _numbered(names: Sequence[str]) -> list[str]:
    amounts, seen = Counter(names), Counter[str]()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(f"{name} ({seen[name]})" if amounts[name] > 1 else name)
    return labels


class _Version(Struct, frozen=True):
    """The recordings of one version, and the median launch and part of the time of each kernel, longest first."""

    reports: list[AnalyzedReport]
    kernels: dict[str, tuple[Analysis, float]]

    @property
    def run(self) -> Run:
        return self.reports[0].run

    @property
    def main(self) -> Analysis:
        """The longest kernel."""
        return next(iter(self.kernels.values()))[0]

    def shared(self, other: _Version) -> float:
        """Return the share of time in kernels that both sides name alike: the smaller side's."""
        both = self.kernels.keys() & other.kernels.keys()
        return sum(min(self.kernels[name][1], other.kernels[name][1]) for name in both)

    def same_work(self, other: _Version) -> bool | None:
        """Return whether a kernel that both have does the same in both, the longest such one; else the longest ones."""
        asked = asked_alike(self.run, other.run)
        for name in (*self.kernels, *other.kernels):
            if name in self.kernels and name in other.kernels:
                return same_work(self.kernels[name][0], other.kernels[name][0], asked).same
        return same_work(self.main, other.main, asked).same


def ladders_of(reports: Sequence[AnalyzedReport], threshold: float = DEFAULT_THRESHOLD) -> tuple[Ladder, ...]:
    """Find the programs that have several versions among reports, those with most versions first.

    Reports belong together where their files name one program, or where those of one folder have kernels of one name
    for most of their time, or a longest one of as much work; and where most of them do the same work, or all run the
    same kernels at other sizes. A single version on another GPU belongs to those that it continues.
    """
    known = {report.run.digest: report for report in reports if at_work(report.analyses)}
    versions = _recordings([known[run.digest] for run in in_order([report.run for report in known.values()])])
    groups: list[list[_Version]] = []
    for version in versions:
        _join(groups, version, [group for group in groups if _continues(version, group, elsewhere=False)])
    for version in [group[0] for group in groups if len(group) == 1]:
        others = [group for group in groups if len(group) > 1 and _continues(version, group, elsewhere=True)]
        if others:
            groups.remove([version])
            _join(groups, version, others[:1])
    jobs = [_ordered_versions(group, [*known]) for group in groups if len(group) > 1 and _is_one_job(group)]
    return tuple(_ladder(job[-MOST_SIDES:], threshold) for job in sorted(jobs, key=lambda job: -len(job)))


def detected_ladders(reports: Sequence[AnalyzedReport]) -> tuple[Ladder, ...]:
    """Find the ladders that reports hold: versions of programs, and kernels of one report that do the same work."""
    if not reports or len(reports) > MOST_SIDES:
        return ()
    across = [one for one in ladders_of(reports) if one.fastest] if len(reports) > 1 else []
    taken = {digest for one in across for rung in one.rungs for digest in rung.side.digests}
    alone = (ladder_inside(report) for report in reports if report.run.digest not in taken)
    return (*across, *(one for one in alone if one))


def ladder_inside(report: AnalyzedReport, threshold: float = DEFAULT_THRESHOLD) -> Ladder | None:
    """Find the kernels of one report that do the same work and take most of its time; None if it has none.

    At least two have other names, one of them no library's: those of a library stand last, as what the others are set
    beside.
    """
    kernels = [kernel for kernel in summarize(at_work(report.analyses)) if kernel.duration_ns]
    whole_ns = sum(kernel.duration_ns or 0.0 for kernel in kernels)
    kernels = [
        kernel for kernel in kernels if (kernel.duration_ns or 0.0) >= default_thresholds().trace_share * whole_ns
    ]
    if len({kernel.analysis.kernel.function_name for kernel in kernels}) < 2:
        return None
    for own in _jobs_of(kernels):
        is_most = sum(one.duration_ns or 0.0 for one in own) >= default_thresholds().most_share * whole_ns
        names = {one.analysis.kernel.function_name for one in own}
        if len(names) > 1 and is_most and any(one.analysis.library is None for one in own):
            launched = [_launches_of_kernel(report, one) for one in own]
            ordered = sorted(launched, key=lambda of: (of[0].library is not None, of[0].kernel.index))
            sides = [
                Side(of[0].short_name or of[0].kernel.function_name, (AnalyzedReport(report.run, of),))
                for of in ordered
            ]
            return ladder_of_kernels(program_name(report.run), sides[:MOST_SIDES], threshold)
    return None


def _jobs_of(kernels: Sequence[KernelSummary]) -> Iterator[list[KernelSummary]]:
    """Put the kernels of one report that do the same work together, each with those that it is like.

    Those that are like none join the plainer versions of a job that several do.
    """
    left, jobs = list(kernels), []
    while left:
        jobs.append(_gather_job([left.pop(0)], left, _is_same_job))
    left = [job[0] for job in jobs if len(job) == 1]
    yield from (_gather_job(job, left, does_no_less) for job in jobs if len(job) > 1)


def _gather_job(
    job: list[KernelSummary], left: list[KernelSummary], is_like: Callable[[Analysis, Analysis], bool]
) -> list[KernelSummary]:
    """Grow a job by the kernels in `left` that are alike to one of its own, transitively."""
    for member in job:  # grows while it is iterated
        found = [one for one in left if is_like(one.analysis, member.analysis)]
        left[:] = [one for one in left if one not in found]
        job += found
    return job


def _is_same_job(analysis: Analysis, other: Analysis) -> bool:
    """Return whether two kernels of one run do the same: as many operations, or one job by their names and amounts.

    Kernels as short as their launch tell nothing.
    """
    if (
        halves(analysis, other)
        or are_loops_apart(analysis, other)
        or "overhead" in (analysis.verdict.bound, other.verdict.bound)
    ):
        return False
    counted = as_many_operations(analysis, other)
    if counted is not None:
        return counted
    asked: Asked | None = "same" if named_alike(analysis, other) else None  # the arguments of one run
    return same_work(analysis, other, asked).same is True


def _launches_of_kernel(report: AnalyzedReport, kernel: KernelSummary) -> tuple[Analysis, ...]:
    own = kernel.analysis.kernel
    return tuple(one for one in at_work(report.analyses) if one.kernel.name == own.name and one.kernel.gpu == own.gpu)


def paired(
    sides: Sequence[Sequence[AnalyzedReport]], names: Sequence[str], threshold: float = DEFAULT_THRESHOLD
) -> tuple[list[Ladder], tuple[Unpaired, ...]]:
    """Pair the programs of all sides, or of a single one its versions; return those without a partner, too.

    Args:
        sides: The reports of each side.
        names: What the sides were given as; of more than two, what sets them apart is their label.
        threshold: Smaller changes count as no change.

    Raises:
        InputError: A side has no program in common with the first, or a single one has no program in two versions.
    """
    if len(sides) == 1:
        return pair_versions(sides[0], names[0], threshold)
    return pair_sides(sides, names if len(names) == 2 else path_labels(names), threshold)


def pair_versions(
    reports: Sequence[AnalyzedReport], place: str, threshold: float = DEFAULT_THRESHOLD
) -> tuple[list[Ladder], tuple[Unpaired, ...]]:
    """Set the versions of each program in one place side by side; return what is a version of nothing, too.

    Raises:
        InputError: No program there has two versions.
    """
    found = ladders_of(reports, threshold)
    if not found and len(reports) == 1:
        found = tuple(filter(None, (ladder_inside(reports[0], threshold),)))
    if not found:
        what = (
            "is one recording, and holds no versions of a kernel"
            if len(reports) == 1
            else "holds no program in two versions (one kernel or job in several reports)"
        )
        raise InputError(f"`{place}` {what}", "name the sides: `rooflens compare BASE HEAD`")
    return [_named_by_sides(one) for one in found], _left("one report", reports, found)


def _named_by_sides(ladder: Ladder) -> Ladder:
    """Name a program of two versions by both: nobody named them, so that only this says which is before."""
    return replace(ladder, program=pair_name(ladder.program, *ladder.labels)) if len(ladder.rungs) == 2 else ladder


def pair_with_versions(
    base: AnalyzedReport, others: Sequence[AnalyzedReport], threshold: float = DEFAULT_THRESHOLD
) -> tuple[list[Ladder], tuple[Unpaired, ...]] | None:
    """Set each other version of a report's program upon it; None if it is a version of nothing among them."""
    for one in ladders_of([base, *others], threshold):
        sides = [rung.side for rung in one.rungs]
        own = next((side for side in sides if base.run.digest in side.digests), None)
        if own is not None:
            ordered = (own, *(side for side in sides if side is not own))
            found = _named_by_sides(ladder(one.program, ordered, threshold, is_detected=True))
            return [found], _left("the head", others, [one])
    return None


def _left(where: str, reports: Sequence[AnalyzedReport], ladders: Sequence[Ladder]) -> tuple[Unpaired, ...]:
    taken = {digest for one in ladders for rung in one.rungs for digest in rung.side.digests}
    names = tuple(PurePath(report.run.source).name for report in reports if report.run.digest not in taken)
    return (Unpaired(where, names),) if names else ()


def check_count(sides: int) -> None:
    """Refuse more sides than a ladder holds.

    Raises:
        InputError: There are more.
    """
    if sides > MOST_SIDES:
        raise InputError(f"{sides} sides are more than the {MOST_SIDES} that can be compared", "compare fewer of them")


def _join(groups: list[list[_Version]], version: _Version, to: Sequence[list[_Version]]) -> None:
    """Merge a version and every group it is alike to into one group."""
    groups[:] = [group for group in groups if group not in to]
    groups.append([*(one for group in to for one in group), version])


def _recordings(reports: Iterable[AnalyzedReport]) -> list[_Version]:
    """Put the recordings of each version together: those of one day that have the same code."""
    versions: list[_Version] = []
    for report in reports:
        kernels: dict[str, tuple[Analysis, float]] = {}
        for kernel in summarize(at_work(report.analyses)):
            kernels.setdefault(function_of(kernel.name), (kernel.analysis, kernel.time_share or 0.0))
        found = _Version([report], kernels)
        name = version_name(report.run)
        day = date(report.run.created_unix_s)
        named = (one for one in versions if version_name(one.run) == name and date(one.run.created_unix_s) == day)
        alike = (one for one in named if _has_same_code(one, found))
        same = next(alike, None)
        if same is None:
            versions.append(found)
        else:
            same.reports.append(report)
    return versions


def _has_same_code(first: _Version, other: _Version) -> bool:
    for name in ("registers_per_thread", "smem_static_per_block_bytes", "executed_inst"):
        low, high = sorted(version.main.kernel.counters.get(name) or 0.0 for version in (first, other))
        if low and high > (1 + default_thresholds().noise_share) * low:
            return False
    return is_repeated(first.reports[0].analyses, other.reports[0].analyses)


def _continues(version: _Version, group: Sequence[_Version], *, elsewhere: bool) -> bool:
    """Return whether a version belongs to others that ran on the same GPU, or elsewhere."""
    return any(
        (version.main.kernel.gpu_model != other.main.kernel.gpu_model) is elsewhere
        and _is_of_one_program(version, other)
        for other in group
    )


def _ordered_versions(group: Sequence[_Version], given: Sequence[str]) -> list[_Version]:
    """Order the versions of a program by their own names: those of others beside it tell nothing of its order.

    Args:
        group: The versions.
        given: The digests of all reports, as they were given.
    """
    own = sorted((version.run for version in group), key=lambda run: given.index(run.digest))
    places = {run.digest: place for place, run in enumerate(in_order(own))}
    return sorted(group, key=lambda version: places[version.run.digest])


def _is_of_one_program(version: _Version, other: _Version) -> bool:
    if program_name(version.run) == program_name(other.run):
        return True
    is_alike = (
        version.shared(other) >= default_thresholds().most_share or same_work(version.main, other.main).same is True
    )
    return is_alike and PurePath(version.run.source).parent == PurePath(other.run.source).parent


def _is_one_job(group: Sequence[_Version]) -> bool:
    """Return whether most of a group do the same work, or all run one program's kernels at other sizes."""
    if all(version.shared(group[0]) >= default_thresholds().most_share for version in group):
        return True
    return 2 * max(sum(one.same_work(other) is not False for other in group) for one in group) > len(group)


def _ladder(versions: Sequence[_Version], threshold: float) -> Ladder:
    """Name a program by its files, else by its longest kernel, what names of its files share, or its folder."""
    runs = [version.run for version in versions]
    named = (
        {program_name(run) for run in runs},
        {function_of(version.main.kernel.name) for version in versions},
        {shared_name([program_name(run) for run in runs])} - {""},
        {PurePath(run.source).parent.name for run in runs} - {""},
    )
    program = next((next(iter(names)) for names in named if len(names) == 1), program_name(runs[0]))
    sides = [Side(label, tuple(one.reports)) for label, one in zip(_run_labels(runs), versions, strict=True)]
    return _beside_library(ladder(program, sides, threshold, is_detected=True))


def _beside_library(ladder: Ladder) -> Ladder:
    """Set a ladder beside the fastest kernel of a library that does the same work in the runs of its versions."""
    fastest = ladder.fastest if ladder.followed else None
    if fastest is None or fastest.analysis is None:
        return ladder
    found = [
        (analysis, report.run)
        for rung in ladder.rungs
        for report in rung.side.reports
        for analysis in at_work(report.analyses)
        if analysis.kernel.gpu_model == fastest.analysis.kernel.gpu_model
        and analysis.library
        and analysis.kernel.name != fastest.analysis.kernel.name
        and as_many_operations(fastest.analysis, analysis)
    ]
    if not found or fastest.analysis.library:
        return ladder
    best, run = min(found, key=lambda each: each[0].kernel.duration_ns or float("inf"))
    side = Side(best.short_name or best.kernel.function_name, (AnalyzedReport(run, (best,)),))
    return beside(ladder, side)


def _run_labels(runs: Sequence[Run]) -> list[str]:
    """Name versions by their files; one file recorded again by its day, with the time of day where one has several."""
    days = [date(run.created_unix_s) for run in runs]
    if len({run.source for run in runs}) > 1 or not all(run.created_unix_s for run in runs):
        return path_labels([run.source for run in runs])
    labels = [
        day
        if days.count(day) == 1
        else datetime.fromtimestamp(run.created_unix_s or 0, tz=UTC).strftime("%Y-%m-%d %H:%M")
        for day, run in zip(days, runs, strict=True)
    ]
    return labels if len(set(labels)) == len(labels) else path_labels([run.source for run in runs])
