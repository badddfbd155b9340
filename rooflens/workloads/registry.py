"""The workloads: every folder here with a `workload.toml` is one. Adding a folder registers it.

A workload has cases: a shape and type each, with what the algorithm must compute and move by formula, and the wall it
is expected to hit. Formulas are arithmetic over the case's parameters; nothing else is evaluated.
"""

from __future__ import annotations

import ast
import operator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from rooflens.checking import parse_toml
from rooflens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.checking import Table

FOLDER = Path(__file__).parent
RANGE_NAME = "rooflens"
"""Name of the one start/end NVTX range that a workload marks: what is profiled."""

Kind = Literal["cuda", "torch"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """The wall a case is expected to hit, and why."""

    bound: str
    resource: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Case:
    """One shape and type of a workload.

    Attributes:
        parameters: Sizes by name, as the program takes them.
        toy: The same at a size that a CPU checks in a blink.
        dtype: Type of the operands: fp32, bf16, ...
        flop: Floating-point operations of one iteration, by formula over the parameters; None where none is defined.
        bytes: Compulsory traffic to device memory of one iteration, by formula.
        source: Where the formulas come from.
    """

    name: str
    parameters: Mapping[str, int]
    dtype: str
    source: str
    expect: Expectation
    flop: str | None = None
    bytes: str | None = None
    toy: Mapping[str, int] = field(default_factory=dict)

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
    """

    name: str
    kind: Kind
    summary: str
    program: str
    folder: Path
    cases: tuple[Case, ...]

    def case(self, name: str | None) -> Case:
        """Return a case by name, the default one for None.

        Raises:
            InputError: The workload has no such case.
        """
        for case in self.cases:
            if name in {None, case.name}:
                return case
        known = ", ".join(case.name for case in self.cases)
        raise InputError(f"workload `{self.name}` has no case `{name}`", f"its cases are: {known}")


@cache
def load_workloads() -> tuple[Workload, ...]:
    """Load every workload, sorted by name."""
    files = sorted(FOLDER.glob("*/workload.toml"))
    return tuple(parse_workload(file.parent, file.read_text(encoding="utf-8")) for file in files)


def find_workload(name: str) -> Workload:
    """Return a workload by name.

    Raises:
        InputError: There is none of that name.
    """
    for workload in load_workloads():
        if workload.name == name:
            return workload
    raise InputError(f"no workload is called `{name}`", "`rooflens workloads` lists them")


def parse_workload(folder: Path, text: str) -> Workload:
    """Make a workload of the text of its `workload.toml`; its name is the folder's.

    Raises:
        InputError: The text is no TOML or lacks something.
    """
    document = parse_toml(text, f"`{folder.name}/workload.toml`")
    document.check_keys(("kind", "summary", "program", "case"))
    return Workload(
        name=folder.name,
        kind="cuda" if document.one_of("kind", ("cuda", "torch")) == "cuda" else "torch",
        summary=document.text("summary"),
        program=document.text("program"),
        folder=folder,
        cases=tuple(_case(case) for case in document.tables("case")),
    )


def _case(table: Table) -> Case:
    table.check_keys(("name", "parameters", "dtype", "source", "expect"), ("flop", "bytes", "toy"))
    parameters, expect = _sizes(table.table("parameters")), table.table("expect")
    expect.check_keys(("bound", "why"), ("resource",))
    return Case(
        name=table.text("name"),
        parameters=MappingProxyType(parameters),
        dtype=table.text("dtype"),
        source=table.text("source"),
        expect=Expectation(
            expect.text("bound"), expect.text("resource") if "resource" in expect else None, expect.text("why")
        ),
        flop=table.text("flop") if "flop" in table else None,
        bytes=table.text("bytes") if "bytes" in table else None,
        toy=MappingProxyType(parameters | (_sizes(table.table("toy")) if "toy" in table else {})),
    )


def _sizes(table: Table) -> dict[str, int]:
    return {name: table.count(name, zero=True) for name in table}


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
        return float(_value(ast.parse(formula, mode="eval").body, parameters))
    except (SyntaxError, KeyError, TypeError, ZeroDivisionError) as error:
        raise InputError(f"formula `{formula}` cannot be evaluated: {error}") from error


def _value(node: ast.expr, parameters: Mapping[str, int]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return parameters[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return float(_OPERATORS[type(op)](_value(left, parameters), _value(right, parameters)))
        case _:
            raise TypeError(f"`{ast.unparse(node)}` is no arithmetic")
