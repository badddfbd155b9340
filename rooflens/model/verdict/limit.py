"""The limit: what no change of a kernel can beat that keeps its arithmetic, its types and the bytes that it needs.

    floor = the longest of what is proven to be needed        limit = t / floor

Proven are a workload's compulsory bytes by formula, operations that are counted, NVIDIA's per cent of a peak (which is
made of counted operations, and rounded), and how busy a pipe is that does nothing but arithmetic. Each is a lower
bound, so a side that is partly known, or not at all, leaves the limit too high and never too low.

Measured traffic is no proof: it holds what is read again, and what a full cache lost. Less local memory and the bytes
of sectors that no thread asked for, it says what no change can beat that leaves the traffic as it is. Where that is the
longer floor it stands in the limit's place, and says that it is not proven; so do instructions on integers and the
shortest launch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.counters.memory import NS_PER_S
from rooflens.model.failed import failure_words
from rooflens.model.records import FAR, Kernel, Limit, UnitFloor, held_once, ratio
from rooflens.model.roofline.flops import (
    SCALAR_COUNTERS,
    TENSOR_NOISE_SHARE,
    PipeWork,
    has_newer_instruction,
    instruction_roofs,
)
from rooflens.model.roofline.opcodes import FP64_DIVISION_INST, opcode_group
from rooflens.model.roofline.roof import at_top_clock, dram_clock_part, memories
from rooflens.model.roofline.units import is_of_active
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.nvidia_rules import read_nvidia
from rooflens.model.verdict.unmeasured import HALF_A_PER_CENT

_OTHER_PATHS = ("UBLKCP", "UTMALDG", "UTMASTG", "UTMAREDG", "TEX", "TLD", "TMML", "SULD", "SUST")
"""Opcodes that reach global memory past the accesses whose addresses are looked at: TMA, bulk copies, textures."""

ARITHMETIC, TRAFFIC = "arithmetic", "traffic"
INTEGERS, LAUNCH = "integer arithmetic", "the shortest launch"
DRAM_TRAFFIC = f"DRAM {TRAFFIC}"
_GLOBAL_USE = ("global_load_bytes_per_sector", "global_store_bytes_per_sector")
INNER_TRAFFIC = {"l2": f"L2 {TRAFFIC}", "l1": f"L1 {TRAFFIC}"}


class _LimitSide(Struct, frozen=True):
    """One reason why a kernel takes so long at least.

    Attributes:
        proven: No change gets below it that keeps the arithmetic, the types and the needed bytes.
    """

    floor_ns: float
    by: str
    proven: bool = False

    def is_far_from(self, time_ns: float) -> bool:
        """Return whether a kernel takes so much longer than this that the number means little."""
        return time_ns > FAR * self.floor_ns


def find_limit(facts: Facts) -> Limit:
    """Find how much faster a kernel could be at most, and the side that says so."""
    duration_ns = facts.kernel.duration_ns
    time_ns = duration_ns or 1.0  # where none is known, shares of it still give a factor
    if facts.kernel.failed:
        return Limit(missing=failure_words(facts.kernel))
    known = arithmetic = list(_arithmetic(facts, time_ns) if duration_ns else _of_pipes(facts, time_ns, set()))
    moved = _bytes_side(facts, duration_ns)
    is_read_again = moved is not None and not moved.proven and _is_read_again(facts, arithmetic, moved.floor_ns)
    if moved is not None and not is_read_again:
        known = [*known, moved]
    if integer_share := _integer_share(facts):
        known = [*known, _LimitSide(integer_share * time_ns, INTEGERS)]
    if not is_read_again and all(side.is_far_from(time_ns) for side in known):
        known = [*known, *_inner_traffic(facts, time_ns)]
    if not known and not duration_ns:
        return Limit(missing="`gpu__time_duration.sum`")
    if not known and moved is None:
        if facts.levels["dram"].amount_bytes is not None:
            return Limit(missing="a peak of DRAM: `--gpu NAME` gives the published one")
        return Limit(missing="`dram__bytes_read.sum` and `dram__bytes_write.sum`")
    launch = [_LimitSide(facts.limits.shortest_launch_ns, LAUNCH)] if duration_ns else []
    floor = _longest((*known, *launch))
    proven = [side for side in known if side.proven]
    if proven and floor.is_far_from(time_ns):
        floor = _longest(proven)
    untold = not arithmetic and not _is_idle(facts)
    if not known or (untold and (facts.limits.noise_share * time_ns > floor.floor_ns or _may_be_full(facts))):
        what = "a floor of its integer work" if facts.flops.complete else "counts of its arithmetic"
        return Limit(missing=f"{what} (`sass__inst_executed_per_opcode_with_modifier_all`)")
    # What a share or a rounded counter puts above the time is the time.
    floor_ns = min(floor.floor_ns, time_ns)
    return Limit(time_ns / floor_ns, floor_ns if duration_ns else None, floor.by, proven=floor.proven)


def floor_of_today(facts: Facts) -> UnitFloor | None:
    """Return the time that the busiest unit needs for what it does today.

    None if no unit or no time was measured, or if something is busier whose share of the whole run is not known.
    """
    time_ns = facts.kernel.duration_ns
    if not time_ns or not facts.shares:
        return None
    unit, share = max(facts.shares.items(), key=lambda item: item[1])
    share = min(1.0, share)
    if any(side.resource not in facts.shares and side.share > share for side in facts.sides):
        return None
    return UnitFloor(unit, share, share * time_ns) if share else None


def _is_idle(facts: Facts) -> bool:
    """Return whether every pipe of the SMs is so seldom busy that what is not counted is far from any limit, too."""
    shares = [share for name, share in facts.shares.items() if name in facts.pipes]
    return facts.compute is not None and FAR * max((facts.compute.share, *shares)) < 1


def _may_be_full(facts: Facts) -> bool:
    """Return whether NVIDIA's per cent of the SMs, which names no unit, may be arithmetic that nothing counted."""
    side = facts.compute
    return side is not None and side.resource is None and side.share >= facts.limits.bound_share


def _longest(sides: Iterable[_LimitSide]) -> _LimitSide:
    return max(sides, key=lambda side: (side.floor_ns, side.proven))


def _arithmetic(facts: Facts, time_ns: float) -> Iterator[_LimitSide]:
    """Yield what the arithmetic of each pipe needs at its peak: pipes work at the same time, so no two add up.

    Operations of one type that are not counted do not make those of another any faster.
    """
    kernel, flops = facts.kernel, facts.flops
    work = [one for one in flops.work if one.ops and one.is_counted and one.peak_ops_per_s]
    # Another instruction of the same chip may do the same work faster.
    peaks = {one.key: _fastest(kernel, one) for one in work}
    needs = {one.key: one.ops / peaks[one.key] * NS_PER_S for one in work}
    tensor = [one for one in work if one.key.startswith("tensor")]
    if tensor:  # they share one pipe
        top = max(tensor, key=lambda one: needs[one.key])
        is_counted = all(one.source != "estimated" for one in tensor) or not has_newer_instruction(kernel)
        yield _LimitSide(sum(needs[one.key] for one in tensor), _arithmetic_label(top.key), is_counted)
    yield from (
        _LimitSide(needs[one.key], _arithmetic_label(one.key), proven=True) for one in work if one not in tensor
    )
    if flops.complete and (work or not flops.work):
        return
    yield from _of_pipes(facts, time_ns, {one.key for one in work})


def _of_pipes(facts: Facts, time_ns: float, counted: set[str]) -> Iterator[_LimitSide]:
    """Yield how long the pipes were busy that do nothing but arithmetic, and NVIDIA's per cents of their peaks."""
    kernel, side = facts.kernel, facts.compute
    named = side.share if side is not None and side.resource == "tensor_pipe" else None
    of_time, of_active = facts.shares.get("tensor_pipe"), facts.counter("tensor_active_share")
    part = kernel.active_part
    if of_time is None and of_active is not None and part is not None:
        of_time = of_active * part
    share = of_time or of_active or named or 0.0
    if share > TENSOR_NOISE_SHARE:
        # Warp-wide mma keeps the pipe of a chip with newer instructions busy for longer than these would.
        is_proven = of_time is not None and not has_newer_instruction(kernel)
        yield _LimitSide(share * time_ns, f"tensor {ARITHMETIC}", is_proven)
    half = facts.shares.get("fp16_pipe") or (side.share if side is not None and side.resource == "fp16_pipe" else 0.0)
    if half > TENSOR_NOISE_SHARE:  # it also loads constants
        yield _LimitSide(half * time_ns, f"FP16 {ARITHMETIC}")
    double = None if is_of_active(kernel, "fp64_busy_share") else facts.shares.get("fp64_pipe")
    if "fp64" not in counted and double:
        lanes = min(1.0, (facts.counter("threads_per_inst") or WARP_THREADS) / WARP_THREADS)
        yield _LimitSide(double * lanes * time_ns / FP64_DIVISION_INST, f"FP64 {ARITHMETIC}", proven=True)
    nvidia = read_nvidia(kernel.rules)
    for dtype, per_cent in (("fp32", nvidia.fp32_pct_of_peak), ("fp64", nvidia.fp64_pct_of_peak)):
        if dtype not in counted and per_cent is not None and (least := per_cent / 100 - HALF_A_PER_CENT) > 0:
            yield _LimitSide(least * time_ns, _arithmetic_label(dtype), proven=True)


def _fastest(kernel: Kernel, work: PipeWork) -> float:
    """Return the peak of the fastest instruction that may do some work, in operations per second."""
    others = instruction_roofs(kernel, work.key).values()
    return max(work.peak_ops_per_s or 1.0, *(roof.value for roof in others), 0.0)


def _arithmetic_label(key: str) -> str:
    return held_once(f"{key.replace('_', ' ') if key.startswith('tensor') else key.upper()} {ARITHMETIC}")


def _bytes_side(facts: Facts, duration_ns: float | None) -> _LimitSide | None:
    """Return how long DRAM takes at its peak for the bytes of a kernel; None where unknown.

    Without a time it is the share of it that DRAM needs.

    The workload's by formula are proven, unless fewer crossed DRAM, as in a cache that was warm. Else they are those
    that did and are no proven waste: with the output that stayed in L2, without local memory, and at most the sectors
    that global accesses would fill.
    """
    needed, measured, share = facts.outside.compulsory_bytes, facts.counter("dram_bytes"), facts.shares.get("dram")
    stayed = facts.counter("l2_write_bytes") or 0.0 if "dram_writes_stay_in_l2" in facts.flags else 0.0
    top = at_top_clock(facts.kernel)
    # A share of the run says more than a peak that is published, which is never too low.
    is_told = top is not None and (top.source == "report" or share is None or needed)
    peak = top.value if top is not None and is_told and duration_ns else None
    if needed is not None:
        needed = needed if measured is None else min(needed, measured + stayed)
        return _LimitSide(needed / peak * NS_PER_S, "compulsory bytes", proven=True) if peak else None
    not_local = 1 - (local_part(facts.kernel) or 0.0)
    moved_bytes = None
    if measured is not None:
        moved_bytes = (measured * _used_part(facts) + stayed) * not_local
    if (asked_bytes := _asked_bytes(facts)) is not None:
        moved_bytes = asked_bytes if moved_bytes is None else min(moved_bytes, asked_bytes)
    if moved_bytes is not None and peak:
        return _LimitSide(moved_bytes / peak * NS_PER_S, DRAM_TRAFFIC)
    if share is None and facts.memory is not None and facts.memory.resource == "dram":
        share = facts.memory.share  # of the bytes that are known to cross it
    if share is None:
        return None
    wanted = not_local if measured is None else ratio(moved_bytes, measured)
    part = min(1.0, 1.0 if wanted is None else wanted)
    return _LimitSide(share * dram_clock_part(facts.kernel) * (duration_ns or 1.0) * part, DRAM_TRAFFIC)


def _asked_bytes(facts: Facts) -> float | None:
    """Return the bytes of the sectors that all global accesses would fill; None where not all are looked at."""
    asked = facts.counter("global_ideal_sectors")
    passes_by = any(opcode.startswith(_OTHER_PATHS) for opcode in facts.kernel.warp_opcodes)
    return asked * SECTOR_BYTES if asked and not passes_by and not (facts.counter("tex_inst") or 0.0) > 0 else None


def _inner_traffic(facts: Facts, time_ns: float) -> Iterator[_LimitSide]:
    """Yield how long L2 takes for its traffic or, where that is little, too, L1: where DRAM has next to nothing to do.

    A cache that is full tells nothing: what fills it is what a change would spare. Neither does L1 where warps or
    sectors are partly empty.
    """
    asked_part = _asked_part(facts)
    for name, by in INNER_TRAFFIC.items():
        busy = facts.shares.get(name, 0.0) * (asked_part if name == "l2" else 1.0)
        if 0 < busy < facts.limits.at_roof_share and not (name == "l1" and _is_wasteful(facts, asked_part)):
            side = _LimitSide(busy * time_ns, by)
            yield side
            if not side.is_far_from(time_ns):
                return


def _asked_part(facts: Facts) -> float:
    """Return the share of its sectors that threads ask for in global memory; 1 if unknown.

    What DRAM moves beyond all that was asked for went through the caches, too.
    """
    asked = facts.counter("global_ideal_sectors")
    of_touched = ratio(asked, facts.counter("global_touched_sectors"))
    of_moved = ratio(asked, (facts.counter("dram_bytes") or 0.0) / SECTOR_BYTES)
    return min((1.0, *(part for part in (of_touched, of_moved) if part is not None)))


def _is_wasteful(facts: Facts, asked_part: float) -> bool:
    """Return whether warps are known to have idle threads, or accesses to fetch unused bytes."""
    block, least = facts.kernel.block, 1 - facts.limits.limiting_waste_share
    is_partial = block is not None and math.prod(block) % WARP_THREADS != 0
    is_diverged = (facts.counter("threads_per_inst") or WARP_THREADS) < facts.limits.active_threads
    used = [] if facts.counter("global_touched_sectors") else _GLOBAL_USE
    is_scattered = any((facts.counter(name) or SECTOR_BYTES) < least * SECTOR_BYTES for name in used)
    return is_partial or is_diverged or asked_part < least or is_scattered


_READ_ONCE = 3.0
"""Kernels that read each byte once read up to three operands for each result."""


def _used_part(facts: Facts) -> float:
    """Return the share of its sectors' bytes that a kernel asks for, if it rereads bytes.

    Then its scattered accesses fetch sectors anew that would be in a cache; those of a kernel that reads each byte once
    are bounded by what it asks for. 1 where little is wasted, or that is unknown. Where loads and stores were counted
    together, as prints have them, a kernel is known to reread both sides of which use their sectors in part, and that
    asks for more than DRAM moves all the same.
    """
    totals = facts.kernel.code_totals
    every = sum(totals.get(f"{side}_sectors", 0.0) for side in _SIDES)
    loads, stores = (totals.get(f"{side}_sectors", 0.0) - totals.get(f"{side}_excess_sectors", 0.0) for side in _SIDES)
    used, rereads = ratio(loads + stores, every), loads > _READ_ONCE * stores
    if not every:
        ideal = facts.counter("global_ideal_sectors")
        used = ratio(ideal, facts.counter("global_touched_sectors"))
        filled = max(facts.counter(name) or SECTOR_BYTES for name in _GLOBAL_USE)
        is_scattered = 1 - filled / SECTOR_BYTES >= facts.limits.limiting_waste_share
        rereads = is_scattered and (ideal or 0.0) * SECTOR_BYTES > (facts.counter("dram_bytes") or math.inf)
    return used if used is not None and rereads and 1 - used >= facts.limits.limiting_waste_share else 1.0


_SIDES = ("load", "store")


def _is_read_again(facts: Facts, arithmetic: Sequence[_LimitSide], moved_ns: float) -> bool:
    """Return whether traffic is known to be spared by keeping what is read on chip: then it is no floor at all.

    Nobody needs to read more than the memory holds, or to move more than that twice. And larger tiles spare the traffic
    of a matrix product whose operands are read again and again: L2 tells how often it is asked for what DRAM delivers.
    Where that is not known, matrix work that takes a good part of the time of its traffic moves more than a tiled
    product would.
    """
    if _is_beyond_memory(facts, moved_ns):
        return True
    math_ns = max((side.floor_ns for side in arithmetic), default=moved_ns)
    if moved_ns <= math_ns or not _is_matrix_product(facts):
        return False
    asked = ratio(facts.levels["l2"].amount_bytes, facts.levels["dram"].amount_bytes)
    return math_ns >= facts.limits.quarter_share * moved_ns if asked is None else asked >= facts.limits.far_more


def _is_beyond_memory(facts: Facts, moved_ns: float) -> bool:
    """Return whether more is read than the memory holds, or twice as much moved, of any GPU that it may have run on."""
    read_bytes, moved_s = facts.counter("dram_read_bytes") or 0.0, moved_ns / NS_PER_S
    possible = memories(facts.kernel)
    return bool(possible) and all(
        read_bytes > one.size_bytes or moved_s * one.peak_bytes_per_s > 2 * one.size_bytes for one in possible
    )


def _is_matrix_product(facts: Facts) -> bool:
    """Return whether the arithmetic is sums of products: on tensor cores, or by nothing but fused multiply-adds."""
    counts = [[facts.counter(name) or 0.0 for name in names] for names in SCALAR_COUNTERS.values()]
    least = 1 - facts.limits.negligible_share
    return facts.does.uses_tensor_cores or any(each[-1] > least * sum(each) for each in counts)


_DATA_WORK = frozenset({"IADD3", "IADD", "LOP3", "LOP", "SHF", "SHL", "SHR", "BFE", "BFI", "PRMT", "VABSDIFF", "VIADD"})
"""Integer instructions that work on data; comparisons, selections and moves are the program's own business."""


def _integer_share(facts: Facts) -> float:
    """Return how busy integer work on data keeps the ALU, 0 to 1, by the lanes in use.

    0 where that cannot be told, or where floating-point pipes are not idle.
    """
    opcodes, threads = facts.kernel.warp_opcodes, facts.kernel.thread_opcodes
    alu = max(facts.shares.get(pipe, 0.0) for pipe in ("alu", "alu_heavy"))
    floats = [facts.shares.get(name, 0.0) for name, pipe in facts.pipes.items() if pipe.is_arithmetic]
    if alu < facts.limits.contributing_share or max(floats, default=0.0) >= facts.limits.contributing_cost_share:
        return 0.0
    on_alu = {
        op: n for op, n in opcodes.items() if opcode_group(op) == "integer" and not op.startswith(("IMAD", "IMUL"))
    }
    if not on_alu:
        return 0.0
    data = {op: n for op, n in on_alu.items() if op.partition(".")[0] in _DATA_WORK}
    lanes = ratio(sum(threads.get(op, 0) for op in data), WARP_THREADS * sum(data.values())) or 0.0
    return alu * sum(data.values()) / sum(on_alu.values()) * min(1.0, lanes)


def local_part(kernel: Kernel) -> float | None:
    """Return local memory's part of the sectors of local and global memory, 0 to 1; None if not measured."""
    measured: tuple[tuple[Mapping[str, float], tuple[str, ...], tuple[str, ...]], ...] = (
        (kernel.counters, _LOCAL_COUNTERS, _GLOBAL_COUNTERS),
        (kernel.code_totals, ("local_sectors",), ("load_sectors", "store_sectors")),
        (kernel.counters, ("local_touched_sectors",), ("global_touched_sectors",)),
    )
    for amounts, local_names, global_names in measured:
        local = [amounts[name] for name in local_names if name in amounts]
        other = [amounts[name] for name in global_names if name in amounts] if local else []
        if other:
            return sum(local) / (sum(local) + sum(other)) if sum(local) else 0.0
    return None


_LOCAL_COUNTERS = ("local_load_sectors", "local_store_sectors")
_GLOBAL_COUNTERS = ("global_load_sectors", "global_store_sectors")
