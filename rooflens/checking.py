"""Check a TOML or JSON document key by key: every fault is an error that names file, table and key.

Standard library only: collecting reads such files on bare GPU machines.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from dataclasses import MISSING, dataclass, fields
from reprlib import Repr
from typing import TYPE_CHECKING, Any, TypeVar

from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.format import cut_middle, harmless

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from types import ModuleType

MAX_DEPTH = 32
"""None of our documents is nested half as deeply."""

_MOST_COUNT = 2**63 - 1
"""Largest integer that table columns can hold."""
_LEAST_NUMBER, _MOST_NUMBER = 1e-100, 1e100
"""Numbers in this range can be divided, multiplied and squared without overflow."""

_PART = r"""[\w-]+|"[^"\n]*"|'[^'\n]*'"""
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART})(?:[ \t]*\.[ \t]*(?:{_PART})){{{MAX_DEPTH},}}")
"""A dotted key with more parts than tables may be nested: tomllib takes the square of their number of steps."""

_LONGEST_KEY = 80
"""Most characters of a key in errors."""

_LONGEST_TEXT = 1 << 14
"""Most characters of a text that `values` takes."""


class _Shown(Repr):
    def repr_int(self, x: int, level: int) -> str:
        """Write an integer, even one with more digits than Python converts."""
        return super().repr_int(x, level) if abs(x) <= _MOST_COUNT else f"an integer of {x.bit_length():,} bits"

    def repr_bool(self, x: bool, _level: int) -> str:  # noqa: FBT001 - the library's signature
        """Write a truth value as TOML and JSON do."""
        return str(x).lower()

    def repr_date(self, x: object, _level: int) -> str:
        """Write a date or time as TOML does."""
        return str(x)

    repr_datetime = repr_time = repr_date


_shown = _Shown()
_shown.maxstring = _shown.maxother = _shown.maxlong = 80
_shown.maxlevel = 3
"""Formats a value for an error, cutting long or deep values."""

T = TypeVar("T")
Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """A table of a document, read key by key; a value of the wrong kind raises an InputError.

    Attributes:
        source: Name of the document, which starts each error: GPU file `t4.toml`.
        values: The table's content.
        hint: Where the document's format is described.
        path: Prefix of keys in errors: `peaks.` for that table's keys.
        noun: The word for a table in the document's language.
    """

    source: str
    values: Mapping[str, Any]
    hint: str = ""
    path: str = ""
    noun: str = "table"

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def error(self, message: str, hint: str = "") -> InputError:
        """Make an error that names the document, with the given or the default hint."""
        return InputError(f"{self.source}: {message}", hint or self.hint)

    def name(self, key: str) -> str:
        """Write a key with the tables above it, for errors."""
        return f"`{self.path}{cut_middle(key, _LONGEST_KEY)}`"

    def check_keys(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse a table with unknown keys, or without a required key."""
        if unknown := sorted(self.values.keys() - {*required, *optional}):
            raise self.error(f"unknown key {self.name(unknown[0])}")
        if missing := sorted(set(required) - self.values.keys()):
            raise self.error(f"missing key {self.name(missing[0])}")

    def text(self, key: str, pattern: str | None = None) -> str:
        """Return a text, which must not be blank, and must match any given pattern."""
        value = self._value(key)
        if pattern is not None and not (isinstance(value, str) and re.fullmatch(pattern, value)):
            raise self.error(f"{self.name(key)} cannot be {_shown.repr(value)}")
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{self.name(key)} must be a non-empty text, not {_shown.repr(value)}")
        return value

    def one_of(self, key: str, choices: Collection[Choice]) -> Choice:
        """Return a text that is one of the choices."""
        value = self._value(key)
        for choice in choices:
            if choice == value:
                return choice
        wanted = " or ".join(f"`{choice}`" for choice in choices)
        raise self.error(f"{self.name(key)} must be {wanted}, not {_shown.repr(value)}")

    def number(self, key: str, *, zero: bool = False) -> float:
        """Return a positive number, or with `zero` a non-negative one; absurdly small or large numbers are refused."""
        value = self._nonnegative(key, int | float, "number", zero=zero)
        if value and not _LEAST_NUMBER <= value <= _MOST_NUMBER:
            raise self.error(f"{self.name(key)} cannot be {_shown.repr(value)}")
        return float(value)

    def count(self, key: str, *, zero: bool = False) -> int:
        """Return a positive integer of 63 bits, or with `zero` a non-negative one."""
        value = self._nonnegative(key, int, "whole number", zero=zero)
        if value > _MOST_COUNT:
            raise self.error(f"{self.name(key)} cannot be {_shown.repr(value)}")
        return int(value)

    def counts(self, key: str, length: int) -> tuple[int, ...]:
        """Return a list of `length` positive integers."""
        values = self._value(key)
        if not isinstance(values, list) or len(values) != length:
            raise self.error(f"{self.name(key)} must be a list of {length} whole numbers, not {_shown.repr(values)}")
        named = CheckedTable(self.source, {f"{key}[{i}]": one for i, one in enumerate(values)}, self.hint, self.path)
        return tuple(named.count(one) for one in named)

    def values_of(self, key: str, kind: type[T], noun: str, *, is_list: bool = False) -> list[T]:
        """Return a value of a type in a list, or with `is_list` all values of a list.

        A truth value is no number, numbers are finite, integers have 63 bits. A text is bounded and holds no control
        character: a file can hold some that no command line can.

        Args:
            key: The key.
            kind: `bool`, `int`, `float`, which takes integers too, or `str`.
            noun: The type in words, for errors.
            is_list: Whether several values are allowed.
        """
        given = self._value(key)
        several = given if is_list and given and isinstance(given, list) else [given]
        for value in several:
            if not _is_of_kind(value, kind):
                wanted = f"{noun}, or a list of such" if is_list else noun
                raise self.error(f"{self.name(key)} must be {wanted}, not {_shown.repr(value)}")
            if isinstance(value, str) and len(value) > _LONGEST_TEXT:
                raise self.error(f"{self.name(key)} has {len(value):,} characters, over {_LONGEST_TEXT:,}")
            if isinstance(value, str) and harmless(value) != value:
                raise self.error(f"{self.name(key)} holds a control character: {_shown.repr(value)}")
        return several

    def table(self, key: str) -> CheckedTable:
        """Return the table below a key."""
        return self._subtable(key, self._value(key))

    def tables(self, key: str) -> tuple[CheckedTable, ...]:
        """Return the list of tables below a key; errors number them: `case[0].name`."""
        values = self._value(key)
        if not isinstance(values, list):
            raise self.error(f"{self.name(key)} must be a list of {self.noun}s, not {_shown.repr(values)}")
        return tuple(self._subtable(f"{key}[{i}]", value) for i, value in enumerate(values))

    def record(self, of: type[T], **given: Any) -> T:
        """Make a dataclass from all values of a table; for our own documents, as only the names are checked.

        Args:
            of: The dataclass.
            given: Values for fields that are not in the table.
        """
        wanted = [field for field in fields(of) if field.name not in given]  # type: ignore[arg-type] # a dataclass
        optional = {one.name for one in wanted if (one.default, one.default_factory) != (MISSING, MISSING)}
        self.check_keys({one.name for one in wanted} - optional, optional)
        return of(**given, **self.values)

    def _nonnegative(self, key: str, kinds: Any, noun: str, *, zero: bool) -> Any:
        value = self._value(key)
        is_amount = isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value < math.inf
        if not is_amount or (value == 0 and not zero):
            wanted = f"{noun} from 0 up" if zero else f"positive {noun}"
            raise self.error(f"{self.name(key)} must be a {wanted}, not {_shown.repr(value)}")
        return value

    def _subtable(self, key: str, value: Any) -> CheckedTable:
        if not isinstance(value, dict):
            raise self.error(f"{self.name(key)} must be {self._a_table}, not {_shown.repr(value)}")
        return CheckedTable(self.source, value, self.hint, f"{self.path}{key}.", self.noun)

    @property
    def _a_table(self) -> str:
        return f"an {self.noun}" if self.noun[0] in "aeiou" else f"a {self.noun}"

    def _value(self, key: str) -> Any:
        if key not in self.values:
            raise self.error(f"missing key {self.name(key)}")
        return self.values[key]


def parse_toml(text: str, source: str, hint: str = "") -> CheckedTable:
    """Parse a TOML text into a document to be checked key by key.

    Raises:
        InputError: The text is no TOML, or is nested too deeply.
    """
    if _DEEP_KEY.search(text):
        raise InputError(f"{source}: nested too deeply", hint)
    toml = toml_reader()
    try:
        values = toml.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not valid TOML: {_error_words(error)}", hint) from error
    return _document(values, source, hint, "table")


def toml_reader() -> ModuleType:
    """Return the module that reads TOML: Python's own since 3.11; before, the one that was its model, or pip's copy.

    Raises:
        EnvironmentMissingError: There is none of them.
    """
    for name in ("tomllib", "tomli", "pip._vendor.tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    message = (
        f"Python {sys.version_info.major}.{sys.version_info.minor} cannot read TOML, in which workloads are written"
    )
    raise EnvironmentMissingError(
        message, "take Python 3.11, or `pip install tomli`; programs of your own need neither"
    )


def parse_json(text: str, source: str, hint: str = "") -> CheckedTable:
    """Parse a JSON text into a document to be checked key by key.

    Raises:
        InputError: The text is no JSON, no object, or nested too deeply.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not JSON ({_error_words(error)})", hint) from error
    if not isinstance(values, dict):
        raise InputError(f"{source}: `the document` must be an object, not {_shown.repr(values)}", hint)
    return _document(values, source, hint, "object")


def _is_of_kind(value: object, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is str:
        return isinstance(value, str)
    if isinstance(value, int):
        return abs(value) <= _MOST_COUNT
    return kind is float and isinstance(value, float) and abs(value) <= _MOST_NUMBER


def _error_words(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _document(values: dict[str, Any], source: str, hint: str, noun: str) -> CheckedTable:
    """Make the table of a whole document.

    Raises:
        InputError: The document is nested deeper than any of ours.
    """
    level: list[Any] = [values]
    for _ in range(MAX_DEPTH):
        level = [below for value in level for below in _members(value)]
        if not level:
            return CheckedTable(source, values, hint, noun=noun)
    raise InputError(f"{source}: nested too deeply", hint)


def _members(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
