"""A program over its sides, in order: two recordings, versions, the runs of a store, the sizes of a sweep.

Two sides are a ladder of two. From one side to the next kernels are matched, so a re-tiled or renamed kernel goes on.
The ladder follows the kernel that takes most of the time; the whole program where no kernel takes half of it. Nothing
is added up over sides, and a time is compared only with that of the same work on the same GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.compare.causes import Cause, causes
from rooflens.model.compare.compare import (
    DEFAULT_THRESHOLD,
    Change,
    Side,
    Spread,
    Timing,
    added,
    changes_between,
    is_replaced,
    programs_apart,
    times,
    under_wave,
    work_between,
)
from rooflens.model.compare.matching import match_launches
from rooflens.model.records import Analysis, at_work
from rooflens.model.same_work import UnitTime, WorkMatch, time_per_work
from rooflens.model.summary import median_launch
from rooflens.model.verdict.thresholds import default_thresholds

ONE_JOB = "one job of one run, by names and amounts"
"""What tells of kernels of one report that they do the same work."""


class Rung(Struct, frozen=True):
    """One side of a ladder: what a program, or one kernel of it, did there.

    Attributes:
        time: Time of one launch of the followed kernel in each recording, or of the whole program.
        launches: Launches of the followed kernel; of all kernels where the whole program is followed.
        analysis: Median launch of the followed kernel, or of the longest; None if no kernel was timed.
        gpu_time: GPU time of all these launches in each recording.
        to_first: Its time against that of the first version; None if there is nothing to compare.
        to_previous: The same against `previous`.
        previous: Number of the version before it that did the same work on the same GPU.
        changed: What changed since then, the most telling first.
        changed_kernel: The kernel that changed most, where the whole program is followed.
        apart: Why its time is not compared: `GPU`, `work`, or empty.
        work: Whether it did the work that most versions did; None if no kernel was timed.
        per_work: Its time for a unit of that work; None if no amount is known.
        is_fastest: True for the version to go on from.
        library: The library that it is a kernel of, where others are set beside it; empty otherwise.
    """

    side: Side
    time: Spread
    launches: int
    analysis: Analysis | None
    gpu_time: Spread = Spread(())
    to_first: Timing | None = None
    to_previous: Timing | None = None
    previous: int | None = None
    changed: tuple[Cause, ...] = ()
    changed_kernel: str = ""
    apart: str = ""
    work: WorkMatch | None = None
    per_work: UnitTime | None = None
    is_fastest: bool = False
    library: str = ""

    @property
    def label(self) -> str:
        return self.side.label


class Ladder(Struct, frozen=True):
    """A program over its sides, or one kernel of it: `kernels` are ladders too.

    Attributes:
        rungs: One for each side, in order.
        threshold: Smaller changes count as no change.
        total: GPU time of the whole program on the first and the last side.
        kernels: Its kernels, by their longest time on any side, longest first; a side that lacks one has no analysis.
        followed: The one of them that it is about; None if it is about the whole program.
        changes: Of two sides, what became of each kernel, largest change of time first.
        pairs: Of more sides, the first with each other one, as ladders of two.
        is_mean: Launch counts differ between the sides, so that the mean launch is followed.
        is_detected: The sides were found to do the same job, whatever their kernels are called.
        library: A library's kernel that does the same work, beside which they stand; None without one.
        warnings: What to keep in mind of how the sides were recorded.
    """

    program: str
    rungs: tuple[Rung, ...]
    threshold: float = DEFAULT_THRESHOLD
    total: Timing = Timing(Spread(()), Spread(()))
    kernels: tuple[Ladder, ...] = ()
    followed: Ladder | None = None
    changes: tuple[Change, ...] = ()
    pairs: tuple[Ladder, ...] = ()
    is_mean: bool = False
    is_detected: bool = False
    library: Rung | None = None
    warnings: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What the sides are called."""
        return tuple(rung.label for rung in self.rungs)

    @property
    def base(self) -> Side:
        """The first side."""
        return self.rungs[0].side

    @property
    def head(self) -> Side:
        """The last side."""
        return self.rungs[-1].side

    @property
    def is_of_one_report(self) -> bool:
        """True where its sides are kernels of one report, which were recorded alike."""
        return self.is_detected and self.base.digests == self.head.digests

    @property
    def each(self) -> tuple[Ladder, ...]:
        """The first side with each other one, as ladders of two."""
        return self.pairs or (self,)

    @property
    def shown(self) -> tuple[Rung, ...]:
        """The sides, and the library's kernel that they stand beside."""
        return (*self.rungs, self.library) if self.library else self.rungs

    @property
    def reference(self) -> Rung | None:
        """The fastest kernel of a library among what is shown; None without one."""
        known = [rung for rung in self.shown if rung.library and not rung.apart and rung.time.median_ns]
        return min(known, key=lambda rung: rung.time.median_ns or 0.0, default=None)

    @property
    def versions(self) -> tuple[Rung, ...]:
        """The sides whose times are compared: of the same work, on the same GPU, and no library's."""
        return tuple(rung for rung in self.rungs if not rung.apart and not rung.library)

    @property
    def present(self) -> tuple[Rung, ...]:
        """The sides that have a kernel to compare."""
        return tuple(rung for rung in self.rungs if rung.analysis)

    @property
    def name(self) -> str:
        """Name of the kernel that it is about on the last side that has it; of the longest one of a whole program."""
        return next((rung.analysis.kernel.name for rung in reversed(self.rungs) if rung.analysis), "")

    def time_of(self, rung: Rung) -> Spread:
        """Return the GPU time of all launches on a side, or of the mean one where launch counts differ."""
        return rung.gpu_time.per(rung.launches) if self.is_mean else rung.gpu_time

    @property
    def factor(self) -> float | None:
        """Time of the first side that has its kernel over that of the last: above 1 it became faster."""
        judged = [rung for rung in self.present if not rung.apart]
        if len(judged) < 2:
            return None
        first, last = (self.time_of(judged[end]).median_ns for end in (0, -1))
        return first / last if first and last else None

    @property
    def fastest(self) -> Rung | None:
        """The version to go on from; None if no time is known."""
        return next((rung for rung in self.rungs if rung.is_fastest), None)

    @property
    def tied(self) -> tuple[Rung, ...]:
        """The fastest version and those that are as fast, in order; the fastest alone where none is."""
        return tied(self.rungs, self.threshold)

    @property
    def counts_differ(self) -> bool:
        """True if the two sides launched some kernel unequally often."""
        return any(change.counts_differ for change in self.changes)

    @property
    def alone(self) -> tuple[Change, ...]:
        """Kernels of one side that the times of two sides leave out: new ones and gone ones.

        They count where the new ones do the work of the gone ones, and where nothing else is left to compare.
        """
        one_sided = tuple(change for change in self.changes if not (change.base and change.head))
        is_all = len(one_sided) == len(self.changes)
        return () if is_all or is_replaced(one_sided) else one_sided

    @property
    def compared(self) -> tuple[Change, ...]:
        """The kernels that the times of two sides are of."""
        left_out = {id(change) for change in self.alone}
        return tuple(change for change in self.changes if id(change) not in left_out)

    @property
    def shared(self) -> Timing:
        """GPU time of what is compared: of the whole program, unless kernels of one side are left out."""
        if not self.alone:
            return self.total
        known = self.compared
        base = added(change.timing.base for change in known if change.base)
        head = added(change.timing.head for change in known if change.head)
        below = under_wave([one for one in self.base.at_work if one.kernel.name in _kernel_names(known)])
        return replace(self.total, base=base, head=head, under_wave=below)

    @property
    def speed(self) -> Timing:
        """The times by which two sides are compared: GPU time, at the first side's launch counts if these differ."""
        if not self.counts_differ:
            return self.shared
        known = self.compared
        base = added(change.timing.base for change in known if change.base)
        heads = (
            change.mean_launch.head.of(change.launches[0]) if change.counts_differ else change.timing.head
            for change in known
            if change.head
        )
        return replace(self.shared, base=base, head=added(heads))


def tied(rungs: Sequence[Rung], threshold: float) -> tuple[Rung, ...]:
    """Return the fastest of some sides and those as fast: nearer than the threshold, or within the noise of both."""
    fastest = next((rung for rung in rungs if rung.is_fastest), None)
    if fastest is None:
        return ()
    timings = ((rung, Timing(fastest.time, rung.time)) for rung in rungs if not rung.apart and not rung.library)
    return tuple(
        rung
        for rung, timing in timings
        if rung is fastest or timing.is_unchanged(threshold) or timing.outcome(threshold) == "same"
    )


def _kernel_names(changes: Sequence[Change]) -> frozenset[str]:
    return frozenset(change.base.kernel.name for change in changes if change.base)


def ladder(
    program: str,
    sides: Sequence[Side],
    threshold: float = DEFAULT_THRESHOLD,
    *,
    is_detected: bool = False,
    work: WorkMatch | None = None,
) -> Ladder:
    """Set the sides of a program side by side, the first first.

    Args:
        program: What it is called.
        sides: Two or more.
        threshold: Smaller changes count as no change.
        is_detected: The sides were found to do the same job, whatever their kernels are called.
        work: Of two sides, what tells by other versions that they did the same work.
    """
    totals = [Spread(times(map(at_work, side.recordings))) for side in sides]
    kernels = sorted(_followed_kernels(program, sides, threshold), key=lambda one: -_longest_ns(one))
    followed = next((one for one in kernels if _is_main(one, totals)), None)
    rungs = followed.rungs if followed else tuple(_compared_rungs(_program_rungs(sides, kernels), kernels))
    changes = changes_between(sides[0], sides[1], work) if len(sides) == 2 else ()
    apart = programs_apart(changes)
    return Ladder(
        program,
        rungs,
        threshold,
        total=Timing(totals[0], totals[-1], under_wave(sides[0].at_work), apart),
        kernels=tuple(kernels),
        followed=followed,
        changes=changes,
        is_detected=is_detected,
    )


def ladder_of_kernels(program: str, sides: Sequence[Side], threshold: float = DEFAULT_THRESHOLD) -> Ladder:
    """Set kernels of one report that do the same work side by side: each side holds the launches of one of them.

    A library's kernel is what the others are set beside, and never the one to go on from.
    """
    rungs = []
    for side in sides:
        launches = side.recordings[0]
        rung = _rung(side, launches[0].kernel.name, side.recordings)
        rungs.append(replace(rung, library=launches[0].library or ""))
    alike = [WorkMatch(same=True, why=ONE_JOB)] * len(rungs)
    followed = Ladder(program, tuple(_compared_rungs(rungs, (), alike)), threshold)
    first, last = (rungs[end].gpu_time for end in (0, -1))
    total = Timing(first, last, under_wave(sides[0].at_work))
    return replace(followed, total=total, kernels=(followed,), followed=followed, is_detected=True)


def beside(ladder: Ladder, side: Side) -> Ladder:
    """Set a ladder beside a library's kernel that does the same work: a side of one launch."""
    kernel = side.recordings[0][0]
    rung = replace(_rung(side, kernel.kernel.name, side.recordings), library=kernel.library or "")
    first = next((each for each in ladder.rungs if not each.apart and each.time.times_ns), None)
    return replace(ladder, library=replace(rung, to_first=_timing(first, rung) if first else None))


def with_pairs(whole: Ladder) -> Ladder:
    """Compare the first side of a ladder of more than two with each of the others, too."""
    if whole.changes:  # two sides are their own pair
        return whole
    first, *others = whole.rungs
    pairs = (
        ladder(
            pair_name(whole.program, first.label, other.label),
            (first.side, other.side),
            whole.threshold,
            is_detected=whole.is_detected,
            work=None if first.apart or other.apart else other.work,
        )
        for other in others
    )
    return replace(whole, pairs=tuple(pairs))


def pair_name(program: str, before: str, after: str) -> str:
    """Name two sides of a program: `gemm: v4 -> v5`; without it where it is named by its sides already."""
    both = before if before == after else f"{before} -> {after}"
    return both if not program or " -> " in program else f"{program}: {both}"


def _longest_ns(kernel: Ladder) -> float:
    return max(rung.gpu_time.median_ns or 0.0 for rung in kernel.rungs)


def _is_main(kernel: Ladder, totals: Sequence[Spread]) -> bool:
    """Return whether most sides have a kernel, and it takes half of the time of one."""
    each = zip(kernel.rungs, totals, strict=True)
    shares = [(rung.gpu_time.median_ns or 0.0) / (whole.median_ns or float("inf")) for rung, whole in each]
    return len(kernel.present) > len(totals) / 2 and max(shares) >= default_thresholds().most_share


def _program_rungs(sides: Sequence[Side], kernels: Sequence[Ladder]) -> list[Rung]:
    """Make a rung of each whole program, at one number of launches of each kernel; the longest speaks for it."""
    found = []
    for at, side in enumerate(sides):
        own = [(one, one.rungs[at]) for one in kernels if one.rungs[at].analysis]
        evened = [rung.time.of(one.present[0].launches) if one.is_mean else rung.gpu_time for one, rung in own]
        main = max((rung for _, rung in own), key=lambda rung: rung.gpu_time.median_ns or 0.0, default=None)
        launches = sum(rung.launches for _, rung in own)
        spread = Spread(times(map(at_work, side.recordings)))
        found.append(Rung(side, added(evened), launches, main.analysis if main else None, spread))
    return found


def _compared_rungs(
    rungs: Sequence[Rung], kernels: Sequence[Ladder], stated: Sequence[WorkMatch | None] | None = None
) -> Iterator[Rung]:
    """Compare each rung with the first one and the one before that did the same, and mark the fastest.

    Args:
        rungs: The sides in order.
        kernels: All kernels where the whole program is followed, else none.
        stated: Whether each did the same work, where that is known already.
    """
    usual, works = (0, stated) if stated else _works(rungs, kernels)
    apart = _apart(rungs, works)
    known = [at for at, rung in enumerate(rungs) if not apart[at] and rung.time.median_ns]
    own = [at for at in known if not rungs[at].library]
    fastest = min(own, key=lambda at: rungs[at].time.median_ns or 0.0, default=None)
    beside = rungs[usual].analysis if not kernels else None
    for at, rung in enumerate(rungs):
        unit_time = time_per_work(rung.analysis, rung.time.median_ns, beside) if rung.analysis and beside else None
        judged = replace(
            rung,
            apart=apart[at],
            is_fastest=at == fastest and len(known) > 1,
            work=works[at],
            per_work=unit_time,
        )
        earlier = [other for other in known if other < at]
        if earlier and rung.analysis and apart[at] != "work":
            before = earlier[-1]
            old, new = _most_changed(kernels, before, at) or (rungs[before].analysis, rung.analysis)
            judged = replace(
                judged,
                previous=before,
                changed=causes(old, new) if old and new else (),
                changed_kernel=new.kernel.name if kernels and new else "",
            )
        if earlier and at in known:
            first, previous = (_timing(rungs[other], rung) for other in (earlier[0], earlier[-1]))
            judged = replace(judged, to_first=first, to_previous=previous)
        yield judged


def _works(rungs: Sequence[Rung], kernels: Sequence[Ladder]) -> tuple[int, list[WorkMatch | None]]:
    """Find the side whose work most others did, and whether each did the same, as it or as another that did.

    A whole program did the same where kernels that did other work take next to none of its time.
    """
    gpu = _usual_gpu(rungs)
    own = [at for at, rung in enumerate(rungs) if rung.analysis and rung.analysis.kernel.gpu_model == gpu]
    if not own:
        return 0, [None] * len(rungs)
    if kernels:
        return own[0], [_work_of_all(kernels, own[0], at) for at in range(len(rungs))]
    alike: dict[int, int] = {}
    for at in own:
        like = next((one for one in alike if (work := _work(rungs[one], rungs[at])) and work.is_compared), at)
        alike[like] = alike.get(like, 0) + 1
    usual = max(alike, key=alike.__getitem__)
    works = [_work(rungs[usual], rung) for rung in rungs]
    for at, work in enumerate(works):
        if work and work.same is None and not work.assumed:
            works[at] = _shared_work_note(rungs, works, at) or work
    return usual, works


def _shared_work_note(rungs: Sequence[Rung], works: Sequence[WorkMatch | None], at: int) -> WorkMatch | None:
    """Return what tells that a side did the work of another that is compared: what it shares with that may be known."""
    others = (_work(rungs[other], rungs[at]) for other, work in enumerate(works) if work and work.is_compared)
    return next((work for work in others if work and work.is_compared), None)


def _work(rung: Rung, other: Rung) -> WorkMatch | None:
    if rung.analysis is None or other.analysis is None:
        return None
    return work_between((rung.side, other.side), rung.analysis, other.analysis)


def _work_of_all(kernels: Sequence[Ladder], usual: int, at: int) -> WorkMatch | None:
    works = [(one.rungs[at], _work(one.rungs[usual], one.rungs[at])) for one in kernels]
    others = [(rung.gpu_time.median_ns or 0.0, work) for rung, work in works if work and not work.is_compared]
    whole_ns = sum(rung.gpu_time.median_ns or 0.0 for rung, _ in works)
    if sum(time_ns for time_ns, _ in others) > default_thresholds().little_share * whole_ns:
        return max(others, key=lambda one: one[0])[1]
    is_any = any(work for _, work in works)
    return WorkMatch(
        same=is_any or None, why="kernels that did the same work" if is_any else "no kernel is on both sides"
    )


def _usual_gpu(rungs: Sequence[Rung]) -> str | None:
    gpus = Counter(rung.analysis.kernel.gpu_model for rung in rungs if rung.analysis)
    return gpus.most_common(1)[0][0] if gpus else None


def _apart(rungs: Sequence[Rung], works: Sequence[WorkMatch | None]) -> list[str]:
    """Say why a side is not compared: another GPU, or other work than most have.

    Sides that ran on a GPU each are a comparison of GPUs.
    """
    gpus = Counter(rung.analysis.kernel.gpu_model for rung in rungs if rung.analysis)
    usual = _usual_gpu(rungs)
    found = []
    for rung, work in zip(rungs, works, strict=True):
        is_else = rung.analysis is not None and rung.analysis.kernel.gpu_model != usual and max(gpus.values()) > 1
        found.append("GPU" if is_else else "work" if work and not work.is_compared else "")
    return found


def _timing(before: Rung, after: Rung) -> Timing:
    return Timing(before.time, after.time, under_wave([before.analysis]) if before.analysis else 0.0)


def _most_changed(kernels: Sequence[Ladder], before: int, after: int) -> tuple[Analysis, Analysis] | None:
    """Return the kernel whose time changed most between two sides, in both; None if no kernel is in both."""
    pairs = [(one, one.rungs[before], one.rungs[after]) for one in kernels]
    known = [(one, old, new) for one, old, new in pairs if old.analysis and new.analysis]

    def moved_ns(pair: tuple[Ladder, Rung, Rung]) -> float:
        one, old, new = pair
        return abs((one.time_of(new).median_ns or 0.0) - (one.time_of(old).median_ns or 0.0))

    most = max(known, key=moved_ns, default=None)
    return (most[1].analysis, most[2].analysis) if most and most[1].analysis and most[2].analysis else None


def _followed_kernels(program: str, sides: Sequence[Side], threshold: float) -> Iterator[Ladder]:
    """Follow each kernel from side to side, by the launches of their first recordings."""
    found: list[dict[int, Rung]] = []
    before: Sequence[Analysis] = ()
    lines: dict[str, int] = {}
    known: dict[str, int] = {}
    for at, side in enumerate(sides):
        recordings = [at_work(recording) for recording in side.recordings]
        lines = _continued(before, recordings[0], lines)
        taken = set(lines.values())
        for name in dict.fromkeys(analysis.kernel.name for analysis in recordings[0]):
            if name not in lines:
                # A kernel that some versions did without goes on where it comes back under its name.
                earlier = known.get(name)
                lines[name] = len(found) if earlier is None or earlier in taken else earlier
                taken.add(lines[name])
            if lines[name] == len(found):
                found.append({})
            known[name] = lines[name]
            found[lines[name]][at] = _rung(side, name, recordings)
        before = recordings[0]
    for rungs in found:
        is_mean = len({rung.launches for rung in rungs.values()}) > 1
        own = [rungs.get(at, Rung(side, Spread(()), 0, None)) for at, side in enumerate(sides)]
        evened = [replace(rung, time=rung.gpu_time.per(rung.launches)) if is_mean else rung for rung in own]
        yield Ladder(program, tuple(_compared_rungs(evened, ())), threshold, is_mean=is_mean)


def _rung(side: Side, name: str, recordings: Sequence[Sequence[Analysis]]) -> Rung:
    """Sum up the launches of a kernel in each recording that has as many of them as the first."""
    found = [[analysis for analysis in recording if analysis.kernel.name == name] for recording in recordings]
    launches = sum(analysis.launches for analysis in found[0])
    whole = [one for one in found if sum(analysis.launches for analysis in one) == launches]
    medians = [median_launch(one) for one in whole]
    each = Spread(tuple(one.kernel.duration_ns for one in medians if one.kernel.duration_ns is not None))
    return Rung(side, each, launches, medians[0], Spread(times(whole)))


def _continued(before: Sequence[Analysis], after: Sequence[Analysis], lines: dict[str, int]) -> dict[str, int]:
    """Return the series that each kernel name of a version continues: that of the name it shares most launches with."""
    pairs: Counter[tuple[str, str]] = Counter()
    for match in match_launches([a.kernel for a in before], [a.kernel for a in after]):
        if match.base is not None and match.head is not None:
            pairs[before[match.base].kernel.name, after[match.head].kernel.name] += 1
    found: dict[str, int] = {}
    taken: set[int] = set()
    for (old, new), _ in sorted(pairs.items(), key=lambda item: (item[0][0] != item[0][1], -item[1])):
        if new not in found and lines[old] not in taken:
            found[new] = lines[old]
            taken.add(lines[old])
    return found
