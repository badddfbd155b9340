"""Memory levels of a kernel: bytes, roofs and shares of DRAM, L2, L1 and shared memory, each by its stages.

A level's share is that of its busiest stage. Sources of the stages: Nsight Compute's memory chart and the breakdowns of
its throughput metrics; shared memory is one wavefront of 128 bytes a cycle and SM. A kernel without shared
memory has no such level.

The wavefronts that L1's data stage counts for shared memory hold shuffles and one or two wavefronts a warp besides, in
kernels without a byte of shared memory too: they fill the stage, but are not traffic of shared memory. Source: public
reports, in which the wavefronts of all instructions equal those of loads, stores and asynchronous copies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import itemgetter

from msgspec import Struct

from rooflens.model.counters.memory import WAVEFRONT_BYTES
from rooflens.model.records import LEVELS, Accuracy, Kernel, Level, Pipe, mapping_of, ratio
from rooflens.model.roofline.opcodes import BULK_COPIES, THREAD_COPY
from rooflens.model.roofline.roof import CONTROLLERS_LEAD, part_of_counted, reported, roof
from rooflens.model.roofline.units import (
    ACCESSES,
    DATA,
    L2_INTERNAL,
    LSU_INPUT,
    SHARED_DATA,
    SOC_CAPABILITIES,
    STAGES,
    WHOLE,
    wavefronts_a_cycle,
)

_NAMES_OF = {
    level: tuple((one.name, f"{level}_{one.name}", one.share, one.amount or "") for one in STAGES if one.level == level)
    for level in LEVELS
}
"""Level -> its individual stages: every kernel passes through all of them."""

PARTIAL: Mapping[str, frozenset[str]] = {
    "l1": frozenset({LSU_INPUT, SHARED_DATA, WHOLE}),
    "l2": frozenset({L2_INTERNAL}),
}
"""Level -> stages that say nothing of the rest of that level."""

_ONE_UNIT = 0.00025
"""Two of NVIDIA's per cents that are equal to the digits printed are of one unit."""
_TELLING = 0.1
"""Smaller per cents may be equal by chance."""
_SAME_SHARE = 1e-3
"""A per cent that another one repeats differs by no more of itself."""
_HALVED = 0.0005
"""Memory's share, counted in another pass, differs by less than this from half of NVIDIA's printed per cent."""
_NEARLY_ALL = 0.9
_NEARLY = 0.005
"""Shares of the run made from those of active cycles are rounded, and cycles are those of a GPC."""

AMOUNTS: dict[str, tuple[str, ...]] = {
    "dram": ("dram_bytes", "sysmem_bytes"),
    "l2": ("l2_bytes", "l2_tag_bytes"),
    "l1": ("l1_tag_bytes", "l1_writeback_bytes", "l1_access_bytes"),
}
"""Level -> counters of the bytes it moved, best first; shared memory's are chosen apart.

L1's write-back sees the returns of loads only. What L2 looks up holds what does not come from the SMs, too.
"""

_ASYNC_COPIES_FROM = (8, 0)
_WGMMA = "9.0"


class _Moved(Struct, frozen=True):
    """Bytes that a level moved, where they come from, and whether that is all of them; None if not counted."""

    amount_bytes: float | None
    source: str | None
    accuracy: Accuracy = "exact"


_HARDLY_HITS, _HITS_OFTEN = 0.05, 0.5
"""A busy L1 that hardly hits serves shared memory; one that mostly hits serves global loads again and again."""


def works_in_shared_memory(kernel: Kernel) -> bool | None:
    """Tell whether a kernel whose L1 is busy keeps its operands in shared memory; None if nothing tells.

    Where the launch is not known, L1's hit rate tells, which counts no accesses to shared memory.
    """
    own_bytes, hits = kernel.program_smem_bytes, kernel.counters.get("l1_hit_rate")
    if own_bytes:
        return True
    if own_bytes == 0 or (hits is not None and hits >= _HITS_OFTEN):
        return False
    return True if hits is not None and hits < _HARDLY_HITS else None


def _delivered_bytes(kernel: Kernel) -> _Moved:
    """Choose the best count of what shared memory delivered."""
    counters, sources, opcodes = kernel.counters, kernel.counter_sources, kernel.warp_opcodes
    wgmma = counters.get("smem_wgmma_bytes", 0.0)
    # Warpgroup products and TMA work on shared memory unseen where nothing counts them.
    is_wgmma_unseen = "smem_wgmma_bytes" not in counters and kernel.compute_capability == _WGMMA
    is_unseen = any(op.partition(".")[0] in BULK_COPIES or (is_wgmma_unseen and "GMMA" in op) for op in opcodes)
    accesses, source = counters.get("smem_access_wavefronts"), sources.get("smem_access_wavefronts", "")
    if accesses is None and "shared_wavefronts" in kernel.code_totals:
        accesses, source = kernel.code_totals["shared_wavefronts"], "memory_l1_wavefronts_shared of all instructions"
    if accesses is not None:
        return _Moved(accesses * WAVEFRONT_BYTES + wgmma, source, "lower" if is_unseen else "exact")
    asked, copied = counters.get("smem_op_bytes"), counters.get("smem_async_bytes")
    if asked is not None:
        names = [sources.get(f"smem_{part}_bytes") for part in ("op", "async", "wgmma")]
        # Copies past the registers may be missing where the chip has them and no opcode table denies them.
        if copied is None and (kernel.compute_capability is None or kernel.capability >= _ASYNC_COPIES_FROM):
            is_unseen = is_unseen or not opcodes or any(op.startswith(THREAD_COPY) for op in opcodes)
        source = " + ".join(name for name in names if name)
        return _Moved(asked + (copied or 0.0) + wgmma, source, "lower" if is_unseen else "exact")
    total, other, source = (
        counters.get("l1_shared_data_bytes"),
        counters.get("smem_other_bytes"),
        sources.get("l1_shared_data_bytes", ""),
    )
    if total is not None and other is not None:
        return _Moved(max(0.0, total - other), f"{source} - {sources.get('smem_other_bytes', '')}", "lower")
    return _Moved(None, None) if total is None else _Moved(total, source, "upper")


def place_levels(kernel: Kernel, flop_total: float | None = None) -> dict[str, Level]:
    """Place a kernel at every level, with its intensity where FLOPs are given; what was not measured stays None.

    A stage's share is its rate over its peak; where either is missing, its stored per cent. System memory is DRAM on
    SoCs only.
    """
    counters, duration_ns, levels = kernel.counters, kernel.duration_ns, {}
    for level in LEVELS:
        of_level = roof(level, kernel)
        if level == "smem":
            if kernel.program_smem_bytes == 0:
                levels[level] = Level(roof=of_level)
                continue
            moved = _delivered_bytes(kernel)
        else:
            amount = next(filter(counters.__contains__, AMOUNTS[level]), "")
            # On a discrete GPU system memory lies behind PCIe, which is another roof than DRAM's.
            if amount == "sysmem_bytes" and kernel.compute_capability not in SOC_CAPABILITIES:
                amount = ""
            accuracy: Accuracy = "lower" if amount == "l1_access_bytes" else "exact"
            moved = _Moved(counters.get(amount), kernel.counter_sources.get(amount), accuracy)
        amount_bytes, stages = moved.amount_bytes, _stages_of(level, kernel)
        if level == "smem" and not stages and amount_bytes is not None and of_level and duration_ns:
            stages[ACCESSES] = amount_bytes / (of_level.value * duration_ns / 1e9)
        levels[level] = Level(
            amount_bytes,
            moved.source or None,
            kernel.per_s(amount_bytes),
            of_level,
            _share_of(stages, counters.get("sol_memory")),
            mapping_of(tuple(stages.items())),
            flop_total / amount_bytes if flop_total and amount_bytes else None,
            accuracy=moved.accuracy,
        )
    return levels


def _stages_of(level: str, kernel: Kernel) -> dict[str, float]:
    """Return the share of each stage that was measured: its rate over its peak, else its stored per cent.

    Where neither is known it is the rate over the published peak, a lower bound where the clock was lower.
    """
    counters, duration_ns, stages = kernel.counters, kernel.duration_ns, {}
    for name, unit, stored, amount_name in _NAMES_OF[level]:
        done = counters.get(amount_name)
        if done is not None and duration_ns and (peak := reported(unit, kernel)) is not None:
            stages[name] = done / (peak.value * duration_ns / 1e9)
        elif (share := counters.get(stored)) is not None:
            stages[name] = share / part_of_counted(unit, kernel)
        elif done is not None and duration_ns and (known := roof(unit, kernel)) is not None:
            stages[name] = done / (known.value * duration_ns / 1e9)
    if level == "dram":
        _settle_dram(stages, kernel)
    elif level == "l1":
        _settle_l1(stages, kernel)
    return stages


def _share_of(stages: Mapping[str, float], sol_memory: float | None) -> float | None:
    """Return the share of a level: that of its busiest stage; None if none is measured.

    What goes on inside L2 is not all traffic: NVIDIA's own per cent of the memory side leaves the fabric between the
    halves of an L2 out, so the stage that counts it is held to that.
    """
    if L2_INTERNAL not in stages or sol_memory is None:
        return max(stages.values(), default=None)
    rest = max((one for stage, one in stages.items() if stage != L2_INTERNAL), default=0.0)
    return max(rest, min(stages[L2_INTERNAL], sol_memory))


def _settle_dram(stages: dict[str, float], kernel: Kernel) -> None:
    """Call NVIDIA's own per cent of DRAM after no stage, where it is not the bus's."""
    if kernel.compute_capability not in CONTROLLERS_LEAD or "controller" in stages:
        return
    source, said = kernel.counter_sources.get("dram_bus_share", ""), kernel.counters.get("dram_bus_share")
    if said is not None and "dram_throughput" in source.replace("dram__", "dram_"):
        if stages.get("bus") == said:
            del stages["bus"]
        stages[WHOLE] = said


def _of_the_run(of_active: float, kernel: Kernel) -> float | None:
    """Turn NVIDIA's per cent of L1's active cycles into one of the run; None if the cycles are unknown.

    By L1's own cycles, or those of SMs, that is exact, whatever the pass. By cycles of GPCs, which another pass
    counted, it is NVIDIA's per cent of memory where that lies between the two: the busiest of several parts leads, and
    not all of them idle while their SM has no work.
    """
    counters = kernel.counters
    for unit in ("l1", "sm"):
        active, elapsed = (counters.get(f"{unit}_cycles_{which}_avg") for which in ("active", "elapsed"))
        # L1's own cycles first: its SMs may be active while it is not.
        if (part := ratio(active, elapsed)) is not None:
            return of_active * part
    part, memory = kernel.active_part, counters.get("sol_memory")
    if part is None:
        return None
    least = of_active * part
    is_memory = part >= _NEARLY_ALL and memory is not None and least - _NEARLY < memory < of_active + _NEARLY
    return memory if is_memory else least


def _whole_l1(kernel: Kernel) -> float | None:
    """Return L1's share by NVIDIA's per cents of L1 as a whole; None if they do not tell it.

    On CC 7.0, 7.5, 8.6 and 8.9 they count L1's requests to L2 twice, and over all cycles even where they are called a
    share of the active ones. NVIDIA's per cent of memory counts them once. So L1's is not its load where it is above
    that of memory, or the same of all cycles as of the active ones while SMs were idle; and where memory has half of
    it, that half is L1's load. In 51 launches of public reports that hold both per cents and the stages, twice such a
    stage leads in 22, and L1's own cycles turn one per cent into the other in 29.
    """
    counters = kernel.counters
    memory, of_active = counters.get("sol_memory"), counters.get("sol_l1_active_share")
    whole = counters.get("sol_l1_share")
    if of_active is not None:
        converted = _of_the_run(of_active, kernel)
        if whole is None:
            whole = converted
        elif converted is not None and abs(whole - of_active) < _SAME_SHARE * of_active < abs(converted - of_active):
            whole = None
    if whole is not None and whole <= (memory or 1.0) + _NEARLY:
        return whole
    if memory is None or of_active is None or memory < _TELLING:
        return None
    # If the SMs' active time is unknown, but the per cent repeats memory's: that share of the run.
    is_memory = abs(of_active / 2 - memory) < _HALVED or (whole is None and abs(of_active - memory) < _NEARLY)
    return memory if is_memory else None


def _data_by_accesses(kernel: Kernel) -> float | None:
    """Return the share of L1's data stage on chips that pass less than a wavefront a cycle; None if it does not lead.

    NVIDIA's per cent of memory's accesses counts the stage against a wavefront a cycle, that of L1 against what the
    chip passes: where the second is that much higher, both are the data stage's.
    """
    counters, part = kernel.counters, wavefronts_a_cycle(kernel)
    accesses = counters.get("sol_memory_access_share", 0.0)
    if part == 1 or accesses < _TELLING:
        return None
    whole = [counters[name] for name in ("sol_l1_share", "sol_l1_active_share") if name in counters]
    is_data = any(abs(one - accesses / part) < _HALVED / part for one in whole)
    return accesses / part if is_data else None


def _settle_l1(stages: dict[str, float], kernel: Kernel) -> None:
    """Keep NVIDIA's per cent of L1 where no stage of it is measured, and find the input of L1 among its others.

    Two of the per cents of memory, memory instructions and the SM are equal where they are those of load and store
    instructions. Launches of public reports that hold the stage as well agree: 33 of 35 where memory equals one of the
    others, 37 of 41 where memory instructions equal the SM.
    """
    stages.pop(WHOLE, None)
    # A measured stage is better than NVIDIA's per cent, which does not say which stage it is of.
    if not stages.keys() <= PARTIAL["l1"]:
        return
    if (data := _data_by_accesses(kernel)) is not None:
        stages[DATA] = data
    elif (whole := _whole_l1(kernel)) is not None:
        stages[WHOLE] = whole
    memory, pipes, compute = (kernel.counters.get(f"sol_{name}") for name in ("memory", "sm_memory_share", "compute"))
    other = compute if pipes is None else pipes
    if LSU_INPUT not in stages and None not in (memory, other) and abs((memory or 0.0) - (other or 0.0)) <= _ONE_UNIT:
        stages[LSU_INPUT] = memory or 0.0
    if {WHOLE, LSU_INPUT} <= stages.keys() and abs(stages[WHOLE] - stages[LSU_INPUT]) < _NEARLY:
        del stages[WHOLE]  # the same once more, of the active cycles or of another pass


def fullest(shares: Mapping[str, float], but: Collection[str] = ()) -> tuple[str, float] | None:
    """Name the level or pipe with the largest share, and that; the first of equal ones. None without any."""
    return max(((name, share) for name, share in shares.items() if name not in but), key=itemgetter(1), default=None)


def shares_of(levels: Mapping[str, Level], pipes: Mapping[str, Pipe]) -> dict[str, float]:
    """Return the share of every resource that has one, by level or pipe name."""
    shares = {name: level.share for name, level in levels.items() if level.share is not None}
    for name, pipe in pipes.items():
        if pipe.share is not None:
            shares[name] = pipe.share
    return shares
