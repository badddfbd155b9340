"""All facts about a kernel in one record: each stage reads what the stages before it added."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.records import (
    Bottleneck,
    Confidence,
    Does,
    Evidence,
    Kernel,
    Level,
    Limit,
    Outside,
    Phases,
    Pipe,
    ratio,
)
from rooflens.model.roofline.flops import Flops, tensor_pipe_top
from rooflens.model.roofline.roof import dram_clock_part
from rooflens.model.verdict.thresholds import Thresholds
from rooflens.model.verdict_classes import Bound


class Facts(Struct, frozen=True):
    """One kernel: its levels and pipes, then its class and limit (`decide`), which findings and words are made of.

    Attributes:
        shares: Share of each level and pipe that was measured, by name.
        stall_shares: Part of a warp's time by stall reason (`rooflens.model.findings.stalls`).
        library: The library that it is part of; None if its name tells none.
        flags: Traps that apply to it, sorted.
        phases: How its run divides; None without a series.
        outside: What is known of it from outside its profile.
        memory: The busiest memory level; None if nothing is known of memory.
        compute: The busiest pipe; None if nothing is known of compute.
        sides: Both of these as far as known, the busier one first.
        limiter: The unit that bounds it; None for latency, overhead and unknown.
        at_roof: The limiter is full.
        top_share: The largest share of any unit, 0 to 1; None if none is known, or an unseen one may be larger.
        unseen: Sides that were not measured and may be busier than all that was; named as their classes are.
        unmeasured: What of them: levels, `other pipes`, or a side where nothing of it was measured.
        or_bound: The classes that these could turn the kernel's into.
        room: How much faster its busiest unit would have the same work done; None if that says nothing.
        does: What it already does.
        confidence: How far the counters carry the class.
        full_for_a_while: The series named the limiter: it is full on the plateau of the run, and no unit is on average.
    """

    kernel: Kernel
    levels: Mapping[str, Level]
    pipes: Mapping[str, Pipe]
    shares: Mapping[str, float]
    stall_shares: Mapping[str, float]
    limits: Thresholds
    library: str | None = None
    flops: Flops = Flops((), complete=False, flags=frozenset())
    flags: tuple[str, ...] = ()
    phases: Phases | None = None
    outside: Outside = Outside()
    memory: Bottleneck | None = None
    compute: Bottleneck | None = None
    sides: tuple[Bottleneck, ...] = ()
    bound: Bound = "unknown"
    limiter: Bottleneck | None = None
    at_roof: bool = False
    top_share: float | None = None
    unseen: tuple[Bound, ...] = ()
    unmeasured: tuple[str, ...] = ()
    or_bound: tuple[Bound, ...] = ()
    room: float | None = None
    full_for_a_while: bool = False
    limit: Limit = Limit()
    does: Does = Does()
    confidence: Confidence = "low"

    @property
    def is_nearly_alone(self) -> bool:
        """Whether the launch leaves nearly the whole GPU idle for far longer than a launch takes.

        So it does with a block for fewer than a tenth of the SMs, or with no more threads than a warp has.
        """
        blocks, sms, size = map(self.counter, ("grid_size", "sm_count", "block_size"))
        an_sm = ratio(blocks, sms)
        is_a_warp = bool(blocks and size and blocks * size <= WARP_THREADS)
        return self.is_long and (is_a_warp or (an_sm is not None and 0 < an_sm < self.limits.little_share))

    @property
    def is_long(self) -> bool:
        """Whether it runs for far longer than a launch takes."""
        return (self.kernel.duration_ns or 0.0) * self.limits.little_share >= self.limits.overhead_duration_ns

    def counter(self, name: str) -> float | None:
        """Return a resolved counter; None if the report does not hold it."""
        return self.kernel.counters.get(name)

    @property
    def tensor_share(self) -> float | None:
        """How busy the tensor pipe is: of the time or, where only that is known, of the time in which SMs have work.

        Of what it can be: GeForce boards of some chips add in fp32 at half of the rate that their counter is against.
        """
        share = self.shares.get("tensor_pipe", self.counter("tensor_active_share"))
        return None if share is None else min(1.0, share / tensor_pipe_top(self.kernel))

    @property
    def tensor_use(self) -> float | None:
        """The same, else what NVIDIA's summary says of the busiest pipe, if that is the tensor pipe."""
        if self.tensor_share is None and self.compute is not None and self.compute.resource == "tensor_pipe":
            return self.compute.share
        return self.tensor_share

    def measured(self, name: str, unit: str, counter: str | None = None) -> Evidence:
        """Make a resolved counter evidence, with the stored metrics it came from.

        Raises:
            KeyError: The counter is not resolved.
        """
        counter = counter or name
        return Evidence(name, self.kernel.counters[counter], unit, self.kernel.counter_sources.get(counter, counter))

    def without_wait(self, factor: float) -> float | None:
        """Hold the gain of a wait that goes to what the busiest unit allows; None for kernels as short as their launch.

        In so short a time a wait cannot be separated from the launch, and nothing gets shorter than a launch
        either. None, too, for a factor that says nothing because no unit does anything, unless a launch leaves little.
        """
        time_ns, room, limits = self.kernel.duration_ns, self.room, self.limits
        if time_ns is None or time_ns < limits.overhead_duration_ns:
            return None
        # A plain copy leaves a tenth of DRAM's peak: a kernel that fills it gets no farther.
        side = self.memory.share if self.memory is not None and self.memory.resource == "dram" else 0.0
        dram = (self.shares.get("dram") or side) * dram_clock_part(self.kernel)
        allowed = [time_ns / limits.overhead_duration_ns, limits.copy_share / dram if dram else factor]
        if room is None and factor > limits.open_room and min(allowed) >= limits.untold_gain:
            return None
        return max(1.0, min((factor, *allowed) if room is None else (factor, room, *allowed)))


def room_of(top_share: float | None, bound: Bound, open_room: float) -> float | None:
    """Return how much faster its busiest unit would have a kernel's work done; None if that says nothing.

    So it is where no unit is known, and for a kernel that waits while no unit does anything.
    """
    if not top_share or bound == "unknown":
        return None
    room = max(1.0, 1 / top_share)
    return None if bound in {"latency", "overhead"} and room > open_room else room
