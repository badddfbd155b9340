"""What the page of each stall reason says: what a warp waits for there, whether or not it costs time.

A finding (`stall_long_scoreboard`) is said of a kernel, where the wait takes much of its time; a reason is a word of
ncu's, which stands in every full report. These texts tell what the word means and how it is read.
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
        "fill, or waits for a group of asynchronous copies. Long is the way, through L1, and not each wait: a hit in "
        "L1 counts here, too. The sample stands at the first instruction that uses the value.",
        "Confirm with the hit rates of L1 and L2, and with the share of device memory: they say which level answers, "
        "and whether it is full. Local sectors say that the loads are spills.",
        "It does not show how long one load takes: three loads that are waited for together count once.",
        (
            "a memory level above 60 %: fewer bytes there; the loads stand in a queue, and more of them lengthen it",
            "few warps, by grid or occupancy: more warps before anything in the loop",
            "neither: several loads before the first use of any, wider ones, or the next tile fetched meanwhile",
            "local sectors beside it: registers first (`rooflens about local_memory`)",
        ),
    ),
    "short_scoreboard": StallText(
        "Short Scoreboard",
        "The next instruction needs a result from behind the memory instruction queue (MIO) that does not come by L1: "
        "a read of shared memory, a special function (`MUFU`), a shuffle, a conversion, a special register such as the "
        "block's index (`S2R`). They take some tens of cycles.",
        "Confirm with the opcodes of the card, which say which of them the kernel has, and with the line: at the top "
        "of a short kernel it is `S2R`, in a loop hardly ever.",
        "It does not show bank conflicts, though they lengthen it: excess wavefronts do.",
        (
            "shared memory: fetch the fragment of the next step before the arithmetic of this one",
            "special functions: fewer (`exp2f`, one reciprocal for several divisions), spread over the loop",
            "at the first lines of a short kernel: more work for each thread, so that they count less",
        ),
    ),
    "lg_throttle": StallText(
        "LG Throttle",
        "The next instruction is a load or store of global or local memory, and the queue in front of L1 that takes "
        "them is full. The warp has not even asked yet. `long_scoreboard` waits for an answer, this one to put the "
        "question.",
        "Confirm with the L1 stages (LSU input, data stage) and with executed loads and stores for each byte: 4 bytes "
        "a thread and scattered addresses fill the queue soonest.",
        "It does not tell global from local memory. Sectors of each do.",
        (
            "16 bytes in place of 4 for each access, where addresses are aligned",
            "local memory or uncoalesced accesses beside it: those first, as one instruction makes many sectors",
            "re-used operands in registers or shared memory: the load that is not made waits for nothing",
            "never more loads in flight, the remedy of `long_scoreboard`: it lengthens the queue",
        ),
    ),
    "mio_throttle": StallText(
        "MIO Throttle",
        "The next instruction goes through the memory instruction queue (MIO), and that is full. It takes what the "
        "arithmetic pipes do not: shared memory, special functions, shuffles, reads of special registers, indexed "
        "constants, jumps through a register.",
        "Confirm with the share of the memory instruction queue and the opcodes, which say what stands in it.",
        "It does not show which entry is slow: one conflicting shared-memory access holds up what stands behind it.",
        (
            "shared memory in the opcodes: wider reads (`float4`, `ldmatrix`), larger tiles in registers",
            "bank conflicts beside it: those first (`rooflens about findings/bank_conflicts`)",
            "shuffles: reduce in the thread before the warp does",
            "special functions: fewer, or a polynomial for a part of them",
        ),
    ),
    "tex_throttle": StallText(
        "TEX Throttle",
        "The queue of the texture unit is full: texture fetches, and reads and writes of surfaces. Plain loads go "
        "another way since CC 7.0, those through `__ldg` as well.",
        "Confirm with the opcodes: `TEX`, `TLD`, `SULD`, `SUST`. Without any of them it should be next to nothing.",
        "It does not show the hit rate; that of L1 does.",
        (
            "plain loads for what needs neither filtering nor border handling",
            "more for each fetch: gathers, texels of four components",
        ),
        EVERY_CHIP - GR100,
        "every one from CC 7.0 on but Rubin (10.7)",
    ),
    "barrier": StallText(
        "Barrier",
        "The warp has come to a barrier of its block (`__syncthreads()`, a named barrier, a sync of a cooperative "
        "group) before the others. What it waits for is the slowest warp, and that one waits for something else. The "
        "sample stands at the instruction behind the barrier.",
        "Confirm with the hot spots: look for what keeps warps busy or waiting between this barrier and the one "
        "before; that is what the last warp does.",
        "It does not show which warp comes last, nor why. On CC 9.0 the end of a warpgroup's matrix instructions is "
        "said to count here, too.",
        (
            "one warp or thread works while the others wait: give its work to all of them",
            "a load stands before it: fetch earlier, buffer twice, and the barrier finds everyone ready",
            "one large block fills the SM: several small ones, so that another runs meanwhile",
            "only a warp shares data: `__syncwarp()` or shuffles",
        ),
    ),
    "membar": StallText(
        "Membar",
        "The warp has executed a memory fence and waits until its earlier writes can be seen by the threads that the "
        "fence names: those of the block, of the GPU, of the system. The wider, the longer.",
        "Confirm with the opcodes (`MEMBAR`, `ERRBAR`) and the line; a fence in a library's barrier counts as well.",
        "It does not show whether the fence is needed, nor what its writes wait for.",
        (
            "a fence of the GPU around data of one block: `__threadfence_block()`",
            "a fence in each thread: one a block, after `__syncthreads()`",
            "a sequentially consistent atomic (the default of `cuda::atomic`): acquire, release or relaxed",
        ),
    ),
    "drain": StallText(
        "Drain",
        "The warp is done and waits until memory has taken all that it wrote; its registers and its place are free "
        "only then. The sample stands at the exit, or behind it.",
        "Confirm with bytes written against bytes read, and with the share of device memory: where that is full the "
        "stores queue, and this is the queue.",
        "It does not show which store is late.",
        (
            "device memory full: this is where a kernel that writes waits; fewer bytes, nothing else",
            "scattered or narrow stores: coalesced ones of 16 bytes a thread",
            "threads that store one value and end: several values each, so that warps end less often",
        ),
    ),
    "wait": StallText(
        "Wait",
        "The last instruction of the warp takes a fixed number of cycles before the next may follow, and the compiler "
        "wrote that number into the code. It is a dependence on arithmetic, or between two issues of a slow pipe. "
        "Every kernel has some: two or three cycles for each instruction.",
        "Confirm by cycles and not by per cent: up to 3 between two instructions is how code is; the per cents are "
        "high where nothing else is waited for.",
        "It does not show a defect. With enough warps others fill these cycles.",
        (
            "one or two warps on a scheduler: more warps, or several chains in one, by unrolling",
            "a sum in one variable: two or four, added at the end",
            "high occupancy and full issue slots: nothing",
        ),
    ),
    "math_pipe_throttle": StallText(
        "Math Pipe Throttle",
        "The next instruction is ready, and the pipe that it goes to (fp32, fp64, tensor, ALU) still takes an earlier "
        "one. More warps cannot help: they want the same pipe.",
        "Confirm with the shares of the pipes: one is far ahead, or full for part of the time. The opcode at the "
        "hottest samples names it.",
        "It does not show whether that pipe does the kernel's purpose or only serves it.",
        (
            "tensor, fp32 or fp64 near its peak: an end, but for a narrower type or fewer operations",
            "ALU or conversions: index arithmetic in 32 bits, hoisted; fewer conversions",
            "fp64 on a chip that has few such units: look for a literal without `f`",
            "no pipe above 60 %: bursts; spread the instructions by unrolling",
        ),
    ),
    "dispatch_stall": StallText(
        "Dispatch Stall",
        "The scheduler had picked the warp, and the dispatcher held the instruction back, for a conflict that the "
        "compiler did not foresee: ports of the register file, units that finish at the same time.",
        "Confirm with the issue slots: it grows as they fill, and most reports have it below 1 %.",
        "It does not show the conflict.",
        (
            "full issue slots beside it: fewer instructions; this is then a companion, and no cause",
            "above a tenth with idle slots: another compiler version or unroll factor; compare the SASS",
        ),
    ),
    "branch_resolving": StallText(
        "Branch Resolving",
        "The warp has executed a jump and waits until its target is known and its program counter set. Each jump, call "
        "and return pays this, taken alike by all threads or not.",
        "Confirm with the part of `BRA`, `CALL` and `RET` in the opcodes, and with lines of short loops.",
        "It does not show divergence: active threads of 32 do.",
        (
            "short loops of known length: unroll them",
            "calls in the hot line, as of an fp64 division: inline, or avoid the operation",
            "small `if`s: select a value in place of jumping",
        ),
    ),
    "no_instruction": StallText(
        "No Instruction",
        "The warp has no instruction to issue, because the next one is not there yet: the instruction cache missed, or "
        "the warp has jumped. In a kernel shorter than a wave everyone meets each instruction for the first time.",
        "Confirm with where it stands: at the first instructions of a short kernel, or all over a hot loop whose code "
        "is larger than the cache.",
        "It does not tell misses from jumps; `branch_resolving` beside it hints at jumps.",
        (
            "a hot loop of many thousands of instructions: unroll and inline less",
            "calls that jump far and return, as of fp64 divisions: fewer of them",
            "a kernel of some microseconds: more work in one launch",
        ),
    ),
    "imc_miss": StallText(
        "IMC Miss",
        "The next instruction has an operand in constant memory (`c[0x0][0x160]`: parameters of the kernel, "
        "`__constant__` data), and the cache for these does not hold it yet. Each SM meets this at its first block.",
        "Confirm with the place: the first instructions mean parameters, which is the price of a short kernel; a loop "
        "means that its constants do not fit or differ.",
        "It does not count constants that are read by an index at run time; such loads go through the memory "
        "instruction queue.",
        (
            "at the first instructions: nothing in the kernel; fewer launches, or more work in each",
            "in a loop: shared memory or plain loads for large tables",
        ),
        EVERY_CHIP - TCGEN05 - GB20X - SPARK,
        "CC 7.0 to 9.0; Blackwell and later do not count it",
    ),
    "gmma": StallText(
        "GMMA",
        "A warp of a warpgroup has come to `WARPGROUP.ARRIVE`: all four say there that their operands are ready, "
        "before the matrix instructions (`HGMMA`) go out. By an answer in NVIDIA's developer forum (topic 318492) it "
        "waits here for the other three, and for the end of the products at a `barrier`.",
        "Confirm with the share of the tensor pipe: near its peak warps have to wait somewhere, and this is a good "
        "place.",
        "It does not show which of the four warps is late.",
        (
            "tensor pipe above 80 %: nothing",
            "operands that come from registers: from shared memory, which needs no preparation by the warp",
            "one warpgroup: two that take turns, so that one computes while the other prepares",
        ),
        GH100,
        "CC 9.0 alone: later ones have other matrix instructions",
    ),
    "warpgroup_arrive": StallText(
        "Warpgroup Arrive",
        "What samples say where counters say `gmma`: a warp stands at the place where the four warps of a warpgroup "
        "come together for their matrix instructions. Reports of CC 9.0 count `gmma` and sample this; none has both "
        "words for both. NVIDIA's guide says it of waits for the end of these instructions as well, which its forum "
        "counts as `barrier`.",
        "Confirm at the line: the samples stand at `WARPGROUP` instructions.",
        "It does not show which of the four warps is late.",
        (
            "read on at `gmma`: `rooflens about gmma`",
            "more matrix instructions between arriving and waiting: a whole tile in one group",
        ),
        GH100,
        "CC 9.0 alone",
    ),
    "sleeping": StallText(
        "Sleeping",
        "All threads of the warp sleep or have stepped back: `__nanosleep()` in the code, or a library that waits for "
        "a flag and is polite about it.",
        "Confirm with the opcode `NANOSLEEP` and its line. Without one it is 0 in nearly every report.",
        "It does not show what the sleeper waits for, nor whether others need the issue slots meanwhile.",
        (
            "a flag of another block: split the kernel there, and let the stream order the parts",
            "a spin lock: one lock attempt a block and not a thread, or an atomic that needs no lock",
        ),
    ),
    "misc": StallText(
        "Misc",
        "What the hardware counts as waiting and under no other word. It is next to nothing in all reports that were "
        "looked at.",
        "Confirm that it is small; above a few per cent look at the hottest instruction.",
        "It does not show a reason: that is its meaning.",
        ("take the next largest reason", "doubt the report, where this one leads: were samples dropped?"),
    ),
    "not_selected": StallText(
        "Not Selected",
        "The warp was ready, and the scheduler picked another, as it can pick one a cycle. It is the only reason that "
        "is good news: issue slots are in demand, and waits are hidden.",
        "Confirm with the eligible warps a cycle: well above 1. Then instruction issue is busy, too.",
        "It does not show that the instructions are worth issuing.",
        (
            "issue slots near full: fewer instructions for the same work",
            "a limit of registers or shared memory on the tile: fewer warps and larger tiles cost nothing here",
        ),
    ),
    "selected": StallText(
        "Selected",
        "No stall: the warp issued in this cycle. It is in the list so that all reasons add up to the cycles between "
        "two instructions of a warp, of which this is always 1.",
        "Confirm the list with it: the sum of all reasons is the latency, and 1 over the latency is this one's share.",
        "It does not show progress: a spinning warp issues, too.",
        (
            "read its share as efficiency of one warp: 1 of 20 cycles means that 20 warps would fill a scheduler",
            "a scheduler holds at most 16: above that, shorter waits are the only way",
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
