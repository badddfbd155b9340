"""The headline of an answer: who, how long all its launches take, and what comes next, in at most `MOST_WORDS` words.

Each form is a record, which says itself in some lengths, the fullest first; the first that fits is written. Nothing is
cut out of a sentence: a kernel or a version has a name of few words, whose brackets close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from rooflens.format import cut_name, duration, percent, plain_name
from rooflens.model.records import Analysis, Gain
from rooflens.model.roofline.unit_names import bottleneck_words
from rooflens.report.words.gain_and_limit import gain_how, in_launches, reason_words

MOST_WORDS = 16

NAME_WIDTH, NAME_WORDS = 48, 3
"""Characters and words of a name."""

NO_TIME = "no time in the report"
GAIN_UNKNOWN = "gain not known"

_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}
_NO_BRACKET = re.compile(r"->|operator[<>]=?|[<>](?=[\d.]+ %)")
_JOINTS = re.compile(r"\s*,\s+")
_AND_MORE = re.compile(r" and [\d,]+ more\Z")


class Form(Protocol):
    """One form of the headline."""

    def said(self) -> Iterator[str]:
        """Yield what is said, in falling length."""


class Wins(Struct, frozen=True):
    """What the best move brings: `9.30 ms in 2 launches, about 6.20 ms with more blocks`."""

    time: str
    gain: str
    after: str

    def said(self) -> Iterator[str]:
        """Yield what is said, in falling length."""
        yield f"{self.time}, {self.gain} {self.after}" if self.after else f"{self.time}, {self.gain}"
        yield f"{self.time}, {self.gain}"


class Limited(Struct, frozen=True):
    """What limits a kernel of which it is not known what can be won, and what to try: `6.19 ms, HBM3 81 %; try it ...`.

    The row below says why its gain is not known.
    """

    time: str
    walls: tuple[str, ...]
    after: str

    def said(self) -> Iterator[str]:
        """Yield what is said, in falling length."""
        tried = (f"try it {self.after}",) if self.after else ()
        yield from (f"{self.time}, {wall}; {said}" for said in (*tried, GAIN_UNKNOWN) for wall in self.walls)


class Done(Struct, frozen=True):
    """A kernel at a roof that it cannot pass: `Done: copy at 93 % of HBM3, 2.38 ms`, or `At its roof: copy ...`."""

    roof: str
    time: str

    def said(self) -> Iterator[str]:
        """Yield what is said, in falling length."""
        yield f"{self.roof}, {self.time}"
        yield self.roof


class Unlimited(Struct, frozen=True):
    """A kernel of which nothing says what limits it: `34.5 ms; what limits it was not measured`.

    Attributes:
        time: Its time.
        roof: What is known all the same, as `roof_words_at_dram` has it; empty if that is not.
    """

    time: str
    roof: str = ""

    def said(self) -> Iterator[str]:
        """Yield what is said."""
        yield f"{self.roof}; {self.time}" if self.roof else f"{self.time}; what limits it was not measured"


class Plain(Struct, frozen=True):
    """A sentence of its own, in falling length."""

    words: tuple[str, ...]

    def said(self) -> Iterator[str]:
        """Yield what is said, in falling length."""
        yield from self.words


class Headline(Struct, frozen=True):
    """The answer in one sentence.

    Attributes:
        name: The kernel that it is about, as the headline calls it; empty if it is about none.
        said: What is said of it.
        key: Of the launch that it links to; empty if there is none.
        sure: How sure it is, as `confidence_words` has it.
        lead: Stands before the name.
        joint: Stands between the name and what is said.
    """

    name: str
    said: str
    key: str = ""
    sure: str = ""
    lead: str = ""
    joint: str = ": "

    @property
    def text(self) -> str:
        """The whole sentence."""
        return f"{self.lead}{self.name}{self.joint}{self.said}" if self.name else self.said


def fitting(form: Form, *before: str) -> str:
    """Return the longest form of a phrase that fits with `before` into `MOST_WORDS` words, else the shortest."""
    room = MOST_WORDS - sum(len(words.split()) for words in before)
    said = ""
    for said in form.said():
        if len(said.split()) <= room:
            break
    return said


def name_of(name: str, width: int = NAME_WIDTH) -> str:
    """Call a kernel, a version or a program by few words whose brackets close; the row below has its name in full.

    `gemm<128, 64>` becomes `gemm<128,64>`; of a name that is too long its function is left. A row for several kernels
    keeps how many: `fill and 3 more`.
    """
    several = _AND_MORE.search(name)
    if several:
        return f"{name_of(name[: several.start()], width)}{several[0]}"
    tight = _JOINTS.sub(",", " ".join(plain_name(name).split()))
    function = tight.partition("<")[0]
    for told in (
        tight,
        cut_name(tight, width),
        cut_name(function, width),
        cut_name(function.rpartition("::")[2], width),
    ):
        if told and len(told) <= width and len(told.split()) <= NAME_WORDS and closes(told):
            return told
    plain = " ".join(re.sub(r"[()\[\]{}<>]", " ", tight).split()[:NAME_WORDS])
    return cut_name(plain, width) or "(no name)"


def closes(text: str) -> bool:
    """Return whether every bracket of a text closes, and every one that closes was opened."""
    opened: list[str] = []
    for char in _NO_BRACKET.sub("", text):
        if char in _BRACKETS.values():
            opened.append(char)
        elif char in _BRACKETS and (not opened or opened.pop() != _BRACKETS[char]):
            return False
    return not opened


def time_words(time_ns: float | None, launches: int) -> str:
    """Say the time of all launches, as the rows below do: `4.65 ms`, `9.30 ms in 2 launches`."""
    return NO_TIME if time_ns is None else f"{duration(time_ns)}{in_launches(launches)}"


def gain_words(gain: Gain, time_ns: float) -> str:
    """Say the time after a move: `about 3.10 ms`."""
    return f"{gain_how(gain)} {duration(time_ns / gain.factor)}"


def walls_of(analysis: Analysis) -> tuple[str, ...]:
    """Say what limits a kernel, in falling length: its unit with its share, why it waits, or its class."""
    verdict, gpu = analysis.verdict, analysis.kernel.gpu
    perhaps = "possibly " if verdict.or_bound else ""
    name = f"{perhaps}{verdict.bound}-bound"
    if verdict.bound == "balanced":
        sides = " and ".join(bottleneck_words(side, gpu) for side in verdict.sides if side is not None)
        return f"near two limits, {sides}", f"{perhaps}near two limits"
    if verdict.bound == "overhead":
        return f"{perhaps}as short as its launch", name
    if verdict.bound == "latency":
        why = reason_words(analysis)
        return (*((f"{name}: {why}", why) if why else ()), name)
    if verdict.bottleneck is None:
        return (name,)
    if verdict.bottleneck.resource is None:
        return f"{name} ({percent(verdict.bottleneck.share)} of peak)", name
    return f"{name} ({bottleneck_words(verdict.bottleneck, gpu)})", name


def some_names(names: Sequence[str]) -> str:
    """Name one or two, or the first and how many more: `a and b`, `a and 3 more`."""
    first = [name_of(name) for name in names[:2]]
    return " and ".join(first) if len(names) <= 2 else f"{first[0]} and {len(names) - 1:,} more"
