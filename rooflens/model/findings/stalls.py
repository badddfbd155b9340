"""Findings about warps that wait: one rule for each reason, said where it takes much of a warp's time.

They all test alike. Between two instructions a warp passes a number of cycles, each of them for one reason; a reason
that takes more than the dominant part is said, unless the schedulers issue in almost every cycle as it is. Counted
cycles come first (`smsp__average_warps_issue_stalled_*`), then samples of the warps, those that issued included.
The speed-up assumes that this wait alone vanishes, and is no more than the schedulers and the busiest unit allow.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rooflens.format import percent, significant
from rooflens.model.counters.balance import SAMPLED_AS, SAMPLED_ONLY, STALLS
from rooflens.model.findings.rule import LATENCY, FindingRule, Found
from rooflens.model.hotspots import STALL
from rooflens.model.records import Evidence
from rooflens.model.roofline.opcodes import executed
from rooflens.model.verdict.sentences import resource_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Place
    from rooflens.model.verdict.thresholds import Thresholds

_WAITS = frozenset({LATENCY})


def long_scoreboard(facts: Facts) -> Found | None:
    """Say that warps wait for data that they loaded from global, local or texture memory.

    The way to L2 and device memory takes hundreds of cycles. Where no memory level is full, more loads in flight hide
    it: several issued before the first is used, wider ones, or more warps. Where a level is at its roof, the loads
    queue for it, and only less work there helps. Confirm at the line that uses the loaded value: the wait stands
    there, not at the load. It does not show which level answers; the hit rates do.
    """
    do = "keep more loads in flight, by unrolling so that several are issued before the first is used"
    wall = facts.wall
    if wall is not None and wall.resource in facts.levels:
        label, share = resource_label(wall.resource, facts.kernel.gpu), percent(wall.share)
        if facts.at_roof or facts.full_for_a_while:
            return _stall(facts, "long_scoreboard", f"take load off {label}, {share} busy, for which these loads queue")
        do = f"keep more bytes in flight, by wider loads and several per thread, as {label} is only {share} busy"
    if facts.kernel.capability >= (8, 0) and _uses_shared_memory(facts):
        do += " or by copying the next tile with cp.async"
    return _stall(facts, "long_scoreboard", do)


def lg_throttle(facts: Facts) -> Found | None:
    """Say that the queue of global and local memory instructions is full.

    Warps have more loads and stores ready than the load/store units take in, so more in flight would make it worse:
    fewer and wider accesses are what helps, values kept in registers, and no local memory. Confirm by the
    executed load and store instructions against the bytes they move. It does not tell global from local accesses.
    """
    return _stall(
        facts,
        "lg_throttle",
        "issue fewer and wider global and local accesses, such as one of 16 bytes in place of four",
        bears_on=frozenset({LATENCY, "l1", "lsu"}),
    )


def short_scoreboard(facts: Facts) -> Found | None:
    """Say that warps wait for data of shared memory, special functions or other work behind the memory queue.

    These answer in some tens of cycles. What the kernel has of them is read from its opcodes, and only that is
    named. Confirm at the line that uses the value. It does not show bank conflicts: `bank_conflicts` does.
    """
    return _queue_stall(facts, "short_scoreboard", "move independent work between these instructions and their use")


def mio_throttle(facts: Facts) -> Found | None:
    """Say that the queue of shared memory, special functions and shuffles is full.

    Warps have more of such instructions ready than the queue takes in. What the kernel has of them is read from its
    opcodes, and only that is named. Confirm by their part of the executed instructions. It does not tell which of
    them is the slow one.
    """
    return _queue_stall(facts, "mio_throttle", "issue fewer instructions to this queue")


def math_pipe_throttle(facts: Facts) -> Found | None:
    """Say that warps are ready but the pipe that they need is busy.

    This is a full pipe and no latency: more warps or more loads do not help, only fewer instructions for that pipe or
    work for another one. Counters: the stall, and the shares of the pipes, of which the busiest is named. Confirm with
    the opcodes. It does not show bursts: a pipe may be full for part of the time only.
    """
    pipes = {name: pipe.share for name, pipe in facts.pipes.items() if pipe.share and name not in _NO_MATH}
    top = max(pipes, key=lambda name: pipes[name], default=None)
    where = f", the {resource_label(top)} at {percent(pipes[top])} being the busiest" if top else ""
    do = f"issue fewer instructions to the pipe that is in demand, or spread them over the run{where}"
    return _stall(facts, "math_pipe_throttle", do, bears_on=frozenset({LATENCY, *([top] if top else [])}))


def drain(facts: Facts) -> Found | None:
    """Say that warps wait at their end for their stores to leave.

    An exited warp holds its slot until memory has taken what it wrote. Kernels that store much and late show it, and
    those whose stores are scattered. Confirm at the exit instruction. It does not show which store is slow.
    """
    return _stall(facts, "drain", "store earlier, wider and coalesced, so that less is under way when a warp ends")


def barrier(facts: Facts) -> Found | None:
    """Say that warps wait for the others of their block at a barrier.

    The slowest warp holds all of them up: uneven work between barriers, or large blocks with few others on the SM to
    fill the time. Confirm at the line of the barrier. It does not show which warp comes last.
    """
    block = facts.counter("block_size")
    smaller = f" or launch smaller blocks than {block:,.0f} threads" if block and block > _SMALL_BLOCK else ""
    do = f"give the warps of a block equal work between barriers, use fewer barriers{smaller}"
    return _stall(facts, "barrier", do)


def wait(facts: Facts) -> Found | None:
    """Say that warps wait for the fixed latency of instructions that depend on one another.

    Each result is used by the next instruction a few cycles later. Independent chains in one warp fill these cycles, or
    more warps. Confirm by unrolling. It does not show a defect by itself: every kernel has some, and only its
    size says something.
    """
    return _stall(facts, "wait", "give each warp more independent chains of instructions, by unrolling or interleaving")


def no_instruction(facts: Facts) -> Found | None:
    """Say that warps wait for their instructions to be fetched.

    The code jumps a lot, or is too large for the instruction cache, or the kernel is so short that every instruction is
    met for the first time. Confirm by the size of the code at the hottest lines. It does not tell these apart.
    """
    return _stall(facts, "no_instruction", "make the hot code smaller, with less unrolling, inlining and jumping")


def imc_miss(facts: Facts) -> Found | None:
    """Say that warps wait for constants and kernel parameters that are not in their cache.

    The first reads of a run always miss, which matters where the kernel is short; later ones miss where threads of a
    warp index constants apart. A note where the kernel is as short as its launch. Confirm at the line that reads
    them. It does not tell these apart.
    """
    do = "let all threads of a warp read the same constants, or give each block more work after its first reads of them"
    if facts.bound != "overhead":
        return _stall(facts, "imc_miss", do)
    found = _stall(facts, "imc_miss", "the first reads of a run miss, whatever it does")
    return replace(found, severity="note") if found else None


def branch_resolving(facts: Facts) -> Found | None:
    """Say that warps wait for the target of branches.

    Each jump takes some cycles until its target is known. Short loops and many small branches show it. Confirm at
    the lines of the branches. It does not show divergence: `thread_divergence` does.
    """
    return _stall(facts, "branch_resolving", "branch less often, by unrolling short loops and selecting values instead")


def membar(facts: Facts) -> Found | None:
    """Say that warps wait at memory fences.

    A fence holds a warp until its earlier writes can be seen by others; the wider its scope, the longer. Confirm at
    the line of the fence. It does not show whether the fence is needed.
    """
    return _stall(facts, "membar", "use fewer memory fences, and of the narrowest scope that is right")


def sleeping(facts: Facts) -> Found | None:
    """Say that warps sleep because the program tells them to.

    A sleep is called in the code, often while polling a flag. Confirm at its line. It does not show what is waited for.
    """
    return _stall(facts, "sleeping", "sleep for less time, or signal what is waited for instead of polling")


def not_selected(facts: Facts) -> Found | None:
    """Say that warps are ready but another one is picked.

    This is no loss: there are more ready warps than a scheduler can issue. It is always a note: registers or
    shared memory could be spent on larger tiles instead of on so many warps. Confirm with the eligible warps a cycle,
    which are well above one. It does not show whether larger tiles would help.
    """
    found = _stall(facts, "not_selected", "warps could be traded for larger tiles without loss")
    return replace(found, severity="note") if found else None


def tex_throttle(facts: Facts) -> Found | None:
    """Say that the queue of texture instructions is full.

    Warps have more texture or surface accesses ready than the unit takes in. Plain loads go another way. Confirm by
    the texture instructions. It does not show the addresses.
    """
    return _stall(
        facts,
        "tex_throttle",
        "issue fewer texture and surface accesses, or load part of the data by plain loads",
        bears_on=frozenset({LATENCY, "tex", "l1"}),
    )


def dispatch_stall(facts: Facts) -> Found | None:
    """Say that the dispatcher holds instructions back.

    It is rare: conflicts over registers or units that the compiler could not avoid. Confirm in the SASS of the
    hottest lines. It does not show the conflict.
    """
    return _stall(facts, "dispatch_stall", "look at the instructions of the hottest lines and compile them differently")


def gmma(facts: Facts) -> Found | None:
    """Say that warps wait for matrix instructions of a warpgroup.

    They run asynchronously, and a warp that needs their result waits. A second warpgroup or a deeper pipeline fills
    the time. Confirm with the share of the tensor pipe: near its peak this is how it should be. It
    does not show which instruction is late.
    """
    return _stall(
        facts,
        "gmma",
        "keep more matrix instructions of warpgroups in flight, with a deeper pipeline or a second warpgroup",
        bears_on=_tensor(facts),
    )


def warpgroup_arrive(facts: Facts) -> Found | None:
    """Say that warps wait for the warpgroup at its synchronisation.

    Before and after matrix instructions of a warpgroup its four warps come together. Confirm at the line. It
    does not show which warp comes last.
    """
    return _stall(
        facts,
        "warpgroup_arrive",
        "give the four warps of a warpgroup equal work before they come together, and bring them together less often",
        bears_on=_tensor(facts),
    )


def misc(facts: Facts) -> Found | None:
    """Say that warps wait for reasons that the counters do not tell apart.

    Confirm at the hottest instruction. It does not show the reason.
    """
    return _stall(facts, "misc", "look at the hottest instruction for what these warps wait for")


_NO_MATH = frozenset({"issue", "lsu", "mio", "tex", "adu", "cbu", "uniform", "fp16"})
"""Pipes that are none of arithmetic, and CUDA-core fp16, whose count is an upper bound."""
_SMALL_BLOCK = 128
"""Blocks of four warps wait little for one another."""


def _stall(
    facts: Facts, reason: str, do: str, bears_on: frozenset[str] = _WAITS, extra: tuple[Evidence, ...] = ()
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


def largest_wait(facts: Facts) -> tuple[FindingRule, Found] | None:
    """Return the largest wait of a kernel that waits where none stands out: better said than nothing."""
    shares = {reason: share for reason, share in stall_shares(facts).items() if reason != not_selected.__name__}
    if not shares:
        return None
    rule = _RULE_OF[max(shares, key=shares.__getitem__)]
    found = rule.find(replace(facts, limits=_of_any_wait(facts.limits)))
    return (rule, replace(found, severity="contributes", confidence="low")) if found else None


@lru_cache(maxsize=8)
def _of_any_wait(limits: Thresholds) -> Thresholds:
    return replace(limits, dominant_stall=0.0)


def long_waits(facts: Facts) -> Iterator[FindingRule]:
    """Yield the rules of the reasons that take the dominant part of a warp's time: no other finds anything."""
    least = facts.limits.dominant_stall
    return (_RULE_OF[reason] for reason, share in stall_shares(facts).items() if share > least)


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


def _uses_shared_memory(facts: Facts) -> bool:
    allocated, driver = facts.counter("smem_per_block_bytes"), facts.counter("smem_driver_bytes")
    return allocated is not None and driver is not None and allocated > driver


def _tensor(facts: Facts) -> frozenset[str]:
    return frozenset({LATENCY, *(name for name in facts.pipes if name.startswith("tensor"))})


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


def _queue_stall(facts: Facts, reason: str, otherwise: str) -> Found | None:
    """Find a wait for the queue behind which shared memory and special functions stand, and say what stands in it."""
    table = facts.kernel.warp_opcodes
    total = sum(table.values())
    parts = {name: executed(table, opcodes) / total for name, opcodes, _ in _QUEUED if total}
    name = max(parts, key=lambda queued: parts[queued], default=None)
    if name is None or not parts[name]:
        return _stall(facts, reason, otherwise)
    do = next(do for queued, _, do in _QUEUED if queued == name)
    part = Evidence(f"{name} of all", parts[name], "share", "sass__inst_executed_per_opcode_with_modifier_all")
    return _stall(
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


def _row(find: Callable[[Facts], Found | None]) -> FindingRule:
    reason = find.__name__
    sampled = ("stalls", "issue_active_per_cycle")
    counted = (f"stall_{reason}_cycles", "warp_latency_cycles", "issue_active_per_cycle")
    needs = (sampled,) if reason in SAMPLED_ONLY else (counted, sampled)
    title = STALLS[reason] if reason != "not_selected" else "more warps ready than can issue"
    return FindingRule(f"stall_{reason}", title, find, needs)


STALLED: tuple[FindingRule, ...] = tuple(
    _row(find)
    for find in (
        long_scoreboard,
        lg_throttle,
        short_scoreboard,
        mio_throttle,
        math_pipe_throttle,
        barrier,
        wait,
        branch_resolving,
        no_instruction,
        imc_miss,
        membar,
        drain,
        tex_throttle,
        gmma,
        warpgroup_arrive,
        sleeping,
        dispatch_stall,
        misc,
        not_selected,
    )
)
_RULE_OF = {rule.id.removeprefix(STALL): rule for rule in STALLED}
_MEASURED_AS = {reason: (f"{STALL}{reason}_cycles", SAMPLED_AS.get(reason, reason)) for reason in _RULE_OF}
"""Reason -> the counter of its cycles, and how the warp sampler spells it."""
