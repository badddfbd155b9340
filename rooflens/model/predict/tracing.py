"""Trace the formulas with symbols instead of numbers, and record them as a program of plain operations.

The Python functions that predict are run once with symbols. Each operation on a symbol becomes a step of the program;
where a function branches on a symbol, both branches are traced, and a step selects between their results. A page that
runs the program computes the same numbers as the formulas, without a second copy of them.

`is None` cannot be traced: formulas test the truth of a number that may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isinf
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

Step = tuple[Any, ...]


class Program:
    """Steps in the order in which they can be run; each is written once.

    A step is `("in", name)`, `("is", constant)`, or an operation with the numbers of the steps that it takes:
    `+ - * / // % **`, `neg`, `< <= ==`, and `?`, which is its second where its first is true, and else its third.
    """

    def __init__(self) -> None:
        """Start without steps."""
        self._numbers: dict[Step, int] = {}
        self._known: Mapping[int, bool] = MappingProxyType({})

    def input(self, name: str) -> Symbol:
        """Return the symbol of a number or name that is known only when the program runs."""
        return self._add("in", name)

    def paths(self, function: Callable[[], Any]) -> Any:
        """Run a function along every path through it, and merge the results.

        Nested calls keep the number of paths small: the result of one is a symbol to the next.

        Returns:
            Symbols, constants, and tuples, lists, dicts and records of them.

        Raises:
            TypeError: Two paths return values of different types or lengths.
        """
        return self._follow(function, self._known)

    def steps(self) -> list[Any]:
        """Return all steps as plain JSON values: a constant as itself, everything else as a list."""
        return [_written(step) for step in self._numbers]

    def number_of(self, value: Any) -> int:
        """Return the number of the step that computes a value; a constant becomes a step."""
        return self._take(value).number

    def _follow(self, function: Callable[[], Any], known: Mapping[int, bool]) -> Any:
        before, self._known = self._known, known
        try:
            return function()
        except _Undecided as undecided:
            condition = undecided.condition
        finally:
            self._known = before
        yes, no = (self._follow(function, {**known, condition.number: answer}) for answer in (True, False))
        return self._either(condition, yes, no)

    def _either(self, condition: Symbol, yes: Any, no: Any) -> Any:
        """Choose between what two paths give, part by part."""
        if yes is no:
            return yes
        if _is_leaf(yes) and _is_leaf(no):
            one, other = self._take(yes), self._take(no)
            return yes if one.number == other.number else self._add("?", condition.number, one.number, other.number)
        if type(yes) is not type(no):
            raise TypeError(f"two paths give {type(yes).__name__} and {type(no).__name__}")
        if isinstance(yes, Struct):
            parts = {name: (getattr(yes, name), getattr(no, name)) for name in yes.__struct_fields__}
            chosen = {name: self._either(condition, *both) for name, both in parts.items()}
            return replace(yes, **chosen)
        if isinstance(yes, dict) and yes.keys() == no.keys():
            return {name: self._either(condition, yes[name], no[name]) for name in yes}
        if isinstance(yes, (tuple, list)) and len(yes) == len(no):
            return type(yes)(self._either(condition, *both) for both in zip(yes, no, strict=True))
        raise TypeError(f"two paths give a {type(yes).__name__} of different parts")

    def _add(self, *step: Any) -> Symbol:
        # The constants 1, 1.0 and True are one step: they are one number wherever the program runs.
        return Symbol(self, self._numbers.setdefault(step, len(self._numbers)))

    def _take(self, value: Any) -> Symbol:
        return value if isinstance(value, Symbol) else self._add("is", value)

    def operate(self, operation: str, *operands: Any) -> Symbol:
        """Add an operation on symbols and constants, unless it would leave its operand as it is."""
        symbols = [self._take(operand) for operand in operands]
        neutral = {"*": 1, "+": 0}.get(operation)
        if neutral is not None:
            for operand, other in (symbols, symbols[::-1]):
                if other.number == self._numbers.get(("is", neutral)):
                    return operand
        return self._add(operation, *(symbol.number for symbol in symbols))

    def answer(self, condition: Symbol) -> bool:
        """Say whether a symbol is true on the path that is followed.

        Raises:
            _Undecided: The path has come to it for the first time.
        """
        if condition.number not in self._known:
            raise _Undecided(condition)
        return self._known[condition.number]


class _Undecided(BaseException):
    """A function asks for the truth of a symbol that its path has not chosen yet."""

    def __init__(self, condition: Symbol) -> None:
        self.condition = condition


Binary = Callable[["Symbol", Any], "Symbol"]


def _both_ways(operation: str) -> tuple[Binary, Binary]:
    """Return the methods for an operation with the symbol in front, and with the symbol behind."""
    return (
        lambda self, other: self.program.operate(operation, self, other),
        lambda self, other: self.program.operate(operation, other, self),
    )


class Symbol:
    """What a step of a program gives; a formula treats it as the number it stands for."""

    __hash__ = None  # type: ignore[assignment]  # as long as they are not known, they cannot be told apart

    def __init__(self, program: Program, number: int) -> None:
        self.program = program
        self.number = number

    def __bool__(self) -> bool:
        return self.program.answer(self)

    def __format__(self, how: str) -> str:
        """Stand in a message as `{12}`, for the page to fill in."""
        return f"{{{self.number}}}"

    __add__, __radd__ = _both_ways("+")
    __sub__, __rsub__ = _both_ways("-")
    __mul__, __rmul__ = _both_ways("*")
    __truediv__, __rtruediv__ = _both_ways("/")
    __floordiv__, __rfloordiv__ = _both_ways("//")
    __mod__, __rmod__ = _both_ways("%")
    __pow__, __rpow__ = _both_ways("**")
    __lt__, __gt__ = _both_ways("<")
    __le__, __ge__ = _both_ways("<=")

    def __neg__(self) -> Symbol:
        return self.program.operate("neg", self)

    def __eq__(self, other: object) -> Symbol:  # type: ignore[override]  # equality is a step, too
        return self.program.operate("==", self, other)


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, (Symbol, bool, int, float, str))


def _written(step: Step) -> Any:
    if step[0] != "is":
        return list(step)
    (_, value) = step
    # JSON has no word for infinity.
    return ["inf"] if isinstance(value, float) and isinf(value) else value
