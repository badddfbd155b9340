"""The table of findings: one row a rule, by subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflens.model.findings.rule import FindingRule

RULES: tuple[FindingRule, ...] = ()
