"""A browser for the tests of the page: Debian's Chromium, held to no message, no error and no request."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import Opened
from support import samples
from support.rendered import rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser, Page

    from rooflens.model.records import Analysis

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--no-sandbox",  # containers run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start a Chromium; skip the tests where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("ROOFLENS_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    if not found:
        pytest.skip("no Chromium on this machine: install one or set ROOFLENS_CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def open_file(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page that lies in a file; at the end, hold it to no console message, no error and no request."""
    troubles: list[str] = []

    def open_(file: Path, fragment: str = "", **options: Any) -> Page:
        page = browser.new_page(**options)
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append("a dialog opened"), dialog.dismiss()))
        own = file.as_uri()
        page.on("request", lambda asked: None if asked.url.partition("#")[0] == own else troubles.append(asked.url))
        page.goto(own + fragment)
        Opened(page).settle()
        return page

    yield open_
    for context in browser.contexts:
        context.close()
    assert troubles == []


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
    """Read axe-core: the build named by ROOFLENS_AXE, else the one that comes with the tests' requirements."""
    given = os.environ.get("ROOFLENS_AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    pytest.importorskip("axe_playwright_python", reason="no axe-core: install the extra `test`, or set ROOFLENS_AXE")
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
