"""The table of findings: one row a rule, by subject."""

from __future__ import annotations

from rooflens.model.findings.arithmetic import ARITHMETIC
from rooflens.model.findings.launch import BALANCE, DIVERGENCE, LAUNCH, OCCUPANCY
from rooflens.model.findings.memory import ATOMICS, MEMORY
from rooflens.model.findings.reuse import REUSE
from rooflens.model.findings.rule import FindingRule
from rooflens.model.findings.stalls import STALLED

CAUSES: tuple[FindingRule, ...] = (
    *LAUNCH,
    *MEMORY,
    *REUSE,
    *DIVERGENCE,
    *ATOMICS,
    *ARITHMETIC,
    *BALANCE,
    *OCCUPANCY,
)
"""All but the waits: the stalls show directly which of those apply."""

RULES: tuple[FindingRule, ...] = (*CAUSES, *STALLED)
