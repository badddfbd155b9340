"""Every finding has a test: whoever adds a rule must add a case that it finds."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

from test_stalls_found import REASONS

from rooflens.analyzing import analyze_paths
from rooflens.model.findings.find import KIND_OF, RULES
from rooflens.model.findings.rule import FindingRule
from rooflens.model.records import MoveKind

HERE = Path(__file__).parent


def _called_in_tests() -> set[str]:
    """Return the names of all functions that the tests of this folder call: themselves, of a module, by `found_by`."""
    found = set()
    for file in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                rule = node.args[0] if name == "found_by" else None
                found.add(rule.id if isinstance(rule, ast.Name) else name)
    return found


def _untested(rules: tuple[FindingRule, ...], called: set[str]) -> list[str]:
    """Return the findings that no test calls; all waits are tested by their reason."""
    waits = {f"stall_{reason}" for reason in REASONS}
    return [rule.id for rule in rules if rule.id not in waits and rule.find.__name__ not in called]


def test_every_finding_has_a_test() -> None:
    """A rule is called by name in a test of this folder, or is a wait, which `test_each_reason_is_said` tests."""
    assert _untested(RULES, _called_in_tests()) == []


def test_a_finding_without_a_test_is_named() -> None:
    """The check itself works: a rule whose function no test calls is listed."""
    called = _called_in_tests() - {"bank_conflicts"}
    assert _untested(RULES, called) == ["bank_conflicts"]


def test_every_finding_says_what_its_move_changes() -> None:
    """The kind of each rule is one of the contract's words."""
    assert {rule.id: rule.kind for rule in RULES if rule.kind not in get_args(MoveKind)} == {}
    assert KIND_OF["bank_conflicts"] == "pad"


def test_every_move_of_a_report_says_what_it_changes(fixtures: Path) -> None:
    """Moves and findings of published reports, including those of limiters and libraries, have one of the words."""
    analyses = [one for report in analyze_paths([fixtures / "published"]).reports for one in report.analyses]
    moves = [move for one in analyses for move in (*one.verdict.moves, *one.findings)]
    assert len(moves) > 100
    assert [move for move in moves if move.kind not in get_args(MoveKind)] == []
