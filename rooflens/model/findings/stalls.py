"""Findings about warps that wait: one rule for each stall reason, reported where it takes much of a warp's time.

They all test alike. Each cycle between two instructions of a warp has one reason; one that takes more than
`dominant_stall` of them is reported, unless the schedulers issue in almost every cycle as it is. Counted cycles come
first (`smsp__average_warps_issue_stalled_*`), then samples of the warps, those that issued included. The speed-up
assumes that this wait alone vanishes, and is no more than the schedulers and the busiest unit allow.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rooflens.format import percent, si_of, significant
from rooflens.model.counters.balance import SAMPLED_AS, SAMPLED_ONLY, STALLS
from rooflens.model.findings.rule import LATENCY, WAITS, FindingRule, Found
from rooflens.model.hotspots import STALL, places
from rooflens.model.records import Evidence
from rooflens.model.roofline.opcodes import executed
from rooflens.model.verdict.sentences import resource_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflens.model.verdict.facts import Facts
    from rooflens.model.verdict.thresholds import Thresholds


_COHERENT_LOAD = re.compile(r"LDG?\b.*\.STRONG\b")
_COHERENT_STORE = re.compile(r"(STG?\b|ATOMG?\b.*\.(EXCH|CAS)\b).*\.STRONG\b")
"""Opcodes of volatile, relaxed, acquiring and releasing accesses.

Atomics that add are no such store: a histogram has them, too, and no block waits for it.
"""
_NO_MATH = frozenset({"issue", "lsu", "mio", "tex", "adu", "cbu", "uniform", "fp16"})
"""Pipes that do no arithmetic, and CUDA-core fp16, whose count is an upper bound."""
_SMALL_BLOCK = 128
"""Blocks of four warps wait little for one another."""
_MEASURED_AS = {
    reason: (f"{STALL}{reason}_cycles", SAMPLED_AS.get(reason, reason))
    for reason in STALLS
    if reason not in SAMPLED_AS.values()
}
"""Reason -> the counter of its cycles, and how the warp sampler spells it."""
_NEUTRAL = {
    "short_scoreboard": "waits for results from the memory instruction queue",
    "mio_throttle": "waits for room in the memory instruction queue",
}
"""What a move says instead of the general words, which name what the kernel may not use at all."""
_MAJORITY = 0.5


def stall(
    facts: Facts, reason: str, do: str, bears_on: frozenset[str] = WAITS, extra: tuple[Evidence, ...] = ()
) -> Found | None:
    """Find one reason to wait; `do` is what helps, said before the numbers.

    The busiest unit decides what it is worth: the wait can vanish, and the kernel be bound by that unit all the same.
    """
    share, issued = stall_shares(facts).get(reason), facts.counter("issue_active_per_cycle")
    if issued is None:
        issued = facts.share("issue")
    if share is None or share <= facts.limits.dominant_stall:
        return None
    if issued is not None and issued >= facts.limits.full_issue_share:
        return None
    what, counter = _NEUTRAL.get(reason, STALLS[reason]), f"stall_{reason}_cycles"
    during = "is ready while another one is selected for" if what.startswith("is ready") else f"{what} for"
    words = f"a warp {during} {percent(share)} of its time"
    evidence: tuple[Evidence, ...] = (Evidence(f"{reason} stalls", share, "share", "samples of the warps"),)
    if facts.counter(counter) is not None and facts.counter("warp_latency_cycles"):
        cycles, between = (facts.measured(name, "cycles") for name in (counter, "warp_latency_cycles"))
        part = Evidence(f"{reason} stalls", share, "share", f"{cycles.source} / {between.source}")
        evidence = (part, cycles, between)
        words += f", {significant(cycles.value)} of {significant(between.value)} cycles between two instructions"
    gains = [1 / kept for kept in (1 - share, issued) if kept]
    spellings = dict.fromkeys((reason, SAMPLED_AS.get(reason, reason)))
    where = (places(facts.kernel, f"{STALL}{spelling}") for spelling in spellings)
    return Found(
        evidence=(*evidence, *extra),
        move=f"{do}: {words}",
        bears_on=bears_on,
        speedup_up_to=facts.without_wait(min(gains)) if gains else None,
        where=next(filter(None, where), ()),
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


_QUEUED: tuple[tuple[str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    (
        "shared-memory instructions",
        ("LDS", "STS", "LDSM", "STSM", "ATOMS"),
        "keep more values in registers and use wider shared-memory accesses",
        ("smem", "l1", "mio"),
    ),
    (
        "special functions",
        ("MUFU",),
        "use fewer special functions, such as one reciprocal for several divisions",
        ("xu", "mio"),
    ),
    ("shuffles", ("SHFL",), "let each thread reduce several values before it shuffles", ("l1", "mio")),
    ("conversions", ("I2F", "F2I", "F2F", "FRND"), "convert fewer values between types", ("xu", "mio")),
)
"""What goes through the memory input/output queue: name, opcodes, what there is to do about it, and what it fills."""


def _queue_stall(facts: Facts, reason: str, otherwise: str) -> Found | None:
    """Find a wait for the queue behind which shared memory and special functions stand, and say what stands in it."""
    table = facts.kernel.warp_opcodes
    total = sum(table.values())
    name, opcodes, do, behind = max(_QUEUED, key=lambda queued: executed(table, queued[1]))
    part = executed(table, opcodes) / total if total else 0.0
    if not part:
        return stall(facts, reason, otherwise)
    source = "sass__inst_executed_per_opcode_with_modifier_all"
    return stall(
        facts,
        reason,
        f"{do}, {name} being {percent(part)} of all instructions",
        bears_on=frozenset({LATENCY, *behind}),
        extra=(Evidence(f"{name} of all", part, "share", source),),
    )


def long_scoreboard(facts: Facts) -> Found | None:
    """Say that warps wait for data loaded from global, local or texture memory.

    A trip to L2 or DRAM takes hundreds of cycles. Where no memory level is full, more loads in flight hide it: several
    issued before the first is used, wider ones, or more warps. Where a level is at its roof, the loads queue for it,
    and only fewer bytes there help. Confirm at the line that uses the loaded value: the stall is reported there, not
    at the load. It does not show which level answers; the hit rates do.

    Try:
    - issue several loads before the first use: `#pragma unroll`, `float4`, larger blocks in Triton
    - prefetch the next tile while this one is used: `cp.async`, TMA, `num_stages`
    - run more warps, where `low_occupancy` is reported too
    - reuse more from shared memory and registers, so that fewer loads go far
    """
    allocated, driver = facts.counter("smem_per_block_bytes"), facts.counter("smem_driver_bytes")
    copies = facts.kernel.capability >= (8, 0) and driver is not None and (allocated or 0.0) > driver
    copying = " or by copying the next tile with cp.async" if copies else ""
    do = f"keep more loads in flight, by unrolling so that several are issued before the first is used{copying}"
    wall = facts.wall
    if wall is not None and wall.resource in facts.levels:
        label, share = resource_label(wall.resource, facts.kernel.gpu), percent(wall.share)
        if facts.at_roof or facts.full_for_a_while:
            return stall(facts, "long_scoreboard", f"take load off {label}, {share} busy, which these loads queue for")
        how = f"with wider loads and several per thread{',' if copies else ''}{copying}"
        do = f"keep more bytes in flight, {how}, as {label} is only {share} busy"
    return stall(facts, "long_scoreboard", do)


def lg_throttle(facts: Facts) -> Found | None:
    """Say that the queue of global and local memory instructions is full.

    Warps have more loads and stores ready than the load/store units accept, so more in flight would make it worse:
    what helps is fewer and wider accesses, values kept in registers, and no local memory. Confirm with
    the executed load and store instructions against the bytes they move. It does not tell global from local accesses.

    Try:
    - access 16 bytes per thread (`float4`; in Triton `tl.multiple_of` and `tl.max_contiguous` prove alignment)
    - keep reused values in registers or shared memory
    - remove local memory and uncoalesced accesses, where findings name them
    """
    return stall(
        facts,
        "lg_throttle",
        "issue fewer and wider global and local accesses, such as one of 16 bytes instead of four of 4",
        bears_on=frozenset({LATENCY, "l1", "lsu"}),
    )


def short_scoreboard(facts: Facts) -> Found | None:
    """Say that warps wait for results of shared memory, special functions and others in the memory instruction queue.

    These answer in tens of cycles. Which of them the kernel uses is read from its opcodes, and only those
    are named. Confirm at the line that uses the value. It does not show bank conflicts: `bank_conflicts` does.

    Try:
    - load the next fragment from shared memory before computing with this one
    - use wider reads: `float4`, `ldmatrix`
    - use cheaper functions: `exp2f` for `expf`, one reciprocal for several divisions
    """
    return _queue_stall(facts, "short_scoreboard", "move independent work between these instructions and their use")


def mio_throttle(facts: Facts) -> Found | None:
    """Say that the queue of shared memory, special functions and shuffles is full.

    Warps have more of these instructions ready than the queue accepts. Which of them the kernel uses is read from its
    opcodes, and only those are named. Confirm with their share of the executed instructions. It does not tell which of
    them is the slow one.

    Try:
    - use wider shared-memory reads (`float4`, `ldmatrix`), and reuse them in larger register tiles
    - reduce several values in a thread before the shuffles; `redux.sync` for integers on CC 8.0 and later
    - use fewer special functions: `exp2f`, shared reciprocals, a polynomial for some of them
    """
    return _queue_stall(facts, "mio_throttle", "issue fewer instructions to this queue")


def math_pipe_throttle(facts: Facts) -> Found | None:
    """Say that warps are ready but the pipe that they need is busy.

    This is a full pipe, not latency: more warps or more loads do not help; fewer instructions for that pipe do, or
    moving work to another one. Counters: the stall, and the shares of the pipes, of which the busiest is named. Confirm
    with the opcodes. It does not show bursts: a pipe may be full for part of the time only.

    Try:
    - see which pipe it is: for the arithmetic that is the kernel's purpose, this is where you want to be
    - use a narrower type: bf16, fp8
    - cut overhead work: do index arithmetic in 32 bits, hoisted out of loops
    """
    pipes = {name: pipe.share for name, pipe in facts.pipes.items() if pipe.share and name not in _NO_MATH}
    top = max(pipes, key=lambda name: pipes[name], default=None)
    where = f" (the busiest is the {resource_label(top)} at {percent(pipes[top])})" if top else ""
    do = f"issue fewer instructions to the pipe that warps wait for{where}, or spread them over the run"
    return stall(facts, "math_pipe_throttle", do, bears_on=frozenset({LATENCY, *([top] if top else [])}))


def drain(facts: Facts) -> Found | None:
    """Say that warps wait at exit for their stores to drain.

    An exited warp holds its slot until memory has taken what it wrote. It is typical of kernels that store a lot at
    the end, or whose stores are scattered. Confirm at the exit instruction. It does not show which store is slow.

    Try:
    - write 16 bytes per thread, coalesced (`float4`, a tile transposed in shared memory)
    - write results as they are computed, instead of all at the end
    - let a persistent kernel carry on with the next tile in the meantime; use TMA stores on CC 9.0 and later
    """
    do = "store earlier, wider and coalesced, so that fewer writes are in flight when a warp exits"
    return stall(facts, "drain", do)


def barrier(facts: Facts) -> Found | None:
    """Say that warps wait for the others of their block at a barrier.

    The slowest warp holds all of them up: work between barriers is uneven, or blocks are large and few others on the
    SM fill the time. On CC 9.0 waits for the end of warpgroup matrix instructions are said to count here too. In a scan
    in one pass they wait for the warp that reads what other blocks found: smaller blocks make that chain longer.
    Counters: coherent loads and stores by opcode (`LDG.E.STRONG.GPU`) tell such kernels. Confirm at the line of the
    barrier, and at what stands before it. It does not show which warp comes last.

    Try:
    - launch smaller blocks, such as 128 threads instead of 1,024 (`num_warps`); where blocks wait for one another,
      process 8 to 16 elements per thread instead
    - use `__syncwarp()` or shuffles where only a warp shares data
    - double-buffer tiles, which removes one of two barriers from the loop
    - arrive early and wait late: `cuda::barrier`, `mbarrier`; for warpgroup products `wgmma.wait_group 1` instead of 0
    """
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
        return stall(facts, "barrier", do, extra=extra)
    smaller = f" or launch smaller blocks than {block:,.0f} threads" if block and block > _SMALL_BLOCK else ""
    do = f"give the warps of a block equal work between barriers, use fewer barriers{smaller}"
    return stall(facts, "barrier", do)


def wait(facts: Facts) -> Found | None:
    """Say that warps wait for the fixed latency of instructions that depend on one another.

    Each result is used by the next instruction a few cycles later. Independent chains within a warp fill these cycles,
    and so do more warps. A chain of arithmetic waits three cycles at each instruction, and every kernel has some of
    that: up to there it is a note, unless a warp does little else, and what is missing are other warps. Confirm by
    unrolling. It does not show a defect: only its size in cycles matters.

    Try:
    - use several accumulators, and unroll (`#pragma unroll 4`)
    - give each thread more elements: larger blocks in Triton at the same `num_warps`
    - run more warps, where occupancy is low
    """
    if not is_usual_wait(facts, stall_shares(facts)):
        do = "give each warp more independent chains of instructions, by unrolling or interleaving"
        return stall(facts, "wait", do)
    found = stall(facts, "wait", "more warps would fill these waits, which are no longer than those of any kernel")
    return replace(found, severity="note") if found else None


def no_instruction(facts: Facts) -> Found | None:
    """Say that warps wait for their instructions to be fetched.

    The code jumps a lot, or is too large for the instruction cache, or the kernel is so short that every instruction is
    fetched for the first time. Confirm with the size of the code at the hottest lines. It does not tell these apart.

    Try:
    - unroll less: `#pragma unroll 4` instead of fully
    - keep rare paths out of the loop (`__noinline__`), and give special cases their own kernels
    - do more in one launch, where the kernel is short
    """
    return stall(facts, "no_instruction", "make the hot code smaller, with less unrolling and inlining and fewer jumps")


def imc_miss(facts: Facts) -> Found | None:
    """Say that warps wait for constants and kernel parameters that are not in their cache.

    The first reads of a launch always miss, which matters where the kernel is short; later ones miss where threads of
    a warp read different constants. A note where the kernel is as short as its launch. Confirm at the line that reads
    them. It does not tell these apart.

    Try:
    - index `__constant__` arrays uniformly across a warp; read what differs with plain loads or from shared memory
    - give each block more work after its first reads: a grid-stride loop
    - pass fewer and smaller parameters by value
    """
    do = "let all threads of a warp read the same constants, or give each block more work after its first reads of them"
    if facts.bound != "overhead":
        return stall(facts, "imc_miss", do)
    found = stall(facts, "imc_miss", "the first reads of a launch always miss")
    return replace(found, severity="note") if found else None


def branch_resolving(facts: Facts) -> Found | None:
    """Say that warps wait for branch targets.

    Each jump takes some cycles until its target is known. It is typical of short loops and many small branches. Confirm
    at the lines of the branches. It does not show divergence: `thread_divergence` does.

    Try:
    - unroll short loops whose length is known (`#pragma unroll`, `tl.static_range`)
    - use selects instead of branches: `c ? a : b`, `tl.where`
    - decide outside the kernel what never changes within it: a template, `tl.constexpr`
    """
    return stall(facts, "branch_resolving", "branch less often, by unrolling short loops and selecting values instead")


def membar(facts: Facts) -> Found | None:
    """Say that warps wait at memory fences.

    A fence holds a warp until its earlier writes are visible to others; the wider its scope, the longer. Confirm at
    the line of the fence. It does not show whether the fence is needed.

    Try:
    - narrow the scope: `__threadfence_block()` instead of `__threadfence()`, `cuda::thread_scope_block`
    - relax the order: acquire and release, or relaxed, instead of sequentially consistent
    - fence once per block, after `__syncthreads()`, not in every thread
    """
    return stall(facts, "membar", "use fewer memory fences, with the narrowest scope that is correct")


def sleeping(facts: Facts) -> Found | None:
    """Say that warps sleep because the program tells them to.

    The code calls a sleep, often while polling a flag. Confirm at its line. It does not show what is waited for.

    Try:
    - find the call to `__nanosleep()` and shorten it
    - wait on a `cuda::barrier` instead of polling a flag
    - split the kernel at the wait, and let the stream or a CUDA graph order the parts
    """
    return stall(facts, "sleeping", "sleep for less time, or signal completion instead of polling")


def not_selected(facts: Facts) -> Found | None:
    """Say that warps are ready but another one is selected.

    This is no loss: there are more ready warps than a scheduler can issue. It is always a note: registers or
    shared memory could be spent on larger tiles instead of on this many warps. Confirm with the eligible warps per
    cycle, which are well above one. It does not show whether larger tiles would help.

    Try:
    - nothing for this alone
    - where registers or shared memory limit the tile, trade warps for a larger one: `BLOCK_M`, `BLOCK_N`, `num_warps`
    """
    found = stall(facts, "not_selected", "fewer warps with larger tiles would cost nothing")
    return replace(found, severity="note") if found else None


def tex_throttle(facts: Facts) -> Found | None:
    """Say that the queue of texture instructions is full.

    Warps have more texture or surface accesses ready than the unit accepts. Plain loads take another path. Confirm
    with the texture instructions. It does not show the addresses.

    Try:
    - use plain loads for what needs neither filtering nor border handling (`const float* __restrict__`)
    - fetch more at once: `tex2Dgather`, texels of `float4`
    """
    return stall(
        facts,
        "tex_throttle",
        "issue fewer texture and surface accesses, or use plain loads for part of the data",
        bears_on=frozenset({LATENCY, "tex", "l1"}),
    )


def dispatch_stall(facts: Facts) -> Found | None:
    """Say that the dispatcher holds instructions back.

    It is rare: register or unit conflicts that the compiler could not avoid. Confirm in the SASS of the
    hottest lines. It does not show the conflict.

    Try:
    - look at the SASS of the hottest lines: `rooflens hotspots`
    - change how it is compiled: another unroll factor, `-maxrregcount`, another version of nvcc
    """
    return stall(facts, "dispatch_stall", "look at the SASS of the hottest lines, and try other compiler options")


def gmma(facts: Facts) -> Found | None:
    """Say that warps wait to issue warpgroup matrix instructions.

    They are issued by four warps together, once all have arrived and what they depend on is ready. The wait for
    results comes later, and counts as `stall_barrier` according to NVIDIA's staff. Confirm with the tensor pipe's share
    of peak: near the peak this is how it should be. It does not show which warp is late.

    Try:
    - read operands from shared memory instead of registers, which each warp has to prepare
    - let two warpgroups alternate, so that one computes meanwhile (CUTLASS's `KernelTmaWarpSpecializedPingpong`)
    - issue more of them each time: all steps of a tile, larger tiles such as 128 x 256
    """
    return stall(
        facts,
        "gmma",
        "have the four warps of a warpgroup, and the registers of its matrix instructions, ready earlier, or let "
        "another warpgroup compute meanwhile",
        bears_on=_tensor(facts),
    )


def warpgroup_arrive(facts: Facts) -> Found | None:
    """Say that warps wait for the warpgroup at its synchronisation.

    This is the samples' name for what the counters call `stall_gmma`: the four warps arrive before their matrix
    instructions. NVIDIA's guide puts waits for the end of these here too, its staff under barriers. Confirm at the
    line. It does not show which warp comes last.

    Try:
    - issue more wgmma instructions between arriving and waiting: all steps of a tile in one group
    - read operands from shared memory instead of registers, which must be ready first
    - leave loads and other uneven work to a producer warp
    - at the wait for results, keep one group in flight: `wgmma.wait_group 1` instead of 0
    """
    return stall(
        facts,
        "warpgroup_arrive",
        "give the four warps of a warpgroup equal work before they synchronise, and synchronise them less often",
        bears_on=_tensor(facts),
    )


def misc(facts: Facts) -> Found | None:
    """Say that warps wait for reasons that the counters do not tell apart.

    Confirm at the hottest instruction. It does not show the reason.

    Try:
    - look at the hottest instruction: `rooflens hotspots`
    - address the next largest wait first
    """
    return stall(facts, "misc", "look at the hottest instruction to see what these warps wait for")


def largest_wait(facts: Facts) -> tuple[FindingRule, Found] | None:
    """Return the largest wait of a latency-bound kernel in which none stands out: it is better than no cause."""
    shares = stall_shares(facts)
    harmless = {not_selected.__name__, *((wait.__name__,) if is_usual_wait(facts, shares) else ())}
    shares = {reason: share for reason, share in shares.items() if reason not in harmless}
    if not shares:
        return None
    rule = _RULE_OF[max(shares, key=shares.__getitem__)]
    found = rule.find(replace(facts, limits=_of_any_wait(facts.limits)))
    return (rule, replace(found, severity="contributes", confidence="low")) if found else None


@lru_cache(maxsize=8)
def _of_any_wait(limits: Thresholds) -> Thresholds:
    return replace(limits, dominant_stall=0.0)


def counters_of_wait(finding: str) -> str:
    """Name what a wait is told from; empty for the id of any other finding."""
    reason = finding.removeprefix(STALL)
    if reason not in _RULE_OF:
        return ""
    if reason in SAMPLED_ONLY:
        return f"samples of the warps, `smsp__pcsamp_warps_issue_stalled_{reason}`"
    return (
        f"`smsp__average_warps_issue_stalled_{reason}_per_issue_active` over the cycles between two instructions of a "
        "warp, else samples of the warps"
    )


def long_waits(facts: Facts) -> Iterator[FindingRule]:
    """Yield the rules of the reasons that take over `dominant_stall` of a warp's time: no other finds anything."""
    least = facts.limits.dominant_stall
    return (_RULE_OF[reason] for reason, share in stall_shares(facts).items() if share > least)


def _tensor(facts: Facts) -> frozenset[str]:
    return frozenset({LATENCY, *(name for name in facts.pipes if name.startswith("tensor"))})


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
