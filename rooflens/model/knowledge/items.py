"""Reads the items of knowledge, each when it is asked for."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

Kind = Literal["verdicts", "findings", "flags", "stalls"]

KINDS: Mapping[Kind, str] = {
    "verdicts": "verdict",
    "findings": "finding",
    "flags": "flag",
    "stalls": "stall reason",
}
"""Folder of the items of a kind -> what one of them is called."""


_FOLDER = Path(__file__).parent


class KnowledgeItem(Struct, frozen=True, forbid_unknown_fields=True):
    """One item as its file has it.

    Attributes:
        meaning: What it says, and why it is so.
        confirm: From `Confirm` on, how one makes sure.
        blind: From `It does not` on, what it leaves open.
        tries: What to try, in the order in which an expert does; each without a full stop.
        counters: From `Counters:` on, the counters it is based on; empty if that follows from its name.
        title: A few words for people; empty for findings, whose title is in the table of rules.
        sentence: Of a flag: what it means for whoever reads the numbers.
        changes_verdict: Of a flag: class, limiter, distances or the place on the roofline would differ without the
            trap. Other flags say how numbers were made, or repeat what verdict and findings say anyway.
        unit: Of a flag: the unit whose share is off; the verdict differs only where that is the limiter.
        where: Of a stall reason: the chips that count it, in words.
        only_on: Of a stall reason: these chips; empty for all of them.
        absent_on: Of a stall reason: the chips that do not count it.
    """

    meaning: str
    confirm: str
    blind: str
    tries: tuple[str, ...]
    counters: str = ""
    title: str = ""
    sentence: str = ""
    changes_verdict: bool = False
    unit: str | None = None
    where: str = ""
    only_on: frozenset[str] = frozenset()
    absent_on: frozenset[str] = frozenset()


@cache
def find_item(kind: Kind, name: str) -> KnowledgeItem | None:
    """Return an item; None if it has no file, such as a flag from a newer store."""
    if name not in names_of(kind):
        return None
    found: dict[str, Any] = tomllib.loads((_FOLDER / kind / f"{name}.toml").read_text(encoding="utf-8"))
    texts = {key: " ".join(value.split()) for key, value in found.items() if isinstance(value, str)}
    return msgspec.convert({**found, **texts}, KnowledgeItem)


@cache
def column_heads() -> Mapping[str, Mapping[str, str]]:
    """Return what the heads of tables mean, by the command that prints them."""
    return tomllib.loads((_FOLDER / "columns.toml").read_text(encoding="utf-8"))


@cache
def _after() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((_FOLDER / "after.toml").read_text(encoding="utf-8"))


def after_words(kind: str, finding: str | None) -> str:
    """Say what a kernel has after a move, behind its time then: `with more blocks`; empty if that is nothing."""
    known = _after()
    return known["findings"].get(finding or "") or known["kinds"].get(kind, "")


class Word(Struct, frozen=True, forbid_unknown_fields=True):
    """A word of the subject.

    Attributes:
        also: What else it is called.
        tries: What an engineer does about it, first things first; each without a full stop.
        see: Names of other words and items that say more.
    """

    meaning: str
    also: tuple[str, ...] = ()
    tries: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


@cache
def words() -> Mapping[str, Word]:
    """Return the words of the subject that are no items, by name."""
    return msgspec.convert(tomllib.loads((_FOLDER / "words.toml").read_text(encoding="utf-8")), dict[str, Word])


class LabelWords(Struct, frozen=True, forbid_unknown_fields=True):
    """What a label or a rule of ncu means.

    Attributes:
        unit: In which a label is printed, for people; empty for rules.
        formula: Of other labels and metrics, in backticks; empty where rooflens works the quantity out itself, whose
            recipe is the formula, and where there is none. `{op}` is the instruction in a label.
        blind: What it leaves out.
        tries: What to do about it, first things first; each without a full stop.
        see: Names of other labels, words and items that say more.
    """

    meaning: str
    blind: str
    tries: tuple[str, ...]
    unit: str = ""
    formula: str = ""
    see: tuple[str, ...] = ()


class SectionWords(Struct, frozen=True, forbid_unknown_fields=True):
    """What a section of ncu is for, and what its labels and rules mean."""

    meaning: str
    tries: tuple[str, ...]
    labels: dict[str, LabelWords] = {}
    rules: dict[str, LabelWords] = {}


@cache
def section_words(identifier: str) -> SectionWords:
    """Return the words of a section, its labels and its rules."""
    text = (_FOLDER / "sections" / f"{identifier}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), SectionWords)


@cache
def names_of(kind: Kind) -> tuple[str, ...]:
    """Return the names of all items of a kind, sorted."""
    return tuple(sorted(file.stem for file in (_FOLDER / kind).iterdir()))
