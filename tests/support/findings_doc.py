"""Writes `reference/findings.md` from the rules' docstrings: `PYTHONPATH=. python tests/support/findings_doc.py`."""

from __future__ import annotations

import inspect
import re
import sys
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from rooflens.model.findings import nvidia
from rooflens.model.findings.table import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflens.model.findings.rule import FindingRule

DOC = Path(__file__).parents[2] / "docs" / "reference" / "findings.md"
WIDTH = 125

_HEAD = """\
# Findings

<!-- Written by tests/support/findings_doc.py from the docstrings in rooflens/model/findings/. -->

For whoever reads a finding and asks what it means, how sure it is, and what it does not show.

A verdict says which wall a kernel hits; a finding says why, where, and what to do. Each has a severity: `limiter` (it
is what bounds the kernel), `contributes` (it costs time as well), `note` (true, but not what costs time). The
speed-up given is for this waste alone; those of several findings do not add up. Below stands what each finding means,
the counters that tell it, how to confirm it, and what it does not show. "Needs" has the names that `rooflens metrics
--findings` lists with the tier that collects them; one of the groups is enough. `rooflens metrics --report PATH`
lists what a report cannot tell.
"""


def document() -> str:
    """Write the whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield from (f"- [`{rule.id}`](#{_anchor(rule.id, rule.title)}): {rule.title}" for rule in RULES)
    for module, rules in groupby(RULES, key=lambda rule: inspect.getmodule(rule.find)):
        yield f"\n## {_subject(inspect.getdoc(module) or '')}"
        for rule in rules:
            yield from _entry(rule)
    yield f"\n## NVIDIA's rules\n\n### `{nvidia.NVIDIA_RULE}`: what NVIDIA's rules estimate\n"
    yield from _wrapped(_one_line(inspect.getdoc(nvidia) or ""))


def _entry(rule: FindingRule) -> Iterator[str]:
    meaning, *others = rule.said
    yield f"\n### `{rule.id}`: {rule.title}\n"
    yield from _wrapped(meaning)
    yield ""
    for part in (
        *others,
        f"Needs: {', or '.join(' with '.join(f'`{name}`' for name in group) for group in rule.needs)}.",
    ):
        yield from _wrapped(part, "- ")


def _wrapped(text: str, bullet: str = "") -> list[str]:
    return wrap(
        text,
        WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _subject(doc: str) -> str:
    """Turn a module's `Findings about launches: ...` into a heading."""
    words = _one_line(doc).removeprefix("Findings about ").partition(":")[0].partition(".")[0]
    return words[:1].upper() + words[1:]


def _anchor(rule_id: str, title: str) -> str:
    return re.sub(r"[^\w -]", "", f"{rule_id} {title}".lower()).replace(" ", "-")


if __name__ == "__main__":
    DOC.write_text(document(), encoding="utf-8")
    sys.stdout.write(f"wrote {DOC}\n")
