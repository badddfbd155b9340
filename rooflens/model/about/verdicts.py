"""What the page of each verdict says: its limits are those of `thresholds.toml`, filled in where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import percent
from rooflens.model.about.texts import Text
from rooflens.model.verdict.thresholds import default_thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.bounds import Bound

_LIMITS = default_thresholds()
_BUSY, _FULL = percent(_LIMITS.bound_share), percent(_LIMITS.at_roof_share)
_LEAD = f"{100 * _LIMITS.balanced_lead:g} points"
_SHORT = f"{_LIMITS.overhead_duration_ns / 1000:g} us"

VERDICTS: Mapping[Bound, tuple[str, Text]] = {
    "memory": (
        "Memory-bound",
        Text(
            f"The busiest unit is one of memory: device memory, L2, L1 or shared memory. It is at least {_BUSY} busy, "
            f"and no pipe is as busy to within {_LEAD}. The verdict names the level, because the remedy depends on it. "
            f"From {_FULL} on the kernel is at its roof: faster only with fewer bytes.",
            "Counters: bytes of each level over time and peak, and the stages of L1 and L2; the busiest stage is the "
            "level's share.",
            "Confirm by a run at another memory clock, or with half of the data in a narrower type: the time follows "
            "the bytes.",
            "It does not show whether the bytes are needed: findings such as `uncoalesced_global_load` do, and so does "
            "the potential.",
            (
                "do first what the findings say about bytes that nobody asked for",
                "DRAM: fuse with the neighbour that writes or reads the same tensor (`torch.compile`, an epilogue)",
                "L2, L1: tile into shared memory, so that a block loads each byte once; order blocks for locality",
                "shared memory: hold more in registers, with larger tiles per warp (`BLOCK_M`, `num_warps`)",
                "any level: a narrower type (bf16, fp8)",
            ),
        ),
    ),
    "compute": (
        "Compute-bound",
        Text(
            f"The busiest unit is a pipe of the SM, or the slots that issue instructions: at least {_BUSY} busy, and "
            f"no memory level is as busy to within {_LEAD}. A full fp32, fp64 or tensor pipe is a good end; a full "
            f"ALU, XU or issue slot is full of what only serves. From {_FULL} on the kernel is at its roof.",
            "Counters: FLOPs of each type over time and peak, busy cycles of the pipes, instructions issued a cycle.",
            "Confirm with the opcode mix of the card: the instructions of that pipe lead it.",
            "It does not show whether a smarter algorithm needs fewer operations, nor whether tensor cores could do "
            "them.",
            (
                "see which pipe it is, and whether its work is the kernel's purpose",
                "a good one: a narrower type (TF32, bf16, fp8), or fewer operations by algorithm",
                "tensor: a deeper pipeline (`num_stages`), on CC 9.0 and later wgmma and warp specialisation",
                "ALU or issue slots: 16-byte loads, less index arithmetic, more elements a thread",
                "XU: `exp2f` for `expf`, shared reciprocals",
            ),
        ),
    ),
    "balanced": (
        "Balanced",
        Text(
            f"A memory level and a pipe are both near their limits: within {_LEAD} of one another, and one of them at "
            f"least {_BUSY} busy. Relieve one, and the other holds the kernel up soon after.",
            "Counters: the shares of the busiest memory level and of the busiest pipe.",
            "Confirm with the roofline: the point stands near the ridge of that level.",
            "It does not show how far the two overlap in time: a kernel that loads first and computes then keeps each "
            "busy for a part of the run.",
            (
                "look for one change that spares both: a narrower type, fewer redundant accesses",
                "overlap loads with arithmetic (`cp.async`, `num_stages`), if they take turns",
                f"stop here where both are above {_FULL}: little is left but another algorithm",
            ),
        ),
    ),
    "latency": (
        "Latency-bound",
        Text(
            f"No unit is {_BUSY} busy: the kernel waits. There are too few warps, each waits too long, or a part of "
            "the GPU has nothing to do. The cause behind the colon is the finding that costs most; where none stands "
            "out, the largest wait.",
            "Counters: the shares of all units, eligible warps a cycle, occupancy, waves, and what warps wait for.",
            "Confirm with a larger problem or batch: a kernel that waits does more in hardly more time.",
            "It does not show that waiting is a fault: a small problem cannot fill a large GPU. Where one side was not "
            "measured the verdict says that it is provisional.",
            (
                "fill the GPU first: `small_grid` says how many blocks are missing",
                "then the waits by size: more loads in flight, smaller blocks at barriers, independent chains",
                "then occupancy, by the smallest step that `low_occupancy` names",
                "or do other work meanwhile: streams, a batch, a fused neighbour",
            ),
        ),
    ),
    "overhead": (
        "Overhead-bound",
        Text(
            f"The launch costs as much as the kernel: it is shorter than {_SHORT} with no unit {_BUSY} busy, or the "
            "GPU is idle around its launches for longer than it runs.",
            "Counters: the GPU duration of a launch and, where a trace was taken, the gaps around it unprofiled.",
            "Confirm on a timeline without the profiler (`nsys`): there are gaps between such kernels.",
            "It does not show gaps where no trace was taken: ncu runs kernels one at a time. How much of the whole "
            "program's time is gaps is stated for the program.",
            (
                'launch many at once: a CUDA graph (`torch.cuda.graph`, `torch.compile(mode="reduce-overhead")`)',
                "fuse with the neighbours, or batch inputs into one launch",
                "let the host run ahead: no `.item()`, no synchronisation, pinned copies",
            ),
        ),
    ),
    "unknown": (
        "Unknown",
        Text(
            "Nothing speaks: profiling failed, a value is impossible, or the report has neither shares of units nor a "
            "short time, launch figures, stalls or rules to go by. Guessing would be worse than saying so.",
            "Counters: none that was usable; the sentence says why.",
            "Confirm with `rooflens metrics --report PATH`, which lists what cannot be told from this report.",
            "It does not show that the kernel is fine, or slow: it is in no share of the page.",
            (
                "collect what is missing with the command beside the verdict, or with `rooflens profile`",
                "where every counter is NaN, profile that kernel alone, or with `--replay-mode application`",
                "where a value is impossible, copy the report again: the file is damaged",
            ),
        ),
    ),
}
"""Class of a verdict -> what its page is called and says."""
