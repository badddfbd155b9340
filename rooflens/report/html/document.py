"""The frame of every page: one offline HTML file with its content policy, both themes, styles and scripts inside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files

from markupsafe import Markup

from rooflens.format import unbroken
from rooflens.report.html import theme
from rooflens.report.html.embed import content_policy, json_block, script, vega_bundle
from rooflens.report.html.parts import facts_line

KERNELS = ("kernels", "Skip to the kernels table")

SCRIPTS = ("shared/state.js", "shared/theme.js", "shared/charts.js", "shared/reveal.js")
"""What every page runs first; the scripts of a page follow."""


def document(  # noqa: PLR0913 - a page is made of these
    title: str,
    facts: Sequence[str],
    sections: Sequence[Markup],
    *,
    headline: Markup | str = "",
    keys: Markup | str = "",
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
        title: What ran, which the browser's tab shows too: the heading, or the first of the facts above a headline.
        facts: What ran where, in a line below the heading, or above the headline.
        sections: What is shown, from top to bottom; its charts are drawn before a browser reads on.
        headline: The answer of the page in a sentence, its heading.
        keys: Terms and descriptions of the keys that its scripts know.
        head: What else is in the header.
        synthetic: Which data a generator wrote; empty if all was measured.
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
    shares = bool(headline) and charts
    late_scripts = (*late_scripts, *(("shared/share.js",) if shares else ()))
    late = (*libraries, *([joined(late_scripts)] if late_scripts else ()))
    banner = _BANNER.format(words=synthetic) if synthetic else ""
    lines = [json_block("themes", themes), *blocks, *map(script, codes), *below]
    return _FRAME.format(
        title=unbroken(title),
        policy=content_policy(*codes, *late),
        style=_style(("shared/page.css", *styles, "shared/charts.css", "shared/print.css")),
        skip=skip,
        brand=facts_line([title, *facts]) if headline else _H1.format(title),
        below=_H1.format(headline) if headline else facts_line(facts),
        share=_SHARE if shares else "",
        keys=keys,
        head=head,
        banner=banner,
        sections=_NEW_LINE.join([*sections, *lines]),
        late=_NEW_LINE.join(map(script, late)),
    )


_NEW_LINE = Markup("\n")

_THEMES = Markup("").join(
    Markup('<label><input type="radio" name="theme" value="{}"{}><span>{}</span></label>').format(value, checked, label)
    for value, label, checked in (
        ("", "System", Markup(" checked")),
        ("light", "Light", ""),
        ("dark", "Dark", ""),
    )
)

_FRAME = (
    Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="rooflens">
<title>{title} \u00b7 rooflens</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<a class="skip" href="#{skip[0]}">{skip[1]}</a>
<main>
<header>
<div class="brand">
<span class="wordmark"><svg viewBox="0 0 24 16" aria-hidden="true"><path d="M1 15 10 3h13"/></svg>rooflens</span>
{brand}
<span class="tools scripted" hidden>
{share}
<button type="button" class="quiet" id="help" aria-haspopup="dialog" title="Keys and theme" aria-label="Keys and theme">
?</button>
</span>
</div>
{below}
{head}
</header>
<dialog id="keys" aria-labelledby="keys-title">
<h2 id="keys-title">Keys and theme</h2>
<dl>
{keys}
<dt><kbd>?</kbd></dt><dd>this sheet</dd>
</dl>
<fieldset class="segments" id="theme"><legend>Theme</legend>
""")
    + _THEMES
    + Markup("""
</fieldset>
<button type="button" class="quiet" id="keys-close">Close</button>
</dialog>
{banner}
{sections}
</main>
{late}
</body>
</html>""")
)

_H1 = Markup("<h1>{}</h1>")
_SHARE = Markup(
    '<button type="button" class="quiet" id="share" title="Save headline and chart as PNG, and copy the sentence">'
    "Share</button>"
    '<span class="visually-hidden" id="shared" aria-live="polite"></span>'
)

_BANNER = Markup('<aside class="banner" role="alert"><strong>Synthetic data</strong> <span>{words}</span></aside>')


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
