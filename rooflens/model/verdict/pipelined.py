"""Moves of kernels that multiply on tensor cores, and the rules that keep textbook moves from kernels they do not fit.

What such a kernel lacks is nearly always overlap: while it waits for operands, or does a softmax or an epilogue, the
tensor cores idle. Occupancy is a by-product of its tile, and not what its author turns to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rooflens.format import percent
from rooflens.model.records import Move
from rooflens.model.verdict.facts import Facts

_IDLE_FROM = 0.05
"""Less use of the tensor pipe may be `HFMA2.MMA`, which is no matrix instruction."""
_BARRIERS = 0.10
"""From this part of the waiting on barriers cost as much as what a better overlap wins."""
_TILE_BYTES = 64_000
_TILE_REGISTERS, _TILE_THREADS = 128, 256
"""A block of such a tile is alone on its SM, or nearly so, by design."""
_CHEAP = 0.1
"""One more block for this part of the registers is nothing that a tile has to be cut for."""

_STAGES = (
    ((10, 0), "TMA and tcgen05 with mbarriers, a warp that only copies; Triton `num_stages`, `warp_specialize`"),
    ((9, 0), "TMA with mbarriers, a warp that only copies; CUTLASS `KernelTmaWarpSpecialized`; Triton `num_stages`"),
    ((8, 0), "`cp.async` into two or more buffers; CUTLASS `Stages`; Triton `num_stages`"),
    ((0, 0), "loads into registers before the product, stores to a second buffer after it"),
)


def tensor_moves(facts: Facts) -> tuple[Move, ...]:
    """Return what to try first of a kernel whose tensor cores work and idle, with no level of memory full; else none."""
    share = facts.tensor_share
    if share is None and facts.compute is not None and facts.compute.resource == "tensor_pipe":
        share = facts.compute.share
    levels = {name: facts.shares[name] for name in facts.levels if name in facts.shares}
    top = max(levels.values(), default=None)
    if facts.library is not None or share is None or not _IDLE_FROM <= share < facts.limits.done_share:
        return ()
    if top is not None and top >= facts.limits.at_roof_share:
        return ()
    beside = f", and no level of memory over {percent(top)}" if top is not None else ""
    idle = f"tensor cores work {percent(share)} of the time{beside}"
    how = next(words for since, words in _STAGES if facts.kernel.capability >= since)
    under = "; put softmax or epilogue of one tile under the product of another"
    overlap = f"copy the next tiles, or do the other arithmetic, while this one multiplies: {idle} ({how}{under})"
    moves = [Move(overlap, "overlap")]
    barriers = facts.stall_shares.get("barrier", 0.0)
    if barriers >= _BARRIERS:
        moves.append(
            Move(f"wait for fewer warps, or less often: {percent(barriers)} of the waiting is barriers", "barrier")
        )
    waiting = facts.stall_shares.get("long_scoreboard", 0.0)
    waits = f": {percent(waiting)} of the waiting is for global memory" if waiting else f": {idle}"
    moves += [
        Move(f"keep more tiles in flight, with a stage more if shared memory allows{waits}", "inflight"),
        Move(f"copy operands 16 bytes at a time, and read them by `ldmatrix` from swizzled tiles: {idle}", "wide"),
    ]
    return tuple(moves)


def fitting(facts: Facts, moves: Iterable[Move]) -> Iterator[Move]:
    """Leave out what a kernel already does, or what does not fit how it works; raising occupancy of a large tile is last."""
    does, last = facts.does, []
    for move in moves:
        if move.kind == "results" and move.finding is None and _holds_results(facts):
            continue
        if move.kind == "tile" and move.finding is None and (does.tile_bytes or 0.0) >= _TILE_BYTES:
            continue
        if move.kind == "tensor" and does.uses_tensor_cores and does.older_products is False:
            continue
        if move.kind == "occupancy" and is_large_tile(facts):
            last.append(move)
            continue
        yield move
    yield from last


def _holds_results(facts: Facts) -> bool:
    """Return whether threads hold several results, by machine code, by registers, or as tensor cores do."""
    does = facts.does
    if does.uses_tensor_cores or (does.results or 0) > 1:
        return True
    return does.results is None and (does.registers or 0.0) >= facts.limits.tile_registers


def is_large_tile(facts: Facts) -> bool:
    """Return whether a kernel fills an SM by its tile, so that more warps would take away what makes it fast.

    Not so where one block more costs next to nothing in registers.
    """
    does, threads = facts.does, facts.counter("block_size") or 0.0
    registers = does.registers or 0.0
    is_large = (does.tile_bytes or 0.0) >= _TILE_BYTES or (registers >= _TILE_REGISTERS and threads >= _TILE_THREADS)
    share = facts.tensor_share or 0.0
    return (is_large or share > _IDLE_FROM) and not _is_next_block_cheap(facts)


def _is_next_block_cheap(facts: Facts) -> bool:
    registers, blocks = facts.counter("registers_per_thread"), facts.counter("blocks_limit_registers")
    others = [facts.counter(f"blocks_limit_{what}") for what in ("smem", "warps", "blocks")]
    if not registers or not blocks or any(limit is not None and limit <= blocks for limit in others):
        return False
    return registers * (1 - blocks / (blocks + 1)) <= _CHEAP * registers


def with_tensor_moves(facts: Facts, moves: Sequence[Move]) -> tuple[Move, ...]:
    """Put the moves of tensor kernels before the others, each kind once; a known gain of the same kind stays with it."""
    own = tensor_moves(facts)
    known = {move.kind: move for move in reversed(moves) if move.gain is not None}
    taken = {move.kind for move in own}
    first = [known.get(move.kind, move) for move in own]
    return (*first, *(move for move in moves if move.kind not in taken))
