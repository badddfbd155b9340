"""What a step of the ladder of tensor kernels is called in CUDA, CUTLASS and Triton: the one table of it.

Moves of kernels on tensor cores or with asynchronous copies say it, and `docs/kernels/tensor-cores.md` tables it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.records import Move, MoveKind, Spelling
from rooflens.model.verdict.facts import Facts

Step = Literal[
    "tiles",
    "copies",
    "stages",
    "product",
    "overlap",
    "barriers",
    "results",
    "clusters",
    "order",
    "persistent",
    "split",
    "registers",
    "narrower",
]


class Rung(Struct, frozen=True):
    """One step of the ladder.

    Attributes:
        name: What is done, in a few words.
        spellings: By the compute capability from which on it is called so, the oldest first.
    """

    step: Step
    name: str
    spellings: Mapping[tuple[int, int], Spelling]


LADDER: tuple[Rung, ...] = (
    Rung(
        "tiles",
        "tiles in shared memory, read by `ldmatrix`",
        {
            (7, 0): Spelling(
                "`ldmatrix`, chunks of 16 bytes placed by the row's number",
                "`SM75_U32x4_LDSM_N`, `Swizzle<3, 3, 3>`",
                "`tl.dot` on blocks, by itself",
            ),
        },
    ),
    Rung(
        "copies",
        "copies without registers",
        {
            (8, 0): Spelling("`cp.async` of 16 bytes", "`SM80_CP_ASYNC_CACHEGLOBAL`", "`num_stages=2`"),
            (9, 0): Spelling(
                "TMA: `cp.async.bulk.tensor` and an mbarrier", "`SM90_TMA_LOAD`", "`tl.make_tensor_descriptor`"
            ),
        },
    ),
    Rung(
        "stages",
        "more stages",
        {
            (7, 0): Spelling("loads into registers before the product, stores to a second buffer after it", None, None),
            (8, 0): Spelling("`cp.async.wait_group` of stages - 2", "`Stages`", "`num_stages`"),
            (9, 0): Spelling("an mbarrier for each stage, and the stage's parity", "`StageCount<n>`", "`num_stages`"),
        },
    ),
    Rung(
        "product",
        "the chip's own product",
        {
            (7, 0): Spelling("`mma.sync`, `wmma`", "`SM75_16x8x8_F32F16F16F32_TN`", "`tl.dot`, by itself"),
            (8, 0): Spelling("`mma.sync.m16n8k16`", "`SM80_16x8x16_F32F16F16F32_TN`", "`tl.dot`, by itself"),
            (9, 0): Spelling(
                "`wgmma.mma_async`", "`MainloopSm90TmaGmmaWarpSpecialized`", "`tl.dot` with `num_warps` >= 4"
            ),
            (10, 0): Spelling("`tcgen05.mma`", "`KernelTmaWarpSpecialized2SmSm100`", "`tl.dot` with `num_warps` >= 4"),
            (12, 0): Spelling(
                "`mma.sync` with `kind::f8f6f4`", "`KernelTmaWarpSpecializedCooperative`", "`tl.dot`, by itself"
            ),
        },
    ),
    Rung(
        "overlap",
        "other arithmetic beside the product",
        {
            (7, 0): Spelling(
                "two tiles in turn, or a softmax between products of another tile", None, "`num_stages`, `num_warps`"
            ),
            (9, 0): Spelling(
                "a warp that only copies, `setmaxnreg`; two groups in turn",
                "`KernelTmaWarpSpecializedPingpong`",
                "`tl.range(..., warp_specialize=True)`",
            ),
        },
    ),
    Rung(
        "barriers",
        "fewer warps at a barrier",
        {
            (7, 0): Spelling("`bar.sync` with an id and a number of threads", "`arch::NamedBarrier`", "`num_warps`"),
        },
    ),
    Rung(
        "results",
        "larger tiles",
        {
            (7, 0): Spelling(
                "more fragments a warp", "`TileShape`, `WarpShape`", "`BLOCK_M`, `BLOCK_N` with `num_warps`"
            ),
        },
    ),
    Rung(
        "clusters",
        "clusters",
        {
            (9, 0): Spelling("`cp.async.bulk.tensor` with `.multicast::cluster`", "`ClusterShape`", "`num_ctas`"),
        },
    ),
    Rung(
        "order",
        "order of blocks",
        {
            (7, 0): Spelling("tiles in groups of rows", "`raster_order`, `max_swizzle_size`", "`GROUP_SIZE_M`"),
        },
    ),
    Rung(
        "persistent",
        "persistent blocks",
        {
            (7, 0): Spelling(
                "a loop over tiles, blocks = SMs", "`PersistentScheduler`", "a loop from `tl.program_id` by the SMs"
            ),
        },
    ),
    Rung(
        "split",
        "more blocks of one tile",
        {
            (7, 0): Spelling(
                "a part of K for each block", "`StreamKScheduler`, `split_k_slices`", "an axis of the grid for K"
            ),
        },
    ),
    Rung(
        "registers",
        "warps and registers",
        {
            (7, 0): Spelling(
                "threads of a block, `__launch_bounds__`", "`TileShape`, `WarpShape`", "`num_warps`, `maxnreg`"
            ),
            (9, 0): Spelling("`setmaxnreg` by role, `__launch_bounds__`", "`TileShape`", "`num_warps`, `maxnreg`"),
        },
    ),
    Rung(
        "narrower",
        "a narrower type",
        {
            (7, 0): Spelling("int8 `mma.sync`", "`int8_t`", "`tl.dot` of int8"),
            (9, 0): Spelling("`e4m3` operands", "`float_e4m3_t`", "`tl.dot` of `float8e4nv`"),
            (10, 0): Spelling("`kind::f8f6f4`, block scales", "`nv_float4_t`, `mx_float8_t`", "`tl.dot_scaled`"),
        },
    ),
)
"""The steps in the order in which such kernels are tuned."""

_STEP_OF: Mapping[MoveKind, Step] = {
    "wide": "tiles",
    "pad": "tiles",
    "tile": "tiles",
    "tensor": "product",
    "overlap": "overlap",
    "barrier": "barriers",
    "results": "results",
    "cache": "order",
    "balance": "persistent",
    "blocks": "split",
    "occupancy": "registers",
    "spill": "registers",
    "precision": "narrower",
}
"""Kind of a move -> the step that it is; more loads in flight are copies at first, and more stages then."""


def spelling_of(step: Step, capability: tuple[int, int]) -> Spelling | None:
    """Return what a step is called on a chip; None if it has none of it."""
    (rung,) = (one for one in LADDER if one.step == step)
    known = [spelling for since, spelling in rung.spellings.items() if since <= capability]
    return known[-1] if known else None


def spelt(facts: Facts, moves: Iterable[Move]) -> Iterator[Move]:
    """Add to moves what they are called: to all of a kernel on tensor cores or with asynchronous copies."""
    does = facts.does
    is_such = does.uses_tensor_cores or bool(does.copies) or (facts.tensor_use or 0.0) >= facts.limits.negligible_share
    for move in moves:
        step = _STEP_OF.get(move.kind)
        if move.kind == "inflight":
            step = "stages" if does.copies else "copies"
        if move.spelling is None and step is not None and (is_such or move.kind == "tensor"):
            yield replace(move, spelling=spelling_of(step, facts.kernel.capability))
        else:
            yield move
