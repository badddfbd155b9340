"""The rows of a program: a kernel by one operator with one shape, what it is ranked by, and which to profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.keys import bare_name, function_of
from rooflens.model.program.steps import RowSteps
from rooflens.model.verdict_classes import shown_class

if TYPE_CHECKING:
    from rooflens.model.records import Analysis
    from rooflens.model.unprofiled import Shape
    from rooflens.model.verdict_classes import Bound, ShownClass

Caches = Literal["cold", "warm", "partly"]

By = Literal["gain", "limit", "time", "communication", "floor"]
"""What a kernel is ranked by: what its best move wins, the time above its floor, all of its time because neither is
known; those that wait for other GPUs, and those at their floor, come last."""

_GROUPS: dict[By, int] = {"gain": 0, "limit": 0, "time": 1, "communication": 2, "floor": 3}

PROFILED = 3
"""How many kernels to profile next are named."""


class OfShape(Struct, frozen=True):
    """The launches of a row with the same grid and block, and the sum of their times."""

    grid: Shape
    block: Shape
    count: int
    time_ns: int


class OfModule(Struct, frozen=True):
    """The launches of a row in one module; numbered modules of a kind are one. The module is None where unknown."""

    module: str | None
    count: int
    time_ns: int


class ProgramKernel(Struct, frozen=True):
    """All launches of a kernel by one operator with one shape.

    Attributes:
        name: As in the timeline, with parameters if it has them.
        count: Launches.
        time_ns: The sum of their times.
        share: `wall_ns` over the program's time; of a printed summary, which lacks that, `time_ns` over the time of all
            launches; None for what waits for other GPUs on a timeline: `Communication` has its exposed part.
        launch_ns: The median launch; of totals without a median the mean.
        gap_ns: How long the GPU was idle before these launches, summed; None if unknown.
        grid, block: Of most launches.
        operator: The operator that launched it.
        shape: Sizes of the operator's tensors, argument by argument: `[2048, 256] [256, 512]`; None if unknown.
        dtype: Types of these tensors, each once: `float`.
        module, code, nvtx_range: Origin of most of its time; `Block_*` for several numbered ones.
        flop, moved_bytes: What one call must compute and move; None if operator or sizes do not tell.
        limited_by: What sets the floor: `memory`, `compute`.
        floor_ns: The floor of all launches, for the caches in `caches`; None if unknown.
        floor_cold_ns: Their floor from cold caches.
        caches: `cold`; where they took less, `warm` if operands and result fit in L2, else `partly`.
        gain_ns: Time above the cold floor and above the time to launch; if `measured` is known, what its first move
            wins, or the time above its limit; None if unknown.
        bound, or_bound: Its class, `overhead` if gaps outweigh it, and what else it may be.
        launch: Index of a typical launch among the program's launches of its function, from 0; None if unknown.
        is_communication: It waits for other GPUs.
        calls: Calls of the operator, with a fraction if several kernels share one; None if no floor is known.
        peak: The peak behind its floor: `tensor_fp16`; None if no floor is known.
        shapes: Its launches by grid and block, most time first.
        modules: Its launches by module, most time first.
        wall_ns: Its part of the program's time: an instant in which several kernels run is shared among them; what
            waits for other GPUs has none; None if unknown.
        numbers: What its launches are called in `Lanes`.
        measured: The median launch of the same kernel in a report beside the timeline; None if no report has it.
        in_steps: Those of its launches that belong to steps of the program; None if that has none.
    """

    name: str
    count: int
    time_ns: int
    share: float | None
    launch_ns: int
    gap_ns: int | None
    grid: Shape
    block: Shape
    operator: str | None
    shape: str | None
    dtype: str | None
    module: str | None
    code: str | None
    nvtx_range: str | None
    flop: float | None
    moved_bytes: float | None
    limited_by: str | None
    floor_ns: float | None
    floor_cold_ns: float | None
    caches: Caches | None
    gain_ns: float | None
    bound: Bound
    or_bound: tuple[Bound, ...]
    launch: int | None
    is_communication: bool
    calls: float | None = None
    peak: str | None = None
    shapes: tuple[OfShape, ...] = ()
    modules: tuple[OfModule, ...] = ()
    wall_ns: float | None = 0.0
    numbers: tuple[int, ...] = ()
    measured: Analysis | None = None
    in_steps: RowSteps | None = None

    @property
    def identity(self) -> tuple[str | None, ...]:
        """What makes it the same kernel in several timelines: name, operator, sizes and types."""
        return self.name, self.operator, self.shape, self.dtype

    @property
    def by(self) -> By:
        """What a row is ranked by: the kind of its bound on what can be won."""
        if self.is_communication:
            return "communication"
        if self.gain_ns is None:
            return "time"
        if not self.gain_ns:
            return "floor"
        return "gain" if self.measured is not None and self.measured.verdict.gain is not None else "limit"

    @property
    def shown_class(self) -> ShownClass | Literal["communication"]:
        """Its class as every output shows it: open without a report, as nothing was counted."""
        if self.is_communication:
            return "communication"
        if self.bound == "unknown" and self.measured is None:
            return shown_class(self.or_bound[0], self.or_bound) if len(self.or_bound) == 1 else "unknown"
        return shown_class(self.bound, self.or_bound)

    @property
    def stake_ns(self) -> float:
        """The most that can be won: the gain, or all of its time if that is unknown; 0 if it waits for other GPUs."""
        if self.is_communication:
            return 0.0
        return float(self.time_ns) if self.gain_ns is None else self.gain_ns

    @property
    def function(self) -> str:
        """Its name as ncu's filter matches it: without namespaces, template arguments and parameters."""
        return function_of(bare_name(self.name))


class AtStake(NamedTuple):
    """A kernel that a report may say more of.

    Attributes:
        row: Its row with most at stake.
        stake_ns: What may be won in all of its rows at most, of the program's time where that is known.
        open_ns: The part of it that is of rows without a known gain.
    """

    row: ProgramKernel
    stake_ns: float
    open_ns: float


def at_stake(kernels: Iterable[ProgramKernel]) -> Iterator[AtStake]:
    """Yield the kernels worth profiling, one per function, most at stake first.

    Those that wait for other GPUs or are in a report already are skipped, as are operators that stand for all theirs.
    """
    rows: defaultdict[str, list[tuple[float, ProgramKernel]]] = defaultdict(list)
    for one in kernels:
        if one.stake_ns > 0 and one.measured is None and one.name != one.operator:
            alone = one.wall_ns / one.time_ns if one.wall_ns and one.time_ns else 1.0
            rows[one.name].append((one.stake_ns * alone, one))
    stakes = [
        AtStake(
            max(same, key=itemgetter(0))[1],
            sum(stake_ns for stake_ns, _ in same),
            sum(stake_ns for stake_ns, row in same if row.gain_ns is None),
        )
        for same in rows.values()
    ]
    functions: dict[str, AtStake] = {}
    for stake in sorted(stakes, key=lambda one: -one.stake_ns):
        functions.setdefault(stake.row.function, stake)
    yield from functions.values()


def to_profile(kernels: Sequence[ProgramKernel]) -> tuple[ProgramKernel, ...]:
    """Return the kernels to profile, one per function, most at stake first."""
    return tuple(one.row for one in islice(at_stake(kernels), PROFILED))


def in_order(kernels: Sequence[ProgramKernel]) -> tuple[ProgramKernel, ...]:
    """Sort kernels: by gain; then those with an unknown gain by time; then the rest."""
    return tuple(sorted(kernels, key=lambda one: (_GROUPS[one.by], -one.stake_ns, -one.time_ns, one.name)))


def summed(rows: Sequence[ProgramKernel]) -> ProgramKernel:
    """Sum up equal kernels; what has no sum comes from the row with most time."""
    first = max(rows, key=lambda one: one.time_ns)
    has_floors = all(one.floor_ns is not None for one in rows)
    shapes: defaultdict[tuple[object, object], list[OfShape]] = defaultdict(list)
    for row in rows:
        for shape in row.shapes:
            shapes[shape.grid, shape.block].append(shape)
    return replace(
        first,
        count=sum(one.count for one in rows),
        time_ns=sum(one.time_ns for one in rows),
        share=_sum(one.share for one in rows),
        gap_ns=None if any(one.gap_ns is None for one in rows) else sum(one.gap_ns or 0 for one in rows),
        floor_ns=_sum(one.floor_ns for one in rows) if has_floors else None,
        floor_cold_ns=_sum(one.floor_cold_ns for one in rows) if has_floors else None,
        calls=_sum(one.calls for one in rows) if has_floors else None,
        caches=first.caches if has_floors else None,
        gain_ns=_sum(one.gain_ns for one in rows),
        wall_ns=_sum(one.wall_ns for one in rows),
        shapes=tuple(
            OfShape(own[0].grid, own[0].block, sum(one.count for one in own), sum(one.time_ns for one in own))
            for own in shapes.values()
        ),
        modules=_modules(rows),
        numbers=tuple(number for one in rows for number in one.numbers),
        in_steps=RowSteps.summed([one.in_steps for one in rows]),
    )


def _modules(rows: Sequence[ProgramKernel]) -> tuple[OfModule, ...]:
    """Add up the launches of several rows by module."""
    alike: defaultdict[str | None, list[OfModule]] = defaultdict(list)
    for row in rows:
        for one in row.modules:
            alike[one.module].append(one)
    found = (
        OfModule(name, sum(one.count for one in own), sum(one.time_ns for one in own)) for name, own in alike.items()
    )
    return tuple(sorted(found, key=lambda one: -one.time_ns))


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
