from __future__ import annotations

import pytest
from support.kernels import make_kernel
from support.loops import for_all

from rooflens.model.roofline.occupancy import (
    LIMITERS,
    Curve,
    Occupancy,
    blocks_by_registers,
    find_occupancy,
    next_step,
    occupancy_curves,
    tail_share,
)

LIMITED = {
    "achieved_occupancy": 0.36,
    "theoretical_occupancy": 0.5,
    "blocks_limit_registers": 2.0,
    "blocks_limit_smem": 2.0,
    "blocks_limit_warps": 4.0,
    "blocks_limit_blocks": 32.0,
    "waves": 1.25,
}


def test_occupancy_of_a_limited_launch() -> None:
    """Both per cents, the limits with the tightest first, those that tie, and the idle part of the last wave."""
    found = find_occupancy(make_kernel(LIMITED))
    assert (found.achieved, found.theoretical) == (0.36, 0.5)
    assert found.block_limits[0] == ("registers", 2.0)
    assert [blocks for _, blocks in found.block_limits] == [2.0, 2.0, 4.0, 32.0]
    assert found.limiters == ("registers", "shared memory")
    assert found.tail_share == pytest.approx(0.375)


def test_a_launch_that_fills_every_slot_is_not_limited() -> None:
    """At a theoretical occupancy of 100 % no resource limits."""
    assert find_occupancy(make_kernel({**LIMITED, "theoretical_occupancy": 1.0})).limiters == ()


def test_nothing_stored_is_nothing_known() -> None:
    """A report without launch counters gives no value, rather than zero."""
    assert find_occupancy(make_kernel()) == Occupancy()


@for_all("waves, idle", [(0.0, None), (0.25, 0.75), (1.0, 0.0), (1.25, 0.375), (2.0, 0.0), (9.5, 0.05)])
def test_what_the_last_wave_leaves_idle(waves: float, idle: float | None) -> None:
    """A wave that is not full takes as long as a full wave."""
    assert tail_share(waves) == (None if idle is None else pytest.approx(idle))


def test_each_limit_has_its_own_name() -> None:
    """No two limits have the same name."""
    assert len(set(LIMITERS.values())) == len(LIMITERS)


A100 = {
    "sm_warps": 64.0,
    "sm_registers": 65536.0,
    "sm_smem_bytes": 167936.0,
    "smem_driver_bytes": 1024.0,
    "smem_per_block_bytes": 1024.0,
    "blocks_limit_blocks": 32.0,
    "blocks_limit_smem": 32.0,
}
TURING = {
    "sm_warps": 32.0,
    "sm_registers": 65536.0,
    "sm_smem_bytes": 65536.0,
    "smem_per_block_bytes": 0.0,
    "blocks_limit_blocks": 16.0,
    "blocks_limit_smem": 16.0,
}


def curves_of(counters: dict[str, float], capability: str, **launch: float) -> dict[str, Curve]:
    """Return the curves of a launch by their resource."""
    kernel = make_kernel({**counters, **launch}, compute_capability=capability)
    return {curve.of: curve for curve in occupancy_curves(kernel)}


def at(curve: Curve, value: float) -> float:
    """Read a curve at one value."""
    return next(occupancy for up_to, occupancy in curve.steps if value <= up_to)


def test_fewer_registers_allow_more() -> None:
    """40 registers take 5 x 256 per warp: 12 warps in a scheduler's 16,384, 6 blocks of 8; 32 take 4: all 64 slots."""
    curves = curves_of(A100, "8.0", registers_per_thread=40.0, block_size=256.0, theoretical_occupancy=0.75)
    curve = curves["registers"]
    assert (curve.now, curve.occupancy, curve.better) == (40.0, 0.75, (32.0, 1.0))
    registers = (1, 32, 33, 40, 41, 64, 65, 128, 129, 255)
    expected = (1.0, 1.0, 0.75, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0.125)
    assert tuple(at(curve, count) for count in registers) == expected
    assert curve.steps[-1][0] == 255.0


def test_small_blocks_use_up_the_slots_for_blocks() -> None:
    """16 blocks of one warp are half of a Turing SM's 32 slots; of two warps, they are all."""
    curves = curves_of(TURING, "7.5", registers_per_thread=16.0, block_size=9.0, theoretical_occupancy=0.5)
    curve = curves["block size"]
    assert (curve.now, curve.occupancy, curve.better) == (9.0, 0.5, (64.0, 1.0))
    assert [at(curve, threads) for threads in (32, 64, 96, 1024)] == [0.5, 1.0, 30 / 32, 1.0]


def test_less_shared_memory_allows_more() -> None:
    """40 kB and the driver's 1 kB leave room for 2 blocks in 100 kB; a third fits from 34,048 - 1,024 bytes down."""
    blackwell = {
        **A100,
        "sm_warps": 48.0,
        "sm_smem_bytes": 102400.0,
        "blocks_limit_blocks": 24.0,
        "blocks_limit_smem": 2.0,
        "smem_per_block_bytes": 41984.0,
    }
    launch = {"registers_per_thread": 32.0, "block_size": 128.0, "theoretical_occupancy": 8 / 48}
    curve = curves_of(blackwell, "12.0", **launch)["shared memory"]
    assert (curve.now, curve.occupancy) == (40960.0, 8 / 48)
    assert curve.better == (33024.0, 12 / 48)
    assert [at(curve, taken) for taken in (0, 33024, 33025, 50176, 101376)] == [1.0, 0.25, 8 / 48, 8 / 48, 4 / 48]


def test_old_chips_cap_the_shared_memory_of_a_block() -> None:
    """Before compute capability 7.0 a block cannot have more than 48 kB, however much the SM has."""
    pascal = {
        **TURING,
        "sm_warps": 64.0,
        "blocks_limit_blocks": 32.0,
        "blocks_limit_smem": 32.0,
        "sm_smem_bytes": 98304.0,
    }
    launch = {"registers_per_thread": 32.0, "block_size": 64.0, "theoretical_occupancy": 1.0}
    assert curves_of(pascal, "6.1", **launch)["shared memory"].steps[-1] == (49152.0, 2 * 2 / 64)


def test_p100_has_two_schedulers_an_sm() -> None:
    """40 registers take 1,280 per warp: 25 warps fit in half of an SM's registers, 12 in a quarter."""
    launch = {"registers_per_thread": 40.0, "block_size": 64.0}
    assert curves_of(A100, "6.0", **launch, theoretical_occupancy=50 / 64)["registers"].occupancy == 50 / 64
    assert curves_of(A100, "6.1", **launch, theoretical_occupancy=48 / 64)["registers"].occupancy == 48 / 64


def test_a_curve_that_misses_the_stated_occupancy_is_not_drawn() -> None:
    """The report says 50 % and the arithmetic 75 %: something is unknown, so nothing is shown."""
    launch = {"registers_per_thread": 40.0, "block_size": 256.0}
    assert curves_of(A100, "8.0", **launch, theoretical_occupancy=0.5) == {}
    for missing in ("sm_warps", "sm_registers", "blocks_limit_blocks", "blocks_limit_smem"):
        counters = {name: value for name, value in A100.items() if name != missing}
        assert curves_of(counters, "8.0", **launch, theoretical_occupancy=0.75) == {}, missing
    assert curves_of(A100, "8.0", **launch) == {}


def test_a_step_of_a_few_points_is_none() -> None:
    """544 threads of 40 registers would add 2 points to 512: the nearest size worth the change is named."""
    counters = {**A100, "sm_warps": 48.0, "blocks_limit_blocks": 16.0}
    launch = {"registers_per_thread": 51.0, "block_size": 512.0, "theoretical_occupancy": 32 / 48}
    curve = curves_of(counters, "8.6", **launch)["block size"]
    assert at(curve, 544) == pytest.approx(34 / 48)
    assert curve.better == (576.0, 36 / 48)


@for_all("registers", [17, 32, 33, 40, 41, 101, 168, 255])
@for_all("threads", [32, 96, 256, 512, 1024])
def test_the_step_of_registers_is_the_most_that_let_in_another_block(registers: int, threads: int) -> None:
    """Trying every smaller count gives the same, although registers are allocated in eights."""
    sm = 65536.0
    launch = {"registers_per_thread": float(registers), "block_size": float(threads), "sm_registers": sm}
    now = blocks_by_registers(registers, threads, sm)
    most = max((count for count in range(16, registers) if blocks_by_registers(count, threads, sm) > now), default=None)
    step = next_step(make_kernel(launch), "registers")
    assert (step.to if step else None) == most
