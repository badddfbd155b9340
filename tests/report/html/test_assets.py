"""Templates, styles and scripts of the pages are readable, and every part is used."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from support.loops import for_all

import rooflens

PACKAGE = Path(rooflens.__file__).parent
ASSETS = Path(str(files("rooflens.report").joinpath("assets")))
ALL = sorted(path for kind in ("html", "css", "js") for path in ASSETS.rglob(f"*.{kind}"))
OWN = [path for path in ALL if path.parent.name != "vendor"]
MAX_LINE = 160

MAKERS = [path for path in ALL if path.name != "vega.min.js"]
"""Vega has every word that there is."""

COMPUTED = frozenset({"dt-column-header", "vg-tooltip", "vega-bind", "vega-bind-name", "vega-bind-radio"})
"""Classes that DataTables and Vega write."""


def name_of(path: Path) -> str:
    """Name a file as the pages do: `folder/name`."""
    return path.relative_to(ASSETS).as_posix()


@for_all("path", OWN, name_of)
def test_lines_can_be_read(path: Path) -> None:
    """No line of a template, a style sheet or a script is over 160 characters."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > MAX_LINE] == []


@for_all("path", OWN, name_of)
def test_every_file_is_in_a_page(path: Path) -> None:
    """Each file is named in the code that makes pages, by its folder and name, or in another template."""
    name = name_of(path) if path.suffix != ".html" else name_of(path).removesuffix(".html")
    makers = [*PACKAGE.rglob("*.py"), *(other for other in OWN if other.suffix == ".html")]
    assert any(f'"{name}' in maker.read_text(encoding="utf-8") for maker in makers)


def test_every_rule_has_something_to_style() -> None:
    """Each class and ID in the style sheets occurs in a template, a script, or a record with class names."""
    makers = [path for path in (*MAKERS, *PACKAGE.rglob("*.py")) if path.suffix != ".css"]
    words = set(re.findall(r"[\w-]+", " ".join(path.read_text(encoding="utf-8") for path in makers)))
    for path in OWN:
        if path.suffix == ".css":
            selectors = re.sub(r"\{[^{}]*\}|/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            named = set(re.findall(r"[.#]([A-Za-z][\w-]*)", selectors))
            assert named - words - COMPUTED == set(), path.name


def test_every_name_that_scripts_ask_for_is_in_a_template() -> None:
    """Each ID that a script looks up is written by a template, or is that of a record which a template writes."""
    html = " ".join(path.read_text(encoding="utf-8") for path in OWN if path.suffix == ".html")
    records = " ".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    for path in OWN:
        if path.suffix == ".js":
            text = path.read_text(encoding="utf-8")
            ids = set(re.findall(r'byId\("([\w-]+)"\)', text)) | set(re.findall(r"""[("'\s]#([a-z][\w-]+)""", text))
            assert {name for name in ids if f'id="{name}"' not in html and f'"{name}"' not in records} == set(), (
                path.name
            )
