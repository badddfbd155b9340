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
    """One step of the ladder on the chips from a compute capability on.

    Attributes:
        name: What is done, in a few words.
        since: The first compute capability; of several of one step the newest that a chip has reached is its own.
    """

    step: Step
    name: str
    spelling: Spelling
    since: tuple[int, int] = (7, 0)


LADDER: tuple[Rung, ...] = (
    Rung(
        "tiles",
        "tiles in shared memory, read by `ldmatrix`",
        Spelling(
            "`ldmatrix`, chunks of 16 bytes placed by the row's number",
            "`SM75_U32x4_LDSM_N`, `Swizzle<3, 3, 3>`",
            "`tl.dot` on blocks, by itself",
        ),
    ),
    Rung(
        "copies",
        "copies without registers",
        Spelling("`cp.async` of 16 bytes", "`SM80_CP_ASYNC_CACHEGLOBAL`", "`num_stages=2`"),
        (8, 0),
    ),
    Rung(
        "copies",
        "copies without registers",
        Spelling("TMA: `cp.async.bulk.tensor` and an mbarrier", "`SM90_TMA_LOAD`", "`tl.make_tensor_descriptor`"),
        (9, 0),
    ),
    Rung(
        "stages",
        "more stages",
        Spelling("loads into registers before the product, stores to a second buffer after it", None, None),
    ),
    Rung(
        "stages",
        "more stages",
        Spelling("`cp.async.wait_group` of stages - 2", "`Stages`", "`num_stages`"),
        (8, 0),
    ),
    Rung(
        "stages",
        "more stages",
        Spelling("an mbarrier for each stage, and the stage's parity", "`StageCount<n>`", "`num_stages`"),
        (9, 0),
    ),
    Rung(
        "product",
        "the chip's own product",
        Spelling("`mma.sync`, `wmma`", "`SM75_16x8x8_F32F16F16F32_TN`", "`tl.dot`, by itself"),
    ),
    Rung(
        "product",
        "the chip's own product",
        Spelling("`mma.sync.m16n8k16`", "`SM80_16x8x16_F32F16F16F32_TN`", "`tl.dot`, by itself"),
        (8, 0),
    ),
    Rung(
        "product",
        "the chip's own product",
        Spelling("`wgmma.mma_async`", "`MainloopSm90TmaGmmaWarpSpecialized`", "`tl.dot` with `num_warps` >= 4"),
        (9, 0),
    ),
    Rung(
        "product",
        "the chip's own product",
        Spelling("`tcgen05.mma`", "`KernelTmaWarpSpecialized2SmSm100`", "`tl.dot` with `num_warps` >= 4"),
        (10, 0),
    ),
    Rung(
        "product",
        "the chip's own product",
        Spelling("`mma.sync` with `kind::f8f6f4`", "`KernelTmaWarpSpecializedCooperative`", "`tl.dot`, by itself"),
        (12, 0),
    ),
    Rung(
        "overlap",
        "other arithmetic beside the product",
        Spelling("two tiles in turn, or a softmax between products of another tile", None, "`num_stages`, `num_warps`"),
    ),
    Rung(
        "overlap",
        "other arithmetic beside the product",
        Spelling(
            "a warp that only copies, `setmaxnreg`; two groups in turn",
            "`KernelTmaWarpSpecializedPingpong`",
            "`tl.range(..., warp_specialize=True)`",
        ),
        (9, 0),
    ),
    Rung(
        "barriers",
        "fewer warps at a barrier",
        Spelling("`bar.sync` with an id and a number of threads", "`arch::NamedBarrier`", "`num_warps`"),
    ),
    Rung(
        "results",
        "larger tiles",
        Spelling("more fragments a warp", "`TileShape`, `WarpShape`", "`BLOCK_M`, `BLOCK_N` with `num_warps`"),
    ),
    Rung(
        "clusters",
        "clusters",
        Spelling("`cp.async.bulk.tensor` with `.multicast::cluster`", "`ClusterShape`", "`num_ctas`"),
        (9, 0),
    ),
    Rung(
        "order",
        "order of blocks",
        Spelling("tiles in groups of rows", "`raster_order`, `max_swizzle_size`", "`GROUP_SIZE_M`"),
    ),
    Rung(
        "persistent",
        "persistent blocks",
        Spelling("a loop over tiles, blocks = SMs", "`PersistentScheduler`", "a loop from `tl.program_id` by the SMs"),
    ),
    Rung(
        "split",
        "more blocks of one tile",
        Spelling("a part of K for each block", "`StreamKScheduler`, `split_k_slices`", "an axis of the grid for K"),
    ),
    Rung(
        "registers",
        "warps and registers",
        Spelling("threads of a block, `__launch_bounds__`", "`TileShape`, `WarpShape`", "`num_warps`, `maxnreg`"),
    ),
    Rung(
        "registers",
        "warps and registers",
        Spelling("`setmaxnreg` by role, `__launch_bounds__`", "`TileShape`", "`num_warps`, `maxnreg`"),
        (9, 0),
    ),
    Rung(
        "narrower",
        "a narrower type",
        Spelling("int8 `mma.sync`", "`int8_t`", "`tl.dot` of int8"),
    ),
    Rung(
        "narrower",
        "a narrower type",
        Spelling("`e4m3` operands", "`float_e4m3_t`", "`tl.dot` of `float8e4nv`"),
        (9, 0),
    ),
    Rung(
        "narrower",
        "a narrower type",
        Spelling("`kind::f8f6f4`, block scales", "`nv_float4_t`, `mx_float8_t`", "`tl.dot_scaled`"),
        (10, 0),
    ),
)
"""The steps in the order in which such kernels are tuned, each from its oldest chips to its newest."""

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
    return next((one.spelling for one in reversed(LADDER) if one.step == step and one.since <= capability), None)


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
