"""Waits at mbarriers and for products in the background: what each is for, by addresses and groups."""

from __future__ import annotations

from support.machine_code import control, listed, machine_code

from rooflens.model.inside.look import look_inside
from rooflens.model.records import Inside

_STARTED = (
    "UMOV UR4, 0x400",
    "S2UR UR9, SR_CgaCtaId",
    "ULEA UR10, UR9, UR4, 0x18",
    "SYNCS.EXCH.64 URZ, [UR10], UR12",  # 3: three stages of copies,
    "SYNCS.EXCH.64 URZ, [UR10+0x8], UR12",
    "SYNCS.EXCH.64 URZ, [UR10+0x10], UR12",
    "SYNCS.EXCH.64 URZ, [UR10+0x18], UR14",  # 6: and of arrivals
    "SYNCS.EXCH.64 URZ, [UR10+0x20], UR14",
    "SYNCS.EXCH.64 URZ, [UR10+0x28], UR14",
    "BAR.SYNC.DEFER_BLOCKING 0x0",
    "@P6 BRA ->28",  # 10: warps that copy go there
)
_MULTIPLIES = (
    "MOV R16, RZ",
    "MOV R4, 0x400",  # 12: the loop
    "S2R R15, SR_CgaCtaId",
    "LEA R17, R15, R4, 0x18",
    "IMAD R22, R16, 0x8, R17",
    ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R22+URZ], R21", control(written=1)),
    ("@!P0 BRA ->16", control(waits=0b10)),  # 17
    "HGMMA.64x256x16.F32 R24, gdesc[UR8], R24",
    "HGMMA.64x256x16.F32 R24, gdesc[UR8], R24, gsb0",
    "WARPGROUP.DEPBAR.LE gsb0, 0x1",  # 20
    "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R22+URZ+0x18], RZ",
    "IADD3 R16, R16, 0x1, RZ",
    "SEL R16, R16, RZ, P1",
    "@P2 BRA ->12",
    "WARPGROUP.DEPBAR.LE gsb0, 0x0",  # 25
    "STG.E [R2.64], R24",
    "EXIT",
)
_COPIES = (
    "MOV R7, RZ",  # 28
    "MOV R5, 0x418",  # 29: the loop
    "S2R R15, SR_CgaCtaId",
    "LEA R12, R15, R5, 0x18",
    "LEA R9, R7, R12, 0x3",
    ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R9+URZ], R4", control(written=1)),
    ("@!P0 BRA ->33", control(waits=0b10)),  # 34
    "R2UR UR8, R7",
    "ULEA UR5, UR8, UR10, 0x3",
    "UTMALDG.2D [UR4], [UR18]",  # 37
    "IADD3 R7, R7, 0x1, RZ",
    "SEL R7, R7, RZ, P1",
    "@P2 BRA ->29",
    "EXIT",
)
_RUNS = [1.0] * 12 + [8.0] * 13 + [1.0] * 4 + [8.0] * 12 + [1.0]


def _look(**waits: dict[int, float]) -> Inside:
    return look_inside(machine_code(listed(*_STARTED, *_MULTIPLIES, *_COPIES), _RUNS, **waits))


def _named(inside: Inside) -> dict[int, tuple[list[int], str]]:
    """Return the positions that each wait is for, and what tells, by the position of the wait."""
    return {
        pc // 16: (sorted(wait.pc // 16 for wait in waits), waits[0].how) for pc, waits in inside.waits.items() if waits
    }


def test_a_wait_at_an_mbarrier_is_for_the_copies_of_other_warps_that_it_counts() -> None:
    """Consumers wait for the copy into their stage, the producer for who frees one; no way leads to either."""
    assert _named(_look(stall_long_scoreboard={17: 9.0, 34: 2.0})) == {17: ([37], "mbarrier"), 34: ([21], "mbarrier")}
    assert _named(_look(stall_short_scoreboard={17: 9.0})) == {17: ([37], "mbarrier")}


def test_stages_are_the_barriers_that_are_started_side_by_side() -> None:
    """Three barriers of copies stand before those of arrivals: three stages, of which a wait leaves two."""
    bodies = [loop.anatomy for loop in _look().loops if loop.anatomy is not None]
    assert [(body.stages, body.groups_left) for body in bodies if body.is_matrix] == [(3, 2)]
    assert not [body for body in bodies if not body.is_matrix and body.stages is not None]


def test_stages_that_a_loop_is_unrolled_by_are_the_barriers_that_it_waits_at() -> None:
    """Two waits a trip at barriers of copies by their own addresses are two stages; one alone tells nothing."""
    started = (*_STARTED[:-1], "@P6 BRA ->20")
    waits = ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR10], R4", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR10+0x8], R4")
    copies = ("UIADD3 UR5, UPT, UPT, UR10, 0x8, URZ", "UTMALDG.2D [UR4], [UR18]")
    for second, stages in ((waits[1], 2), (waits[0], None)):
        code = listed(
            *started,
            waits[0],  # 11: the loop
            "@!P0 BRA ->11",
            "HGMMA.64x256x16.F32 R24, gdesc[UR8], R24, gsb0",
            second,
            "@!P0 BRA ->14",
            "HGMMA.64x256x16.F32 R24, gdesc[UR8], R24, gsb0",
            "WARPGROUP.DEPBAR.LE gsb0, 0x1",
            "@P2 BRA ->11",
            "EXIT",
            "UMOV UR5, UR10",  # 20: the loop of those that copy
            "UTMALDG.2D [UR4], [UR18]",
            *copies,
            "@P2 BRA ->20",
            "EXIT",
        )
        runs = [1.0] * 11 + [8.0] * 8 + [1.0] + [8.0] * 5 + [1.0]
        inside = look_inside(machine_code(code, runs))
        bodies = [loop.anatomy for loop in inside.loops if loop.anatomy is not None and loop.anatomy.is_matrix]
        assert [body.stages for body in bodies] == [stages]


def test_a_loop_that_is_unrolled_by_fewer_than_its_stages_has_all_of_them() -> None:
    """Waits at the first two of three barriers of copies, by a number that goes round, are at one ring of three."""
    second = ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R22+URZ+0x8], R21", control(written=1))
    again = ("@!P0 BRA ->18", control(waits=0b10))
    begun = (*_STARTED[:-1], "@P6 BRA ->30")
    multiplies = (*_MULTIPLIES[:7], second, again, *_MULTIPLIES[7:])
    try_again = ("@!P0 BRA ->35", control(waits=0b10))
    next_copy = ("UIADD3 UR5, UPT, UPT, UR5, 0x8, URZ", "UTMALDG.2D [UR4], [UR18]")
    copies = (*_COPIES[:6], try_again, *_COPIES[7:10], *next_copy, *_COPIES[10:12], "@P2 BRA ->31", "EXIT")
    runs = [1.0] * 12 + [8.0] * 15 + [1.0] * 4 + [8.0] * 14 + [1.0]
    inside = look_inside(machine_code(listed(*begun, *multiplies, *copies), runs))
    bodies = [loop.anatomy for loop in inside.loops if loop.anatomy is not None and loop.anatomy.is_matrix]
    assert [(body.stages, body.groups_left) for body in bodies] == [(3, 2)]


def test_a_wait_for_products_names_those_of_the_groups_that_it_waits_for() -> None:
    """A wait that leaves one group is for the products of trips before; the last one for all."""
    inside = _look(stall_gmma={20: 5.0, 21: 1.0, 25: 3.0})
    assert _named(inside) == {20: ([18, 19], "group"), 21: ([18, 19], "group"), 25: ([18, 19], "group")}
    (body,) = [loop.anatomy for loop in inside.loops if loop.anatomy is not None and loop.anatomy.is_matrix]
    assert body.products_left == 1


def test_a_commit_of_tcgen05_stands_for_the_product_before_it() -> None:
    """Who waits at the barrier that `UTCBAR` arrives at waits for what multiplied last."""
    code = listed(
        "UMOV UR6, 0x440",
        "UTCHMMA gdesc[UR30], gdesc[UR32], tmem[UR10], tmem[UR28], idesc[UR29], UP3",
        "UTCBAR [UR6], URZ",
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], R4", control(written=1)),
        ("@!P0 BRA ->3", control(waits=0b10)),
        ("LDTM.x16 R8, tmem[UR4]", control(written=2)),
        ("FADD R4, R8, R9", control(waits=0b100)),
        "EXIT",
    )
    inside = look_inside(machine_code(code, [8.0] * 8, stall_long_scoreboard={4: 7.0, 6: 1.0}))
    assert _named(inside) == {4: ([1], "mbarrier"), 6: ([5], "scoreboard")}


def test_a_barrier_whose_address_nothing_tells_stands_for_itself() -> None:
    """An address from memory is like no other: the wait names the instruction that checks the phase."""
    code = listed(
        ("LDG.E R9, [R2.64]", control(written=0)),
        "UTMALDG.2D [UR4], [UR18]",
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R9+URZ+0x40], R4", control(written=1, waits=1)),
        ("@!P0 BRA ->2", control(waits=0b10)),
        "EXIT",
    )
    inside = look_inside(machine_code(code, [8.0] * 5, stall_long_scoreboard={3: 7.0}))
    assert _named(inside) == {3: ([2], "scoreboard")}
