"""axe-core finds no serious fault of accessibility, whatever the theme, the width and the state of the page."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import Opened, placed
from support import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],  # thousands of elements that pass take as long to write down as to judge
}


@pytest.fixture(scope="module")
def axe() -> str:
    """Read axe-core: the build named by ROOFLENS_AXE, else the one that comes with the tests' requirements."""
    given = os.environ.get("ROOFLENS_AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    pytest.importorskip("axe_playwright_python", reason="no axe-core: install the extra `test`, or set ROOFLENS_AXE")
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def faults(page: Page, axe: str) -> list[str]:
    """List what axe calls serious or critical, with the elements; evaluating it here passes the content policy by."""
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run(document, rules).then(all => all.violations)", RULES)
    return [
        f"{fault['id']}: {node['html'][:160]} {node['failureSummary']}"
        for fault in found
        if fault["impact"] in {"serious", "critical"}
        for node in fault["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_page_has_no_serious_fault(open_page: Callable[..., Page], axe: str, width: int, scheme: str) -> None:
    """The page as it opens, and with every card and table of data open, breaks no rule."""
    page = open_page([*placed(), samples.failed(index=9)], width=width, scheme=scheme)
    assert faults(page, axe) == []
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    assert faults(page, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_chosen_states_have_no_serious_fault(open_page: Callable[..., Page], axe: str, scheme: str) -> None:
    """Isolated, filtered and paged pages break no rule either."""
    page = open_page(samples.many(210), scheme=scheme)
    Opened(page).choose(k="k7", top=80, level="all", sort="name")
    assert faults(page, axe) == []
    Opened(page).choose(k="", q="no such kernel")
    assert faults(page, axe) == []
