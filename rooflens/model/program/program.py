"""A program as its timeline shows it: its time, its kernels by what can be won, and what is not known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.format import count
from rooflens.model.program.communication import Collecting, Communication
from rooflens.model.program.copies import Copies, copies_of
from rooflens.model.program.floors import Floors
from rooflens.model.program.fusion import Fusing, Fusion, MinorFusions
from rooflens.model.program.grouping import GroupedBy, RowGroup, grouped, unknown_operators
from rooflens.model.program.idle import Gap, Idle, causes_of
from rooflens.model.program.kernels import ProgramKernel, in_order, to_profile
from rooflens.model.program.lanes import TimelineLanes, drawn
from rooflens.model.program.launches import Launches
from rooflens.model.program.measure import measured
from rooflens.model.program.parts import Parts, parted
from rooflens.model.program.rows import KernelRows, Stretch
from rooflens.model.program.steps import Step, StepsBy
from rooflens.model.program.timeline import NSYS, Timeline
from rooflens.model.program.totals import Total
from rooflens.model.roofline.datasheets import datasheet_of, the_datasheet

if TYPE_CHECKING:
    from rooflens.model.program.occupancy import TimelineOccupancy
    from rooflens.model.selecting import Chooser
    from rooflens.model.unprofiled import Unprofiled


_LEAST_CALLS = 0.02
"""A trace with a smaller part of CUDA's calls may be a sample; whole ones were seen to hold a fifth and more."""


class Program(Struct, frozen=True):
    """A program as its timeline shows it.

    Attributes:
        source, kind: The timeline, and which tool recorded it.
        gpu: Name of the GPU in the timeline, or else of the given one; None without either.
        has_datasheet: Whether the peaks of that GPU are known.
        unprofiled: Its time, gaps and overlaps.
        occupancy: What ran, each instant counted once; all zero of a printed summary, which does not say when.
        idle: The causes of its idle time, most first; they add up to it.
        copies: Its copies and memsets by direction and kind of memory, most time first.
        longest_gaps: Its longest gaps, the longest first.
        graph_hint: How to record what ran in graphs; None where all of it is known.
        calls_share: As in `Timeline`.
        kernels: The selected kernels: most to win first; then those with an unknown gain, by time; then those that wait
            for other GPUs, and those at their floor.
        every: All kernels, selected or not.
        communication: The kernels that wait for other GPUs; None if there are none.
        stretches: Launch-bound stretches, most idle time first.
        notes: What was left out of the timeline, and what is missing for floors.
        is_synthetic: A generator wrote the timeline.
        rank: Rank of the recorded process; None if unknown.
        totals: What a printed summary added up beside the kernels; empty of a timeline.
        fusions: Pairs of operators that could be one kernel, most to save first.
        minor_fusions: Pairs that save too little for that.
        steps: Its steps, in order; empty if none were found.
        steps_by: How they were found.
        outside_ns: Time of kernels that belong to no step, between the first step and the end of the last.
        steps_occupancy: What ran in its steps, each instant counted once; None if it has none.
        lanes: When each stream ran what; None if it is not to be drawn.
    """

    source: str
    kind: str
    gpu: str | None
    has_datasheet: bool
    unprofiled: Unprofiled
    occupancy: TimelineOccupancy
    kernels: tuple[ProgramKernel, ...]
    every: tuple[ProgramKernel, ...]
    stretches: tuple[Stretch, ...]
    communication: Communication | None = None
    notes: tuple[str, ...] = ()
    is_synthetic: bool = False
    rank: int | None = None
    idle: tuple[Idle, ...] = ()
    longest_gaps: tuple[Gap, ...] = ()
    copies: tuple[Copies, ...] = ()
    graph_hint: str | None = None
    calls_share: float | None = None
    totals: tuple[Total, ...] = ()
    fusions: tuple[Fusion, ...] = ()
    minor_fusions: MinorFusions = MinorFusions()
    steps: tuple[Step, ...] = ()
    steps_by: StepsBy | None = None
    outside_ns: int = 0
    steps_occupancy: TimelineOccupancy | None = None
    lanes: TimelineLanes | None = None

    def __repr__(self) -> str:
        return f"<Program of {self.source}: {count(len(self.kernels), 'row')}, {count(self.launches, 'launch')}>"

    @property
    def parts(self) -> Parts:
        """Where its time goes: parts that add up to it."""
        return parted(self.occupancy, self.every, self.idle)

    @property
    def time_ns(self) -> int:
        """The sum of all launch times."""
        return sum(one.time_ns for one in self.every)

    @property
    def launches(self) -> int:
        """How many launches there are."""
        return sum(one.count for one in self.every)

    @property
    def gain_ns(self) -> float | None:
        """What can be won in kernels with a known gain, at most; None if none has one."""
        gains = [one.gain_ns for one in self.every if one.gain_ns is not None and not one.is_communication]
        return sum(gains) if gains else None

    @property
    def whole_ns(self) -> int:
        """What shares are of: the program's time; of a printed summary, which lacks that, the time of all launches."""
        return self.occupancy.wall_ns or self.time_ns

    @property
    def known_share(self) -> float:
        """Part of the time of all kernels that has a floor."""
        return self._part_of_kernels([one for one in self.every if one.floor_ns is not None])

    @property
    def open_share(self) -> float:
        """Part of the time of all kernels whose gain is unknown."""
        return self._part_of_kernels([one for one in self.every if one.by == "time"])

    def _part_of_kernels(self, kernels: Sequence[ProgramKernel]) -> float:
        return sum(one.time_ns for one in kernels) / self.time_ns if self.time_ns else 0.0

    @property
    def unknown(self) -> tuple[RowGroup, ...]:
        """Operators without a floor that do not wait for other GPUs, most time first."""
        return unknown_operators(self.every)

    @property
    def may_be_sample(self) -> bool:
        """Whether it lacks most calls of CUDA, as no profiler leaves out by itself: then gaps may be what it lacks."""
        return self.calls_share is not None and self.calls_share < _LEAST_CALLS

    @property
    def lacks_sizes(self) -> bool:
        """Whether it names operators but not their sizes, which the profiler records only on request."""
        is_traced = self.unprofiled.wall_ns is not None
        return is_traced and any(one.operator for one in self.every) and not any(one.shape for one in self.every)

    def grouped(self, by: GroupedBy) -> tuple[RowGroup, ...]:
        """Sum the selected kernels up by operator, module, kernel or shape, most time first."""
        return grouped(self.kernels, by)

    @property
    def next(self) -> tuple[ProgramKernel, ...]:
        """The kernels to profile."""
        return to_profile(self.kernels)


def read_program(
    timeline: Timeline, gpu: str | None = None, chooser: Chooser | None = None, *, is_drawn: bool = False
) -> Program:
    """Read a timeline once, and rank its kernels by what can be won.

    Args:
        timeline: What was recorded.
        gpu: Name of the GPU, for a timeline that names none with known peaks.
        chooser: Selects kernels by name and open NVTX ranges; all by default. Totals and shares are those of the whole
            program.
        is_drawn: Collect when each stream ran what, too.

    Raises:
        UsageError: No GPU has that name, or several do.
        InputError: The timeline is damaged.
    """
    given = None if gpu is None else the_datasheet(gpu)
    launches = Launches.of(timeline.kernels)
    rows = KernelRows(launches, chooser)
    summed_up = measured(timeline, launches, rows.of_kinds)
    idle_ns = rows.follow(summed_up.gaps)
    collecting = Collecting(timeline, launches, [row.is_communication for row in rows.of_kinds], idle_ns)
    wall_ns = summed_up.occupancy.wall_ns
    own = datasheet_of(timeline.gpu)
    sheet = own or given
    notes = [*timeline.notes]
    if sheet is None:
        named = f"the peaks of `{timeline.gpu}` are unknown" if timeline.gpu else "the timeline does not name one GPU"
        notes.append(f"{named}, so that no kernel has a floor: `--gpu NAME` gives it")
    elif own and given and own.id != given.id:
        notes.append(f"--gpu {given.id} is not used: the timeline names {timeline.gpu}")
    steps = rows.steps(timeline.others)
    kernels, wanted = rows.kernels(sheet, steps, wall_ns)
    if sheet is not None and not any(one.shape for one in kernels):
        how = "an nsys export has none" if timeline.kind == NSYS else "`record_shapes=True` records them"
        notes.append(f"the timeline has no operator sizes, so no kernel has a floor: {how}")
    if rows.odd_count:
        notes.append(
            f"{count(rows.odd_count, 'launch')} of operators with operands that PyTorch does not write, and without a "
            "floor: the trace is damaged, or was changed"
        )
    if sheet is not None and rows.impossible_count:
        notes.append(
            f"{count(rows.impossible_count, 'launch')} took less than the peaks of {sheet.name} allow, and have no "
            "floor: it ran on another GPU, or the operator does less than its sizes say"
        )
    idle, longest_gaps = causes_of(summed_up.gaps, timeline.host, wall_ns)
    fusions, minor_fusions = Fusing(launches).fusions(sheet, Floors(sheet), wall_ns)
    first_ns = launches.starts[0] if len(launches) else 0
    return Program(
        source=timeline.source,
        kind=timeline.kind,
        gpu=timeline.gpu if own or sheet is None else sheet.name,
        has_datasheet=sheet is not None,
        unprofiled=summed_up.unprofiled,
        occupancy=summed_up.occupancy,
        kernels=in_order(wanted),
        every=in_order(kernels),
        stretches=rows.stretches(),
        communication=collecting.communication(wall_ns, sheet),
        notes=(*notes, *(("it was written by a generator, not recorded on a GPU",) if timeline.is_synthetic else ())),
        is_synthetic=timeline.is_synthetic,
        rank=timeline.rank,
        idle=idle,
        longest_gaps=tuple(one.placed(first_ns, steps.each) for one in longest_gaps),
        copies=copies_of(timeline.others),
        fusions=fusions,
        minor_fusions=minor_fusions,
        graph_hint=timeline.graph_hint,
        calls_share=timeline.calls_share,
        steps=steps.each,
        steps_by=steps.by,
        outside_ns=steps.outside_ns,
        steps_occupancy=steps.occupancy,
        lanes=drawn(launches, timeline.others, [row.index for row in rows.of_kinds], {one.name for one in steps.each})
        if is_drawn
        else None,
    )
