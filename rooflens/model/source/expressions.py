"""Integer expressions of C++, worked out for every thread of a block at once.

An amount that is the same in all threads, but unknown, may be part of a value as long as it is only added: addresses
that differ by it fall on the same banks and into the same number of sectors. What else is not known is `UnknownError`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct

Node: TypeAlias = "tuple[Any, ...]"
"""A node of a parsed expression: what it is, and its parts."""

_TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F']+[uUlL]*|\d[\d']*[uUlL]*(?![\w.])|[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*"
    r"|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>?:(),.\[\]])"
)
_BINDS: Mapping[str, int] = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    ">": 7,
    "<=": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
_TYPES = frozenset(
    {
        *("int", "unsigned", "signed", "long", "short", "char", "bool", "const", "auto", "uint", "ushort", "uchar"),
        *(
            "int8_t",
            "uint8_t",
            "int16_t",
            "uint16_t",
            "int32_t",
            "uint32_t",
            "int64_t",
            "uint64_t",
            "size_t",
            "ptrdiff_t",
        ),
    }
)
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})
_MOST_DEPTH = 64
_MOST_CHARACTERS = 2_000
_MOST_SHIFT = 62


class UnknownError(Exception):
    """An expression has a part whose value nobody knows."""


class Value(Struct, frozen=True):
    """A value in each thread.

    Attributes:
        lanes: By thread; a single one where it is the same in all.
        is_open: An unknown amount is added to it, the same in all threads.
    """

    lanes: tuple[int, ...]
    is_open: bool = False

    @property
    def is_uniform(self) -> bool:
        return len(self.lanes) == 1 or len(set(self.lanes)) == 1

    @property
    def number(self) -> int:
        """The value, where it is known and the same in all threads.

        Raises:
            UnknownError: It is not.
        """
        if self.is_open or not self.is_uniform:
            raise UnknownError
        return self.lanes[0]


OPEN = Value((0,), is_open=True)
"""An unknown amount, the same in all threads."""


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    """Parse an expression.

    Raises:
        UnknownError: It is none that is understood.
    """
    if len(text) > _MOST_CHARACTERS:
        raise UnknownError
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise UnknownError
        tokens.append(re.sub(r"\s", "", found[1]))
        at = found.end()
        while at < len(text) and text[at].isspace():
            at += 1
    parser = _ExpressionParser(tokens)
    node = parser.ternary()
    if parser.at < len(tokens):
        raise UnknownError
    return node


class _ExpressionParser:
    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._depth = 0
        self.at = 0

    def _next(self, ahead: int = 0) -> str:
        return self._tokens[self.at + ahead] if self.at + ahead < len(self._tokens) else ""

    def _take_token(self, token: str) -> None:
        if self._next() != token:
            raise UnknownError
        self.at += 1

    def ternary(self) -> Node:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise UnknownError
        node = self._binary(1)
        if self._next() == "?":
            self.at += 1
            yes = self.ternary()
            self._take_token(":")
            node = ("if", node, yes, self.ternary())
        self._depth -= 1
        return node

    def _binary(self, least: int) -> Node:
        left = self._unary()
        while (binds := _BINDS.get(sign := self._next(), 0)) >= least:
            self.at += 1
            left = ("op", sign, left, self._binary(binds + 1))
        return left

    def _unary(self) -> Node:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise UnknownError
        sign = self._next()
        if sign in {"-", "+", "~", "!"}:
            self.at += 1
            node: Node = ("unary", sign, self._unary())
        elif sign == "(" and (past := self._past_type(1)):
            self.at += past
            self._take_token(")")
            node = self._unary()
        else:
            node = self._atom()
        self._depth -= 1
        return node

    def _past_type(self, ahead: int) -> int:
        """Return how many tokens lead over an integer type and what stands before it; 0 where none stands."""
        at = ahead
        while self._next(at).rpartition("::")[2] in _TYPES:
            at += 1
        return at if at > ahead and self._next(at) in {")", ">"} else 0

    def _atom(self) -> Node:
        word = self._next()
        self.at += 1
        if word == "(":
            node = self.ternary()
            self._take_token(")")
            return node
        if word[:1].isdigit():
            digits = word.replace("'", "").rstrip("uUlL")
            return ("number", int(digits, 16 if digits[:2].lower() == "0x" else 8 if digits[:1] == "0" else 10))
        if not (word[:1].isalpha() or word[:1] == "_"):
            raise UnknownError
        if word in _CASTS:
            self._take_token("<")
            past = self._past_type(0)
            if not past:
                raise UnknownError
            self.at += past
            self._take_token(">")
            self._take_token("(")
            node = self.ternary()
            self._take_token(")")
            return node
        if self._next() == "(":
            return self._call(word)
        while self._next() == ".":
            word = f"{word}.{self._next(1)}"
            self.at += 2
        if self._next() == "[":
            raise UnknownError
        return ("name", word)

    def _call(self, name: str) -> Node:
        self.at += 1
        arguments = []
        while self._next() != ")":
            arguments.append(self.ternary())
            if self._next() == ",":
                self.at += 1
            elif self._next() != ")":
                raise UnknownError
        self.at += 1
        if name in _TYPES and len(arguments) == 1:
            return arguments[0]
        name = name.rpartition("::")[2]
        if name in _CALLS and len(arguments) != 2:
            raise UnknownError
        return ("call", name, tuple(arguments))


def _divided(value: int, other: int) -> int:
    if not other:
        raise UnknownError
    return abs(value) // abs(other) * (1 if (value < 0) == (other < 0) else -1)


def _left(value: int, other: int) -> int:
    if not 0 <= other <= _MOST_SHIFT:
        raise UnknownError
    return value << other


def _right(value: int, other: int) -> int:
    if other < 0:
        raise UnknownError
    return value >> min(other, _MOST_SHIFT)


_Operation = Callable[[int, int], int]


def _truth(holds: Callable[[int, int], bool]) -> _Operation:
    return lambda one, other: int(holds(one, other))


_OPERATORS: Mapping[str, _Operation] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda one, other: one - other * _divided(one, other),
    "<<": _left,
    ">>": _right,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    **{
        sign: _truth(holds)
        for sign, holds in (
            ("<", operator.lt),
            (">", operator.gt),
            ("<=", operator.le),
            (">=", operator.ge),
            ("==", operator.eq),
            ("!=", operator.ne),
        )
    },
    "&&": lambda one, other: int(bool(one) and bool(other)),
    "||": lambda one, other: int(bool(one) or bool(other)),
}
_CALLS: Mapping[str, Callable[[int, int], int]] = {
    "min": min,
    "max": max,
    "umin": min,
    "umax": max,
    "__umul24": operator.mul,
    "__mul24": operator.mul,
}
_MOST_VALUE = 1 << 62


def _each(value: Value, other: Value, made: Callable[[int, int], int]) -> tuple[int, ...]:
    length = max(len(value.lanes), len(other.lanes))
    left = value.lanes if len(value.lanes) == length else value.lanes * length
    right = other.lanes if len(other.lanes) == length else other.lanes * length
    lanes = tuple(map(made, left, right))
    if any(abs(lane) > _MOST_VALUE for lane in lanes):
        raise UnknownError
    return lanes


def apply(sign: str, value: Value, other: Value) -> Value:
    """Work out an operator.

    Raises:
        UnknownError: What is unknown of its operands is more than added to it.
    """
    is_open = value.is_open or other.is_open
    if not is_open or sign in {"+", "-"}:
        return Value(_each(value, other, _OPERATORS[sign]), is_open)
    if value.is_uniform and other.is_uniform:
        return OPEN
    known, unknown = (other, value) if value.is_open else (value, other)
    if sign == "*" and known.is_uniform and not known.is_open:
        return Value(_each(known, unknown, operator.mul), is_open=True)
    raise UnknownError


class Names:
    """What names and calls stand for; other records give the values."""

    def value_of(self, name: str) -> Value:
        """Return the value of a name.

        Raises:
            UnknownError: Nobody knows it.
        """
        raise NotImplementedError

    def called(self, name: str, arguments: Sequence[Value]) -> Value:
        """Return what a function returns.

        Raises:
            UnknownError: Nobody knows it.
        """
        raise NotImplementedError


def evaluate(node: Node, names: Names) -> Value:  # noqa: PLR0911 - one for each kind of node
    """Work out an expression.

    Raises:
        UnknownError: Part of it is unknown.
    """
    kind = node[0]
    if kind == "number":
        return Value((node[1],))
    if kind == "name":
        return names.value_of(node[1])
    if kind == "op":
        return apply(node[1], evaluate(node[2], names), evaluate(node[3], names))
    if kind == "unary":
        return _unary(node[1], evaluate(node[2], names))
    if kind == "if":
        return _selected_value(*(evaluate(part, names) for part in node[1:]))
    arguments = [evaluate(part, names) for part in node[2]]
    if node[1] in _CALLS and len(arguments) == 2:
        if any(one.is_open for one in arguments):
            if all(one.is_uniform for one in arguments):
                return OPEN
            raise UnknownError
        left, right = arguments
        return Value(_each(left, right, _CALLS[node[1]]))
    return names.called(node[1], arguments)


def _unary(sign: str, value: Value) -> Value:
    if sign == "+":
        return value
    if sign == "-":
        return Value(tuple(-lane for lane in value.lanes), value.is_open)
    if value.is_open:
        if value.is_uniform:
            return OPEN
        raise UnknownError
    return Value(tuple(~lane if sign == "~" else int(not lane) for lane in value.lanes))


def _selected_value(condition: Value, yes: Value, no: Value) -> Value:
    if condition.is_open or yes.is_open or no.is_open:
        if condition.is_uniform and not condition.is_open:
            return yes if condition.lanes[0] else no
        if condition.is_uniform and yes.is_uniform and no.is_uniform:
            return OPEN
        raise UnknownError
    length = max(len(part.lanes) for part in (condition, yes, no))
    wide = (part.lanes if len(part.lanes) == length else part.lanes * length for part in (condition, yes, no))
    return Value(tuple(one if holds else other for holds, one, other in zip(*wide, strict=True)))
