"""The frame of every page: one offline HTML file with its content policy, both themes, styles and scripts inside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files

from markupsafe import Markup

from rooflens.report.html import theme
from rooflens.report.html.embed import content_policy, json_block, script, vega_bundle
from rooflens.report.html.templates import render

KERNELS = ("kernels", "Skip to the kernels table")

SCRIPTS = ("shared/state.js", "shared/theme.js", "shared/charts.js", "shared/reveal.js")
"""What every page runs first; the scripts of a page follow."""


def document(  # noqa: PLR0913 - a page is made of these
    title: str,
    facts: Sequence[str],
    sections: Sequence[Markup],
    *,
    head: Markup | str = "",
    synthetic: str = "",
    blocks: Iterable[Markup] = (),
    styles: Iterable[str] = (),
    scripts: Iterable[str] = (),
    below: Iterable[Markup] = (),
    late_scripts: Iterable[str] = (),
    libraries: Iterable[str] = (),
    skip: tuple[str, str] = KERNELS,
    charts: bool = True,
) -> str:
    """Put a page together.

    Args:
        title: The heading, which the browser's tab shows too.
        facts: What ran where, in a line below the heading.
        sections: What is shown, from top to bottom; its charts are drawn before a browser reads on.
        head: What else is in the header.
        synthetic: Which data a generator wrote; empty where all was measured.
        blocks: JSON blocks that the scripts read; the charts' themes are added.
        styles: The page's own style sheets of `assets`, in order; those of all pages are added.
        scripts: The page's own scripts of `assets`, after `SCRIPTS`; no other script may run.
        below: What comes below the sections.
        late_scripts: Scripts of `assets` that need what comes below.
        libraries: Code of others that the late scripts use.
        skip: Where the link for readers with a keyboard leads, and its words.
        charts: False for a page that Vega draws nothing on; it is then a third as large.
    """
    themes = {
        "light": theme.vega_config(theme.LIGHT, dark=False),
        "dark": theme.vega_config(theme.DARK, dark=True),
    }
    codes = (*([vega_bundle()] if charts else ()), joined((*SCRIPTS, *scripts)))
    late = (*libraries, *([joined(late_scripts)] if late_scripts else ()))
    return render(
        "shared/document",
        title=title,
        facts=facts,
        head=head,
        synthetic=synthetic,
        skip=skip,
        policy=content_policy(*codes, *late),
        style=_style(("shared/page.css", *styles, "shared/charts.css", "shared/print.css")),
        sections=sections,
        blocks=[json_block("themes", themes), *blocks],
        scripts=[script(code) for code in codes],
        below=below,
        late_scripts=[script(code) for code in late],
    )


def joined(names: Iterable[str]) -> str:
    """Join files of `assets`, each named `folder/name`."""
    assets = files("rooflens.report").joinpath("assets")
    return "\n".join(assets.joinpath(name).read_text(encoding="utf-8") for name in names)


@lru_cache
def style_px(sheet: str, name: str) -> int:
    """Return a width that a style sheet of `assets` sets, so that what reckons with it has no copy: `--name: 12px`."""
    found = re.search(rf"--{name}: (\d+)px", joined((sheet,)))
    if found is None:
        raise KeyError(f"{sheet} sets no --{name}")
    return int(found[1])


def _style(styles: Iterable[str]) -> Markup:
    """Put the themes' colours before the style sheets; paper is always light."""
    light = theme.css_variables(theme.LIGHT, dark=False)
    dark = theme.css_variables(theme.DARK, dark=True)
    rules = (
        f":root{{color-scheme:light;--font:{theme.FONT};{light}}}",
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}",
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}",
        joined(styles),
    )
    return Markup("\n".join(rules))  # noqa: S704 -- our own style sheet and colour table
