"""What the rules of stalls share: how much of a warp's time a reason takes, and the finding it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import percent, significant
from rooflens.model.counters.balance import SAMPLED_AS, STALLS
from rooflens.model.findings.rule import LATENCY, Found
from rooflens.model.hotspots import STALL
from rooflens.model.records import Evidence
from rooflens.model.roofline.opcodes import executed

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Place

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
    "short_scoreboard": "waits for results from behind the memory instruction queue",
    "mio_throttle": "waits for room in the memory instruction queue",
}
"""What a move says in place of the general words, which name what the kernel may not use at all."""


def _during(what: str) -> str:
    return "is ready while another one is picked for" if what.startswith("ready") else f"{what} for"


def _where(facts: Facts, reason: str) -> tuple[Place, ...]:
    for spelling in (reason, SAMPLED_AS.get(reason, reason)):
        if found := facts.places(f"{STALL}{spelling}"):
            return found
    return ()


_QUEUED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "shared-memory instructions",
        ("LDS", "STS", "LDSM", "STSM", "ATOMS"),
        "keep more values in registers and access shared memory wider",
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
