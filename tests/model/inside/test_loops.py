"""Loops, their trips, and rows that add up, on hand-written machine code."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from support.machine_code import control, listed, machine_code

from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.graph import flow
from rooflens.model.inside.look import look_inside
from rooflens.model.inside.loops import is_library
from rooflens.model.records import Hotspot, Inside, Loop
from rooflens.report.words.labels import place_label

NEST = listed(
    "MOV R1, c[0x0][0x28]",  # 0
    "MOV R4, RZ",  # 1
    "LDG.E R2, [R8.64]",  # 2: outer body
    "FFMA R5, R2, R3, R5",  # 3: inner body
    "@P0 BRA ->3",  # 4
    "IADD3 R4, R4, 0x4, RZ",  # 5
    "ISETP.GE.AND P1, PT, R4, c[0x0][0x170], PT",  # 6
    "@!P1 BRA ->2",  # 7
    "STG.E [R10.64], R5",  # 8
    "EXIT",  # 9
    "BRA ->10",  # 10: after the end, where stores drain
    lines=(1, 2, 3, 4, 4, 3, 3, 3, 6, 7, 7),
)


def nest() -> MachineCode:
    """Return 2 warps that run the outer body 3 times, and the inner body 5 times in each of these."""
    runs = [2, 2, 6, 30, 30, 6, 6, 6, 2, 2, 0]
    return machine_code(NEST, runs, samples={2: 10.0, 3: 40.0, 8: 5.0, 10: 45.0}, stall_drain={10: 45.0})


def loops_of(inside: Inside) -> dict[str, Loop]:
    """Return the rows by the line at which they start, or by name for straight code."""
    return {one.name or str(one.line): one for one in inside.loops}


def test_a_loop_in_a_loop_has_a_parent_and_trips_of_its_own() -> None:
    """The outer loop runs three times per warp, the inner loop five times in each trip."""
    rows = loops_of(look_inside(nest()))
    assert rows["3"].trips == 3
    assert rows["4"].trips == 5
    assert rows["4"].parent == rows["3"].id
    assert (rows["3"].start, rows["3"].end) == (0x20, 0x70)


def test_own_amounts_of_all_rows_are_those_of_the_kernel() -> None:
    """The inclusive amounts of the outermost rows add up too."""
    code, inside = nest(), look_inside(nest())
    for measure, at in code.amounts.items():
        assert sum(one.own.get(measure, 0.0) for one in inside.loops) == sum(at.values())
        assert sum(one.amounts.get(measure, 0.0) for one in inside.loops if one.parent is None) == sum(at.values())


def test_floating_point_operations_are_of_the_loop_that_does_them() -> None:
    """30 warps of 32 threads do two operations each."""
    rows = loops_of(look_inside(nest()))
    assert rows["4"].self_flop == {"fp32": 30 * 32 * 2}
    assert rows["3"].self_flop == {}
    assert rows["3"].flop == rows["4"].flop


def test_samples_behind_the_end_count_for_what_ran_last_and_wait_for_the_store() -> None:
    """The branch after EXIT never runs: warps wait there while stores drain."""
    inside = look_inside(nest())
    assert loops_of(inside)["epilogue"].own["samples"] == 50
    (wait,) = inside.waits[0xA0]
    assert (wait.opcode, wait.line, wait.samples, wait.reason) == ("STG", 6, 45, "drain")


def test_a_test_at_the_top_is_no_trip() -> None:
    """Unoptimized builds test first, once more than the body runs: what a trip takes is by trips, not by tests."""
    code = listed(
        "MOV R4, RZ",
        "ISETP.GE.AND P0, PT, R4, 0x7, PT",
        "@P0 BRA ->6",
        "BAR.SYNC 0x0",
        "IADD3 R4, R4, 0x1, RZ",
        "BRA ->1",
        "EXIT",
    )
    (loop, *_) = look_inside(machine_code(code, [1, 8, 8, 7, 7, 7, 1])).loops
    assert loop.trips == 7
    assert loop.anatomy is not None
    assert loop.anatomy.barriers == 1
    assert loop.anatomy.instructions == (2 * 8 + 3 * 7) / 7


def test_a_hot_line_of_a_library_is_named_by_the_line_that_calls_it() -> None:
    """Of two lines of a program that inline a header's the one with most samples is named, with the header behind."""
    header = "/usr/local/cuda/include/mma.h"
    first, second, end = listed("FADD R2, R2, R3", "FADD R4, R4, R3", "EXIT")
    code = [
        *(
            replace(one, file=header, line=9, path=(("/home/me/gemm.cu", line), (header, 9)))
            for one, line in ((first, 40), (second, 70))
        ),
        end,
    ]
    inside = look_inside(machine_code(code, [8, 8, 8], samples={0: 1.0, 1: 5.0}))
    assert place_label(Hotspot("line", header, 9), inside) == "gemm.cu:70, in mma.h:9"
    assert place_label(Hotspot("line", "/home/me/gemm.cu", 40), inside) == "gemm.cu:40"


def test_a_straight_part_of_a_library_s_kernel_is_named_by_the_program_s_line() -> None:
    """A kernel that stands in a header and calls the program: its body is at the program's lines, not at the header."""
    header, program = "/usr/local/cuda/include/cutlass/device_kernel.h", "/home/me/gemm.h"
    code = [
        replace(one, file=program, line=line, path=((header, 80), (program, line)))
        for one, line in zip(listed("FADD R2, R2, R3", "FADD R4, R4, R3"), (40, 44), strict=True)
    ]
    end = replace(*listed("EXIT"), file=header, line=81, path=((header, 81),), offset=0x20)
    (body,) = look_inside(machine_code([*code, end], [8, 8, 8])).loops
    assert (body.name, body.file, body.line, body.last_line) == ("body", program, 40, 44)


def test_a_program_beside_the_headers_of_a_library_is_no_library() -> None:
    """An example in a copy of CUTLASS is the reader's own code, its `include` is not, on either system's paths."""
    own = ("/root/cutlass/examples/13_fused/b2b_gemm.h", "/home/me/cutlass/mine.cu", "/home/me/cub/scan.cu")
    theirs = (
        "/root/cutlass/include/cutlass/arch/mma_sm80.h",
        "/src/3rdparty/cutlass/include/cute/tensor.hpp",
        "C:\\me\\cutlass\\include\\cute\\tensor.hpp",
        "/usr/local/cuda-12.8/include/cub/block/block_scan.cuh",
    )
    assert [file for file in own if is_library(file)] == []
    assert [file for file in theirs if not is_library(file)] == []


def test_a_call_that_nothing_returns_from_is_a_jump() -> None:
    """Compilers leave loops by such calls, so the code after them is not part of the loop."""
    code = listed("MOV R4, RZ", "@!P0 CALL.REL.NOINC ->3", "BRA ->1", "EXIT")
    (loop, *_) = look_inside(machine_code(code, [1, 4, 3, 1])).loops
    assert (loop.start, loop.trips) == (0x10, 4)


def test_a_function_that_returns_is_a_row_of_its_own() -> None:
    """Its instructions belong to no loop of the calling kernel."""
    code = listed(
        "MOV R4, RZ", "CALL.REL.NOINC ->5", "@P0 BRA ->1", "STG.E [R2.64], R4", "EXIT", "MUFU.RCP R4, R5", "RET"
    )
    inside = look_inside(machine_code(code, [1, 3, 3, 1, 1, 3, 3]))
    (loop,) = [one for one in inside.loops if one.kind == "loop"]
    assert loop.own["warp_inst"] == 6
    assert sum(one.own["warp_inst"] for one in inside.loops) == 15


def test_threads_meet_where_the_barrier_says() -> None:
    """`BSYNC` continues at the target of its `BSSY`, not always at the next instruction."""
    code = listed("BSSY B0, ->4", "@P0 BRA ->3", "BSYNC B0", "BSYNC B0", "EXIT")
    assert flow(code).after == [(2, 1), (3,), (3,), ()]


@pytest.mark.parametrize("break_it", ["two entries", "unknown instruction"])
def test_what_cannot_be_told_is_a_note_and_no_table(break_it: str) -> None:
    """A cycle with two entries is not a natural loop, and an unknown instruction may be a jump."""
    if break_it == "two entries":
        code = listed("@P0 BRA ->2", "MOV R1, R2", "MOV R2, R3", "@P1 BRA ->1", "EXIT")
        inside = look_inside(machine_code(code, [9, 8, 12, 12, 9]))
    else:
        inside = look_inside(machine_code(listed("MOV R1, R2", "???", "EXIT"), [1, 1, 1]))
    assert inside.note
    assert not inside.loops
    assert not inside.waits


def test_a_way_into_a_loop_that_no_warp_went_does_not_cost_the_table() -> None:
    """Counts show that the jump into the middle was never taken."""
    code = listed("@!P0 BRA ->2", "MOV R1, R2", "MOV R2, R3", "@P1 BRA ->1", "EXIT")
    (loop, *_) = look_inside(machine_code(code, [2, 6, 6, 6, 2])).loops
    assert (loop.start, loop.trips) == (0x10, 3)


def _random_code(chance: random.Random, length: int) -> MachineCode:
    """Return code with arbitrary jumps and unrelated counts."""
    texts: list[str | tuple[str, bytes]] = []
    for _ in range(length):
        what = chance.random()
        to = chance.randrange(-3, length + 3)
        guard = chance.choice(("", "@P0 ", "@!P3 ", "@!PT ", "@UP1 "))
        bits = control(chance.randrange(8), chance.randrange(8), chance.randrange(64))
        if what < 0.3:
            opcode = chance.choice(("BRA", "BRA.U", "CALL.REL.NOINC", "BSSY B0,", "JMP"))
            texts.append((f"{guard}{opcode} ->{max(to, 0)}", bits))
        elif what < 0.4:
            texts.append(
                (guard + chance.choice(("EXIT", "RET.REL.NODEC R2", "BSYNC B0", "BRX R2 -0x10", "KILL")), bits)
            )
        elif what < 0.5:
            texts.append((chance.choice(("???", "", "\0", "LDG.E [", "FFMA R1,,R999, R2")), bits))
        else:
            text = chance.choice(
                ("LDG.E R2, [R4.64]", "FFMA R3, R2, R5, R3", "STS [R9], R2", "BAR.SYNC 0x0", "MUFU.RCP R2, R3")
            )
            texts.append((guard + text, bits))
    code = listed(*texts)
    runs = [chance.choice((0, 1, 7, 1e6)) for _ in range(length)]
    places = {place: float(chance.randrange(1, 50)) for place in range(length) if chance.random() < 0.5}
    stalls = {
        "stall_long_scoreboard": places,
        "stall_barrier": places,
        "stall_drain": places,
        "stall_mio_throttle": places,
    }
    return machine_code(code, runs, samples=places, **stalls)


def test_code_that_jumps_anywhere_gives_rows_that_add_up_or_a_note() -> None:
    """Damaged or foreign code never gives a wrong table: each count is in one row, or there is no table."""
    chance = random.Random(7)  # noqa: S311 - no secret
    told = 0
    for _ in range(300):
        code = _random_code(chance, chance.randrange(1, 60))
        inside = look_inside(code)
        told += not inside.note
        for measure, at in code.amounts.items():
            own = sum(one.own.get(measure, 0.0) for one in inside.loops)
            assert inside.note or own == pytest.approx(sum(at.values()))
        for loop in inside.loops:
            assert loop.trips is None or loop.trips >= 0
    assert told


def test_more_loops_than_anybody_reads_are_a_note() -> None:
    """401 loops give a note."""
    texts = [f"@P0 BRA ->{place}" for place in range(401)]
    inside = look_inside(machine_code(listed(*texts, "EXIT"), [2] * 402))
    assert "more than 400 loops" in inside.note
