"""The page: one offline HTML file, made of sections in a fixed order."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from rooflens.model.thresholds import default_thresholds
from rooflens.report import theme
from rooflens.report.cards import cards
from rooflens.report.charts import charts
from rooflens.report.embed import content_policy, json_block, script, vega_bundle
from rooflens.report.first_screen import banner, header, losses, summary
from rooflens.report.html import render
from rooflens.report.kernels import kernels
from rooflens.report.method import method
from rooflens.report.rows import build_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rooflens.model.records import Analysis, Run
    from rooflens.model.thresholds import Thresholds
    from rooflens.report.rows import Page

    Section = Callable[[Page], Markup]

SECTIONS: tuple[Section, ...] = (header, banner, summary, losses, charts, kernels, cards, method)
"""What the page shows, from top to bottom; a new part is a function of `Page` and an entry here."""

STYLES = ("page.css",)
SCRIPTS = ("page.js",)
"""Files of `assets`, in order; each script is a function of its own that shares only the object `lens`."""


def render_page(
    runs: Sequence[Run],
    analyses: Sequence[Analysis],
    *,
    title: str,
    limits: Thresholds | None = None,
    unread: Sequence[tuple[str, str]] = (),
) -> str:
    """Render one self-contained HTML page of all analyses.

    Args:
        runs: Provenance of the reports the analyses came from.
        analyses: The model's records, failed kernels included.
        title: What ran, in the words of the caller.
        limits: The thresholds the verdicts were reached with; the shipped ones by default.
        unread: Path and error of each report that could not be read; the page names them.

    Returns:
        The whole HTML document; it fetches nothing and runs with scripts off as plain text and tables.
    """
    page = build_page(runs, analyses, title, limits or default_thresholds(), unread)
    bundle, code = vega_bundle(), _joined(SCRIPTS)
    themes = {
        "light": theme.vega_config(theme.LIGHT, dark=False),
        "dark": theme.vega_config(theme.DARK, dark=True),
    }
    return render(
        "page",
        title=title,
        policy=content_policy(bundle, code),
        style=_style(),
        sections=[section(page) for section in SECTIONS],
        blocks=[json_block("themes", themes)],
        scripts=[script(bundle), script(code)],
    )


def _style() -> Markup:
    """Put the themes' colours before the style sheet; paper is always light."""
    light = theme.css_variables(theme.LIGHT, dark=False)
    dark = theme.css_variables(theme.DARK, dark=True)
    rules = (
        f":root{{color-scheme:light;--font:{theme.FONT};{light}}}",
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}",
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}",
        _joined(STYLES),
    )
    return Markup("\n".join(rules))  # noqa: S704 -- our own style sheet and colour table


def _joined(names: Iterable[str]) -> str:
    assets = files("rooflens.report").joinpath("assets")
    return "\n".join(assets.joinpath(name).read_text(encoding="utf-8") for name in names)
