"""What a step of the ladder of tensor kernels is called in CUDA, CUTLASS and Triton: the one table of it.

Moves of kernels on tensor cores or with asynchronous copies say it, and `docs/kernels/tensor-cores.md` tables it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import astuple, replace

from rooflens.model.records import Limiter, Move, MoveKind, Spelling
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
    "shared",
    "carveout",
    "warps",
    "spills",
    "narrower",
]


class SpelledStep(Struct, frozen=True):
    """One step of the ladder.

    Attributes:
        name: What is done, in a few words.
        spellings: By the compute capability from which on it is called so, the oldest first.
    """

    step: Step
    name: str
    spellings: Mapping[tuple[int, int], Spelling]


LADDER: tuple[SpelledStep, ...] = (
    SpelledStep(
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
    SpelledStep(
        "copies",
        "copies without registers",
        {
            (8, 0): Spelling("`cp.async` of 16 bytes", "`SM80_CP_ASYNC_CACHEGLOBAL`", "`num_stages=2`"),
            (9, 0): Spelling(
                "TMA: `cp.async.bulk.tensor` and an mbarrier", "`SM90_TMA_LOAD`", "`tl.make_tensor_descriptor`"
            ),
        },
    ),
    SpelledStep(
        "stages",
        "more stages",
        {
            (7, 0): Spelling("loads into registers before the product, stores to a second buffer after it", None, None),
            (8, 0): Spelling("`cp.async.wait_group` of stages - 2", "`Stages`", "`num_stages`"),
            (9, 0): Spelling("an mbarrier for each stage, and the stage's parity", "`StageCount<n>`", "`num_stages`"),
        },
    ),
    SpelledStep(
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
    SpelledStep(
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
    SpelledStep(
        "barriers",
        "fewer warps at a barrier",
        {
            (7, 0): Spelling("`bar.sync` with an id and a number of threads", "`arch::NamedBarrier`", "`num_warps`"),
        },
    ),
    SpelledStep(
        "results",
        "larger tiles",
        {
            (7, 0): Spelling(
                "more fragments a warp", "`TileShape`, `WarpShape`", "`BLOCK_M`, `BLOCK_N` with `num_warps`"
            ),
        },
    ),
    SpelledStep(
        "clusters",
        "clusters",
        {
            (9, 0): Spelling("`cp.async.bulk.tensor` with `.multicast::cluster`", "`ClusterShape`", "`num_ctas`"),
        },
    ),
    SpelledStep(
        "order",
        "order of blocks",
        {
            (7, 0): Spelling("tiles in groups of rows", "`raster_order`, `max_swizzle_size`", "`GROUP_SIZE_M`"),
        },
    ),
    SpelledStep(
        "persistent",
        "persistent blocks",
        {
            (7, 0): Spelling(
                "a loop over tiles, blocks = SMs", "`PersistentScheduler`", "a loop from `tl.program_id` by the SMs"
            ),
        },
    ),
    SpelledStep(
        "split",
        "more blocks of one tile",
        {
            (7, 0): Spelling(
                "a part of K for each block", "`StreamKScheduler`, `split_k_slices`", "an axis of the grid for K"
            ),
        },
    ),
    SpelledStep(
        "registers",
        "fewer registers a thread",
        {
            (7, 0): Spelling(
                "`__launch_bounds__` with blocks of an SM", "`MinBlocksPerMultiprocessor`, `WarpShape`", "`maxnreg`"
            ),
        },
    ),
    SpelledStep(
        "shared",
        "less shared memory a block",
        {
            (7, 0): Spelling("a smaller tile along K, or fewer buffers of it", "`TileShape`", "`BLOCK_K`"),
            (8, 0): Spelling(
                "fewer stages, or a smaller tile along K", "`Stages`, `TileShape`", "`num_stages`, `BLOCK_K`"
            ),
            (9, 0): Spelling(
                "fewer stages, or a smaller tile along K", "`StageCount<n>`, `TileShape`", "`num_stages`, `BLOCK_K`"
            ),
        },
    ),
    SpelledStep(
        "carveout",
        "more of L1 as shared memory",
        {(7, 0): Spelling("`cudaFuncAttributePreferredSharedMemoryCarveout`", None, None)},
    ),
    SpelledStep(
        "warps",
        "other warps a block",
        {
            (7, 0): Spelling("threads of a block", "`TileShape`, `WarpShape`", "`num_warps`"),
            (9, 0): Spelling("threads of a block", "`TileShape`", "`num_warps`"),
        },
    ),
    SpelledStep(
        "spills",
        "values kept in registers",
        {
            (7, 0): Spelling(
                "fewer fragments a warp, `__launch_bounds__`", "`TileShape`, `WarpShape`", "`num_warps`, `maxnreg`"
            ),
            (9, 0): Spelling("`setmaxnreg` by role, `__launch_bounds__`", "`TileShape`", "`num_warps`, `maxnreg`"),
        },
    ),
    SpelledStep(
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
    "spill": "spills",
    "precision": "narrower",
}
"""Kind of a move -> the step that it is; what others are, `_spelling_steps` tells by the kernel."""
_STEP_OF_LIMITER: Mapping[Limiter, Step] = {
    "registers": "registers",
    "shared memory": "shared",
    "carveout": "carveout",
    "warps a block": "warps",
    "block slots": "warps",
}
"""What keeps more blocks off an SM -> the step that makes room for them."""


def spelling_of(step: Step, capability: tuple[int, int]) -> Spelling | None:
    """Return what a step is called on a chip; None if it has none of it."""
    (rung,) = (one for one in LADDER if one.step == step)
    known = [spelling for since, spelling in rung.spellings.items() if since <= capability]
    return known[-1] if known else None


def spelt(facts: Facts, moves: Iterable[Move], limiters: Mapping[str, Sequence[Limiter]]) -> Iterator[Move]:
    """Add to moves what they are called: to all of a kernel on tensor cores or with asynchronous copies.

    Args:
        facts: The kernel.
        moves: Its moves.
        limiters: By the id of a finding, what its move makes room in.
    """
    does = facts.does
    is_such = does.uses_tensor_cores or bool(does.copies) or (facts.tensor_use or 0.0) >= facts.limits.negligible_share
    for move in moves:
        steps = (
            _spelling_steps(facts, move.kind, limiters.get(move.finding or "", ()))
            if move.spelling is None and (is_such or move.kind == "tensor")
            else ()
        )
        spellings = [spelling for step in steps if (spelling := spelling_of(step, facts.kernel.capability))]
        yield replace(move, spelling=_joined_spelling(spellings)) if spellings else move


def _spelling_steps(facts: Facts, kind: MoveKind, limiters: Sequence[Limiter]) -> Iterable[Step]:
    """Return the steps of a move: more loads in flight are copies at first, and more stages then.

    Of more blocks or warps on an SM they are those that make room in what limits them.
    """
    match kind:
        case "inflight":
            return ("stages",) if facts.does.copies else ("copies",)
        case "occupancy":
            return dict.fromkeys(_STEP_OF_LIMITER[one] for one in limiters if one in _STEP_OF_LIMITER)
        case _:
            return (_STEP_OF[kind],) if kind in _STEP_OF else ()


def _joined_spelling(spellings: Sequence[Spelling]) -> Spelling:
    """Join what several steps are called, each word once."""
    ways = zip(*map(astuple, spellings), strict=True)
    return Spelling(*("; ".join(dict.fromkeys(filter(None, way))) or None for way in ways))
