"""The documentation of the findings: one entry an id, made of the rules' docstrings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.findings_doc import DOC, document

from rooflens.model.findings.nvidia import NVIDIA_RULE
from rooflens.model.findings.rule import SAID
from rooflens.model.findings.table import RULES

if TYPE_CHECKING:
    from rooflens.model.findings.rule import FindingRule


def test_the_page_is_what_the_docstrings_say() -> None:
    """docs/reference/findings.md is written from the rules as they are."""
    assert DOC.read_text(encoding="utf-8") == document(), "write it anew: python tests/support/findings_doc.py"


def test_every_id_has_one_entry() -> None:
    """Each finding that a kernel can have, NVIDIA's included, is a heading of the page."""
    ids = re.findall(r"^### `(\w+)`", DOC.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(ids) == sorted([*(rule.id for rule in RULES), NVIDIA_RULE])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_entry_is_complete(rule: FindingRule) -> None:
    """A docstring says what the finding is, how to confirm it and what it does not show, in that order."""
    assert SAID.match(rule.find.__doc__ or "")
    starts = [part.split()[0] for part in rule.said[1:]]
    assert starts[-2:] == ["Confirm", "It"]
    assert set(starts[:-2]) <= {"Counters:", "Counter:", "Counters,", "Source:"}
