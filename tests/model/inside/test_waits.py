"""What each wait waits for, and what a trip consists of."""

from __future__ import annotations

from support.machine_code import control, listed, machine_code
from support.sass_text import parse

from rooflens.model.inside.instruction import width_bytes
from rooflens.model.inside.look import look_inside

PRODUCT = listed(
    "MOV R4, RZ",
    ("LDG.E R2, [R8.64]", control(written=2)),
    ("LDG.E.128 R12, [R10.64]", control(written=2)),
    ("MUFU.RCP R7, R6", control(written=3)),
    ("FFMA R5, R2, R3, R5", control(waits=0b000100)),
    ("FMUL R6, R7, R6", control(waits=0b001000)),
    "IADD3 R4, R4, 0x4, RZ",
    "ISETP.NE.AND P0, PT, R4, c[0x0][0x170], PT",
    "@P0 BRA ->1",
    "EXIT",
    lines=(1, 2, 3, 4, 5, 6, 1, 1, 1, 9),
)
RUNS = [1, 8, 8, 8, 8, 8, 8, 8, 8, 1]


def test_a_wait_for_memory_is_for_the_load_whose_register_is_read() -> None:
    """Two loads share a scoreboard: the wait is for the load whose result is used."""
    inside = look_inside(machine_code(PRODUCT, RUNS, stall_long_scoreboard={4: 9.0}))
    (wait,) = inside.waits[0x40]
    assert (wait.line, wait.how, wait.samples) == (2, "scoreboard", 9)


def test_a_wait_for_a_special_function_names_it() -> None:
    """Special functions have a scoreboard of their own."""
    inside = look_inside(machine_code(PRODUCT, RUNS, stall_short_scoreboard={5: 4.0}))
    assert [(wait.pc, wait.opcode) for wait in inside.waits[0x50]] == [(0x30, "MUFU")]


def test_a_scoreboard_that_was_waited_for_is_free() -> None:
    """The second use of a loaded value adds no wait."""
    code = listed(
        ("LDG.E R2, [R8.64]", control(written=0)),
        ("FADD R3, R2, R2", control(waits=1)),
        ("LDG.E R4, [R8.64+0x4]", control(written=0)),
        ("FADD R5, R4, R2", control(waits=1)),
        "EXIT",
    )
    inside = look_inside(machine_code(code, [1] * 5, stall_long_scoreboard={3: 1.0}))
    assert [wait.pc for wait in inside.waits[0x30]] == [0x20]


def test_a_producer_is_found_around_the_loop() -> None:
    """A load for the next trip is placed after its use."""
    code = listed(
        "MOV R2, RZ",
        ("FADD R3, R2, R3", control(waits=1)),
        ("LDG.E R2, [R8.64]", control(written=0)),
        "@P0 BRA ->1",
        "EXIT",
    )
    inside = look_inside(machine_code(code, [1, 8, 8, 8, 1], stall_long_scoreboard={1: 1.0}))
    assert [wait.pc for wait in inside.waits[0x10]] == [0x20]


def test_where_no_scoreboard_is_named_registers_tell() -> None:
    """An answer from registers is marked."""
    code = listed("LDG.E R2, [R8.64]", "LDG.E R3, [R10.64]", "FADD R4, R2, R4", "EXIT", lines=(1, 2, 3, 4))
    inside = look_inside(machine_code(code, [8, 8, 8, 8], stall_long_scoreboard={2: 9.0}))
    (wait,) = inside.waits[0x20]
    assert (wait.line, wait.how) == (1, "registers")


def test_a_wait_at_a_barrier_is_for_what_takes_longest_before_it() -> None:
    """Most samples before the barrier are at the use of a load, which delays the last warp."""
    code = listed(
        "MOV R4, RZ",
        ("LDG.E R2, [R8.64]", control(written=0)),
        ("STS [R9], R2", control(waits=1)),
        "BAR.SYNC 0x0",
        "LDS R3, [R9]",
        "EXIT",
    )
    amounts = {"samples": {2: 50.0, 4: 30.0}, "stall_long_scoreboard": {2: 50.0}, "stall_barrier": {4: 30.0}}
    inside = look_inside(machine_code(code, [1] * 6, **amounts))
    (wait,) = inside.waits[0x40]
    assert (wait.pc, wait.how) == (0x10, "barrier")


def test_reasons_without_a_producer_have_none() -> None:
    """A warp that is ready, or waits for a fixed latency, does not wait for an instruction that could move."""
    inside = look_inside(machine_code(PRODUCT, RUNS, stall_wait={4: 1.0}, stall_not_selected={4: 2.0}))
    assert not inside.waits


def test_anatomy_of_a_product() -> None:
    """One multiply-add per trip, with five loaded values, accumulated in one register."""
    loop = look_inside(machine_code(PRODUCT, RUNS, stall_long_scoreboard={4: 9.0})).loops[0]
    body = loop.anatomy
    assert body is not None
    assert (body.instructions, body.multiply_adds, body.dtype, body.results) == (8, 1, "fp32", 1)
    assert body.global_loads == {4: 1, 16: 1}
    assert (body.global_operands, body.shared_operands) == (5, 0)
    assert (body.in_flight, body.unroll, body.barriers) == (2, 4, 0)


def test_widths_stand_in_the_opcode() -> None:
    """For loads of matrices, the width is the number of registers."""
    found = {one: width_bytes(one) for one in ("LDG.E", "LDG.E.64", "LDS.128", "LDG.E.U8", "LDSM.16.M88.4", "LDS.U16")}
    assert found == {"LDG.E": 4, "LDG.E.64": 8, "LDS.128": 16, "LDG.E.U8": 1, "LDSM.16.M88.4": 16, "LDS.U16": 2}


def test_damaged_text_is_no_instruction() -> None:
    """Text that is not the disassembler's, or not understood by it, has no opcode and never raises."""
    for text in (None, "", "???", "\0\xff", "@", "@P0", "0x1234", "-" * 10_000, "[" * 5000 + "BRA"):
        assert parse(0, text).opcode == "", text


STAGED = listed(
    "LDGSTS.E [R9], [R2.64]",  # 0: a tile, and its group
    "LDGDEPBAR",
    "LDGSTS.E [R10], [R4.64]",  # 2: the next one
    "LDGDEPBAR",
    "DEPBAR.LE SB0, 0x1",  # 4: the loop
    "BAR.SYNC.DEFER_BLOCKING 0x0",
    "LDS R6, [R11]",
    "LDGSTS.E [R12], [R4.64]",  # 7: the one after that
    "LDGDEPBAR",
    "FFMA R5, R6, R6, R5",
    "@P0 BRA ->4",
    "DEPBAR.LE SB0, 0x0",  # 11: all that are left
    "EXIT",
)


def test_a_wait_for_copies_names_those_of_the_groups_that_it_waits_for() -> None:
    """`DEPBAR.LE SB0, 1` waits for all groups but the newest, on each way to it; no copy that comes later is meant."""
    waits = {4: 6.0, 5: 3.0, 11: 2.0}
    inside = look_inside(machine_code(STAGED, [1] * 4 + [8] * 7 + [1, 1], stall_long_scoreboard=waits))
    found = {pc: ({wait.pc for wait in one}, {wait.how for wait in one}) for pc, one in inside.waits.items()}
    assert found == {
        0x40: ({0x00, 0x20, 0x70}, {"group"}),
        0x50: ({0x00, 0x20, 0x70}, {"group"}),
        0xB0: ({0x20, 0x70}, {"group"}),
    }


def test_stages_are_the_tiles_read_and_under_way() -> None:
    """While a tile is read two copies are under way, of which the wait leaves one; behind a barrier nothing is read."""
    runs = [1] * 4 + [8] * 7 + [1, 1]
    (body,) = [loop.anatomy for loop in look_inside(machine_code(STAGED, runs)).loops if loop.anatomy is not None]
    assert (body.stages, body.groups_left) == (3, 1)
    single = listed(
        "LDGSTS.E [R9], [R2.64]",
        "LDGDEPBAR",
        "DEPBAR.LE SB0, 0x0",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "LDS R6, [R11]",
        "FFMA R5, R6, R6, R5",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "@P0 BRA ->0",
        "EXIT",
    )
    (body,) = [loop.anatomy for loop in look_inside(machine_code(single, [8] * 8 + [1])).loops if loop.anatomy]
    assert (body.stages, body.groups_left) == (1, 0)
