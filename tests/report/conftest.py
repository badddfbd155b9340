"""A browser for the tests of the page: Debian's Chromium, which must give no message, error or request."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import samples
from support.rendered import rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser, Page, Request
    from playwright.sync_api import ViewportSize as Viewport

    from rooflens.model.records import Analysis

    Tabs = defaultdict[str, list["Tab"]]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--no-sandbox",  # containers run as root
    "--disable-gpu",
    "--js-flags=--single-threaded --no-opt --no-maglev",  # no page is open long enough for compiling to pay off
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

BLANK = "about:blank"
START_OVER = """async () => {
  document.activeElement.blur();
  for (const row of document.querySelectorAll("tr:has(a[aria-expanded=true])")) lens.cards.toggle(row);
  lens.set(atFirst.state);
  lens.save();
  for (const details of document.querySelectorAll("details")) details.open = atFirst.open.has(details);
  scrollTo({ top: 0, behavior: "instant" });
  await lens.settled();
}"""
"""Takes back what tests choose, open and scroll; not a zoom, nor a theme."""

AT_FIRST = "() => { window.atFirst = { state: lens.state, open: new Set(document.querySelectorAll('details[open]')) } }"
VIEWPORT: Viewport = {"width": 1280, "height": 720}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start a Chromium; skip the tests if there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("ROOFLENS_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    if not found:
        pytest.skip("no Chromium on this machine: install one or set ROOFLENS_CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield browser
        browser.close()


@dataclass
class Tab:
    """A browser page that tests use in turn, as its process has already compiled the charts' library.

    It has a dictionary, as Playwright stores on an object which of its methods listen.

    Attributes:
        own: Address of the open file.
        troubles: Forbidden events since it was opened.
    """

    page: Page
    own: str = ""
    troubles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Listen for forbidden events."""
        self.page.on("console", lambda message: self.troubles.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.troubles.append("a dialog opened"), dialog.dismiss()))
        self.page.on("request", self._asked)

    def _asked(self, request: Request) -> None:
        if request.url.partition("#")[0] not in {self.own, BLANK}:
            self.troubles.append(request.url)

    def show(self, file: Path, fragment: str, viewport: Viewport, scheme: str, ready: str) -> Page:
        """Open a file as in a new page: no emulated media, and the pointer in the corner."""
        self.own = file.as_uri()
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(media="null", color_scheme=scheme, reduced_motion="null", forced_colors="null")
        self.page.mouse.move(0, 0)
        self.page.goto(self.own + fragment)
        self.page.evaluate(ready)
        return self.page

    def start_over(self) -> Page:
        """Reset the open page."""
        self.page.mouse.move(0, 0)
        self.page.evaluate(START_OVER)
        return self.page

    def leave(self) -> list[str]:
        """Close the file; return its forbidden events."""
        if not self.page.is_closed():
            self.page.goto(BLANK)
        return self.taken()

    def taken(self) -> list[str]:
        """Return the forbidden events since the last call."""
        troubles, self.troubles = self.troubles, []
        return troubles


@pytest.fixture(scope="session")
def tabs() -> Tabs:
    """Keep the unused pages by the options of their context."""
    return defaultdict(list)


@pytest.fixture
def open_file(browser: Browser, tabs: Tabs) -> Iterator[Callable[..., Page]]:
    """Open a page stored in a file; at the end, check that it gave no console message, error or request."""
    used: list[tuple[str, Tab]] = []

    def open_(
        file: Path,
        fragment: str = "",
        viewport: Viewport = VIEWPORT,
        color_scheme: str = "light",
        ready: str = "lens.settled()",
        **options: Any,
    ) -> Page:
        kind = repr(sorted(options.items()))
        tab = tabs[kind].pop() if tabs[kind] else Tab(browser.new_page(**options))
        used.append((kind, tab))
        return tab.show(file, fragment, viewport, color_scheme, ready)

    yield open_
    troubles = [trouble for _, tab in used for trouble in tab.leave()]
    for kind, tab in used:
        if not tab.page.is_closed():
            tabs[kind].append(tab)
    assert troubles == []


@pytest.fixture(scope="session")
def shared() -> dict[str, Tab]:
    """Keep the pages that stay open between tests, by their content."""
    return {}


@pytest.fixture
def same_page(
    browser: Browser, shared: dict[str, Tab], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Page]]:
    """Open the page of these analyses once for many tests; each gets it reset, and none zooms or changes themes.

    Loading a page and drawing its charts takes most of a test's time, so tests of anything else share a page.
    """
    used: list[Tab] = []

    def open_(analyses: Sequence[Analysis]) -> Page:
        text = rendered([samples.report(analyses)], "attention")
        if text in shared:
            used.append(shared[text])
            return used[-1].start_over()
        used.append(shared.setdefault(text, Tab(browser.new_page())))
        file = tmp_path_factory.mktemp("shared") / "page.html"
        file.write_text(text, encoding="utf-8")
        page = used[-1].show(file, "", {"width": 1440, "height": 900}, "light", "lens.settled()")
        page.evaluate(AT_FIRST)
        return page

    yield open_
    assert [trouble for tab in used for trouble in tab.taken()] == []


@pytest.fixture
def open_page(open_file: Callable[..., Page], tmp_path: Path) -> Callable[..., Page]:
    """Open the page of these analyses, at a width and in a colour scheme, with a fragment in its address."""

    def open_(
        analyses: Sequence[Analysis],
        width: int = 1440,
        scheme: str = "light",
        title: str = "attention",
        fragment: str = "",
        **options: Any,
    ) -> Page:
        file = tmp_path / "page.html"
        file.write_text(rendered([samples.report(analyses)], title), encoding="utf-8")
        viewport = {"width": width, "height": 2160 if width > 2400 else 900}
        return open_file(file, fragment, viewport=viewport, color_scheme=scheme, **options)

    return open_


@pytest.fixture(scope="session")
def axe() -> str:
    """Read axe-core: the build named by ROOFLENS_AXE, otherwise the one in the tests' requirements."""
    given = os.environ.get("ROOFLENS_AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    pytest.importorskip("axe_playwright_python", reason="no axe-core: install the extra `test`, or set ROOFLENS_AXE")
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
