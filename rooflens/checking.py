"""Check what a TOML or JSON file holds, key by key: every fault is one error that names file, table and key.

Standard library only: collecting reads such files on a bare GPU box.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from rooflens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a document, whose values are taken out by key and checked.

    Attributes:
        source: What the document is called where an error begins: GPU file `t4.toml`.
        values: What the table holds.
        hint: Where to find out what the document must look like.
        path: What stands before a key in errors: `peaks.` for the keys of that table.
        noun: What the document's own language calls a table.
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
        """Make the error that names the document, with its hint or a better one."""
        return InputError(f"{self.source}: {message}", hint or self.hint)

    def check_keys(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Check that every required key is there, and none but those and the optional ones.

        Raises:
            InputError: A key is unknown or missing; it names the first.
        """
        if unknown := sorted(self.values.keys() - {*required, *optional}):
            raise self.error(f"unknown key {self._name(unknown[0])}")
        if missing := sorted(set(required) - self.values.keys()):
            raise self.error(f"missing key {self._name(missing[0])}")

    def text(self, key: str, pattern: str | None = None) -> str:
        """Return a text, which must say something, or be all that a pattern wants.

        Raises:
            InputError: It is none.
        """
        value = self._value(key)
        if pattern is not None and not (isinstance(value, str) and re.fullmatch(pattern, value)):
            raise self.error(f"{self._name(key)} cannot be {value!r}")
        return self._said(key, value)

    def texts(self, key: str, of: str) -> tuple[str, ...]:
        """Return a list of texts, at least one; `of` says in errors what they are.

        Raises:
            InputError: It is none.
        """
        values = self._value(key)
        if not isinstance(values, list) or not values:
            raise self.error(f"{self._name(key)} must be a list of {of}")
        return tuple(self._said(key, value) for value in values)

    def one_of(self, key: str, choices: Collection[str]) -> str:
        """Return a text that is one of some.

        Raises:
            InputError: It is none.
        """
        value = self._value(key)
        if value not in choices:
            wanted = " or ".join(f"`{choice}`" for choice in choices)
            raise self.error(f"{self._name(key)} must be {wanted}, not {value!r}")
        return str(value)

    def number(self, key: str, *, zero: bool = False) -> float:
        """Return a finite number above zero, or from zero up.

        Raises:
            InputError: It is none.
        """
        value = self._value(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not (0 < value < math.inf or (zero and value == 0)):
            wanted = "number from 0 up" if zero else "positive number"
            raise self.error(f"{self._name(key)} must be a {wanted}, not {value!r}")
        return float(value)

    def count(self, key: str, *, zero: bool = False) -> int:
        """Return a whole number above zero, or from zero up.

        Raises:
            InputError: It is none.
        """
        value = self._value(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < (0 if zero else 1):
            wanted = "whole number from 0 up" if zero else "positive whole number"
            raise self.error(f"{self._name(key)} must be a {wanted}, not {value!r}")
        return value

    def counts(self, key: str, length: int) -> tuple[int, ...]:
        """Return a list of so many whole numbers above zero.

        Raises:
            InputError: It is none.
        """
        values = self._value(key)
        if not isinstance(values, list) or len(values) != length:
            raise self.error(f"{self._name(key)} must be a list of {length} whole numbers, not {values!r}")
        named = Table(self.source, {f"{key}[{i}]": one for i, one in enumerate(values)}, self.hint, self.path)
        return tuple(named.count(one) for one in named)

    def table(self, key: str) -> Table:
        """Return the table below a key.

        Raises:
            InputError: It is none.
        """
        return self._below(key, self._value(key))

    def tables(self, key: str) -> tuple[Table, ...]:
        """Return the list of tables below a key, numbered in errors: `case[0].name`.

        Raises:
            InputError: It is none.
        """
        values = self._value(key)
        if not isinstance(values, list):
            raise self.error(f"{self._name(key)} must be a list of {self.noun}s, not {values!r}")
        return tuple(self._below(f"{key}[{i}]", value) for i, value in enumerate(values))

    def record(self, of: type[T], **given: Any) -> T:
        """Make a record of a dataclass from all values, for what we wrote ourselves: only the names are checked.

        Args:
            of: The dataclass.
            given: Values that do not stand in the table.

        Raises:
            InputError: A value is missing, or unknown to the dataclass.
        """
        wanted = [field for field in fields(of) if field.name not in given]  # type: ignore[arg-type] # a dataclass
        optional = {one.name for one in wanted if (one.default, one.default_factory) != (MISSING, MISSING)}
        self.check_keys({one.name for one in wanted} - optional, optional)
        return of(**given, **self.values)

    def _below(self, key: str, value: Any) -> Table:
        if not isinstance(value, dict):
            raise self.error(f"{self._name(key)} must be {self._a_table}, not {value!r}")
        return Table(self.source, value, self.hint, f"{self.path}{key}.", self.noun)

    @property
    def _a_table(self) -> str:
        return f"an {self.noun}" if self.noun[0] in "aeiou" else f"a {self.noun}"

    def _said(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{self._name(key)} must be a text that says something, not {value!r}")
        return value

    def _value(self, key: str) -> Any:
        if key not in self.values:
            raise self.error(f"missing key {self._name(key)}")
        return self.values[key]

    def _name(self, key: str) -> str:
        return f"`{self.path}{key}`"


def parse_toml(text: str, source: str, hint: str = "") -> Table:
    """Return the document of a TOML text, to be checked key by key.

    Raises:
        InputError: It is no TOML.
    """
    try:
        return Table(source, tomllib.loads(text), hint)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source} is no valid TOML: {error}", hint) from error


def parse_json(text: str, source: str, hint: str = "") -> Table:
    """Return the document of a JSON text, to be checked key by key.

    Raises:
        InputError: It is no JSON, or no object.
    """
    try:
        values = json.loads(text)
    except ValueError as error:
        raise InputError(f"{source}: not JSON ({error})", hint) from error
    if not isinstance(values, dict):
        raise InputError(f"{source}: `the document` must be an object, not {values!r}", hint)
    return Table(source, values, hint, noun="object")
