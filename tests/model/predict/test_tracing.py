"""Formulas followed with symbols: their programs give what the formulas give, on every path."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from msgspec import Struct
from support.programs import run

from rooflens.model.predict.tracing import Program


def value_of(function: Callable[..., Any], **inputs: Any) -> Any:
    """Trace a function of one result, and run its program after a way through JSON."""
    program = Program()
    symbols = {name: program.input(name) for name in inputs}
    at = program.number_of(program.paths(lambda: function(**symbols)))
    return run(json.loads(json.dumps(program.steps())), inputs)[at]


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (6, 3), (0, 5), (2.5, 4)])
def test_every_operator_gives_what_python_gives(a: float, b: float) -> None:
    """Symbols on either side, with constants and with one another."""
    for function in (
        lambda a, b: (a + b, a - b, a * b, a / b, a // b, a % b, a**2, -a),
        lambda a, b: (3 + a, 3 - a, 3 * b, 3 / b, 7 // b, 7 % b, 2**b, -(-a // b)),
    ):
        for i in range(8):
            assert value_of(lambda a, b, i=i, f=function: f(a, b)[i], a=a, b=b) == pytest.approx(function(a, b)[i])


@pytest.mark.parametrize("a", [-1, 0, 1, 2])
def test_every_branch_is_followed(a: int) -> None:
    """Conditions, `or`, `max` and comparisons of all kinds choose when the program runs."""

    def branching(a: Any) -> Any:
        if a < 0:
            return max(a, -5) - 1
        return (a or 9) * (10 if a >= 2 else 1) + (a == 1) * 100

    assert value_of(branching, a=a) == branching(a)


def test_paths_may_give_whole_structures() -> None:
    """Tuples, dicts and dataclasses are chosen part by part; what both paths share is no choice."""

    class Pair(Struct, frozen=True):
        name: str
        amounts: tuple[Any, ...]

    program = Program()
    a = program.input("a")
    made = program.paths(lambda: {"pair": Pair("same", (a, 1)) if a else Pair("same", (a + 1, 1))})
    assert made["pair"].name == "same"
    assert made["pair"].amounts[1] == 1
    at = program.number_of(made["pair"].amounts[0])
    assert [run(program.steps(), {"a": value})[at] for value in (0, 3)] == [1, 3]


def test_paths_of_different_shapes_are_refused() -> None:
    """A program has a fixed number of results."""
    program = Program()
    a = program.input("a")
    with pytest.raises(TypeError, match="different"):
        program.paths(lambda: (1, 2) if a else (1, 2, 3))
    with pytest.raises(TypeError, match="tuple and int"):
        program.paths(lambda: (1, 2) if a else 1)


def test_a_message_names_the_step_whose_value_it_shows() -> None:
    """A symbol in an f-string leaves its number for the page."""
    program = Program()
    a = program.input("a")
    program.input("b")
    assert f"{program.input('b')} of {a}" == "{1} of {0}"


def test_infinity_survives_json() -> None:
    """JSON has no infinity: it is an operation of its own."""
    assert value_of(lambda a: 1 / a if a else inf, a=0) == inf


def test_equal_steps_are_written_once() -> None:
    """What was worked out before is not worked out again; nothing is added to leave a number as it is."""
    program = Program()
    a = program.input("a")
    assert (a * 2).number == (a * 2).number
    assert (a * 1).number == (1 * a).number == (0 + a).number == a.number
