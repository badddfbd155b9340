"""The frame of every page: one offline HTML file with its content policy, both themes, styles and scripts inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from rooflens.report.html import theme
from rooflens.report.html.assets import joined, style
from rooflens.report.html.embed import content_policy, safe_script, vega_bundle
from rooflens.report.templates import render

KERNELS = ("kernels", "Skip to the kernels table")

SCRIPTS = ("shared/state.js", "shared/theme.js", "shared/charts.js", "shared/reveal.js")
"""What every page runs first; the scripts of a page follow."""


class Page(Struct, frozen=True, kw_only=True):
    """What a page is made of.

    Attributes:
        title: What ran, which the browser's tab shows too: the heading, or the first of the facts above a headline.
        facts: What ran where, in a line below the heading, or above the headline.
        sections: What is shown, from top to bottom; its charts are drawn before a browser reads on.
        headline: The answer of the page in a sentence, its heading.
        keys: Terms and descriptions of the keys that its scripts know.
        head: What else is in the header.
        synthetic: Which data a generator wrote; empty if all was measured.
        blocks: Data that the scripts read, by the names of their JSON blocks; the charts' themes are added.
        styles: The page's own style sheets of `assets`, in order; those of all pages are added.
        scripts: The page's own scripts of `assets`, after `SCRIPTS`; no other script may run.
        below: What comes below the sections.
        late_scripts: Scripts of `assets` that need what comes below.
        libraries: Code of others that the late scripts use.
        skip: Where the link for readers with a keyboard leads, and its words.
        charts: False for a page that Vega draws nothing on; it is then a third as large.
        draws: True for a page whose own scripts draw a picture that can be shared.
    """

    title: str
    facts: Sequence[str]
    sections: Sequence[Markup]
    headline: Markup | str = ""
    keys: Markup | str = ""
    head: Markup | str = ""
    synthetic: str = ""
    blocks: Mapping[str, Any] = MappingProxyType({})
    styles: Sequence[str] = ()
    scripts: Sequence[str] = ()
    below: Sequence[Markup] = ()
    late_scripts: Sequence[str] = ()
    libraries: Sequence[str] = ()
    skip: tuple[str, str] = KERNELS
    charts: bool = True
    draws: bool = False


def framed(page: Page) -> str:
    """Assemble the HTML of a page from its parts."""
    themes = {
        "light": theme.vega_config(theme.LIGHT, dark=False),
        "dark": theme.vega_config(theme.DARK, dark=True),
    }
    shares = bool(page.headline) and (page.charts or page.draws)
    codes = (*([vega_bundle()] if page.charts else ()), joined((*SCRIPTS, *page.scripts)))
    late_scripts = ("shared/copy.js", *page.late_scripts, *(("shared/share.js",) if shares else ()))
    late = (*page.libraries, joined(late_scripts))
    return render(
        "shared/frame",
        page=page,
        shares=shares,
        policy=content_policy(*codes, *late),
        style=_markup(style(("shared/page.css", *page.styles, "shared/charts.css", "shared/print.css"))),
        blocks={"themes": themes, **page.blocks},
        scripts=[*map(safe_script, codes)],
        late=[*map(safe_script, late)],
    )


def _markup(text: str) -> Markup:
    return Markup(text)  # noqa: S704 -- our own style sheets and colour table
