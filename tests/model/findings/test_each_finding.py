"""No finding without a test: who adds a rule adds a case that it finds, and this fails until then."""

from __future__ import annotations

import ast
from pathlib import Path

from test_stalls_found import REASONS

from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import FindingRule

HERE = Path(__file__).parent


def _called_in_tests() -> set[str]:
    """Return the names of all functions that the tests of this folder call, here or as an attribute of a module."""
    found = set()
    for file in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                found.add(node.func.id if isinstance(node.func, ast.Name) else node.func.attr)
    return found


def _untested(rules: tuple[FindingRule, ...], called: set[str]) -> list[str]:
    """Return the findings that no test asks for; every wait is asked for by its reason."""
    waits = {f"stall_{reason}" for reason in REASONS}
    return [rule.id for rule in rules if rule.id not in waits and rule.find.__name__ not in called]


def test_every_finding_has_a_test() -> None:
    """A rule is asked by name in a test of this folder, or is a wait, which `test_each_reason_is_said` asks for."""
    assert _untested(RULES, _called_in_tests()) == []


def test_a_finding_without_a_test_is_named() -> None:
    """The check itself can fail: a rule whose function no test calls is listed."""
    called = _called_in_tests() - {"bank_conflicts"}
    assert _untested(RULES, called) == ["bank_conflicts"]
