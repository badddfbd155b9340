"""Make the tables of docs/reference/partial-sets.md about what each form of a report has and cannot have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from generators.texts import table
from rooflens.collect.tiers import metrics_for
from rooflens.format import MISSING
from rooflens.ingest.exports.sentences import SENTENCES, metrics_of
from rooflens.ingest.reports.resolve import plan_for
from rooflens.model.counters.chips import CHIPS
from rooflens.model.counters.labels import BUSY, SHOWN
from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import IN_PROGRAM, FindingRule

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_ALL, _SAID = "yes", "where NVIDIA says so"
_CHOSEN = re.compile(r"\{[opi]\}|(?<=stalled_)barrier")
_STALLS = "smsp__average_warps_issue_stalled_"


def tables() -> dict[str, Sequence[str]]:
    """Return both tables."""
    return {
        "forms": table(("finding", "report", "raw CSV", "text, details CSV"), map(_row, RULES)),
        "sentences": _said(),
    }


def _row(rule: FindingRule) -> tuple[str, str, str, str]:
    raw = _held({metric.name for chip in CHIPS for metric in metrics_for(chip, "deep")})
    shown = _held({*SHOWN, *(f"{name}.pct_of_peak_sustained_active" for name in BUSY.values())})
    said = _held({*SHOWN, *(name for sentence in SENTENCES for name in metrics_of(sentence))})
    in_text = _ALL if rule.can_tell(shown) else _SAID if rule.can_tell(said) or _is_told_wait(rule) else MISSING
    is_traced = all(IN_PROGRAM in need for need in rule.needs)
    in_raw = _ALL if rule.can_tell(raw) or rule.id.startswith("stall_") else MISSING
    return f"`{rule.id}`", "with a trace beside it" if is_traced else _ALL, in_raw, in_text


def _is_told_wait(rule: FindingRule) -> bool:
    """Return whether a sentence states the cycles of a wait."""
    reason = rule.id.removeprefix("stall_")
    names = (name for sentence in SENTENCES for name in sentence.metrics)
    return any(name.startswith(f"{_STALLS}{reason}_per_") for name in names)


def _held(names: Collection[str]) -> frozenset[str]:
    """Return the counters that metrics give; every form has the size of a block."""
    return frozenset({*(step.name for step in plan_for(tuple(sorted(names)))[0]), "block_size"})


def _chosen(found: re.Match[str]) -> str:
    """Name the choices made by the words of a sentence."""
    return {"{o}": "{ld,st}", "barrier": "REASON"}.get(found[0], "PIPE")


def _said() -> Sequence[str]:
    rows = []
    for sentence in SENTENCES:
        if all(f"`{name}`" not in row[1] for row in rows for name in sentence.metrics):
            rows.append((sentence.rule, ", ".join(f"`{name}`" for name in sentence.metrics), sentence.seen))
    rows = [(rule, _CHOSEN.sub(_chosen, metrics), seen) for rule, metrics, seen in rows]
    return table(("rule", "metrics that it states", "seen in ncu"), rows)
