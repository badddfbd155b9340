"""Read from an open page: the launches shown in its parts, faint ones, the address, and axe's faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from support import samples

from rooflens.model.records import Move

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from rooflens.model.records import Analysis

FAINT_BELOW = 0.5

AXE_RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],  # thousands of elements that pass take as long to write down as to judge
}

OPEN_ALL = """() => {
  const closed = document.querySelectorAll("#kernels-table > tbody > tr:has(a[aria-expanded=false])");
  for (const row of closed) lens.cards.toggle(row);
  lens.set({ k: "" });
  for (const details of document.querySelectorAll("details")) details.open = true;
}"""
"""Opens every row of the list and everything that is folded."""


class Opened(Struct, frozen=True):
    """An open page, queried in its readers' terms."""

    page: Page

    def settle(self) -> None:
        """Wait until the charts show what was chosen."""
        self.page.evaluate("lens.settled()")

    def until(self, condition: str) -> None:
        """Wait for a condition; the page's content policy forbids Playwright to poll it inside the page."""
        for _ in range(100):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never true: {condition}")

    def choose(self, **choices: Any) -> None:
        """Set choices as the scripts do."""
        self.page.evaluate("choices => lens.set(choices)", choices)
        self.settle()

    def state(self, key: str) -> Any:
        """Read one choice."""
        return self.page.evaluate("key => lens.state[key]", key)

    def fragment(self) -> str:
        """Return the fragment of the address."""
        self.settle()
        return str(self.page.evaluate("lens.save(), location.hash"))

    def points(self) -> dict[str, bool]:
        """Map the launches shown in the roofline to whether they are faint."""
        return self._marks(".plane:not([hidden]) .chart", "[aria-roledescription=kernel]")

    def bars(self) -> dict[str, bool]:
        """Map the kernels in the list of what to fix first, by their median launch, to whether they are faint."""
        self.settle()
        found = self.page.locator(".ranking > li:not([hidden])")
        return dict(found.evaluate_all("rows => rows.map(row => [row.dataset.k, row.classList.contains('faint')])"))

    def rows(self) -> dict[str, bool]:
        """Map the kernels in the list, by their worst launch, to whether they are faint."""
        found = self.page.locator("#kernels-table > tbody > tr[data-k]")
        return dict(found.evaluate_all("rows => rows.map(row => [row.dataset.k, row.classList.contains('faint')])"))

    def point(self, key: str) -> Locator:
        """Find the point of a launch."""
        return self._mark(".plane:not([hidden]) .chart", "[aria-roledescription=kernel]", key)

    def row(self, key: str) -> Locator:
        """Find the row of a launch's kernel."""
        rows = "#kernels-table > tbody > tr"
        return self.page.locator(f"{rows}[data-k={key}], {rows}[data-launches~={key}]")

    def card(self, key: str) -> Locator:
        """Find the card of a launch."""
        return self.page.locator(f"details.card#{key}")

    def _marks(self, chart: str, mark: str) -> dict[str, bool]:
        self.settle()
        script = (
            "marks => marks.map(mark => [mark.__data__.datum.k, Number(mark.getAttribute('opacity') ?? 1)])"
            ".filter(([key]) => key)"
        )
        pairs = self.page.locator(f"{chart} {mark}").evaluate_all(script)
        return {key: opacity < FAINT_BELOW for key, opacity in pairs}

    def _mark(self, chart: str, mark: str, key: str) -> Locator:
        self.settle()
        script = "(marks, key) => marks.findIndex(mark => mark.__data__.datum.k === key)"
        found = self.page.locator(f"{chart} {mark}")
        return found.nth(found.evaluate_all(script, key))


def choose_theme(page: Page, theme: str) -> None:
    """Choose a theme in the sheet of keys, and close it; empty means the system's theme."""
    page.click("#help")
    page.check(f"#theme input[value='{theme}']", force=True)
    page.click("#keys-close")


def faults_everywhere(opened: Opened, axe: str) -> list[str]:
    """List axe's faults in the light theme at full width, then of colours in the dark, then of a telephone's layout."""
    found = faults(opened.page, axe)
    opened.page.emulate_media(color_scheme="dark")
    opened.settle()
    found += faults(opened.page, axe, only="color-contrast")
    opened.page.set_viewport_size({"width": 390, "height": 900})
    opened.settle()
    return found + faults(opened.page, axe)


def placed() -> list[Analysis]:
    """Make one kernel per verdict, in two processes on two devices, in three NVTX ranges and none."""
    ranges = ("train/step/forward", "train/step/backward", None)
    return [
        replace(
            analysis,
            kernel=replace(analysis.kernel, nvtx_range=ranges[i % 3], process=f"python {4711 + i % 2}", device=i % 2),
        )
        for i, analysis in enumerate(samples.every_verdict())
    ]


def apart(count: int) -> list[Analysis]:
    """Make kernels with different first moves, so that each has its own row."""
    return [
        replace(one, verdict=replace(one.verdict, moves=(Move(f"try {i}", "fuse"), *one.verdict.moves[1:])))
        for i, one in enumerate(samples.many(count))
    ]


def faults(page: Page, axe: str, *, only: str = "") -> list[str]:
    """List what axe calls serious or critical, with the elements; evaluating it here is allowed by the content policy.

    Args:
        page: The page to check, as it is.
        axe: The script of axe.
        only: One rule, if nothing else can have changed; otherwise all of `AXE_RULES`.
    """
    page.evaluate(axe)
    rules = AXE_RULES | ({"runOnly": {"type": "rule", "values": [only]}} if only else {})
    found = page.evaluate("rules => axe.run(document, rules).then(all => all.violations)", rules)
    return [
        f"{fault['id']}: {node['html'][:160]} {node['failureSummary']}"
        for fault in found
        if fault["impact"] in {"serious", "critical"}
        for node in fault["nodes"][:3]
    ]
