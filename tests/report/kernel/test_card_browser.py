"""A card in a browser: two columns, one on a telephone, and readable drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from browsing import faults
from msgspec.structs import replace
from support import samples

from rooflens.model.records import Rule
from rooflens.report.kernel.memory import WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from rooflens.model.records import Analysis

pytestmark = pytest.mark.browser

LAUNCH = {
    "sm_warps": 64.0,
    "sm_registers": 65536.0,
    "sm_smem_bytes": 167936.0,
    "smem_per_block_bytes": 1024.0,
    "blocks_limit_registers": 6.0,
    "blocks_limit_blocks": 32.0,
    "blocks_limit_smem": 32.0,
    "smem_driver_bytes": 1024.0,
    "registers_per_thread": 40.0,
    "block_size": 256.0,
    "theoretical_occupancy": 0.75,
    "achieved_occupancy": 0.7,
    "dram_read_bytes": 2e8,
    "dram_write_bytes": 1e8,
    "l2_return_bytes": 4e8,
    "l2_write_bytes": 1e8,
}
COLUMNS = """panels => {
  const boxes = [...panels.children].map(panel => panel.getBoundingClientRect());
  const left = Math.min(...boxes.map(box => box.left));
  const sides = [boxes.filter(box => box.left < left + 100), boxes.filter(box => box.left >= left + 100)];
  const top = panels.getBoundingClientRect().top;
  return sides.map(side => side.length ? Math.max(...side.map(box => box.bottom)) - top : 0);
}"""
"""Heights of the two columns of panels in pixels."""


def full() -> Analysis:
    """Make a kernel with every panel."""
    base = samples.explained()
    rules = tuple(Rule("A", "S", f"Rule {i}", "What NVIDIA says. " * 20, speedup_pct=10.0 * i) for i in range(4))
    opcodes = {"HMMA.16816.F32": 500, "FFMA": 200, "LDG.E.128": 100, "LDS.128": 100, "IADD3": 50, "BRA": 50}
    counters = {**base.kernel.counters, **LAUNCH}
    return replace(base, kernel=replace(base.kernel, counters=counters, rules=rules, warp_opcodes=opcodes))


def test_a_card_fills_its_width(open_page: Callable[..., Page], axe: str) -> None:
    """On a wide screen panels stand in two columns; on a telephone there is one, and nothing overflows."""
    page = open_page([full(), samples.every_verdict()[1]])
    page.evaluate("lens.cards.toggle(lens.list.rowByKey.get('k0'))")
    page.locator("#k0 .document > details > summary").click()
    panels = page.locator("#k0 .panels").all()
    assert len(panels) == 2
    for box in panels:
        assert min(box.evaluate(COLUMNS)) > 0
    assert faults(page, axe) == []

    page.set_viewport_size({"width": 390, "height": 844})
    assert [box.evaluate(COLUMNS)[1] for box in panels] == [0, 0]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    chart = page.locator("#k0 .ways svg").bounding_box()
    assert chart is not None
    assert chart["width"] > 0.95 * WIDTH
