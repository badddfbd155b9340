"""Occupancy: how many warps an SM could hold and does hold, what sets the limit, what would change it, and the tail.

Source: Nsight Compute's Occupancy section. A launch may put on an SM as many blocks as the scarcest of its resources
allows; a wave is as many blocks as all SMs hold at once. CUDA's own arithmetic, with the limits that the report states,
says what another launch would be allowed; a curve is only given where it goes through the report's own occupancy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from rooflens.format import count
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.records import Kernel, Limiter

LIMITERS: dict[str, Limiter] = {
    "blocks_limit_registers": "registers",
    "blocks_limit_smem": "shared memory",
    "blocks_limit_warps": "warps a block",
    "blocks_limit_blocks": "block slots",
    "blocks_limit_barriers": "barriers",
}
"""Counter of the blocks that an SM can hold by one resource -> that resource."""

_FULL = 0.999
"""Theoretical occupancy from here up fills every warp slot: nothing limits it."""


class Occupancy(Struct, frozen=True):
    """The warps of an SM.

    Attributes:
        achieved: Resident warps over the most an SM can hold, mean over the active cycles, 0 to 1.
        theoretical: Warps that the launch allows over the most an SM can hold, 0 to 1.
        block_limits: Resource -> blocks that an SM can hold by it, the scarcest first.
        limiters: The scarcest resources, without shared memory where the program uses none and others are as scarce;
            empty if every warp slot can be filled or the report does not say.
        waves: Blocks of the grid over those that all SMs hold at once.
        tail_share: Part of the SM time of all waves that the last leaves idle, 0 to 1.
    """

    achieved: float | None = None
    theoretical: float | None = None
    block_limits: tuple[tuple[Limiter, float], ...] = ()
    limiters: tuple[Limiter, ...] = ()
    waves: float | None = None
    tail_share: float | None = None


def find_occupancy(kernel: Kernel) -> Occupancy:
    """Read the occupancy of a kernel; what the report does not hold stays None or empty."""
    counters = kernel.counters
    waves = counters.get("waves")
    return Occupancy(
        achieved=counters.get("achieved_occupancy"),
        theoretical=counters.get("theoretical_occupancy"),
        block_limits=block_limits(kernel),
        limiters=occupancy_limiters(kernel),
        waves=waves,
        tail_share=None if waves is None else tail_share(waves),
    )


def block_limits(kernel: Kernel) -> tuple[tuple[Limiter, float], ...]:
    """Return each resource with the blocks that an SM can hold by it, the scarcest first."""
    return _block_limits(*map(kernel.counters.get, LIMITERS))


@lru_cache(maxsize=1024)
def _block_limits(*blocks: float | None) -> tuple[tuple[Limiter, float], ...]:
    """Sort the blocks by the resources of `LIMITERS`; launches of few shapes ask again and again."""
    known = ((text, limit) for text, limit in zip(LIMITERS.values(), blocks, strict=True) if limit is not None)
    return tuple(sorted(known, key=lambda limit: limit[1]))


def occupancy_limiters(kernel: Kernel) -> tuple[Limiter, ...]:
    """Name the scarcest resources, the first of `LIMITERS` first.

    Shared memory is left out where the program uses none and something else allows no more blocks. Empty if every
    warp slot can be filled or the report does not say.
    """
    counters = kernel.counters
    theoretical = counters.get("theoretical_occupancy")
    if theoretical is not None and theoretical >= _FULL:
        return ()
    limits = block_limits(kernel)
    scarcest = tuple(text for text, blocks in limits if blocks == limits[0][1])
    block = block_smem_bytes(counters)
    is_unused = block is not None and block <= counters.get("smem_driver_bytes", 0.0)
    others = tuple(limiter for limiter in scarcest if limiter != "shared memory")
    return others if is_unused and others else scarcest


def tail_share(waves: float) -> float | None:
    """Return the part of the SM time of all waves that the last, partial one leaves idle, 0 to 1; None without waves.

    It assumes blocks of equal time: 1.25 waves take the time of two and leave 0.375 of it; 0.25 waves leave 0.75.
    """
    return 1 - waves / math.ceil(waves) if waves > 0 else None


class OccupancyStep(Struct, frozen=True):
    """What one resource of a launch must become for an SM to hold more blocks.

    Attributes:
        now: What a block or a thread takes: registers a thread, bytes of the program's shared memory, threads a block.
        to: What it may take at most, or for block slots must take at least, so that `blocks` fit.
        blocks: Blocks that an SM can hold by this resource then.
        unit: Of `now` and `to`.
    """

    now: float
    to: float
    blocks: float
    unit: str


def next_step(kernel: Kernel, limiter: str) -> OccupancyStep | None:
    """Return the next step of a resource that limits occupancy; None if there is none, or if unknown.

    It is CUDA's own arithmetic: registers are given to a warp 256 at a time, out of a quarter of an SM's for each
    scheduler; shared memory comes in units of 128 bytes (256 before compute capability 8.0), the driver's part in it.
    """
    find = _LIMITER_STEPS.get(limiter)
    return find(kernel) if find else None


def step_to(kernel: Kernel, resource: str, blocks: int) -> OccupancyStep | None:
    """Return what one resource must become for an SM to hold so many blocks; None if impossible or unknown."""
    counters = kernel.counters
    if resource == "registers":
        used, size = counters.get("registers_per_thread"), counters.get("block_size")
        held = counters.get("sm_registers", SM_REGISTERS)
        if not used or not size:
            return None
        to = _most_registers(blocks, size, held)
        return None if to is None else OccupancyStep(used, to, blocks, "registers")
    most, block, driver = sm_smem_bytes(kernel), block_smem_bytes(counters), counters.get("smem_driver_bytes", 0.0)
    if resource != "shared memory" or most is None or block is None:
        return None
    to_bytes = most // blocks // _SMEM_UNIT * _SMEM_UNIT - driver
    return OccupancyStep(block - driver, to_bytes, blocks, "B") if to_bytes > 0 else None


@lru_cache(maxsize=1024)
def _most_registers(blocks: int, size: float, held: float) -> int | None:
    """Return how many registers a thread may have for so many blocks; launches of few shapes ask again and again."""
    fewer = range(MOST_REGISTERS // SAME_REGISTERS * SAME_REGISTERS, _FEWEST_REGISTERS - 1, -SAME_REGISTERS)
    return next((count for count in fewer if blocks_by_registers(count, size, held) >= blocks), None)


def warps_of(threads: float) -> int:
    """Return the number of warps in a block of this many threads."""
    return math.ceil(threads / WARP_THREADS)


SM_REGISTERS = 65536
"""Registers of an SM, since Maxwell (CUDA C++ Programming Guide, compute capabilities)."""
_SM_SMEM_BYTES: Mapping[str, float] = {
    capability: kibibytes * 1024.0
    for kibibytes, capabilities in (
        (64, ("6.0", "7.5")),
        (96, ("5.2", "6.1", "7.0", "7.2")),
        (100, ("8.6", "8.9", "12.0", "12.1")),
        (164, ("8.0", "8.7")),
        (228, ("9.0", "10.0", "10.3", "11.0")),
    )
    for capability in capabilities
}
"""Shared memory that an SM can set aside, by compute capability (the same table)."""
_SM_WARPS: Mapping[str, float] = {
    capability: warps
    for warps, capabilities in (
        (32.0, ("7.5",)),
        (48.0, ("8.6", "8.7", "8.9", "12.0", "12.1")),
        (64.0, ("6.0", "6.1", "7.0", "7.2", "8.0", "9.0", "10.0", "10.3")),
    )
    for capability in capabilities
}
"""Warps that an SM can hold, by compute capability (the same table)."""
_SMEM_UNIT = 256
"""Largest unit, in bytes, in which shared memory is allocated to a block."""
_REGISTER_UNIT = 256
SAME_REGISTERS = 8
"""Registers are given to a warp 256 at a time: this many values for a thread take as many."""
_FEWEST_REGISTERS = 16
"""A thread is advised no fewer."""
_SCHEDULERS = 4
_SCHEDULERS_OF_P100 = 2


def blocks_by_registers(registers: float, block_size: float, sm_registers: float, schedulers: int = _SCHEDULERS) -> int:
    """Return how many blocks an SM can hold by their registers a thread; each scheduler has its part of them."""
    warp_registers = max(1, math.ceil(registers * WARP_THREADS / _REGISTER_UNIT)) * _REGISTER_UNIT
    # Each scheduler owns its registers, so a warp must fit into one part; the sum over the SM would allow more.
    warps = schedulers * (sm_registers // schedulers // warp_registers)
    return int(warps // warps_of(block_size))


def warp_slots(kernel: Kernel) -> float | None:
    """Return how many warps an SM can hold, as stored or of its compute capability; None if neither is known."""
    return kernel.counters.get("sm_warps") or _SM_WARPS.get(kernel.compute_capability or "")


def allowed_occupancy(kernel: Kernel) -> float | None:
    """Return the occupancy that a launch allows, 0 to 1: as stated, else by the fewest blocks that any limit allows."""
    stated, block, most = kernel.counters.get("theoretical_occupancy"), kernel.block_threads, warp_slots(kernel)
    limits = block_limits(kernel)
    if stated is not None or not limits or not block or not most:
        return stated
    return min(1.0, limits[0][1] * warps_of(block) / most)


def allowed_by_registers(kernel: Kernel) -> float | None:
    """Return the occupancy that the registers of a launch allow at most, 0 to 1; None if one of them is unknown."""
    counters = kernel.counters
    registers, block = counters.get("registers_per_thread"), counters.get("block_size")
    most = warp_slots(kernel)
    if not registers or not block or not most:
        return None
    blocks = blocks_by_registers(registers, block, counters.get("sm_registers") or SM_REGISTERS)
    return min(1.0, blocks * warps_of(block) / most)


def _fewer_registers(kernel: Kernel) -> OccupancyStep | None:
    counters = kernel.counters
    registers, block, held = (counters.get(name) for name in ("registers_per_thread", "block_size", "sm_registers"))
    if not registers or not block:
        return None
    if held is None:  # what every SM has, if that explains the launch's limit
        held, limit = SM_REGISTERS, counters.get("blocks_limit_registers")
        if blocks_by_registers(registers, block, held) != limit:
            return None
    return _fewer_registers_of(registers, block, held)


@lru_cache(maxsize=1024)
def _fewer_registers_of(registers: float, block: float, held: float) -> OccupancyStep | None:
    now = blocks_by_registers(registers, block, held)
    most = (math.ceil(registers) - 1) // SAME_REGISTERS * SAME_REGISTERS
    fewer = range(most, _FEWEST_REGISTERS - 1, -SAME_REGISTERS)
    to = next((count for count in fewer if blocks_by_registers(count, block, held) > now), None)
    return None if to is None else OccupancyStep(registers, to, blocks_by_registers(to, block, held), "registers")


def sm_smem_bytes(kernel: Kernel) -> float | None:
    """Return the shared memory that an SM can set aside, by the report or CUDA's table; None if neither has it."""
    stated = kernel.counters.get("sm_smem_bytes")
    return _SM_SMEM_BYTES.get(kernel.compute_capability or "") if stated is None else stated


def block_smem_bytes(counters: Mapping[str, float]) -> float | None:
    """Return the shared memory that a block takes, as allocated or as its parts add up; None if one is unknown."""
    parts = [counters.get(f"smem_{part}") for part in ("static_per_block_bytes", "dynamic_per_block_bytes")]
    allocated = counters.get("smem_per_block_bytes")
    if allocated is not None or None in parts:
        return allocated
    return sum(part or 0.0 for part in parts) + counters.get("smem_driver_bytes", 0.0)


def set_aside_bytes(kernel: Kernel) -> float | None:
    """Return the shared memory of an SM that explains the launch's limit; None if neither size does.

    It is what the SM set aside for this launch, or all that it could.
    """
    block, limit = block_smem_bytes(kernel.counters), kernel.counters.get("blocks_limit_smem")
    candidates = (sm_smem_bytes(kernel), kernel.counters.get("smem_config_bytes"))
    if not block or limit is None:
        return None
    return next((held for held in candidates if held is not None and held // block == limit), None)


def _less_shared_memory(kernel: Kernel) -> OccupancyStep | None:
    counters = kernel.counters
    held, block = set_aside_bytes(kernel), block_smem_bytes(counters)
    limit, driver = counters.get("blocks_limit_smem"), counters.get("smem_driver_bytes", 0.0)
    if held is None or block is None or limit is None:
        return None
    unit = 128 if driver else 256
    to = held // (limit + 1) // unit * unit - driver
    return OccupancyStep(block - driver, to, limit + 1, "B") if to > 0 else None


def _fitting_block(kernel: Kernel) -> OccupancyStep | None:
    counters = kernel.counters
    block, held = counters.get("block_size"), counters.get("sm_warps")
    if not block or not held:
        return None
    warps = warps_of(block)
    to = next((count for count in range(warps - 1, 0, -1) if held // count * count > held // warps * warps), None)
    return None if to is None else OccupancyStep(block, to * WARP_THREADS, held // to, "threads")


def _larger_block(kernel: Kernel) -> OccupancyStep | None:
    counters = kernel.counters
    block, held, slots = (counters.get(name) for name in ("block_size", "sm_warps", "blocks_limit_blocks"))
    if not block or not held or not slots:
        return None
    to = math.ceil(held / slots) * WARP_THREADS
    return OccupancyStep(block, to, slots, "threads") if to > block else None


_LIMITER_STEPS: Mapping[str, Callable[[Kernel], OccupancyStep | None]] = {
    "registers": _fewer_registers,
    "shared memory": _less_shared_memory,
    "warps a block": _fitting_block,
    "block slots": _larger_block,
}
"""Resource -> what finds its next step."""

Property = Literal["registers", "block size", "shared memory"]

Steps = tuple[tuple[float, float], ...]
"""Value of the property, and the occupancy up to it, from the value before it on."""

MOST_REGISTERS = 255
MOST_THREADS = 1024
_BLOCK_SMEM_BYTES = 49_152
"""Shared memory of a block before compute capability 7.0, which cannot opt in to more."""
_SAME = 0.005
"""Drop the model of occupancy if it misses the report by more."""
_WORTH = 0.05
"""A change that raises occupancy by less is not worth naming."""


class Curve(Struct, frozen=True):
    """Occupancy against one property of a launch, all others as they are.

    Attributes:
        now: The launch's own value: registers a thread, threads a block, bytes of the program's shared memory a block.
        occupancy: What the launch allows, 0 to 1.
        steps: Every value at which the occupancy changes, and the last one that a launch can have.
        better: The nearest value that allows clearly more, and what it allows; None if none does.
    """

    of: Property
    now: float
    occupancy: float
    steps: Steps
    better: tuple[float, float] | None


class _Sm(Struct, frozen=True):
    """What an SM holds, and what a launch takes of it.

    Attributes:
        slots: Blocks, by the limits that do not depend on the three properties.
        smem_blocks: Blocks, by the shared memory of this launch.
        smem_bytes: All that an SM can set aside.
        driver_bytes: What the driver takes of each block's.
        smem_unit: Unit, in bytes, in which shared memory is allocated to a block.
    """

    warps: float
    slots: float
    registers: float
    schedulers: int
    smem_blocks: float
    smem_bytes: float | None
    driver_bytes: float
    smem_unit: int

    def occupancy(self, registers: float, threads: float, smem_blocks: float) -> float:
        """Return the warps of as many blocks as fit, over the slots for warps."""
        warps = warps_of(threads)
        by_registers = blocks_by_registers(registers, threads, self.registers, self.schedulers)
        return min(self.warps // warps, self.slots, by_registers, smem_blocks) * warps / self.warps


def occupancy_curves(kernel: Kernel) -> tuple[Curve, ...]:
    """Return the curves of a launch; none where the report lacks a limit or states another occupancy."""
    counters = kernel.counters
    sm, allowed = _sm(counters, kernel.capability), counters.get("theoretical_occupancy")
    registers, threads = counters.get("registers_per_thread"), counters.get("block_size")
    if sm is None or not allowed or not registers or not threads:
        return ()
    now = sm.occupancy(registers, threads, sm.smem_blocks)
    caps = (*range(SAME_REGISTERS, MOST_REGISTERS, SAME_REGISTERS), MOST_REGISTERS)
    by_registers = [(float(value), sm.occupancy(value, threads, sm.smem_blocks)) for value in caps]
    sizes = range(WARP_THREADS, MOST_THREADS + 1, WARP_THREADS)
    by_block = [(float(value), sm.occupancy(registers, value, sm.smem_blocks)) for value in sizes]
    found = [_curve("registers", registers, now, by_registers), _curve("block size", threads, now, by_block)]
    smem = counters.get("smem_per_block_bytes")
    if smem is not None and sm.smem_bytes:
        most = sm.smem_bytes if kernel.capability >= (7, 0) else min(sm.smem_bytes, _BLOCK_SMEM_BYTES)
        found.append(_by_shared_memory(sm, registers, threads, smem, most))
    # The report's own occupancy is the test of this arithmetic: a curve that misses it here is wrong elsewhere too.
    return tuple(curve for curve in found if abs(curve.occupancy - allowed) < _SAME)


def _sm(counters: Mapping[str, float], capability: tuple[int, int]) -> _Sm | None:
    warps, registers = counters.get("sm_warps"), counters.get("sm_registers")
    slots, smem_blocks = counters.get("blocks_limit_blocks"), counters.get("blocks_limit_smem")
    if not warps or not registers or not slots or not smem_blocks:
        return None
    return _Sm(
        warps=warps,
        # Older reports lack the limit by barriers.
        slots=min(slots, counters.get("blocks_limit_barriers", slots)),
        registers=registers,
        schedulers=_SCHEDULERS_OF_P100 if capability == (6, 0) else _SCHEDULERS,
        smem_blocks=smem_blocks,
        smem_bytes=counters.get("sm_smem_bytes"),
        driver_bytes=counters.get("smem_driver_bytes", 0.0),
        smem_unit=128 if capability >= (8, 0) else 256,
    )


def _by_shared_memory(sm: _Sm, registers: float, threads: float, taken: float, most: float) -> Curve:
    """Follow the shared memory that a block may take for so many blocks to fit, out of all that an SM can set aside."""
    held = sm.smem_bytes or 0.0
    steps = []
    for blocks in range(int(sm.slots), 0, -1):
        # The driver's kilobyte counts against the SM, but a program cannot use it.
        fitting = min(held // blocks // sm.smem_unit * sm.smem_unit, most) - sm.driver_bytes
        steps.append((max(0.0, fitting), sm.occupancy(registers, threads, blocks)))
    own = max(0.0, taken - sm.driver_bytes)
    now = next((occupancy for value, occupancy in steps if own <= value), 0.0)
    return _curve("shared memory", own, now, steps)


def _curve(of: Property, now: float, occupancy: float, steps: list[tuple[float, float]]) -> Curve:
    better = [step for step in steps if step[1] >= occupancy + _WORTH]
    nearest = min(better, key=lambda step: (abs(step[0] - now), -step[1]), default=None)
    return Curve(of, now, occupancy, _merged_steps(steps), nearest)


def _merged_steps(steps: Iterable[tuple[float, float]]) -> Steps:
    """Merge neighbours of equal occupancy and keep the last; of several at one value keep the first."""
    merged: list[tuple[float, float]] = []
    for value, occupancy in steps:
        if merged and merged[-1][0] == value:
            continue
        if merged and merged[-1][1] == occupancy:
            merged.pop()
        merged.append((value, occupancy))
    return tuple(merged)


def few_blocks(counters: Mapping[str, float]) -> str:
    """Say that some SMs have no block: `64 blocks for 148 SMs`; empty where each has one, or that is not known."""
    blocks, sms = counters.get("grid_size"), counters.get("sm_count")
    return f"{count(int(blocks), 'block')} for {sms:,.0f} SMs" if blocks and sms and blocks < sms else ""
