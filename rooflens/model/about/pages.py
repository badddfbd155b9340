"""The page of each verdict, finding, flag and stall reason, made of the rules' docstrings and the texts beside."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rooflens.errors import UnknownNameError
from rooflens.format import sentence_case
from rooflens.model.about.flags import FLAG_TEXTS
from rooflens.model.about.stalls import OTHER_NAMES, STALL_TEXTS, counters_of
from rooflens.model.about.verdicts import VERDICTS
from rooflens.model.findings import nvidia
from rooflens.model.findings.rule import said, tries
from rooflens.model.findings.stalls import counters_of_wait
from rooflens.model.findings.table import RULES
from rooflens.model.verdict.flags import FLAGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.model.about.texts import Text
    from rooflens.model.findings.rule import FindingRule

Kind = Literal["verdicts", "findings", "flags", "stalls"]
KINDS: Mapping[Kind, str] = {
    "verdicts": "verdict",
    "findings": "finding",
    "flags": "flag",
    "stalls": "stall reason",
}
"""Folder of the pages of a kind -> what one of them is called."""


class About(Struct, frozen=True):
    """One page.

    Attributes:
        meaning: What it says, and why it is so.
        parts: Its counters, how to confirm it, and what it does not show: one sentence or more each.
        tries: What to try, in the order in which an expert does; each without a full stop.
        needs: Groups of names that a finding can be told from, any one of which is enough; else empty.
    """

    kind: Kind
    name: str
    title: str
    meaning: str
    parts: tuple[str, ...]
    tries: tuple[str, ...]
    needs: tuple[tuple[str, ...], ...] = ()

    @property
    def address(self) -> str:
        """Return where it stands among all pages: `findings/small_grid`."""
        return f"{self.kind}/{self.name}"


@cache
def every_page() -> Mapping[str, About]:
    """Write all pages: address -> page."""
    pages = (
        *(_of_text("verdicts", name, title, "", text) for name, (title, text) in VERDICTS.items()),
        *(_of_rule(rule) for rule in RULES),
        _of_nvidia(),
        *(_of_text("flags", name, FLAGS[name].name, FLAGS[name].meaning, text) for name, text in FLAG_TEXTS.items()),
        *(_of_stall(reason) for reason in STALL_TEXTS),
    )
    return {page.address: page for page in pages}


def find_pages(name: str) -> tuple[About, ...]:
    """Return the pages that a name means: `small_grid`, `flags/bank_conflicts`, or a title. Two where two have it.

    Raises:
        UnknownNameError: None is called so.
    """
    pages = every_page()
    asked = _key(name)
    asked = OTHER_NAMES.get(asked, asked)
    found = tuple(page for page in pages.values() if asked in {page.address, page.name, _key(page.title)})
    if not found:
        known = list(dict.fromkeys(page.name for page in pages.values()))
        raise UnknownNameError("verdict, finding, flag, stall reason or counter", name, known, "rooflens about")
    return found


def _key(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _of_text(kind: Kind, name: str, title: str, first: str, text: Text) -> About:
    meaning = f"{first} {text.meaning}".lstrip()
    return About(kind, name, sentence_case(title), meaning, (text.counters, text.confirm, text.blind), text.tries)


def _of_rule(rule: FindingRule) -> About:
    meaning, *parts = rule.said
    counted = counters_of_wait(rule.id)
    if counted and not any(part.startswith("Counter") for part in parts):
        parts.insert(0, f"Counters: {counted}.")
    return About("findings", rule.id, sentence_case(rule.title), meaning, tuple(parts), rule.tries, rule.needs)


def _of_stall(reason: str) -> About:
    text = STALL_TEXTS[reason]
    return About(
        "stalls", reason, text.title, text.meaning, (counters_of(reason), text.confirm, text.blind), text.tries
    )


def _of_nvidia() -> About:
    meaning, *parts = said(nvidia.__doc__ or "")
    return About(
        "findings",
        nvidia.NVIDIA_RULE,
        "What NVIDIA's rules estimate",
        meaning,
        tuple(parts),
        tries(nvidia.__doc__ or ""),
    )
