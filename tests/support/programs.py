"""Run a traced program in Python, as the page's script does, to compare it with the formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from operator import add, eq, floordiv, le, lt, mod, mul, neg, sub
from typing import Any


def _divided(a: float, b: float) -> float:
    """Divide as a browser does, without exceptions, as a branch that is not taken may divide by zero."""
    return a / b if b else inf


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": _divided,
    "//": lambda a, b: floordiv(a, b) if b else inf,
    "%": lambda a, b: mod(a, b) if b else inf,
    "**": lambda a, b: a**b,
    "neg": neg,
    "<": lt,
    "<=": le,
    "==": eq,
    "?": lambda condition, yes, no: yes if condition else no,
    "inf": lambda: inf,
}


def run(steps: Sequence[Any], inputs: Mapping[str, Any]) -> list[Any]:
    """Return the value of every step; None if its operand is missing, in a branch that is not taken."""
    made: list[Any] = []
    for step in steps:
        if not isinstance(step, list):
            made.append(step)
        elif step[0] == "in":
            made.append(inputs.get(step[1]))
        else:
            made.append(_do(step[0], [made[at] for at in step[1:]]))
    return made


def _do(name: str, operands: Sequence[Any]) -> Any:
    try:
        return OPERATIONS[name](*operands)
    except TypeError:
        return None
