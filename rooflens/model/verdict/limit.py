"""The limit: what no change of a kernel can beat that keeps its arithmetic, its types and the bytes that it needs.

    T_math = sum over types of FLOP_i / peak_i        T_needed = bytes needed / peak of DRAM
    floor = max(T_math, T_needed, the shortest launch)        limit = t / floor

Each side is a lower bound, so a side that is partly known, or not at all, leaves the limit too high and never too low.
Where operations are not counted, the share of a pipe that does nothing but arithmetic stands for them. The bytes needed
are the workload's by formula, else those measured at DRAM less what is waste: local memory, and the bytes of the
sectors that no thread asked for, and at most all of memory, read and written once. Traffic that a larger tile would
spare is no floor either.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.memory import NS_PER_S, SECTOR_BYTES
from rooflens.model.failed import failure_words
from rooflens.model.records import Kernel, Limit, ratio
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.roofline.flops import SCALAR_COUNTERS, TENSOR_NOISE_SHARE
from rooflens.model.roofline.levels import device_dram_share
from rooflens.model.roofline.opcodes import opcode_group, uses_tensor_cores
from rooflens.model.verdict.facts import Facts

_OTHER_PATHS = ("UBLKCP", "UTMALDG", "UTMASTG", "UTMAREDG", "TEX", "TLD", "TMML", "SULD", "SUST")
"""Opcodes that reach global memory past the accesses whose addresses are looked at: TMA, bulk copies, textures."""
_NEAR_THE_RIDGE = 0.25
"""Matrix work that needs this part of the time of its traffic moves more than a tiled product would."""
_ASKED_AGAIN = 1.5
"""L2 that is asked for so many times the bytes of DRAM serves operands that are used more than once."""
_NOTHING_BUT_PRODUCTS = 0.95
"""Multiply-adds in the arithmetic of a matrix product; stencils add and multiply apart as well."""
_OF_A_DIVISION = 7
"""fp64 instructions of a division at least: where some are divisions, a seventh of the pipe's work is left."""
_MOST_WITHOUT_ARITHMETIC = 100.0
"""Where operations are not counted, a limit beyond that says only that the kernel is not about its traffic."""
_PURE_PIPES: Mapping[str, str] = {"tensor_pipe": "tensor", "fp16_pipe": "FP16"}
"""Pipes that do nothing but arithmetic, and what it is called. FP64's does divisions too, and FMA's addresses."""

ARITHMETIC, INTEGERS, TRAFFIC, LAUNCH = "arithmetic", "integer arithmetic", "DRAM traffic", "the shortest launch"
ALL_ONCE = "all of DRAM once"
"""The whole memory read and written once: what is moved beyond that is moved again."""


def find_limit(facts: Facts) -> Limit:
    """Find how much faster a kernel could be at most, and the side that says so."""
    time_ns = facts.kernel.duration_ns
    if facts.kernel.failed:
        return Limit(missing=failure_words(facts.kernel))
    if not time_ns:
        return Limit(missing="`gpu__time_duration.sum`")
    math_ns, math_by, is_about = _math(facts, time_ns)
    needed_ns, needed_by = _needed(facts, time_ns)
    if math_ns is not None and needed_ns is not None and _is_tiled_away(facts, math_ns, needed_ns):
        needed_ns = None
    integer_ns = _integer_share(facts) * time_ns or None
    floors = [(math_ns, math_by), (needed_ns, needed_by), (integer_ns, INTEGERS)]
    known = [(floor_ns, by) for floor_ns, by in floors if floor_ns is not None]
    if not known:
        if facts.levels["dram"].amount_bytes is not None:
            return Limit(missing="a peak of DRAM: `--gpu NAME` gives the published one")
        return Limit(missing="`dram__bytes_read.sum` and `dram__bytes_write.sum`")
    floor_ns, by = max((*known, (facts.limits.shortest_launch_ns, LAUNCH)))
    if math_ns is None and time_ns > _MOST_WITHOUT_ARITHMETIC * floor_ns:
        what = "a floor of its integer work" if facts.flops.complete else "counts of its arithmetic"
        return Limit(missing=f"{what} (`sass__inst_executed_per_opcode_with_modifier_all`)")
    # What a share or a rounded counter puts above the time is the time.
    floor_ns = min(floor_ns, time_ns)
    return Limit(time_ns / floor_ns, floor_ns, by, about=by == INTEGERS or (is_about and by == math_by))


def _math(facts: Facts, time_ns: float) -> tuple[float | None, str, bool]:
    """Return what the arithmetic needs at its peaks, what it is, and whether that is about.

    Operations of one type that are not counted do not make those of another any faster.
    """
    work = [one for one in facts.flops.work if one.ops and one.is_counted and one.peak_ops_per_s]
    parts = {one.key: one.ops / (one.peak_ops_per_s or 1.0) * NS_PER_S for one in work}
    if facts.flops.complete and (parts or not facts.flops.work):
        name = max(parts, key=parts.__getitem__, default="")
        label = f"{_label(name)} {ARITHMETIC}".strip()
        return (sum(parts.values()) if parts else None), label, any(one.source == "estimated" for one in work)
    shares = {"tensor_pipe": facts.tensor_share, "fp16_pipe": facts.share("fp16_pipe")}
    parts |= {pipe: share * time_ns for pipe, share in shares.items() if share and share > TENSOR_NOISE_SHARE}
    side = facts.compute
    named = side.resource if side is not None else None
    if side is not None and named is not None and named in _PURE_PIPES and named not in parts:
        parts[named] = side.share * time_ns  # of the pipe that NVIDIA's sentence names
    if "fp64" not in parts and facts.share("fp64_pipe"):
        lanes = min(1.0, (facts.counter("threads_per_inst") or WARP_THREADS) / WARP_THREADS)
        parts["fp64"] = (facts.share("fp64_pipe") or 0.0) * lanes * time_ns / _OF_A_DIVISION
    if not parts:
        return None, "", False
    top = max(parts, key=parts.__getitem__)
    label = _PURE_PIPES.get(top) or _label(top)
    return max(parts.values()), f"{label} {ARITHMETIC}", top == "tensor_pipe" and facts.share(top) is None


def _label(key: str) -> str:
    return key.replace("_", " ") if key.startswith("tensor") else key.upper()


def _needed(facts: Facts, time_ns: float) -> tuple[float | None, str]:
    """Return how long DRAM takes at its peak for the bytes that the kernel needs, None where unknown, and for which.

    That is never more than to read and write once all that the GPU's memory holds.
    """
    needed_ns, gpu = _needed_of_traffic(facts, time_ns), datasheet_of(facts.kernel.gpu)
    if needed_ns is None or gpu is None or gpu.dram_size is None:
        return needed_ns, TRAFFIC
    once_ns = 2 * gpu.dram_size.value / gpu.dram_bandwidth.value * NS_PER_S
    return (once_ns, ALL_ONCE) if once_ns <= needed_ns else (needed_ns, TRAFFIC)


def _needed_of_traffic(facts: Facts, time_ns: float) -> float | None:
    """Return how long DRAM takes at its peak for what was moved and is no waste; the published peak is none too low."""
    gpu = datasheet_of(facts.kernel.gpu)
    peak = facts.counter("device_dram_peak_bytes_per_s") or facts.counter("dram_peak_bytes_per_s")
    if peak is None and facts.levels["dram"].share is None and gpu is not None:
        peak = gpu.dram_bandwidth.value
    needed_bytes = _needed_bytes(facts)
    if needed_bytes is not None and peak:
        return needed_bytes / peak * NS_PER_S
    share = facts.levels["dram"].share
    if share is None and facts.memory is not None and facts.memory.resource == "dram":
        share = facts.memory.share  # of the bytes that are known to cross it
    if share is None:
        return None
    return device_dram_share(facts.kernel, share) * time_ns * (1 - (local_part(facts.kernel) or 0.0))


def _needed_bytes(facts: Facts) -> float | None:
    """Return the least of the bytes proven enough at DRAM; None where none are known.

    They are DRAM's own, with the output that stayed in L2 and without local memory; the sectors that all global
    accesses would fill, where all are looked at; and the workload's by formula.
    """
    amounts = [] if facts.outside.compulsory_bytes is None else [facts.outside.compulsory_bytes]
    measured, asked = facts.counter("dram_bytes"), facts.counter("global_ideal_sectors")
    passes_by = any(opcode.startswith(_OTHER_PATHS) for opcode in facts.kernel.warp_opcodes)
    if asked and not passes_by and not (facts.counter("tex_inst") or 0.0) > 0:
        amounts.append(asked * SECTOR_BYTES)
    if measured is not None:
        stayed = facts.counter("l2_write_bytes") or 0.0 if "dram_writes_stay_in_l2" in facts.flags else 0.0
        amounts.append((measured * _used(facts) + stayed) * (1 - (local_part(facts.kernel) or 0.0)))
    return min(amounts, default=None)


_READ_ONCE = 3.0
"""Kernels that read each byte once read up to three operands for each result."""


def _used(facts: Facts) -> float:
    """Return which part of the bytes of its sectors a kernel asks for, where it reads bytes again and again.

    Then its scattered accesses fetch sectors anew that would be in a cache; those of a kernel that reads each byte once
    are bounded by what it asks for. 1 where little is wasted, or that is unknown.
    """
    totals = facts.kernel.code_totals
    loads, stores = (totals.get(f"{side}_sectors", 0.0) - totals.get(f"{side}_excess_sectors", 0.0) for side in _SIDES)
    used = ratio(loads + stores, sum(totals.get(f"{side}_sectors", 0.0) for side in _SIDES))
    is_much = used is not None and 1 - used >= facts.limits.limiting_waste_share and loads > _READ_ONCE * stores
    return used if used is not None and is_much else 1.0


_SIDES = ("load", "store")


def _is_tiled_away(facts: Facts, math_ns: float, needed_ns: float) -> bool:
    """Return whether larger tiles would spare traffic: a matrix product whose operands are read again and again.

    L2 tells how often it is asked for what DRAM delivers, and DRAM itself where more crosses it than it holds. Where
    neither is known, matrix work that takes a good part of the time of its traffic moves more than a tiled product
    would.
    """
    if needed_ns <= math_ns or facts.outside.compulsory_bytes is not None or not _is_matrix_product(facts):
        return False
    moved_bytes, gpu = facts.levels["dram"].amount_bytes, datasheet_of(facts.kernel.gpu)
    if moved_bytes is not None and gpu and gpu.dram_size and moved_bytes > gpu.dram_size.value:
        return True
    asked = ratio(facts.levels["l2"].amount_bytes, moved_bytes)
    return math_ns >= _NEAR_THE_RIDGE * needed_ns if asked is None else asked >= _ASKED_AGAIN


def _is_matrix_product(facts: Facts) -> bool:
    """Return whether the arithmetic is sums of products: on tensor cores, or by nothing but fused multiply-adds."""
    kernel = facts.kernel
    if uses_tensor_cores(kernel.warp_opcodes):
        return True
    if (facts.tensor_share or 0.0) > TENSOR_NOISE_SHARE:
        return True
    counts = [[kernel.counters.get(name, 0.0) for name in names] for names in SCALAR_COUNTERS.values()]
    return any(each[-1] > _NOTHING_BUT_PRODUCTS * sum(each) for each in counts)


_DATA_WORK = frozenset({"IADD3", "IADD", "LOP3", "LOP", "SHF", "SHL", "SHR", "BFE", "BFI", "PRMT", "VABSDIFF", "VIADD"})
"""Integer instructions that work on data; comparisons, selections and moves are the program's own business."""


def is_integer_work(facts: Facts) -> bool:
    """Return whether integers keep the kernel busy and floating-point pipes are idle."""
    shares = [facts.share(name) or 0.0 for name in facts.pipes if facts.pipes[name].is_arithmetic]
    alu = facts.share("alu") or 0.0
    return alu >= facts.limits.contributing_share and max(shares, default=0.0) < facts.limits.contributing_cost_share


def _integer_share(facts: Facts) -> float:
    """Return how busy integer work on data keeps the ALU, 0 to 1, by the lanes in use; 0 where it cannot be told."""
    opcodes, threads = facts.kernel.warp_opcodes, facts.kernel.thread_opcodes
    on_alu = {
        op: n for op, n in opcodes.items() if opcode_group(op) == "integer" and not op.startswith(("IMAD", "IMUL"))
    }
    if not on_alu or not is_integer_work(facts):
        return 0.0
    data = {op: n for op, n in on_alu.items() if op.partition(".")[0] in _DATA_WORK}
    lanes = ratio(sum(threads.get(op, 0) for op in data), WARP_THREADS * sum(data.values())) or 0.0
    return (facts.share("alu") or 0.0) * sum(data.values()) / sum(on_alu.values()) * min(1.0, lanes)


def local_part(kernel: Kernel) -> float | None:
    """Return local memory's part of the sectors of local and global memory, 0 to 1; None where not measured."""
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
