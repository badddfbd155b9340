"""Check the declared needs of rules, which decide whether a rule is tried, against the rules themselves."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from rooflens.model import analyze as analyzing
from rooflens.model.findings.find import CAUSES
from rooflens.model.findings.rule import held_of, holdings_of
from rooflens.model.records import Finding, Kernel, Outside
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.thresholds import default_thresholds

pytestmark = pytest.mark.corpus

_MAPS = ("counters", "stalls", "thread_opcodes", "warp_opcodes", "code_totals")
_KEPT = (0.9, 0.6, 0.3)


def _thinned(kernel: Kernel, kept: float, rng: random.Random) -> Kernel:
    """Drop counters at random, and whole tables."""
    maps = {name: getattr(kernel, name) for name in _MAPS}
    thin = {name: value for name, value in maps["counters"].items() if rng.random() < kept}
    whole = {name: maps[name] if rng.random() < kept else {} for name in _MAPS[1:]}
    return replace(kernel, counters=thin, series=kernel.series if rng.random() < kept else None, **whole)


def test_no_rule_finds_anything_where_its_needs_are_not_held(
    kernels: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that is skipped because the report lacks what it needs would have found nothing."""
    rng = random.Random(1)  # noqa: S311 - no secret
    thinned = [_thinned(kernel, kept, rng) for kernel in kernels for kept in _KEPT]
    seen: list[Facts] = []

    def kept(found: list[Facts]) -> list[tuple[Finding, ...]]:
        seen.extend(found)
        return [() for _ in found]

    monkeypatch.setattr(analyzing, "find_findings", kept)
    analyzing.analyze_all(thinned, default_thresholds(), [Outside()] * len(thinned))
    skipped = 0
    for facts in seen:
        held = held_of(holdings_of(facts.kernel, traced=False))
        for rule in CAUSES:
            if not rule.may_tell(held):
                skipped += 1
                assert rule.find(facts) is None, (rule.id, facts.kernel.source, facts.kernel.index)
    assert skipped > len(thinned)
