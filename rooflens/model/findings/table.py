"""The table of findings: one row a rule, by subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.model.findings.access import ACCESS
from rooflens.model.findings.arithmetic import ARITHMETIC
from rooflens.model.findings.atomics import ATOMICS
from rooflens.model.findings.balance import BALANCE
from rooflens.model.findings.divergence import DIVERGENCE
from rooflens.model.findings.launch import LAUNCH
from rooflens.model.findings.local import LOCAL
from rooflens.model.findings.occupancy import OCCUPANCY
from rooflens.model.findings.shared import SHARED
from rooflens.model.findings.stalls import STALLED

if TYPE_CHECKING:
    from rooflens.model.findings.rule import FindingRule

CAUSES: tuple[FindingRule, ...] = (
    *LAUNCH,
    *ACCESS,
    *LOCAL,
    *SHARED,
    *DIVERGENCE,
    *ATOMICS,
    *ARITHMETIC,
    *BALANCE,
    *OCCUPANCY,
)
"""All but the waits, of which one look at the stalls tells which can be found."""

RULES: tuple[FindingRule, ...] = (*CAUSES, *STALLED)
