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
            f"The busiest unit is a memory level: DRAM, L2, L1 or shared memory. It is at least {_BUSY} busy, and no "
            f"pipe comes within {_LEAD} of it. The verdict names the level, because the remedy depends on it. "
            f"From {_FULL} up the kernel is at its roof: only fewer bytes make it faster.",
            "Counters: bytes of each level over time and peak, and the stages of L1 and L2; the busiest stage is the "
            "level's share.",
            "Confirm with a run at another memory clock, or with a narrower type that halves the data: the "
            "time follows the bytes.",
            "It does not show whether the bytes are needed: findings such as `uncoalesced_global_load` do, and so does "
            "the potential.",
            (
                "first do what the findings say about bytes that nothing asked for",
                "DRAM: fuse with the neighbour that writes or reads the same tensor (`torch.compile`, an epilogue)",
                "L2, L1: tile into shared memory, so that a block loads each byte once; reorder blocks for locality",
                "shared memory: keep more in registers, with larger tiles per warp (`BLOCK_M`, `num_warps`)",
                "any level: a narrower type (bf16, fp8)",
            ),
        ),
    ),
    "compute": (
        "Compute-bound",
        Text(
            f"The busiest unit is a pipe of the SM, or instruction issue: at least {_BUSY} busy, and no "
            f"memory level comes within {_LEAD} of it. A full fp32, fp64 or tensor pipe is where you want to be; "
            f"full ALU or XU pipes or issue slots are busy with overhead. From {_FULL} up the kernel is at its roof.",
            "Counters: FLOPs of each type over time and peak, busy cycles of the pipes, instructions issued per cycle.",
            "Confirm with the opcode mix of the card: the instructions of that pipe lead it.",
            "It does not show whether a smarter algorithm needs fewer operations, nor whether tensor cores could do "
            "them.",
            (
                "see which pipe it is, and whether its work is the kernel's purpose",
                "if it is: a narrower type (TF32, bf16, fp8), or an algorithm with fewer operations",
                "tensor: a deeper pipeline (`num_stages`), on CC 9.0 and later wgmma and warp specialisation",
                "ALU or issue slots: 16-byte loads, less index arithmetic, more elements per thread",
                "XU: `exp2f` for `expf`, shared reciprocals",
            ),
        ),
    ),
    "balanced": (
        "Balanced",
        Text(
            f"A memory level and a pipe are both near their limits: within {_LEAD} of one another, and one of them at "
            f"least {_BUSY} busy. Relieve one, and the other soon becomes the limit.",
            "Counters: the shares of the busiest memory level and of the busiest pipe.",
            "Confirm with the roofline: the point is near the ridge of that level.",
            "It does not show how far the two overlap in time: a kernel that loads first and then computes "
            "keeps each busy for part of the run.",
            (
                "look for one change that relieves both: a narrower type, fewer redundant accesses",
                "overlap loads with arithmetic (`cp.async`, `num_stages`) where they alternate",
                f"stop here if both are above {_FULL}: only another algorithm helps now",
            ),
        ),
    ),
    "latency": (
        "Latency-bound",
        Text(
            f"No unit is {_BUSY} busy: the kernel waits. There are too few warps, each waits too long, or a part of "
            "the GPU has nothing to do. The cause after the colon is the finding that costs most; where none "
            "stands out, it is the largest wait.",
            "Counters: the shares of all units, eligible warps per cycle, occupancy, waves, and what warps wait for.",
            "Confirm with a larger problem or batch: a kernel that waits does more work in barely more time.",
            "It does not show that waiting is a fault: a small problem cannot fill a large GPU. Where one side was "
            "not measured, the verdict says that it is provisional.",
            (
                "fill the GPU first: `small_grid` says how many blocks are missing",
                "then the waits, largest first: more loads in flight, smaller blocks at barriers, independent chains",
                "then occupancy, by the smallest step that `low_occupancy` names",
                "or do other work in the meantime: streams, a batch, a fused neighbour",
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
            "There is nothing to go by: profiling failed, a value is impossible, or the report has neither shares "
            "of units nor a short duration, launch figures, stalls or rules. Guessing would be worse than saying so.",
            "Counters: none was usable; the sentence says why.",
            "Confirm with `rooflens metrics --report PATH`, which lists what this report cannot show.",
            "It does not show that the kernel is fine, or slow: no share on the page includes it.",
            (
                "collect what is missing with the command beside the verdict, or with `rooflens profile`",
                "where every counter is NaN, profile that kernel alone, or with `--replay-mode application`",
                "where a value is impossible, copy the report again: the file is damaged",
            ),
        ),
    ),
}
"""Class of a verdict -> what its page is called and says."""
