"""Workloads as records: their cases, what each must compute and move by formula, and the limiter to expect.

Formulas are arithmetic over the case's parameters; nothing else is evaluated. Standard library only.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rooflens.errors import InputError, UnknownNameError
from rooflens.model.verdict_classes import Bound

Kind = Literal["cuda", "torch"]
KINDS: tuple[Kind, ...] = ("cuda", "torch")


@dataclass(frozen=True, slots=True)
class Expectation:
    """The limiter expected of a case, and why."""

    bound: Bound
    resource: str | None
    why: str


@dataclass(frozen=True, slots=True)
class LaunchWork:
    """What one launch of a kernel of a case does.

    Attributes:
        match: Pattern of the kernel's name, `*` and `?` as in file names; it must cover the whole name.
        flop: FLOP by formula over the case's parameters; likewise `bytes`.
    """

    name: str
    match: str
    flop: str
    bytes: str


@dataclass(frozen=True, slots=True)
class Case:
    """One shape and type of a workload.

    Attributes:
        parameters: Sizes by name, as the program takes them.
        toy: The same at a size that a CPU checks in a blink.
        dtype: Type of the operands: fp32, bf16, ...
        flop: Floating-point operations of one iteration, by formula over the parameters; None if none is defined.
        bytes: Compulsory DRAM traffic of one iteration in bytes, by formula; None if none is defined.
        source: Where the formulas come from.
        needs: Compute capability of the only GPUs that can run it; None for any.
        parts: Its kernels one by one, where each is predicted alone; the first pattern that covers a name counts.
    """

    name: str
    parameters: Mapping[str, int]
    dtype: str
    source: str
    expect: Expectation
    flop: str | None = None
    bytes: str | None = None
    toy: Mapping[str, int] = field(default_factory=dict)
    needs: str | None = None
    parts: tuple[LaunchWork, ...] = ()

    def flop_count(self, parameters: Mapping[str, int] | None = None) -> float | None:
        """Evaluate the FLOP formula, over the case's own parameters by default."""
        return None if self.flop is None else evaluate(self.flop, parameters or self.parameters)

    def byte_count(self, parameters: Mapping[str, int] | None = None) -> float | None:
        """Evaluate the formula of the compulsory bytes, over the case's own parameters by default."""
        return None if self.bytes is None else evaluate(self.bytes, parameters or self.parameters)


@dataclass(frozen=True, slots=True)
class Workload:
    """One bundled workload.

    Attributes:
        kind: `cuda` for a program that nvcc compiles, `torch` for a Python one.
        program: File in the folder that is compiled or run.
        cases: The first one is the default.
        together: Its cases are steps of one path: where none is named, all of them are profiled.
    """

    name: str
    kind: Kind
    summary: str
    program: str
    folder: Path
    cases: tuple[Case, ...]
    together: bool = False

    def case(self, name: str | None) -> Case:
        """Return a case by name, the default one for None.

        Raises:
            UnknownNameError: The workload has no such case.
        """
        cases = {case.name: case for case in self.cases}
        if name is None:
            return self.cases[0]
        if name not in cases:
            raise UnknownNameError(f"case of `{self.name}`", name, cases, f"rooflens workloads {self.name}")
        return cases[name]


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def evaluate(formula: str, parameters: Mapping[str, int]) -> float:
    """Evaluate `+ - * / // **` over numbers and parameters.

    Raises:
        InputError: The formula holds anything else, or a parameter that is not given.
    """
    try:
        return float(_evaluated(ast.parse(formula, mode="eval").body, parameters))
    except (SyntaxError, KeyError, TypeError, ZeroDivisionError) as error:
        raise InputError(f"formula `{formula}` cannot be evaluated: {error}") from error


def _evaluated(node: ast.expr, parameters: Mapping[str, int]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return parameters[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return float(_OPERATORS[type(op)](_evaluated(left, parameters), _evaluated(right, parameters)))
        case _:
            raise TypeError(f"`{ast.unparse(node)}` is not arithmetic")
