"""What a rule of the findings is: it reads the facts of one kernel and says what it found, or nothing.

Then it says what waste costs: the part of a kernel's time that goes with it, and how much that matters; and last what
the rules of stalls share: how much of a warp's time a reason takes, and the finding that it makes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from rooflens.format import percent, significant
from rooflens.model.counters.balance import SAMPLED_AS, STALLS
from rooflens.model.hotspots import STALL, places
from rooflens.model.records import Evidence
from rooflens.model.roofline.levels import shares_of
from rooflens.model.roofline.opcodes import executed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from rooflens.model.bounds import Bound
    from rooflens.model.records import (
        Bottleneck,
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
IDLE = "idle"
"""Among what a finding bears on: SMs that stand idle for a part of the run, whatever the others do."""

SAID = re.compile(r"Say that,? ")
"""How every docstring of a rule begins: what follows is the finding."""
_PARTS = re.compile(r"(?<=\.) (?=(?:Counters?[:,]|Source:|Confirm |It does not ))")
"""Where its counters, the way to confirm it and what it does not show begin."""
_TRY = "Try:\n"
"""What stands before the list that ends it."""

_MOST_SPARED = 0.999
"""Never is all of a kernel waste: a factor that would be infinite stays a number."""


class Facts(Struct, frozen=True):
    """What a rule may read: everything that is known of one kernel before its findings.

    Attributes:
        bound: The class of the verdict, decided before.
        wall: The resource of the wall; None for latency, overhead and unknown.
        at_roof: The wall's resource is full.
        in_program: A typical launch of it without the profiler; None where none was timed.
        full_for_a_while: The wall's unit is full on the plateau of the run, and not on average.
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
    full_for_a_while: bool = False

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

        Of their time nobody can tell what a wait costs and what the launch. None, too, for a factor that says nothing
        because no unit does anything.
        """
        time_ns, headroom = self.kernel.duration_ns, self.distances.headroom
        if time_ns is None or time_ns < self.limits.overhead_duration_ns:
            return None
        if headroom is None and factor > self.limits.open_headroom:
            return None
        return max(1.0, factor if headroom is None else min(factor, headroom))

    def places(self, measure: str) -> tuple[Place, ...]:
        """Return the lines, or where there are none the instructions, with most of a measure; at most three."""
        return places(self.kernel, measure)


class Found(Struct, frozen=True):
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


class FindingRule(Struct, frozen=True):
    """One row of the table of findings.

    Attributes:
        title: A few words for people: `uncoalesced global loads`.
        find: Returns None where the waste is not there or cannot be told. Its docstring is the rule's documentation, of
            which its page is written.
        needs: Groups of counters or other names of `OTHERS`: with all of any one group it can tell.
    """

    id: str
    title: str
    find: Callable[[Facts], Found | None]
    needs: tuple[tuple[str, ...], ...]

    def can_tell(self, held: Collection[str]) -> bool:
        """Return whether it can find anything in a kernel of which so much is known, as `held_of` names it."""
        return any(all(need in held for need in group) for group in self.needs)

    @property
    def said(self) -> tuple[str, ...]:
        """Its documentation: what it means, its counters, how to confirm it, and what it does not show."""
        return said(self.find.__doc__ or "")

    @property
    def tries(self) -> tuple[str, ...]:
        """What to try, in the order in which an expert does."""
        return tries(self.find.__doc__ or "")


CODE = "code:"
"""Prefix of what is counted by instruction, in `FindingRule.needs`: a measure of the hot spots."""
IN_PROGRAM = "in_program"
"""Among the needs: a trace of the program without the profiler."""
OTHERS = ("thread_opcodes", "warp_opcodes", "stalls", "series", "block_size", IN_PROGRAM)
"""What else findings need; the size of a block is known from its shape as well as from its counter."""

Holdings: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[bool, ...]]
"""What is known of a kernel: its counters, its measures by instruction, and whether there is each of the rest."""


def holdings_of(kernel: Kernel, *, traced: bool) -> Holdings:
    """Return what is known of a kernel, `traced` with its program; kernels that are alike in this are many."""
    opcodes, samples = (
        (bool(kernel.thread_opcodes), bool(kernel.warp_opcodes)),
        (bool(kernel.stalls), bool(kernel.series)),
    )
    return tuple(kernel.counters), tuple(kernel.code_totals), (*opcodes, *samples, bool(kernel.block), traced)


def held_of(holdings: Holdings) -> frozenset[str]:
    """Name what is known as `FindingRule.needs` does."""
    counters, by_instruction, rest = holdings
    others = (name for name, is_held in zip(OTHERS, rest, strict=True) if is_held)
    return frozenset({*counters, *(f"{CODE}{measure}" for measure in by_instruction), *others})


def said(doc: str) -> tuple[str, ...]:
    """Divide what a docstring of a rule says before its list of things to try."""
    text = SAID.sub("", _one_line(doc.partition(_TRY)[0]), count=1)
    return tuple(_PARTS.split(text[:1].upper() + text[1:]))


def tries(doc: str) -> tuple[str, ...]:
    """Return the list that ends a docstring of a rule."""
    return tuple(_one_line(one) for one in re.split(r"^ *- ", doc.partition(_TRY)[2], flags=re.MULTILINE)[1:])


def _one_line(text: str) -> str:
    return " ".join(text.split())


class Waste(Struct, frozen=True):
    """Where a waste is, and how much of what is done there it makes up.

    Attributes:
        parts: Level or pipe -> the part of its work that is waste, 0 to 1.
        waits: Part of the time in which warps wait that goes with the waste, 0 to 1, and the stalls that are
            such waits; empty where it makes no warp wait.
    """

    parts: Mapping[str, float]
    waits: float = 0.0
    stalls: tuple[str, ...] = ()

    @property
    def bears_on(self) -> frozenset[str]:
        """Return what it keeps busy, for `Found`."""
        return frozenset(self.parts) | (frozenset({LATENCY}) if self.stalls else frozenset())


def spared(facts: Facts, waste: Waste) -> float:
    """Return the part of the time that the waste costs, 0 to 1: by the unit it keeps busiest, or by the waits.

    A unit that is busy for a share s of the time, a part w of which is waste, is done s x w earlier without it. Units
    work side by side: behind a wall, one that is far from full does its work meanwhile, and its waste costs nothing.
    """
    wall = facts.wall.resource if facts.wall else None
    least = 0.0 if wall is None else facts.limits.contributing_share
    shares = {name: facts.share(name) or 0.0 for name in waste.parts}
    busy = [part * shares[name] for name, part in waste.parts.items() if name == wall or shares[name] >= least]
    waits = 0.0 if facts.at_roof else waste.waits * stalled(facts, waste.stalls)
    return min(_MOST_SPARED, max((*busy, waits), default=0.0))


def stalled(facts: Facts, reasons: Iterable[str]) -> float:
    """Return the part of the warps' waiting that is for these reasons, 0 to 1; 0 where it was not sampled."""
    return min(1.0, sum(facts.kernel.stalls.get(reason, 0.0) for reason in reasons))


def speedup(facts: Facts, waste: Waste) -> float | None:
    """Return how much faster a kernel is at most when this waste goes; None where it costs nothing that is measured.

    No unit can be done sooner than its remaining work takes: that holds where another one is nearly as busy.
    """
    part = spared(facts, waste)
    if not part:
        return None
    shares = shares_of(facts.levels, facts.pipes)
    left = max((share * (1 - waste.parts.get(name, 0.0)) for name, share in shares.items()), default=0.0)
    return max(1.0, 1 / max(1 - part, left))


def weigh(facts: Facts, waste: Waste) -> Severity:
    """Say how much a waste matters.

    It limits a kernel whose wall does much of its work in vain, or that waits for little else. It is a note where it
    costs less of the time than `contributing_cost_share`, or where a wall that is full has none of it.
    """
    limits, wall = facts.limits, facts.wall.resource if facts.wall else None
    elsewhere = facts.at_roof and wall is not None and not waste.parts.get(wall)
    if elsewhere or spared(facts, waste) < limits.contributing_cost_share:
        return "note"
    if waste.parts.get(wall or "", 0.0) >= limits.limiting_waste_share:
        return "limiter"
    waits = waste.waits * stalled(facts, waste.stalls) if facts.bound == "latency" else 0.0
    return "limiter" if waits >= limits.limiting_waste_share else "contributes"


_MEASURED_AS = {
    reason: (f"{STALL}{reason}_cycles", SAMPLED_AS.get(reason, reason))
    for reason in STALLS
    if reason not in SAMPLED_AS.values()
}
"""Reason -> the counter of its cycles, and how the warp sampler spells it."""
WAITS = frozenset({LATENCY})


def stall(
    facts: Facts, reason: str, do: str, bears_on: frozenset[str] = WAITS, extra: tuple[Evidence, ...] = ()
) -> Found | None:
    """Find one reason to wait; `do` is what helps, said before the numbers.

    The busiest unit decides what it is worth: the wait can vanish, and the kernel be bound by that unit all the same.
    """
    share, issued = stall_shares(facts).get(reason), _issued(facts)
    if share is None or share <= facts.limits.dominant_stall:
        return None
    if issued is not None and issued >= facts.limits.full_issue_share:
        return None
    evidence, words = _numbers(facts, reason, share)
    gains = [1 / kept for kept in (1 - share, issued) if kept]
    return Found(
        evidence=(*evidence, *extra),
        move=f"{do}: {words}",
        bears_on=bears_on,
        speedup_up_to=facts.without_wait(min(gains)) if gains else None,
        where=_where(facts, reason),
        confidence="high" if issued is not None else "medium",
    )


def stall_shares(facts: Facts) -> dict[str, float]:
    """Return the part of the time between two instructions of a warp by its reason, 0 to 1, as far as measured."""
    counters, stalls = facts.kernel.counters, facts.kernel.stalls
    between = counters.get("warp_latency_cycles")
    if not between and not stalls:
        return {}
    issued, samples = counters.get("issued_samples"), counters.get("stall_samples")
    waiting = 1 - issued / samples if issued is not None and samples else 1.0
    shares = {}
    for reason, (counter, sampled_as) in _MEASURED_AS.items():
        cycles = counters.get(counter)
        if cycles is not None and between:
            shares[reason] = min(1.0, cycles / between)
        elif (share := stalls.get(reason, stalls.get(sampled_as))) is not None:
            shares[reason] = share * waiting
    return shares


def is_usual_wait(facts: Facts, shares: Mapping[str, float]) -> bool:
    """Return whether fixed latencies take no more cycles than in any kernel; False where that is not known.

    `shares` are those of `stall_shares`. Where a warp does little else than wait for them, they are worth a change
    all the same.
    """
    share, between = shares.get("wait"), facts.counter("warp_latency_cycles")
    if share is None or between is None:
        return False
    return share <= _MAJORITY and share * between <= facts.limits.usual_wait_cycles


_MAJORITY = 0.5


def _issued(facts: Facts) -> float | None:
    """Return the part of the cycles in which a scheduler issues, of those with work where that is known."""
    active = facts.counter("issue_active_per_cycle")
    return active if active is not None else facts.share("issue")


def _numbers(facts: Facts, reason: str, share: float) -> tuple[tuple[Evidence, ...], str]:
    what = _NEUTRAL.get(reason, STALLS[reason])
    counter = f"stall_{reason}_cycles"
    if facts.counter(counter) is None or not facts.counter("warp_latency_cycles"):
        evidence = Evidence(f"{reason} stalls", share, "share", "samples of the warps")
        return (evidence,), f"a warp {_during(what)} {percent(share)} of its time"
    cycles, between = (facts.measured(name, "cycles") for name in (counter, "warp_latency_cycles"))
    evidence = Evidence(f"{reason} stalls", share, "share", f"{cycles.source} / {between.source}")
    words = (
        f"a warp {_during(what)} {percent(share)} of its time, {significant(cycles.value)} of "
        f"{significant(between.value)} cycles between two instructions"
    )
    return (evidence, cycles, between), words


_NEUTRAL = {
    "short_scoreboard": "waits for results from the memory instruction queue",
    "mio_throttle": "waits for room in the memory instruction queue",
}
"""What a move says instead of the general words, which name what the kernel may not use at all."""


def _during(what: str) -> str:
    """Say what a warp does, up to the part of its time that follows."""
    return "is ready while another one is selected for" if what.startswith("is ready") else f"{what} for"


def _where(facts: Facts, reason: str) -> tuple[Place, ...]:
    for spelling in (reason, SAMPLED_AS.get(reason, reason)):
        if found := facts.places(f"{STALL}{spelling}"):
            return found
    return ()


_QUEUED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "shared-memory instructions",
        ("LDS", "STS", "LDSM", "STSM", "ATOMS"),
        "keep more values in registers and use wider shared-memory accesses",
    ),
    (
        "special functions",
        ("MUFU",),
        "use fewer special functions, such as one reciprocal for several divisions",
    ),
    ("shuffles", ("SHFL",), "let each thread reduce several values before it shuffles"),
    ("conversions", ("I2F", "F2I", "F2F", "FRND"), "convert fewer values between types"),
)
"""What goes through the memory input/output queue: name, opcodes, and what there is to do about it."""


def queue_stall(facts: Facts, reason: str, otherwise: str) -> Found | None:
    """Find a wait for the queue behind which shared memory and special functions stand, and say what stands in it."""
    table = facts.kernel.warp_opcodes
    total = sum(table.values())
    parts = {name: executed(table, opcodes) / total for name, opcodes, _ in _QUEUED if total}
    name = max(parts, key=lambda queued: parts[queued], default=None)
    if name is None or not parts[name]:
        return stall(facts, reason, otherwise)
    do = next(do for queued, _, do in _QUEUED if queued == name)
    part = Evidence(f"{name} of all", parts[name], "share", "sass__inst_executed_per_opcode_with_modifier_all")
    return stall(
        facts,
        reason,
        f"{do}, {name} being {percent(parts[name])} of all instructions",
        bears_on=frozenset({LATENCY, *_BEHIND_QUEUE[name]}),
        extra=(part,),
    )


_BEHIND_QUEUE = {
    "shared-memory instructions": ("smem", "l1", "mio"),
    "special functions": ("xu", "mio"),
    "shuffles": ("l1", "mio"),
    "conversions": ("xu", "mio"),
}
"""Levels and pipes that such instructions keep busy."""
