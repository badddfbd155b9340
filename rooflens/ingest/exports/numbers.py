"""Numbers as ncu prints them, with the separators of a locale that the file does not state."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

_SPACES = re.compile("(?<=\\d)[ '_\u00a0\u2009\u202f\u2019](?=\\d)")
"""Characters other than point and comma that separate groups of digits."""

_PRINTED_NUMBER = re.compile(r"[-+]?(?P<digits>[\d.,]*\d[.,]?)(?P<power>[eE][-+]?\d{1,3})?")
_NAN = re.compile(r"[-+]?nan(?:\(\w*\))?", re.IGNORECASE)
_FLAG = "(!)"
"""Prefix of a value that ncu could not collect: `(!) n/a`, `(!) nan`."""

_GROUP = 3
_MOST_INSTRUCTIONS = 2**62
"""No kernel reaches this: a larger count is damage, and would not fit into a store."""

_PLAIN_DIGITS = 2


class Style(Struct, frozen=True):
    """How a table writes its numbers.

    Attributes:
        decimal: The decimal mark, `.` or `,`; the other mark groups digits.
        pct_digits: Most digits after the decimal mark of any percentage; all are rounded to so many.
    """

    decimal: str = "."
    pct_digits: int = _PLAIN_DIGITS


class PrintedValue(Struct, frozen=True):
    """A printed value from which a table's number style can be inferred.

    Attributes:
        is_pct: The value is a percentage.
        is_count: The value is a count, so it has no fraction.
    """

    text: str
    is_pct: bool = False
    is_count: bool = False


def style_of(values: Iterable[PrintedValue], default: Style) -> Style:
    """Infer a table's number style from its values; `default` if they are ambiguous."""
    votes: Counter[str] = Counter()
    weak: Counter[str] = Counter()
    digits = 0
    for value in values:
        number = _number_match(value.text)
        written = number["digits"] if number else ""
        marks = [mark for mark in ".," if mark in written]
        if not marks:
            continue
        mark = _decimal_of(written)
        if mark is not None:
            votes[mark] += 1
        elif value.is_count:
            weak["," if marks[0] == "." else "."] += 1
        if value.is_pct:
            digits = max(digits, len(written) - 1 - max(written.rfind("."), written.rfind(",")))
    decided = votes or weak
    decimal = decided.most_common(1)[0][0] if decided else default.decimal
    return Style(decimal, digits or default.pct_digits)


def parse(text: str, style: Style, power: int = 0) -> float | None:
    """Read a number and multiply it by ten to `power`, rounding once.

    Returns:
        NaN for a printed `nan`; None if the text is no number: empty, `n/a`, a word.
    """
    if style.decimal == "." and "_" not in text:
        try:
            return float(f"{text}e{power}" if power else text)
        except ValueError:
            pass
    own = text.replace(_FLAG, "").strip()
    if _NAN.fullmatch(own):
        return math.nan
    number = _number_match(own)
    if number is None:
        return None
    mark = _decimal_of(number["digits"]) or style.decimal
    plain = number["digits"].replace("," if mark == "." else ".", "")
    if plain.count(mark) > 1:
        return None
    exponent = power + int((number["power"] or "e0")[1:])
    return float(f"{'-' if own.startswith('-') else ''}{plain.replace(mark, '.')}e{exponent}")


def is_number(text: str) -> bool:
    """Return whether a text is a number, or ncu's mark for a number that could not be collected."""
    return text.startswith(_FLAG) or text in {"n/a", "nan"} or _number_match(text) is not None


def split_instances(text: str) -> tuple[str, str | None]:
    """Split a value from its instances (None if it has none): `1,024 (512; 512)`, `10 (BRA: 1; EXIT: 9)`."""
    own, bracket, instances = text.partition("(")
    if not bracket or not text.endswith(")"):
        return text, None
    own = own.rstrip()
    return (own, instances[:-1]) if not own or _PRINTED_NUMBER.fullmatch(_SPACES.sub("", own)) else (text, None)


def instance_counts(instances: str, style: Style) -> dict[str, int]:
    """Read the instances of a count by key: `BRA: 1; EXIT: 9`; empty if they are printed without keys."""
    counts: dict[str, int] = {}
    for item in instances.split(";"):
        key, colon, written = item.rpartition(":")
        value = parse(written.strip(), style) if colon else None
        if value is not None and 0 <= value <= _MOST_INSTRUCTIONS:
            counts[key.strip()] = counts.get(key.strip(), 0) + int(value)
    return counts


def _number_match(text: str) -> re.Match[str] | None:
    return _PRINTED_NUMBER.fullmatch(_SPACES.sub("", text.replace(_FLAG, "").strip()))


def _decimal_of(digits: str) -> str | None:
    """Return the decimal mark; None if it is ambiguous, as in `1,024`."""
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        return "." if digits.rfind(".") > digits.rfind(",") else ","
    mark, other = (".", ",") if points else (",", ".")
    if points + commas > 1:
        return other
    before, _, after = digits.partition(mark)
    may_group = len(after) == _GROUP and 1 <= len(before) <= _GROUP and not before.startswith("0")
    return None if may_group else mark
