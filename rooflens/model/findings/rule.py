"""What a rule of the findings is: it reads the facts of one kernel and says what it found, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rooflens.model.hotspots import places
from rooflens.model.records import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflens.model.records import (
        Bottleneck,
        Bound,
        Confidence,
        Distances,
        Kernel,
        Level,
        Phases,
        Pipe,
        Place,
        Severity,
    )
    from rooflens.model.unprofiled import InProgram
    from rooflens.model.verdict.thresholds import Thresholds

LATENCY = "latency"
"""Among what a finding bears on: a kernel that waits, where no unit is full."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule may read: everything that is known of one kernel before its findings.

    Attributes:
        bound: The class of the verdict, decided before.
        wall: The resource of the wall; None for latency, overhead and unknown.
        at_roof: The wall's resource is full.
        in_program: A typical launch of it without the profiler; None where none was timed.
    """

    kernel: Kernel
    levels: Mapping[str, Level]
    pipes: Mapping[str, Pipe]
    flags: tuple[str, ...]
    bound: Bound
    wall: Bottleneck | None
    at_roof: bool
    distances: Distances
    limits: Thresholds
    phases: Phases | None = None
    in_program: InProgram | None = None

    def counter(self, name: str) -> float | None:
        """Return a resolved counter; None where the report does not hold it."""
        return self.kernel.counters.get(name)

    def share(self, resource: str) -> float | None:
        """Return the share of a level or pipe; None where not measured."""
        place = self.levels.get(resource) or self.pipes.get(resource)
        return place.share if place else None

    def measured(self, name: str, unit: str, counter: str | None = None) -> Evidence:
        """Make a resolved counter evidence, with the stored metrics it came from.

        Raises:
            KeyError: The counter is not resolved.
        """
        counter = counter or name
        return Evidence(name, self.kernel.counters[counter], unit, self.kernel.counter_sources.get(counter, counter))

    def without_wait(self, factor: float) -> float | None:
        """Hold the speed-up of a wait to what the busiest unit allows; None for kernels as short as their launch.

        Of their time nobody can tell what a wait costs and what the launch.
        """
        time_ns, headroom = self.kernel.duration_ns, self.distances.headroom
        if time_ns is None or time_ns < self.limits.overhead_duration_ns:
            return None
        return max(1.0, factor if headroom is None else min(factor, headroom))

    def places(self, measure: str) -> tuple[Place, ...]:
        """Return the lines, or where there are none the instructions, with most of a measure; at most three."""
        return places(self.kernel, measure)


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule found.

    Attributes:
        bears_on: Levels and pipes that this waste keeps busy, and `LATENCY` where it makes warps wait: it limits a
            kernel that one of them bounds.
        speedup_up_to: How much faster if this waste alone went, as a factor; None where that cannot be bounded.
        severity: Where the rule knows better than what it bears on tells; None otherwise.
    """

    evidence: tuple[Evidence, ...]
    move: str
    bears_on: frozenset[str] = field(default_factory=frozenset)
    speedup_up_to: float | None = None
    where: tuple[Place, ...] = ()
    confidence: Confidence = "high"
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class FindingRule:
    """One row of the table of findings.

    Attributes:
        title: A few words for people: `uncoalesced global loads`.
        find: Returns None where the waste is not there or cannot be told. Its docstring is the rule's documentation.
        needs: Groups of counters, or of `hotspots`, `series` and `stalls`: with all of any one group it can tell.
    """

    id: str
    title: str
    find: Callable[[Facts], Found | None]
    needs: tuple[tuple[str, ...], ...]
