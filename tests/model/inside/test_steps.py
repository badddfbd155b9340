"""How many steps it takes to look into machine code of any shape, and what is said where they do not suffice."""

from __future__ import annotations

from functools import partial

from support.code_shapes import REASONS, SHAPES, code_of
from support.steps import steps_of

from rooflens.model.inside.budget import StepBudget
from rooflens.model.inside.look import look_inside
from rooflens.model.records import Inside

_SMALL, _ROOM_FOR_400_LOOPS = 800, 3_200
_MOST_GROWTH = 2.2
_MOST_AN_INSTRUCTION = 25


def _looked(shape: str, size: int) -> tuple[Inside, int, int]:
    """Look into code of a shape; return what was found, how many steps it took, and how many instructions there are."""
    code, budget = code_of(shape, size), StepBudget(10**9)
    return look_inside(code, budget), budget.steps, len(code.instructions)


def test_twice_the_code_takes_twice_the_steps() -> None:
    """Jumps back, nests, barriers, straight code, cycles with two entries, tables, calls: some steps an instruction."""
    wrong = {}
    for shape in SHAPES:
        size = _ROOM_FOR_400_LOOPS if "400" in shape else _SMALL
        (_, few, _), (inside, many, count) = _looked(shape, size), _looked(shape, 2 * size)
        if many > _MOST_GROWTH * few or many > _MOST_AN_INSTRUCTION * count or not (inside.waits or inside.note):
            wrong[shape] = few, many, count, inside.note
    assert not wrong


def test_steps_are_what_python_does() -> None:
    """No loop of ours escapes the count: twice the code takes twice the instructions of Python's own machine."""
    wrong = {}
    for shape in (
        "every second instruction jumps to the start",
        "every second instruction is a barrier",
        "cycles with two entries",
        "one jump by a table",
        "calls",
        "a ladder with one way out",
        "threads that meet again, by one register",
        "thousands of functions, each a loop",
    ):
        few, many = (steps_of(partial(look_inside, code_of(shape, size))) for size in (300, 600))
        if many > _MOST_GROWTH * few:
            wrong[shape] = few, many
    assert not wrong


def test_every_shape_is_within_its_budget_and_sampled_for_nine_reasons() -> None:
    """What is said to be known in part only is deeper nested than the shapes that grow linearly."""
    assert len(REASONS) == 9
    assert not [shape for shape in SHAPES if "steps" in look_inside(code_of(shape, 500)).note]


def test_where_steps_end_the_note_says_how_far_the_loops_were_found() -> None:
    """Half a table would be wrong, so there is none."""
    code = code_of("thousands of functions, each a loop", 400)
    inside = look_inside(code, StepBudget(600))
    assert not inside.loops
    assert not inside.waits
    assert inside.note == "only the first 200 of 401 instructions were gone through in 600 steps"


def test_where_steps_end_waits_are_those_of_the_functions_that_were_gone_through() -> None:
    """The loops are whole, and what is said of waits is what is said with more steps."""
    code = code_of("thousands of functions, each a loop", 400)
    whole, budget = look_inside(code), StepBudget(10**9)
    look_inside(code, budget)
    inside = look_inside(code, StepBudget(budget.steps - 200))
    so_far = int(inside.note.split("first ")[1].split()[0])
    assert 0 < so_far < 400
    assert [one.amounts for one in inside.loops] == [one.amounts for one in whole.loops]
    assert inside.waits == {offset: waits for offset, waits in whole.waits.items() if offset < 16 * so_far}


def test_a_nest_that_no_compiler_writes_keeps_its_loops_and_loses_its_waits() -> None:
    """What is carried forward through 400 loops, each with ways around its loads, takes too many steps."""
    code = code_of("400 loops within one another, with ways around each load", 6_400)
    inside = look_inside(code)
    assert len([one for one in inside.loops if one.kind == "loop"]) == 400
    assert not inside.waits
    assert inside.note.startswith("only the first 0 of ")
