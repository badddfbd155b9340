"""Two timelines of a program, before and after, set side by side: what each operator, idle time and copies take.

Where both have steps, all times are those of a step, else of the whole program. Several timelines on a side are the
ranks of one program: ranks with the same number are compared, and all times are means over them.

The changes add up: operators that do not wait for other GPUs count with the full time of their launches, and what
overlaps is taken off once, as a row of its own; communication and copies count only where nothing hides them; idle is
what is left. So the differences of all rows are the difference of the step, to the nanosecond.

Kernels are matched within their operator, which only a timeline of PyTorch names, else within their function: same
kernel, shape, type and module first; then without the module; then the same shape by another kernel; then the same
kernel with other shapes. What is left is new or gone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from statistics import median
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import percent, some
from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Outcome, Spread, Timing
from rooflens.model.compare.gate import Gate, Gated
from rooflens.model.program.kernels import ProgramKernel
from rooflens.model.program.matching import normal_name
from rooflens.model.program.occupancy import TimelineOccupancy
from rooflens.model.program.program import Program
from rooflens.model.roofline.datasheets import Datasheet, datasheet_of

LEAST_COMMON = 1 / 3
"""Two programs are strangers where less of the kernels' time of a side is in operators that the other side has."""

MOST_SAMPLES = 5
"""Steps are judged in so many groups of consecutive ones, each by its median, so that one late step is no noise."""

_ALIKE = 1.5
"""Steps of which one is marked and the other a repetition are taken for the same up to this ratio of launches."""

_RANK = re.compile(r"rank[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)

What = Literal["operator", "communication", "copies", "graphs", "unknown", "idle", "outside", "unchosen", "overlap"]
WHATS: tuple[What, ...] = get_args(What)
"""What a row is: kernels of an operator or function; communication, copies and graphs that nothing hides; graphs of
which nothing was recorded; time in which nothing ran; kernels of no step, or not chosen; what overlaps, taken off."""

How = Literal["same", "other module", "other kernel", "other shape", "other kernel and shape", "gone", "new"]
HOWS: tuple[How, ...] = get_args(How)

RidgeSide = Literal["memory", "compute"]


class SideAmount(Struct, frozen=True):
    """What something takes on one side: of a step, or of the whole program.

    Attributes:
        time_ns: The sum over its launches; a mean over steps and ranks.
        launches: How many.
        share: Of the time of the step or program, 0 to 1; more where launches overlap.
        floor_ns: The least time by the sizes of operators; None if it is not known of all launches.
        floor_cold_ns: The same from cold caches.
        samples_ns: Its time in groups of steps, in their order; a single one without steps.
    """

    time_ns: float
    launches: float = 0.0
    share: float = 0.0
    floor_ns: float | None = None
    floor_cold_ns: float | None = None
    samples_ns: tuple[float, ...] = ()


class Ridge(Struct, frozen=True):
    """On which side of the ridge the formula of an operator is on one GPU.

    Attributes:
        side: `memory` below the ridge, `compute` from it on.
        intensity: FLOPs per byte of its formula.
        ridge: FLOPs per byte of the GPU's peaks: of the peak named `peak` over the bandwidth of its memory.
    """

    side: RidgeSide
    intensity: float
    ridge: float
    peak: str


class MatchedKernels(Struct, frozen=True):
    """Kernels of one operator on both sides, which are the same by what `how` says.

    Attributes:
        name: Of the kernel with most time after; before if it is gone.
        was: Its name before, if that is another one; else None.
        operator, module, shape, dtype: As of a row of a program, after; before if it is gone.
        was_shape: Its shape before, if that is another one; else None.
        ridges: Before and after; None where the work or the GPU is not known, or several shapes are taken together.
        rows: The rows of the programs that it compares, of both sides.
    """

    how: How
    name: str
    was: str | None
    operator: str | None
    module: str | None
    shape: str | None
    was_shape: str | None
    dtype: str | None
    base: SideAmount | None
    head: SideAmount | None
    ridges: tuple[Ridge | None, Ridge | None] = (None, None)
    rows: tuple[ProgramKernel, ...] = ()

    @property
    def lost_ns(self) -> float:
        """Time that it takes more after."""
        return _lost(self.base, self.head)

    @property
    def expected(self) -> float | None:
        """Floor before over floor after, of a launch: how much faster the GPU after should be; None if not known."""
        floors = [
            one.floor_cold_ns / one.launches
            for one in _present_amounts(self.base, self.head)
            if one.floor_cold_ns and one.launches
        ]
        return floors[0] / floors[1] if len(floors) == 2 else None

    @property
    def observed(self) -> float | None:
        """Time of a launch before over that after; None if a side lacks it."""
        times = [one.time_ns / one.launches for one in _present_amounts(self.base, self.head) if one.launches]
        return times[0] / times[1] if len(times) == 2 and times[1] else None

    @property
    def changed_side(self) -> bool:
        """Whether the same work is on another side of the ridge."""
        before, after = self.ridges
        return before is not None and after is not None and before.side != after.side


class RowChange(Struct, frozen=True):
    """A row of the comparison: an operator, or what is no kernel.

    Attributes:
        name: The operator or the function; what it is for the others.
        kernels: Its kernels, largest difference first.
    """

    what: What
    name: str
    base: SideAmount | None
    head: SideAmount | None
    kernels: tuple[MatchedKernels, ...] = ()

    @property
    def lost_ns(self) -> float:
        """Time that it takes more after."""
        return _lost(self.base, self.head)

    @property
    def how(self) -> Literal["both", "gone", "new"]:
        """Whether both sides have it."""
        return "new" if self.base is None else "gone" if self.head is None else "both"

    @property
    def factor(self) -> float | None:
        """Time before over time after; None if a side lacks it."""
        if self.base is None or self.head is None or self.base.time_ns <= 0 or self.head.time_ns <= 0:
            return None
        return self.base.time_ns / self.head.time_ns

    @property
    def timing(self) -> Timing:
        """Its time on both sides, for gates."""
        before, after = (Spread(one.samples_ns if one else ()) for one in (self.base, self.head))
        return Timing(before, after)


class ComparedSide(Struct, frozen=True):
    """One side of a comparison.

    Attributes:
        label: What the user called it.
        programs: Its timelines, by rank.
        steps: How many steps all of them have; None if the whole program is compared.
        wall_ns: Of a step, or of the whole program: a mean over ranks, and over steps.
        samples_ns: The same in groups of steps.
        launches: Of a step or program, per rank.
    """

    label: str
    programs: tuple[Program, ...]
    steps: int | None
    wall_ns: float
    samples_ns: tuple[float, ...]
    launches: float

    @property
    def gpus(self) -> tuple[str, ...]:
        """Names of its GPUs, each once."""
        return tuple(dict.fromkeys(one.gpu or "GPU not named" for one in self.programs))


class RankChange(Struct, frozen=True):
    """A rank on both sides: the time of its step, or of the whole program, in nanoseconds."""

    rank: int | None
    base_ns: float
    head_ns: float


class ProgramComparison(Struct, frozen=True):
    """Two sides of a program by their timelines.

    Attributes:
        changes: Rows whose differences add up to that of the step or program, largest difference first.
        common: Which part of the kernels' time of each side is in operators that the other side has.
        ranks: Ranks of both sides; empty for one timeline each.
        hidden_ns: Communication that other kernels hide, on both sides: it is in no row.
        warnings: What to keep in mind.
        threshold: Smaller changes count as none.
    """

    base: ComparedSide
    head: ComparedSide
    changes: tuple[RowChange, ...]
    common: tuple[float, float]
    ranks: tuple[RankChange, ...] = ()
    hidden_ns: tuple[float, float] = (0.0, 0.0)
    warnings: tuple[str, ...] = ()
    threshold: float = DEFAULT_THRESHOLD

    @property
    def is_per_step(self) -> bool:
        """Whether times are those of a step."""
        return self.base.steps is not None

    @property
    def lost_ns(self) -> float:
        """Time that the step or program takes more after."""
        return self.head.wall_ns - self.base.wall_ns

    @property
    def factor(self) -> float | None:
        """Time before over time after: above 1 is faster; None if a side has no time."""
        return self.base.wall_ns / self.head.wall_ns if self.base.wall_ns and self.head.wall_ns else None

    @property
    def timing(self) -> Timing:
        """The time of the step or program on both sides, for gates."""
        return Timing(Spread(self.base.samples_ns), Spread(self.head.samples_ns))

    @property
    def outcome(self) -> Outcome:
        """Whether the step changed beyond noise."""
        return self.timing.outcome(self.threshold)

    @property
    def name(self) -> str:
        """Both sides."""
        return f"{self.base.label} -> {self.head.label}"

    @property
    def kernels(self) -> tuple[MatchedKernels, ...]:
        """All matched kernels, largest difference first."""
        return tuple(sorted(chain.from_iterable(one.kernels for one in self.changes), key=_by_difference))

    @property
    def has_two_gpus(self) -> bool:
        """Whether the sides ran on different GPUs."""
        return self.base.gpus != self.head.gpus

    def judged(self, gate: Gate) -> Gated:
        """Judge the time of the step or program, and with `per_kernel` that of each row that both sides have."""
        what = "a step" if self.is_per_step else "the program"
        whole = replace(gate.judged(self.name, None, self.timing), whole=what)
        of_rows = (one for one in self.changes if one.how == "both" and one.what not in {"outside", "overlap"})
        rows = (gate.judged(self.name, one.name, one.timing) for one in of_rows) if gate.per_kernel else ()
        return Gated(gate, (whole, *rows))


def compare_programs(
    sides: tuple[Sequence[Program], Sequence[Program]],
    labels: tuple[str, str],
    threshold: float = DEFAULT_THRESHOLD,
    *,
    anyway: bool = False,
    hint: str = "",
) -> ProgramComparison:
    """Set two programs side by side, each with one timeline or with one of each rank.

    Args:
        sides: The timelines before and after.
        labels: What both sides are called.
        threshold: Smaller changes count as none.
        anyway: Also compare programs that have little in common.
        hint: How to compare them all the same.

    Raises:
        InputError: The sides have no rank in common, or are strangers: neither kernels nor operators agree.
    """
    before, after, warnings = _same_ranks(*sides, labels)
    by_function = not all(map(_knows_operators, (*before, *after)))
    common = _common(before, after, by_function=by_function), _common(after, before, by_function=by_function)
    if min(common) < LEAST_COMMON and not anyway:
        shares = " and ".join(f"{percent(share)} of `{label}`" for share, label in zip(common, labels, strict=True))
        way = "kernels" if by_function else "operators"
        raise InputError(
            f"the two programs have little in common: by time, {shares} is in {way} that the other has",
            f"give two timelines of one program, before and after a change{'; ' + hint if hint else ''}",
        )
    is_per_step, why_not = _is_per_step(before, after)
    has_totals = any(one.unprofiled.wall_ns is None for one in (*before, *after))
    if has_totals:
        why_not = [_ADDED]
    warnings = [*warnings, *why_not, *_outside(before, after, labels, is_per_step=is_per_step)]
    one = _SideTimelines(before, labels[0], is_per_step=is_per_step, has_totals=has_totals)
    other = _SideTimelines(after, labels[1], is_per_step=is_per_step, has_totals=has_totals)
    changes = [*_operators(one, other, by_function=by_function), *_other_changes(one, other)]
    return ProgramComparison(
        one.record(),
        other.record(),
        tuple(sorted(changes, key=_by_difference)),
        common,
        _ranks(one, other) if len(before) > 1 else (),
        (one.hidden_ns, other.hidden_ns),
        tuple(dict.fromkeys(warnings)),
        threshold,
    )


def _same_ranks(
    base: Sequence[Program], head: Sequence[Program], labels: tuple[str, str]
) -> tuple[list[Program], list[Program], list[str]]:
    """Pair the timelines of both sides by their ranks; two single ones are a pair whatever their ranks are.

    Raises:
        InputError: Several timelines have no rank, or no rank is on both sides.
    """
    if len(base) == len(head) == 1:
        return [*base], [*head], []
    known = []
    for programs, label in zip((base, head), labels, strict=True):
        ranks: dict[int, Program] = {}
        for program in programs:
            rank = rank_of(program)
            if rank is None or rank in ranks:
                why = "does not say its rank" if rank is None else f"is a second one of rank {rank}"
                raise InputError(
                    f"`{program.source}` {why}, so that the timelines of `{label}` cannot be matched",
                    "name the files by rank, `rank0.json` and `rank1.json`, or compare two files",
                )
            ranks[rank] = program
        known.append(ranks)
    shared = sorted(known[0].keys() & known[1].keys())
    if not shared:
        raise InputError(
            f"the two sides have no rank in common: {_rank_list(known[0])} and {_rank_list(known[1])}",
            "record the same ranks before and after, or compare two files",
        )
    warnings = [
        f"only {label} has rank {_rank_list(own.keys() - {*shared})}: left out"
        for own, label in zip(known, labels, strict=True)
        if own.keys() - {*shared}
    ]
    return [known[0][one] for one in shared], [known[1][one] for one in shared], warnings


def rank_of(program: Program) -> int | None:
    """Return the rank of a timeline: as it says itself, else by the name of its file; None if neither tells."""
    if program.rank is not None:
        return program.rank
    found = _RANK.findall(program.source.replace("\\", "/").rpartition("/")[2])
    return int(found[-1]) if found else None


def _rank_list(ranks: Iterable[int]) -> str:
    return some([str(one) for one in sorted(ranks)])


def _knows_operators(program: Program) -> bool:
    """Return whether operators are known of half of the kernels' time."""
    known = sum(one.time_ns for one in program.every if one.operator)
    return 2 * known >= program.time_ns


def _row_key(kernel: ProgramKernel, *, by_function: bool) -> str:
    """Name the row that a kernel belongs to."""
    return (None if by_function else kernel.operator) or kernel.function


def _common(programs: Sequence[Program], others: Sequence[Program], *, by_function: bool) -> float:
    """Return the part of the kernels' time in operators, or functions, that another side has, too."""
    theirs = {_row_key(one, by_function=by_function) for one in _at_work(others)}
    own = [(_row_key(one, by_function=by_function) in theirs, one.time_ns) for one in _at_work(programs)]
    whole_ns = sum(time_ns for _, time_ns in own)
    return sum(time_ns for is_theirs, time_ns in own if is_theirs) / whole_ns if whole_ns else 1.0


def _at_work(programs: Iterable[Program]) -> Iterator[ProgramKernel]:
    """Yield the kernels that do not wait for other GPUs."""
    return (one for program in programs for one in program.every if not one.is_communication)


def _is_per_step(before: Sequence[Program], after: Sequence[Program]) -> tuple[bool, list[str]]:
    """Return whether steps can be compared, and a warning if only one side has any, or they differ in kind."""
    each = [bool(programs) and all(one.steps for one in programs) for programs in (before, after)]
    if not all(each):
        which = "neither side has" if not any(each) else "only one side has"
        return False, [f"{which} steps: whole programs are compared, which differ with what was recorded"]
    ways = [{one.steps_by for one in programs} for programs in (before, after)]
    if ways[0] != ways[1] and {"repetition"} in ways:
        counts = [
            _launches_in_steps(programs) / sum(len(one.steps) for one in programs) for programs in (before, after)
        ]
        if max(counts) > _ALIKE * min(counts):
            return False, ["one side repeats parts of what the other marks as steps: whole programs are compared"]
    return True, []


def _launches_in_steps(programs: Iterable[Program]) -> int:
    return sum(step.launches for one in programs for step in one.steps)


def _outside(
    before: Sequence[Program], after: Sequence[Program], labels: tuple[str, str], *, is_per_step: bool
) -> Iterator[str]:
    """Warn of launches that belong to no step, where they are many."""
    if not is_per_step:
        return
    for programs, label in zip((before, after), labels, strict=True):
        whole = sum(one.launches for one in programs)
        left = whole - _launches_in_steps(programs)
        if left > whole / 100:
            yield f"{label}: {left:,} of {whole:,} launches belong to no step, and are left out"


_ADDED = (
    "a printed summary does not say when kernels ran: their times are added up on both sides, without idle time and "
    "overlaps"
)


class _SideTimelines:
    """The timelines of one side, with the unit that all of its times are in: a step or a program, of a rank."""

    def __init__(self, programs: Sequence[Program], label: str, *, is_per_step: bool, has_totals: bool) -> None:
        self.programs, self.label, self.is_per_step, self.has_totals = programs, label, is_per_step, has_totals
        self.wall_ns = self.mean(lambda one: self.occupancy(one).wall_ns)
        self.hidden_ns = self.mean(lambda one: self._communication_ns(one) - self.occupancy(one).communication_ns)
        self.sheets = [datasheet_of(one.gpu) for one in programs]
        self.chosen = {id(row) for one in programs for row in one.kernels}
        self.outside_ns = self.mean(self._outside_ns)
        self.overlap_ns = self.mean(
            lambda one: (
                self.occupancy(one).kernels_ns - self._outside_ns(one) - sum(map(self._time_ns, _at_work((one,))))
            )
        )

    def occupancy(self, program: Program) -> TimelineOccupancy:
        """Return what ran in a program's steps, or in all of it; of printed totals, kernels one after the other."""
        if self.has_totals:
            waits_ns = sum(one.time_ns for one in program.every if one.is_communication)
            return TimelineOccupancy(program.time_ns, kernels_ns=program.time_ns - waits_ns, communication_ns=waits_ns)
        return program.steps_occupancy if self.is_per_step and program.steps_occupancy else program.occupancy

    def mean(self, of: Callable[[Program], float]) -> float:
        """Return a quantity of a step or program, as a mean over ranks."""
        return sum(of(one) / self._units(one) for one in self.programs) / len(self.programs)

    def samples(self, of_steps: Callable[[Program], Sequence[float]], whole: float) -> tuple[float, ...]:
        """Return a quantity in groups of consecutive steps, as a mean over ranks; without steps the whole."""
        if not self.is_per_step:
            return (whole,)
        each = [of_steps(one) for one in self.programs]
        means = [sum(values) / len(values) for values in zip(*each, strict=False)]
        groups = min(len(means), MOST_SAMPLES)
        bounds = [len(means) * at // groups for at in range(groups + 1)]
        return tuple(median(means[low:high]) for low, high in pairwise(bounds))

    def amount(self, rows: Sequence[tuple[int, ProgramKernel]]) -> SideAmount:
        """Sum up rows, each with the place of its program."""
        time_ns = self._sum(rows, lambda one: float(one.time_ns), lambda one: float(sum(_times_in_steps(one))))
        of_each: defaultdict[int, list[ProgramKernel]] = defaultdict(list)
        for place, row in rows:
            of_each[place].append(row)
        places = {id(program): place for place, program in enumerate(self.programs)}

        def of_steps(program: Program) -> Sequence[float]:
            own = of_each.get(places[id(program)], ())
            return [sum(values) for values in zip(*map(_times_in_steps, own), strict=True)] or [0.0] * len(
                program.steps
            )

        return SideAmount(
            time_ns,
            self._sum(rows, lambda one: float(one.count), lambda one: float(one.in_steps.count if one.in_steps else 0)),
            time_ns / self.wall_ns if self.wall_ns else 0.0,
            self._floor(rows, lambda one: one.floor_ns),
            self._floor(rows, lambda one: one.floor_cold_ns),
            self.samples(of_steps, time_ns),
        )

    def part(self, of: Callable[[TimelineOccupancy], int], launches: float = 0.0) -> SideAmount | None:
        """Return a part of the time; None if there is none of it."""
        time_ns = self.mean(lambda one: of(self.occupancy(one)))
        if not time_ns:
            return None
        samples = self.samples(lambda one: [of(step.occupancy) for step in one.steps], time_ns)
        return SideAmount(time_ns, launches, time_ns / self.wall_ns if self.wall_ns else 0.0, samples_ns=samples)

    def rest(self, time_ns: float) -> SideAmount | None:
        """Return a time of which no more is known; None if there is none of it."""
        return SideAmount(time_ns, share=time_ns / self.wall_ns if self.wall_ns else 0.0) if time_ns else None

    def rows(self) -> Iterator[tuple[int, ProgramKernel]]:
        """Yield all rows that do not wait for other GPUs and belong to what is compared, with the place of each."""
        for place, program in enumerate(self.programs):
            for one in _at_work((program,)):
                if not self.is_per_step or (one.in_steps and one.in_steps.count):
                    yield place, one

    def communication(self) -> SideAmount | None:
        """Return the communication that nothing hides, with all of its launches."""
        rows = [(place, one) for place, program in enumerate(self.programs) for one in program.every]
        launches = self.amount([row for row in rows if row[1].is_communication]).launches
        return self.part(lambda one: one.communication_ns, launches)

    def unchosen(self) -> SideAmount | None:
        """Return the kernels at work that were not chosen."""
        rows = [row for row in self.rows() if id(row[1]) not in self.chosen]
        return self.amount(rows) if rows else None

    def record(self) -> ComparedSide:
        """Return what is told of it."""
        steps = sum(len(one.steps) for one in self.programs) if self.is_per_step else None
        samples = self.samples(lambda one: [step.occupancy.wall_ns for step in one.steps], self.wall_ns)
        launches = self.mean(lambda one: _launches_in_steps((one,)) if self.is_per_step else one.launches)
        return ComparedSide(self.label, tuple(self.programs), steps, self.wall_ns, samples, launches)

    def _units(self, program: Program) -> int:
        return len(program.steps) if self.is_per_step else 1

    def _time_ns(self, kernel: ProgramKernel) -> float:
        return sum(_times_in_steps(kernel)) if self.is_per_step else kernel.time_ns

    def _outside_ns(self, program: Program) -> float:
        return program.outside_ns if self.is_per_step else 0.0

    def _communication_ns(self, program: Program) -> float:
        return sum(self._time_ns(one) for one in program.every if one.is_communication)

    def _sum(
        self,
        rows: Sequence[tuple[int, ProgramKernel]],
        whole: Callable[[ProgramKernel], float],
        stepped: Callable[[ProgramKernel], float],
    ) -> float:
        of = stepped if self.is_per_step else whole
        return sum(of(one) / self._units(self.programs[place]) for place, one in rows) / len(self.programs)

    def _floor(
        self, rows: Sequence[tuple[int, ProgramKernel]], of: Callable[[ProgramKernel], float | None]
    ) -> float | None:
        """Sum up floors, for the part of the launches that is compared; None if one is not known."""
        if any(of(one) is None for _, one in rows):
            return None
        return self._sum(
            rows,
            lambda one: of(one) or 0.0,
            lambda one: (of(one) or 0.0) * (one.in_steps.count if one.in_steps else 0) / one.count,
        )


def _times_in_steps(kernel: ProgramKernel) -> Sequence[float]:
    return kernel.in_steps.times_ns if kernel.in_steps else ()


def _operators(base: _SideTimelines, head: _SideTimelines, *, by_function: bool) -> Iterator[RowChange]:
    groups: defaultdict[str, tuple[list[tuple[int, ProgramKernel]], list[tuple[int, ProgramKernel]]]]
    groups = defaultdict(lambda: ([], []))
    for at, side in enumerate((base, head)):
        for row in side.rows():
            if id(row[1]) not in side.chosen:
                continue
            groups[_row_key(row[1], by_function=by_function)][at].append(row)
    for name, (before, after) in groups.items():
        kernels = sorted(_matched_kernels(base, head, before, after), key=_by_difference)
        one, other = (side.amount(rows) if rows else None for side, rows in ((base, before), (head, after)))
        yield RowChange("operator", name, one, other, tuple(kernels))


_Rows = Sequence[tuple[int, ProgramKernel]]

_ROUNDS: tuple[tuple[How, Callable[[ProgramKernel], tuple[object, ...]]], ...] = (
    ("same", lambda one: (normal_name(one.name), one.shape, one.dtype, _where(one))),
    ("other module", lambda one: (normal_name(one.name), one.shape, one.dtype)),
    ("other kernel", lambda one: (one.shape, one.dtype) if one.shape else (one.function,)),
    ("other shape", lambda one: (normal_name(one.name),)),
    ("other kernel and shape", lambda _: ()),
)
"""How kernels of one operator are matched, the surest way first."""


def _where(kernel: ProgramKernel) -> str | None:
    return kernel.module or kernel.nvtx_range


def _matched_kernels(
    base: _SideTimelines, head: _SideTimelines, before: _Rows, after: _Rows
) -> Iterator[MatchedKernels]:
    """Pair the kernels of an operator on both sides by name."""
    left = [[*before], [*after]]
    for how, key in _ROUNDS:
        buckets: list[defaultdict[tuple[object, ...], list[tuple[int, ProgramKernel]]]]
        buckets = [defaultdict(list), defaultdict(list)]
        for bucket, rows in zip(buckets, left, strict=True):
            for row in rows:
                bucket[key(row[1])].append(row)
        shared = buckets[0].keys() & buckets[1].keys()
        for one in (at for at in buckets[0] if at in shared):  # in the order of rows: a set's own differs by process
            yield _matched_kernel(how, base, head, buckets[0][one], buckets[1][one])
        left = [[row for one, rows in bucket.items() if one not in shared for row in rows] for bucket in buckets]
    for own in _alike_rows(left[0]):
        yield _matched_kernel("gone", base, head, own, ())
    for own in _alike_rows(left[1]):
        yield _matched_kernel("new", base, head, (), own)


def _alike_rows(rows: _Rows) -> Iterable[_Rows]:
    """Group the rows that the first round of matching takes for one kernel."""
    found: defaultdict[tuple[object, ...], list[tuple[int, ProgramKernel]]] = defaultdict(list)
    for row in rows:
        found[_ROUNDS[0][1](row[1])].append(row)
    return found.values()


def _matched_kernel(
    how: How, base: _SideTimelines, head: _SideTimelines, before: _Rows, after: _Rows
) -> MatchedKernels:
    """Compare matched kernels; names are those of the ones with most time."""
    one, other = (max((row for _, row in rows), key=lambda row: row.time_ns, default=None) for rows in (before, after))
    _, shown = max(after or before, key=lambda row: row[1].time_ns)
    return MatchedKernels(
        how,
        shown.name,
        one.name if one and other and normal_name(one.name) != normal_name(other.name) else None,
        shown.operator,
        _where(shown),
        shown.shape,
        one.shape if one and other and one.shape != other.shape else None,
        shown.dtype,
        base.amount(before) if before else None,
        head.amount(after) if after else None,
        (_ridge(base, before), _ridge(head, after)),
        tuple(row for _, row in (*before, *after)),
    )


def _ridge(side: _SideTimelines, rows: _Rows) -> Ridge | None:
    """Say on which side of the ridge the work of some kernels is, if that is one work."""
    works = {(one.flop, one.moved_bytes, one.peak) for _, one in rows if one.peak}
    sheet = side.sheets[0] if len({one.gpu for one in side.programs}) == 1 else None
    if len(works) != 1:
        return None
    ((flop, moved_bytes, peak),) = works
    if not flop or not moved_bytes or sheet is None or (ridge := ridge_of(sheet, peak)) is None:
        return None
    intensity = flop / moved_bytes
    return Ridge("compute" if intensity >= ridge else "memory", intensity, ridge, peak)


def ridge_of(sheet: Datasheet, peak: str) -> float | None:
    """Return the FLOPs per byte from which on a peak of a GPU limits, not its memory; None if it lacks that peak."""
    if peak not in sheet.peaks or not sheet.dram_bandwidth.value:
        return None
    return sheet.peaks[peak].value / sheet.dram_bandwidth.value


def _other_changes(base: _SideTimelines, head: _SideTimelines) -> Iterator[RowChange]:
    """Compare what is no kernel at work; all rows together are the time of the step or program."""
    parts: tuple[tuple[What, str, Callable[[_SideTimelines], SideAmount | None]], ...] = (
        ("communication", "exposed communication", _SideTimelines.communication),
        ("copies", "exposed copies", lambda side: side.part(lambda one: one.copies_ns)),
        ("graphs", "graphs", lambda side: side.part(lambda one: one.graphs_ns)),
        ("unknown", "graphs not recorded", lambda side: side.part(lambda one: one.unknown_ns)),
        ("idle", "idle", lambda side: side.part(lambda one: one.idle_ns)),
        ("outside", "kernels of no step", lambda side: side.rest(side.outside_ns)),
        ("unchosen", "kernels not chosen", _SideTimelines.unchosen),
        ("overlap", "overlap of kernels", lambda side: side.rest(side.overlap_ns)),
    )
    for what, name, of in parts:
        one, other = of(base), of(head)
        if one or other:
            yield RowChange(what, name, one, other)


def _ranks(base: _SideTimelines, head: _SideTimelines) -> tuple[RankChange, ...]:
    found = []
    for before, after in zip(base.programs, head.programs, strict=True):
        walls = [
            side.occupancy(one).wall_ns / (len(one.steps) if side.is_per_step else 1)
            for side, one in ((base, before), (head, after))
        ]
        found.append(RankChange(rank_of(before), *walls))
    return tuple(found)


def _present_amounts(*amounts: SideAmount | None) -> list[SideAmount]:
    return [one for one in amounts if one is not None]


def _lost(base: SideAmount | None, head: SideAmount | None) -> float:
    return (head.time_ns if head else 0.0) - (base.time_ns if base else 0.0)


def _by_difference(change: RowChange | MatchedKernels) -> tuple[float, str]:
    return -abs(change.lost_ns), change.name
