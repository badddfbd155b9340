"""Moves of kernels that multiply on tensor cores, and the rules that keep textbook moves from kernels they do not fit.

What such a kernel lacks is nearly always overlap: while it waits for operands, or does a softmax or an epilogue, the
tensor cores idle. Occupancy is a by-product of its tile, and not what its author turns to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from rooflens.format import count, percent
from rooflens.model.records import Move
from rooflens.model.roofline.flops import has_newer_instruction
from rooflens.model.roofline.occupancy import block_smem_bytes, sm_smem_bytes
from rooflens.model.roofline.opcodes import WIDEST_BYTES
from rooflens.model.verdict.facts import Facts


def tensor_moves(facts: Facts) -> tuple[Move, ...]:
    """Return what to try first where tensor cores work and idle, with no level of memory full; else nothing."""
    share = facts.tensor_use
    levels = {name: facts.shares[name] for name in facts.levels if name in facts.shares}
    top = max(levels.values(), default=None)
    if (
        facts.library is not None
        or share is None
        or not facts.limits.negligible_share <= share < facts.limits.done_share
    ):
        return ()
    if top is not None and top >= facts.limits.at_roof_share:
        return ()
    beside = f", and no level of memory over {percent(top)}" if top is not None else ""
    idle = f"tensor cores work {percent(share)} of the time{beside}"
    copying, reading = (sum(facts.stall_shares.get(reason, 0.0) for reason in reasons) for reasons in _WAITS)
    moves = [Move(_overlap(facts, idle, copying), "overlap")]
    if not facts.stall_shares or copying >= facts.limits.little_share:
        waits = f"{percent(copying)} of the waiting is for global memory" if copying else idle
        move = Move(f"keep more tiles in flight, {deeper(facts)}: {waits}", "inflight")
        # Where tiles are staged already, and waited for, more of them come before all that would run beside them.
        moves.insert(0 if _is_staged(facts) else len(moves), move)
    is_wide = (facts.does.load_bytes or 0) >= WIDEST_BYTES
    if not is_wide and (not facts.stall_shares or copying + reading >= facts.limits.little_share):
        waits = f"{percent(reading)} of the waiting is for shared memory" if reading else idle
        moves.append(Move(f"{_wider_operands(facts)}: {waits}", "wide"))
    return tuple(moves)


def _wider_operands(facts: Facts) -> str:
    """Say how to bring operands to the products: through registers, or by those that read shared memory themselves."""
    if not has_newer_instruction(facts.kernel) or (facts.does.products or "").startswith("mma.sync"):
        return "copy operands 16 bytes at a time, and read them by `ldmatrix` from swizzled tiles"
    return "copy operands by TMA, wider than any load, into swizzled tiles, from which the products read them directly"


def _is_staged(facts: Facts) -> bool:
    """Return whether copies of further tiles are under way by design, and waits tell how long they take."""
    return (facts.does.stages or 1) > 1 and bool(facts.stall_shares)


def _overlap(facts: Facts, idle: str, copying: float) -> str:
    """Say what to do while tensor cores multiply: what the kernel's copies do not do already."""
    if facts.does.products_left == 0:
        return (
            f"start the next products before these are done, as it waits for all of them (`wgmma.wait_group 0`): {idle}"
        )
    if _is_staged(facts):
        waits = (
            ""
            if copying >= facts.limits.little_share
            else f", as copies in {count(facts.does.stages or 0, 'stage')} are hardly waited for"
        )
        return f"do softmax or epilogue of one tile while another multiplies{waits}: {idle}"
    under = "put softmax or epilogue of one tile under the product of another"
    return f"copy the next tiles, or do the other arithmetic, while this one multiplies: {idle} ({under})"


def deeper(facts: Facts) -> str:
    """Say how to keep more tiles in flight: in the stages that shared memory has room for beside today's."""
    stages, tiles = facts.does.stages, facts.does.tile_bytes
    whole, block = sm_smem_bytes(facts.kernel), block_smem_bytes(facts.kernel.counters)
    limits = [facts.counter(f"blocks_limit_{what}") for what in ("registers", "smem", "warps", "blocks")]
    blocks = min((limit for limit in limits if limit), default=None)
    if not stages or not tiles or whole is None or block is None or blocks is None:
        return "with a stage more if shared memory allows"
    room = int((whole / blocks - block) / (tiles / stages))
    if room < 1:
        return f"in smaller ones, as {count(stages, 'stage')} of them fill shared memory"
    return f"in {stages + 1} stages and not {stages}, as shared memory has room for {stages + room}"


_WAITS = (("long_scoreboard", "lg_throttle"), ("short_scoreboard", "mio_throttle"))
"""Reasons to wait for copies from global memory, and for reads of shared memory."""


def fitting(facts: Facts, moves: Iterable[Move]) -> Iterator[Move]:
    """Leave out what a kernel already does, or what does not fit it."""
    does = facts.does
    for move in moves:
        if move.kind == "results" and move.finding is None and _holds_results(facts):
            continue
        if move.kind == "tile" and move.finding is None and (does.tile_bytes or 0.0) >= facts.limits.large_tile_bytes:
            continue
        if move.kind == "tensor" and does.uses_tensor_cores and does.older_products is False:
            continue
        yield move


def beside_waits(facts: Facts, moves: Sequence[Move]) -> tuple[Move, ...]:
    """Put wider loads beside more loads in flight, where warps wait for memory that is not busy.

    Both bring more bytes under way for a warp. Where all slots for warps are taken nothing else does.
    """
    if (
        facts.is_nearly_alone
        or (facts.does.load_bytes or 0) >= WIDEST_BYTES
        or facts.does.uses_tensor_cores
        or facts.library is not None
    ):
        return tuple(moves)
    kinds = [move.kind for move in moves]
    top = max((share for name, share in facts.shares.items() if name in facts.levels), default=None)
    waiting = facts.stall_shares.get("long_scoreboard", 0.0)
    if "wide" not in kinds and "inflight" in kinds and waiting >= facts.limits.bound_share > (top or 0.0):
        at = kinds.index("inflight") + 1
        said = f"load 16 bytes at once: {percent(waiting)} of the waiting is for global memory"
        return (*moves[:at], Move(said, "wide"), *moves[at:])
    occupancy, dram = facts.counter("achieved_occupancy") or 0.0, facts.shares.get("dram") or 0.0
    is_full = occupancy >= facts.limits.full_occupancy_share and facts.bound == "latency" and not facts.stall_shares
    is_dram = dram == top and dram >= facts.limits.contributing_share
    if is_full and is_dram and not {"wide", "elements", "inflight"} & set(kinds):
        warps = f"warps take {percent(occupancy)} of their slots, and DRAM is only {percent(dram)} busy"
        return (
            *moves,
            Move(f"process several elements per thread, in the widest loads that its rows allow: {warps}", "elements"),
        )
    return tuple(moves)


_OF_THE_LAUNCH = frozenset({"occupancy", "balance", "elements", "blocks", "cache", "precision"})
"""Kinds of moves that change the whole launch, or the whole kernel: whoever made one of a kind has made the others."""
_RAISE = "; or raise occupancy"
_WIDER = re.compile(r"\bwider global|\b(?:load wider|use wider loads|load 16 bytes at once(?! from shared))\b")
"""How a move begins that is for wider accesses to global memory."""
_OR_WIDER = re.compile(r"; or load 16 bytes at once per thread[^;:]*")
_WITH_WIDER = "with wider loads and several per thread", "with several loads per thread"
"""A move that has wider loads among its means, and the same without them."""


def each_once(moves: Sequence[Move]) -> Iterator[Move]:
    """Leave out what an earlier move says in other words; of a move that offers two ways the other one is left.

    Wider loads are a way of others where no move is for them: beside one that is, an edit would have two gains.
    """
    heads, kinds = set[str](), set[str]()
    has_wider = any(move.kind == "wide" and _WIDER.search(move.text) for move in moves)
    for each in moves:
        move, (_, _, other) = each, each.text.rpartition(_RAISE)
        if has_wider and move.kind != "wide":
            move = replace(move, text=_OR_WIDER.sub("", move.text).replace(*_WITH_WIDER))
        if move.kind == "results" and "results" in kinds and other and _RAISE in move.text:
            move = replace(move, text=f"raise occupancy{other}", kind="occupancy")
        head = move.text.partition(":")[0]
        if head in heads or (move.kind in kinds and move.kind in _OF_THE_LAUNCH):
            continue
        heads.add(head)
        kinds.add(move.kind)
        yield move


def _holds_results(facts: Facts) -> bool:
    """Return whether threads hold several results, by machine code, by registers, or as tensor cores do."""
    does = facts.does
    if does.uses_tensor_cores or (does.results or 0) > 1:
        return True
    return does.results is None and (does.registers or 0.0) >= facts.limits.tile_registers


def is_large_tile(facts: Facts) -> bool:
    """Return whether a kernel fills an SM by its tile, so that more warps would take away what makes it fast.

    False if one more block per SM needs hardly any further registers, and if neither a unit nor a wait was measured:
    then warps are all there is advice about.
    """
    does, threads = facts.does, facts.counter("block_size") or 0.0
    registers = does.registers or 0.0
    is_large = bool(facts.sides or facts.stall_shares) and (
        (does.tile_bytes or 0.0) >= facts.limits.large_tile_bytes
        or (registers >= facts.limits.tile_registers and threads >= facts.limits.large_block_threads)
    )
    share = facts.tensor_share or 0.0
    return (is_large or share > facts.limits.negligible_share) and not _is_next_block_cheap(facts)


def _is_next_block_cheap(facts: Facts) -> bool:
    registers, blocks = facts.counter("registers_per_thread"), facts.counter("blocks_limit_registers")
    others = [facts.counter(f"blocks_limit_{what}") for what in ("smem", "warps", "blocks")]
    if not registers or not blocks or any(limit is not None and limit <= blocks for limit in others):
        return False
    return registers * (1 - blocks / (blocks + 1)) <= facts.limits.little_share * registers


def with_tensor_moves(facts: Facts, moves: Sequence[Move]) -> tuple[Move, ...]:
    """Put the moves of tensor kernels before the others, each kind once, and one with a known gain in its place.

    None of known gain goes before another that is known to bring more, and none before one for SMs that idle: these do
    for certain, whatever hides the waits of the others.
    """
    own = tensor_moves(facts)
    known = {move.kind: move for move in reversed(moves) if move.gain is not None}
    taken = {move.kind for move in own}
    first = [known.get(move.kind, move) for move in own]
    others = [move for move in moves if move.kind not in taken]
    least = next((move.gain.factor for move in first if move.gain is not None), math.inf)
    more = [move for move in others if move.gain is not None and move.gain.factor > least]
    if more:
        at = next(at for at, move in enumerate(first) if move.gain is not None)
        first[at:at] = more
        others = [move for move in others if move not in more]
    if first and (idle := [move for move in others if _is_for_idle_sms(facts, move)]):
        first = [*more, *idle, *(move for move in first if move not in more)]
        others = [move for move in others if move not in idle]
    limiter = facts.limiter.resource if facts.limiter is not None else None
    if limiter in facts.pipes and not (limiter or "").startswith("tensor"):
        return (*others[:1], *first, *others[1:])  # another pipe is busier: what is for that one comes before
    return (*first, *others)


def _is_for_idle_sms(facts: Facts, move: Move) -> bool:
    """Return whether a move gives work to SMs that have none for a tenth of the time, or longer."""
    if move.gain is None or move.gain.factor < facts.limits.limiter_gain:
        return False
    blocks, sms = facts.counter("grid_size") or math.inf, facts.counter("sm_count") or 0.0
    return move.finding in {"tail_wave", "load_imbalance"} or (move.finding == "small_grid" and blocks < sms)
