"""The documentation builds as a site without warnings and without dead links."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
DRAWN = "GPU_workshop__MW_Baseline"
"""The only live page that is drawn here; `make docs` draws all."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does."""
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module, reason=f"needs {module}: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    command = re.search(r"^docs:.*\n\t\$\(BIN\)/python (.*) \$\(OUT\)/docs$", makefile, flags=re.MULTILINE)
    assert command
    arguments = [sys.executable, *command[1].split(), "-D", f"rooflens_live={DRAWN}", str(folder)]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - this interpreter
    assert done.returncode == 0, done.stderr
    return folder


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    """Every local address in the site's pages is a file of the site with the named anchor."""
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.parent.name != "live"}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    checked = 0
    for page, text in pages.items():
        for address in re.findall(r'\b(?:href|src)="([^"]*)"', text):
            name, _, anchor = unquote(unescape(address)).partition("#")
            if re.match(r"[a-z]+:", name):
                continue
            target = (page.parent / name.partition("?")[0]).resolve() if name else page
            assert target.is_file(), f"{page.relative_to(site)}: {address}"
            assert not anchor or target not in pages or anchor in anchors[target], (
                f"{page.relative_to(site)}: {address}"
            )
            checked += 1
    assert checked > 1000


def test_live_pages_stand_in_the_site_and_are_few_megabytes(site: Path) -> None:
    """A documentation page frames a live page; the whole site stays under 60 MB."""
    framed = re.findall(r'<iframe class="live" src="([^"]+)"', (site / "how-to" / "page.html").read_text())
    assert framed
    assert "compute_tendencies_x_279_gpu" in (site / "how-to" / framed[0]).read_text(encoding="utf-8")
    assert sum(file.stat().st_size for file in site.rglob("*") if ".doctrees" not in file.parts) < 60e6


def test_the_viewer_is_linked_from_the_first_page(site: Path) -> None:
    """The front page leads to the viewer in the site, of which a build without it says that it was left out."""
    assert 'href="open/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert "left out of this build" in (site / "open" / "index.html").read_text(encoding="utf-8")


def test_output_that_begins_with_a_hash_is_no_prompt(site: Path) -> None:
    """In a command block only `$ ` is coloured as a prompt: titles in output are output."""
    text = (site / "tutorials" / "reading-the-chart.html").read_text(encoding="utf-8")
    assert set(re.findall(r'<span class="gp">([^<]*)</span>', text)) == {"$ "}
    assert '<span class="go"># `adamw_kernel2`' in text


def test_a_picture_follows_the_theme(site: Path) -> None:
    """The front page has its picture once per theme, in a single link to the live page."""
    text = (site / "index.html").read_text(encoding="utf-8")
    (linked,) = re.findall(r'<a [^>]*href="live/[^"]*"[^>]*>(.*?)</a>', text, flags=re.DOTALL)
    names = {name: classes for classes, name in re.findall(r'<img [^>]*class="([^"]*)"[^>]*/(\w+\.png)"', linked)}
    assert {name: set(classes.split()) & {"only-light", "only-dark"} for name, classes in names.items()} == {
        "page.png": {"only-light"},
        "page_dark.png": {"only-dark"},
    }


def test_the_site_fetches_nothing(site: Path) -> None:
    """No page of the site loads a script, a style, a font or a picture from the web."""
    for page in site.rglob("*.html"):
        if page.parent.name != "live":
            assert not re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="https?:[^"]*"', page.read_text()), (
                page
            )


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("occupancy", "reference/counters/occupancy"),
        ("shared memory", "reference/counters/shared-memory"),
        ("memory-bound", "reference/verdicts/memory"),
        ("low occupancy", "reference/findings/low_occupancy"),
        ("long scoreboard", "reference/stalls/long_scoreboard"),
    ],
)
def test_a_search_finds_the_page_of_its_subject_first(site: Path, words: str, page: str) -> None:
    """Exactly one page has these words as its title, which Sphinx's search ranks first."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    titled = [name for name, title in zip(index["docnames"], index["titles"], strict=True) if title.lower() == words]
    assert titled == [page]
