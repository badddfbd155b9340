"""The only formatter of numbers, names and counts: three significant digits, SI prefixes, units.

Text is plain, with a space between a number and its unit. In HTML, where lines wrap, `unbroken` keeps the two together.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

NBSP = "\u00a0"
MISSING = "\u2013"
"""Shown for a missing number, so that it is never read as zero."""

GUESSED = " (guessed)"
"""Suffix, everywhere, to a GPU's name that the file does not state."""

SOME = 3
"""How many names of a list a message shows."""

BIG_FACTOR = 1000
NOISE_INTENSITY = 1e5
"""A higher intensity means almost no traffic, so its digits are meaningless."""

_COUNTED_EXACTLY = 1e6
"""Amounts of things are written out up to this number."""

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_ABOVE_PREFIXES = 1e20
"""Smallest number that has at most three digits before the largest prefix."""
_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
"""Nanoseconds per unit of time, and the unit's name."""

_SHORTEST_ARGUMENTS = 6
"""Fewer characters of template arguments than this tell nothing."""

_NUMBER_CASTS = re.compile(r"(?<=[<,\s])\((?:(?:unsigned|signed|long|short|char|int|size_t)\s*)+\)(?=-?\d)")
_BOOL_CASTS = re.compile(r"(?<=[<,\s])\(bool\)([01])(?!\d)")
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move the cursor, change colours, ring, break lines or reverse the text: control characters (but line
end and tab), direction marks, line and paragraph separators; and halves of characters, which cannot be written."""

_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of characters that stand for no byte: Python writes the bytes of a name as \\udc80 to \\udcff."""

_DIGITS = re.compile("([0-9]+)")

_BEFORE_UNIT = re.compile(
    r"(?<=\d) (?=%|[kMGTPE] [a-z]|[kMGTPEmnµ]?(?:s|B|FLOP|op|inst|Hz)\b)|(?<=\d [kMGTPE]) (?=[a-z])"
)


def round_significant(value: float, digits: int = 3) -> float:
    """Round to `digits` significant digits."""
    return float(f"{value:.{digits - 1}e}")


def significant(value: float | None, digits: int = 3) -> str:
    """Write a number with `digits` significant digits and no exponent: 3.94, 81.2, 1,240, 11,600, 0.167."""
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return "n/a"
    if value == 0:
        return "0"
    rounded = round_significant(value, digits)
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, decimals)}f}"


def si(value: float | None, unit: str) -> str:
    """Write a quantity with an SI prefix: 3.94 TB/s, 989 TFLOP/s, 12.0 kB."""
    if value is None:
        return MISSING
    if 1.0 <= value < _ABOVE_PREFIXES:
        text = f"{value:.2e}"
        thousands, places = divmod(int(text[5:]), 3)
        figures = text[0] + text[2:4]
        point = "." if places < 2 else ""
        return f"{figures[: places + 1]}{point}{figures[places + 1 :]} {_PREFIXES[-1 - thousands][1]}{unit}"
    rounded = round_significant(value) if math.isfinite(value) else 0.0
    size, factor, prefix = abs(rounded), 1.0, ""
    for step, name in _PREFIXES:
        if size >= step:
            factor, prefix = step, name
            break
    return f"{significant(rounded / factor if rounded else value)} {prefix}{unit}"


def si_of(value: float | None, noun: str) -> str:
    """Write an amount of things, with the prefix on the number: `31.0 M inst`."""
    return MISSING if value is None else f"{si(value, '').rstrip()} {noun}"


def duration(ns: float | None) -> str:
    """Write nanoseconds in the customary unit: 850 ns, 12.3 µs, 4.31 ms, 1.20 s."""
    if ns is None:
        return MISSING
    rounded = round_significant(ns) if math.isfinite(ns) else 0.0
    factor, unit = next((step for step in _TIME_UNITS if rounded >= step[0]), _TIME_UNITS[-1])
    return f"{significant(rounded / factor if rounded else ns)} {unit}"


def exact_duration(ns: float) -> str:
    """Write a time that was set rather than measured: `5 µs` has no decimals."""
    factor, unit = next((step for step in _TIME_UNITS if ns >= step[0]), _TIME_UNITS[-1])
    return f"{ns / factor:g} {unit}"


def percent(share: float | None) -> str:
    """Write a fraction as a percentage: 81 %, 8.2 %, 0.4 %; only exact 0 and 1 become 0 % and 100 %."""
    if share is None:
        return MISSING
    value = share * 100
    if 0 < value < 0.05:
        return "<0.1 %"
    if 99.5 <= value < 100 - 1e-9:
        return ">99 %"
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.1f} %"


def given_percent(percent_given: float) -> str:
    """Write a percentage with the digits it came with: NVIDIA's rules say `2%`, not `2.00%`."""
    return f"{percent_given:g} %"


def factor(value: float | None) -> str:
    """Write a speed-up: `2.6x`, `1.03x` if two digits would give 1.0, and `>1000x` for larger ones."""
    if value is None:
        return MISSING
    if value > BIG_FACTOR:
        return f">{BIG_FACTOR}x"
    return f"{significant(value, 3 if 1 < value < 1.05 or value >= 100 else 2)}x"


def intensity(flop_per_byte: float | None, unit: str = "FLOP") -> str:
    """Write an arithmetic intensity: `1.22 FLOP/B`, `2.08 MFLOP/B`."""
    if flop_per_byte is None:
        return MISSING
    rounded = round_significant(flop_per_byte)
    return si(rounded, f"{unit}/B") if rounded >= NOISE_INTENSITY else f"{significant(rounded)} {unit}/B"


def quantity(value: float, unit: str) -> str:
    """Write an amount in its unit: `share` of 1, `x`, `%`, `ns`, SI units, or counted things.

    Counts below a million are exact: `1 block`, `1,024 blocks`, `0.267 waves`, `32.8 M sectors`.
    """
    if unit in _WRITERS:
        return _WRITERS[unit](value)
    if unit in _SI_UNITS:
        return si(value, unit)
    if abs(value) >= _COUNTED_EXACTLY:
        return si_of(value, unit).rstrip()
    digits = f"{value:,.0f}" if value == round(value) else significant(value)
    noun = unit.removesuffix("es" if unit.endswith("ches") else "s") if value == 1 else unit
    return f"{digits} {noun}".rstrip()


_SI_UNITS = frozenset({"B", "FLOP", "Hz", "s", "B/s", "FLOP/s"})
_WRITERS: dict[str, Callable[[float], str]] = {
    "share": percent,
    "x": factor,
    "factor": factor,
    "ns": duration,
    "%": lambda value: f"{significant(value)} %",
    "FLOP or op": lambda value: si(value, "").rstrip(),
    "FLOP/s or op/s": lambda value: si(value, "").rstrip(),
}
"""How to write an amount whose unit takes no prefix."""


def bare_intensity(flop_per_byte: float | None) -> str:
    """Write an arithmetic intensity under a heading with the unit, which is repeated only with a prefix."""
    return intensity(flop_per_byte).removesuffix(" FLOP/B")


def count(amount: int, noun: str) -> str:
    """Write an amount with its noun: `1 kernel`, `1,204 launches`."""
    if amount == 1:
        return f"1 {noun}"
    if noun.endswith("ty"):
        return f"{amount:,} {noun[:-1]}ies"
    return f"{amount:,} {noun}{'es' if noun.endswith(('ch', 's')) else 's'}"


_HEAD_ENDS = re.compile(r" (?:of|in|on|at|to|for|per|around|between|that|through|with|passed|indexed|ready|full)\b")
"""What follows the noun that a verb agrees with: `waits for global memory`, `values passed on`."""


def is_plural(name: str) -> bool:
    """Return whether a verb that follows a name is plural: `fp64 divisions matter`, but `low occupancy matters`."""
    noun = _HEAD_ENDS.split(name, maxsplit=1)[0].rstrip()
    return noun.endswith("s") and not noun.endswith("ss")


def some(names: Iterable[str], joint: str = ", ") -> str:
    """Name the first three items, and show that there are more: `a, b, c, ...`."""
    first, rest = (every := list(names))[:SOME], every[SOME:]
    return joint.join((*first, "...") if rest else first)


def date(unix_s: int | None) -> str:
    """Write a time stamp as a UTC date."""
    if unix_s is None:
        return MISSING
    return datetime.fromtimestamp(unix_s, tz=timezone.utc).strftime("%Y-%m-%d")  # noqa: UP017 - 3.10 has no `UTC`


def span(first: str, last: str) -> str:
    """Write `3 to 7`; equal ends are written once."""
    return first if first == last else f"{first} to {last}"


def unbroken(text: str) -> str:
    """Keep numbers and their units on one line of HTML."""
    return _BEFORE_UNIT.sub(NBSP, text)


def as_unicode(text: str) -> str:
    """Replace bytes that are not UTF-8, as in file names, and halves of characters, as in JSON: tables refuse both."""
    return _HALVES.sub("\ufffd", text).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def printable(text: str, instead: str = "?") -> str:
    """Replace control characters: names of files and kernels must not steer a terminal, and XML forbids them."""
    return text if text.isprintable() else "".join(char if char.isprintable() else instead for char in text)


def natural(text: str) -> tuple[tuple[str, int, str, str], ...]:
    """Make the key that sorts names in natural order: v1, v2, v10."""
    parts = _DIGITS.split(text)
    # Numbers are compared by length, then as text: a name may have more digits than Python converts.
    numbers = [(len(digits.lstrip("0")), digits.lstrip("0"), digits) for digits in parts[1::2]]
    return tuple((word, *number) for word, number in zip(parts[::2], [*numbers, (-1, "", "")], strict=True))


def harmless(text: str, instead: str = "?") -> str:
    """Replace characters that would steer a terminal or an editor; line ends, tabs and unusual characters stay."""
    return _STEERING.sub(instead, text)


def plain_name(name: str) -> str:
    """Drop a demangler's casts in template arguments: `<(int)64, (bool)1>` becomes `<64, true>`."""
    name = _NUMBER_CASTS.sub("", name)
    return _BOOL_CASTS.sub(lambda match: "true" if match[1] == "1" else "false", name)


LONGEST_NAME = 1 << 16
"""Most characters of a kernel's or range's name; the longest published name has 7,264."""


def bounded_name(name: str) -> str:
    """Cut a name that is longer than any real name: the cost of handling a name grows with its length."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def notes_of_cut_names(cut_count: int) -> tuple[str, ...]:
    """Say how many names were cut; empty if none was."""
    return (f"cut {count(cut_count, 'name')} of more than {LONGEST_NAME:,} characters",) if cut_count else ()


def cut_middle(text: str, width: int) -> str:
    """Shorten a text to `width` characters by cutting its middle: names differ at both ends. No number is cut."""
    if len(text) <= width:
        return text
    if width < 3:
        return text[:width]
    start = len(text) - (width - 1 - width // 2)
    whole = _begin_of_number(text, start)
    if len(text) - whole > 2 * width // 3:
        whole = len(text) - len(text[start:].lstrip(_OF_NUMBERS))
    tail = text[whole:]
    return f"{text[: width - 1 - len(tail)].rstrip(_OF_NUMBERS)}…{tail}"


_OF_NUMBERS = "0123456789.,"


def _begin_of_number(text: str, start: int) -> int:
    """Return the start of the number at a position, including the character before it."""
    return max(len(text[:start].rstrip(_OF_NUMBERS)) - 1, 0) if text[start : start + 1] in _DIGITS_ALONE else start


_DIGITS_ALONE = frozenset("0123456789")


def cut_end(text: str, width: int) -> str:
    """Shorten a sentence by cutting its end, because the beginning says what to do."""
    if len(text) <= width:
        return text
    return f"{text[: max(width - 1, 0)].rstrip().rstrip(_OF_NUMBERS).rstrip()}…"


SENTENCE_NAME_WIDTH = 60
"""Characters of a kernel's name within a sentence at most."""


def cut_name(name: str, width: int) -> str:
    """Shorten a kernel name but keep its function: namespaces are dropped first, then the middle is cut."""
    if len(name) <= width:
        return name
    path, bracket, arguments = name.partition("<")
    while bracket and path.endswith("::"):  # an unnamed namespace is written in brackets too
        inner, _, rest = arguments.partition(">::")
        more, bracket, arguments = rest.partition("<")
        path = f"{path}{inner}::{more}"
    function = path.rpartition("::")[2]
    left = width - len(function)
    if left < _SHORTEST_ARGUMENTS:
        return cut_middle(function, width)
    return function + cut_middle(bracket + arguments, left)


def cut_apart(widths: Mapping[str, int]) -> dict[str, str]:
    """Shorten names to their widths, keeping the parts in which they differ, so that they stay distinct."""
    cut = {name: cut_name(name, max(width, 1)) for name, width in widths.items()}
    for _ in range(_ROUNDS):
        alike: dict[str, list[str]] = {}
        for name, text in cut.items():
            alike.setdefault(text, []).append(name)
        if len(alike) == len(cut):
            break
        for names in alike.values():
            if len(names) > 1:
                pairs = enumerate(zip(min(names), max(names), strict=False))
                same = next((i for i, (one, other) in pairs if one != other), len(min(names)))
                cut.update({name: _cut_around(name, same, widths[name]) for name in names})
    return cut


_ROUNDS = 8


def _cut_around(name: str, place: int, width: int) -> str:
    """Keep the start of a name and the part at a position; namespaces that are equal everywhere are dropped."""
    if len(name) <= width:
        return name
    inner = name.rfind("::", 0, min(place, len(name.partition("<")[0]))) + 2
    if inner > 1:
        name, place = name[inner:], place - inner
    tail = cut_end(name[_begin_of_number(name, place) :], max(2 * width // 3, width - 1 - place))
    head = name[: max(width - 1 - len(tail), 0)].rstrip(_OF_NUMBERS)
    return f"{head}…{tail}" if tail.strip("…") else cut_middle(name, width)


_TYPE = re.compile(r"(?:fp|int|tf|bf)\d+")


def sentence_case(words: str) -> str:
    """Capitalise the first letter: `fp64 divisions` becomes `FP64 divisions`, like the names of pipes."""
    first, space, rest = words.partition(" ")
    return f"{first.upper() if _TYPE.fullmatch(first) else first[:1].upper() + first[1:]}{space}{rest}"
