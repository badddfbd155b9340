"""Findings about warps that wait: one rule for each stall reason, reported where it takes much of a warp's time.

All rules test alike. Each cycle between two instructions of a warp has one reason; a reason that takes more than
`dominant_stall` of them is reported, unless the schedulers issue in almost every cycle anyway. Counted cycles take
precedence (`smsp__average_warps_issue_stalled_*`), then samples of the warps, including those that issued. The gain
assumes that only this wait disappears, and is limited by the schedulers and the busiest unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from msgspec.structs import replace

from rooflens.format import percent, si_of
from rooflens.model.counters.balance import SAMPLED_AS, SAMPLED_ONLY, STALLS, wait_words
from rooflens.model.findings.cost import LATENCY, WAITS
from rooflens.model.findings.loops import loops_of
from rooflens.model.findings.rule import FindingDraft, FindingRule
from rooflens.model.hotspots import STALL, places, producers
from rooflens.model.records import Evidence, Inside, Kernel, MoveKind, ratio
from rooflens.model.roofline.occupancy import warps_of
from rooflens.model.roofline.opcodes import executed
from rooflens.model.roofline.unit_names import resource_label, unit_label
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.pipelined import deeper
from rooflens.model.verdict.thresholds import Thresholds

_COHERENT_LOAD = re.compile(r"LDG?\b.*\.STRONG\b")
_COHERENT_STORE = re.compile(r"(STG?\b|ATOMG?\b.*\.(EXCH|CAS)\b).*\.STRONG\b")
"""Opcodes of volatile, relaxed, acquiring and releasing accesses.

Atomics that add are no such store: a histogram has them, too, and no block waits for it.
"""
_NO_MATH = frozenset({"issue", "lsu", "mio", "tex", "adu", "cbu", "uniform", "fp16", "tmem"})
"""Pipes that do no arithmetic, and CUDA-core fp16, whose count is an upper bound."""
_MEASURED_AS = {
    reason: (f"{STALL}{reason}_cycles", f"{STALL}{reason}_share", SAMPLED_AS.get(reason, reason))
    for reason in STALLS
    if reason not in SAMPLED_AS.values()
}
"""Reason -> the counters of its cycles and of its part, and how the warp sampler spells it."""
_NEUTRAL = {
    "short_scoreboard": "waits for results of the MIO unit",
    "mio_throttle": "MIO queue full",
}
"""What a move says instead of the general words, which name what the kernel may not use at all."""


def stall(
    facts: Facts,
    reason: str,
    do: str,
    bears_on: frozenset[str] = WAITS,
    extra: tuple[Evidence, ...] = (),
) -> FindingDraft | None:
    """Find one reason to wait; `do` is the remedy, put before the numbers.

    The busiest unit bounds the gain: the wait may disappear, and the kernel may still be limited by that unit.
    """
    share = facts.stall_shares.get(reason)
    issued = facts.kernel.counters.get("issue_active_per_cycle", facts.shares.get("issue"))
    if share is None or share <= facts.limits.dominant_stall:
        return None
    if issued is not None and issued >= facts.limits.at_roof_share:
        return None
    what, counter = _NEUTRAL.get(reason, STALLS[reason]), f"stall_{reason}_cycles"
    words = f"warps spend {percent(share)} of their time {_doing(what)}"
    source = facts.kernel.counter_sources.get(f"{STALL}{reason}_share", "samples of the warps")
    evidence: tuple[Evidence, ...] = (Evidence(f"{reason} stalls", share, "share", source),)
    if facts.counter(counter) is not None and facts.counter("warp_latency_cycles"):
        cycles, between = (facts.measured(name, "cycles") for name in (counter, "warp_latency_cycles"))
        part = Evidence(f"{reason} stalls", share, "share", f"{cycles.source} / {between.source}")
        evidence = (part, cycles, between)
    # Twice as many loads in flight, or half of the barriers, leave half of the wait.
    gains = [1 / kept for kept in (1 - share / 2, issued) if kept]
    whole = [1 / kept for kept in (1 - share, issued) if kept]
    spellings = dict.fromkeys((reason, SAMPLED_AS.get(reason, reason)))
    # The place to change is the instruction that warps wait for, if known; for a barrier, its own line.
    where = (
        (() if reason == "barrier" else producers(facts.kernel, (spelling,)))
        or places(facts.kernel, f"{STALL}{spelling}")
        for spelling in spellings
    )
    return FindingDraft(
        evidence=(*evidence, *extra),
        move=f"{do}: {words}",
        bears_on=bears_on,
        gain=facts.without_wait(min(gains)) if gains else None,
        whole=facts.without_wait(min(whole)) if whole else None,
        where=next(filter(None, where), ()),
        confidence="high" if issued is not None else "medium",
    )


def _doing(what: str) -> str:
    """Name the state of warps for a stall reason: `waiting for global memory`, `sleeping`."""
    for says, doing in _DOING.items():
        if what.startswith(says):
            return doing + what.removeprefix(says)
    return f"with the {what}"


_DOING = {"waits": "waiting", "sleeps": "sleeping", "ready": "ready"}


def _of_kind(draft: FindingDraft | None, kind: MoveKind) -> FindingDraft | None:
    """Override the kind of a wait's move."""
    return replace(draft, kind=kind) if draft else None


def stall_shares(kernel: Kernel) -> dict[str, float]:
    """Return the share of the time between two instructions of a warp by reason, 0 to 1, as far as measured."""
    counters, stalls = kernel.counters, kernel.stalls
    issued = ratio(counters.get("issued_samples"), counters.get("stall_samples"))
    between = counters.get("warp_latency_cycles")
    waiting = 1.0 if issued is None else 1 - issued
    parts: dict[str, float] = {}
    for reason, (counter, stated_as, sampled_as) in _MEASURED_AS.items():
        cycles, stated, sampled = counters.get(counter), counters.get(stated_as), stalls.get(reason)
        if cycles is not None and between:
            parts[reason] = min(1.0, cycles / between)
        elif stated is not None:
            parts[reason] = min(1.0, stated)
        elif (share := stalls.get(sampled_as) if sampled is None else sampled) is not None:
            parts[reason] = share * waiting
    return parts


def instructions_a_warp(facts: Facts) -> Evidence | None:
    """Return how many instructions a warp executes: counted by opcode, else by address, else in total."""
    executed = float(sum(facts.kernel.warp_opcodes.values()))
    source = "sass__inst_executed_per_opcode_with_modifier_all"
    if not executed:
        executed, source = facts.kernel.code_totals.get("warp_inst", 0.0), "inst_executed"
    if not executed and facts.counter("executed_inst"):
        counted = facts.measured("executed_inst", "inst")
        executed, source = counted.value, counted.source
    blocks, block = facts.counter("grid_size"), facts.counter("block_size")
    each = ratio(executed or None, blocks * warps_of(block) if blocks and block else None)
    if each is None:
        return None
    return Evidence("instructions a warp", each, "inst", f"{source} / (launch__grid_size x warps of a block)")


_USUAL_WAIT_CYCLES = 3
"""NVIDIA, Volta tuning guide: an FMA follows the one that it depends on after 4 cycles; one of them issues."""


def is_usual_wait(facts: Facts) -> bool:
    """Return whether fixed latencies take no more cycles than is usual; False if that was not measured.

    If a warp does little else than wait for them, a change is still worthwhile.
    """
    share, between = facts.stall_shares.get("wait"), facts.counter("warp_latency_cycles")
    if share is None or between is None:
        return False
    return share <= facts.limits.most_share and share * between <= _USUAL_WAIT_CYCLES


_QUEUED: tuple[tuple[str, tuple[str, ...], str, MoveKind, tuple[str, ...]], ...] = (
    (
        "shared-memory instructions",
        ("LDS", "STS", "LDSM", "STSM", "ATOMS"),
        "keep more values in registers and use wider shared-memory accesses",
        "wide",
        ("smem", "l1", "mio"),
    ),
    (
        "special functions",
        ("MUFU",),
        "use fewer special functions, such as one reciprocal for several divisions",
        "instructions",
        ("xu", "mio"),
    ),
    ("shuffles", ("SHFL",), "let each thread reduce several values before it shuffles", "instructions", ("l1", "mio")),
    ("conversions", ("I2F", "F2I", "F2F", "FRND"), "convert fewer values between types", "instructions", ("xu", "mio")),
)
"""What goes through the memory input/output queue: name, opcodes, what to do about it and its kind, what it fills."""


def _queue_stall(facts: Facts, reason: str, otherwise: str) -> FindingDraft | None:
    """Find waits for the queue to shared memory and special functions, and name the instructions that fill it."""
    table = facts.kernel.warp_opcodes
    total = sum(table.values())
    name, opcodes, do, kind, behind = max(_QUEUED, key=lambda queued: executed(table, queued[1]))
    part = executed(table, opcodes) / total if total else 0.0
    if not part:
        through = "" if table else ", which takes shared memory, special functions and shuffles"
        return stall(facts, reason, f"{otherwise}{through}")
    source = "sass__inst_executed_per_opcode_with_modifier_all"
    found = stall(
        facts,
        reason,
        f"{do}, {name} being {percent(part)} of all instructions",
        bears_on=frozenset({LATENCY, *behind}),
        extra=(Evidence(f"{name} of all", part, "share", source),),
    )
    return _of_kind(found, kind)


def _loops_over_tiles(facts: Facts, warps: float) -> bool:
    """Return whether each warp repeatedly loads tiles into shared memory, with a barrier before their use."""
    opcodes = facts.kernel.warp_opcodes
    if not warps or facts.does.uses_tensor_cores:
        return False
    tile = (executed(opcodes, names) for names in (("BAR",), ("LDS",), ("STS",), ("LDG",)))
    return all(count >= facts.limits.several * warps for count in tile)


def _in_flight(inside: Inside | None) -> tuple[int, int] | None:
    """Return the global loads in flight at most of the waits for them, and the widest one's bytes; None if unknown."""
    waiting = [loop for loop in loops_of(inside) if loop.anatomy is not None and loop.anatomy.in_flight is not None]
    most = max(waiting, key=lambda loop: loop.own.get(f"{STALL}long_scoreboard", 0.0), default=None)
    if most is None or most.anatomy is None or not most.anatomy.in_flight:
        return None
    return most.anatomy.in_flight, max(most.anatomy.global_loads, default=0)


def long_scoreboard(facts: Facts) -> FindingDraft | None:
    """Say that warps wait for data loaded from global, local or texture memory, and how much of it is in flight."""
    found, under_way = _long_scoreboard(facts), _in_flight(facts.kernel.inside)
    if found is None or under_way is None:
        return found
    count, width = under_way
    loads = Evidence("loads in flight", count, "loads/warp", "scoreboards of the machine code")
    words = (
        f"{count} {'load is' if count == 1 else 'loads are'} in flight per warp, of {width} bytes per thread at most"
    )
    return replace(found, move=f"{found.move}; {words}", evidence=(*found.evidence, loads))


def _long_scoreboard(facts: Facts) -> FindingDraft | None:
    allocated, driver = facts.counter("smem_per_block_bytes"), facts.counter("smem_driver_bytes")
    copies = facts.kernel.capability >= (8, 0) and driver is not None and (allocated or 0.0) > driver
    copies = copies and not facts.does.copies
    copying = " or by copying the next tile with cp.async" if copies else ""
    do = f"keep more loads in flight, by unrolling so that several are issued before the first is used{copying}"
    blocks, block = facts.counter("grid_size") or 0.0, facts.counter("block_size") or 0.0
    if (facts.does.stages or 1) > 1:
        do = f"keep more tiles in flight, {deeper(facts)}"
    elif _loops_over_tiles(facts, blocks * warps_of(block)):
        by = "with cp.async" if copies else "into registers"
        do = f"double-buffer the tiles: fetch the next one {by} while this one is used, so that no barrier waits for it"
    limiter = facts.limiter
    if limiter is not None and limiter.resource in facts.levels:
        label, share = unit_label(limiter, facts.kernel.gpu), percent(limiter.share)
        if facts.at_roof or facts.full_for_a_while:
            queue = f"{label}, {share} busy, which these loads queue for"
            if limiter.resource == "dram":
                return _of_kind(stall(facts, "long_scoreboard", f"move fewer bytes through {queue}"), "fuse")
            reuse = f"let each thread compute several results from what it loads, to take load off {queue}"
            return _of_kind(stall(facts, "long_scoreboard", reuse), "results")
        how = f"with wider loads and several per thread{',' if copies else ''}{copying}"
        busy = (
            f", as {label} is only {share} busy"
            if limiter.share < facts.limits.at_roof_share
            else f" ({label} is {share} busy)"
        )
        do = f"keep more bytes in flight, {how}{busy}"
    return stall(facts, "long_scoreboard", do)


def math_pipe_throttle(facts: Facts) -> FindingDraft | None:
    """Say that warps are ready but the pipe that they need is busy."""
    pipes = {name: pipe.share for name, pipe in facts.pipes.items() if pipe.share and name not in _NO_MATH}
    top = max(pipes, key=lambda name: pipes[name], default=None)
    where = f" (the busiest is the {resource_label(top)} at {percent(pipes[top])})" if top else ""
    do = f"issue fewer instructions to the pipe that warps wait for{where}, or spread them over the run"
    return stall(facts, "math_pipe_throttle", do, bears_on=frozenset({LATENCY, *([top] if top else [])}))


def barrier(facts: Facts) -> FindingDraft | None:
    """Say that warps wait for the others of their block at a barrier."""
    block, source = facts.counter("block_size"), "sass__inst_executed_per_opcode_with_modifier_all"
    loads, stores = (
        sum(count for opcode, count in facts.kernel.warp_opcodes.items() if fitting.match(opcode))
        for fitting in (_COHERENT_LOAD, _COHERENT_STORE)
    )
    if loads and stores:
        do = (
            "let each thread process more elements, for fewer blocks and fewer barriers an element, as blocks seem to "
            f"wait for one another ({si_of(loads, 'coherent loads')}, {si_of(stores, 'coherent stores')})"
        )
        counted = (("coherent loads", loads), ("coherent stores", stores))
        extra = tuple(Evidence(name, float(count), "instructions", source) for name, count in counted)
        return _of_kind(stall(facts, "barrier", do, extra=extra), "elements")
    smaller = (
        f" or launch smaller blocks than {block:,.0f} threads"
        if block and block > facts.limits.small_block_threads
        else ""
    )
    do = f"give the warps of a block equal work between barriers, use fewer barriers{smaller}"
    return stall(facts, "barrier", do)


def wait(facts: Facts) -> FindingDraft | None:
    """Say that warps wait for the fixed latency of instructions that depend on each other."""
    if not is_usual_wait(facts):
        do = "give each warp more independent chains of instructions, by unrolling or interleaving"
        return stall(facts, "wait", do)
    found = stall(facts, "wait", "more warps would fill these waits, which are no longer than those of any kernel")
    return replace(found, severity="note", kind="occupancy") if found else None


def imc_miss(facts: Facts) -> FindingDraft | None:
    """Say that warps wait for constants and kernel parameters that are not in their cache."""
    do = "let all threads of a warp read the same constants, or give each block more work after its first reads of them"
    if facts.bound != "overhead":
        return stall(facts, "imc_miss", do)
    found = stall(facts, "imc_miss", "the first reads of a launch always miss")
    return replace(found, severity="note") if found else None


def drain(facts: Facts) -> FindingDraft | None:
    """Report warps that wait at exit for their stores, or atomics if there are no stores."""
    opcodes = facts.kernel.warp_opcodes
    if executed(opcodes, ("RED", "REDG", "ATOM", "ATOMG")) and not executed(opcodes, ("STG", "ST")):
        first = "reduce within the warp and the block first, as its only writes are atomics"
        return _of_kind(stall(facts, "drain", first), "atomics")
    return stall(
        facts, "drain", "store earlier, wider and coalesced, so that fewer writes are in flight when a warp exits"
    )


def not_selected(facts: Facts) -> FindingDraft | None:
    """Say that warps are ready but another one is selected."""
    found = stall(facts, "not_selected", "fewer warps with larger tiles would cost nothing")
    return replace(found, severity="note") if found else None


def gmma(facts: Facts) -> FindingDraft | None:
    """Say that warps wait to issue warpgroup matrix instructions."""
    return stall(
        facts,
        "gmma",
        "have the four warps of a warpgroup, and the registers of its matrix instructions, ready earlier, or let "
        "another warpgroup compute meanwhile",
        bears_on=_tensor(facts),
    )


def warpgroup_arrive(facts: Facts) -> FindingDraft | None:
    """Say that warps wait for the warpgroup at its synchronisation."""
    return stall(
        facts,
        "warpgroup_arrive",
        "give the four warps of a warpgroup equal work before they synchronise, and synchronise them less often",
        bears_on=_tensor(facts),
    )


def largest_wait(facts: Facts) -> tuple[FindingRule, FindingDraft] | None:
    """Return the largest wait of a latency-bound kernel without a dominant wait: better than no cause.

    If only a few reasons were counted, it is the largest of these; others may take more.
    """
    harmless = {"not_selected", *(("wait",) if is_usual_wait(facts) else ())}
    shares = {reason: share for reason, share in facts.stall_shares.items() if reason not in harmless}
    if not shares:
        return None
    largest = max(shares, key=shares.__getitem__)
    rule = _RULE_OF[largest]
    rule = replace(rule, title=wait_words(largest, shares, rule.title))
    found = rule.find(replace(facts, limits=_of_any_wait(facts.limits)))
    return (rule, replace(found, severity="contributes", confidence="low")) if found else None


@lru_cache(maxsize=8)
def _of_any_wait(limits: Thresholds) -> Thresholds:
    return replace(limits, dominant_stall=0.0)


def counters_of_wait(finding: str) -> str:
    """Name the counters of a wait; empty for the id of any other finding."""
    reason = finding.removeprefix(STALL)
    if reason not in _RULE_OF:
        return ""
    if reason in SAMPLED_ONLY:
        return f"samples of the warps, `smsp__pcsamp_warps_issue_stalled_{reason}`"
    return (
        f"`smsp__average_warps_issue_stalled_{reason}_per_issue_active` over the cycles between two instructions of a "
        "warp, else samples of the warps"
    )


def long_waits(stall_shares: Mapping[str, float], least: float) -> Iterator[FindingRule]:
    """Yield the rules of the reasons that take over `least` of a warp's time, as no other rule finds anything."""
    return (_RULE_OF[reason] for reason, share in stall_shares.items() if share > least)


def _tensor(facts: Facts) -> frozenset[str]:
    return frozenset({LATENCY, *(name for name in facts.pipes if name.startswith("tensor"))})


def _stall_rule(reason: str, kind: MoveKind, find: Callable[[Facts], FindingDraft | None]) -> FindingRule:
    sampled = ("stalls", "issue_active_per_cycle")
    counted = (f"stall_{reason}_cycles", "warp_latency_cycles", "issue_active_per_cycle")
    needs = (sampled,) if reason in SAMPLED_ONLY else (counted, sampled, (f"{STALL}{reason}_share",))
    title = STALLS[reason] if reason != "not_selected" else "more warps ready than can issue"
    return FindingRule(f"stall_{reason}", title, kind, find, needs)


def _plain_rule(reason: str, kind: MoveKind, do: str, *fills: str) -> FindingRule:
    """Make the row of a wait with the same remedy in every kernel; `fills` are the units that it keeps busy."""
    return _stall_rule(reason, kind, lambda facts: stall(facts, reason, do, bears_on=frozenset({LATENCY, *fills})))


def _queue(reason: str, kind: MoveKind, otherwise: str) -> FindingRule:
    """Make the row of a wait for the memory input/output queue."""
    return _stall_rule(reason, kind, lambda facts: _queue_stall(facts, reason, otherwise))


STALLED: tuple[FindingRule, ...] = (
    _stall_rule("long_scoreboard", "inflight", long_scoreboard),
    _plain_rule(
        "lg_throttle",
        "wide",
        "issue fewer and wider global and local accesses, such as one of 16 bytes instead of four of 4",
        "l1",
        "lsu",
    ),
    _queue("short_scoreboard", "inflight", "move independent work before the use of what the MIO unit returns"),
    _queue("mio_throttle", "instructions", "issue fewer instructions to the MIO unit"),
    _stall_rule("math_pipe_throttle", "instructions", math_pipe_throttle),
    _stall_rule("barrier", "barrier", barrier),
    _stall_rule("wait", "inflight", wait),
    _plain_rule(
        "branch_resolving", "instructions", "branch less often, by unrolling short loops and selecting values instead"
    ),
    _plain_rule(
        "no_instruction", "instructions", "make the hot code smaller, with less unrolling and inlining and fewer jumps"
    ),
    _stall_rule("imc_miss", "cache", imc_miss),
    _plain_rule("membar", "barrier", "use fewer memory fences, with the narrowest scope that is correct"),
    _stall_rule("drain", "coalesce", drain),
    _plain_rule(
        "tex_throttle",
        "wide",
        "issue fewer texture and surface accesses, or use plain loads for part of the data",
        "tex",
        "l1",
    ),
    _stall_rule("gmma", "overlap", gmma),
    _stall_rule("warpgroup_arrive", "balance", warpgroup_arrive),
    _plain_rule("sleeping", "barrier", "sleep for less time, or signal completion instead of polling"),
    _plain_rule(
        "dispatch_stall", "instructions", "look at the SASS of the hottest lines, and try other compiler options"
    ),
    _plain_rule("misc", "algorithm", "look at the hottest instruction to see what these warps wait for"),
    _stall_rule("not_selected", "results", not_selected),
)
_RULE_OF = {rule.id.removeprefix(STALL): rule for rule in STALLED}
