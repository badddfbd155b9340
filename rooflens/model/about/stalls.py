"""What the page of each stall reason says: what a warp waits for there, whether or not it costs time.

A finding (`stall_long_scoreboard`) is about a kernel in which the wait takes much of the time; a reason is one of ncu's
names, and every full report lists it. These texts tell what the name means and how to read its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.model.counters.balance import SAMPLED_AS, SAMPLED_ONLY
from rooflens.model.counters.chips import EVERY_CHIP, GB20X, GH100, GR100, SPARK, TCGEN05

if TYPE_CHECKING:
    from collections.abc import Mapping


class StallText(Struct, frozen=True):
    """The parts of a page that no other record holds; each but `title` is one or more whole sentences.

    Attributes:
        title: ncu's name for people, without its `Stall`.
        meaning: What the warp waits for, and which instructions bring it there.
        confirm: From `Confirm` on, the numbers of a report that bear it out.
        blind: From `It does not` on, what it leaves open.
        tries: What to try, by what stands beside it.
        chips: Those whose counters have it; `where` says the same to people.
    """

    title: str
    meaning: str
    confirm: str
    blind: str
    tries: tuple[str, ...]
    chips: frozenset[str] = EVERY_CHIP
    where: str = "every one from CC 7.0 on"


STALL_TEXTS: Mapping[str, StallText] = {
    "long_scoreboard": StallText(
        "Long Scoreboard",
        "The next instruction needs a register that a load of global, local, surface or texture memory has yet to "
        "fill, or it waits for a group of asynchronous copies. `Long` refers to the path through L1 and not to the "
        "length of the wait: a hit in L1 counts here as well. Samples fall on the first instruction that uses the "
        "value.",
        "Confirm with the hit rates of L1 and L2, and with DRAM's share: they say which level answers, and whether it "
        "is full. Local sectors say that the loads are of local memory, such as spills.",
        "It does not show how long one load takes: three loads that are waited for together count once.",
        (
            "a memory level above 60 %: move fewer bytes there; more loads only lengthen its queue",
            "few warps, because of the grid or the occupancy: more warps, before any change to the loop",
            "neither: issue several loads before the first use, load wider, or fetch the next tile meanwhile",
            "local sectors as well: free registers first (`rooflens about local_memory`)",
        ),
    ),
    "short_scoreboard": StallText(
        "Short Scoreboard",
        "The next instruction needs a result that comes through the memory instruction queue (MIO) but not from L1: a "
        "read of shared memory, a special function (`MUFU`), a shuffle, a conversion, or a special register such as "
        "the block's index (`S2R`). These take some tens of cycles.",
        "Confirm with the opcodes, which say which of these the kernel has, and with the line: at the top of a short "
        "kernel the cause is `S2R`, in a loop it hardly ever is.",
        "It does not show bank conflicts, though they lengthen the wait: excess wavefronts show them.",
        (
            "shared memory: fetch the fragment of the next step before the arithmetic of this one",
            "special functions: fewer (`exp2f`, one reciprocal for several divisions), spread over the loop",
            "at the first lines of a short kernel: more work per thread, so that these lines matter less",
        ),
    ),
    "lg_throttle": StallText(
        "LG Throttle",
        "The next instruction is a load or store of global or local memory, and the queue in front of L1 that takes "
        "them is full. The warp could not even send its request. With `long_scoreboard` the request is on its way and "
        "the warp waits for the data.",
        "Confirm with the L1 stages (LSU input, data stage) and with the number of loads and stores per byte: 4-byte "
        "accesses and scattered addresses fill the queue soonest.",
        "It does not tell global from local memory; the sectors of each do.",
        (
            "16 bytes instead of 4 per access, where addresses are aligned",
            "local memory or uncoalesced accesses as well: fix those first, as one such instruction makes many sectors",
            "operands that are used again: keep them in registers or shared memory, which removes the load",
            "not more loads in flight, the remedy for `long_scoreboard`: that lengthens the queue",
        ),
    ),
    "mio_throttle": StallText(
        "MIO Throttle",
        "The next instruction goes through the memory instruction queue (MIO), and the queue is full. It takes what "
        "the arithmetic pipes do not: shared memory, special functions, shuffles, reads of special registers, indexed "
        "constants, jumps through a register.",
        "Confirm with the share of the memory instruction queue and the opcodes, which say what fills it.",
        "It does not show which entry is slow: one shared-memory access with bank conflicts holds up all behind it.",
        (
            "shared memory in the opcodes: wider reads (`float4`, `ldmatrix`), larger tiles in registers",
            "bank conflicts as well: fix those first (`rooflens about findings/bank_conflicts`)",
            "shuffles: reduce in the thread before the warp does",
            "special functions: fewer of them, or polynomials instead of some",
        ),
    ),
    "tex_throttle": StallText(
        "TEX Throttle",
        "The queue of the texture unit is full: texture fetches, and reads and writes of surfaces. Since CC 7.0 plain "
        "loads do not use this queue, not even those through `__ldg`.",
        "Confirm with the opcodes: `TEX`, `TLD`, `SULD`, `SUST`. Without any of them this stall should be close to "
        "zero.",
        "It does not show the hit rate; that of L1 does.",
        (
            "plain loads for what needs neither filtering nor border handling",
            "more data per fetch: gathers, texels of four components",
        ),
        EVERY_CHIP - GR100,
        "every one from CC 7.0 on but Rubin (10.7)",
    ),
    "barrier": StallText(
        "Barrier",
        "The warp has reached a barrier of its block (`__syncthreads()`, a named barrier, a sync of a cooperative "
        "group) before the others. It waits for the slowest warp, which is itself working or waiting for something "
        "else. Samples fall on the instruction after the barrier.",
        "Confirm with the hot spots: what keeps warps busy or waiting between the previous barrier and this one is "
        "what the last warp is doing.",
        "It does not show which warp comes last, nor why. On CC 9.0 the wait for the end of a warpgroup's matrix "
        "instructions reportedly counts here as well (see `gmma`).",
        (
            "one warp or thread works while the others wait: give its work to all of them",
            "a load just before the barrier: fetch earlier with double buffering, so that all warps arrive ready",
            "one large block fills the SM: use several smaller ones, so that another can run meanwhile",
            "data is shared only within a warp: `__syncwarp()` or shuffles",
        ),
    ),
    "membar": StallText(
        "Membar",
        "The warp has executed a memory fence and waits until its earlier writes are visible to the fence's scope: the "
        "block, the GPU or the system. The wider the scope, the longer the wait.",
        "Confirm with the opcodes (`MEMBAR`, `ERRBAR`) and the line; a fence in a library's barrier counts as well.",
        "It does not show whether the fence is needed, nor what holds up the writes.",
        (
            "a GPU-wide fence around data of one block: `__threadfence_block()`",
            "a fence in every thread: one per block, after `__syncthreads()`",
            "a sequentially consistent atomic (the default of `cuda::atomic`): acquire, release or relaxed",
        ),
    ),
    "drain": StallText(
        "Drain",
        "The warp has finished and waits until memory has accepted all its stores; only then are its registers and its "
        "slot free. Samples fall on the exit instruction, or after it.",
        "Confirm with bytes written against bytes read, and with DRAM's share: where DRAM is full, stores queue up and "
        "warps wait here.",
        "It does not show which store is late.",
        (
            "DRAM full: expected in a kernel that writes; only fewer bytes help",
            "scattered or narrow stores: coalesced ones of 16 bytes per thread",
            "threads that store one value and exit: several values each, so that warps exit less often",
        ),
    ),
    "wait": StallText(
        "Wait",
        "The warp's last instruction takes a fixed number of cycles before the next may issue, and the compiler "
        "encoded that number in the instruction. The cause is a dependence on arithmetic, or two instructions in a row "
        "for a slow pipe. Every kernel has some: two or three cycles per instruction.",
        "Confirm by cycles and not by share: up to 3 cycles between two instructions are normal, and they are a high "
        "share where warps wait for nothing else.",
        "It does not by itself show a defect: with enough warps, other warps fill these cycles.",
        (
            "one or two warps per scheduler: more warps, or several independent chains per warp, by unrolling",
            "a sum in one variable: two or four partial sums, added at the end",
            "high occupancy and full issue slots: nothing",
        ),
    ),
    "math_pipe_throttle": StallText(
        "Math Pipe Throttle",
        "The next instruction is ready, but its pipe (fp32, fp64, tensor, ALU) is still taking in an earlier one. More "
        "warps of the same code hardly help: they need the same pipe.",
        "Confirm with the shares of the pipes: one is far ahead, or full for part of the time. The opcode with the "
        "most samples names it.",
        "It does not show whether that pipe does the kernel's real work or only overhead, such as index arithmetic.",
        (
            "tensor, fp32 or fp64 near its peak: only a narrower type or fewer operations help",
            "ALU or conversions: index arithmetic in 32 bits, hoisted; fewer conversions",
            "fp64 on a chip with few fp64 units: look for a literal without `f`",
            "no pipe above 60 %: instructions come in bursts; spread them by unrolling",
        ),
    ),
    "dispatch_stall": StallText(
        "Dispatch Stall",
        "The scheduler had picked the warp, but the dispatcher held the instruction back because of a conflict that "
        "the compiler did not foresee, such as register file ports or two units that finish at the same time.",
        "Confirm with the issue slots: it grows as they fill, and most reports have it below 1 %.",
        "It does not show which conflict it was.",
        (
            "full issue slots as well: fewer instructions; this stall is then a side effect, not a cause",
            "above 10 % with idle issue slots: try another compiler version or unroll factor, and compare the SASS",
        ),
    ),
    "branch_resolving": StallText(
        "Branch Resolving",
        "The warp has executed a branch and waits until the target is known and its program counter is set. Every "
        "branch, call and return costs this, whether or not the threads diverge.",
        "Confirm with the share of `BRA`, `CALL` and `RET` among the opcodes, and with samples at short loops.",
        "It does not show divergence: the active threads per warp do.",
        (
            "short loops of known length: unroll them",
            "calls at the hot line, such as for an fp64 division: inline them, or avoid the operation",
            "short `if` bodies: select a value instead of branching",
        ),
    ),
    "no_instruction": StallText(
        "No Instruction",
        "The warp has no instruction to issue, because the next one has not been fetched yet: the instruction cache "
        "missed, or the warp has branched. In a grid of less than one wave, every SM runs all code for the first time.",
        "Confirm with the place of the samples: the first instructions of a short kernel, or all of a hot loop whose "
        "code is larger than the cache.",
        "It does not tell misses from branches; a high `branch_resolving` as well hints at branches.",
        (
            "a hot loop of many thousands of instructions: unroll and inline less",
            "calls to far-away code, such as for fp64 divisions: fewer of them",
            "a kernel of a few microseconds: more work per launch",
        ),
    ),
    "imc_miss": StallText(
        "IMC Miss",
        "The next instruction has an operand in constant memory (`c[0x0][0x160]`: parameters of the kernel, "
        "`__constant__` data), and the constant cache does not hold it yet. Each SM has such misses in its first "
        "block.",
        "Confirm with the place of the samples: at the first instructions the operands are parameters, a fixed cost "
        "that only short kernels notice; in a loop, the constants do not fit in the cache or their addresses vary.",
        "It does not count constants that are read by an index at run time; such loads go through the memory "
        "instruction queue.",
        (
            "at the first instructions: nothing to change in the kernel; fewer launches, or more work in each",
            "in a loop: shared memory or plain loads for large tables",
        ),
        EVERY_CHIP - TCGEN05 - GB20X - SPARK,
        "CC 7.0 to 9.0; Blackwell and later do not count it",
    ),
    "gmma": StallText(
        "GMMA",
        "A warp of a warpgroup has reached `WARPGROUP.ARRIVE`, where all four warps signal that their operands are "
        "ready before the matrix instructions (`HGMMA`) issue. According to an answer in NVIDIA's developer forum "
        "(topic 318492), the wait for the other three warps counts here, and the wait for the products to finish as "
        "`barrier`.",
        "Confirm with the share of the tensor pipe: near its peak, warps have to wait somewhere, and this stall is "
        "harmless.",
        "It does not show which of the four warps is late.",
        (
            "tensor pipe above 80 %: nothing",
            "operands in registers: read them from shared memory, which needs no preparation by the warp",
            "one warpgroup: use two that take turns, so that one computes while the other prepares",
        ),
        GH100,
        "CC 9.0 only: later chips have other matrix instructions",
    ),
    "warpgroup_arrive": StallText(
        "Warpgroup Arrive",
        "The samples' name for what counters call `gmma`: a warp is where the four warps of a warpgroup meet before "
        "their matrix instructions. Reports of CC 9.0 have a counter for `gmma` and samples for `warpgroup_arrive`; "
        "none has a counter and samples under the same name. NVIDIA's guide also puts waits for the end of these "
        "instructions here; an answer in its forum counts them as `barrier`.",
        "Confirm at the line: the samples fall on `WARPGROUP` instructions.",
        "It does not show which of the four warps is late.",
        (
            "read on at `gmma`: `rooflens about gmma`",
            "more matrix instructions between arrive and wait: a whole tile in one group",
        ),
        GH100,
        "CC 9.0 only",
    ),
    "sleeping": StallText(
        "Sleeping",
        "All threads of the warp sleep or have yielded: the code calls `__nanosleep()`, or a library backs off while "
        "it waits for a flag.",
        "Confirm with the opcode `NANOSLEEP` and its line. Without that opcode the stall is 0 in nearly every report.",
        "It does not show what the sleeping warp waits for, nor whether other warps need the issue slots meanwhile.",
        (
            "a flag of another block: split the kernel there, and let the stream order the parts",
            "a spin lock: one attempt per block instead of per thread, or an atomic that needs no lock",
        ),
    ),
    "misc": StallText(
        "Misc",
        "Waits that the hardware counts under no other reason. It is close to zero in all reports that we have looked "
        "at.",
        "Confirm that it is small; above a few per cent, look at the hottest instruction.",
        "It does not show why the warp waits.",
        ("take the next largest reason", "if this reason leads, doubt the report: were samples dropped?"),
    ),
    "not_selected": StallText(
        "Not Selected",
        "The warp was ready, but the scheduler picked another, as it can issue one per cycle. It is the only stall "
        "that is good news: more than one warp was ready, so waits are hidden.",
        "Confirm with the eligible warps per cycle: well above 1. Then instruction issue is busy as well.",
        "It does not show whether the instructions do useful work.",
        (
            "issue slots near full: fewer instructions for the same work",
            "a tile limited by registers or shared memory: fewer warps with larger tiles cost nothing here",
        ),
    ),
    "selected": StallText(
        "Selected",
        "No stall: the warp issued in this cycle. It is in the list so that all reasons add up to the cycles between "
        "two instructions of a warp; its own part is always 1.",
        "Confirm with the sum of all reasons, which is the latency: 1 over the latency is the share of `selected`.",
        "It does not show progress: a spinning warp issues as well.",
        (
            "read its share as the efficiency of one warp: 1 of 20 cycles means that 20 warps would fill a scheduler",
            "a scheduler holds at most 16 warps, on some chips 8 or 12: if it takes more, only shorter waits help",
        ),
    ),
}
"""Stall reason, as counters spell it -> what its page says, in groups: memory, order, arithmetic, instructions."""

OTHER_NAMES: Mapping[str, str] = {sampled: counted for counted, sampled in SAMPLED_AS.items()}
"""Another spelling of a reason -> the name of its page."""


_SAMPLED_AS = {**SAMPLED_AS, "gmma": "warpgroup_arrive"}


def counters_of(reason: str) -> str:
    """Say where a report has a reason, and which chips count it."""
    counted = f"`smsp__average_warps_issue_stalled_{reason}_per_issue_active`, in cycles between two instructions"
    sampled = f"samples, `smsp__pcsamp_warps_issue_stalled_{_SAMPLED_AS.get(reason, reason)}`"
    chips = f"Chips: {STALL_TEXTS[reason].where}."
    if reason in SAMPLED_ONLY:
        return f"Counters: {sampled}. {chips}"
    return f"Counters: {counted}; {sampled}. {chips}"
